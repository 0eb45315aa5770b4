"""Equal requests of several processes make one, if their store has leads, as those of threads do (`collapse.py`).

Who leads in its process takes the lead for the key among all of them, or waits for whoever has it. Nobody tells
it when that one is done, so it asks again, every few milliseconds at first and less often then.
"""

from __future__ import annotations

import threading
import weakref

from kreuz_sync.calls import current
from kreuz_sync.clock import Clock

from .collapse import Flight, Flights, Owner
from .trouble import GuardedStore

# Seconds from one look to the next: a part of those waited until now, within bounds.
SOONEST_S, LATEST_S = 0.002, 0.05
_PART = 1 / 8

# flight: a weak reference to the last one of this thread's that had a lead, in whatever store.
_here = threading.local()


def leads_here() -> bool:
    """Whether this thread holds a lead. It must not wait then for anybody who may be waiting for that."""
    flight = _here.flight() if hasattr(_here, "flight") else None
    return flight is not None and not flight.landed


class Processes:
    """The leads of one store."""

    def __init__(self, store: GuardedStore, flights: Flights, clock: Clock) -> None:
        self._store = store
        self._flights = flights
        self._clock = clock

    def take(self, flight: Flight) -> bytes | None:
        """Have `flight` lead all processes. None if it does, or cannot be compared with others now.

        Otherwise it is somebody else who leads: what tells that one from the next, b"" if nothing does.
        """
        found = self._store.lead(flight.key)
        if found is None or isinstance(found, bytes):
            return found
        flight.lead = found
        _here.flight = weakref.ref(flight)
        return None

    def wait(self, flight: Flight, seconds: float, owner: Owner) -> bool:
        """The same, but wait at most `seconds` for somebody else who leads; whether there was one.

        Whoever waited, and whoever leads now, may find in the store what another one has brought.
        Raises SessionClosed when `owner` is woken.
        """
        call, woken, began = current.get(), owner.woken, self._clock.monotonic()
        first, has_waited = b"", False
        while (leader := self.take(flight)) is not None:
            waited = self._clock.monotonic() - began
            # Another leader: the one that was waited for is done, and did not bring what this one looked for.
            if waited >= seconds or (first and leader not in (b"", first)):
                return True
            first = first or leader
            if call is not None and call.helper is not None:
                call.helper.require_going_on()
            pause = min(max(waited * _PART, SOONEST_S), LATEST_S, seconds - waited)
            self._flights.pause(pause, owner, woken)
            has_waited = True
        return has_waited
