"""The throttle of one process, as its users see it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import checks, fork
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Shared
from kreuz_sync.urls import canonical_host, lines_of, with_port, without_port

from .hosts import HostSettings, RuleTable
from .layer import ThrottleAdapter
from .limiter import RateLimiter
from .pace import PaceRules
from .report import HostReport
from .roster import Roster
from .turns import Turns

if TYPE_CHECKING:
    from .keeper import Keeper


class Throttle(Shared, RateLimiter):
    """At least `delay` seconds between the starts of two requests to one host, whoever sends them.

    Sessions that share one have one pace. Threads that wait for a host do so in order of
    arrival, and hold up nobody who wants another host.

    A 429 or a challenge page doubles the host's delay, up to `max_delay`; from a delay of 0 it
    becomes `first_backoff`. 429s for requests sent before the last doubling are part of the
    same burst, and do not double it again. Five connections in a row that fail, with no answer
    between, double it too. Five complete answers below 400 in a row halve it,
    down to what is configured. Retry-After (on 403, 413, 429, 503, on a redirect, and where nothing is
    left) and used-up quotas, in whatever fields they are declared, pause the host, or only the bucket that the
    answer names, for `max_retry_after` at most; then one request asks whether a longer pause is over. All
    of this holds at once for requests that wait already.

    delay, max_delay, first_backoff, max_retry_after: seconds. hosts: what differs for some
    hosts, seconds or `HostSettings`, by name or by pattern (`{"*.example.com": 1.0}`); a name
    comes before a pattern, a longer pattern before a shorter one. max_wait: seconds that a
    request may wait, its time in line included; where it would be more, ThrottleTimeout is
    raised before waiting. concurrency: requests to one host under way at once, each until its
    body has been read or its response closed. key: a function from a URL to the name that has
    the pace, in place of the URL's host (see `urls.host_of`: every sub-domain is a host of its
    own; scheme and port make no difference, until `set_crawl_delay` sets a port apart).
    max_crawl_delay: the most seconds that `set_crawl_delay` sets. bucket: a function from a request to
    the name of the bucket that it belongs to, in the server's words, or None; without it that is learnt
    from answers, by method and path. smooth: spread what is left of a quota over the time until its
    reset. state: a folder, or a file whose name ends in ".json", in which what was learnt is kept for
    the next run (backoffs, pauses, crawl delays, quotas); it is written some seconds after a change,
    when a session is closed, at the end of the program, and by `save`.

    With more than a thousand hosts, the state of those that no longer need any is dropped. A
    backoff or a crawl delay is kept for a day after the host was last heard of.

    Turns are moments in a plan: when a thread wakes up late, the next turn is not put off by
    that. Two starts are never less than 0.9 of the delay apart, though.

    A copy is the same throttle, since a pace is shared by nature. A pickle carries the settings,
    and starts without state, or with what is in the file.
    """

    fields: tuple[str, ...] = (
        *("delay", "hosts", "max_delay", "max_wait", "concurrency", "key", "bucket", "smooth"),
        *("max_crawl_delay", "max_retry_after", "first_backoff", "state"),
    )

    delay: float
    hosts: dict[str, float | HostSettings]
    max_delay: float
    max_wait: float | None
    concurrency: int | None
    key: Callable[[str], str] | None
    bucket: Callable[[requests.PreparedRequest], str | None] | None
    smooth: bool
    max_crawl_delay: float
    max_retry_after: float
    first_backoff: float
    state: str | None
    clock: Clock
    turns: Turns  # the state; everything else is fixed
    _keeper: Keeper | None

    def __init__(
        self,
        delay: float = 0.2,
        *,
        hosts: Mapping[str, float | HostSettings] | None = None,
        max_delay: float = 60.0,
        max_wait: float | None = None,
        concurrency: int | None = None,
        key: Callable[[str], str] | None = None,
        bucket: Callable[[requests.PreparedRequest], str | None] | None = None,
        smooth: bool = False,
        max_crawl_delay: float = 300.0,
        max_retry_after: float = 300.0,
        first_backoff: float = 1.0,
        state: str | os.PathLike[str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if key is not None and not callable(key):
            raise TypeError(f"key={key!r}: a function from a URL to a name is wanted, or None")
        if bucket is not None and not callable(bucket):
            raise TypeError(f"bucket={bucket!r}: a function from a request to a name is wanted, or None")
        rules = PaceRules(
            delay=checks.seconds("delay", delay),
            max_delay=checks.seconds("max_delay", max_delay, above=0),
            first_backoff=checks.seconds("first_backoff", first_backoff, above=0),
            max_crawl_delay=checks.seconds("max_crawl_delay", max_crawl_delay),
            max_retry_after=checks.seconds("max_retry_after", max_retry_after),
            max_wait=None if max_wait is None else checks.seconds("max_wait", max_wait),
            concurrency=None if concurrency is None else checks.count("concurrency", concurrency, least=1),
            smooth=checks.flag("smooth", smooth),
        )
        table = RuleTable(hosts, rules, folded=key is None)
        turns = self._turns_of(table, checks.clock("clock", clock))
        fork.renew_in_child(turns)
        self._fix(**rules._asdict(), hosts=dict(hosts or {}), key=key, bucket=bucket, clock=clock, turns=turns)
        self._fix(state=_state(state), _keeper=None)
        if self.state is not None:
            self._fix(_keeper=_keeper(self.state, turns, clock))

    def _turns_of(self, table: RuleTable, clock: Clock) -> Turns:
        """The state to begin with."""
        return Turns(Roster(table), clock)

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
        name = self._name(host)
        self.turns.answered(name, checks.count("status", status))
        known = self.turns.roster.hosts.get(name)
        if known is not None and known.cut:
            self.turns.heed(name, None)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Never less than `seconds` between two requests to `host`, `max_crawl_delay` at most; 0 for no such floor.

        A name with a port (`example.com:8080`) is that port's alone: as long as it has a floor it
        has its own line, beside that of the host's other ports, which goes on as it is.

        The other delays go on beside it, and the largest holds. Seconds that are negative,
        infinite or NaN change nothing: they come from files that anybody may write.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError(f"seconds={seconds!r}: a number of seconds is wanted")
        name = self._name(host)
        if 0 <= seconds < inf:
            if self._keeper is not None:
                self._keeper.told_floor(name)
            self.turns.set_floor(name, float(min(seconds, self.max_crawl_delay)))

    def save(self) -> None:
        """Write what is known of the hosts to `state` now. Without that, do nothing."""
        if self._keeper is not None:
            self._keeper.save()

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
        if self.key is not None:
            return checks.name_given("key", self.key, url)
        host, with_port = lines_of(url)
        return host if with_port is None or not self.turns.has_floor(with_port) else with_port

    def ask_of(self, request: requests.PreparedRequest) -> requests.PreparedRequest | str:
        """What tells the bucket that `request` belongs to: the request itself, or the name that `bucket` gives."""
        if self.bucket is None:
            return request
        name = self.bucket(request)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"bucket={self.bucket!r} gave {name!r}: a string is wanted, or None")
        return name or ""

    def line_of(self, url: str) -> str:
        """The name to give `set_crawl_delay` for what the robots.txt of `url`'s origin asks.

        The host's, with the port unless that is the scheme's own: what listens at another port may
        be another server.
        """
        if self.key is None:
            host, with_port = lines_of(url)
            return with_port or host
        return self.host_of(url)

    def _name(self, host: str) -> str:
        if isinstance(host, str) and host in self.turns.roster.hosts:
            return host  # known under just this name: no need to fold it
        checks.text("host", host)
        if self.key is not None:
            return host
        bare = without_port(host)
        return canonical_host(host) if bare is None else with_port(canonical_host(bare), host.rpartition(":")[2])

    # --- copies -------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        Throttle.__init__(self, **state)


def _state(value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return checks.text("state", path)


def _keeper(path: str, turns: Turns, clock: Clock) -> Keeper:
    from .keeper import Keeper

    keeper = Keeper(path, turns, clock)
    keeper.load()
    turns.on_change = keeper.changed
    return keeper


def as_throttle(value: float | RateLimiter | None) -> RateLimiter | None:
    """The limiter that `Session(throttle=value)` stands for: seconds make a `Throttle`, None is none.

    Raises TypeError or ValueError for anything else.
    """
    if value is None or isinstance(value, RateLimiter):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"throttle={value!r}: seconds, a Throttle, another RateLimiter or None is wanted")
    return Throttle(checks.seconds("throttle", value))
