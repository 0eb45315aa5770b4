"""Requests and stored responses for tests of the cache's rules."""

from __future__ import annotations

from typing import Any

from kreuz_sync.cache.ask import Ask
from kreuz_sync.cache.dates import imf_fixdate
from kreuz_sync.cache.entry import Entry
from kreuz_sync.cache.keys import Keys
from kreuz_sync.cache.lines import lines
from kreuz_sync.cache.policy import Policy
from kreuz_sync.cache.selecting import variant_of, vary_names
from kreuz_sync.cache.stored import Stored

NOW = 1_800_000_000.0
URL = "https://example.com/page"
KEYS = Keys(b"a secret of the tests")
RFC = Policy("rfc9111")
TTL = Policy("ttl", ttl=3600)


def ask(method: str = "GET", url: str = URL, **fields: str) -> Ask:
    """A request; `if_none_match="..."` is the field If-None-Match."""
    return Ask(method, url, {name.replace("_", "-"): value for name, value in fields.items()})


def date(offset: float = 0.0) -> str:
    """The HTTP-date of `offset` seconds after NOW."""
    return imf_fixdate(NOW + offset)


def stored(*fields: tuple[str, str], to: Ask | None = None, **values: Any) -> Stored:
    """The stored answer to `to`, received at NOW, with `fields` and a body of 100 bytes."""
    vary = vary_names(lines(fields, "vary")) or ()
    known: dict[str, Any] = {
        "method": "GET",
        "url": URL,
        "status": 200,
        "reason": "OK",
        "version": 11,
        "fields": fields,
        "vary": vary,
        "variant": variant_of(vary, to or ask(), KEYS.secret),
        "request_time": NOW,
        "response_time": NOW,
        "elapsed": 0.1,
        "kept_for": None,
        "size": 100,
        "extra": {},
    }
    return Stored(**{**known, **values})


def entry(*fields: tuple[str, str], policy: Policy = RFC, url: str = URL, **values: Any) -> Entry:
    """The same, compiled."""
    return Entry(stored(*fields, **values), policy, url)


def cached(directives: str, *fields: tuple[str, str], **values: Any) -> Entry:
    """An answer with this Cache-Control, compiled."""
    return entry(("Cache-Control", directives), *fields, **values)
