"""What spans and measurements say of a request, an answer and an error: names and values, without their secrets.

Pure. The names are those of OpenTelemetry's semantic conventions for HTTP, 1.44.0, wherever they have one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests

from kreuz_sync.errors import SECRET_FIELDS, KreuzError, WafBlocked
from kreuz_sync.urls import DEFAULT_PORTS, redact, redact_text, site_of

METHOD, METHOD_ORIGINAL = "http.request.method", "http.request.method_original"
URL, TEMPLATE = "url.full", "url.template"
SERVER, PORT = "server.address", "server.port"
PEER, PEER_PORT = "network.peer.address", "network.peer.port"
VERSION = "network.protocol.version"
STATUS = "http.response.status_code"
RESENT = "http.request.resend_count"
REQUEST_SIZE, RESPONSE_SIZE = "http.request.body.size", "http.response.body.size"
ERROR = "error.type"

KNOWN_METHODS = frozenset("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE".split())
KNOWN_METHODS_VARIABLE = "OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS"  # a list with commas, in place of these
OTHER_METHOD = "_OTHER"
# Whatever is asked for, these are not recorded.
NEVER_CAPTURED = SECRET_FIELDS | {"set-cookie", "set-cookie2", "cookie2"}
DESCRIPTION_SHOWN = 1000  # characters of an error's text
_PAIR_IN_TEXT = re.compile(r"(?<=[?&;#])([^=&;#\s]+)=[^&;#\s]*")
_VERSIONS = {9: "0.9", 10: "1.0", 11: "1.1", 20: "2"}


class Reader(NamedTuple):
    """Reads requests and answers as one `Tracing` wants it.

    methods: those that are known. redacted: names of query parameters, in lower case, whose values are
    secret besides the usual. request_fields, response_fields: names in lower case of fields to
    capture; "*" among them stands for all.
    """

    methods: frozenset[str]
    redacted: frozenset[str] = frozenset()
    request_fields: frozenset[str] = frozenset()
    response_fields: frozenset[str] = frozenset()

    def method(self, request: requests.PreparedRequest) -> str:
        """The request's method, or the word for one that is not known."""
        return request.method if request.method in self.methods else OTHER_METHOD

    def url(self, url: str) -> str:
        """`url` as `url.full` has it."""
        # The conventions show a user and a password, though there may have been only one of the two.
        return redact(url, self.redacted).replace("//REDACTED@", "//REDACTED:REDACTED@", 1)

    def request(self, request: requests.PreparedRequest) -> dict[str, Any]:
        """What is known before `request` is sent, and must be said when its span begins."""
        url = request.url or ""
        said = {METHOD: self.method(request), URL: self.url(url), **server_of(url)}
        if said[METHOD] == OTHER_METHOD and request.method:
            said[METHOD_ORIGINAL] = request.method
        return said

    def sent(self, request: requests.PreparedRequest, secret: Iterable[str]) -> dict[str, Any]:
        """What else may be said of `request`. secret: names of its fields that hold credentials."""
        said: dict[str, Any] = {}
        size = request.headers.get("Content-Length") if request.headers else None
        if size is not None and str(size).isdecimal() and int(size):
            said[REQUEST_SIZE] = int(size)
        if self.request_fields:
            said.update(self._captured("http.request.header.", request.headers, self.request_fields, secret))
        return said

    def answer(self, response: requests.Response, secret: Iterable[str]) -> dict[str, Any]:
        """What the status line and the header section of `response` say."""
        said: dict[str, Any] = {STATUS: response.status_code}
        version = version_of(response)
        if version is not None:
            said[VERSION] = version
        if self.response_fields:
            said.update(self._captured("http.response.header.", response.headers, self.response_fields, secret))
        return said

    def description(self, error: BaseException) -> str | None:
        """What went wrong, if that is certain to hold no secrets: the texts of other packages quote what was sent."""
        if not isinstance(error, KreuzError):
            return None
        text = str(error)  # without the usual secrets
        if self.redacted:
            text = _PAIR_IN_TEXT.sub(self._shown_pair, text)
        return text[:DESCRIPTION_SHOWN]

    def _shown_pair(self, pair: re.Match[str]) -> str:
        return f"{pair[1]}=REDACTED" if pair[1].lower() in self.redacted else pair[0]

    def _captured(
        self, prefix: str, fields: Mapping[str, Any], wanted: frozenset[str], secret: Iterable[str]
    ) -> dict[str, list[str]]:
        never = NEVER_CAPTURED.union(name.lower() for name in secret)
        return {
            prefix + name.lower(): [redact_text(_text(value), self.redacted)]
            for name, value in fields.items()
            if (name.lower() in wanted or "*" in wanted) and name.lower() not in never
        }


def known_methods() -> frozenset[str]:
    """The methods that spans may be named by, as the environment says or else the conventions."""
    given = os.environ.get(KNOWN_METHODS_VARIABLE)
    return KNOWN_METHODS if not given else frozenset(name.strip() for name in given.split(",") if name.strip())


def server_of(url: str) -> dict[str, Any]:
    """The host and the port that `url` names, the scheme's own where it names none.

    >>> server_of("http://[::1]/a")
    {'server.address': '::1', 'server.port': 80}
    """
    return dict(_server_of_site(site_of(url)))


@lru_cache(maxsize=4096)
def _server_of_site(site: str) -> tuple[tuple[str, Any], ...]:
    try:
        parts = urlsplit(site)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ((SERVER, ""),)
    if port is None:
        port = DEFAULT_PORTS.get(parts.scheme)
    return ((SERVER, host),) if port is None else ((SERVER, host), (PORT, port))


def version_of(response: requests.Response) -> str | None:
    """The version of HTTP that an answer came by; None if nobody knows."""
    return _VERSIONS.get(getattr(response.raw, "version", None) or 0)


def name_of(error: BaseException) -> str:
    """What `error.type` calls an exception: its class.

    >>> name_of(ValueError())
    'ValueError'
    """
    return class_name(type(error))


def class_name(kind: type) -> str:
    """The qualified name of a class, without `builtins`."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def trouble_of(response: Any) -> str | None:
    """What `error.type` calls an answer; None for one that is no error."""
    status = getattr(response, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return str(status)
    return class_name(WafBlocked) if getattr(response, "waf", None) is not None else None


def cache_status(response: Any) -> str | None:
    """What our cache, and none on the way, says of its part in an answer, as of RFC 9211; None without one."""
    told: str | None = getattr(response, "cache_status", None)
    return None if told is None else told.rpartition(", ")[2]


def cache_result(response: Any) -> str | None:
    """One word for what the cache did; None without one."""
    told = cache_status(response)
    if told is None:
        return None
    said = dict(word.partition("=")[::2] for word in told.split("; "))
    if said.get("detail") == "only-if-cached":
        return "refused"
    if "detail" in said:  # it says why a stale answer was given out
        return "stale"
    for word in ("hit", "collapsed"):
        if word in said:
            return word
    if said.get("fwd") == "bypass":
        return "bypass"
    return "revalidated" if response.from_cache else "miss"


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
