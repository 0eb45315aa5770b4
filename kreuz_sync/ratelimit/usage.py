"""What a counter says, and what a policy makes of it. Pure: no clock, no store."""

from __future__ import annotations

import math
from typing import NamedTuple


class Usage(NamedTuple):
    """What a store answers to one increment.

    used: how often the key was counted in its window, this time included, so 1 or more.
    reset_after: seconds until that window ends.
    """

    used: int
    reset_after: float


class PolicyUsage(NamedTuple):
    """How far one policy is used up for one key.

    name: the policy's. limit: requests that a window has room for. window: its length in seconds.
    used: requests counted in this window, this one included, rejected ones too. reset_after:
    seconds until it ends.
    """

    name: str
    limit: int
    window: float
    used: int
    reset_after: float

    @property
    def remaining(self) -> int:
        """Requests that this window still has room for, 0 or more."""
        return max(0, self.limit - self.used)

    @property
    def is_rate_limited(self) -> bool:
        """Whether this request found no room."""
        return self.used > self.limit


class RateLimitContext(NamedTuple):
    """What an allowed request has met: one `PolicyUsage` for each rate limit, outermost first."""

    policies: tuple[PolicyUsage, ...] = ()

    def appended(self, policy: PolicyUsage) -> RateLimitContext:
        """A context with one more, of a rate limit further in."""
        return RateLimitContext((*self.policies, policy))


def time_until(end: float, now: float) -> float:
    """Seconds from `now` to `end`, the least that are enough: `now` and they make no less than `end`.

    The difference of two floats is rounded, down too, and who waited just so long would be early.
    """
    left = end - now
    while now + left < end:  # once or twice
        left = math.nextafter(left, math.inf)
    return left


def whole_seconds(seconds: float) -> int:
    """A duration as header fields have it: seconds rounded up, at least 1.

    Never down: who came back then would come early. `math.ceil` of the float itself is exact,
    while a product such as `seconds * 1000` may have been rounded down before the ceiling.

    >>> whole_seconds(1.6), whole_seconds(2.0), whole_seconds(0.0)
    (2, 2, 1)
    """
    return max(1, math.ceil(seconds))
