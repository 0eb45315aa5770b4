"""The bytes of a body as they come off the wire, seen on their way to whoever reads them.

urllib3 decodes a body while it is read, and whoever reads may do so in many ways (`read`, `stream`,
`readinto`, line by line, by chunks). What all of them have in common are two methods that hand over
bytes whose framing is gone and whose Content-Encoding is not: those are watched here. A urllib3
without them would make `tap` refuse, and a test fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import urllib3
from urllib3.util.response import is_fp_closed

CAN_TAP = hasattr(urllib3.HTTPResponse, "_fp_read") and hasattr(urllib3.HTTPResponse, "_handle_chunk")


class Listener(Protocol):
    """Whoever wants to know what is read."""

    def take(self, data: bytes) -> None:
        """The next bytes of the body, still in their Content-Encoding."""

    def end(self) -> None:
        """The wire has no more of it. Whether that is all of it is for the listener to find out."""

    def abandon(self) -> None:
        """Nobody will read the rest."""


def tap(raw: object, listener: Listener) -> bool:
    """Tell `listener` what is read from `raw`; False if that is not possible, or some of it has been read already."""
    if not CAN_TAP or not isinstance(raw, urllib3.HTTPResponse):
        return False
    if raw.tell() or getattr(raw, "chunk_left", None) is not None:
        return False
    raw.__class__ = _tapped(type(raw))
    raw._listener = listener  # type: ignore[attr-defined]
    return True


class _Tapped:
    """The methods that watch; the class that is made of this and urllib3's comes from `_tapped`."""

    _fp: Any
    _listener: Listener

    def _fp_read(self, amt: int | None = None, **how: Any) -> bytes:
        try:
            data: bytes = super()._fp_read(amt, **how)  # type: ignore[misc]
            if data:
                self._listener.take(data)
            everything = amt is None and not how.get("read1")
            if everything or (not data and amt != 0) or is_fp_closed(self._fp):
                self._listener.end()
        except BaseException:
            self._listener.abandon()
            raise
        return data

    def _handle_chunk(self, amt: int | None) -> bytes:
        chunk: bytes = super()._handle_chunk(amt)  # type: ignore[misc]
        self._listener.take(chunk)
        return chunk

    def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        try:
            yield from super().read_chunked(amt, decode_content)  # type: ignore[misc]
        except BaseException:  # also that of a reader who wants no more
            self._listener.abandon()
            raise
        self._listener.end()

    def close(self) -> None:
        self._listener.abandon()
        super().close()  # type: ignore[misc]


@lru_cache(maxsize=16)
def _tapped(kind: type[urllib3.HTTPResponse]) -> type[urllib3.HTTPResponse]:
    if issubclass(kind, _Tapped):
        return kind
    return type(kind.__name__, (_Tapped, kind), {})
