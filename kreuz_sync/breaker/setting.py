"""The breaker, as its users see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Shared
from kreuz_sync.urls import canonical_host, host_of

from .circuit import Rules
from .circuits import CircuitReport, Circuits
from .layer import BreakerAdapter


class Breaker(Shared):
    """A circuit for each host: a dead one is not asked again and again, at the price of a time-out each time.

    After `failures` attempts in a row that got no answer the host's circuit is open: for
    `recovery` seconds every request to it raises CircuitOpen at once, without a turn of the
    host's pace and without the wire. Then one request tries the host, at its ordinary pace, while
    the others still fail at once. An answer closes the circuit; another failure doubles
    `recovery`, up to `max_recovery` seconds.

    Failures are connections that are refused or break, names without an address, TLS and proxies
    that fail, time-outs, and deadlines that pass after a second or more without an answer. Any
    answer closes the circuit, whatever its status and whatever becomes of its body; `statuses`
    are those that shall count as failures too, such as {502, 503, 504}; none by default. What
    never got as far as the host says nothing: a wait that was too long, a rate limit, an
    interrupt. A request that tries the host and ends so lets the next one try, as does one that
    hangs for ten minutes.

    key: a function from a URL to the name that has the circuit, in place of the URL's host (see
    `urls.host_of`); "" has none. clock: where the time comes from.

    Every attempt counts, retries too. Requests that were under way, or waiting for their turn,
    when the circuit opened go on. Of the hosts that fail, the last 10,000 are remembered. A copy
    is the same breaker; a pickle carries the settings, and starts with all circuits closed.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = ("failures", "recovery", "max_recovery", "statuses", "key")
    is_breaker = True  # the session looks for this, and need not load the class

    failures: int
    recovery: float
    max_recovery: float
    statuses: frozenset[int]
    key: Callable[[str], str] | None
    clock: Clock
    circuits: Circuits  # the state; everything else is fixed

    def __init__(
        self,
        failures: int = 5,
        recovery: float = 30.0,
        max_recovery: float = 600.0,
        *,
        statuses: Iterable[int] = (),
        key: Callable[[str], str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        first = checks.seconds("recovery", recovery, above=0)
        rules = Rules(
            failures=checks.count("failures", failures, least=1),
            recovery=first,
            # A first recovery beyond the default maximum is no mistake.
            max_recovery=max(first, checks.seconds("max_recovery", max_recovery, above=0)),
        )
        self._fix(
            **rules._asdict(),
            statuses=checks.statuses("statuses", statuses),
            key=None if key is None else checks.function("key", key),
            clock=checks.clock("clock", clock),
            circuits=Circuits(rules, clock),
        )

    def __call__(self, inner: BaseAdapter) -> BaseAdapter:
        return BreakerAdapter(self, inner)

    def snapshot(self) -> dict[str, CircuitReport]:
        """Every host that failed and has not answered since, by name."""
        return self.circuits.report()

    def reset(self, host: str | None = None) -> None:
        """Close the circuit of `host`, or all of them: it is known to be back."""
        if host is not None:
            checks.text("host", host)
            host = canonical_host(host) if self.key is None else host
        self.circuits.forget(host)

    def host_of(self, url: str) -> str:
        """The name under which `url` has its circuit; "" for none."""
        return host_of(url) if self.key is None else checks.name_given("key", self.key, url)

    # --- copies -------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        Breaker.__init__(self, **state)
