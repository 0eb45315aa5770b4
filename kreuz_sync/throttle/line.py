"""Who waits for one host, in order of arrival.

All of a host is guarded by its own lock, except what says otherwise.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from .gate import ROUNDING_S, Gate
from .pace import Pace, PaceRules
from .report import HostReport
from .waiter import Line, Waiter

if TYPE_CHECKING:
    from .buckets import Bucket, Buckets
    from .verdict import Declared

LONGEST_WAIT_S = 24 * 3600.0  # of one wait; some platforms cannot count much further


class Host(Line, Pace):
    """One host's pace, and its line.

    lock: guards all of it. dropped: the roster has let it go, and another may have taken its
    place. queue: who waits for its turns, the next first; None for nobody. buckets: its parts that have a
    quota of their own, with those who wait for one of them; None as long as there are none. taken: a weak
    reference to the turn of each request under way, None where their number is not limited. waited:
    seconds that requests have waited.
    """

    __slots__ = ("buckets", "dropped", "lock", "name", "queue", "taken", "waited")

    def __init__(self, name: str, rules: PaceRules, now: float) -> None:
        super().__init__(rules, now)
        self.name = name
        self.lock = threading.Lock()
        self.dropped = False
        self.queue: deque[Waiter] | None = None
        self.buckets: Buckets | None = None
        self.taken: set[weakref.ref[Any]] | None = None if rules.concurrency is None else set()
        self.waited = 0.0

    # --- places: how many requests are under way ----------------------------------------

    @property
    def is_limited(self) -> bool:
        return self.taken is not None

    def has_place(self) -> bool:
        if self.taken is None:
            return True
        most = self.rules.concurrency or 0
        if len(self.taken) >= most:
            for place in list(self.taken):
                if place() is None:  # an interrupt struck where its turn was forgotten
                    self.taken.discard(place)
        return len(self.taken) < most

    def take_place(self, turn: object) -> weakref.ref[Any] | None:
        """Count one more request under way, as long as `turn` lives. Returns what `give_back` is given."""
        if self.taken is None:
            return None
        # Not a `__del__`, which would run for every turn, and swallow an interrupt that strikes there.
        place = weakref.ref(turn, self.give_back)
        self.taken.add(place)
        return place

    def give_back(self, place: weakref.ref[Any]) -> None:
        """Count one less, and have the first in line look. Needs no lock, and may be called in a finalizer.

        Here the place comes first and the line second; a thread joins the line first and looks for a
        place second. So one of the two sees the other.
        """
        if self.taken is not None:
            self.taken.discard(place)
        self.ring_first()

    # --- what it declares ---------------------------------------------------------------

    def heed_answer(self, said: Declared, *, now: float, sent: float, ask: Any) -> None:
        """Learn what the answer to the request `ask`, of the moment `sent`, says of the host or of one bucket."""
        self.seen = now
        bucket = None
        if said.bucket:
            bucket = self.named(said.bucket, now)
            self._with_buckets().learn(ask, said.bucket)
        gate: Gate = self if bucket is None else bucket
        gate.heed(said, now=now, sent=sent, ceiling=self.rules.max_retry_after, smooth=self.rules.smooth)

    def end_probe(self, ask: Any, now: float, *, answered: bool) -> None:
        """The request `ask` was one that others wait for, and has an answer now, or will have none."""
        self.probed(now, answered=answered)
        bucket = None if self.buckets is None else self.buckets.find(ask)
        if bucket is not None:
            bucket.probed(now, answered=answered)

    def named(self, name: str, now: float) -> Bucket | None:
        """The bucket of this name; None if there are too many."""
        return self._with_buckets().named(name, now)

    def _with_buckets(self) -> Buckets:
        if self.buckets is None:
            from .buckets import Buckets  # few hosts have any

            self.buckets = Buckets()
        return self.buckets

    # --- the line -----------------------------------------------------------------------

    def turn_of_next(self) -> float:
        """The turn of a request that joined the line now."""
        turn = self.next_turn()
        return self.behind(turn, len(self.queue), self.delay) if self.queue else turn

    def turn_of(self, waiter: Waiter, now: float) -> float:
        """The turn of a waiter that comes now. It will not be earlier."""
        turn = max(self.turn_of_next(), waiter.not_before)
        bucket = None if self.buckets is None else self.buckets.find_for(waiter)
        if bucket is not None and bucket.holds(now):
            turn = max(turn, bucket.turn_of_next(self.delay))
        return turn

    def earliest(self, waiter: Waiter) -> float:
        """Its turn if it were the first in line."""
        line: Any = waiter.line
        opens = self.paused_until if line is None or line is self else line.opens()
        return max(self.next_turn(), waiter.not_before, opens)

    def join(self, waiter: Waiter, now: float) -> None:
        """Put the waiter where it has to wait first: by itself, in its bucket's line, or in the host's."""
        if now < waiter.not_before - ROUNDING_S:
            self._with_buckets().aside.add(waiter)
            return
        bucket = None if self.buckets is None else self.buckets.find_for(waiter)
        if bucket is not None and bucket.holds(now):
            bucket.line_up(waiter)
            return
        if bucket is not None:
            waiter.is_probe = bucket.cut
            bucket.passed(now)
        self.line_up(waiter)

    def move_up(self, now: float) -> None:
        """Put into the host's line all whose own moment has come, or whose bucket is open now."""
        if self.buckets is None:
            return
        moved = False
        for waiter in [one for one in self.buckets.aside if now >= one.not_before - ROUNDING_S]:
            self.join(waiter, now)
            self.buckets.aside.discard(waiter)  # last: an interrupt before that leaves it in both, and not in none
            moved = True
        for bucket in self.buckets.by_name.values():
            while bucket.queue and bucket.is_open(now):
                waiter = bucket.queue[0]
                waiter.is_probe = bucket.cut
                bucket.passed(now)
                self.line_up(waiter)
                bucket.remove(waiter)
                moved = True
        if moved:
            self._refuse_late(now)
            self.ring_first()

    def leave(self, waiter: Waiter) -> None:
        """Take `waiter` out of the line, wherever it is, and have the first one look."""
        if self.buckets is not None:
            self.buckets.leave(waiter)
        self.remove(waiter)

    def seconds_to_look(self, waiter: Waiter, now: float) -> float | None:
        """Seconds after which `waiter` has to look again without being rung; None for never."""
        moments = []
        line: Any = waiter.line
        if line is None:
            moments.append(waiter.not_before)
        elif line.is_first(waiter):
            if line is not self:
                moments.append(line.opens())
            elif not self.is_due(now):
                moments.append(self.next_turn())
        if self.is_limited and waiter.give_up is not None:
            moments.append(waiter.give_up)
        if waiter.deadline is not None:
            moments.append(waiter.deadline)
        return min(max(0.0, min(moments) - now), LONGEST_WAIT_S) if moments else None

    def reconsider(self, now: float) -> None:
        """After a change of pace: refuse those whose turn now comes too late, and have the first look again."""
        if self.buckets is not None:
            self.buckets.take_back(self, now)
            self.buckets.reconsider(self._turn_in, max(now, self.next_turn()), now)
        self._refuse_late(now)
        self.ring_first()

    def _refuse_late(self, now: float) -> None:
        first = max(now, self.next_turn())
        self.refuse_late(lambda place: self.behind(first, place, self.delay), now)

    def _turn_in(self, bucket: Bucket, place: int) -> float:
        first = max(self.next_turn(), bucket.opens())
        return bucket.behind(first, place, self.delay)

    def forget_threads(self) -> None:
        """In the child of a fork: nobody waits, nobody holds a place or the lock. What has been learnt stays."""
        self.lock = threading.Lock()
        self.queue = None
        if self.buckets is not None:
            self.buckets.forget_threads()
        if self.taken:
            self.taken = set()

    # --- the rest -----------------------------------------------------------------------

    def is_forgettable(self, now: float) -> bool:
        if self.queue is not None or self.taken or (self.buckets is not None and not self.buckets.is_idle(now)):
            return False
        return super().is_forgettable(now)

    def report(self, now: float) -> HostReport:
        queue, buckets = self.queue, self.buckets
        paused = max(0.0, self.paused_until - now)
        remaining, reset = (None, None) if self.told is None else self.told.left(now)
        return HostReport(
            delay=self.delay_at(now),
            crawl_delay=self.floor,
            starts=self.starts,
            limited=self.limited,
            backoffs=self.raised,
            waited=self.waited,
            paused=paused,
            waiting=(len(queue) if queue else 0) + (0 if buckets is None else buckets.waiting()),
            pause_source=self.told.source if paused and self.told is not None else "",
            remaining=remaining,
            reset=reset,
            buckets=() if buckets is None else tuple(one.report(now) for one in list(buckets.by_name.values())),
        )
