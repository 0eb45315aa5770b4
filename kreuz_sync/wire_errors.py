"""From what the wire raised to the typed error that says so.

The kind is found by walking the chain of exceptions, never by words in a text: the text
contains the URL, and a host may be called `proxy.example`.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator

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
)
from .urls import redact

LINKS_FOLLOWED = 20
REASON_SHOWN = 200

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


def translate(error: Exception, request: requests.PreparedRequest) -> KreuzError | None:
    """The typed error for `error`, its cause set; None for one that should pass as it is.

    Only requests' and urllib3's own classes are translated: a subclass that a user's adapter
    raises is what the user's code looks for.
    """
    kind = type(error)
    if kind in _PLAIN:
        found, what = _PLAIN[kind]
    elif kind is theirs.ConnectionError:
        found, what = _by_chain(error)
    elif kind.__module__ == lower.__name__:
        found, what = _by_chain(error)
    else:
        return None
    root = _root(error)
    text = f"{request.method} {redact(request.url or '')}: {what}{_reason(root)}"
    typed = found(text, request=request, response=getattr(error, "response", None))
    typed.__cause__ = root
    typed.__suppress_context__ = True
    return typed


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


def _root(error: BaseException) -> BaseException | None:
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


def _reason(root: BaseException | None) -> str:
    text = getattr(root, "strerror", None) or (str(root) if root is not None else "")
    return f" ({redact(str(text))[:REASON_SHOWN]})" if text else ""
