"""Who waits for one host, in order of arrival.

All of a host is guarded by its own lock, except what says otherwise.
"""

from __future__ import annotations

import threading
from collections import deque

from .pace import ROUNDING_S, Pace, PaceRules
from .report import HostReport

LONGEST_WAIT_S = 24 * 3600.0  # of one wait; some platforms cannot count much further


class Waiter:
    """One thread in the line of the host `name`.

    owner: the adapter it waits for, so that closing that wakes it. came: when. host: whose line
    it is in, None for none. give_up: the moment after which it would rather fail, None for
    never. refused: seconds to its turn, once that has moved beyond `give_up`. closed: its
    adapter was closed.
    """

    __slots__ = ("_bell", "came", "closed", "give_up", "host", "name", "owner", "refused")

    def __init__(self, name: str, owner: object, came: float) -> None:
        self.name = name
        self.owner = owner
        self.came = came
        self.host: Host | None = None
        self.give_up: float | None = None
        self.refused: float | None = None
        self.closed = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def is_too_late(self, turn: float) -> bool:
        return self.give_up is not None and turn > self.give_up + ROUNDING_S

    def ring(self) -> None:
        """End its wait, the present one or else the next. Needs no lock, and may be called in a finalizer."""
        # A Condition or an Event has a lock of its own, and the very thread that the garbage
        # collector interrupts with a finalizer may be holding it.
        try:
            self._bell.release()
        except RuntimeError:
            pass  # rung already

    def wait(self, seconds: float | None) -> bool:
        """Wait to be rung, `seconds` at most. True if it was. To be called with no lock held."""
        return self._bell.acquire(timeout=-1 if seconds is None else seconds)


class Host(Pace):
    """One host's pace, and its line.

    lock: guards all of it. dropped: the roster has let it go, and another may have taken its
    place. queue: who waits, the next first; None for nobody. taken: one item for each request under
    way, None where their number is not limited. waited: seconds that requests have waited.
    """

    __slots__ = ("dropped", "lock", "name", "queue", "taken", "waited")

    def __init__(self, name: str, rules: PaceRules, now: float) -> None:
        super().__init__(rules, now)
        self.name = name
        self.lock = threading.Lock()
        self.dropped = False
        self.queue: deque[Waiter] | None = None
        self.taken: list[None] | None = None if rules.concurrency is None else []
        self.waited = 0.0

    # --- places: how many requests are under way ----------------------------------------

    @property
    def is_limited(self) -> bool:
        return self.taken is not None

    def has_place(self) -> bool:
        return self.taken is None or len(self.taken) < (self.rules.concurrency or 0)

    def take_place(self) -> list[None] | None:
        """Count one more request under way. Returns what `give_back` is given."""
        if self.taken is not None:
            self.taken.append(None)
        return self.taken

    def give_back(self, taken: list[None]) -> None:
        """Count one less, and have the first in line look. Needs no lock, and may be called in a finalizer.

        Here the place comes first and the line second; a thread joins the line first and looks for a
        place second. So one of the two sees the other.
        """
        taken.pop()
        self.ring_first()

    # --- the line -----------------------------------------------------------------------

    def turn_of_next(self) -> float:
        """The turn of a request that joined the line now."""
        return self.next_turn() + (len(self.queue) * self.delay if self.queue else 0.0)

    def join(self, waiter: Waiter) -> None:
        if self.queue is None:
            self.queue = deque()
        self.queue.append(waiter)

    def is_first(self, waiter: Waiter) -> bool:
        return self.queue is not None and self.queue[0] is waiter

    def leave(self, waiter: Waiter) -> None:
        """Take `waiter` out of the line, if it is in it, and have the first one look."""
        if self.queue is not None:
            if waiter in self.queue:
                self.queue.remove(waiter)
            if not self.queue:
                self.queue = None
        self.ring_first()

    def seconds_to_look(self, waiter: Waiter, now: float) -> float | None:
        """Seconds after which `waiter` has to look again without being rung; None for never."""
        moments = []
        if self.is_first(waiter) and not self.is_due(now):
            moments.append(self.next_turn())
        if self.is_limited and waiter.give_up is not None:
            moments.append(waiter.give_up)
        return min(max(0.0, min(moments) - now), LONGEST_WAIT_S) if moments else None

    def ring_first(self) -> None:
        """Have the first in line look again. Needs no lock."""
        queue = self.queue
        if queue:
            try:
                queue[0].ring()
            except IndexError:
                pass  # the last one left in between

    def reconsider(self, now: float) -> None:
        """After a change of pace: refuse those whose turn now comes too late, and have the first look again."""
        if self.queue is None:
            return
        turn = max(now, self.next_turn())
        staying: deque[Waiter] = deque()
        for waiter in self.queue:
            if waiter.is_too_late(turn):
                waiter.refused = turn - now
                waiter.ring()
            else:
                staying.append(waiter)
                turn += self.delay
        self.queue = staying or None
        self.ring_first()

    def forget_threads(self) -> None:
        """In the child of a fork: nobody waits, nobody holds a place or the lock. What has been learnt stays."""
        self.lock = threading.Lock()
        self.queue = None
        if self.taken:
            self.taken = []

    # --- the rest -----------------------------------------------------------------------

    def is_forgettable(self, now: float) -> bool:
        return self.queue is None and not self.taken and super().is_forgettable(now)

    def report(self, now: float) -> HostReport:
        queue = self.queue
        return HostReport(
            delay=self.delay,
            crawl_delay=self.floor,
            starts=self.starts,
            limited=self.limited,
            backoffs=self.raised,
            waited=self.waited,
            paused=max(0.0, self.paused_until - now),
            waiting=len(queue) if queue else 0,
        )
