"""What a server has said of one quota of its own, and until when nothing may pass for that. Pure arithmetic.

A gate stands before the whole host (`pace.py`), or before one bucket of it (`buckets.py`).
Moments are seconds of one monotonic clock, and come in as arguments.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .verdict import Declared

ROUNDING_S = 1e-9  # what adding and subtracting moments may cost
# A probe that has no answer by then has had its chance: its thread may be gone.
PROBE_S = 5.0


class Told:
    """What was said last at one gate.

    source, policy: the field that the pause is from, and the name of its quota. by_quota: a quota's
    fields ask for the pause, and not an order such as Retry-After. since: when they did. beside: the end of
    the pauses that other policies asked for meanwhile. remaining, reset_at, field: what is left of
    the quota until when (None: unknown), and the field that says so. interval, until: what spreads that
    out, seconds between two requests until that moment; 0.0 for nothing.
    """

    __slots__ = (
        *("source", "policy", "by_quota", "since", "beside"),
        *("remaining", "reset_at", "field", "interval", "until"),
    )

    def __init__(self) -> None:
        self.source = self.policy = self.field = ""
        self.by_quota = False
        self.since = self.beside = self.until = -inf
        self.remaining: float | None = None
        self.reset_at: float | None = None
        self.interval = 0.0

    def copy(self) -> Told:
        """Another of the same."""
        other = Told()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def left(self, now: float) -> tuple[float | None, float | None]:
        """What is left, and the seconds until the reset; each None if unknown. After the reset, both are."""
        if self.reset_at is None:
            return self.remaining, None
        return (self.remaining, self.reset_at - now) if self.reset_at > now else (None, None)


class Gate:
    """Nothing passes before `opens()`.

    last: when a request passed last. paused_until: the end of the pause. cut: the server asked for
    a longer one, so the first request after it is a probe, and the next waits for its answer. told: what
    was said; None if nothing was.
    """

    __slots__ = ("cut", "last", "paused_until", "told")

    def __init__(self) -> None:
        self.last = self.paused_until = -inf
        self.cut = False
        self.told: Told | None = None

    # --- passing ------------------------------------------------------------------------

    def opens(self) -> float:
        """The moment from which the next request may pass; it may lie in the past."""
        told = self.told
        if told is None or not told.interval:
            return self.paused_until
        return max(self.paused_until, min(self.last + told.interval, told.until))

    def is_open(self, now: float) -> bool:
        """Whether one may pass now."""
        return now >= self.opens() - ROUNDING_S

    def passed(self, now: float) -> None:
        """Let one pass. If that is a probe, the next waits for its answer, PROBE_S at most."""
        self.last = now
        if self.cut:
            self.paused_until = now + PROBE_S

    def probed(self, now: float, *, answered: bool) -> None:
        """The probe is over. Without an answer the next one is a probe too."""
        if self.cut:
            self.paused_until = min(self.paused_until, now)
            self.cut = not answered

    def behind(self, first: float, count: int, apart: float) -> float:
        """The turn `count` places behind one at `first`, where two are at least `apart` seconds apart."""
        turn = first + count * apart
        told = self.told
        if told is None or not told.interval:
            return turn
        return max(turn, min(first + count * told.interval, max(first, told.until)))

    # --- learning -----------------------------------------------------------------------

    def heed(self, said: Declared, *, now: float, sent: float, ceiling: float, smooth: bool) -> None:
        """Learn what an answer says; `sent` is when its request was.

        ceiling: seconds of the longest pause. smooth: spread what is left out until the reset.
        """
        told = self.told = self.told or Told()
        if said.remaining is not None:
            self.keep_left(said.remaining, said.reset, said.source, now=now, ceiling=ceiling, smooth=smooth)
        if said.pause > 0:
            self.pause_for(
                said.pause, now=now, ceiling=ceiling, source=said.source, policy=said.policy, by_quota=not said.is_order
            )
        elif told.by_quota and self._names_the_pause(said) and (said.remaining or 0) >= 1 and sent > told.since:
            self.paused_until = told.beside  # there is something left again
            self.cut = False

    def keep_left(
        self, remaining: float, reset: float | None, field: str, *, now: float, ceiling: float, smooth: bool
    ) -> None:
        """Take note that `remaining` requests are left for the next `reset` seconds."""
        told = self.told = self.told or Told()
        told.remaining, told.field = remaining, field
        told.reset_at = None if reset is None else now + reset
        # With nothing left there is nothing to spread; and whatever is told ends at the ceiling.
        told.interval = min((reset or 0.0) / remaining, ceiling) if smooth and remaining >= 1 else 0.0
        told.until = now + min(reset or 0.0, ceiling)

    def pause_for(
        self, seconds: float, *, now: float, ceiling: float, source: str = "", policy: str = "", by_quota: bool = False
    ) -> None:
        """Let nothing pass for `seconds`, `ceiling` at most.

        A pause is never shortened, but by a later word on the same policy.
        """
        until = now + min(seconds, ceiling)
        told = self.told
        renews = told is not None and by_quota and told.by_quota and (told.source, told.policy) == (source, policy)
        if not renews and until <= self.paused_until:
            if told is not None:
                told.beside = max(told.beside, until)
            return
        if source or told is not None:
            told = self.told = told or Told()
            if not renews:
                told.beside = max(told.beside, self.paused_until)
            told.source, told.policy, told.by_quota, told.since = source, policy, by_quota, now
            until = max(until, told.beside)
        self.paused_until = until
        self.cut = seconds > ceiling

    def _names_the_pause(self, said: Declared) -> bool:
        assert self.told is not None
        return (self.told.source, self.told.policy) == (said.source, said.policy)
