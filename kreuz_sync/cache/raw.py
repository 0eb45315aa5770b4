"""What urllib3 makes of an answer on the wire (`Response.raw`), over a stored body.

It ends as one on the wire does: a body that has been read counts as closed. urllib3's own `stream(None)`, and
with it `iter_content(chunk_size=None)`, goes on until that is so.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import Any, BinaryIO

import requests
import urllib3
from urllib3._collections import HTTPHeaderDict  # urllib3 1.26 has it nowhere else

from .decisions import Hit
from .stored import FieldLines

REASONS = {206: "Partial Content", 304: "Not Modified"}
CLOSED = io.BytesIO()  # a body that is over
CLOSED.close()
_PIECE = 2**16  # bytes
_VERSIONS = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2"}


class StoredRaw(urllib3.HTTPResponse):
    """`raw` of an answer out of the store, opened when something of it is asked for.

    body: bytes, a `BodyFile`, or None if the response itself has it already: then nothing is left to
    be read, as in requests. size: its bytes on the wire.
    """

    # requests looks here, first thing, for cookies to put into the session.
    _original_response: Any = None

    def __init__(
        self, fields: FieldLines, hit: Hit, request: requests.PreparedRequest, body: bytes | BodyFile | None, size: int
    ) -> None:
        self._unopened: tuple[Any, ...] = (fields, hit, request, CLOSED if body is None else body, size)

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there, and until this is opened nothing is."""
        unopened = self.__dict__.pop("_unopened", None)
        if unopened is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        fields, hit, request, body, size = unopened
        stored = hit.entry.stored
        was_set = self.__dict__.copy()  # `raw.auto_close = False`, say
        super().__init__(
            body=BodyFile(io.BytesIO(body), 0, size) if isinstance(body, bytes) else body,  # type: ignore[arg-type]
            headers=HTTPHeaderDict(fields),
            status=hit.status,
            reason=stored.reason if hit.status == stored.status else REASONS[hit.status],
            version=stored.version,
            preload_content=False,
            decode_content=False,
            request_method=request.method,
            request_url=request.path_url,
        )
        self.version_string = _VERSIONS.get(stored.version, "HTTP/?")  # in urllib3 2 alone
        self._was_chunked = "chunked" in stored.extra
        if body is CLOSED:
            self._fp_bytes_read, self.length_remaining = size, 0
        self.__dict__.update(was_set)
        return getattr(self, name)

    def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Generator[bytes, None, None]:
        """As for a body on the wire. Where the chunks of a stored one ended is not known any more."""
        if not self._was_chunked:
            yield from super().read_chunked(amt, decode_content)
        elif amt != 0:
            yield from self.stream(amt if amt and amt > 0 else _PIECE, bool(decode_content))

    def fileno(self) -> int:
        """Raises io.UnsupportedOperation, as a file in memory does: what is stored is no file to read past this."""
        raise io.UnsupportedOperation("a stored answer has no file descriptor")

    # These two are asked for when it is forgotten, and need not open it.

    @property
    def closed(self) -> bool:
        unopened = self.__dict__.get("_unopened")
        return bool(super().closed if unopened is None else unopened[3] is CLOSED)

    def close(self) -> None:
        unopened = self.__dict__.get("_unopened")
        if unopened is None:
            super().close()
            return
        fields, hit, request, body, _ = unopened
        if not isinstance(body, bytes):
            body.close()
        self._unopened = (fields, hit, request, CLOSED, 0)


class BodyFile:
    """A part of a stored body, as what urllib3 reads from. What goes wrong there is an OSError.

    It closes the file when all has been read, as a connection would be given back.
    """

    def __init__(self, file: BinaryIO, first: int, size: int) -> None:
        self._file = file
        self._left = size
        if first:
            file.seek(first)

    def read(self, amount: int | None = None) -> bytes:
        """The next bytes, `amount` at most; b"" at the end."""
        if amount is None or amount < 0:
            amount = self._left
        elif not amount and self._left:  # of no bytes, nothing follows
            return b""
        amount = min(amount, self._left)
        if self._file.closed or not amount:
            self.close()
            return b""
        try:
            data = self._file.read(amount)
            if type(data) is not bytes or len(data) < amount:
                raise OSError("a stored body is shorter than it was")
        except OSError:
            self.close()
            raise
        except Exception as error:  # the file may be that of a store of a user's own
            self.close()
            raise OSError(str(error) or type(error).__name__) from error
        except BaseException:
            self.close()
            raise
        self._left -= len(data)
        if not self._left:
            self.close()
        return data

    def read1(self, amount: int | None = None) -> bytes:
        """The same."""
        return self.read(amount)

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self._file.closed

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
