"""The parts of a host that have quotas of their own, and those who wait for one of them.

Servers call such a part a bucket, a resource or a partition. When one is used up, only requests
that belong to it wait, in a line of their own: they hold up nobody who wants another part of the host.
All of it is guarded by the host's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from .gate import ROUNDING_S, Gate
from .report import BucketReport
from .routes import Route, Routes, route
from .waiter import Line, Waiter

MOST = 64  # buckets of one host: servers choose the names


class Bucket(Line, Gate):
    """One bucket's gate, and the line before it."""

    __slots__ = ("name", "queue")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.queue: deque[Waiter] | None = None

    def holds(self, now: float) -> bool:
        """Whether one who comes now has to wait here."""
        return self.queue is not None or not self.is_open(now)

    def is_idle(self, now: float) -> bool:
        """Whether nothing would be lost with it."""
        return not self.holds(now) and not self.cut and (self.told is None or now >= self.told.until)

    def turn_of_next(self, apart: float) -> float:
        """The turn of one that came now, where the host's turns are `apart` seconds apart."""
        return self.behind(self.opens(), len(self.queue or ()), apart)

    def report(self, now: float) -> BucketReport:
        remaining, reset = (None, None) if self.told is None else self.told.left(now)
        paused = max(0.0, self.paused_until - now)
        return BucketReport(
            name=self.name,
            paused=paused,
            pause_source=self.told.source if paused and self.told is not None else "",
            remaining=remaining,
            reset=reset,
            waiting=len(self.queue or ()),
        )


class Buckets:
    """The buckets that one host has named.

    by_name: each by its name, in the server's words. routes: which requests belong to which. aside:
    those who wait by themselves, for a moment of their own.
    """

    __slots__ = ("aside", "by_name", "routes")

    def __init__(self) -> None:
        self.by_name: dict[str, Bucket] = {}
        self.routes = Routes()
        self.aside: set[Waiter] = set()

    # --- which --------------------------------------------------------------------------

    def find(self, ask: Any) -> Bucket | None:
        """The bucket that a request belongs to, None if it is not known, or none of its own.

        ask: the request or its route, or the name of its bucket where its caller knows that ("" for none).
        """
        if not self.by_name:
            return None
        way = way_of(ask)
        name = way if isinstance(way, str) else self.routes.bucket_of(way)
        return None if name is None else self.by_name.get(name)

    def find_for(self, waiter: Waiter) -> Bucket | None:
        """The same for one who waits, and may be asked for again."""
        waiter.ask = way_of(waiter.ask)
        return self.find(waiter.ask)

    def named(self, name: str, now: float) -> Bucket | None:
        """The bucket of this name, new where there is none; None if there are too many that are in use."""
        bucket = self.by_name.get(name)
        if bucket is None:
            if len(self.by_name) >= MOST:
                idle = next((one for one in self.by_name.values() if one.is_idle(now)), None)
                if idle is None:
                    return None
                del self.by_name[idle.name]
            bucket = self.by_name[name] = Bucket(name)
        return bucket

    def learn(self, ask: Any, name: str) -> None:
        """Note that a request was counted in the bucket `name`."""
        way = way_of(ask)
        if not isinstance(way, str):
            self.routes.learn(way, name)

    # --- who waits ----------------------------------------------------------------------

    def waiting(self) -> int:
        return len(self.aside) + sum(len(bucket.queue or ()) for bucket in list(self.by_name.values()))

    def is_idle(self, now: float) -> bool:
        """Whether nothing would be lost with all of it."""
        return not self.aside and all(bucket.is_idle(now) for bucket in self.by_name.values())

    def take_back(self, line: Line, now: float) -> None:
        """Of those in the host's line, put back into theirs the ones whose bucket is paused now."""
        if line.queue is None or all(now >= bucket.paused_until for bucket in self.by_name.values()):
            return
        staying: deque[Waiter] = deque()
        for waiter in line.queue:
            bucket = None if waiter.is_probe else self.find_for(waiter)
            if bucket is not None and now < bucket.paused_until - ROUNDING_S:
                bucket.line_up(waiter)
            else:
                staying.append(waiter)
        line.queue = staying or None  # last: an interrupt before that leaves nobody in no line

    def reconsider(self, turn_of: Callable[[Bucket, int], float], next_turn: float, now: float) -> None:
        """After a change of pace: refuse those whose turn now comes too late, and have the first ones look again."""
        for bucket in self.by_name.values():
            bucket.refuse_late(lambda place, bucket=bucket: turn_of(bucket, place), now)  # type: ignore[misc]
            bucket.ring_first()
        for waiter in self.aside:
            turn = max(next_turn, waiter.not_before)
            if waiter.is_too_late(turn):
                waiter.refused = turn - now
                waiter.ring()

    def leave(self, waiter: Waiter) -> None:
        """Take `waiter` out, wherever it is."""
        self.aside.discard(waiter)
        for bucket in self.by_name.values():
            if bucket.queue is not None and waiter in bucket.queue:
                bucket.remove(waiter)

    def forget_threads(self) -> None:
        """In the child of a fork nobody waits."""
        self.aside = set()
        for bucket in self.by_name.values():
            bucket.queue = None


def way_of(ask: Any) -> Route | str:
    """The route of a request; what is one already, or a name, as it is."""
    if ask is None or isinstance(ask, (str, tuple)):
        return ask or ""
    return route(ask.method or "", ask.url or "")
