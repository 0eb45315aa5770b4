"""The throttle of one process, as its users see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks, fork
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Setting
from kreuz_sync.urls import canonical_host, host_of

from .hosts import HostSettings, RuleTable
from .layer import ThrottleAdapter
from .limiter import RateLimiter
from .pace import PaceRules
from .report import HostReport
from .roster import Roster
from .turns import Turns


class Throttle(Setting, RateLimiter):
    """At least `delay` seconds between the starts of two requests to one host, whoever sends them.

    Sessions that share one have one pace. Threads that wait for a host do so in order of
    arrival, and hold up nobody who wants another host.

    A 429 or a challenge page doubles the host's delay, up to `max_delay`; from a delay of 0 it
    becomes `first_backoff`. 429s for requests sent before the last doubling are part of the
    same burst, and do not double it again. Five complete answers below 400 in a row halve it,
    down to what is configured. Retry-After on 429 and 503 pauses the host, for
    `max_retry_after` at most. All of this holds at once for requests that wait already.

    delay, max_delay, first_backoff, max_retry_after: seconds. hosts: what differs for some
    hosts, seconds or `HostSettings`, by name or by pattern (`{"*.example.com": 1.0}`); a name
    comes before a pattern, a longer pattern before a shorter one. max_wait: seconds that a
    request may wait, its time in line included; where it would be more, ThrottleTimeout is
    raised before waiting. concurrency: requests to one host under way at once, each until its
    body has been read or its response closed. key: a function from a URL to the name that has
    the pace, in place of the URL's host (see `urls.host_of`: every sub-domain is a host of its
    own; scheme and port make no difference). max_crawl_delay: the most seconds that
    `set_crawl_delay` sets.

    With more than a thousand hosts, the state of those that no longer need any is dropped. A
    backoff or a crawl delay is kept for a day after the host was last heard of.

    Turns are moments in a plan: when a thread wakes up late, the next turn is not put off by
    that. Two starts are never less than 0.9 of the delay apart, though.

    A copy is the same throttle, since a pace is shared by nature. A pickle carries the settings,
    and starts without state.
    """

    fields = (
        *("delay", "hosts", "max_delay", "max_wait", "concurrency", "key"),
        *("max_crawl_delay", "max_retry_after", "first_backoff"),
    )

    delay: float
    hosts: dict[str, float | HostSettings]
    max_delay: float
    max_wait: float | None
    concurrency: int | None
    key: Callable[[str], str] | None
    max_crawl_delay: float
    max_retry_after: float
    first_backoff: float
    clock: Clock
    turns: Turns  # the state; everything else is fixed

    def __init__(
        self,
        delay: float = 0.2,
        *,
        hosts: Mapping[str, float | HostSettings] | None = None,
        max_delay: float = 60.0,
        max_wait: float | None = None,
        concurrency: int | None = None,
        key: Callable[[str], str] | None = None,
        max_crawl_delay: float = 300.0,
        max_retry_after: float = 3600.0,
        first_backoff: float = 1.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if key is not None and not callable(key):
            raise TypeError(f"key={key!r}: a function from a URL to a name is wanted, or None")
        rules = PaceRules(
            delay=checks.seconds("delay", delay),
            max_delay=checks.seconds("max_delay", max_delay, above=0),
            first_backoff=checks.seconds("first_backoff", first_backoff, above=0),
            max_crawl_delay=checks.seconds("max_crawl_delay", max_crawl_delay),
            max_retry_after=checks.seconds("max_retry_after", max_retry_after),
            max_wait=None if max_wait is None else checks.seconds("max_wait", max_wait),
            concurrency=None if concurrency is None else checks.count("concurrency", concurrency, least=1),
        )
        table = RuleTable(hosts, rules, folded=key is None)
        turns = Turns(Roster(table), clock)
        fork.renew_in_child(turns)
        self._fix(**rules._asdict(), hosts=dict(hosts or {}), key=key, clock=clock, turns=turns)

    # --- the interface of every limiter -------------------------------------------------

    def __call__(self, inner: BaseAdapter) -> BaseAdapter:
        return ThrottleAdapter(inner, self)

    def acquire(self, host: str) -> None:
        """Wait for the host's next turn, and take it. `concurrency` is for a session's requests only.

        Raises ThrottleTimeout if the turn is further away than `max_wait`.
        """
        self.turns.take(self._name(host)).give_back()

    def record_response(self, host: str, status: int) -> None:
        """Learn from an answer to a request that was sent after all that is known of the host."""
        self.turns.answered(self._name(host), checks.count("status", status))

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Never less than `seconds` between two requests to `host`, `max_crawl_delay` at most; 0 for no such floor.

        The other delays go on beside it, and the largest holds. Seconds that are negative,
        infinite or NaN change nothing: they come from files that anybody may write.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError(f"seconds={seconds!r}: a number of seconds is wanted")
        name = self._name(host)
        if 0 <= seconds < inf:
            self.turns.set_floor(name, float(seconds))

    # --- what is known ------------------------------------------------------------------

    def delay_for(self, host: str) -> float:
        """Seconds between two requests to `host` as things stand."""
        return self.turns.delay(self._name(host))

    def wait_for(self, host: str) -> float:
        """Seconds that a request to `host` would wait for its turn now. It takes no turn."""
        return self.turns.wait(self._name(host))

    def snapshot(self) -> dict[str, HostReport]:
        """What is known of every host, by name."""
        return self.turns.snapshot()

    def host_of(self, url: str) -> str:
        """The name under which `url` has its pace; "" for a URL without a host, which has none."""
        if self.key is None:
            return host_of(url)
        name = self.key(url)
        if not isinstance(name, str):
            raise TypeError(f"key={self.key!r} gave {name!r}: a string is wanted")
        return name

    def _name(self, host: str) -> str:
        if isinstance(host, str) and host in self.turns.roster.hosts:
            return host  # known under just this name: no need to fold it
        checks.text("host", host)
        return canonical_host(host) if self.key is None else host

    # --- copies -------------------------------------------------------------------------

    __eq__ = object.__eq__  # two throttles of equal settings are two paces
    __hash__ = object.__hash__

    def __copy__(self) -> Throttle:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Throttle:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Throttle.__init__(self, **state)


def as_throttle(value: float | RateLimiter | None) -> RateLimiter | None:
    """The limiter that `Session(throttle=value)` stands for: seconds make a `Throttle`, None is none.

    Raises TypeError or ValueError for anything else.
    """
    if value is None or isinstance(value, RateLimiter):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"throttle={value!r}: seconds, a Throttle, another RateLimiter or None is wanted")
    return Throttle(checks.seconds("throttle", value))
