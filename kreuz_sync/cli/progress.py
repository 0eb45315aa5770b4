"""How far a run is, on a terminal: tqdm's bar if tqdm is installed, else one line that is written over."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any, Protocol

from kreuz_sync.clock import SYSTEM_CLOCK, Clock

EVERY_S = 0.1  # a terminal that is written to for every page slows the run


class Progress(Protocol):
    """Told after every URL; closed before anything else is printed."""

    def show(self, done: int, failed: int) -> None: ...

    def close(self) -> None: ...


class Silent:
    """No display: the run is in a pipe, a file or a job."""

    def show(self, done: int, failed: int) -> None:
        pass

    def close(self) -> None:
        pass


class Counter:
    """`12 of 40 done, 1 failed`, on one line."""

    def __init__(self, stream: IO[str], total: int | None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream
        self.total = total
        self.clock = clock
        self._next = clock.monotonic()
        self._shown = ""

    def show(self, done: int, failed: int) -> None:
        now = self.clock.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            self._write(counter_text(done, failed, self.total))

    def close(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self._write("")
            self.stream.write("\r")
            self.stream.flush()

    def _write(self, text: str) -> None:
        # Blanks, and no escape codes: not every terminal knows these.
        self.stream.write("\r" + text.ljust(len(self._shown)))
        self.stream.flush()
        self._shown = text


class Bar:
    """tqdm's bar."""

    def __init__(self, tqdm: Any, stream: IO[str], total: int | None) -> None:
        self._bar = tqdm.tqdm(total=total, file=stream, unit="url", leave=False)

    def show(self, done: int, failed: int) -> None:
        if failed:
            self._bar.set_postfix_str(f"{failed} failed", refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def progress_on(stream: IO[str], total: int | None) -> Progress:
    """The display for `stream`; none where it is no terminal. total: URLs to come, None if not known."""
    if not stream.isatty():
        return Silent()
    try:
        tqdm = import_module("tqdm")
    except ImportError:
        return Counter(stream, total)
    return Bar(tqdm, stream, total)


def counter_text(done: int, failed: int, total: int | None) -> str:
    """
    >>> counter_text(12, 1, 40), counter_text(12, 0, None)
    ('12 of 40 done, 1 failed', '12 done')
    """
    so_far = f"{done} done" if total is None else f"{done} of {total} done"
    return f"{so_far}, {failed} failed" if failed else so_far
