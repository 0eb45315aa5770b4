"""The budget, as its users see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Setting, Shared
from kreuz_sync.throttle.hosts import HostTable
from kreuz_sync.urls import canonical_host, host_of

from .account import Limits, Spending
from .layer import BudgetAdapter
from .ledger import UNLIMITED, Ledger

ALL_OTHERS = "*"


class HostBudget(Setting):
    """What one host may have: `requests` on the wire, `bytes` of their bodies, `seconds` since the first.

    None is no limit. Raises TypeError or ValueError, naming the argument.
    """

    fields = ("requests", "bytes", "seconds")

    requests: int | None
    bytes: int | None
    seconds: float | None

    def __init__(self, requests: int | None = None, *, bytes: int | None = None, seconds: float | None = None) -> None:
        self._fix(**_limits(requests, bytes, seconds)._asdict())


class Budget(Shared):
    """So many requests, bytes and seconds for a whole session, and for each of its hosts.

    requests: attempts on the wire: first tries, retries, redirects, robots.txt files. What a cache
    answers is none, nor is what is refused before it is sent. bytes: of bodies, as they come off
    the wire, before they are decoded; of streams too, as they are read. They are counted only where
    there is a limit of them. seconds: since the first request. None is no limit.

    per_host: the same for each host alone: a number of requests or a `HostBudget` for every host,
    or a mapping of hosts to these (`{"*.example.com": 100, "*": 10}`; a name comes before a
    pattern, a longer pattern before a shorter one, and "*" is for all others).

    What is used up raises BudgetExceeded, before the request takes a turn of its host's pace. A
    number of requests is never exceeded, by however many threads. A body that is not streamed and
    says how long it is (Content-Length) is charged before it is read, and not read at all if it is
    longer than what is left. Any other is charged as it comes, and ends with the same error when it
    crosses the budget, at the latest one read later. When the seconds are over, what is under way is
    ended, and so are waits for a turn.

    key: a function from a URL to the name that has the budget, in place of the URL's host (see
    `urls.host_of`); "" has none of its own. clock: where the time comes from.

    Sessions that share a budget spend it together. A copy is the same budget; a pickle carries the
    settings, and has spent nothing; the child of a fork goes on from what was spent, by itself.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = ("requests", "bytes", "seconds", "per_host", "key")
    is_budget = True  # the session looks for this, and need not load the class

    requests: int | None
    bytes: int | None
    seconds: float | None
    per_host: int | HostBudget | dict[str, int | HostBudget] | None
    key: Callable[[str], str] | None
    clock: Clock
    ledger: Ledger  # the state; everything else is fixed

    def __init__(
        self,
        requests: int | None = None,
        *,
        bytes: int | None = None,
        seconds: float | None = None,
        per_host: int | HostBudget | Mapping[str, int | HostBudget] | None = None,
        key: Callable[[str], str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        limits = _limits(requests, bytes, seconds)
        table = _table(per_host, folded=key is None)
        self._fix(
            **limits._asdict(),
            per_host=dict(per_host) if isinstance(per_host, Mapping) else per_host,
            key=None if key is None else checks.function("key", key),
            clock=checks.clock("clock", clock),
            ledger=Ledger(limits, table, clock),
        )

    def __call__(self, inner: BaseAdapter) -> BaseAdapter:
        return BudgetAdapter(self, inner)

    def used(self, host: str | None = None) -> Spending:
        """What has been used: by all of it, or by one host that has limits of its own."""
        return self.ledger.used(self._name(host))

    def left(self, host: str | None = None) -> Spending:
        """What is left: of all of it, or for one host by itself. None is no limit."""
        return self.ledger.left(self._name(host))

    def snapshot(self) -> dict[str, Spending]:
        """What has been used by every host that has limits of its own, by name."""
        return self.ledger.report()

    def reset(self) -> None:
        """Begin anew: nothing has been used. What is under way at that moment belongs to what was before."""
        self.ledger.reset()

    def host_of(self, url: str) -> str:
        """The name under which `url` is charged besides the session; "" for none."""
        return host_of(url) if self.key is None else checks.name_given("key", self.key, url)

    def _name(self, host: str | None) -> str:
        if host is None:
            return ""
        checks.text("host", host)
        return canonical_host(host) if self.key is None else host

    # --- copies -------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        Budget.__init__(self, **state)


def _limits(requests: Any, size: Any, seconds: Any, argument: str = "") -> Limits:
    return Limits(
        requests=None if requests is None else checks.count(argument or "requests", requests),
        bytes=None if size is None else checks.count("bytes", size),
        seconds=None if seconds is None else checks.seconds("seconds", seconds, above=0),
    )


def _table(per_host: Any, *, folded: bool) -> HostTable[Limits]:
    hosts = dict(per_host) if isinstance(per_host, Mapping) else {ALL_OTHERS: per_host}
    others = hosts.pop(ALL_OTHERS, None)
    default = UNLIMITED if others is None else _host_limits("per_host", others)
    return HostTable(hosts, default, _host_limits, folded=folded, argument="per_host", others="'*'")


def _host_limits(name: str, value: Any) -> Limits:
    if isinstance(value, HostBudget):
        return Limits(value.requests, value.bytes, value.seconds)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: a number of requests or a HostBudget(...) is wanted")
    return _limits(value, None, None, name)
