"""What is known of each origin's robots.txt, shared by all threads: asked for once, and kept for a while.

All is guarded by `_lock`, but the requests under way, which have a lock of their own. Neither is
held while a server is asked, or a file is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from kreuz_sync.cache.collapse import Flight, Flights, Owner
from kreuz_sync.cache.lru import Lru
from kreuz_sync.clock import Clock
from kreuz_sync.deadline import require_time
from kreuz_sync.errors import DeadlineExceeded

from .fetch import Errand, fetch
from .files import Rules
from .life import Answer, Known, learn
from .places import Place

FILES_BYTES = 64 * 2**20  # of all files together
READY_BYTES = 128 * 2**20  # of all rules that are ready to be matched; the worst file takes half of it
SMALL = 1024  # bytes that what is known takes beside the file
DRIPPED_S = 0.5  # without the whole file, though it had begun to come: that server is not waited for by every call
LOOK_AGAIN_S = 5.0  # whoever leads may have vanished without a word: an interrupt can strike anywhere


class Ready(NamedTuple):
    """What is known of an origin, and what that says to one token; None if there is no file to go by."""

    known: Known
    rules: Rules | None


class Keeper:
    """The files that are known, by origin, and the requests for them that are under way.

    max_origins: beyond that the oldest are forgotten. max_age: seconds that a file is believed.
    """

    def __init__(self, *, max_origins: int, max_age: float, clock: Clock) -> None:
        self.max_age = max_age
        self.clock = clock
        self.flights = Flights(clock)
        self._lock = threading.Lock()
        self._known: Lru[Known] = Lru(max_origins, FILES_BYTES)
        self._ready: Lru[Ready] = Lru(max_origins, READY_BYTES)

    def ready(self, key: str) -> Ready | None:
        """What was put under `key`, as long as it holds."""
        with self._lock:
            ready = self._ready.get(key)
        return None if ready is None or self.clock.monotonic() >= ready.known.until else ready

    def known(self, origin: str) -> Known | None:
        """What is known of `origin` now; None if it has to be asked, for the first time or again."""
        with self._lock:
            known = self._known.get(origin)
        return None if known is None or self.clock.monotonic() >= known.until else known

    def known_origins(self) -> list[str]:
        """Those of which anything is known, also what does not hold any more."""
        with self._lock:
            return list(self._known)

    def ask(self, place: Place, key: str, read: Callable[[bytes], Rules], errand: Errand, owner: Owner) -> Ready:
        """What is known of a place, after asking for its file if need be, from then on to be found under `key`.

        It is asked for and read once for all threads. owner: on whose behalf they wait for another's
        answer. Raises what `fetch` raises, and SessionClosed when `owner` is woken.
        """
        while (ready := self.ready(key)) is None:
            leader = _Leader()
            joined = self.flights.join(place.origin, leader)
            if joined is None:
                return _made_ready(self._meanwhile(place.origin), read)
            flight, leads = joined
            if not leads:
                self._follow(flight, errand, owner)
                continue
            try:
                ready = _made_ready(self.known(place.origin) or self._lead(place, errand), read)
                with self._lock:
                    self._ready.put(key, ready, SMALL + (0 if ready.rules is None else ready.rules.size))
                return ready
            finally:
                self.flights.land(flight, of_use=None)
        return ready

    def after_fork(self) -> None:
        """In a child, where those who hold the lock, and those who ask, are not. What is known stays."""
        self._lock = threading.Lock()
        self.flights.after_fork()

    def _lead(self, place: Place, errand: Errand) -> Known:
        began, waited = self.clock.monotonic(), errand.call.waited
        try:
            return self._note(place.origin, fetch(place.robots_url, errand, self.clock))
        except DeadlineExceeded as error:
            asked = self.clock.monotonic() - began - (errand.call.waited - waited)
            in_body = error.response is not None and not error.unanswered and asked >= min(DRIPPED_S, errand.silence)
            if in_body or error.unanswered >= errand.silence:  # the next call need not wait for it as long
                self._note(place.origin, Answer(None, "no answer"))
            raise

    def _meanwhile(self, origin: str) -> Known:
        """What holds for a request that this thread makes while it asks for the file, such as one for a token.

        What is needed to get it is allowed, as the file itself is.
        """
        now = self.clock.monotonic()
        with self._lock:
            return self._known.get(origin) or Known(b"", "it is being asked for", now, now)

    def _note(self, origin: str, answer: Answer) -> Known:
        with self._lock:
            known = learn(self._known.get(origin), answer, now=self.clock.monotonic(), max_age=self.max_age)
            if answer.lasting:
                self._known.put(origin, known, SMALL + len(known.content or b""))
        return known

    def _follow(self, flight: Flight, errand: Errand, owner: Owner) -> None:
        """Wait until `flight` has landed, or it is time to look again. Counts as waiting of the call."""
        call = errand.call
        began = self.clock.monotonic()
        patience = LOOK_AGAIN_S if call.deadline is None else min(LOOK_AGAIN_S, require_time(call, errand.request))
        try:
            self.flights.wait(flight, patience, owner)
        finally:
            call.waited += self.clock.monotonic() - began


def _made_ready(known: Known, read: Callable[[bytes], Rules]) -> Ready:
    return Ready(known, None if known.content is None else read(known.content))


class _Leader:
    """Lives as long as the thread that asks is at it."""

    __slots__ = ("__weakref__",)
