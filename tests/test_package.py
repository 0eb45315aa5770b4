"""The package as it is installed: what it promises, what it ships, what importing it costs."""

from __future__ import annotations

import configparser
import importlib.metadata
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kreuz_sync

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(kreuz_sync.__file__).parent

# Never imported with the package: each costs what only some users need.
HEAVY = (
    *("asyncio", "dataclasses", "diskcache", "inspect", "opentelemetry", "protego", "redis", "sqlite3", "tqdm"),
    *("kreuz_sync.breaker", "kreuz_sync.budget", "kreuz_sync.cache", "kreuz_sync.cli", "kreuz_sync.robots"),
    *("kreuz_sync.ssrf", "kreuz_sync.tracing"),
)
OPTIONAL = ("diskcache", "opentelemetry", "protego", "redis", "tqdm")


def run_python(code: str) -> str:
    """What `code` prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def configuration() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def modules() -> list[str]:
    """The names of all modules of the package, but the one that runs when it is imported."""
    found = pkgutil.walk_packages(kreuz_sync.__path__, "kreuz_sync.")
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


class TestImport:
    """`import kreuz_sync` loads requests and little more."""

    def test_no_heavy_module_comes_with_it(self) -> None:
        """Only modules that requests itself brings may be among them."""
        code = f"""
import sys, requests
before = set(sys.modules)
import kreuz_sync
print(sorted(set({HEAVY!r}) & (set(sys.modules) - before)))
"""
        assert run_python(code).strip() == "[]"

    @pytest.mark.parametrize("missing", OPTIONAL)
    @pytest.mark.slow
    def test_every_module_imports_without(self, missing: str) -> None:
        """An optional part is asked for where it is used, so its absence is met there and not before."""
        code = f"""
import sys, importlib
sys.modules[{missing!r}] = None
for name in {modules()!r}:
    importlib.import_module(name)
"""
        run_python(code)

    def test_every_module_is_clean_of_warnings(self) -> None:
        """A user who turns warnings into errors can import it."""
        code = f"""
import importlib, warnings
warnings.simplefilter("error")
for name in {modules()!r}:
    importlib.import_module(name)
"""
        run_python(code)


class TestPublicNames:
    """The names of the front page."""

    def test_each_exists(self) -> None:
        assert [name for name in kreuz_sync.__all__ if not hasattr(kreuz_sync, name)] == []

    def test_each_is_listed_once(self) -> None:
        assert len(kreuz_sync.__all__) == len(set(kreuz_sync.__all__))

    def test_each_of_ours_says_what_it_gives(self) -> None:
        """A docstring of its own, not one that is inherited."""
        ours = [(name, getattr(kreuz_sync, name)) for name in kreuz_sync.__all__]
        ours = [(name, thing) for name, thing in ours if (inspect.isclass(thing) or inspect.isfunction(thing))]
        ours = [(name, thing) for name, thing in ours if thing.__module__.startswith("kreuz_sync")]
        assert [name for name, thing in ours if not thing.__doc__] == []

    def test_they_cover_the_front_page_of_requests(self) -> None:
        """`import kreuz_sync as requests` finds every function and exception it used to find."""
        import requests

        internal = {"check_compatibility", "FileModeWarning", "RequestsDependencyWarning"}
        names = [name for name in vars(requests) if not name.startswith("_")]
        theirs = {name for name in names if getattr(vars(requests)[name], "__module__", "").startswith("requests")}
        assert sorted(theirs - internal - set(dir(kreuz_sync))) == []


class TestMetadata:
    """setup.cfg, and what an installation makes of it."""

    @pytest.fixture
    def installed(self) -> importlib.metadata.Distribution:
        try:
            return importlib.metadata.distribution("kreuz-sync")
        except importlib.metadata.PackageNotFoundError:
            pytest.skip("the package is on the path, but not installed")

    def test_the_version_is_written_once(self, installed: importlib.metadata.Distribution) -> None:
        assert installed.version == kreuz_sync.__version__

    def test_the_change_log_knows_the_version(self) -> None:
        assert f"## [{kreuz_sync.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    def test_the_command_is_installed(self, installed: importlib.metadata.Distribution) -> None:
        (command,) = (entry for entry in installed.entry_points if entry.name == "kreuz-sync")
        assert command.group == "console_scripts"
        assert callable(command.load())

    def test_the_core_needs_four_packages(self) -> None:
        wanted = configuration()["options"]["install_requires"].split()
        assert sorted(re.split("[<>=]", one)[0] for one in wanted) == ["diskcache", "protego", "requests", "urllib3"]

    def test_the_lowest_versions_are_the_ones_that_are_tested(self) -> None:
        """Each lower bound in setup.cfg is a pin in .ci/lowest.txt."""
        bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)", configuration()["options"]["install_requires"], re.MULTILINE))
        pins = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / ".ci/lowest.txt").read_text(), re.MULTILINE))
        assert {name: pins[name] for name in bounds if not _same_release(pins[name], bounds[name])} == {}


def _same_release(pin: str, bound: str) -> bool:
    """True for 2.28.0 and 2.28: zeros at the end say nothing."""
    return re.sub(r"(\.0)+$", "", pin) == re.sub(r"(\.0)+$", "", bound)


class TestCommandLine:
    """The command answers when it is run as a module too."""

    def test_it_tells_its_version(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "kreuz_sync", "--version"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=PACKAGE.parent,
        )
        assert (done.returncode, done.stdout.strip()) == (0, f"kreuz-sync {kreuz_sync.__version__}")


def can_build_wheels() -> bool:
    """Whether setuptools is here, and one that needs no other package for it."""
    try:
        version = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, version.split(".")[:2])) >= (70, 1)


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files in a wheel built from a copy of the tree, without a network."""
    if not can_build_wheels():
        pytest.skip("setuptools 70.1 or later builds the wheel")
    if not (ROOT / "kreuz_sync").is_dir():
        pytest.skip("the tests run without the source tree")
    tree = tmp_path_factory.mktemp("tree")
    for name in ("setup.cfg", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "kreuz_sync", tree / "kreuz_sync", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests").mkdir()
    (tree / "tests" / "__init__.py").touch()
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tree / "wheel")]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(tree)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "wheel").glob("kreuz_sync-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


class TestWheel:
    """What an installation gets that is not a Python file."""

    @pytest.mark.slow
    def test_it_says_that_it_is_typed(self, wheel_names: set[str]) -> None:
        assert "kreuz_sync/py.typed" in wheel_names

    def test_data_files_are_in_it(self, wheel_names: set[str]) -> None:
        """Every JSON file of the package, the rules for challenge pages among them."""
        data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kreuz_sync").rglob("*.json")}
        assert data
        assert data <= wheel_names

    def test_every_module_is_in_it(self, wheel_names: set[str]) -> None:
        source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kreuz_sync").rglob("*.py")}
        assert source <= wheel_names

    def test_the_licence_is_in_it(self, wheel_names: set[str]) -> None:
        assert any(name.endswith("LICENSE") for name in wheel_names)

    def test_the_tests_are_not(self, wheel_names: set[str]) -> None:
        assert not any(name.startswith("tests/") for name in wheel_names)


class TestReadme:
    """The two commands that a newcomer pastes."""

    @pytest.fixture
    def commands(self) -> list[str]:
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        return [line for block in blocks for line in block.splitlines() if line.startswith("python3 -m venv")]

    def test_one_installs_and_runs_the_main_job(self, commands: list[str]) -> None:
        assert [command for command in commands if command.endswith("kreuz-sync demo")] == [commands[0]]

    def test_one_installs_and_passes_the_tests(self, commands: list[str]) -> None:
        assert [command for command in commands if command.endswith("pytest")] == [commands[1]]

    def test_both_are_what_ci_runs(self, commands: list[str]) -> None:
        """Word for word: each is a whole line of .ci/run."""
        run = [line.strip() for line in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()]
        assert [command for command in commands if command not in run] == []
