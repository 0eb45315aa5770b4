"""What a client makes of all that an answer says about pace. Pure.

In this order: a delay that the answer orders; a quota that is used up, until its reset; otherwise
what is left of the quota that is closest to its end. draft-ietf-httpapi-ratelimit-headers-11,
section 7; RFC 9110, section 10.2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kreuz_sync.fields import http_date, retry_after, text

from .dialects import Quota, quotas
from .resets import number

TOO_MANY = 429
# With these, Retry-After is an order. GitHub refuses with 403 for its secondary limits.
REFUSED = frozenset({403, 413, TOO_MANY, 503})
REDIRECTED = frozenset({301, 302, 303, 307, 308})
IN_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")  # Azure
ORDERS = ("retry-after", *IN_MILLISECONDS)

LONGEST_DATE = 40  # characters
_POSITIVE = re.compile(r"0*[1-9]")


class Declared(NamedTuple):
    """What one answer says about pace.

    pause: seconds to send nothing; 0.0 for none, and uncut: the host may name any number. bucket: the
    part of the host that this is for, in the server's own words; "" for all of it. policy: the name
    of the quota, "" if it has none; a later answer that shortens a pause must be of the same
    `source` and `policy`. remaining, reset: requests left, and seconds until more are granted, of the
    quota that asks for the slowest pace; None if not told. source: the field that says so, in lower case.
    """

    pause: float
    bucket: str
    policy: str
    remaining: float | None
    reset: float | None
    source: str

    @property
    def interval(self) -> float:
        """Seconds between two requests that spread what is left over the time until the reset; 0.0 if unknown."""
        return _interval(self.remaining, self.reset)

    @property
    def is_order(self) -> bool:
        """Whether the pause is one that the server orders, as Retry-After does, and not a quota's reset."""
        return self.source in ORDERS


def verdict(fields: Mapping[str, Any], status: int, *, now: float, host: str = "") -> Declared | None:
    """What an answer of `status` with `fields`, whose names are in lower case, says about pace.

    None if it says nothing. now: the wall clock at receipt, Unix seconds.
    """
    told: list[Quota] = []
    if not _POSITIVE.match(text(fields, "age").strip()):  # what a cache kept says nothing of now (section 7.3)
        told = quotas(fields, server_now=_server_now(fields, now), host=host)
    empty = [quota for quota in told if quota.remaining is not None and quota.remaining < 1]
    delay, source = _ordered_delay(fields, now)
    if delay is not None and _is_order(status, told, empty):
        return _declared(Quota(0, delay, source, bucket=_common_bucket(empty)), told)
    # 429 says itself that nothing is left.
    spent = [*empty, *(quota for quota in told if status == TOO_MANY and quota.remaining is None)]
    spent = [quota for quota in spent if quota.reset is not None]
    if spent:
        last = max(spent, key=lambda quota: quota.reset or 0.0)
        return _declared(last._replace(bucket=_common_bucket(spent)), told)
    return _declared(None, told)


def _is_order(status: int, told: Iterable[Quota], empty: list[Quota]) -> bool:
    """Whether a Retry-After is one. Some servers put it on every answer, and mean the next reset."""
    if status in REFUSED or empty:
        return True
    return status in REDIRECTED and all(quota.remaining is None for quota in told)


def _ordered_delay(fields: Mapping[str, Any], now: float) -> tuple[float | None, str]:
    """Retry-After in seconds, and the field it is from. One in milliseconds is finer, and comes first."""
    for name in IN_MILLISECONDS:
        delay_ms = number(text(fields, name)) if name in fields else None
        if delay_ms is not None:
            return delay_ms / 1000, name
    if "retry-after" not in fields:
        return None, ""
    own = {"Retry-After": text(fields, "retry-after"), "Date": text(fields, "date")}
    return retry_after(own, now=now), "retry-after"


def _declared(cause: Quota | None, told: Iterable[Quota]) -> Declared | None:
    """The pause until the reset of `cause` (None: no pause), with what is left of the tightest quota."""
    left = [quota for quota in told if quota.counts_requests and quota.remaining is not None]
    tightest = max(left, key=lambda quota: _interval(quota.remaining, quota.reset), default=None)
    said = cause or tightest
    if said is None:
        return None
    return Declared(
        pause=0.0 if cause is None else cause.reset or 0.0,
        bucket=said.bucket,
        policy=said.policy,
        remaining=None if tightest is None else tightest.remaining,
        reset=None if tightest is None else tightest.reset,
        source=said.source,
    )


def _common_bucket(of: list[Quota]) -> str:
    """The bucket that all name; "" where they differ, since the host as a whole is then the least that is safe."""
    buckets = {quota.bucket for quota in of}
    return buckets.pop() if len(buckets) == 1 else ""


def _interval(remaining: float | None, reset: float | None) -> float:
    return 0.0 if remaining is None or reset is None else reset / max(1.0, remaining)


def _server_now(fields: Mapping[str, Any], now: float) -> float:
    """The answer's own Date where it has one: a moment by the server's clock is compared with that clock."""
    value = text(fields, "date").strip(" \t")
    date = http_date(value, near=now) if len(value) <= LONGEST_DATE else None
    return now if date is None else date
