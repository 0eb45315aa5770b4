"""What a caller gets from a stored response: all of it, a part of it, or the word that nothing changed. Pure.

RFC 9111, sections 4.3.2 and 5.1; RFC 9110, sections 13, 14 and 15.4.5.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .ask import Ask
from .dates import http_date
from .entry import Entry
from .lines import without
from .spans import Span
from .stored import FieldLines
from .validation import entity_tags, weakly_equal

_ONE_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE)
_ENDLESS = 10**19  # bytes: more than any range that is read here
# About the body, which a 304 does not have; and what is left tells the caller what it may update.
_NOT_IN_304 = frozenset({"content-encoding", "content-language", "content-length", "content-range", "content-type"})


class Part(NamedTuple):
    """The bytes `first` to `last`, both included, of a representation of `size` bytes, None if that is not known."""

    first: int
    last: int
    size: int | None


def unchanged(ask: Ask, entry: Entry) -> bool:
    """Whether the caller's own condition is to be answered with 304. RFC 9111, section 4.3.2.

    If-Modified-Since counts only without If-None-Match; what has no Last-Modified is as new as its Date.
    """
    if not 200 <= entry.stored.status < 300:
        return False
    tags = ask.get("if-none-match")
    if tags is not None:
        wanted = entity_tags(tags)
        if "*" in wanted:
            return True
        return entry.etag is not None and any(weakly_equal(entry.etag, tag) for tag in wanted)
    since = http_date((ask.get("if-modified-since") or "").strip(" \t"), near=entry.received)
    if since is None:
        return False
    changed = http_date(entry.last_modified, near=entry.received) if entry.last_modified else None
    return (entry.date if changed is None else changed) <= since


def part(ask: Ask, entry: Entry) -> Part | None:
    """The part of a stored 200 that the Range field asks for, None if it has none. RFC 9110, section 14.2.

    Of a stored part only if it has all of that: RFC 9111, section 3.3.
    """
    asked, held = _range(ask), entry.held
    if asked is None or ask.method != "GET":
        return None
    if held is None:
        return _resolved(*asked, entry.stored.size)
    wanted = _resolved(*asked, _ENDLESS if held.total is None else held.total)
    if wanted is None or not held.has(wanted.first, wanted.last):
        return None
    return wanted._replace(size=held.total)


def answerable_range(ask: Ask) -> bool:
    """Whether a stored body can answer the Range field of `ask`, if it is long enough.

    One range of bytes it can; several, and other units, are for the origin.
    """
    return _range(ask) is not None


def _range(ask: Ask) -> tuple[str, str] | None:
    found = _ONE_RANGE.fullmatch(ask.get("range") or "")
    return (found[1], found[2]) if found and (found[1] or found[2]) else None


def _resolved(first: str, last: str, size: int) -> Part | None:
    if not first:
        start, end = max(0, size - int(last)), size - 1
    else:
        start, end = int(first), min(int(last), size - 1) if last else size - 1
    return Part(start, end, size) if start <= end else None


def whole_fields(entry: Entry, age: float) -> FieldLines:
    """The fields of a stored response used at `age` seconds. RFC 9111, sections 4 and 5.1."""
    return (*entry.fields, ("Age", str(int(age))))


def part_fields(entry: Entry, age: float, part: Part) -> FieldLines:
    """The fields of a 206 made from what is stored. RFC 9110, section 15.3.7."""
    span = Span(part.first, part.last - part.first + 1, part.size)
    return (
        *without(entry.fields, ("content-length", "content-range")),
        ("Content-Range", span.content_range),
        ("Content-Length", str(span.size)),
        ("Age", str(int(age))),
    )


def unchanged_fields(entry: Entry, age: float) -> FieldLines:
    """The fields of a 304 made from a stored response. RFC 9110, section 15.4.5."""
    return (*without(entry.fields, _NOT_IN_304), ("Age", str(int(age))))
