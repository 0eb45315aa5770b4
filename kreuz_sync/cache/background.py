"""Work that nobody waits for: stored answers renewed while stale ones are given out."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

import requests

from kreuz_sync.clock import Clock

WORKERS = 4
MOST_WAITING = 256  # jobs; what is beyond them is renewed at its next use, or by whoever needs it fresh
JOIN_S = 1.0  # a renewal that takes longer may be waiting for a silent server, and nobody waits for it

_log = logging.getLogger("kreuz_sync.cache")


class _Job:
    __slots__ = ("context", "key", "work")

    def __init__(self, key: str, work: Callable[[], object]) -> None:
        self.key = key
        self.work = work
        self.context: Context = copy_context()  # so that what the work does belongs to whoever caused it


class Background:
    """A few threads that come when there is work and go when there is none.

    They are daemons: a program that ends does not wait for them, one that closes its session does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.after_fork()

    def after_fork(self) -> None:
        """In a child, where the threads are not."""
        self._lock = threading.Lock()  # guards all of these
        self._waiting: deque[_Job] = deque()
        self._keys: set[str] = set()
        self._workers: set[threading.Thread] = set()

    def start(self, key: str, work: Callable[[], object]) -> bool:
        """Do `work` soon, unless work for `key` is under way or too much is; whether it will be done."""
        if sys.is_finalizing():  # a thread that is started now never says that it has begun
            return False
        with self._lock:
            if key in self._keys or len(self._waiting) >= MOST_WAITING:
                return False
            self._keys.add(key)
            self._waiting.append(_Job(key, work))
            if len(self._workers) >= WORKERS:
                return True
            worker = threading.Thread(target=self._run, name="kreuz_sync cache", daemon=True)
            try:
                worker.start()  # under the lock, so that nobody joins a thread that has not begun
            except RuntimeError:  # no more threads, or the interpreter ends
                if not self._workers:
                    self._drop_waiting()
                return bool(self._workers)
            self._workers.add(worker)
        return True

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._do(job)

    def _do(self, job: _Job) -> None:
        try:
            job.context.run(job.work)
        except requests.RequestException as error:
            _tell(logging.DEBUG, "a stored answer could not be renewed in the background: %s%s", error, "")
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            _tell(logging.WARNING, "renewing a stored answer in the background failed: %s\n%s", error, where)
        finally:
            with self._lock:
                self._keys.discard(job.key)

    def _next(self) -> _Job | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._workers.discard(threading.current_thread())
            return None

    def cancel(self) -> None:
        """Forget the work that has not begun."""
        with self._lock:
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        self._keys.difference_update(job.key for job in self._waiting)
        self._waiting.clear()

    def join(self, seconds: float = JOIN_S) -> None:
        """Wait at most so long for the work that has begun; the second time not for the same again."""
        with self._lock:
            workers = list(self._workers)
        until = self._clock.monotonic() + seconds
        for worker in workers:
            if worker is not threading.current_thread():
                worker.join(max(0.0, until - self._clock.monotonic()))
        with self._lock:
            self._workers.difference_update(workers)


def _tell(level: int, text: str, error: Exception, where: str) -> None:
    """The error's own text is left out: it may be anybody's, and quote what was asked for."""
    kind = type(error).__name__
    _log.log(level, text, kind, where, extra={"event": "refresh_failed", "error_type": kind})
