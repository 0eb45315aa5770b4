"""Threads that really wait, on a clock that only a test moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .fakes import FakeClock

GUARD_S = 10.0  # for what would otherwise hang


def eventually(condition: Callable[[], object]) -> None:
    """Wait until `condition()` holds; fail if it does not within GUARD_S."""
    end = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.001)


class HeldClock(FakeClock):
    """A FakeClock on which threads wait until `advance` has brought their moment.

    asleep: how many wait with an end now.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: dict[Any, float] = {}

    @property
    def asleep(self) -> int:
        with self._lock:
            return len(self._sleepers)

    def wait(self, condition: Any, seconds: float | None) -> None:
        if seconds is not None:
            with self._lock:
                self.waits.append(seconds)
                self._sleepers[condition] = self._monotonic + seconds
        assert condition.wait(GUARD_S), "nobody woke a waiter"
        with self._lock:
            self._sleepers.pop(condition, None)

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        now = self.monotonic()
        with self._lock:
            due = [condition for condition, end in self._sleepers.items() if end <= now + 1e-9]
            for condition in due:
                del self._sleepers[condition]
        for condition in due:
            condition.ring()


class Worker(threading.Thread):
    """Runs `task` on a thread. `outcome` gives what it returned, or raises what it raised."""

    def __init__(self, task: Callable[..., Any], *args: Any, **options: Any) -> None:
        super().__init__(daemon=True)
        self._task = lambda: task(*args, **options)
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._task()
        except BaseException as error:
            self._error = error

    def outcome(self) -> Any:
        self.join(GUARD_S)
        assert not self.is_alive(), "the thread hangs"
        if self._error is not None:
            raise self._error
        return self._result
