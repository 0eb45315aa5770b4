"""A stored response, and the bytes it is kept as.

Pure: nothing here knows where the bytes are kept.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

FORMAT = b"kz1\n"  # the first bytes of every head; another format is a miss, not an error

FieldLines = tuple[tuple[str, str], ...]


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
    """What `encode` made `head` from; None if it is damaged or of another format."""
    if not head.startswith(FORMAT):
        return None
    try:
        values = json.loads(head[len(FORMAT) :].decode("utf-8", "surrogatepass"))
        stored = Stored(*values)
        fields = tuple((str(name), str(value)) for name, value in stored.fields)
        return stored._replace(fields=fields, vary=tuple(map(str, stored.vary)))
    except (ValueError, TypeError):
        return None
