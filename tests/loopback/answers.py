"""What a server says: the steps of an answer, and the usual answers ready-made.

Nothing here touches a socket. An answer is a sequence of steps (bytes to send, seconds or an
event to wait for, an ending), so a fault is written down where it happens.
"""

from __future__ import annotations

import enum
import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import responses as REASONS
from typing import Any

from .received import Received


class Ending(enum.Enum):
    """How a connection ends before its time."""

    CLOSE = "the server closes it"
    RESET = "the server aborts it"


Step = bytes | float | threading.Event | Ending
FieldPairs = Mapping[str, str] | Iterable[tuple[str, str]]


class Raw:
    """Steps written out by hand: no status line unless `steps` contain one.

    `steps` may be endless. Each request gets what is left of an iterator, and all of a list.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = steps

    def steps(self, request: Received) -> Iterator[Step]:
        return iter(self._steps)


class Answer:
    """An HTTP/1.1 answer, as good or bad as asked.

    chunks: sent with the chunked coding, in place of `body`. length: what Content-Length says
    (default: the truth; None: no such field, the connection's end ends the body). delay: seconds
    or an event to wait for before the first byte. piece, pause: send the body `piece` bytes at a
    time, and wait `pause` between two (between chunks, if these are given). cut: close after so many bytes
    of the body as it is on the wire. close: the connection ends here.
    """

    def __init__(
        self,
        status: int = 200,
        body: bytes | str = b"",
        fields: FieldPairs = (),
        *,
        content_type: str | None = None,
        reason: str | None = None,
        version: str = "HTTP/1.1",
        chunks: Iterable[bytes] | None = None,
        length: int | str | None = "true",
        delay: float | threading.Event = 0.0,
        piece: int | None = None,
        pause: float | threading.Event = 0.0,
        cut: int | None = None,
        close: bool = False,
    ) -> None:
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        self.fields = list(fields.items() if isinstance(fields, Mapping) else fields)
        if content_type is not None:
            self.fields.append(("Content-Type", content_type))
        self.reason = REASONS.get(status, "") if reason is None else reason
        self.version = version
        self.chunks = None if chunks is None else list(chunks)
        self.length = length
        self.delay = delay
        self.piece = piece
        self.pause = pause
        self.cut = cut
        self.close = close or (length is None and chunks is None)

    def steps(self, request: Received) -> Iterator[Step]:
        if self.delay:
            yield self.delay
        head = self.head()
        if request.method == "HEAD" or self.status < 200 or self.status in (204, 304):
            yield head
        else:
            yield from self._with_body(head)
        if self.close:
            yield Ending.CLOSE

    def head(self) -> bytes:
        """The status line and the header section."""
        fields = list(self.fields)
        if self.chunks is not None:
            fields.append(("Transfer-Encoding", "chunked"))
        elif self.length is not None and not (self.status < 200 or self.status in (204, 304)):
            fields.append(("Content-Length", str(len(self.body) if self.length == "true" else self.length)))
        if self.close:
            fields.append(("Connection", "close"))
        lines = [f"{self.version} {self.status} {self.reason}", *(f"{name}: {value}" for name, value in fields)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _with_body(self, head: bytes) -> Iterator[Step]:
        left = self.cut
        sent = head  # the first piece travels with the header section, in one packet
        for number, piece in enumerate(self._pieces()):
            if number and self.pause:
                yield sent
                yield self.pause
                sent = b""
            sent += piece if left is None else piece[:left]
            if left is not None:
                left -= len(piece)
                if left <= 0:
                    break
        yield sent
        if left is not None:
            yield Ending.CLOSE

    def _pieces(self) -> Iterator[bytes]:
        if self.chunks is not None:
            for chunk in self.chunks:
                yield b"%x\r\n%s\r\n" % (len(chunk), chunk)
            yield b"0\r\n\r\n"
        elif self.piece is None:
            yield self.body
        else:
            for start in range(0, len(self.body), self.piece):
                yield self.body[start : start + self.piece]


Handler = Callable[[Received], Answer | Raw | int]

answer = Answer


# --- good answers -------------------------------------------------------------------------


def json_answer(value: Any, status: int = 200, fields: FieldPairs = (), **how: Any) -> Answer:
    """`value` as a JSON document."""
    return Answer(status, json.dumps(value), fields, content_type="application/json", **how)


def redirect(location: str, status: int = 302, fields: FieldPairs = (), **how: Any) -> Answer:
    """To `location`, which may be relative."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return Answer(status, fields=[*pairs, ("Location", location)], **how)


def set_cookies(*cookies: str, **how: Any) -> Answer:
    """A Set-Cookie field for each of `cookies`, such as `"a=1; Path=/"`."""
    return Answer(fields=[("Set-Cookie", cookie) for cookie in cookies], **how)


def chunked(*chunks: bytes, **how: Any) -> Answer:
    """A body in chunks, of unknown length."""
    return Answer(chunks=chunks, **how)


def gzipped(body: bytes | str, **how: Any) -> Answer:
    """A body in the gzip coding."""
    return Answer(body=gzip.compress(_bytes(body), mtime=0), fields={"Content-Encoding": "gzip"}, **how)


def deflated(body: bytes | str, *, bare: bool = False, **how: Any) -> Answer:
    """A body in the deflate coding; `bare` leaves out the zlib wrapper, as some servers do."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
    return Answer(body=packer.compress(_bytes(body)) + packer.flush(), fields={"Content-Encoding": "deflate"}, **how)


def echo(request: Received) -> Answer:
    """The request itself, as JSON: method, target, fields (pairs), body (latin-1), connection."""
    return json_answer(
        {
            "method": request.method,
            "target": request.target,
            "fields": request.fields.pairs,
            "body": request.body.decode("latin-1"),
            "connection": request.connection,
        }
    )


# --- trouble ------------------------------------------------------------------------------


def cut(body: bytes, after: int, **how: Any) -> Answer:
    """A body that promises its whole length and ends after `after` bytes."""
    return Answer(body=body, cut=after, **how)


def cut_chunked(*chunks: bytes, **how: Any) -> Answer:
    """Chunks whose last one never comes."""
    wire = sum(len(b"%x\r\n\r\n" % len(chunk)) + len(chunk) for chunk in chunks)
    return Answer(chunks=chunks, cut=wire, **how)


def drip(body: bytes, *, piece: int = 1, pause: float | threading.Event = 0.01, **how: Any) -> Answer:
    """A body that comes `piece` bytes at a time, `pause` seconds apart."""
    return Answer(body=body, piece=piece, pause=pause, **how)


def garbage(data: bytes = b"\x00\x01 this is not HTTP\r\n\r\n") -> Raw:
    """Something else than HTTP, and the end of the connection."""
    return Raw([data, Ending.CLOSE])


def hang_up() -> Raw:
    """No answer: the connection is closed."""
    return Raw([Ending.CLOSE])


def reset() -> Raw:
    """No answer: the connection is aborted."""
    return Raw([Ending.RESET])


def silent() -> Raw:
    """No answer, and no end: until the client leaves, or the server is closed."""
    return Raw([threading.Event()])


def sequence(*answers: Answer | Raw | int | Handler) -> Handler:
    """The first of `answers` to the first request, and so on; the last one from then on."""
    lock = threading.Lock()
    left = list(answers)

    def next_one(request: Received) -> Answer | Raw | int:
        with lock:
            one = left.pop(0) if len(left) > 1 else left[0]
        return one(request) if callable(one) else one

    return next_one


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
