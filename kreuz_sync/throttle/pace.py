"""One host's pace: when its next request may start, and how answers change that.

Pure arithmetic. Moments are seconds of one monotonic clock and come in as arguments; so
does everything else. A million of these may be alive, so they are small.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from .gate import ROUNDING_S, Gate

SUCCESSES = 5  # in a row halve a backoff, as in the reference
UNREACHABLE = 5  # connections that failed in a row double the delay
NEGLIGIBLE_S = 0.01  # a backoff halved to this is none: above a delay of 0, halving would not end
FORGET_S = 24 * 3600.0  # as long as a robots.txt may be believed (RFC 9309, section 2.4)

# A thread that is woken late may make good this share of the delay, and at most so many
# seconds. All of it, and a stalled process would send a burst; none, and every late wake-up
# would slow the host down for ever.
CATCH_UP = 0.1
CATCH_UP_S = 0.05

TOO_MANY = 429
# Statuses that say nothing of how hard the host is pressed: the page is just not there.
NEUTRAL = frozenset({404, 410})


class PaceRules(NamedTuple):
    """What is configured for one host. All in seconds but `concurrency` and `smooth`; None is no limit."""

    delay: float = 0.2
    max_delay: float = 60.0
    first_backoff: float = 1.0
    max_crawl_delay: float = 300.0
    max_retry_after: float = 300.0
    max_wait: float | None = None
    concurrency: int | None = None
    smooth: bool = False


class Pace(Gate):
    """When one host's next request may start.

    It is a gate too: what answers say of the host as a whole holds there.

    delay: seconds between two starts now: the largest of the configured delay, the backoff
    and the floor. last: the latest start. backoff: what 429s have raised the delay to, 0.0
    for none. floor: what the host asks for itself (Crawl-delay). raised: how often the backoff has
    grown; a request remembers the number it was sent under. unreached: connections that failed since
    the last answer. starts, limited: requests started, 429s received. seen: when something other
    than a start last happened.
    """

    __slots__ = (
        *("rules", "delay", "backoff", "floor", "seen"),
        *("successes", "raised", "starts", "limited", "unreached"),
    )

    def __init__(self, rules: PaceRules, now: float) -> None:
        super().__init__()
        self.rules = rules
        self.delay = rules.delay
        self.backoff = self.floor = 0.0
        self.seen = now
        self.successes = self.raised = self.starts = self.limited = self.unreached = 0

    # --- starting -----------------------------------------------------------------------

    def next_turn(self) -> float:
        """The moment of the next start; it may lie in the past."""
        turn = self.last + self.delay
        opens = self.paused_until if self.told is None else self.opens()
        return turn if turn >= opens else opens

    def delay_at(self, now: float) -> float:
        """Seconds between two starts, with what is left of a quota spread out."""
        told = self.told
        return self.delay if told is None or now >= told.until else max(self.delay, told.interval)

    def is_due(self, now: float) -> bool:
        return now >= self.next_turn() - ROUNDING_S

    def start(self, now: float) -> None:
        """Start a request that came when the host was due."""
        self.last = now
        if self.cut:
            self.passed(now)
        self.starts += 1

    def start_late(self, now: float) -> None:
        """Start a request that waited for its turn: the turns after it count from that, not from `now`.

        Two starts are never less than 0.9 of the delay apart, however late the first was.
        """
        planned = max(self.next_turn(), now - min(CATCH_UP * self.delay, CATCH_UP_S))
        self.passed(now)
        self.last = planned
        self.starts += 1

    # --- learning -----------------------------------------------------------------------

    def answered(self, status: int, *, now: float, raised: float = inf) -> None:
        """Learn from an answer to a request that was sent under `raised`; inf for one sent just now.

        Below 400 is a success. 429 doubles the delay. Other errors break a run of successes
        and do not slow the host down; 404 and 410 do neither.
        """
        self.unreached = 0
        if status == TOO_MANY:
            self._too_many(now, raised)
        elif status < 400:
            self._succeeded(now, raised)
        elif status not in NEUTRAL:
            self.failed()

    def failed(self) -> None:
        """Break the run of successes."""
        self.successes = 0

    def pause(self, seconds: float, *, now: float) -> None:
        """No start for `seconds`, cut to `max_retry_after`. A longer pause stays as it is."""
        self.pause_for(seconds, now=now, ceiling=self.rules.max_retry_after)

    def set_floor(self, seconds: float, *, now: float) -> None:
        """Never less than `seconds` (cut to `max_crawl_delay`) between starts. A backoff stays as it is."""
        self.seen = now
        self.floor = min(seconds, self.rules.max_crawl_delay)
        self._set_delay()

    def resume(self, backoff: float, *, now: float) -> None:
        """Have the backoff of an earlier run, as far as it is one under the rules of this."""
        self.seen = now
        backoff = min(backoff, max(self.rules.max_delay, self.floor))
        self.backoff = backoff if backoff > max(self.rules.delay, self.floor, NEGLIGIBLE_S) else 0.0
        self._set_delay()

    def go_on_from(self, other: Pace) -> None:
        """Be as pressed as `other` is: its latest start, its backoff and its pause count here too."""
        self.last, self.paused_until, self.cut = other.last, other.paused_until, other.cut
        self.told = None if other.told is None else other.told.copy()
        self.backoff, self.raised = other.backoff, other.raised
        self._set_delay()

    def unreachable(self, *, now: float, raised: float = inf) -> None:
        """Learn that a connection failed. UNREACHABLE of these in a row, with no answer between, double the delay."""
        self.unreached += 1
        if self.unreached >= UNREACHABLE and raised >= self.raised:
            self.unreached = 0
            self.seen = now
            self._raise()

    def _too_many(self, now: float, raised: float) -> None:
        self.seen = now
        self.limited += 1
        self.successes = 0
        if raised >= self.raised:  # else it was sent before the last increase, and says nothing of the pace since
            self._raise()

    def _raise(self) -> None:
        doubled = 2 * self.delay or self.rules.first_backoff
        backoff = min(doubled, max(self.rules.max_delay, self.floor))
        if backoff > self.delay:
            self.backoff = backoff
            self.raised += 1
            self._set_delay()

    def _succeeded(self, now: float, raised: float) -> None:
        if not self.backoff or raised < self.raised:
            return
        self.successes += 1
        if self.successes == SUCCESSES:
            self.seen = now
            self.successes = 0
            halved = self.backoff / 2
            least = max(self.rules.delay, self.floor, NEGLIGIBLE_S)
            self.backoff = halved if halved > least else 0.0
            self._set_delay()

    def _set_delay(self) -> None:
        self.delay = max(self.rules.delay, self.backoff, self.floor)

    # --- forgetting ---------------------------------------------------------------------

    def is_forgettable(self, now: float) -> bool:
        """True if a new Pace would do as well: the next turn is past, and the delay is the configured one.

        A backoff or a floor is forgotten FORGET_S after the host was last heard of.
        """
        if now < self.next_turn() or (self.told is not None and self.told.interval and now < self.told.until):
            return False
        return self.delay == self.rules.delay or now - max(self.last, self.seen) > FORGET_S
