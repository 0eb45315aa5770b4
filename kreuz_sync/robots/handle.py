"""`session.robots`: what robots.txt says, for those who want to know before they ask for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests

from .fetch import Errand, agent_of
from .files import is_robots_file, sitemaps_in
from .paths import path_of
from .places import Place, place_of
from .refusal import Refusal

if TYPE_CHECKING:
    from kreuz_sync.sessions import Session

    from .keeping import Ready
    from .setting import Robots


class RobotsHandle:
    """What the robots.txt files of a session's hosts say to it.

    A file that is not known yet is asked for, as the session would: with its proxies, certificates,
    time-out, deadline and pace. Also of a session without `robots=`, which does not act on them.

    All methods raise what a URL that is none raises in requests, and the errors of waiting
    (DeadlineExceeded, ThrottleTimeout, SessionClosed) and of the session's own bounds (RateLimitExceeded,
    RateLimitUnavailable, BudgetExceeded, CircuitOpen); that a server cannot be reached is no error.
    """

    def __init__(self, session: Session, robots: Robots) -> None:
        self.woken = 0
        self._session = session
        self._robots = robots

    def allowed(self, url: str) -> bool:
        """Whether robots.txt allows `url`, whatever the mode. For an unreachable one `on_unreachable` says it."""
        url = _prepared(url)
        place = place_of(url)
        if place is None or self._robots.mode_for(place.host) is None:
            return True
        path = path_of(url, place.site)
        if is_robots_file(path):
            return True
        rules = self._ready(place).rules
        if rules is None:
            return self._robots.on_unreachable == "allow"
        rule = rules.find(path)
        return rule is None or rule.allows

    def crawl_delay(self, host: str) -> float | None:
        """Seconds between two requests that robots.txt asks for; None if it asks for nothing.

        host: a name, with or without a port, or a URL. A name without a scheme stands for https,
        unless the file of its http origin is the one that is known.
        """
        place = self._place(host)
        rules = None if place is None else self._ready(place).rules
        return None if rules is None else self._robots.delay_in(rules)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """The URLs of the sitemaps that the robots.txt of the origin of `url` lists."""
        return sitemaps_in(self._content(url) or b"")

    def text(self, url: str) -> str | None:
        """The robots.txt of the origin of `url` itself, for what is not read here; None if there is none to be had."""
        content = self._content(url)
        return None if content is None else content.decode("utf-8-sig", "replace")

    def _content(self, url: str) -> bytes | None:
        place = place_of(_prepared(url))
        return None if place is None else self._ready(place).known.content

    def _place(self, host: str) -> Place | None:
        if "://" in host:
            return place_of(_prepared(host))
        secure, plain = (place_of(_prepared(f"{scheme}://{host}/")) for scheme in ("https", "http"))
        known = self._robots.keeper.known_origins()
        if plain is not None and secure is not None and plain.origin in known and secure.origin not in known:
            return plain
        return secure

    def _ready(self, place: Place) -> Ready:
        try:
            return self._robots.ready(place.origin) or self._robots.ask(place, self._errand(place), self)
        except Refusal as refusal:
            raise refusal.error(self._robots.clock) from None

    def _errand(self, place: Place) -> Errand:
        session = self._session
        options = session.merge_environment_settings(place.robots_url, {}, True, None, None)
        return Errand(session._call().errand(), agent_of(session.headers), {**options, "timeout": session.timeout})


def _prepared(url: str) -> str:
    """`url` as a request would have it."""
    request = requests.PreparedRequest()
    request.prepare_url(url, None)
    return request.url or ""
