"""How far a run is, on a terminal."""

from __future__ import annotations

import io

import pytest

from kreuz_sync.progress import Bar, Counter, Silent, progress_on

from .fakes import FakeClock


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class TestChoice:
    """Which display a stream gets."""

    def test_a_pipe_gets_none(self) -> None:
        assert isinstance(progress_on(io.StringIO(), 10), Silent)

    def test_a_terminal_gets_one(self) -> None:
        display = progress_on(Terminal(), 10)
        assert isinstance(display, (Counter, Bar))
        display.close()


class TestCounter:
    """One line that is written over."""

    def test_it_is_written_a_few_times_a_second(self) -> None:
        clock, stream = FakeClock(), Terminal()
        counter = Counter(stream, None, clock=clock)
        for done in range(1, 101):
            counter.show(done, 0)
            clock.advance(0.01)
        assert 5 <= stream.getvalue().count("\r") <= 15

    def test_it_leaves_an_empty_line(self) -> None:
        stream = Terminal()
        counter = Counter(stream, 3, clock=FakeClock())
        counter.show(1, 1)
        counter.close()
        assert stream.getvalue() == "\r1 of 3 done, 1 failed\r" + " " * 21 + "\r"

    def test_a_shorter_text_covers_a_longer_one(self) -> None:
        clock, stream = FakeClock(), Terminal()
        counter = Counter(stream, None, clock=clock)
        counter.show(1000, 0)
        clock.advance(1)
        counter.show(1, 0)
        assert stream.getvalue().split("\r")[2] == "1 done   "

    def test_a_run_that_showed_nothing_leaves_nothing(self) -> None:
        stream = Terminal()
        Counter(stream, None).close()
        assert stream.getvalue() == ""


class TestBar:
    """tqdm's, where it is installed."""

    def test_it_counts_to_what_was_done(self) -> None:
        tqdm = pytest.importorskip("tqdm")
        bar = Bar(tqdm, Terminal(), 10)
        bar.show(3, 1)
        bar.show(7, 1)
        assert bar._bar.n == 7
        bar.close()
