"""Calls of WSGI applications as a server makes them, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

PEER = "198.51.100.1"
App = Callable[..., Iterable[bytes]]


class Answer(NamedTuple):
    """What a server was told: status line, fields in order, the whole body."""

    status: str
    fields: list[tuple[str, str]]
    body: bytes

    @property
    def code(self) -> int:
        return int(self.status[:3])

    def values(self, name: str) -> list[str]:
        """Of all fields of that name."""
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def value(self, name: str) -> str:
        (value,) = self.values(name)
        return value


def environ(method: str = "GET", path: str = "/", peer: str | None = PEER, **more: Any) -> dict[str, Any]:
    """A request; keywords are fields (`x_api_key="k"`), or variables if they have a dot or are in capitals."""
    made: dict[str, Any] = {"REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": ""}
    if peer is not None:
        made["REMOTE_ADDR"] = peer
    for name, value in more.items():
        made[name if name.isupper() or "." in name else f"HTTP_{name.upper()}"] = value
    setup_testing_defaults(made)
    return made


def call(app: App, given: dict[str, Any] | None = None, **request: Any) -> Answer:
    """One request, as a server that keeps to PEP 3333 makes it: body read to its end, then closed."""
    told: list[tuple[str, list[tuple[str, str]]]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        assert exc_info or not told, "start_response was called twice"
        told.append((status, headers))
        return written.append

    body = app(environ(**request) if given is None else given, start_response)
    try:
        pieces = list(body)
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()
    assert told, "start_response was not called"
    status, fields = told[-1]
    return Answer(status, list(fields), b"".join(written + pieces))


def checked(app: App) -> App:
    """`app` between two sides that may only do what PEP 3333 allows."""
    return validator(app)  # type: ignore[no-any-return, type-var]


class Hello:
    """An application that counts its calls and keeps what it was given."""

    def __init__(self, status: str = "200 OK", fields: Iterable[tuple[str, str]] = (), body: bytes = b"hello") -> None:
        self.status = status
        self.fields = [("Content-Type", "text/plain"), *fields]
        self.body = body
        self.environs: list[dict[str, Any]] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        self.environs.append(environ)
        start_response(self.status, list(self.fields))
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else self.body]


class Body:
    """An iterable of its own kind, that knows whether it was closed."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        self.closed += 1


ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


def current_exception() -> ExcInfo:
    return sys.exc_info()  # type: ignore[return-value]
