"""Parts of a representation, stored: which may be, what they may be used for, and how two become one. Pure.

A part is stored as an answer with status 206 whose Content-Range and Content-Length say which bytes
are there. It answers requests for ranges that lie in it, and no others, until it is whole, and then
it is stored as the 200 that it is a part of. RFC 9111, sections 3.3 and 3.4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .lines import Grouped, first, grouped, without
from .spans import Span, announced, arrived, joined, last_bytes, rest_of
from .stored import FieldLines, Stored

if TYPE_CHECKING:
    from .entry import Entry

PARTIAL = 206
_STRONG = re.compile(r'"[^"]*"')
_MISCOUNTED = "miscounted"  # in Stored.extra: of a part that is not joined with anything
_OF_THE_SPAN = frozenset({"content-length", "content-range"})


def is_tellable(read: Grouped) -> bool:
    """Whether a 206 with these fields says which bytes it has: a single range of them, and not of a code.

    Of a coded body a part could not be decoded, so nobody but the origin can do anything with it.
    """
    return _told(read) is not None and _coding(read) == "identity"


def held_in(stored: Stored) -> Span | None:
    """Which bytes a stored part has; None for what is whole, or damaged."""
    if stored.status != PARTIAL:
        return None
    told = _told(grouped(stored.fields))
    return told if told is not None and told.size == stored.size else None


def placed(stored: Stored, asked: str | None) -> Stored | None:
    """A 206 of `stored.size` bytes as it is to be stored; None if these bytes cannot be placed. asked: Range."""
    told = _told(grouped(stored.fields))
    span = None if told is None else arrived(told, stored.size, last_bytes(asked or ""))
    if span is None:
        return None
    if span != told:  # less came than announced: cut, unless its length says that it was meant so
        if first(stored.fields, "content-length") != str(stored.size):
            return None
        stored = stored._replace(extra={**stored.extra, _MISCOUNTED: True})
    return _holding(stored, stored.fields, span)


def together(held: Stored, came: Stored) -> Span | None:
    """Which bytes what is `held` and a part that `came` have together; None if they must not be combined.

    They must share a strong validator: RFC 9111, section 3.4. Only entity tags are taken for one.
    """
    if _MISCOUNTED in held.extra or _MISCOUNTED in came.extra:
        return None
    if (held.vary, held.variant) != (came.vary, came.variant) or not _same_version(held.fields, came.fields):
        return None
    mine, its = span_of(held), span_of(came)
    return None if mine is None or its is None else joined(mine, its)


def span_of(stored: Stored) -> Span | None:
    """Which bytes of the representation `stored` has, whole or not; None if nobody knows."""
    return Span(0, stored.size, stored.size) if stored.status == 200 else held_in(stored)


def combined(held: Stored, came: Stored, span: Span) -> Stored:
    """The head for both bodies put together. The newer fields count: RFC 9111, sections 3.2 and 3.4."""
    newer = {name.lower() for name, _ in came.fields}
    return _holding(came, without(held.fields, newer | {"age"}) + came.fields, span)


def completion(entry: Entry) -> dict[str, str]:
    """The fields that ask for what is missing of the whole; empty where all of it has to be asked for.

    If-Range makes the origin send all of it if that has changed. Something without any validator is
    asked for as well, though what comes cannot be combined: an origin without ranges sends the whole.
    """
    rest = None if entry.held is None else rest_of(entry.held)
    if rest is None or _MISCOUNTED in entry.stored.extra:
        return {}
    if entry.etag is not None and _STRONG.fullmatch(entry.etag):
        return {"Range": rest, "If-Range": entry.etag}
    return {} if entry.etag or entry.last_modified else {"Range": rest}


def completes(entry: Entry, fields: FieldLines) -> bool:
    """Whether a 206 with `fields`, the answer to `completion`, has what was missing."""
    came = _told(grouped(fields))
    if entry.held is None or came is None or not _same_version(entry.stored.fields, fields):
        return False
    both = joined(entry.held, came)
    return both is not None and both.is_whole


def _same_version(one: FieldLines, other: FieldLines) -> bool:
    tag = first(one, "etag")
    if tag is None or not _STRONG.fullmatch(tag) or first(other, "etag") != tag:
        return False
    return _coding(grouped(one)) == _coding(grouped(other)) == "identity"


def _told(read: Grouped) -> Span | None:
    lines = read.get("content-range", ())
    return announced(lines[0].strip(" \t")) if len(lines) == 1 else None


def _coding(read: Grouped) -> str:
    return ",".join(read.get("content-encoding", ())).strip(" \t").lower() or "identity"


def _holding(stored: Stored, fields: FieldLines, span: Span) -> Stored:
    """`stored` for the bytes of `span`, with `fields`."""
    kept = (*without(fields, _OF_THE_SPAN), ("Content-Length", str(span.size)))
    if span.is_whole:
        return stored._replace(status=200, reason="OK", fields=kept, size=span.size)
    return stored._replace(fields=(*kept, ("Content-Range", span.content_range)), size=span.size)
