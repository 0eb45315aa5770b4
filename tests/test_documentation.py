"""Every example of the documentation runs as it stands: in README.md, docs/ and the docstrings.

Blocks marked `python` and `pycon` are run, page by page, from top to bottom; a `pycon` block must
also print what it shows. A block after `<!-- not run: REASON -->` is only compiled; one after
`<!-- needs: PACKAGE -->` is skipped with the rest of its page where the package is missing.
They ask the site of `kreuz-sync demo --serve`, which is served here on another port. Where they
name example.com and its kin, that site's replies are given in place of the network's. A notebook
brings its own server, and prints what is stored with it.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import pkgutil
import re
import shlex
import threading
from collections.abc import Iterator
from http.client import responses as REASONS
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync.cli import arguments as cli
from kreuz_sync.cli import example_site

from .fakes import respond

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").glob("**/*.ipynb"))
MODULES = [module.name for module in pkgutil.walk_packages(kreuz_sync.__path__, "kreuz_sync.")]

_BLOCK = re.compile(r"(?:<!-- (?P<mark>[^\n]*) -->\n+)?^```(?P<kind>python|pycon)\n(?P<code>.*?)^```$", re.M | re.S)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
_SOURCE_FILE = re.compile(r"`([\w/]+\.py)`")
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


class Block(NamedTuple):
    """A piece of code of a page. mark: the comment before it; line: where its code begins."""

    kind: str
    code: str
    mark: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(found["kind"], found["code"], found["mark"] or "", line)


def run(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Run `block` with, and into, `names`."""
    if block.mark.startswith("needs: "):
        pytest.importorskip(block.mark.removeprefix("needs: "))
    if block.kind == "pycon":
        example = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line - 1)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        report: list[str] = []
        runner.run(example, out=report.append, clear_globs=False)
        names.update(example.globs)
        assert not runner.failures, "".join(report)
        return
    # Empty lines before the code, so that a traceback names the page's own line.
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
    if not block.mark.startswith("not run"):
        exec(code, names)


REAL_SEND = HTTPAdapter.send
EXAMPLE_HOST = re.compile(r"(?:[\w-]+\.)*example\.(?:com|net|org)")  # RFC 2606


def send(adapter: HTTPAdapter, request: requests.PreparedRequest, **options: Any) -> requests.Response:
    """To the example site on this machine, or as it would answer; to nobody else."""
    url = urlsplit(request.url or "")
    host = url.hostname or ""
    if host in ("127.0.0.1", "localhost"):
        return REAL_SEND(adapter, request, **options)
    assert EXAMPLE_HOST.fullmatch(host), f"{request.url} is no host of an example"
    reply = example_site.reply_to(url.path, request.headers.get)
    fields = (*reply.fields, ("Content-Type", reply.kind), ("Content-Length", str(len(reply.body))))
    response = respond(request, reply.status, fields, reply.body[: reply.cut])
    response.reason = REASONS[reply.status]
    return response


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where the example site is."""
    with example_site.open_site(0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server.port
        server.shutdown()
        thread.join(10)


@pytest.fixture
def example_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No network; a folder to write into; and the site that the pages call `mysite`."""
    used: set[HTTPAdapter] = set()

    def remember_and_send(adapter: HTTPAdapter, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        used.add(adapter)
        return send(adapter, request, **options)

    for double in ("requests_mock", "responses"):  # when first imported, these remember the real `send`
        with contextlib.suppress(ImportError):
            importlib.import_module(double)
    monkeypatch.setattr(HTTPAdapter, "send", remember_and_send)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "tests" / "examples")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "mysite.settings")  # what an example sets lasts for its test
    yield
    for adapter in used:  # an example is not cluttered with the end of its session
        adapter.close()


def on_port(port: int, text: str) -> str:
    """A page as if the example site were at `port`: the documentation's own may be in use."""
    return text.replace(f":{example_site.PORT}", f":{port}")


class TestPages:
    """README.md and docs/."""

    @pytest.mark.usefixtures("example_hosts")
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_examples_run_as_they_stand(self, page: Path, port: int) -> None:
        names: dict[str, Any] = {"__name__": "example"}
        for block in blocks(on_port(port, page.read_text(encoding="utf-8"))):
            run(block, page, names)

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_a_page_that_asks_the_example_site_says_how_to_start_it(self, page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        if f"127.0.0.1:{example_site.PORT}" in text:
            assert "kreuz-sync demo --serve" in text.partition("```python")[0]

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_links_lead_to_files(self, page: Path) -> None:
        links = _LINK.findall(page.read_text(encoding="utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == []

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_commands_are_understood(self, page: Path) -> None:
        """Every `kreuz-sync ...` in a shell block has the options that it uses."""
        lines = "\n".join(_SHELL.findall(page.read_text(encoding="utf-8"))).splitlines()
        for line in lines:
            _, command, arguments = line.partition("kreuz-sync ")
            if command:
                cli.parser().parse_args(shlex.split(arguments))

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_source_files_are_where_they_are_said_to_be(self, page: Path) -> None:
        folder = Path(kreuz_sync.__file__).parent
        named = _SOURCE_FILE.findall(page.read_text(encoding="utf-8"))
        assert [name for name in named if not (folder / name).is_file()] == []


class TestNotebooks:
    """docs/*.ipynb."""

    @pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
    def test_cells_print_what_they_show(self, notebook: Path) -> None:
        names: dict[str, Any] = {"__name__": "example"}
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile("".join(cell["source"]), str(notebook), "exec", dont_inherit=True), names)
                shown = ["".join(output["text"]) for output in cell["outputs"]]
                assert printed.getvalue() == "".join(shown)


class TestDocstrings:
    """The examples in docstrings."""

    @pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
    def test_examples_print_what_they_show(self, name: str) -> None:
        assert doctest.testmod(importlib.import_module(name)).failed == 0
