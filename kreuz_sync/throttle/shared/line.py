"""One host of a pace that is kept together, as this process knows it. Guarded by the host's lock."""

from __future__ import annotations

from math import inf

from kreuz_sync.throttle.gate import ROUNDING_S
from kreuz_sync.throttle.line import Host
from kreuz_sync.throttle.pace import PaceRules
from kreuz_sync.throttle.waiter import Waiter

from .plan import GO, LINGER_S, TOO_LATE
from .steps import NO_CLAIM, Known, Leave, State

# Who waits for a slot that is far away asks so often whether it is nearer now.
LOOK_S = 5.0
_SAME_S = 0.001
_STALE_US = 5_000_000  # further apart than two steps ever are


class SharedHost(Host):
    """A host's pace and its line here, and what the server said of it last.

    asking: who asks the server now, on behalf of the whole line. claim: the slot of the first in line,
    whoever that is by then; slot: when that is, -inf for none; look: when to ask for it again. has_leave: one
    request may be sent now; by_server: since the server says so. alone: the latest went without being asked for.
    joins: something was learnt that the server does not know. heard: when the server last answered. as_of,
    paused_us: of that answer, see `State`.
    """

    __slots__ = (
        *("alone", "as_of", "asking", "by_server", "claim", "has_leave", "heard", "joins", "look", "paused_us", "slot"),
    )

    def __init__(self, name: str, rules: PaceRules, now: float) -> None:
        super().__init__(name, rules, now)
        self.asking: Waiter | None = None
        self.has_leave = self.by_server = self.alone = self.joins = False
        self.heard = -inf
        self.as_of = self.paused_us = 0
        self.drop_claim()

    def drop_claim(self) -> None:
        self.claim = NO_CLAIM
        self.slot = self.look = -inf

    # --- asking -------------------------------------------------------------------------

    def next_turn(self) -> float:
        return max(super().next_turn(), self.slot)

    def is_due(self, now: float) -> bool:
        return self.has_leave or super().is_due(now)

    def should_ask(self, waiter: Waiter, now: float) -> bool:
        """Whether `waiter` is to ask the server now."""
        if self.asking is not None or self.has_leave or not self.is_first(waiter) or not self.has_place():
            return False
        return now >= self.look - ROUNDING_S if self.slot > -inf else self.is_due(now)

    def seconds_to_look(self, waiter: Waiter, now: float) -> float | None:
        seconds = super().seconds_to_look(waiter, now)
        if seconds is None or self.slot == -inf or not self.is_first(waiter):
            return seconds
        return min(seconds, max(0.0, self.look - now))

    def begin(self, now: float) -> Known:
        """What to tell the server with the next step. That step is to end in `heed_state` or in `fail`."""
        joins, self.joins = self.joins, False
        since = now - self.last if self.alone and self.last > -inf else None
        self.alone = False
        return Known(
            joins=joins,
            is_fresh=now - self.heard < LINGER_S / 2,
            backoff=self.backoff,
            floor=self.floor,
            raised=self.raised,
            paused=max(0.0, self.paused_until - now),
            cut=self.cut,
            since=since,
        )

    def fail(self, known: Known) -> None:
        """The server was not reached: what it was to be told, it will be told with the next step."""
        self.joins = True
        self.alone = self.alone or known.since is not None

    # --- what it said -------------------------------------------------------------------

    def heed_leave(self, leave: Leave, waiter: Waiter, now: float) -> None:
        self.asking = None
        self.drop_claim()
        if leave.code == GO:
            self.has_leave = self.by_server = True
        elif leave.code == TOO_LATE:
            waiter.refused = leave.wait
            waiter.ring()
        else:
            self.claim = leave.claim
            self.slot = now + leave.wait
            self.look = min(self.slot, now + LOOK_S)

    def heed_state(self, state: State, now: float) -> None:
        """Take over what all machines together know."""
        self.heard = now
        # Two steps may come back in another order than they were made in. A clock that was put back is no such thing.
        if 0 < self.as_of - state.as_of < _STALE_US:
            return
        self.as_of, self.paused_us = state.as_of, state.paused_until
        self.backoff, self.floor, self.raised = state.backoff, state.floor, state.raised
        self.successes, self.unreached = state.successes, state.unreached
        self._set_delay()
        if abs(now + state.paused - max(now, self.paused_until)) > _SAME_S:
            self.paused_until = now + state.paused
        self.cut = state.cut
        for name, paused, cut in state.buckets:
            bucket = self.named(name, now)
            if bucket is not None and now + paused > bucket.paused_until + _SAME_S:
                bucket.paused_until, bucket.cut = now + paused, cut

    def _refuse_late(self, now: float) -> None:
        due = self.next_turn()
        first = max(now, due)

        def turn_of(place: int) -> float:
            # The first one's has come. That the server is still to be asked is no reason to refuse it.
            return -inf if place == 0 and due <= now else self.behind(first, place, self.delay)

        self.refuse_late(turn_of, now)

    # --- going --------------------------------------------------------------------------

    def go_alone(self) -> None:
        """The server is gone: the turns of this process are all that is known."""
        self.asking = None
        self.drop_claim()
        self.has_leave, self.by_server = True, False

    def start_late(self, now: float) -> None:
        self.has_leave = False
        self.alone = not self.by_server
        if self.by_server:
            self.start(now)  # the server has seen to the distance
        else:
            super().start_late(now)

    def leave(self, waiter: Waiter) -> None:
        if self.asking is waiter:
            self.asking = None
        super().leave(waiter)
        if self.queue is None:
            self.has_leave = False  # it was for now

    def forget_threads(self) -> None:
        super().forget_threads()
        self.asking = None
        self.has_leave = False
        self.drop_claim()  # the parent's
