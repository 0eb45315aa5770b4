"""The retry budget: how many retries a host gets, so that an outage is not made worse by us."""

from __future__ import annotations

import threading
from typing import Any

from kreuz_sync import checks, fork
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Setting, Single
from kreuz_sync.urls import host_of

from .backoff import Bucket, refill

# Hosts whose buckets are kept: the last that needed a retry. One that is forgotten starts full.
HOSTS_KEPT = 4096


class RetryBudget(Single, Setting):
    """A share of retries for each host.

    Where every call of a failing host is repeated three times, the host gets four times its
    usual load just when it cannot bear it. So each host has a bucket of `burst` tokens, full
    at first; a call adds `share` of a token, a second adds `per_second`, and every retry takes
    one. When the bucket is empty the outcome is handed to the caller as it is.

    With the default a host may have 100 retries at once, and in a long outage one for every
    five calls and one a second on top. One budget given to several `Retry` is shared by them.
    A copy is the same budget; a pickle carries the settings, and starts with full buckets.

    Raises TypeError or ValueError for values that are negative or not finite.
    """

    fields = ("share", "burst", "per_second")
    share: float
    burst: float
    per_second: float
    _clock: Clock
    _ledger: _Ledger

    def __init__(
        self, share: float = 0.2, *, burst: float = 100.0, per_second: float = 1.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._fix(
            share=checks.number("share", share),
            burst=checks.number("burst", burst),
            per_second=checks.number("per_second", per_second),
            _clock=checks.clock("clock", clock),
            _ledger=_Ledger(),
        )

    def earn(self, url: str) -> None:
        """Count a call to the host of `url`."""
        buckets = self._ledger.buckets
        if not buckets:  # most of the time: nothing was ever repeated
            return
        host = host_of(url)
        with self._ledger.lock:
            bucket = buckets.get(host)
            if bucket is None:
                return
            bucket = self._refilled(bucket, self.share)
            if bucket.tokens >= self.burst:
                del buckets[host]  # full is the same as unknown
            else:
                buckets[host] = bucket

    def spend(self, url: str) -> bool:
        """Take a token for a retry at the host of `url`; False if there is none."""
        host = host_of(url)
        buckets = self._ledger.buckets
        with self._ledger.lock:
            bucket = self._refilled(buckets.pop(host, Bucket(self.burst, self._clock.monotonic())))
            allowed = bucket.tokens >= 1.0
            # Taken out and put in again: the host that spent longest ago stands first.
            buckets[host] = bucket._replace(tokens=bucket.tokens - 1.0) if allowed else bucket
            if len(buckets) > HOSTS_KEPT:
                del buckets[next(iter(buckets))]
        return allowed

    def _refilled(self, bucket: Bucket, earned: float = 0.0) -> Bucket:
        now = self._clock.monotonic()
        return refill(bucket, now=now, per_second=self.per_second, most=self.burst, earned=earned)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.share, self.burst, self.per_second, self._clock)


class _Ledger:
    """The buckets of the hosts that lately needed a retry. `lock` guards `buckets`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.buckets: dict[str, Bucket] = {}
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        self.lock = threading.Lock()  # a thread that is not here may hold the parent's


def _rebuild(kind: type[RetryBudget], share: float, burst: float, per_second: float, clock: Clock) -> RetryBudget:
    return kind(share, burst=burst, per_second=per_second, clock=clock)
