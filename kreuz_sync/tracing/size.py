"""What the wire knows: how many bytes of a body came, before they were decoded, and from whom."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import requests
import urllib3

from .attributes import PEER, PEER_PORT


class ChunkCount:
    """Counts the bytes of a body that comes in chunks, without their framing. urllib3 itself does not."""

    __slots__ = ("_raw", "bytes")

    def __init__(self, raw: Any) -> None:
        self.bytes = 0
        self._raw = weakref.ref(raw)  # no cycle: a forgotten answer's socket is closed at once
        raw._handle_chunk = self._count

    def _count(self, amount: int | None) -> bytes:
        raw: Any = self._raw()
        chunk: bytes = type(raw)._handle_chunk(raw, amount)
        self.bytes += len(chunk)
        return chunk


def count_chunks(response: requests.Response) -> ChunkCount | None:
    """Count what is read of `response` from now on; None if urllib3 does, or it comes from no wire."""
    raw: Any = response.raw
    if isinstance(raw, urllib3.HTTPResponse) and raw.chunked and raw.supports_chunked_reads():
        return ChunkCount(raw)
    return None


def wire_size(response: requests.Response, count: ChunkCount | None) -> int | None:
    """Bytes of the body that have come; None if nobody knows."""
    raw: Any = response.raw
    if not isinstance(raw, urllib3.HTTPResponse):
        return None
    # Read without regard to its chunks (`raw.read`), a body passes the count by.
    return raw.tell() if count is None else max(raw.tell(), count.bytes)


def peer_of(response: requests.Response) -> dict[str, Any]:
    """Who is at the other end of its connection: the proxy, if there is one."""
    sock = getattr(getattr(response.raw, "connection", None), "sock", None)
    with contextlib.suppress(OSError, AttributeError, TypeError, ValueError, IndexError):
        address, port = sock.getpeername()[:2]  # type: ignore[union-attr]  # None has no such thing either
        return {PEER: str(address), PEER_PORT: int(port)}
    return {}
