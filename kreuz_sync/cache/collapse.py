"""Equal requests at the same moment make one: the first one leads, the others wait for what it brings.

RFC 9111, section 4. Whether its answer is good for the others shows only when it has come, so each
of them then looks into the store again, and goes itself if nothing there is its answer.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from kreuz_sync.clock import Clock
from kreuz_sync.errors import SessionClosed

if TYPE_CHECKING:
    from .store import Lead

ALONE_REMEMBERED = 4096  # keys
_CLOSED = "the session was closed while this call waited for an equal one"


class Owner(Protocol):
    """On whose behalf threads wait. woken: how often they were told to give up, guarded by the lock of `Flights`."""

    woken: int


class Flight:
    """A request under way. landed: its outcome is known. condition: None until somebody waits.

    leader: what lives as long as the request does. An interrupt may strike before anybody is
    there to land the flight. lead: what makes other processes wait as well, None if nothing does.
    """

    __slots__ = ("__weakref__", "condition", "key", "landed", "lead", "leader", "thread")

    def __init__(self, key: str, leader: object) -> None:
        self.key = key
        self.leader = weakref.ref(leader)
        self.thread = threading.get_ident()
        self.landed = False
        self.condition: threading.Condition | None = None
        self.lead: Lead | None = None


class Flights:
    """The requests under way, one for each key, and the keys for which waiting was in vain.

    landings: how many have landed; whoever looked into the store before the last one did may have
    missed what it brought.

    Where an answer was of no use to those who waited, nobody waits for the next one: they would
    only come one after the other. That ends with the first answer that is of use.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.Lock()  # guards all of these, and landed and condition of every flight
        self.landings = 0
        self._flights: dict[str, Flight] = {}
        self._alone: dict[str, None] = {}
        self._pausing = threading.Condition(self._lock)  # nobody but `wake` notifies it

    def join(self, key: str, leader: object) -> tuple[Flight, bool] | None:
        """The flight for `key` and whether the caller leads it, and must `land` it; None to go alone.

        leader: lives as long as the caller is at it.
        """
        with self._lock:
            if key in self._alone:
                return None
            flight = self._flights.get(key)
            if flight is None or flight.leader() is None:
                flight = self._flights[key] = Flight(key, leader)
                return flight, True
            if flight.thread == threading.get_ident():
                return None  # asked for by a layer or a hook while it is under way: waiting would have no end
            if flight.condition is None:
                flight.condition = threading.Condition(self._lock)
            return flight, False

    def land(self, flight: Flight, *, of_use: bool | None) -> None:
        """Wake all who wait; the second time does nothing.

        of_use: whether they may find their answer now; None where that says nothing about the
        next time, as after an error.
        """
        self._land(flight, of_use)
        if flight.lead is not None:
            flight.lead.end()

    def _land(self, flight: Flight, of_use: bool | None) -> None:
        with self._lock:
            if flight.landed:
                return
            flight.landed = True
            self.landings += 1
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
            if of_use:
                self._alone.pop(flight.key, None)
            elif of_use is not None:
                self._go_alone(flight.key)
            if flight.condition is not None:
                flight.condition.notify_all()

    def goes_alone(self, key: str) -> bool:
        """Whether nobody waits for an answer for `key`."""
        return key in self._alone

    def forgive(self, key: str) -> None:
        """An answer for `key` was of use: from now on waiting is worth while."""
        with self._lock:
            self._alone.pop(key, None)

    def wait(self, flight: Flight, seconds: float, owner: Owner) -> bool:
        """Wait at most `seconds` until `flight` has landed; whether it has.

        Raises SessionClosed when `owner` is woken by `wake`.
        """
        condition = flight.condition
        assert condition is not None
        until = self._clock.monotonic() + seconds
        with condition:
            woken = owner.woken
            while not flight.landed:
                left = until - self._clock.monotonic()
                if left <= 0:
                    return False
                self._clock.wait(condition, left)
                if owner.woken != woken:
                    raise SessionClosed(_CLOSED)
        return True

    def pause(self, seconds: float, owner: Owner, woken: int) -> None:
        """Wait `seconds`, where it is no flight of this process that is waited for.

        Raises SessionClosed when `owner` is woken by `wake`, or was since it was `woken` so often.
        """
        until = self._clock.monotonic() + seconds
        with self._lock:
            while owner.woken == woken:
                left = until - self._clock.monotonic()
                if left <= 0:
                    return
                self._clock.wait(self._pausing, left)
        raise SessionClosed(_CLOSED)

    def wake(self, owner: Owner) -> None:
        """Make all who wait on behalf of `owner` give up."""
        with self._lock:
            owner.woken += 1
            self._pausing.notify_all()
            for flight in self._flights.values():
                if flight.condition is not None:
                    flight.condition.notify_all()

    def after_fork(self) -> None:
        """In a child: those who lead are not here."""
        self._renew()

    def _go_alone(self, key: str) -> None:
        if len(self._alone) >= ALONE_REMEMBERED:
            self._alone.pop(next(iter(self._alone)))
        self._alone[key] = None
