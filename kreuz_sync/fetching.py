"""The job: workers over one session, from a list of URLs to results that are written whole.

    the caller's thread      reads the list, and puts URLs into a `HostQueue`
    `workers` threads        take a URL, fetch it, and hand the outcome to `Results`

Whatever ends the run early, an interrupt, a full disk or a reader that left, ends it in this
order: no URL is handed out any more, nothing is written any more, and the session is closed,
which wakes the threads that wait for a host's turn. Threads that are on the wire then are
left behind; what they bring is not used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Protocol

from .clock import SYSTEM_CLOCK, Clock
from .outcome import Outcome, answered, failed
from .progress import Progress, Silent
from .sessions import Session
from .summary import Tally
from .url_list import HostQueue

GRACE_S = 0.5  # for threads that are about to end, so that most runs leave none behind
WRITE_GRACE_S = 2.0  # for a file or line that is being written


class Sink(Protocol):
    """Where outcomes go. `write` is called by one thread at a time, and may raise OSError."""

    def write(self, outcome: Outcome) -> None: ...

    def close(self) -> None: ...


class Results:
    """What all workers share: where outcomes go, and the counts.

    `_lock` guards all of it. It is held while an outcome is written, so that after `close`
    no file is half written.
    """

    def __init__(self, sinks: Sequence[Sink], progress: Progress | None = None) -> None:
        self.tally = Tally()
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


class _Crew:
    """How many workers are left, and the first error that one of them could make no outcome of.

    `_lock` guards both. `over` is set when none is left, or something failed.
    """

    def __init__(self, size: int) -> None:
        self.over = threading.Event()
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._working = size

    def leave(self, error: BaseException | None = None) -> None:
        with self._lock:
            self._working -= 1
            self.error = self.error or error
            if self.error is not None or self._working == 0:
                self.over.set()


def run(session: Session, urls: Iterable[str], results: Results, *, workers: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Fetch `urls` with `workers` threads, and hand each outcome to `results`. Closes both at the end.

    Raises what a sink raises (OSError), and KeyboardInterrupt.
    """
    queue, crew = HostQueue(), _Crew(workers)
    threads = [_worker(number, session, queue, results, crew, clock) for number in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for number, url in enumerate(urls, start=1):
            if not queue.put(number, url):
                break
        queue.complete()
        crew.over.wait()
    finally:
        queue.abandon()
        results.close()
        session.close()
        _join(threads, clock.monotonic() + GRACE_S, clock)
    if crew.error is not None:
        raise crew.error


def fetch(session: Session, number: int, url: str, *, clock: Clock = SYSTEM_CLOCK) -> Outcome:
    """What becomes of one URL. An exception, whatever it is, is that URL's outcome and ends nothing else."""
    started = clock.monotonic()
    try:
        response = session.request("GET", url)
        return answered(number, url, response, clock.monotonic() - started)
    except Exception as error:
        return failed(number, url, error, clock.monotonic() - started)


def _worker(
    number: int, session: Session, queue: HostQueue, results: Results, crew: _Crew, clock: Clock
) -> threading.Thread:
    def work() -> None:
        try:
            while (item := queue.take()) is not None:
                results.take(fetch(session, *item, clock=clock))
        except BaseException as error:  # it has to end the run, not this thread alone
            queue.abandon()
            crew.leave(error)
        else:
            crew.leave()

    # Daemons: one that is left on the wire must not keep the process from ending.
    return threading.Thread(target=work, name=f"kreuz-sync-{number}", daemon=True)


def _join(threads: Iterable[threading.Thread], until: float, clock: Clock) -> None:
    for thread in threads:
        if thread.ident is not None:  # an interrupt may come before all have been started
            thread.join(max(0.0, until - clock.monotonic()))
