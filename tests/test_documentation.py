"""Every example of the documentation runs as it stands: in README.md, docs/ and the docstrings.

Blocks marked `python` and `pycon` are run, page by page, from top to bottom; a `pycon` block must
also print what it shows. A block after `<!-- not run: REASON -->` is only compiled; one after
`<!-- needs: PACKAGE -->` is skipped with the rest of its page where the package is missing.
The hosts of the examples (example.com and below) are answered here.
"""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync import cli

from .fakes import respond

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
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


def answer(request: requests.PreparedRequest) -> requests.Response:
    """What the hosts of the examples say."""
    url = urlsplit(request.url or "")
    assert (url.hostname or "").endswith(("example.com", "example.org")), f"{request.url} is no host of an example"
    if url.path.startswith("/missing"):
        return respond(request, 404, content=b"no such page")
    if url.path.startswith("/busy"):
        return respond(request, 429, {"Retry-After": "1"})
    if url.path.startswith("/me"):
        seen = {"path": url.path, "authorization": request.headers.get("Authorization")}
        return respond(request, 200, {"Content-Type": "application/json"}, json.dumps(seen).encode())
    if url.path.startswith("/large"):
        return respond(request, 200, {"Content-Length": "50000000"}, b"...")
    if url.path.startswith("/cut"):
        return respond(request, 200, {"Content-Length": "50000"}, b"<p>")
    if url.path.startswith("/shop"):
        return respond(
            request, 403, {"cf-mitigated": "challenge", "Content-Type": "text/html"}, b"<title>Just a moment..."
        )
    return respond(request, 200, {"Content-Type": "text/html; charset=utf-8"}, b"<h1>Example</h1>")


@pytest.fixture
def example_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hosts of the examples, in place of the network; and a folder to write into."""
    monkeypatch.setattr(HTTPAdapter, "send", lambda adapter, request, **options: answer(request))
    monkeypatch.chdir(tmp_path)


class TestPages:
    """README.md and docs/."""

    @pytest.mark.usefixtures("example_hosts")
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_examples_run_as_they_stand(self, page: Path) -> None:
        names: dict[str, Any] = {"__name__": "example"}
        for block in blocks(page.read_text(encoding="utf-8")):
            run(block, page, names)

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


class TestDocstrings:
    """The examples in docstrings."""

    @pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
    def test_examples_print_what_they_show(self, name: str) -> None:
        assert doctest.testmod(importlib.import_module(name)).failed == 0
