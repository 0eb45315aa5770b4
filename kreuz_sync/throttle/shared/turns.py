"""Turns of a pace that is kept together: the first in each line asks the server for leave, on behalf of all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, cast

from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.clock import Clock
from kreuz_sync.throttle.gate import Gate
from kreuz_sync.throttle.hosts import RuleTable
from kreuz_sync.throttle.line import Host
from kreuz_sync.throttle.pace import NEUTRAL, TOO_MANY, PaceRules
from kreuz_sync.throttle.roster import Roster
from kreuz_sync.throttle.turn import Turn
from kreuz_sync.throttle.turns import Turns
from kreuz_sync.throttle.waiter import Waiter

from .line import SharedHost
from .steps import Known, State, Steps

if TYPE_CHECKING:
    from kreuz_sync.throttle.verdict import Declared

_log = logging.getLogger("kreuz_sync.throttle")

_SAME_S = 0.001

Learn = Callable[[PaceRules, Known], State]


class SharedTurns(Turns):
    """Every host's line in this process, and the place that says when the first of each may go.

    What is said of locks in `Turns` holds here: no lock is held while the server is asked, and of each
    line at most one thread asks. If it cannot be asked the turns are those of this process alone.
    """

    def __init__(self, table: RuleTable, clock: Clock, steps: Steps) -> None:
        super().__init__(Roster(table, SharedHost), clock)
        self._steps = steps
        # One step of a dict decides which of several threads is the first to tell.
        self._told: dict[str, object] = {}

    # --- leave --------------------------------------------------------------------------

    def _start_if_due(self, host: Host, ask: Any) -> Turn | None:
        return None  # the server is to be asked, and no lock held meanwhile

    def _has_leave(self, host: Host) -> bool:
        return _shared(host).has_leave

    def _rest(self, waiter: Waiter, host: Host, seconds: float | None) -> None:
        shared = _shared(host)
        with host.lock:
            now = self.clock.monotonic()
            asks = shared.should_ask(waiter, now)
            if asks:
                shared.asking = waiter  # `leave` takes that back, whatever happens
                known, claim, least = shared.begin(now), shared.claim, shared.delay_at(now)
                patience = None if waiter.give_up is None else max(0.0, waiter.give_up - now)
        if not asks:
            super()._rest(waiter, host, seconds)
            return
        try:
            leave, state = self._steps.take(host.name, host.rules, known, claim, patience=patience, least=least)
        except StoreTrouble as trouble:
            self._tell(trouble)
            with host.lock:
                shared.fail(known)
                if shared.asking is waiter:
                    shared.go_alone()
                    shared.ring_first()
            return
        except BaseException:
            with host.lock:
                shared.fail(known)
            raise
        self._recovered()
        with host.lock:
            now = self.clock.monotonic()
            shared.heed_state(state, now)
            if shared.asking is waiter:
                shared.heed_leave(leave, waiter, now)
            shared.reconsider(now)

    # --- learning -----------------------------------------------------------------------

    def answered(self, name: str, status: int, *, raised: float = inf, pause: float = 0.0) -> None:
        host = self.roster.hosts.get(name)
        if status == TOO_MANY or (host is not None and (host.backoff or host.unreached)):
            how = "many" if status == TOO_MANY else "good" if status < 400 else "bad"
            if status in NEUTRAL:
                how = "neutral"
            self._share(
                name,
                lambda rules, known: self._steps.answer(name, rules, known, how, raised),
                lambda: super(SharedTurns, self).answered(name, status, raised=raised),
                limited=status == TOO_MANY,
            )
        if pause > 0:
            self._sharing_pauses(name, lambda: self.learn(name, lambda host, now: _paused(host, pause, now)))

    def failed(self, name: str, *, unreachable: bool = False, raised: int | float = inf) -> None:
        host = self.roster.hosts.get(name)
        if host is None or not (unreachable or host.backoff):
            return  # there is no run of successes to break
        how = "unreachable" if unreachable else "failed"
        self._share(
            name,
            lambda rules, known: self._steps.answer(name, rules, known, how, raised),
            lambda: super(SharedTurns, self).failed(name, unreachable=unreachable, raised=raised),
        )

    def heed(
        self, name: str, said: Declared | None, turn: Turn | None = None, ask: Any = None, *, answered: bool = True
    ) -> None:
        def heed() -> None:
            super(SharedTurns, self).heed(name, said, turn, ask, answered=answered)

        if (said is not None and said.pause > 0) or self._with_host(name, _is_paused, self.clock.monotonic()):
            self._sharing_pauses(name, heed)
        else:
            heed()

    def set_floor(self, name: str, seconds: float) -> None:
        is_new = name not in self.roster.hosts
        super().set_floor(name, seconds)
        if is_new:
            self._with_host(name, _joins)
        floor = min(seconds, self.roster.table.find(name).max_crawl_delay)
        self._share(name, lambda rules, known: self._steps.floor(name, rules, known, floor))

    def _sharing_pauses(self, name: str, change: Callable[[], object]) -> None:
        """Make a change here, and have the server learn what it has changed of the host's pauses."""
        before = self._with_host(name, _gates)
        change()
        now = self.clock.monotonic()
        for bucket, (until, cut) in self._with_host(name, _gates).items():
            until_before, cut_before = before.get(bucket, (-inf, False))
            if abs(max(until, now) - max(until_before, now)) > _SAME_S or cut != cut_before:
                self._share_pause(name, bucket, max(0.0, until - now), cut, is_longer=until > until_before + _SAME_S)

    def _share_pause(self, name: str, bucket: str, seconds: float, cut: bool, *, is_longer: bool) -> None:
        if bucket:
            self._share(name, lambda rules, known: self._steps.bucket(name, rules, known, bucket, seconds, cut))
            return
        # Only the pause that is known here may become shorter.
        instead_of = self._with_host(name, lambda host: -1 if is_longer else host.paused_us)
        self._share(name, lambda rules, known: self._steps.pause(name, rules, known, seconds, cut, instead_of))

    def _share(
        self, name: str, learn: Learn, alone: Callable[[], object] | None = None, *, limited: bool = False
    ) -> None:
        """Have the server learn something; or else learn it `alone`."""
        host = cast(SharedHost, self._with_host(name, lambda host: host))
        with host.lock:
            known = host.begin(self.clock.monotonic())
        try:
            state = learn(host.rules, known)
        except StoreTrouble as trouble:
            self._tell(trouble)
            with host.lock:
                host.fail(known)
            if alone is not None:
                alone()
            return
        except BaseException:
            with host.lock:
                host.fail(known)
            raise
        self._recovered()
        with host.lock:
            now = self.clock.monotonic()
            host.seen = now
            host.limited += limited
            host.heed_state(state, now)
            host.reconsider(now)

    # --- trouble ------------------------------------------------------------------------

    def _tell(self, trouble: StoreTrouble) -> None:
        ours = object()
        level = logging.WARNING if self._told.setdefault("out", ours) is ours else logging.DEBUG
        text = "%s: until it is back, this process keeps the pace of each host by itself"
        _log.log(level, text, trouble, extra={"event": "pace_store_trouble"})

    def _recovered(self) -> None:
        if self._told and self._told.pop("out", None) is not None:
            _log.info("the pace is kept together again", extra={"event": "pace_store_recovery"})


def _shared(host: Host) -> SharedHost:
    assert isinstance(host, SharedHost)
    return host


def _joins(host: Host) -> None:
    """Of a line that went on from another, the server knows nothing yet."""
    shared = _shared(host)
    shared.joins = shared.alone = True


def _is_paused(host: Host, now: float) -> bool:
    return host.cut or now < host.paused_until or (host.buckets is not None and not host.buckets.is_idle(now))


def _paused(host: Host, seconds: float, now: float) -> bool:
    host.pause(seconds, now=now)
    return True


def _gates(host: Host) -> dict[str, tuple[float, bool]]:
    """The end of each pause, and whether it was cut; "" for the host's own."""
    gates: dict[str, Gate] = {"": host}
    if host.buckets is not None:
        gates.update(host.buckets.by_name)
    return {name: (gate.paused_until, gate.cut) for name, gate in gates.items()}
