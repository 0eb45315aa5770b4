"""Which bytes of a representation are at hand, which are missing, and how two parts lie to each other. Pure.

Numbers and text alone: Content-Range and Range, RFC 9110, sections 14.1.2 and 14.4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CONTENT_RANGE = re.compile(r"bytes[ \t]+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", re.IGNORECASE)
_LAST_BYTES = re.compile(r"bytes[ \t]*=[ \t]*-([0-9]{1,18})[ \t]*", re.IGNORECASE)


class Span(NamedTuple):
    """`size` bytes of a representation, from the position `first` on. total: how many that has, None if untold."""

    first: int
    size: int
    total: int | None

    @property
    def end(self) -> int:
        """The position behind the last byte."""
        return self.first + self.size

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.size == self.total

    @property
    def content_range(self) -> str:
        """The value of Content-Range for it."""
        return f"bytes {self.first}-{self.end - 1}/{'*' if self.total is None else self.total}"

    def has(self, first: int, last: int) -> bool:
        """Whether the bytes `first` to `last`, both included, are all in it."""
        return self.first <= first and last < self.end


def announced(content_range: str) -> Span | None:
    """What a Content-Range says; None if it is invalid, or in another unit than bytes."""
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    total = None if found[3] == "*" else int(found[3])
    if last < first or (total is not None and total <= last):
        return None
    return Span(first, last - first + 1, total)


def last_bytes(asked: str) -> int | None:
    """How many bytes a Range field wants of the end; None if it wants something else."""
    found = _LAST_BYTES.fullmatch(asked)
    return int(found[1]) if found else None


def arrived(told: Span, size: int, tail: int | None = None) -> Span | None:
    """Where the `size` bytes lie that came whole under a Content-Range that says `told`; None if nobody can say.

    tail: so many bytes of the end were asked for.

    Servers that miscount announce more than they send. Then the bytes begin where the field says, and
    only those count that came. If they are just as many as were wanted of the end, and announced
    to reach it, they do reach it; what the field says of that position is its mistake. That they
    are all there is, nobody can say of such bytes.
    """
    if size == told.size:
        return told
    if not 0 < size < told.size:
        return None
    reaches_end = size == tail and told.end == told.total and told.first > 0
    return Span(told.first, size, told.first + size if reaches_end else told.total)


def joined(one: Span, other: Span) -> Span | None:
    """Both as one; None if bytes are missing between them, or they are parts of something else."""
    if one.total is not None and other.total is not None and one.total != other.total:
        return None
    total = one.total if other.total is None else other.total
    first, end = min(one.first, other.first), max(one.end, other.end)
    apart = other.first > one.end or one.first > other.end
    if apart or (total is not None and end > total):
        return None
    return Span(first, end - first, total)


def rest_of(held: Span) -> str | None:
    """The Range for what is missing of the whole; None if that is not one range, or nothing."""
    if held.is_whole:
        return None
    if held.first == 0:
        return f"bytes={held.size}-"
    return f"bytes=0-{held.first - 1}" if held.end == held.total else None
