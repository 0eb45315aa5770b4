"""What a request that changes something makes invalid. Pure. RFC 9111, section 4.4."""

from __future__ import annotations

from urllib.parse import urljoin

from kreuz_sync.urls import origin_of

from .lines import first
from .stored import FieldLines

# RFC 9110, section 9.2.1. A method that is not known may do anything.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def invalidates(method: str, url: str, status: int, fields: FieldLines, *, posts: bool = False) -> list[str]:
    """The URLs that an answer to `method` makes invalid, with all their variants; none after an error.

    posts: answers to POST are stored, so the user takes POST for a way to read.

    Besides the target these are Location and Content-Location on the same origin: on another one
    they would let any site empty the store for others.
    """
    if method.upper() in SAFE_METHODS or not 200 <= status < 400 or (posts and method == "POST"):
        return []
    found = [url]
    for name in ("location", "content-location"):
        other = _absolute(url, first(fields, name))
        if other is not None and other not in found and _same_origin(url, other):
            found.append(other)
    return found


def _absolute(url: str, reference: str | None) -> str | None:
    if not reference:
        return None
    try:
        return urljoin(url, reference)
    except ValueError:
        return None


def _same_origin(url: str, other: str) -> bool:
    try:
        return origin_of(url) == origin_of(other)
    except ValueError:  # a port that is none
        return False
