"""The workers of a `fetch_all` that has no executor: threads of its own."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

from .making import Maker, discard
from .worker import Worker

if TYPE_CHECKING:
    from .crew import Crew

GRACE_S = 2.0  # for a thread that looks up a name or connects: nothing ends that
AGAIN_S = 0.02  # a thread may have begun a wait just when it was told to stop

_numbers = itertools.count(1)


class Threads:
    """Hires workers, and waits for them in the end."""

    def __init__(self, maker: Maker) -> None:
        self.crew: Crew
        self._maker = maker
        self._threads: list[threading.Thread] = []  # appending is one step

    def hire(self) -> bool:
        """Put another worker to work. False if no thread is to be had."""
        worker = Worker(self.crew, called=True)
        thread = threading.Thread(
            target=_work, args=(worker, self._maker), name=f"kreuz_sync-fetch_all-{next(_numbers)}", daemon=True
        )
        self.crew.workers.add(worker)
        self._threads.append(thread)
        try:
            thread.start()
        except RuntimeError as error:
            self.crew.workers.discard(worker)
            if not self.crew.workers:  # nobody is there to do anything
                self.crew.fail(error)
            return False
        return True

    def end(self, grace: float = GRACE_S) -> None:
        """Wait until all threads have ended, `grace` seconds at most; each is told to again and again."""
        until = time.monotonic() + grace
        mine = threading.current_thread()
        for thread in list(self._threads):
            while thread.ident is not None and thread is not mine and thread.is_alive() and time.monotonic() < until:
                thread.join(AGAIN_S)
                self.crew.stop()


def _work(worker: Worker, maker: Maker) -> None:
    crew = worker.crew
    try:
        while (job := crew.next(worker)) is not None:
            worker.done = maker.make(worker, job)
            if crew.stopped:
                discard(worker.done)
                break
    except BaseException as error:  # it has to end the run, not this thread alone
        crew.fail(error)
    finally:
        crew.workers.discard(worker)
