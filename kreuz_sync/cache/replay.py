"""A stored response given out: a real `Response`, independent of every other one.

As little as possible is made of it at once. A body that is not streamed, and has no
Content-Encoding, is at hand already; what urllib3 would have made of the wire is made when somebody looks at `raw`.
"""

from __future__ import annotations

import io
from datetime import timedelta
from http.client import HTTPMessage
from typing import Any, BinaryIO, cast

import requests
import urllib3
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
from requests.utils import get_encoding_from_headers
from urllib3._collections import HTTPHeaderDict  # urllib3 1.26 has it nowhere else

from kreuz_sync.response import Response

from .decisions import Hit
from .kept import Kept, headers_of
from .store import Body, StoreTrouble
from .stored import FieldLines

GATEWAY_TIMEOUT = 504


class Replayed(Response):
    """A `Response` out of the store.

    Its `cookies` are those that were stored, made when they are asked for; the session's own
    are left alone, or an old session would come back to life.
    """

    from_cache = True
    _fields: FieldLines = ()
    _jar: RequestsCookieJar | None = None

    @property
    def cookies(self) -> RequestsCookieJar:
        jar = self._jar
        if jar is None:
            self._jar = jar = _cookies(self._fields, self.request)
        return jar

    @cookies.setter
    def cookies(self, jar: RequestsCookieJar) -> None:
        self._jar = jar


class StoredRaw(urllib3.HTTPResponse):
    """What urllib3 makes of an answer on the wire, over a stored body. Opened when something of it is asked for."""

    # requests looks here, first thing, for cookies to put into the session.
    _original_response: Any = None

    def __init__(self, fields: FieldLines, hit: Hit, request: requests.PreparedRequest, body: Any) -> None:
        self._unopened: tuple[Any, ...] = (fields, hit, request, body)

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there, and until this is opened nothing is."""
        unopened = self.__dict__.pop("_unopened", None)
        if unopened is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        fields, hit, request, body = unopened
        stored = hit.entry.stored
        was_set = self.__dict__.copy()  # `raw.auto_close = False`, say
        super().__init__(
            body=io.BytesIO(body) if isinstance(body, bytes) else body,
            headers=HTTPHeaderDict(fields),
            status=hit.status,
            reason=stored.reason if hit.status == stored.status else _REASONS[hit.status],
            version=stored.version,
            preload_content=False,
            decode_content=False,
            request_method=request.method,
            request_url=request.url,
        )
        self.__dict__.update(was_set)
        return getattr(self, name)

    # These two are asked for when it is forgotten, and need not open it.

    @property
    def closed(self) -> bool:
        unopened = self.__dict__.get("_unopened")
        return bool(super().closed if unopened is None else unopened[-1] is _CLOSED)

    def close(self) -> None:
        unopened = self.__dict__.get("_unopened")
        if unopened is None:
            super().close()
            return
        if not isinstance(unopened[-1], bytes):
            unopened[-1].close()
        self._unopened = (*unopened[:-1], _CLOSED)


class BodyFile:
    """A part of a stored body's file, as what urllib3 reads from. What goes wrong there is an OSError.

    It closes the file when all has been read, as a connection would be given back.
    """

    def __init__(self, file: BinaryIO, first: int, size: int) -> None:
        self._file = file
        self._left = size
        if first:
            file.seek(first)

    def read(self, amount: int | None = None) -> bytes:
        if amount is None or amount < 0:
            amount = self._left
        amount = min(amount, self._left)
        if self._file.closed or not amount:
            self.close()
            return b""
        try:
            data = self._file.read(amount)
            if len(data) < amount:
                raise OSError("a stored body is shorter than it was")
        except StoreTrouble as error:
            self.close()
            raise OSError(str(error)) from error
        except BaseException:
            self.close()
            raise
        self._left -= len(data)
        if not self._left:
            self.close()
        return data

    def read1(self, amount: int | None = None) -> bytes:
        return self.read(amount)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()


_CLOSED = io.BytesIO()
_CLOSED.close()
_REASONS = {206: "Partial Content", 304: "Not Modified"}
_BLANK = {name: value for name, value in Response().__dict__.items() if name not in ("cookies", "history")}


def replay(request: requests.PreparedRequest, hit: Hit, kept: Kept, body: Body, *, stream: bool) -> Replayed:
    """The answer to `request` that `hit` decided on. body: the stored one, which is the answer's from now on.

    Without `stream` a body in a file is read here. Raises StoreTrouble and OSError if that fails.
    """
    content = _content(request, hit, body)
    if not stream and not isinstance(content, bytes):
        try:
            content = content.read()
        except BaseException:
            body.close()  # type: ignore[union-attr]
            raise
    stored = hit.entry.stored
    response = Replayed.__new__(Replayed)
    if hit.status == stored.status:
        fields = hit.entry.fields
        headers, encoding, reason = kept.headers(hit.age), kept.encoding, stored.reason
        raw_fields: FieldLines = (*fields, ("Age", str(int(hit.age))))
    else:
        fields = raw_fields = hit.fields
        headers, reason = headers_of(fields), _REASONS[hit.status]
        encoding = get_encoding_from_headers(headers)
    is_ready = not stream and not (kept.coded and content)
    response.__dict__.update(
        _BLANK,
        _content=content if is_ready else False,
        _content_consumed=is_ready,
        _fields=fields,
        _timed=True,
        elapsed=timedelta(seconds=stored.elapsed),
        encoding=encoding,
        headers=headers,
        history=[],
        raw=StoredRaw(raw_fields, hit, request, content),
        reason=reason,
        request=request,
        status_code=hit.status,
        url=request.url,
    )
    return response


def refuse(request: requests.PreparedRequest) -> Response:
    """The 504 for a request that wants only what is stored, where nothing is. RFC 9111, section 5.2.1.7."""
    response = Response()
    response.status_code = GATEWAY_TIMEOUT
    response.reason = "Gateway Timeout"
    response.url = cast(str, request.url)
    response.request = request
    response.raw = urllib3.HTTPResponse(body=io.BytesIO(), status=GATEWAY_TIMEOUT, preload_content=False)
    response._content, response._content_consumed = b"", True
    response.took(0.0)
    return response


def _content(request: requests.PreparedRequest, hit: Hit, body: Body) -> Any:
    """What of the stored body the answer has: bytes, or something to read them from."""
    if request.method == "HEAD" or hit.status == 304:
        if not isinstance(body, bytes):
            body.close()
        return b""
    part = hit.part
    if isinstance(body, bytes):
        return body if part is None else body[part.first : part.last + 1]
    if part is None:
        return BodyFile(body, 0, hit.entry.stored.size)
    return BodyFile(body, part.first, part.last + 1 - part.first)


def _cookies(fields: FieldLines, request: requests.PreparedRequest) -> RequestsCookieJar:
    """The cookies of an answer with `fields`, as the standard library reads them."""
    jar = RequestsCookieJar()
    message = HTTPMessage()
    for name, value in fields:
        if name.lower() == "set-cookie":
            message.add_header(name, value)
    if len(message):
        extract_cookies_to_jar(jar, request, _Answer(message))
    return jar


class _Answer:
    """What requests wants to see of urllib3's response to find cookies in it."""

    def __init__(self, message: HTTPMessage) -> None:
        self._original_response = self
        self.msg = message
