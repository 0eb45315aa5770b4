"""Turns, handed out in order of arrival: each host's lock, and the waiting outside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TypeVar, cast

from kreuz_sync.clock import Clock
from kreuz_sync.errors import SessionClosed, ThrottleTimeout

from .line import Host, Waiter
from .pace import PRESSED
from .report import HostReport
from .roster import KEPT, Roster


Result = TypeVar("Result")


class Turn:
    """Leave to send one request now. What comes of it is reported with it.

    name: the host's. waited: seconds the request waited. raised: how often the host's backoff had
    grown by then.
    """

    __slots__ = ("_host", "_taken", "name", "raised", "waited")

    def __init__(self, host: Host, waited: float) -> None:
        self.name = host.name
        self.raised = host.raised
        self.waited = waited
        self._host = host
        self._taken = None if host.taken is None else host.take_place()

    def give_back(self) -> None:
        """The request is over: another may take its place. Does nothing the second time.

        It needs no lock, and may be called in a finalizer.
        """
        taken, self._taken = self._taken, None
        if taken is not None:
            self._host.give_back(taken)


class Turns:
    """Every host's pace and line in this process.

    `Host.lock` guards one host's pace and line; `_lock` guards the roster, which hosts there
    are. Both are held for arithmetic alone, never while a thread waits or sends. A thread that
    holds a host's lock takes no other; one that holds the roster's only tries for a host's.
    A host is dropped with its lock held, and says so: who was waiting for that lock asks the
    roster again, so that there are never two locks for one host.
    """

    def __init__(self, roster: Roster, clock: Clock) -> None:
        self.roster = roster
        self.clock = clock
        self._lock = threading.Lock()
        self._waiting: set[Waiter] = set()  # each change is one step, and so is a copy

    # --- one request --------------------------------------------------------------------

    def take(self, name: str, owner: object = None) -> Turn:
        """Wait for the next turn of the host `name`, and take it.

        `owner` is what `wake` names. Raises ThrottleTimeout, and SessionClosed after `wake(owner)`. With
        these, as with an interrupt, the place in line is given up and no turn is used.
        """
        if len(self.roster.hosts) > KEPT:
            with self._lock:
                self.roster.sweep(self.clock.monotonic())
        return self._with_host(name, self._start_if_due) or self._wait_in_line(name, owner)

    def answered(self, name: str, status: int, *, raised: float = inf, pause: float = 0.0) -> None:
        """Learn from an answer.

        raised: that of the request's turn; inf for one sent after all that is known. pause: seconds
        the host asks to be left alone.
        """
        host = self.roster.hosts.get(name)
        if status not in PRESSED and (host is None or not host.backoff):
            return  # nearly every answer: there is nothing to learn, and no lock to wait for

        def learn(host: Host) -> None:
            now = self.clock.monotonic()
            before = host.delay, host.paused_until
            host.answered(status, now=now, raised=raised)
            if pause > 0:
                host.pause(pause, now=now)
            if before != (host.delay, host.paused_until):
                host.reconsider(now)

        self._with_host(name, learn)

    def failed(self, name: str) -> None:
        """Learn that no answer came."""
        host = self.roster.hosts.get(name)
        if host is not None:
            with host.lock:
                host.failed()

    def wake(self, owner: object) -> None:
        """End all waits of `owner`; each raises SessionClosed. Others are not affected.

        It needs no lock, and may be called in a signal handler.
        """
        for waiter in list(self._waiting):
            if waiter.owner is owner:
                waiter.closed = True
                waiter.ring()

    # --- one host -----------------------------------------------------------------------

    def set_floor(self, name: str, seconds: float) -> None:
        """Never less than `seconds` between two starts."""

        def learn(host: Host) -> None:
            now = self.clock.monotonic()
            host.set_floor(seconds, now=now)
            host.reconsider(now)

        self._with_host(name, learn)

    def delay(self, name: str) -> float:
        """Seconds between two starts as things stand."""
        host = self.roster.hosts.get(name)
        return self.roster.table.find(name).delay if host is None else host.delay

    def wait(self, name: str) -> float:
        """Seconds that a request would wait now."""
        host = self.roster.hosts.get(name)
        if host is None:
            return 0.0
        with host.lock:
            return max(0.0, host.turn_of_next() - self.clock.monotonic())

    def snapshot(self) -> dict[str, HostReport]:
        """What is known of every host."""
        with self._lock:
            known = list(self.roster.hosts.items())
        now = self.clock.monotonic()
        return {name: host.report(now) for name, host in known}

    def after_fork(self) -> None:
        """In the child: new locks, since threads that are gone may hold the old ones, and empty lines."""
        self._lock = threading.Lock()
        self._waiting = set()
        self.roster.forget_threads()

    # --- waiting ------------------------------------------------------------------------

    def _with_host(self, name: str, work: Callable[[Host], Result]) -> Result:
        """What `work` makes of the host's state, new where there is none, with its lock held."""
        while True:
            host = self.roster.hosts.get(name)
            if host is None:
                with self._lock:
                    host = self.roster.admit(name, self.clock.monotonic())
            # `with`, not a function that returns with the lock held: an interrupt between the
            # two would leave it held for ever.
            with host.lock:
                if not host.dropped:
                    return work(host)

    def _start_if_due(self, host: Host) -> Turn | None:
        now = self.clock.monotonic()
        if host.queue is None and now >= host.next_turn() and host.has_place():
            host.start(now)
            return Turn(host, 0.0)
        return None

    def _wait_in_line(self, name: str, owner: object) -> Turn:
        waiter = Waiter(name, owner, self.clock.monotonic())
        turn: Turn | None = None
        try:
            host = self._with_host(name, partial(self._join, waiter))
            while True:
                with host.lock:
                    turn, seconds = self._look(waiter, host)
                if turn is not None:
                    return turn
                # A clock asks of a condition only that it can be waited for.
                self.clock.wait(cast(threading.Condition, waiter), seconds)
        except BaseException:
            if turn is not None:
                turn.give_back()
            raise
        finally:
            if (left := waiter.host) is not None:
                with left.lock:
                    self._leave(waiter, left)

    def _join(self, waiter: Waiter, host: Host) -> Host:
        """Put the waiter into its host's line. A host with a line is not dropped."""
        waiter.host = host
        max_wait = host.rules.max_wait
        if max_wait is not None:
            waiter.give_up = waiter.came + max_wait
            if waiter.is_too_late(turn := host.turn_of_next()):
                raise _timeout(waiter, turn - waiter.came)
        self._waiting.add(waiter)
        host.join(waiter)
        return host

    def _leave(self, waiter: Waiter, host: Host) -> None:
        # An interrupt may strike at any point of this; whoever begins again ends the same.
        self._waiting.discard(waiter)
        host.leave(waiter)
        waiter.host = None

    def _look(self, waiter: Waiter, host: Host) -> tuple[Turn | None, float | None]:
        """The waiter's turn if it has come, otherwise the seconds after which to look again (None: when rung)."""
        if waiter.closed:
            raise SessionClosed(f"{waiter.name}: the session was closed while this request waited for its turn")
        if waiter.refused is not None:
            raise _timeout(waiter, waiter.refused)
        now = self.clock.monotonic()
        if host.is_first(waiter) and host.is_due(now) and host.has_place():
            waited = now - waiter.came
            host.start_late(now)
            host.waited += waited
            self._leave(waiter, host)
            return Turn(host, waited), None
        if host.is_limited and waiter.give_up is not None and now >= waiter.give_up:
            raise _timeout(waiter, max(0.0, host.next_turn() - now))  # nobody knows when a place comes free
        return None, host.seconds_to_look(waiter, now)


def _timeout(waiter: Waiter, seconds: float) -> ThrottleTimeout:
    return ThrottleTimeout(
        f"{waiter.name}: its next turn is {seconds:.3g} s away, further than max_wait allows",
        host=waiter.name,
        retry_after=seconds,
    )
