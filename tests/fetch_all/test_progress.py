"""One bar, where somebody sees it, closed whatever happens."""

from __future__ import annotations

import contextlib
import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kreuz_sync import Session
from kreuz_sync.fetch_all.progress import Bar, Silent, progress_for

from ..fakes import ScriptedAdapter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal() -> contextlib.redirect_stderr[Terminal]:
    """What stderr is inside a block. (A fixture cannot set it: pytest puts its own there when a test begins.)"""
    return contextlib.redirect_stderr(Terminal())


def urls(count: int) -> list[str]:
    return [f"http://h{number % 3}.test/{number}" for number in range(count)]


def session_over(*answers: Any) -> Session:
    return Session(adapter=ScriptedAdapter(*answers), throttle=None)


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that a tqdm of ours has made."""
    made: list[Any] = []

    class Tqdm:
        def __init__(self, **options: Any) -> None:
            self.options, self.n, self.closed, self.text = options, 0, 0, ""
            made.append(self)

        def update(self, count: int) -> None:
            assert not self.closed
            self.n += count

        def set_postfix_str(self, text: str, *, refresh: bool) -> None:
            self.text = text

        def close(self) -> None:
            self.closed += 1

    module = ModuleType("tqdm.auto")
    module.tqdm = Tqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return made


class TestBar:
    """With tqdm installed."""

    def test_there_is_one_and_it_counts_every_result(self, bars: list[Any]) -> None:
        with on_terminal():
            given = [*urls(19), "nonsense"]
            assert len(list(session_over(200).fetch_all(given, workers=8, progress=True))) == 20
            (bar,) = bars
            assert (bar.options, bar.n, bar.closed) == ({"total": 20, "unit": "url"}, 20, 1)
            assert bar.text == "1 failed"

    def test_a_list_without_a_length_has_no_total(self, bars: list[Any]) -> None:
        with on_terminal():
            list(session_over(200).fetch_all(iter(urls(3)), progress=True))
            assert (bars[0].options["total"], bars[0].n) == (None, 3)

    def test_it_is_closed_when_the_loop_is_left(self, bars: list[Any]) -> None:
        with on_terminal():
            for _ in session_over(200).fetch_all(urls(20), progress=True):
                break
            assert (bars[0].n, bars[0].closed) == (1, 1)

    def test_it_is_closed_when_an_error_is_raised(self, bars: list[Any]) -> None:
        with on_terminal():
            with pytest.raises(ValueError, match=r"urls\[0\]"):
                list(session_over(200).fetch_all([42], progress=True, on_error="raise"))
            assert bars[0].closed == 1

    def test_it_is_closed_when_nothing_was_begun(self, bars: list[Any]) -> None:
        with on_terminal():
            session_over(200).fetch_all(urls(20), progress=True).close()
            assert bars[0].closed == 1

    def test_tqdms_own(self) -> None:
        pytest.importorskip("tqdm")
        with on_terminal() as terminal:
            list(session_over(200).fetch_all(urls(20), progress=True))
        assert "20/20" in terminal.getvalue()
        assert terminal.getvalue().endswith("\n")


class TestNoBar:
    """Where nobody would see it, or nobody asked."""

    def test_not_asked_for(self, bars: list[Any]) -> None:
        with on_terminal():
            list(session_over(200).fetch_all(urls(3)))
            assert bars == []

    def test_no_terminal(self, bars: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
        list(session_over(200).fetch_all(urls(3), progress=True))
        assert (bars, capsys.readouterr().err) == ([], "")

    def test_no_stderr_at_all(self) -> None:
        with contextlib.redirect_stderr(None):
            assert isinstance(progress_for([]), Silent)

    @pytest.mark.parametrize("missing", ["tqdm", "tqdm.auto"])
    def test_no_tqdm(self, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
        with on_terminal():
            monkeypatch.setitem(sys.modules, missing, None)
            assert len(list(session_over(200).fetch_all(urls(3), progress=True))) == 3


class TestNotebooks:
    """A kernel's output is no terminal, and is seen all the same."""

    @pytest.mark.parametrize(("config", "kind"), [({"IPKernelApp": {}}, Bar), ({}, Silent)])
    @pytest.mark.usefixtures("bars")
    def test_a_kernel_has_a_bar(self, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], kind: type) -> None:
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda: SimpleNamespace(config=config)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        with contextlib.redirect_stderr(io.StringIO()):
            assert isinstance(progress_for([]), kind)

    @pytest.mark.usefixtures("bars")
    def test_ipython_that_runs_nothing_is_no_notebook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda: None  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        with contextlib.redirect_stderr(io.StringIO()):
            assert isinstance(progress_for([]), Silent)
