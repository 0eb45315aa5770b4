"""The setting: whose robots.txt is asked, as whom, and what is made of the answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks, fork
from kreuz_sync.cache.collapse import Owner
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Shared
from kreuz_sync.throttle.hosts import HostTable
from kreuz_sync.useragent import DEFAULT_USER_AGENT

from .fetch import Errand
from .files import Rules, rules_for
from .keeping import Keeper, Ready
from .layer import OBEY, RobotsAdapter
from .life import LONGEST_S
from .pace import Paces
from .places import Place

MODES = (OBEY, "crawl-delay")
OFF = "off"
MAX_CRAWL_DELAY_S = 300.0
MAX_ORIGINS = 10_000

EVERY_BROWSER = "Mozilla"  # what a User-Agent begins with that says who it is in a comment

_log = logging.getLogger("kreuz_sync.robots")
_PRODUCT = re.compile(r"[A-Za-z0-9_.-]+")


class Robots(Shared):
    """Asks each origin's robots.txt before a request is sent (RFC 9309). Called with an adapter, it makes the layer.

    mode: "obey" refuses what the file disallows, with RobotsDisallowed, and keeps the pace that it
    asks for. "crawl-delay" keeps the pace alone: it never refuses, and no trouble with the file ever
    fails a request.

    token: the product token that groups of the file are chosen by: letters, digits, `_`, `-` and
    `.`. None for the product in the User-Agent that the session was made with, or else
    `kreuz-sync`; never that of a rotated agent.

    hosts: what differs for some hosts, one of the modes or False to ask nothing, by name or by
    pattern (`{"api.example.com": False, "*.example.org": "crawl-delay"}`).

    on_unreachable: "disallow" everything on a host whose file cannot be had (the RFC's rule: a 5xx,
    429, no connection, a challenge page in its place), or "allow" it. An old copy goes before
    either, for 30 days. Any other 4xx allows everything.

    max_age: seconds that a file is believed, a day at most. Less if its own fields say so, but
    never less than five minutes; failures are remembered for one to five minutes. max_crawl_delay:
    seconds; more than that is cut to it. wildcard_delay: the delay for `*` also holds if the
    group for `token` names none. max_origins: files kept; the oldest go first.

    One `Robots` may serve several sessions and threads. A copy is the same; a pickle carries the
    settings, and starts without files.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = (
        *("mode", "token", "hosts", "on_unreachable", "max_age", "max_crawl_delay"),
        *("wildcard_delay", "max_origins"),
    )

    is_robots = True  # how a session finds it among its layers without loading this
    mode: str
    token: str | None
    hosts: dict[str, str | bool]
    on_unreachable: str
    max_age: float
    max_crawl_delay: float
    wildcard_delay: bool
    max_origins: int
    clock: Clock
    keeper: Keeper
    paces: Paces
    declared_token: str  # `token`, or what stands in for it
    _prefix: str
    _modes: HostTable[str]

    def __init__(
        self,
        *,
        mode: str = OBEY,
        token: str | None = None,
        hosts: Mapping[str, str | bool] | None = None,
        on_unreachable: str = "disallow",
        max_age: float = LONGEST_S,
        max_crawl_delay: float = MAX_CRAWL_DELAY_S,
        wildcard_delay: bool = False,
        max_origins: int = MAX_ORIGINS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._fix(
            mode=checks.one_of("mode", mode, MODES),
            token=None if token is None else _token(token),
            on_unreachable=checks.one_of("on_unreachable", on_unreachable, ("disallow", "allow")),
            max_age=_max_age(max_age),
            max_crawl_delay=checks.seconds("max_crawl_delay", max_crawl_delay),
            wildcard_delay=checks.flag("wildcard_delay", wildcard_delay),
            max_origins=checks.count("max_origins", max_origins, least=1),
            clock=checks.clock("clock", clock),
            _modes=HostTable(hosts, mode, _mode, folded=True, others="`mode`"),
            hosts=dict(hosts or {}),
        )
        keeper = Keeper(max_origins=self.max_origins, max_age=self.max_age, clock=clock)
        paces = Paces(self.max_origins)
        fork.renew_in_child(keeper)
        fork.renew_in_child(paces)
        self._fix(keeper=keeper, paces=paces)
        self._speak_as(token or product_of(DEFAULT_USER_AGENT))

    def __call__(self, inner: BaseAdapter) -> RobotsAdapter:
        return RobotsAdapter(self, inner)

    def speaking_for(self, agent: str | bytes | None) -> Robots:
        """This, with the product of the User-Agent `agent` where no `token` is set. The files are shared."""
        product = product_of(agent)
        if self.token is None and product == EVERY_BROWSER:
            told = {"event": "robots_token", "token": product}
            _log.warning("robots.txt has no group for %s; say who you are with Robots(token=...)", product, extra=told)
        if self.token is not None or product == self.declared_token:
            return self
        twin = Robots.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._speak_as(product)
        return twin

    def _speak_as(self, token: str) -> None:
        self._fix(declared_token=token, _prefix=f"{token} {self.wildcard_delay} ")

    # --- what it says of a host, and of its file --------------------------------------------

    def mode_for(self, host: str) -> str | None:
        """The mode for `host`; None if its file is not asked."""
        mode = self._modes.find(host) if self.hosts else self.mode
        return None if mode == OFF else mode

    def ready(self, origin: str) -> Ready | None:
        """What is known of `origin` and said to the token, as long as it holds."""
        return self.keeper.ready(self._prefix + origin)

    def ask(self, place: Place, errand: Errand, owner: Owner) -> Ready:
        """The same, after asking for its file if need be."""
        return self.keeper.ask(place, self._prefix + place.origin, self._read, errand, owner)

    def _read(self, content: bytes) -> Rules:
        return rules_for(self.declared_token, content, wildcard_delay=self.wildcard_delay)

    def delay_in(self, rules: Rules) -> float | None:
        """The seconds between requests that `rules` ask for, `max_crawl_delay` at most."""
        return None if rules.delay is None else min(rules.delay, self.max_crawl_delay)

    # --- copies -----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "settings": {name: getattr(self, name) for name in self.fields},
            "declared_token": self.declared_token,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["settings"])  # type: ignore[misc]
        self._speak_as(state["declared_token"])


def as_robots(value: Any) -> Robots | None:
    """What `Session(robots=value)` stands for: True and the modes are one with default settings, None and False none.

    Raises TypeError or ValueError for anything else.
    """
    if value is None or value is False or isinstance(value, Robots):
        return value or None
    if value is True:
        return Robots()
    if isinstance(value, str):
        return Robots(mode=checks.one_of("robots", value, MODES))
    raise TypeError(f"robots={value!r}: True, False, 'crawl-delay', a kreuz_sync.Robots or None is wanted")


def product_of(agent: str | bytes | None) -> str:
    """The product token of a User-Agent; that of this package's own if there is none in it.

    >>> product_of("MyBot/1.0 (+https://example.com/bot)")
    'MyBot'
    """
    text = agent.decode("latin-1") if isinstance(agent, bytes) else agent or ""
    found = _PRODUCT.match(text.strip())
    return found.group() if found else product_of(DEFAULT_USER_AGENT)


def _token(value: Any) -> str:
    if not _PRODUCT.fullmatch(checks.text("token", value)):
        raise ValueError(
            f"token={value!r}: a product token is wanted, without version: letters, digits, '_', '-' and '.'"
        )
    return str(value)


def _max_age(value: Any) -> float:
    seconds = checks.seconds("max_age", value, above=0)
    if seconds > LONGEST_S:
        raise ValueError(f"max_age={value!r}: a robots.txt is believed for {LONGEST_S:g} s at most (RFC 9309)")
    return seconds


def _mode(name: str, value: Any) -> str:
    if value is False:
        return OFF
    if value is True:
        return OBEY
    return str(checks.one_of(name, value, (*MODES, True, False)))
