"""A request as it came over the wire, and how it is read from there (RFC 9112)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

LINE_LIMIT = 1024 * 1024


class Fields:
    """Header fields in the order they came; names are compared without case, repeated ones are kept."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = list(pairs)

    def all(self, name: str) -> list[str]:
        """The values of every field called `name`."""
        return [value for key, value in self.pairs if key.lower() == name.lower()]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of the last field called `name`."""
        found = self.all(name)
        return found[-1] if found else default

    def __getitem__(self, name: str) -> str:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Fields({self.pairs!r})"


class Received:
    """One request.

    at: `time.monotonic()` when its request line had come. target: as it was sent, with its
    query (a proxy gets a whole URL, or host:port). connection: the number of the connection
    that it came on, counted from 1. complete: False if the client hung up inside the body.
    certificate: the client's, as `ssl.SSLSocket.getpeercert` gives it, or None.
    """

    def __init__(self, method: str, target: str, version: str, fields: Fields, *, at: float) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        self.body = b""
        self.at = at
        self.complete = True
        self.connection = 0
        self.peer: tuple[str, int] = ("", 0)
        self.local: tuple[str, int] = ("", 0)
        self.certificate: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """The path of the target, still percent-encoded."""
        return urlsplit(self.target).path if "://" in self.target else self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What stands after the question mark, still percent-encoded."""
        return self.target.partition("?")[2]

    @property
    def params(self) -> list[tuple[str, str]]:
        """The query's pairs, decoded."""
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def host(self) -> str:
        """The Host field."""
        return self.fields.get("Host") or ""

    @property
    def cookies(self) -> dict[str, str]:
        """Names and values of the Cookie field."""
        pairs = (pair.strip().partition("=") for value in self.fields.all("Cookie") for pair in value.split(";"))
        return {name: value for name, _, value in pairs if name}

    @property
    def chunked(self) -> bool:
        """Whether the body came in chunks."""
        return "chunked" in (self.fields.get("Transfer-Encoding") or "").lower()

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants the connection to stay (RFC 9112, section 9.3)."""
        wish = (self.fields.get("Connection") or "").lower()
        return "keep-alive" in wish if self.version == "HTTP/1.0" else "close" not in wish

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<Received {self.method} {self.target} on connection {self.connection}>"


def read_request(stream: BinaryIO) -> Received | None:
    """The next request on a connection; None when the client has left, or sends something else."""
    line = stream.readline(LINE_LIMIT)
    at = time.monotonic()
    parts = line.decode("latin-1").split()
    if len(parts) != 3:
        return None
    method, target, version = parts
    request = Received(method, target, version, Fields(_read_fields(stream)), at=at)
    try:
        request.body = _read_body(stream, request)
    except (EOFError, ValueError):
        request.complete = False
    return request


def _read_fields(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    while (line := stream.readline(LINE_LIMIT).decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = line.partition(":")
        yield name, value.strip()


def _read_body(stream: BinaryIO, request: Received) -> bytes:
    if not request.chunked:
        return _exactly(stream, int(request.fields.get("Content-Length") or 0))
    body = b""
    while (size := int(stream.readline(LINE_LIMIT).split(b";")[0], 16)) > 0:
        body += _exactly(stream, size)
        stream.readline(LINE_LIMIT)
    for _ in _read_fields(stream):  # trailers
        pass
    return body


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size) if size else b""
    if len(found) < size:
        raise EOFError
    return found
