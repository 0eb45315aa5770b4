"""What robots.txt files ask of a host's pace, told to the limiter that keeps it."""

from __future__ import annotations

import threading
import weakref

from kreuz_sync.throttle import RateLimiter, Throttle
from kreuz_sync.urls import host_of

from .life import Known


class Pace:
    """The delays that origins ask for, as one limiter has them.

    Several origins may share a host's line (http and https; all that a throttle's `key` puts
    together): the largest delay counts, so what one of them says never shortens another's.
    """

    def __init__(self, limiter: RateLimiter, most: int) -> None:
        self.limiter = limiter
        self._most = most
        self.after_fork()

    def after_fork(self) -> None:
        """In a child: a lock of its own. What the limiter was told it still knows."""
        self._lock = threading.Lock()  # guards both
        # By origin; the oldest go first. A limiter is told anew when it is met again.
        self._told: dict[str, Known] = getattr(self, "_told", {})
        self._asked: dict[str, dict[str, float]] = getattr(self, "_asked", {})  # by line, by origin; none of 0

    def knows(self, origin: str, known: Known) -> bool:
        """Whether the limiter was told what `known` says."""
        return self._told.get(origin) is known

    def tell(self, origin: str, url: str, known: Known, delay: float | None) -> None:
        """Tell the limiter that the file of `url`'s origin asks for `delay` seconds; None if it asks for nothing.

        A limiter that was told of no delay for a host is not told that there is none either.
        """
        line = self._line(url)
        with self._lock:
            changes = bool(delay) or origin in self._asked.get(line, ())
            self._note(origin, line, delay or 0.0)
            seconds = self._largest(line)
        # Whatever a limiter does is done without a lock. So another thread may be told in between.
        while changes:
            self.limiter.set_crawl_delay(line, seconds)
            with self._lock:
                now = self._largest(line)
            changes, seconds = now != seconds, now
        with self._lock:
            while len(self._told) >= self._most:
                self._told.pop(next(iter(self._told)))
            self._told[origin] = known

    def _line(self, url: str) -> str:
        return self.limiter.line_of(url) if isinstance(self.limiter, Throttle) else host_of(url)

    def _note(self, origin: str, line: str, delay: float) -> None:
        asked = self._asked.setdefault(line, {})
        asked[origin] = delay
        if not delay:
            del asked[origin]
        if not asked:
            del self._asked[line]
        elif len(self._asked) > self._most:
            self._asked.pop(next(iter(self._asked)))

    def _largest(self, line: str) -> float:
        return max(self._asked.get(line, {}).values(), default=0.0)


class Paces:
    """The `Pace` of each limiter that a setting meets; kept as long as the limiter is used with it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()  # guards _paces
        self._paces: list[weakref.ref[Pace]] = []

    def of(self, limiter: RateLimiter) -> Pace:
        """The one of `limiter`."""
        with self._lock:
            alive = [pace for one in self._paces if (pace := one()) is not None]
            found = next((pace for pace in alive if pace.limiter is limiter), None)
            if found is None:
                found = Pace(limiter, self._most)
                alive.append(found)
            self._paces = list(map(weakref.ref, alive))
        return found

    def after_fork(self) -> None:
        """In a child: new locks."""
        self._lock = threading.Lock()
        for one in self._paces:
            pace = one()
            if pace is not None:
                pace.after_fork()
