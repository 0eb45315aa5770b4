"""What became of one URL: an answer, or the error that came instead, in a form that may be shown.

Pure: the record that is printed is made here, and holds no credentials.
"""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import requests

from .errors import classify
from .response import Response
from .url_list import host_key
from .urls import redact

TEXT_SHOWN = 500  # characters of an error's text, or of a field that a server chose


class Hop(NamedTuple):
    """One host's part in a call: its redirects, and the last answer or the error.

    requests: attempts on the wire. waited: seconds for its turn and before retries.
    took: seconds of one attempt.
    """

    host: str
    requests: int
    waited: float
    took: float


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
    def requests(self) -> int:
        """Attempts on the wire, redirects and retries included."""
        return sum(hop.requests for hop in self.hops)

    @property
    def waited(self) -> float:
        """Seconds spent waiting for a host's turn and before retries."""
        return sum(hop.waited for hop in self.hops)


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
    # What is known of an attempt that failed is only how long all of them took.
    took = max(0.0, elapsed - waited) / attempts if attempts else 0.0
    hop = Hop(host_key(url), attempts, waited, took)
    tag = "invalid_url" if isinstance(error, UnicodeError) else classify(error)
    return Outcome(number, url, elapsed, hops=(hop,), tag=tag, error=shown(error))


def shown(error: Exception) -> str:
    """An error's text on one line, without credentials; its class where it has no text."""
    return " ".join(redact(str(error)).split())[:TEXT_SHOWN] or type(error).__name__


def record(outcome: Outcome) -> dict[str, Any]:
    """What is written about `outcome`: plain values, the body left out."""
    return {
        "number": outcome.number,
        "url": redact(outcome.url),
        "final_url": None if outcome.final_url is None else redact(outcome.final_url),
        "status": outcome.status,
        "tag": outcome.tag,
        "bytes": len(outcome.content),
        "content_type": None if outcome.content_type is None else outcome.content_type[:TEXT_SHOWN],
        "attempts": outcome.requests,
        "waited": round(outcome.waited, 3),
        "elapsed": round(outcome.elapsed, 3),
        "error": outcome.error,
    }


def body_fields(outcome: Outcome) -> dict[str, str]:
    """The body for a record: `body` as text where its charset (UTF-8 if it names none) fits, else `body_base64`."""
    for charset in (_charset(outcome.content_type), "utf-8"):
        try:
            return {"body": outcome.content.decode(charset)}
        except (LookupError, ValueError):  # no such charset; not in this charset
            continue
    return {"body_base64": base64.b64encode(outcome.content).decode("ascii")}


def _charset(content_type: str | None) -> str:
    if content_type is None or "charset" not in content_type.lower():
        return "utf-8"
    return requests.utils.get_encoding_from_headers({"content-type": content_type}) or "utf-8"


def _hop(response: requests.Response) -> Hop:
    return Hop(
        host_key(response.url or ""),
        getattr(response, "attempts", 1),
        getattr(response, "waited", 0.0),
        response.elapsed.total_seconds(),
    )
