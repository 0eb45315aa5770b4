"""Time: the only place that reads a clock or sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .errors import SessionClosed


class Clock:
    """The machine's clocks. Tests pass one of their own that never waits."""

    def monotonic(self) -> float:
        """Seconds that never run backwards: deadlines, pace and windows count in these."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix seconds: HTTP dates are compared with these."""
        return time.time()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait, with `condition` held, until it is notified or `seconds` have passed (None: no bound)."""
        condition.wait(seconds)


SYSTEM_CLOCK = Clock()


def monotonic_of(clock: Clock) -> Callable[[], float]:
    """`clock.monotonic`, for those who ask often: the machine's own clock without a step in between."""
    return time.monotonic if type(clock) is Clock else clock.monotonic


class Pause:
    """Sleeps that `wake` cuts short: what a layer waits with when it waits for time alone.

    The condition guards `_woken`, the number of times `wake` was called. It is let go
    while a thread waits.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._condition = threading.Condition()
        self._woken = 0

    def sleep(self, seconds: float) -> None:
        """Wait `seconds`; raise SessionClosed as soon as `wake` is called."""
        until = self.clock.monotonic() + seconds
        with self._condition:
            woken = self._woken
            while (left := until - self.clock.monotonic()) > 0:
                # A longer wait than this the system refuses; the loop goes on with the rest.
                self.clock.wait(self._condition, min(left, threading.TIMEOUT_MAX))
                if self._woken != woken:
                    raise SessionClosed("the session was closed while this call waited")

    def wake(self) -> None:
        """End every sleep now under way. Later ones are not affected."""
        with self._condition:
            self._woken += 1
            self._condition.notify_all()
