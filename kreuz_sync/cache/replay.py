"""A stored response given out: a real `Response`, independent of every other one.

As little as possible is made of it at once. A body that is not streamed, and has no
Content-Encoding, is at hand already; what urllib3 would have made of the wire is made when somebody looks at `raw`
(`raw.py`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import requests
import urllib3
from requests.cookies import RequestsCookieJar
from requests.utils import get_encoding_from_headers

from kreuz_sync.response import Response

from .cookies import jar_of
from .decisions import Hit
from .kept import Kept, headers_of
from .raw import CLOSED, REASONS, BodyFile, StoredRaw
from .store import Body
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
            self._jar = jar = jar_of(self._fields, self.request)
        return jar

    @cookies.setter
    def cookies(self, jar: RequestsCookieJar) -> None:
        self._jar = jar


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
    if hit.status == stored.status and hit.part is None:
        fields = hit.entry.fields
        headers, encoding, reason = kept.headers(hit.age), kept.encoding, stored.reason
        raw_fields: FieldLines = (*fields, ("Age", str(int(hit.age))))
    else:
        fields = raw_fields = hit.fields
        headers, reason = headers_of(fields), REASONS[hit.status]
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
        raw=_raw(raw_fields, hit, request, content, is_read=is_ready),
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
    response.raw = urllib3.HTTPResponse(body=CLOSED, status=GATEWAY_TIMEOUT, preload_content=False)
    response._content, response._content_consumed = b"", True
    response.took(0.0)
    return response


def _content(request: requests.PreparedRequest, hit: Hit, body: Body) -> bytes | BodyFile:
    """What of the stored body the answer has: bytes, or something to read them from."""
    if request.method == "HEAD" or hit.status == 304:
        if not isinstance(body, bytes):
            body.close()
        return b""
    part, held = hit.part, hit.entry.held
    if part is None:
        return body if isinstance(body, bytes) else BodyFile(body, 0, hit.entry.stored.size)
    first, size = part.first - (0 if held is None else held.first), part.last + 1 - part.first
    return body[first : first + size] if isinstance(body, bytes) else BodyFile(body, first, size)


def _raw(
    fields: FieldLines, hit: Hit, request: requests.PreparedRequest, content: bytes | BodyFile, *, is_read: bool
) -> StoredRaw:
    size = len(content) if isinstance(content, bytes) else 0
    return StoredRaw(fields, hit, request, None if is_read else content, size)
