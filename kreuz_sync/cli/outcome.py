"""What became of one URL: an answer, or the error that came instead, in a form that may be shown.

Pure: the record that is printed is made here, and holds no credentials.
"""

from __future__ import annotations

import base64
import re
from typing import Any, NamedTuple

import requests
from requests.structures import CaseInsensitiveDict

from kreuz_sync.errors import classify
from kreuz_sync.response import Response
from kreuz_sync.urls import redact

from .url_list import host_key

TEXT_SHOWN = 500  # characters of an error's text, or of a field that a server chose


INVALID_URL = "invalid_url"


class Hop(NamedTuple):
    """One host's part in a call: its redirects, and the last answer or the error.

    requests: attempts on the wire. waited: seconds for its turn and before retries. took:
    seconds of the last attempt. earlier: the tags of the attempts before it, which were repeated.
    """

    host: str
    requests: int
    waited: float
    took: float
    earlier: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of one URL.

    number: its place in the list, from 1. url: as it was given, so it may hold credentials.
    tag: the word for what went wrong, None if nothing did. elapsed: seconds from taking the
    URL up to the end of the body, waits included. content: the decoded body.
    """

    number: int
    url: str
    elapsed: float
    hops: tuple[Hop, ...]
    tag: str | None = None
    error: str | None = None
    status: int | None = None
    final_url: str | None = None
    content_type: str | None = None
    content: bytes = b""

    @property
    def public_url(self) -> str:
        """The URL without credentials, even where it is none."""
        return without_credentials(self.url) if self.tag == INVALID_URL else redact(self.url)

    @property
    def requests(self) -> int:
        """Attempts on the wire, redirects and retries included."""
        return sum(hop.requests for hop in self.hops)

    @property
    def waited(self) -> float:
        """Seconds spent waiting for a host's turn and before retries."""
        return sum(hop.waited for hop in self.hops)

    @property
    def earlier(self) -> tuple[str, ...]:
        """The tags of the attempts that were repeated, in order."""
        return tuple(tag for hop in self.hops for tag in hop.earlier)


def answered(number: int, url: str, response: Response, elapsed: float) -> Outcome:
    """The outcome of a call that got an answer, be it a 404."""
    error = response.error
    return Outcome(
        number,
        url,
        elapsed,
        hops=tuple(_hop(one) for one in (*response.history, response)),
        tag=response.tag,
        error=None if error is None else shown(error),
        status=response.status_code,
        final_url=response.url,
        content_type=response.headers.get("Content-Type"),
        content=response.content,
    )


def failed(number: int, url: str, error: Exception, elapsed: float) -> Outcome:
    """The outcome of a call that got an exception, whatever it is."""
    waited = float(getattr(error, "waited", 0.0))
    attempts = int(getattr(error, "attempts", 0))
    # Of attempts that failed it is only known how long all of them took.
    took = max(0.0, elapsed - waited) / attempts if attempts else 0.0
    hop = Hop(host_key(url), attempts, waited, took, _tags(error))
    tag = _tag(error)
    text = _why_invalid(error, url) if tag == INVALID_URL else shown(error, url)
    return Outcome(number, url, elapsed, hops=(hop,), tag=tag, error=text)


def repeated(outcome: Outcome) -> Outcome:
    """`outcome`, whose request was made for an equal URL: it counts once."""
    return outcome._replace(hops=tuple(hop._replace(requests=0, waited=0.0, earlier=()) for hop in outcome.hops))


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
NO_SCHEME = "this is no whole URL: write http:// or https:// in front"
OTHER_SCHEME = "only http:// and https:// can be fetched"


def _why_invalid(error: Exception, url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return NO_SCHEME
    return shown(error, url) if scheme[1].lower() in ("http", "https") else OTHER_SCHEME


def _tag(error: Exception) -> str | None:
    # The standard library's own word for a URL that cannot be read, or encoded, is a bare ValueError.
    if isinstance(error, ValueError) and not isinstance(error, requests.RequestException):
        return INVALID_URL
    return classify(error)


def shown(error: Exception, url: str = "") -> str:
    """An error's text on one line, without credentials; its class where it has no text.

    url: what it may quote, as it was given.
    """
    text = str(error)
    if "@" in url:
        text = text.replace(url, without_credentials(url))
    return " ".join(redact(text).split())[:TEXT_SHOWN] or type(error).__name__


_BEFORE_AT = re.compile(r"\A(.*?//)?.*@", re.DOTALL)


def without_credentials(url: str) -> str:
    """As `redact`, and made for what is no URL: all that stands before an @ is left out.

    >>> without_credentials("me:pw@example.com/a"), without_credentials("http://me:p#/w@example.com")
    ('REDACTED@example.com/a', 'http://REDACTED@example.com')
    """
    return redact(_BEFORE_AT.sub(r"\1REDACTED@", url))


def record(outcome: Outcome) -> dict[str, Any]:
    """What is written about `outcome`: plain values, the body left out."""
    return {
        "number": outcome.number,
        "url": outcome.public_url,
        "final_url": None if outcome.final_url is None else redact(outcome.final_url),
        "status": outcome.status,
        "tag": outcome.tag,
        "bytes": len(outcome.content),
        "content_type": None if outcome.content_type is None else outcome.content_type[:TEXT_SHOWN],
        "attempts": outcome.requests,
        "retried": list(outcome.earlier),
        "waited": round(outcome.waited, 3),
        "elapsed": round(outcome.elapsed, 3),
        "error": outcome.error,
    }


def body_fields(outcome: Outcome) -> dict[str, str]:
    """The body for a record: `body` as text where its charset (UTF-8 if it names none) fits, else `body_base64`."""
    text = _decoded(outcome.content, _charset(outcome.content_type))
    if text is None:
        return {"body_base64": base64.b64encode(outcome.content).decode("ascii")}
    return {"body": text}


def _decoded(content: bytes, charset: str) -> str | None:
    try:
        return content.decode(charset)
    except (LookupError, ValueError):  # no such charset; not in this charset
        return None if charset == "utf-8" else _decoded(content, "utf-8")


def _charset(content_type: str | None) -> str:
    if content_type is None or "charset" not in content_type.lower():
        return "utf-8"
    return requests.utils.get_encoding_from_headers(CaseInsensitiveDict({"content-type": content_type})) or "utf-8"


def _hop(response: requests.Response) -> Hop:
    return Hop(
        host_key(response.url or ""),
        getattr(response, "attempts", 1),
        getattr(response, "waited", 0.0),
        response.elapsed.total_seconds(),
        _tags(response),
    )


def _tags(last: requests.Response | Exception) -> tuple[str, ...]:
    return tuple(attempt.tag for attempt in getattr(last, "earlier", ()))
