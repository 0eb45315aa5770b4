"""Counters in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf, nextafter
from typing import Any

from kreuz_sync import checks, fork
from kreuz_sync.clock import SYSTEM_CLOCK, Clock, monotonic_of
from kreuz_sync.settings import Single

from .expiry import Expiry
from .failures import StoreUnavailable
from .store import CounterStore
from .usage import Usage, time_until

MAX_KEYS = 1_000_000
NEVER = -inf  # when the window of a key ended that has none
# Keys looked at for dropping per hit. A hit begins one window at most, so more than one suffices
# to keep up with any load; and no hit pays for more than these.
SWEPT_PER_HIT = 4
SWEPT_WHEN_FULL = 256

_usage = tuple.__new__  # what Usage(...) comes to, in half the time


class _Unbroken:
    """The time of a clock that may be set back: then it goes on from where it was, or no window would end for so long.

    For one thread at a time.
    """

    __slots__ = ("_latest", "_now", "_set_back")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._latest = NEVER
        self._set_back = 0.0  # seconds, in all

    def __call__(self) -> float:
        now = self._now() + self._set_back
        if now < self._latest:
            self._set_back += self._latest - now
            now = self._latest
        self._latest = now
        return now


class MemoryStore(Single, CounterStore):
    """Counts in this process, for all of its threads.

    Several worker processes have several of these: together they let through as many times the
    limit as they are. Use a shared store for those.

    max_keys: how many keys it holds at most. When it is full, the first hit of a new key raises
    StoreUnavailable (the rate limit's `on_store_failure` says what that means), and the keys that
    it holds are counted as before: whoever could push a counter out by coming under many keys
    would be free of it. A key is dropped within 1/16 of its window after that has ended, by the
    hits that come then, a few each; there is no timer, and no hit waits for a sweep over all.
    clock: where time comes from; where it is set back, time goes on from where it was.

    A copy is the same store, since counters are shared by nature. A pickle carries the settings,
    and starts without counters. The child of a fork goes on from the parent's counters, apart
    from it.
    """

    max_keys: int

    def __init__(self, *, max_keys: int = MAX_KEYS, clock: Clock = SYSTEM_CLOCK) -> None:
        self.max_keys = checks.count("max_keys", max_keys, least=1)
        now = monotonic_of(checks.clock("clock", clock))
        self._now = now if type(clock) is Clock else _Unbroken(now)  # the machine's cannot be set
        self._lock = threading.Lock()  # guards the three that follow, and asking the clock
        # Two plain tables, and no object for each key that holds both: the garbage collector would
        # have to look at every one of a million, and all threads would wait for it.
        self._ends: dict[str, float] = {}
        self._hits: dict[str, int] = {}
        self._expiry = Expiry()
        fork.renew_in_child(self)

    def increment(self, key: str, window: float) -> Usage:
        """As every store. A count has no most: Python's whole numbers do not overflow."""
        with self._lock:
            now = self._now()  # under the lock: a later hit is never told an earlier time
            end = self._ends.get(key, NEVER)
            if now < end:
                hits = self._hits[key] = self._hits[key] + 1
            else:
                end, hits = self._begin(key, window, now), 1
            if self._expiry.next_due <= now:
                self._sweep(now, SWEPT_PER_HIT)
        left = end - now
        if now + left < end:
            left = time_until(end, now)
        return _usage(Usage, (hits, left))

    def _begin(self, key: str, window: float, now: float) -> float:
        end = now + window
        if window < end - now < inf:  # rounded up: the time left must not be more than the window
            end = nextafter(end, now)
        if not now < end < inf:
            raise StoreUnavailable("memory_store_error", "this clock cannot count such a window", "invalid_window")
        if key not in self._ends and len(self._ends) >= self.max_keys:
            self._make_room(now)
        # In this order: a child forked in between has a key too many in a batch, and no counter that
        # stays for ever or has an end only.
        self._expiry.add(key, window, now)
        self._hits[key] = 1
        self._ends[key] = end
        return end

    def _make_room(self, now: float) -> None:
        if self._expiry.next_due <= now:
            self._sweep(now, SWEPT_WHEN_FULL)
        if len(self._ends) >= self.max_keys:
            raise StoreUnavailable("memory_store_error", f"all {self.max_keys} counters are taken", "full")

    def _sweep(self, now: float, most: int) -> None:
        for _ in range(most):
            if self._expiry.next_due > now:
                return
            key = self._expiry.pop()
            # A key whose window is under way has begun it since, and stands in a later batch too.
            if key is not None and self._ends.get(key, inf) <= now:
                del self._ends[key]
                del self._hits[key]

    def __len__(self) -> int:
        """How many keys it holds, those included that it has not dropped yet."""
        return len(self._ends)

    def after_fork(self) -> None:
        """In a child the parent's lock may be held by a thread that is not there."""
        self._lock = threading.Lock()

    # --- copies -------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"max_keys": self.max_keys}

    def __setstate__(self, state: dict[str, Any]) -> None:
        MemoryStore.__init__(self, **state)

    def __repr__(self) -> str:
        return f"MemoryStore(max_keys={self.max_keys})"
