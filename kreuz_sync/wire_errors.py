"""From what the wire raised to the typed error that says so.

The kind is found by walking the chain of exceptions, never by words in a text: the text
contains the URL, and a host may be called `proxy.example`.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import unquote

import requests
import urllib3.exceptions as lower
from requests import exceptions as theirs

from .errors import (
    ConnectionFailed,
    ConnectionRefused,
    ConnectTimeout,
    DataLoss,
    DnsError,
    KreuzError,
    ProtocolViolation,
    ProxyError,
    ReadTimeout,
    RetriesExhausted,
    SslError,
    UploadFailed,
)
from .urls import redact, redact_text

_AFTER_AUTHORITY = re.compile(r"[/?#\\]")
_IN_NO_HOST = re.compile(r"[\x00-\x20\x7f/?#@\\:\[\]%]")

LINKS_FOLLOWED = 20
REASON_SHOWN = 1000

_NAME_RESOLUTION: tuple[type[BaseException], ...] = (
    socket.gaierror,
    getattr(lower, "NameResolutionError", socket.gaierror),  # urllib3 2
)

# requests' exceptions that say it all, and what they become.
_PLAIN: dict[type[BaseException], tuple[type[KreuzError], str]] = {
    theirs.SSLError: (SslError, "TLS failed"),
    theirs.ProxyError: (ProxyError, "the proxy failed"),
    theirs.ConnectTimeout: (ConnectTimeout, "no connection in time"),
    theirs.ReadTimeout: (ReadTimeout, "no answer in time"),
    theirs.RetryError: (RetriesExhausted, "the adapter's own retries are used up"),
    theirs.ChunkedEncodingError: (DataLoss, "the body broke off"),
    theirs.InvalidHeader: (ProtocolViolation, "the header section is impossible"),
}

# What stands in the chain of a ConnectionError, the first that is found; the order matters: a
# proxy's name that can't be looked up is the proxy's failure.
_IN_CHAIN: tuple[tuple[tuple[type[BaseException], ...], type[KreuzError], str], ...] = (
    ((lower.ProxyError,), ProxyError, "the proxy failed"),
    ((lower.SSLError, ssl.SSLError), SslError, "TLS failed"),
    (_NAME_RESOLUTION, DnsError, "the name has no address"),
    ((ConnectionRefusedError,), ConnectionRefused, "connection refused"),
    ((http.client.RemoteDisconnected,), ConnectionFailed, "the server hung up without an answer"),
    ((http.client.HTTPException,), ProtocolViolation, "the answer is not HTTP"),
)


def translate(error: Exception, request: requests.PreparedRequest) -> requests.RequestException | None:
    """The typed error for `error`, its cause set; None for one that should pass as it is.

    Only requests' and urllib3's own classes are translated: a subclass that a user's adapter
    raises is what the user's code looks for.
    """
    found = _named(error)
    if found is None:
        return None
    body = request.body
    if body is not None and not isinstance(body, (bytes, str)) and _is_of_the_body(error):
        found = (UploadFailed, "the body that was to be sent could not be read")
    kind, what = found
    inmost = root(error)
    text = f"{request.method} {redact(request.url or '')}: {what}{_reason(inmost, error)}"
    typed = kind(text, request=request, response=getattr(error, "response", None))
    typed.__cause__ = inmost
    typed.__suppress_context__ = True
    return typed


def require_possible_host(request: requests.PreparedRequest) -> None:
    """Raise InvalidURL if the host of `request` has an escaped delimiter in it, such as `a%2Fb`.

    No name has one, and who decodes it (a proxy, http.client's Host field) takes its first part for the host.
    """
    url = request.url or ""
    authority = _AFTER_AUTHORITY.split(url.partition("://")[2], maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    if "%" in host and not host.startswith("[") and _IN_NO_HOST.search(unquote(host.partition(":")[0])):
        text = f"{request.method} {redact(url)}: no such host can exist (a delimiter in it is escaped)"
        raise theirs.InvalidURL(text, request=request)


def _named(error: Exception) -> tuple[type[requests.RequestException], str] | None:
    if isinstance(error, lower.LocationValueError):
        return theirs.InvalidURL, "no such host can exist"
    kind = type(error)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is theirs.ConnectionError or kind.__module__ == lower.__name__:
        return _by_chain(error)
    return None


def _is_of_the_body(error: Exception) -> bool:
    from .upload_errors import is_of_the_body  # seldom needed

    return any(map(is_of_the_body, chain(error)))


def chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and all that it wraps, by argument, reason, cause or context; each once."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < LINKS_FOLLOWED:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        inner = (*link.args, getattr(link, "reason", None), link.__cause__, link.__context__)
        waiting.extend(one for one in inner if isinstance(one, BaseException))


def _by_chain(error: BaseException) -> tuple[type[KreuzError], str]:
    links = list(chain(error))
    for kinds, found, what in _IN_CHAIN:
        if any(isinstance(link, kinds) for link in links):
            return found, what
    return ConnectionFailed, "the connection failed"


def root(error: BaseException) -> BaseException | None:
    """The innermost error that may be shown: urllib3's MaxRetryError quotes the URL, query and all."""
    shown = [
        link
        for link in chain(error)
        # TypeError: urllib3 1.26 asks http.client for `buffering` first, in vain.
        if not isinstance(link, (requests.RequestException, lower.MaxRetryError, TypeError))
        and isinstance(link, Exception)
    ]
    system = [link for link in shown if isinstance(link, OSError)]
    return (system or shown or [None])[-1]


def _reason(inmost: BaseException | None, error: BaseException) -> str:
    text = getattr(inmost, "strerror", None) or (str(inmost) if inmost is not None else "")
    if inmost is None and error.args and isinstance(error.args[0], str):
        text = error.args[0]  # a test double's, or a user's adapter's: the one thing it has to say
    return f" ({redact_text(str(text))[:REASON_SHOWN]})" if text else ""
