"""The job: many URLs through one session, and results that are written whole.

    a thread of `fetch_all`    reads the list
    its workers                fetch each URL when its host is due
    one thread                 writes what comes of them
    the caller's thread        waits for that, and can be interrupted

Whatever ends the run early, an interrupt, a full disk or a reader that left, ends it in this order:
nothing is written any more, and then everything that is under way is stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Protocol

from kreuz_sync.fetch_all import FetchAll, Result
from kreuz_sync.sessions import Session

from .outcome import Outcome, answered, failed, repeated
from .progress import Progress, Silent
from .summary import Tally

GRACE_S = 0.5  # for the writer, which is about to end
WRITE_GRACE_S = 2.0  # for a file or line that is being written
LOOK_AGAIN_S = 0.5  # on Windows, a wait for a thread can't be interrupted


class Sink(Protocol):
    """Where outcomes go. `write` is called by one thread at a time, and may raise OSError."""

    def write(self, outcome: Outcome) -> None: ...

    def close(self) -> None: ...


class Results:
    """Where outcomes go, and the counts.

    `_lock` guards all of it. It is held while an outcome is written, so that after `close`
    no file is half written.
    """

    def __init__(self, sinks: Sequence[Sink], progress: Progress | None = None, tally: Tally | None = None) -> None:
        self.tally = tally or Tally()
        self._sinks = tuple(sinks)
        self._progress = progress or Silent()
        self._lock = threading.Lock()
        self._closed = False

    def take(self, outcome: Outcome) -> None:
        """Write and count one outcome; after `close`, do nothing. Raises a sink's OSError."""
        with self._lock:
            if self._closed:
                return
            for sink in self._sinks:
                sink.write(outcome)
            self.tally.add(outcome)
            self._progress.show(self.tally.done, self.tally.failed)

    def close(self) -> None:
        """Take no more. Does nothing the second time."""
        # A pager that nobody scrolls holds up a writer for ever, and must not hold up the end.
        held = self._lock.acquire(timeout=WRITE_GRACE_S)
        try:
            if not self._closed:
                self._closed = True
                self._progress.close()
                for sink in self._sinks:
                    sink.close()
        finally:
            if held:
                self._lock.release()


def run(session: Session, urls: Iterable[str], results: Results, *, workers: int) -> None:
    """Fetch `urls`, so many at once, and hand each outcome to `results`. Closes these and the session at the end.

    Raises what a sink raises (OSError), what reading `urls` raises, and KeyboardInterrupt.
    """
    found = session.fetch_all(urls, workers=workers, live=True)
    writer = _Writer(found, results)
    try:
        writer.start()
        while writer.is_alive():
            writer.join(LOOK_AGAIN_S)
    finally:
        results.close()
        found.close()
        session.close()
        writer.join(GRACE_S)
    if writer.error is not None:
        raise writer.error


class _Writer(threading.Thread):
    """Takes results as they come. Interrupts strike another thread, and so no line in the middle.

    error: what ended it too early.
    """

    def __init__(self, found: FetchAll, results: Results) -> None:
        # A daemon: one that is stuck in a write must not keep the process from ending.
        super().__init__(name="kreuz-sync-writer", daemon=True)
        self.error: BaseException | None = None
        self._found = found
        self._results = results

    def run(self) -> None:
        before: Result | None = None
        try:
            for result in self._found:
                self._results.take(outcome_of(result, before))
                before = result
        except BaseException as error:  # it has to end the run, not this thread alone
            self.error = error


def outcome_of(result: Result, before: Result | None = None) -> Outcome:
    """What became of one URL. before: the result before it; two of one request come one after the other."""
    number, url = result.index + 1, str(result.input)
    if result.response is not None:
        outcome = answered(number, url, result.response, result.elapsed)
    else:
        assert result.error is not None
        outcome = failed(number, url, result.error, result.elapsed)
    if before is not None and (before.response, before.error) == (result.response, result.error):
        return repeated(outcome)
    return outcome
