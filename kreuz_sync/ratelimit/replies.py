"""What a server answers in place of the application: replies as WSGI applications (PEP 3333)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http.client import responses as REASONS
from typing import Any

from kreuz_sync import checks

from .environ import Environ

StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]
Fields = list[tuple[str, str]]
Reply = tuple[int, Mapping[str, str] | Iterable[tuple[str, str]], bytes]

_WITHOUT_BODY = frozenset({204, 205, 304})  # RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5
_WITHOUT_LENGTH = frozenset({204, 304})

# Of the connection, which is the server's: an application may not set them (PEP 3333, "Other HTTP Features").
_HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization te trailer trailers transfer-encoding upgrade".split()
)

# In the environ of a request of which a limit could not tell whether it has room: then no limit says anything.
UNDECIDED = "kreuz_sync.rate_limit_undecided"


def as_app(answer: App | Reply) -> App:
    """What a user's `response=` function returned, as an application.

    A WSGI application is one already, and a response of Flask, Werkzeug or WebOb is one too. A reply is
    a triple of status, fields and body.
    """
    if callable(answer):
        return answer
    if isinstance(answer, tuple) and len(answer) == 3:
        return reply(*answer)
    raise TypeError(
        f"response={answer!r} was returned: a WSGI application is wanted (a Flask or Werkzeug response is one), "
        "or a triple such as (429, {'Content-Type': 'text/plain'}, b'Slow down')"
    )


def reply(status: int, fields: Mapping[str, str] | Iterable[tuple[str, str]] = (), body: bytes = b"") -> App:
    """An application that answers every request alike, and reads none of them.

    Content-Length is added, and a Content-Type if there is none. HEAD gets the same without the body, and a
    status that has none never gets one. Raises TypeError or ValueError, naming the field, for what cannot be sent.
    """
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise ValueError(f"response: status {status!r}: a whole number is wanted, 200 to 599")
    if not isinstance(body, bytes):
        raise TypeError(f"response: a body of bytes is wanted, not {type(body).__name__}")
    headers = [_field(pair) for pair in (fields.items() if isinstance(fields, Mapping) else fields)]
    if status in _WITHOUT_BODY:
        body = b""
    if status == 204:  # RFC 9110, section 8.6
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
    if status not in _WITHOUT_LENGTH:
        given = {name.lower() for name, _ in headers}
        if "content-type" not in given:
            headers.append(("Content-Type", "text/plain; charset=utf-8"))
        if "content-length" not in given:
            headers.append(("Content-Length", str(len(body))))
    status_line = f"{status} {REASONS.get(status, 'Unknown')}"

    def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        start_response(status_line, list(headers))
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

    return app


def _field(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"response: fields are wanted as pairs of name and value, not {pair!r}")
    name, value = checks.token("response: the name of a field", pair[0]), pair[1]
    if name.lower() in _HOP_BY_HOP:
        raise ValueError(f"response: field {name}: it is about the connection, which is the server's")
    return name, "" if value == "" else checks.field_value(f"response: field {name}", value, secret=True)


def adding(start_response: StartResponse, fields: Fields, environ: Environ, *, retry_after: str = "") -> StartResponse:
    """A `start_response` that adds `fields` to what the application gives, which stays as it is.

    retry_after: the value of a Retry-After field, for an application that writes none itself. An
    informational answer (1xx) gets nothing: none of this is about it. Nor does one to a request that became
    `UNDECIDED` further in.
    """

    def start(status: str, headers: Fields, exc_info: Any = None) -> Any:
        try:
            if not status.startswith("1") and UNDECIDED not in environ:
                headers = [*headers, *fields]
                if retry_after and not any(name.lower() == "retry-after" for name, _ in headers):
                    headers.append(("Retry-After", retry_after))
            if exc_info is None:
                return start_response(status, headers)
            return start_response(status, headers, exc_info)
        finally:
            exc_info = None  # its traceback holds this frame: a cycle otherwise (PEP 3333, "Error Handling")

    return start
