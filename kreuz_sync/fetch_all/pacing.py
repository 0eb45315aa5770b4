"""The pace as a schedule sees it: asked of a throttle, or estimated where the requests are made elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kreuz_sync.throttle import RateLimiter, Throttle
from kreuz_sync.urls import host_of

from .schedule import Paces

SLOWEST_S = 60.0
KEPT = 10_000  # hosts of which there is an estimate before those that need none are dropped
HELD_UP_S = 0.05  # what a request may wait elsewhere before its host is taken for slower than it was


class Asked(Paces):
    """That of a limiter in this process.

    One that is no `Throttle` may have a `wait_for` too: seconds until a host's next turn, without waiting
    or taking it. Without that a host counts as due as soon as the request before has had its turn.
    """

    def __init__(self, limiter: RateLimiter) -> None:
        self._wait_for: Callable[[str], float] | None = getattr(limiter, "wait_for", None)
        self._throttle = limiter if isinstance(limiter, Throttle) else None

    def wait(self, name: str, now: float) -> float:
        return 0.0 if self._wait_for is None else self._wait_for(name)

    def places(self, name: str) -> int | None:
        return None if self._throttle is None else self._throttle.turns.roster.table.find(name).concurrency

    def handed_out(self, name: str, now: float) -> bool:
        return self._throttle is None or self._throttle.delay_for(name) > 0


class Estimated(Paces):
    """That of requests which other processes make: here it is known only when they are handed out and what came back.

    limiter: what is known of the pace here. Where requests say that they had to wait, their host is handed
    out half as often; where they do not, twice as often again.
    """

    def __init__(self, limiter: RateLimiter) -> None:
        self._delay_of: Callable[[str], float] = getattr(limiter, "delay_for", lambda name: 0.0)
        self._hosts: dict[str, list[float]] = {}  # the moment of the next, the delay now, the least delay
        self._sweep_at = KEPT

    def wait(self, name: str, now: float) -> float:
        known = self._hosts.get(name)
        return 0.0 if known is None else known[0] - now

    def places(self, name: str) -> int | None:
        return None

    def handed_out(self, name: str, now: float) -> bool:
        known = self._hosts.get(name)
        if known is None:
            if len(self._hosts) >= self._sweep_at:
                self._sweep(now)
            delay = self._delay_of(name)
            known = self._hosts[name] = [now, delay, delay]
        known[0] = max(now, known[0]) + known[1]
        return False

    def learn(self, name: str, now: float, outcome: object) -> None:
        """A request has come to this: a response or an error."""
        known = self._hosts.get(name)
        if known is None:
            return
        waited = float(getattr(outcome, "waited", 0.0))
        if getattr(outcome, "from_cache", False) and not getattr(outcome, "attempts", 1):
            known[0] = min(known[0], now)  # it took no turn
        elif waited > HELD_UP_S + known[2]:
            known[1] = min(SLOWEST_S, max(2 * known[1], waited))
            known[0] = max(known[0], now + known[1])
        else:
            known[1] = max(known[2], known[1] / 2)

    def _sweep(self, now: float) -> None:
        """Forget the hosts of which a new estimate would be the same."""
        self._hosts = {name: one for name, one in self._hosts.items() if one[0] > now or one[1] > one[2]}
        self._sweep_at = max(KEPT, 2 * len(self._hosts))


def names_of(limiter: RateLimiter | None) -> Callable[[str], str]:
    """A function from a URL to the name under which `limiter` paces it; "" for what has no host."""
    find: Callable[[str], Any] = getattr(limiter, "host_of", host_of)

    def name(url: str) -> str:
        try:
            return str(find(url))
        except (ValueError, TypeError):  # no URL; whoever sends it will say so
            return ""

    return name
