"""Turns, handed out in order of arrival: each host's lock, and the waiting outside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kreuz_sync.clock import Clock
from kreuz_sync.errors import DeadlineExceeded, SessionClosed, ThrottleTimeout

from .line import Host
from .pace import TOO_MANY
from .report import HostReport
from .roster import KEPT, Roster
from .turn import Turn
from .waiter import Waiter

if TYPE_CHECKING:
    from kreuz_sync.calls import Helper

    from .verdict import Declared

Result = TypeVar("Result")


class Turns:
    """Every host's pace and line in this process.

    `Host.lock` guards one host's pace and line; `_lock` guards the roster, which hosts there
    are. Both are held for arithmetic alone, never while a thread waits or sends. A thread that
    holds a host's lock takes no other; one that holds the roster's may take a host's.
    A host is dropped with its lock held, and says so: who was waiting for that lock asks the
    roster again, so that there are never two locks for one host.
    """

    def __init__(self, roster: Roster, clock: Clock) -> None:
        self.roster = roster
        self.clock = clock
        self.on_change: Callable[[], object] | None = None  # called after a change that is worth saving
        self._lock = threading.Lock()
        self._waiting: set[Waiter] = set()  # each change is one step, and so is a copy

    # --- one request --------------------------------------------------------------------

    def take(
        self,
        name: str,
        owner: object = None,
        seconds: float | None = None,
        ask: Any = None,
        not_before: float = -inf,
        helper: Helper | None = None,
    ) -> Turn:
        """Wait for the next turn of the host `name`, and take it.

        `owner` is what `wake` names. seconds: what is left until the call's deadline, None for no deadline.
        ask: the request, or the name of its bucket (see `Buckets.find`). not_before: a moment to wait for first.
        helper: who makes the call for somebody else; it is told of a wait, and is the owner then.
        Raises ThrottleTimeout, DeadlineExceeded, and SessionClosed after `wake(owner)`. With these, as with
        an interrupt, the place in line is given up and no turn is used.
        """
        if len(self.roster.hosts) > KEPT:
            with self._lock:
                self.roster.sweep(self.clock.monotonic())
        turn = self._with_host(name, self._start_if_due, ask) if not_before == -inf else None
        if turn is not None:
            return turn
        waiter = Waiter(name, helper or owner, self.clock.monotonic(), ask, not_before)
        if seconds is not None:
            waiter.deadline = waiter.give_up = waiter.came + seconds
        if helper is not None:
            return helper.wait(partial(self._wait_in_line, waiter), self)
        return self._wait_in_line(waiter)

    def answered(self, name: str, status: int, *, raised: float = inf, pause: float = 0.0) -> None:
        """Learn from an answer. pause: seconds the host asks to be left alone.

        raised: that of the request's turn; inf for one sent after all that is known.
        """
        host = self.roster.hosts.get(name)
        if status != TOO_MANY and not pause and (host is None or not (host.backoff or host.unreached)):
            return  # nearly every answer: there is nothing to learn, and no lock to wait for

        def learn(host: Host, now: float) -> bool:
            before = host.delay, host.paused_until
            host.answered(status, now=now, raised=raised)
            if pause > 0:
                host.pause(pause, now=now)
            return before != (host.delay, host.paused_until)

        self.learn(name, learn)

    def heed(
        self, name: str, said: Declared | None, turn: Turn | None = None, ask: Any = None, *, answered: bool = True
    ) -> None:
        """Learn what an answer says of its host's pace; None for nothing.

        turn: the request's, None for one sent after all that is known. ask: as of `take`. answered: one came.
        """

        def learn(host: Host, now: float) -> bool:
            if turn is None or turn.is_probe:
                host.end_probe(ask, now, answered=answered)
            if said is not None:
                host.heed_answer(said, now=now, sent=now if turn is None else turn.sent, ask=ask)
            return True

        self.learn(name, learn)

    def failed(self, name: str, *, unreachable: bool = False, raised: int | float = inf) -> None:
        """Learn that no answer came. unreachable: since there was no connection, or it broke."""

        def learn(host: Host, now: float) -> bool:
            before = host.delay
            host.failed()
            if unreachable:
                host.unreachable(now=now, raised=raised)
            return host.delay != before

        if name in self.roster.hosts:
            self.learn(name, learn)

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
        """Never less than `seconds` between two starts.

        A port that gets a line of its own begins where its host's line is.
        """
        shared = self.roster.shared_line(name)

        def learn(host: Host, now: float) -> bool:
            if shared is not None and not host.starts:
                host.go_on_from(shared)
            host.set_floor(seconds, now=now)
            return True

        self.learn(name, learn)

    def has_floor(self, name: str) -> bool:
        """Whether there is a floor under the delay of `name`."""
        host = self.roster.hosts.get(name)
        return host is not None and host.floor > 0

    def delay(self, name: str) -> float:
        """Seconds between two starts as things stand."""
        host = self.roster.hosts.get(name)
        return self.roster.table.find(name).delay if host is None else host.delay_at(self.clock.monotonic())

    def wait(self, name: str) -> float:
        """Seconds that a request would wait now."""
        host = self.roster.hosts.get(name)
        if host is None:
            return 0.0
        with host.lock:
            return max(0.0, host.turn_of_next() - self.clock.monotonic())

    def snapshot(self) -> dict[str, HostReport]:
        """What is known of every host."""
        now = self.clock.monotonic()
        return {name: host.report(now) for name, host in self._known()}

    def each(self, work: Callable[[Host, float], Result]) -> dict[str, Result]:
        """What `work` makes of every host, with its lock held, and of the moment."""
        now, made = self.clock.monotonic(), {}
        for name, host in self._known():
            with host.lock:
                made[name] = work(host, now)
        return made

    def _known(self) -> list[tuple[str, Host]]:
        with self._lock:
            return list(self.roster.hosts.items())

    def after_fork(self) -> None:
        """In the child: new locks, since threads that are gone may hold the old ones, and empty lines."""
        self._lock = threading.Lock()
        self._waiting = set()
        self.roster.forget_threads()

    def learn(self, name: str, learn: Callable[[Host, float], bool]) -> None:
        """Have the host learn something now; if `learn` says that it changes anything, those who wait see it."""
        if self._with_host(name, self._with_those_who_wait, learn) and self.on_change is not None:
            self.on_change()

    def _with_those_who_wait(self, host: Host, learn: Callable[[Host, float], bool]) -> bool:
        now = self.clock.monotonic()
        is_changed = learn(host, now)
        if is_changed:
            host.reconsider(now)
        return is_changed

    # --- waiting ------------------------------------------------------------------------

    def _with_host(self, name: str, work: Callable[..., Result], *given: Any) -> Result:
        """What `work` makes of the host's state, new where there is none, and of `given`, with its lock held."""
        while True:
            host = self.roster.hosts.get(name)
            if host is None:
                with self._lock:
                    host = self.roster.admit(name, self.clock.monotonic())
            # `with`, not a function that returns with the lock held: an interrupt between the
            # two would leave it held for ever.
            with host.lock:
                if not host.dropped:
                    return work(host, *given)

    def _start_if_due(self, host: Host, ask: Any) -> Turn | None:
        now = self.clock.monotonic()
        if host.queue is not None or now < host.next_turn() or not host.has_place():
            return None
        is_probe = False
        if host.buckets is not None and (bucket := host.buckets.find(ask)) is not None:
            if bucket.holds(now):
                return None
            is_probe = bucket.cut
            bucket.passed(now)
        host.start(now)
        return Turn(host, now, 0.0, is_probe)

    def _wait_in_line(self, waiter: Waiter) -> Turn:
        turn: Turn | None = None
        try:
            host = self._with_host(waiter.name, self._join, waiter)
            while True:
                with host.lock:
                    turn, pause = self._look(waiter, host)
                if turn is not None:
                    return turn
                self._rest(waiter, host, pause)
        except BaseException:
            if turn is not None:
                turn.give_back()
            raise
        finally:
            if waiter.host is not None:
                try:
                    self._abandon(waiter, waiter.host)
                except BaseException:  # an interrupt: nobody else would take the waiter out of the line
                    self._abandon(waiter, waiter.host)
                    raise

    def _rest(self, waiter: Waiter, host: Host, seconds: float | None) -> None:
        """Wait until it may be time to look again. No lock is held."""
        # A clock asks of a condition only that it can be waited for.
        self.clock.wait(cast(threading.Condition, waiter), seconds)

    def _has_leave(self, host: Host) -> bool:
        """Whether nobody else has to be asked before the first in line goes."""
        return True

    def _join(self, host: Host, waiter: Waiter) -> Host:
        """Put the waiter into its host's line. A host with a line is not dropped."""
        waiter.host = host
        max_wait = host.rules.max_wait
        if max_wait is not None:
            waiter.give_up = min(waiter.came + max_wait, inf if waiter.deadline is None else waiter.deadline)
        if waiter.is_too_late(turn := host.turn_of(waiter, waiter.came)):
            raise self._too_late(waiter, turn - waiter.came)
        self._waiting.add(waiter)
        host.join(waiter, waiter.came)
        return host

    def _abandon(self, waiter: Waiter, host: Host | None) -> None:
        if host is not None:
            with host.lock:
                self._leave(waiter, host)

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
            raise self._too_late(waiter, waiter.refused)
        now = self.clock.monotonic()
        if waiter.deadline is not None and now >= waiter.deadline:  # a turn now would be of no use
            raise self._too_late(waiter, max(0.0, host.earliest(waiter) - now))
        host.move_up(now)
        if host.is_first(waiter) and host.is_due(now) and host.has_place() and self._has_leave(host):
            waited = now - waiter.came
            host.start_late(now)
            host.waited += waited
            self._leave(waiter, host)
            return Turn(host, now, waited, waiter.is_probe), None
        if host.is_limited and waiter.give_up is not None and now >= waiter.give_up:
            raise self._too_late(waiter, max(0.0, host.earliest(waiter) - now))  # nobody knows when a place comes free
        return None, host.seconds_to_look(waiter, now)

    def _too_late(self, waiter: Waiter, seconds: float) -> ThrottleTimeout | DeadlineExceeded:
        as_of = self.clock.wall()
        if waiter.deadline is not None and waiter.give_up == waiter.deadline:
            text = f"{waiter.name}: its next turn is {seconds:.3g} s away, beyond the call's deadline"
            return DeadlineExceeded(text, retry_after=seconds, as_of=as_of)
        return ThrottleTimeout(
            f"{waiter.name}: its next turn is {seconds:.3g} s away, further than max_wait allows",
            host=waiter.name,
            retry_after=seconds,
            as_of=as_of,
        )
