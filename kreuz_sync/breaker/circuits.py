"""The hosts that failed lately, and the one lock that guards their circuits."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Any, NamedTuple

from kreuz_sync import fork
from kreuz_sync.clock import Clock
from kreuz_sync.errors import CircuitOpen

from .circuit import Circuit, Rules, failed

# Hosts whose failures are kept: the last that failed. One that is forgotten counts as one that never did.
HOSTS_KEPT = 10_000

# A request that tries a host may wait for its turn, and then for its time-out. One that takes longer than all
# that hangs, and must not keep the host out of reach for ever.
PROBE_S = 600.0

_log = logging.getLogger("kreuz_sync.breaker")


class CircuitReport(NamedTuple):
    """One host that failed, and has not answered since.

    state: "closed" (it fails, but not yet often enough), "open", or "probing" while one request
    tries it. failures: in a row. last: the tag of the latest. recovery: seconds that the circuit
    stays open this time, 0.0 while it is closed. retry_after: seconds until a request may try
    the host, 0.0 for now.
    """

    state: str
    failures: int
    last: str
    recovery: float
    retry_after: float


class Probe:
    """Leave to try a host whose circuit is open. began: when.

    The place it takes is given back, or falls free when the probe is forgotten: an interrupt may
    strike between any two steps of whoever has it.
    """

    __slots__ = ("__weakref__", "began")

    def __init__(self, began: float) -> None:
        self.began = began


class _Known:
    """A host's circuit, and its probe (a weak reference; None for none)."""

    __slots__ = ("circuit", "probe")

    def __init__(self) -> None:
        self.circuit = Circuit()
        self.probe: weakref.ref[Probe] | None = None

    def has(self, probe: Probe | None) -> bool:
        return probe is not None and self.probe is not None and self.probe() is probe


class Circuits:
    """Every host's circuit in this process, and the probes under way.

    hosts: those that failed, and have not answered since; the one that failed longest ago stands
    first. `_lock` guards it and what is in it; looking whether a host is there needs none. It is
    held for arithmetic alone, and taken in no finalizer.
    """

    def __init__(self, rules: Rules, clock: Clock) -> None:
        self.rules = rules
        self.clock = clock
        self.hosts: dict[str, _Known] = {}
        self._lock = threading.Lock()
        fork.renew_in_child(self)

    def admit(self, name: str) -> Probe | None:
        """Let a request to the host `name` pass; with a `Probe` if it is the one to try an open circuit.

        Raises CircuitOpen.
        """
        known = self.hosts.get(name)
        if known is None or not known.circuit.is_open:
            return None
        with self._lock:
            known = self.hosts.get(name)
            if known is None or not known.circuit.is_open:
                return None
            now = self.clock.monotonic()
            circuit, probing = known.circuit, self._is_probing(known, now)
            if not probing and now >= circuit.ready:
                probe = Probe(now)
                known.probe = weakref.ref(probe)
                return probe
        raise _refused(name, circuit, None if probing else circuit.ready - now, self.clock.wall())

    def answered(self, name: str) -> None:
        """The host has answered: its circuit is closed, whoever asked."""
        if name not in self.hosts:
            return
        with self._lock:
            known = self.hosts.pop(name, None)
        if known is not None and known.circuit.is_open:
            _log.info("%s: it answers again", name, extra={"event": "circuit_closed", "host": name})

    def failed(self, name: str, tag: str, probe: Probe | None) -> None:
        """The host has failed, in the way that `tag` names; probe: that of the request, None if it had none."""
        with self._lock:
            # Taken out and put in again: the host that failed longest ago stands first.
            known = self.hosts.pop(name, None) or _Known()
            self.hosts[name] = known
            before, mine = known.circuit, known.has(probe)
            known.circuit = after = failed(before, tag, self.rules, now=self.clock.monotonic(), probe=mine)
            if mine:
                known.probe = None
            if len(self.hosts) > HOSTS_KEPT:
                del self.hosts[next(iter(self.hosts))]
        if after.is_open and not before.is_open:
            told = _told("circuit_open", name, after)
            _log.warning("%s: %s, the last: %s; left alone for %.3g s", name, _row(after), *after[1:3], extra=told)
        elif after is not before and after.is_open:
            told = _told("circuit_still_open", name, after)
            _log.info("%s: still failing (%s); left alone for %.3g s", name, after.last, after.recovery, extra=told)

    def give_back(self, name: str, probe: Probe) -> None:
        """The probe has found out nothing: the next request may try."""
        with self._lock:
            known = self.hosts.get(name)
            if known is not None and known.has(probe):
                known.probe = None

    def forget(self, name: str | None) -> None:
        """Close the circuit of `name`, or all of them."""
        with self._lock:
            if name is None:
                self.hosts.clear()
            else:
                self.hosts.pop(name, None)

    def report(self) -> dict[str, CircuitReport]:
        """Every host that failed and has not answered since."""
        with self._lock:
            now = self.clock.monotonic()
            return {name: self._report(known, now) for name, known in self.hosts.items()}

    def after_fork(self) -> None:
        """In the child: a new lock, since a thread that is gone may hold the old one, and no probes of such threads."""
        self._lock = threading.Lock()
        for known in self.hosts.values():
            known.probe = None

    def _is_probing(self, known: _Known, now: float) -> bool:
        probe = None if known.probe is None else known.probe()
        return probe is not None and now - probe.began < PROBE_S

    def _report(self, known: _Known, now: float) -> CircuitReport:
        circuit = known.circuit
        state = "closed" if not circuit.is_open else "probing" if self._is_probing(known, now) else "open"
        return CircuitReport(state, *circuit[:3], retry_after=max(0.0, circuit.ready - now))


def _refused(name: str, circuit: Circuit, seconds: float | None, wall: float) -> CircuitOpen:
    when = "one request is trying it now" if seconds is None else f"it may be tried again in {seconds:.3g} s"
    text = f"{name}: {_row(circuit)}, the last: {circuit.last}; {when}"
    return CircuitOpen(text, host=name, last=circuit.last, retry_after=seconds, as_of=wall)


def _row(circuit: Circuit) -> str:
    return "1 failure" if circuit.failures == 1 else f"{circuit.failures} failures in a row"


def _told(event: str, name: str, circuit: Circuit) -> dict[str, Any]:
    """What a log record has besides its text."""
    return {"event": event, "host": name, "tag": circuit.last, "seconds": circuit.recovery}
