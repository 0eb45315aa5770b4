"""What decides how long a response is kept: a fixed time of the user's, or the origin's word. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kreuz_sync import checks
from kreuz_sync.settings import Setting

DAY = 86_400.0
Pattern = str | re.Pattern[str]


class Wishes(NamedTuple):
    """What a session or a single call wants beyond what its request's fields say.

    always_revalidate: ask the origin before every use (not for what it calls immutable while
    that is fresh). offline: answer from the store alone, stale or not. stale_if_error: seconds
    after its end for which a stored response may stand in for an error; None leaves that to
    the policy.
    """

    always_revalidate: bool = False
    offline: bool = False
    stale_if_error: float | None = None


NO_WISHES = Wishes()


class Policy(Setting):
    """How long responses are kept, and what the origin may say about it.

    name: "ttl" keeps every whole 2xx answer to GET (and 301 and 308) for `ttl` seconds whatever
    the origin says about freshness, and validates it then. "rfc9111" does what the origin says.
    ttl: seconds; 0 never ends. ttl_by_url: seconds by URL pattern, the first that matches counts;
    None stores nothing there. A pattern is a compiled regular expression, searched in the whole
    URL, or text in which `*` stands for anything: a host (`*.example.com`), a host and a path
    (`example.com/news/*`) or a whole URL (`https://example.com/*`). Without a port it is for all
    ports.

    keep_no_store: under "ttl", store also what the origin marks `no-store`. That is not about
    freshness but about secrecy, so it is obeyed unless you say so.

    stale_if_error: seconds after its end for which a stored response may stand in for a network
    failure or a 500, 502, 503 or 504; the origin's and the request's own `stale-if-error` count
    besides it. stale_if_disconnected: the same for network failures alone (RFC 9111, section
    4.2.4); a day under "rfc9111", 0 under "ttl", unless given. Neither overrides
    `must-revalidate`.

    heuristic_fraction, heuristic_cap: under "rfc9111", the part of the time since Last-Modified
    for which a response without a lifetime counts as fresh, and the most that may be, seconds.

    Raises TypeError or ValueError for anything else.
    """

    fields = (
        "name",
        "ttl",
        "ttl_by_url",
        "keep_no_store",
        "stale_if_error",
        "stale_if_disconnected",
        "heuristic_fraction",
        "heuristic_cap",
    )

    name: str
    ttl: float
    ttl_by_url: tuple[tuple[Pattern, float | None], ...]
    keep_no_store: bool
    stale_if_error: float
    stale_if_disconnected: float
    heuristic_fraction: float
    heuristic_cap: float
    keeps_time: bool  # "ttl": a fixed time, not the origin's word
    _compiled: tuple[tuple[re.Pattern[str], float | None], ...]

    def __init__(
        self,
        name: str = "ttl",
        *,
        ttl: float = 3600.0,
        ttl_by_url: Mapping[Pattern, float | None] | None = None,
        keep_no_store: bool = False,
        stale_if_error: float = 0.0,
        stale_if_disconnected: float | None = None,
        heuristic_fraction: float = 0.1,
        heuristic_cap: float = DAY,
    ) -> None:
        checks.one_of("policy", name, ("ttl", "rfc9111"))
        patterns = _patterns(ttl_by_url)
        if stale_if_disconnected is None:
            stale_if_disconnected = DAY if name == "rfc9111" else 0.0
        self._fix(
            name=name,
            ttl=checks.seconds("ttl", ttl),
            ttl_by_url=patterns,
            keep_no_store=checks.flag("keep_no_store", keep_no_store),
            stale_if_error=checks.seconds("stale_if_error", stale_if_error),
            stale_if_disconnected=checks.seconds("stale_if_disconnected", stale_if_disconnected),
            heuristic_fraction=checks.number("heuristic_fraction", heuristic_fraction),
            heuristic_cap=checks.seconds("heuristic_cap", heuristic_cap),
            keeps_time=name == "ttl",
            _compiled=tuple((url_pattern(pattern), seconds) for pattern, seconds in patterns),
        )

    def ttl_of(self, url: str) -> float | None:
        """Seconds to keep what is at `url` (0: for ever), None if nothing from there is stored.

        url: in the form that `uris.canonical` gives.
        """
        for pattern, seconds in self._compiled:
            if pattern.search(url):
                return seconds
        return self.ttl


def _patterns(ttl_by_url: Any) -> tuple[tuple[Pattern, float | None], ...]:
    if ttl_by_url is None:
        return ()
    if not isinstance(ttl_by_url, Mapping):
        raise TypeError(f"ttl_by_url={ttl_by_url!r}: a mapping of URL patterns to seconds is wanted")
    return tuple(
        (
            checked_pattern("ttl_by_url", pattern),
            None if value is None else checks.seconds(f"ttl_by_url[{pattern!r}]", value),
        )
        for pattern, value in ttl_by_url.items()
    )


def checked_pattern(name: str, pattern: Any) -> Pattern:
    """`pattern` if it is one; `name` is that of the argument."""
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern
    if isinstance(pattern, str) and pattern:
        return pattern
    wanted = "text such as 'example.com/news/*' or a compiled regular expression"
    raise TypeError(f"{name}: {pattern!r}: {wanted} is wanted")


def url_pattern(pattern: Pattern) -> re.Pattern[str]:
    """`pattern`, as in `Policy`, as an expression to search in a canonical URL."""
    if isinstance(pattern, re.Pattern):
        return pattern
    scheme, colon, rest = pattern.rpartition("://")
    authority, slash, path = rest.partition("/")
    # A `*` for a host must not reach into the path, where anybody may write another host's name.
    scheme = _wildcards(scheme.lower(), "[^:/]*") if colon else "[^:/]+"
    host = _wildcards(authority.lower(), "[^/?]*")
    port = "" if ":" in authority else "(?::[0-9]+)?"
    path = "/" + _wildcards(path, ".*") if slash else "(?:[/?].*)?"
    return re.compile(rf"\A{scheme}://{host}{port}{path}\Z", re.DOTALL)


def _wildcards(text: str, anything: str) -> str:
    return anything.join(map(re.escape, text.split("*")))
