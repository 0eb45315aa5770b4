"""What the threads of one `fetch_all` share: the schedule, who works and who waits, and the results.

    whoever reads the list     puts jobs into the schedule
    workers                    take a job whose host is due, fetch it, and add its results
    whoever iterates           takes the results

There is no thread that hands out. A worker with nothing to do keeps watch for the next host to be due, if
nobody does so yet; when it leaves with a job, it wakes another one to follow it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from kreuz_sync import fork
from kreuz_sync.clock import Clock
from kreuz_sync.errors import SessionClosed

from .bell import Bell
from .result import Done, Result
from .schedule import Job, Schedule

if TYPE_CHECKING:
    from .worker import Worker

TOLERANCE_S = 0.001  # by which a watch may be late before somebody is woken for that


class Crew:
    """One run.

    `_lock` guards the schedule and all that is counted here, and is held for arithmetic alone. Inside it
    the lock of one of the throttle's hosts may be taken, and no other. `stop` needs none.

    workers: how many work at once; those who wait for a turn, or before a retry, do not count. most: how
    many there may be with these. unread: how many results may wait to be taken before no more jobs are
    handed out. ordered: whether they are taken in the order of the inputs. hire: puts another worker to
    work; False if none is to be had.
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        clock: Clock,
        workers: int,
        most: int,
        unread: int,
        ordered: bool,
        hire: Callable[[], bool],
    ) -> None:
        self.schedule = schedule
        self.clock = clock
        self.results: deque[Result] = deque()
        self.listener = Bell()  # of whoever iterates
        self.stopped = self.closed = False
        self.failure: BaseException | None = None
        self.workers: set[Worker] = set()
        self.given = 0  # results taken; written only by whoever iterates
        self.finished = 0  # results that there have been
        self._workers, self._most, self._unread = workers, most, unread
        self._hire = hire
        self._queued: dict[int, Job] | None = {} if ordered else None  # by index
        self._lock = threading.Lock()
        self._busy = 0  # at work, and not waiting
        self._called = 0  # were woken or hired, and have not looked yet
        self._idle: list[Worker] = []
        self._watch: Worker | None = None  # the idle one who wakes by itself, at this moment
        self._watch_until = 0.0
        self._held_back = False  # a job was not handed out since too many results wait
        fork.renew_in_child(self)

    # --- jobs and results ---------------------------------------------------------------

    def put(self, job: Job, host: str) -> None:
        """Add a job, and have somebody look at it."""
        with self._lock:
            if self.schedule.put(job, host, self.clock.monotonic()) and self._queued is not None:
                self._queued[job.index] = job
            wanted = self._wanted()
        self._call(wanted)

    def next(self, worker: Worker) -> Job | None:
        """The next job for `worker`, once there is one; None when the run is over.

        What the one that it had came to is taken from it: while it waits it keeps no response alive.
        """
        while True:
            before = worker.job
            with self._lock:
                self._came_to_look(worker)
                if before is not None and worker.done is not None:
                    self._finish(before, worker.done)
                    worker.done = None
                worker.job = job = None if self.stopped else self._take()
                seconds = None if job is not None else self._rest(worker)
                wanted = self._wanted()
            self._call(wanted)
            if before is not None:
                self.listener.ring()
            if job is not None or self.stopped:
                return job
            self.clock.wait(cast(threading.Condition, worker.bell), seconds)

    def finish(self, job: Job, done: Done, learn: Callable[[], object] | None = None) -> None:
        """A job has come to this; for those who take no other by themselves. learn: what to tell the paces first."""
        with self._lock:
            if learn is not None:
                learn()
            self._finish(job, done)
            wanted = self._wanted()
        self._call(wanted)
        self.listener.ring()

    def add(self, result: Result) -> None:
        """Add the result of an input that was no job."""
        with self._lock:
            self._add([result])
        self.listener.ring()

    def look(self) -> None:
        """After results were taken: hand out what was held back."""
        if self._held_back:
            with self._lock:
                self._held_back = False
                wanted = self._wanted()
            self._call(wanted)

    def _finish(self, job: Job, done: Done) -> None:
        self._busy -= 1
        self.schedule.finish(job, self.clock.monotonic())  # from now on no other input joins it
        self._add([Result(source, index, *done) for index, source in job.inputs])

    def _add(self, results: list[Result]) -> None:
        self.finished += len(results)
        self.results.extend(results)

    def _take(self) -> Job | None:
        if self._busy >= self._workers:
            return None
        only = None
        if self._is_full():
            only = self._awaited()
            if only is None:
                return None
        job = self.schedule.take(self.clock.monotonic(), only)
        if job is not None:
            self._busy += 1
            if self._queued is not None:
                del self._queued[job.index]
        return job

    def _seconds(self) -> float | None:
        """Seconds until a job may be handed out; None if that hangs on something else than time."""
        if self._busy >= self._workers:
            return None
        only = None
        if self._is_full():
            only = self._awaited()
            if only is None:
                return None
        return self.schedule.seconds(self.clock.monotonic(), only)

    def _is_full(self) -> bool:
        # First said and then looked at, and `look` does it the other way round: so one of the two sees the other.
        self._held_back = True
        self._held_back = self.finished - self.given >= self._unread
        return self._held_back

    def _awaited(self) -> Job | None:
        """The job that those results wait for, if their order counts and nobody has it yet."""
        return None if self._queued is None else self._queued.get(self.given)

    # --- who works ----------------------------------------------------------------------

    def pauses(self) -> None:
        """A worker begins to wait for a moment: another one may work meanwhile."""
        with self._lock:
            self._busy -= 1
            wanted = self._wanted()
        self._call(wanted)

    def resumes(self) -> None:
        """It goes on, although there may be more at work now than there should be."""
        with self._lock:
            self._busy += 1

    def had_turn(self, job: Job) -> None:
        """A job has had its turn at its host."""
        with self._lock:
            self.schedule.had_turn(job, self.clock.monotonic())
            wanted = self._wanted()
        self._call(wanted)

    def _came_to_look(self, worker: Worker) -> None:
        if worker.called:
            worker.called = False
            self._called -= 1
        elif worker in self._idle:  # its time was over
            self._idle.remove(worker)
        if self._watch is worker:
            self._watch = None

    def _rest(self, worker: Worker) -> float | None:
        """Note that `worker` has nothing to do. The seconds after which it looks again; None if it is to be called."""
        if self.stopped:
            return None
        self._idle.append(worker)
        seconds = self._seconds() if self._watch is None else None
        if seconds is not None:
            self._watch, self._watch_until = worker, self.clock.monotonic() + seconds
        return seconds

    def _wanted(self) -> Worker | bool:
        """Who has to look for a job: one of the idle, True for a new one, False for nobody."""
        if self.stopped or self._busy + self._called >= self._workers:
            return False
        seconds = self._seconds()
        if seconds is None:
            return False
        if seconds > 0:
            if self._called:
                return False  # whoever that is will keep watch
            if self._watch is not None:
                is_early_enough = self._watch_until <= self.clock.monotonic() + seconds + TOLERANCE_S
                return False if is_early_enough else self._called_from_idle(self._watch)
        elif self._called >= max(1, self.schedule.ready):  # a host may have become ready that is not counted yet
            return False
        if self._idle:
            return self._called_from_idle(next((one for one in self._idle if one is not self._watch), self._idle[0]))
        if len(self.workers) + self._called < self._most:
            self._called += 1
            return True
        return False

    def _called_from_idle(self, worker: Worker) -> Worker:
        self._idle.remove(worker)
        if self._watch is worker:
            self._watch = None
        worker.called = True
        self._called += 1
        return worker

    def _call(self, wanted: Worker | bool) -> None:
        """Wake or hire who is wanted. To be called with no lock held."""
        if wanted is True:
            if not self._hire():
                with self._lock:
                    self._called -= 1
        elif wanted is not False:
            wanted.bell.ring()

    # --- the end ------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what has ended the run."""
        if self.failure is not None:
            raise self.failure
        if self.closed:
            raise SessionClosed("the session was closed while this fetch_all was under way")

    def fail(self, error: BaseException) -> None:
        """End the run for an error that is nobody's result."""
        self.failure = self.failure or error
        self.stop()

    def stop(self, *, closed: bool = False) -> None:
        """Hand out nothing more, and wake everybody. closed: since the session is.

        It needs no lock, and may be called in a signal handler or a finalizer, and again.
        """
        self.closed = self.closed or closed
        self.stopped = True
        for worker in list(self.workers):
            worker.halt()
        self.listener.ring()

    def after_fork(self) -> None:
        """In the child there are no workers."""
        self._lock = threading.Lock()
        self.workers = set()
        self.failure = RuntimeError("this fetch_all was begun before a fork, and its workers are in the parent")
        self.stopped = True
