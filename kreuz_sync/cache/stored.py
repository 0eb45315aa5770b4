"""A stored response, and the bytes it is kept as.

Pure: nothing here knows where the bytes are kept.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any, NamedTuple

FORMAT = b"kz1\n"  # the first bytes of every head; another format is a miss, not an error

FieldLines = tuple[tuple[str, str], ...]

EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0  # from the year 1 to 9999, as far as an HTTP-date goes
_LONGEST = 1e9  # seconds that an exchange may have taken: 30 years
_BREAK = re.compile("[\r\n\0]")


class Stored(NamedTuple):
    """The head of a stored response: everything but its body.

    method, url: of the request that was answered, the URL without user information or ignored
    and secret query values (for listings; a hit shows the URL that was asked for). fields:
    field lines in the order received, latin-1 text, duplicates kept, hop-by-hop fields left
    out. vary: the names in Vary, lower case and sorted; variant: a keyed digest of the
    request's values for them. request_time, response_time: wall clock, Unix seconds, when the
    request that led to this answer was sent and its header section received (RFC 9111,
    section 4.2.3). elapsed: seconds. kept_for: seconds of the `ttl` policy that this entry was
    stored under, None under `rfc9111`. size: bytes of the body as stored, which are the bytes
    on the wire, still in their Content-Encoding.
    """

    method: str
    url: str
    status: int
    reason: str
    version: int
    fields: FieldLines
    vary: tuple[str, ...]
    variant: str
    request_time: float
    response_time: float
    elapsed: float
    kept_for: float | None
    size: int
    extra: dict[str, Any]


def encode(stored: Stored) -> bytes:
    """The bytes of a head."""
    return FORMAT + json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode(head: bytes) -> Stored | None:
    """What `encode` made `head` from; None if it is damaged, of another format, or holds what no answer can."""
    if not head.startswith(FORMAT):
        return None
    try:
        values = json.loads(head[len(FORMAT) :].decode("utf-8", "surrogatepass"))
        stored = Stored(*values)
        fields = tuple([(name, value) for name, value in stored.fields])
        stored = stored._replace(fields=fields, vary=tuple(stored.vary))
        return stored if is_sound(stored) else None
    except (ValueError, TypeError, RecursionError):
        return None


def is_sound(stored: Stored) -> bool:
    """Whether all values are of their types and in their ranges, so that nothing which uses them can fail."""
    method, url, status, reason, version, fields, vary, variant, sent, came, elapsed, kept_for, size, extra = stored
    if type(extra) is not dict:
        return False
    asked = extra.get("asked", _NOTHING)
    return (
        _are(_TEXT, method, url, reason, variant, *vary)
        and _are(_INTEGER, status, version, size)
        and _are(_NUMBER, sent, came, elapsed, kept_for or 0)
        and 100 <= status <= 999
        and 0 <= version <= 99
        and 0 <= size <= 2**63
        and EARLIEST - _LONGEST <= sent <= LATEST
        and EARLIEST <= came <= LATEST
        and 0 <= elapsed <= _LONGEST
        and (kept_for is None or 0 <= kept_for <= _MOST)  # NaN lies between no two numbers
        and url.isprintable()
        and type(asked) is dict
        and _are(_TEXT_OR_NONE, *asked.values())
        and are_fields(fields)
    )


def are_fields(lines: FieldLines) -> bool:
    """Whether field lines could have come over the wire, and may go over it again: in latin-1, each in a line."""
    try:
        text = "".join(chain.from_iterable(lines))
    except TypeError:
        return False
    return (text.isascii() or max(text) <= "\xff") and _BREAK.search(text) is None


def is_sound_reference(
    key: str, vary: tuple[str, ...], variant: str, etag: str | None, last_modified: str | None, date: float
) -> bool:
    """The same for what one record says of another."""
    validators = tuple(("", value) for value in (etag, last_modified) if value is not None)
    is_named = _are(_TEXT, key, variant, *vary) and key.isascii() and key.isprintable()
    return is_named and are_fields(validators) and _are(_NUMBER, date) and EARLIEST <= date <= LATEST


_NOTHING: dict[str, Any] = {}
_MOST = 1.7e308  # a number that is still finite when it is added to any age
_TEXT: frozenset[type] = frozenset({str})
_TEXT_OR_NONE: frozenset[type] = frozenset({str, type(None)})
_INTEGER: frozenset[type] = frozenset({int})
_NUMBER: frozenset[type] = frozenset({int, float})


def _are(kinds: frozenset[type], *values: Any) -> bool:
    """Whether all are of one of these types, and of none that is derived from it."""
    return kinds.issuperset(map(type, values))
