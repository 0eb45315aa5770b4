"""The throttle of several machines, which keep one pace through Redis or Valkey."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import requests

from kreuz_sync import checks
from kreuz_sync.cache.remote.names import raw
from kreuz_sync.cache.remote.wire import Server, Step
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.redis_clients import A_FUNCTION, require_picklable

from .hosts import HostSettings, RuleTable
from .local import Throttle
from .shared.scripts import LEARN, TAKE
from .shared.steps import Steps
from .shared.turns import SharedTurns


class RedisSteps(Steps):
    """Each step is a script on the server."""

    def __init__(self, client: Any, timeout: float, namespace: str) -> None:
        self._server = Server(client, timeout)
        self._prefix = f"{namespace}:pace:" if namespace else "pace:"

    def send(self, what: str, name: str, words: tuple[bytes, ...]) -> Any:
        (answer,) = self._server.run(Step(TAKE if what == "take" else LEARN, (raw(self._prefix + name),), words))
        return answer

    def close(self) -> None:
        self._server.close()


class RedisThrottle(Throttle):
    """A `Throttle` whose pace is kept by all who use one server, with one `namespace`.

    client: a `redis.Redis` or `redis.RedisCluster` (valkey-py's do as well), which stays yours: it is
    neither used to send anything nor closed. The throttle has connections of its own, to the same place
    and with the same log-in. Or a function without arguments that makes such a client, called when the
    throttle is first used: with one that can be pickled, so can the throttle. namespace: goes before
    every key, as `namespace:pace:HOST`, unless it is empty. timeout: seconds after which a server counts
    as failed that has not answered; then it is left alone for as long again. The rest is as of `Throttle`, but that
    there is no `state`: that is in Redis. All who share a namespace should have the same settings.

    Shared are turns, backoffs, crawl delays, and pauses of hosts and of their buckets. Each process has its own
    count for `concurrency`, and its own line, in which threads wait in order of arrival: the first of them has a slot
    that no other process gets, and asks at that moment whether it holds still. What others
    have learnt since is known by then: a 429 for one of them makes the slots void that are further on.
    Two requests are let go at least the delay apart by the server's clock, no machine's. The slot of a process that is
    killed stays empty: that is one delay. With `max_wait`, a slot that comes too late is not taken.

    One request asks once where nobody waits, twice where several processes want one host; answers are told
    while there is a backoff, and where they declare a pause. A host's key takes about 300 bytes; it goes a minute after
    the host needs none any more, a backoff or crawl delay after a day.

    If the server cannot be asked, every process keeps the same delay by itself, so that N of them send N times as
    much: one warning is logged, nothing raised. What is learnt meanwhile is joined with what the server knows
    as soon as it is back; from a server that was restarted, what each process knows of a host comes back with its
    next request. `snapshot`, `delay_for` and `wait_for` tell what this process has heard.

    Needs Redis 5 or later.
    """

    fields = ("client", "namespace", "timeout", *(name for name in Throttle.fields if name != "state"))
    secret_fields = frozenset({"client"})  # it may show a password

    client: Any
    namespace: str
    timeout: float
    _steps: RedisSteps

    def __init__(
        self,
        client: Any,
        delay: float = 0.2,
        *,
        namespace: str = "",
        timeout: float = 0.5,
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
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._fix(
            client=client,
            namespace=checks.text("namespace", namespace) if namespace != "" else "",
            timeout=checks.seconds("timeout", timeout, above=0),
        )
        self._fix(_steps=RedisSteps(client, self.timeout, self.namespace))
        super().__init__(
            delay,
            hosts=hosts,
            max_delay=max_delay,
            max_wait=max_wait,
            concurrency=concurrency,
            key=key,
            bucket=bucket,
            smooth=smooth,
            max_crawl_delay=max_crawl_delay,
            max_retry_after=max_retry_after,
            first_backoff=first_backoff,
            clock=clock,
        )

    def close(self) -> None:
        """Close the throttle's own connections. They are made anew when it is used again."""
        self._steps.close()

    def _turns_of(self, table: RuleTable, clock: Clock) -> SharedTurns:
        return SharedTurns(table, clock, self._steps)

    def __getstate__(self) -> dict[str, Any]:
        require_picklable(self.client, "RedisThrottle", A_FUNCTION)
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
