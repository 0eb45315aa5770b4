"""Stored answers as a listing shows them, and which of them are meant."""

from __future__ import annotations

from typing import Any, NamedTuple

from kreuz_sync import checks
from kreuz_sync.urls import host_of

from .entry import Entry
from .kept import Kept
from .lines import first
from .patterns import Pattern, checked_pattern, url_pattern
from .policy import Policy
from .store import Record
from .stored import decode


class CacheEntry(NamedTuple):
    """A stored answer, as a listing shows it.

    key: what it is under in the store. url: without user and without values of secret parameters.
    stored_at: when it came, or was last confirmed, Unix seconds. age: seconds since the origin made
    or confirmed it. ttl: seconds for which it stays fresh, negative for a stale one, infinite for
    one that never ends. size: bytes of the body as it was on the wire. vary: names of the request
    fields that selected it. for_somebody: whether it was asked for with credentials.
    """

    key: str
    url: str
    host: str
    method: str
    status: int
    stored_at: float
    age: float
    ttl: float
    size: int
    content_type: str | None
    vary: tuple[str, ...]
    for_somebody: bool

    @property
    def fresh(self) -> bool:
        """Whether it is given out without asking the origin."""
        return self.ttl > 0


class Wanted:
    """Which entries are meant. All that is given must hold; see `Handling.entries`."""

    def __init__(
        self,
        *,
        url: Pattern | None = None,
        host: str | None = None,
        status: int | None = None,
        older_than: float | None = None,
        younger_than: float | None = None,
        stale: bool | None = None,
        **unknown: Any,
    ) -> None:
        for name, value in unknown.items():
            raise TypeError(f"{name}={value!r}: one of url, host, status, older_than, younger_than and stale is wanted")
        self._url = None if url is None else url_pattern(checked_pattern("url", url))
        self._host = None if host is None else host_of(f"//{checks.text('host', host)}")
        self._status = None if status is None else checks.count("status", status, least=100, most=599)
        self._older = None if older_than is None else checks.seconds("older_than", older_than)
        self._younger = None if younger_than is None else checks.seconds("younger_than", younger_than)
        self._stale = None if stale is None else checks.flag("stale", stale)

    def __contains__(self, entry: CacheEntry) -> bool:
        return (
            (self._url is None or self._url.search(entry.url) is not None)
            and self._host in (None, entry.host)
            and self._status in (None, entry.status)
            and (self._older is None or entry.age > self._older)
            and (self._younger is None or entry.age < self._younger)
            and (self._stale is None or self._stale is not entry.fresh)
        )


def kept_for_listing(record: Record, policy: Policy) -> Kept | None:
    """`record` decoded, for nobody's request; None if it is damaged."""
    known = record.parsed
    if type(known) is Kept and known.policy is policy:
        return known
    stored = decode(record.head)
    if stored is None:
        return None
    try:
        host_of(stored.url)
    except ValueError:  # nobody can ask for it
        return None
    return Kept(record.head, stored, policy, stored.url)


def cache_entry(key: str, kept: Kept, now: float) -> CacheEntry:
    """What a listing shows of what is under `key`. now: Unix seconds."""
    stored = kept.stored
    entry = kept.entry or Entry(stored, kept.policy, kept.url)
    age = entry.age(now)
    return CacheEntry(
        key=key,
        url=stored.url,
        host=host_of(stored.url),
        method=stored.method,
        status=stored.status,
        stored_at=stored.response_time,
        age=age,
        ttl=0.0 if entry.validate_first else entry.lifetime - age,
        size=stored.size,
        content_type=first(stored.fields, "content-type"),
        vary=stored.vary,
        for_somebody="." in key,
    )


def uri_of(key: str) -> str:
    """What the keys of all that is kept for the URI of `key` begin with (keys.py)."""
    return key[:32]
