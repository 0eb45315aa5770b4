"""The workers of a `fetch_all` that has an executor: each request is a task of it.

One thread takes the jobs as their hosts come due and hands them over, so many at once as may be under way.
On a `ThreadPoolExecutor` a task is what a thread of our own would do. To all others, in whatever process,
the session goes as a pickle of its settings.
"""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from kreuz_sync.errors import WorkerLost
from kreuz_sync.throttle import Throttle
from kreuz_sync.urls import redact_text

from .items import Ask
from .making import Maker, Outcome, discard, done
from .pacing import Estimated
from .remote import fetch
from .threads import AGAIN_S, GRACE_S
from .worker import Worker

if TYPE_CHECKING:
    from kreuz_sync.sessions import Session

    from .crew import Crew
    from .schedule import Job


class Spread:
    """Hands the jobs of a crew to an executor, which it does not shut down.

    settings: the session's pickle, None where its requests are made in this process. estimated: the pace as
    it is known here, None where the throttle is asked.
    """

    def __init__(
        self, executor: Executor, maker: Maker, settings: bytes | None = None, estimated: Estimated | None = None
    ) -> None:
        self.crew: Crew
        self._executor = executor
        self._maker = maker
        self._settings = settings
        self._estimated = estimated
        self._futures: set[Future[Any]] = set()  # each change is one step
        self._thread: threading.Thread | None = None

    def hire(self) -> bool:
        """Begin to hand out. False if that has begun."""
        if self._thread is not None:
            return False
        seat = Worker(self.crew, called=True)
        self.crew.workers.add(seat)
        self._thread = threading.Thread(
            target=self._run, args=(seat,), name="kreuz_sync-fetch_all-dispatcher", daemon=True
        )
        self._thread.start()
        return True

    def end(self, grace: float = GRACE_S) -> None:
        """Take back what has not begun, and wait for what runs in this process."""
        until = time.monotonic() + grace
        thread = self._thread
        while thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join(AGAIN_S)
            self.crew.stop()
            if time.monotonic() > until:
                break
        for future in list(self._futures):
            future.cancel()
        while self._settings is None and self._futures and time.monotonic() < until:
            self.crew.stop()
            time.sleep(AGAIN_S)

    def _run(self, seat: Worker) -> None:
        crew = self.crew
        try:
            while (job := crew.next(seat)) is not None:
                seat.job = None  # it is not the one that does it
                self._hand_over(job)
        except BaseException as error:  # it has to end the run, not this thread alone
            crew.fail(error)
        finally:
            crew.workers.discard(seat)

    def _hand_over(self, job: Job) -> None:
        ask = self._maker.read(job.source, job.index)
        worker = None if self._settings is not None else Worker(self.crew, job)
        if worker is not None:
            self.crew.workers.add(worker)
        try:
            future = self._submit(ask, worker)
        except Exception as error:  # the executor is broken, or was shut down
            self._finish(job, worker, ask.text, _lost(error))
            return
        self._futures.add(future)
        future.add_done_callback(partial(self._came_back, job, worker, ask.text))

    def _submit(self, ask: Ask, worker: Worker | None) -> Future[Any]:
        if worker is not None:
            return self._executor.submit(self._maker.outcome, worker, ask)
        assert self._settings is not None
        return self._executor.submit(fetch, self._settings, ask)

    def _came_back(self, job: Job, worker: Worker | None, url: str, future: Future[Any]) -> None:
        self._futures.discard(future)
        try:
            outcome = future.result()
        except Exception as error:  # the task itself raises none: it is the executor's
            outcome = _lost(error)
        except BaseException as error:  # an exit in a hook: it has to end the run
            self.crew.fail(error)
            return
        self._finish(job, worker, url, outcome)

    def _finish(self, job: Job, worker: Worker | None, url: str, outcome: Outcome) -> None:
        if worker is not None:
            self.crew.workers.discard(worker)
        now = self.crew.clock.monotonic()
        came_to = done(url, outcome, now - job.since)
        if self.crew.stopped:
            discard(came_to)
        learn = None
        if self._estimated is not None and job.line is not None:
            learn = partial(self._estimated.learn, job.line.name, now, outcome)
        self.crew.finish(job, came_to, learn)


def _lost(error: BaseException) -> WorkerLost:
    lost = WorkerLost(f"the executor did not make the request: {redact_text(str(error)) or type(error).__name__}")
    lost.__cause__ = error
    return lost


def size_of(executor: Executor, workers: int) -> int:
    """How many tasks may be under way: no more than an executor of the standard library works at."""
    most = getattr(executor, "_max_workers", None)
    return min(workers, most) if isinstance(most, int) and most > 0 else workers


def settings_of(session: Session, executor: Executor) -> bytes:
    """The session's pickle. Raises TypeError where it has none. Warns of a pace that each process keeps alone."""
    try:
        settings = pickle.dumps(session)
    except Exception as error:
        raise TypeError(
            f"executor={executor!r}: the session goes to other processes as a pickle, and it has none ({error})"
        ) from error
    if type(session.throttle) is Throttle:
        warnings.warn(PACES_ALONE, stacklevel=5)
    return settings


PACES_ALONE = (
    "each process of this executor keeps its pace alone: together they are faster than the session's throttle "
    "says. Give the session a FolderThrottle or a RedisThrottle, which they share"
)
