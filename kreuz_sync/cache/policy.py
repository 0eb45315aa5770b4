"""What decides how long a response is kept: a fixed time of the user's, or the origin's word. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from kreuz_sync import checks
from kreuz_sync.settings import Setting

from .patterns import Pattern, checked_pattern, url_pattern

DAY = 86_400.0
Seconds = float | timedelta


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
    ttl: seconds, or a `timedelta`; 0 never ends. ttl_by_url: the same by URL pattern, the first that
    matches counts; None stores nothing there. A pattern is a compiled regular expression, searched
    in the whole URL, or text in which `*` stands for anything: a host (`*.example.com`), a host and
    a path with its query (`example.com/news/*`) or a whole URL (`https://example.com/*`). Without a
    port it is for all ports. One that could match no URL is a ValueError.
    keep_no_store: under "ttl", store also what the origin marks `no-store`. That is not about
    freshness but about secrecy, so it is obeyed unless you say so.

    stale_if_error: seconds after its end for which a stored response may stand in for a network
    failure or a 500, 502, 503 or 504; the origin's and the request's own `stale-if-error` count
    besides it. stale_if_disconnected: the same for network failures alone (RFC 9111, section
    4.2.4); a day under "rfc9111", 0 under "ttl", unless given. Neither overrides
    `must-revalidate`.

    heuristic_fraction, heuristic_cap: under "rfc9111", the part of the time since Last-Modified
    for which a response without a lifetime counts as fresh, and the most that may be, seconds.

    store_parts: under "rfc9111", store answers to range requests too, and put parts of the same
    version together. Raises ValueError under "ttl".

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
        "store_parts",
    )

    name: str
    ttl: float
    ttl_by_url: tuple[tuple[Pattern, float | None], ...]
    keep_no_store: bool
    stale_if_error: float
    stale_if_disconnected: float
    heuristic_fraction: float
    heuristic_cap: float
    store_parts: bool
    keeps_time: bool  # "ttl": a fixed time, not the origin's word
    _compiled: tuple[tuple[re.Pattern[str], float | None], ...]

    def __init__(
        self,
        name: str = "ttl",
        *,
        ttl: Seconds = 3600.0,
        ttl_by_url: Mapping[Pattern, Seconds | None] | None = None,
        keep_no_store: bool = False,
        stale_if_error: Seconds = 0.0,
        stale_if_disconnected: Seconds | None = None,
        heuristic_fraction: float = 0.1,
        heuristic_cap: Seconds = DAY,
        store_parts: bool = False,
    ) -> None:
        checks.one_of("policy", name, ("ttl", "rfc9111"))
        patterns = _patterns(ttl_by_url)
        if checks.flag("store_parts", store_parts) and name == "ttl":
            raise ValueError('store_parts=True: under "ttl" only whole answers are stored; it is for policy="rfc9111"')
        if stale_if_disconnected is None:
            stale_if_disconnected = DAY if name == "rfc9111" else 0.0
        self._fix(
            name=name,
            ttl=in_seconds("ttl", ttl),
            ttl_by_url=patterns,
            keep_no_store=checks.flag("keep_no_store", keep_no_store),
            stale_if_error=in_seconds("stale_if_error", stale_if_error),
            stale_if_disconnected=in_seconds("stale_if_disconnected", stale_if_disconnected),
            heuristic_fraction=checks.number("heuristic_fraction", heuristic_fraction),
            heuristic_cap=in_seconds("heuristic_cap", heuristic_cap),
            store_parts=store_parts,
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
            None if value is None else in_seconds(f"ttl_by_url[{pattern!r}]", value),
        )
        for pattern, value in ttl_by_url.items()
    )


def in_seconds(name: str, value: Any) -> float:
    """A duration in seconds, which may be given as a `timedelta`. Raises TypeError or ValueError for anything else."""
    return checks.seconds(name, value.total_seconds() if isinstance(value, timedelta) else value)
