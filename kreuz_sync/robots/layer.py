"""The layer: a request goes on if robots.txt allows it, at the pace that it asks for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync.calls import Call, current_call
from kreuz_sync.errors import RobotsDisallowed, SessionClosed
from kreuz_sync.response import Response
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.throttle import RateLimiter
from kreuz_sync.urls import redact

from .fetch import Errand, agent_of
from .files import Rules, is_robots_file
from .keeping import Ready
from .life import Known
from .pace import Pace
from .paths import path_of
from .patterns import Rule
from .places import Place, place_of
from .refusal import Refusal

if TYPE_CHECKING:
    from .setting import Robots

OBEY = "obey"

_CUT = "%s asks for %.0f s between requests; max_crawl_delay makes that %.0f"
_log = logging.getLogger("kreuz_sync.robots")


class RobotsAdapter(LayerAdapter):
    """Ask robots.txt before each request.

    What it refuses has taken no turn, and nothing of it was sent. woken: how often `close` told
    those who wait for a file to give up.
    """

    def __init__(self, robots: Robots, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.robots = robots
        self.keeper = robots.keeper
        self.woken = 0
        self._paces: tuple[Pace, ...] | None = None  # None until its stack is met

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        call = current_call()
        if call.obeys_robots:
            refused = self._ask(request, options, call)
            if refused is not None:
                return refused
        return self.inner.send(request, **options)

    def close(self) -> None:
        self.keeper.flights.wake(self)
        super().close()

    def _ask(self, request: requests.PreparedRequest, options: dict[str, Any], call: Call) -> Response | None:
        """Raise RobotsDisallowed if `request` may not be sent; tell the limiter what pace its host asks for.

        Gives an answer where the file could not be asked for: that of the rate limit that was in the way.
        """
        url = request.url or ""
        place = place_of(url)
        mode = None if place is None else self.robots.mode_for(place.host)
        if place is None or mode is None:
            return None
        path = path_of(url, place.site)
        if is_robots_file(path):
            return None
        try:
            known, rules = self.robots.ready(place.origin) or self._learn(place, mode, request, options)
        except Refusal as refusal:
            return refusal.answer_to(request) if mode == OBEY else None
        except requests.RequestException as error:
            if mode == OBEY or isinstance(error, SessionClosed):
                raise
            return None  # no file, no pace
        if rules is not None:
            self._tell(place, known, rules, call)
        if mode == OBEY:
            self._require(request, place, known, None if rules is None else rules.find(path))
        return None

    def _learn(self, place: Place, mode: str, request: requests.PreparedRequest, options: dict[str, Any]) -> Ready:
        caller = current_call()
        call = caller.errand()
        errand = Errand(call, agent_of(request.headers), options, request, self.inner)
        if mode != OBEY and call.deadline is not None:  # there has to be time left for what was asked for
            call.end_within((call.left() or 0.0) / 2)
            errand = errand._replace(silence=0.1)
        try:
            return self.robots.ask(place, errand, self)
        finally:
            caller.has_waited("robots", call.waited)

    def _tell(self, place: Place, known: Known, rules: Rules, call: Call) -> None:
        for pace in self._paces or self._find_paces(call):
            if not pace.knows(place.origin, known):
                delay = self.robots.delay_in(rules)
                if delay != rules.delay:
                    told = {"event": "crawl_delay_cut", "host": place.host, "asked": rules.delay, "seconds": delay}
                    _log.warning(_CUT, place.robots_url, rules.delay, delay, extra=told)
                pace.tell(place.origin, place.robots_url, known, delay)

    def _find_paces(self, call: Call) -> tuple[Pace, ...]:
        if call.stack is None:
            return ()  # a layer without a stack around it; there may be one the next time
        if self._paces is None:
            limiters = (layer for layer in call.stack.layers if isinstance(layer, RateLimiter))
            self._paces = tuple(map(self.robots.paces.of, limiters))
        return self._paces

    def _require(self, request: requests.PreparedRequest, place: Place, known: Known, rule: Rule | None) -> None:
        if known.content is None:
            if self.robots.on_unreachable == "disallow":
                raise _unreachable(request, place, known, self.robots)
        elif rule is not None and not rule.allows:
            raise _disallowed(request, place, rule, self.robots)


def _disallowed(request: requests.PreparedRequest, place: Place, rule: Rule, robots: Robots) -> RobotsDisallowed:
    url = redact(request.url or "")
    text = f"{place.robots_url} does not allow {robots.declared_token} to fetch {url}: {rule}"
    return RobotsDisallowed(text, url=url, rule=str(rule), token=robots.declared_token, request=request)


def _unreachable(request: requests.PreparedRequest, place: Place, known: Known, robots: Robots) -> RobotsDisallowed:
    url = redact(request.url or "")
    text = f"{place.robots_url} is unreachable ({known.reason}), so {url} is not fetched (RFC 9309, section 2.3.1.4)"
    return RobotsDisallowed(
        text,
        url=url,
        token=robots.declared_token,
        unreachable=True,
        retry_after=max(0.0, known.until - robots.clock.monotonic()),
        as_of=robots.clock.wall(),
        request=request,
    )
