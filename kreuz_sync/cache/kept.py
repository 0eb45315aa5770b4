"""A stored response as the layer keeps it beside its record: decoded, compiled, and half of the answer made.

A record that stays in memory is decoded once, and not for every hit.
"""

from __future__ import annotations

from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers
from urllib3._collections import HTTPHeaderDict  # urllib3 1.26 has it nowhere else

from .entry import Entry, entry_of
from .lines import first
from .policy import Policy
from .store import Record
from .stored import FieldLines, Stored, decode


class Kept:
    """What is under a key, for requests to `url` (canonical) under `policy`.

    entry: None if the policy would not have stored it. headers: those of an answer, without Age.
    coded: whether the body is in a Content-Encoding. told: what caches on the way said
    (Cache-Status).
    """

    __slots__ = ("_headers", "coded", "encoding", "entry", "head", "policy", "stored", "told", "url")

    def __init__(self, head: bytes, stored: Stored, policy: Policy, url: str) -> None:
        self.head = head
        self.stored = stored
        self.policy = policy
        self.url = url
        self.entry: Entry | None = entry_of(stored, policy, url)
        headers = headers_of(self.entry.fields if self.entry is not None else ())
        self._headers = headers
        self.encoding: str | None = get_encoding_from_headers(headers)
        self.coded = headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity")
        self.told: str | None = headers.get("Cache-Status")

    def headers(self, age: float) -> CaseInsensitiveDict[str]:
        """A new mapping, with the Age of now."""
        headers: CaseInsensitiveDict[str] = CaseInsensitiveDict.__new__(CaseInsensitiveDict)
        # Copying the way the class does it takes ten times as long, and half of a hit's time.
        headers._store = store = self._headers._store.copy()
        store["age"] = ("Age", str(int(age)))
        return headers


def headers_of(fields: FieldLines) -> CaseInsensitiveDict[str]:
    """Field lines as requests shows them: of several with one name the values are joined."""
    return CaseInsensitiveDict(HTTPHeaderDict(fields))


def kept_in(record: Record, policy: Policy, url: str) -> Kept | None:
    """`record` decoded, or what was made of it before; None if it is damaged."""
    known = record.parsed
    if type(known) is Kept and known.policy is policy and known.url == url:
        return known
    stored = decode(record.head)
    if stored is None or not _fits(stored, record):
        return None
    record.parsed = made = Kept(record.head, stored, policy, url)
    return made


def _fits(stored: Stored, record: Record) -> bool:
    """Whether the body is as long as the head says; of an open file the store knows."""
    return not isinstance(record.body, bytes) or len(record.body) == stored.size


def same_validators(stored: Stored, etag: str | None, last_modified: str | None) -> bool:
    """Whether `stored` is still what a conditional request was about."""
    return first(stored.fields, "etag") == etag and first(stored.fields, "last-modified") == last_modified


def is_fresh(entry: Entry, now: float) -> bool:
    """Whether `entry` may be used without a word to the origin. now: Unix seconds."""
    return entry.age(now) < entry.lifetime and not entry.validate_first
