"""A call's deadline on its way through the layers: what is left of it bounds every step.

The time is kept by the `Call`. Layers that wait ask it how long they may; the transport sends
`in_time`, and the body is read `until_deadline`.
"""

from __future__ import annotations

import http.client
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import requests
import urllib3

from .calls import Call
from .errors import DeadlineExceeded
from .urls import redact
from .watchdog import Exchange
from .wire_errors import root

if TYPE_CHECKING:
    from .response import Response

# What a socket that is shut down in the middle of something can make of it.
_BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)


def require_time(call: Call, request: requests.PreparedRequest | None) -> float:
    """Seconds that are left of the time of a call with a deadline. Raises DeadlineExceeded if nothing is."""
    left = call.left() or 0.0
    if left <= 0:
        raise _exceeded(call.seconds, request, "it could be sent")
    return left


def clipped(timeout: Any, left: float) -> Any:
    """A time-out as requests takes it, none of its parts longer than `left` seconds.

    What is no time-out comes back as it is, for requests to complain of.

    >>> clipped((3.05, None), 5.0)
    (3.05, 5.0)
    """
    if timeout is None:
        return left
    if isinstance(timeout, tuple):
        return tuple(clipped(part, left) for part in timeout)
    if isinstance(timeout, urllib3.Timeout):
        copy = timeout.clone()
        copy.total = clipped(copy.total, left)
        return copy
    return min(timeout, left) if isinstance(timeout, (int, float)) else timeout


def in_time(
    send: Callable[..., Response], call: Call, request: requests.PreparedRequest, options: dict[str, Any]
) -> Response:
    """`send(**options)`, which sends `request`, ended at the call's deadline.

    The response's body stays bounded until it is read or given up. Raises DeadlineExceeded.
    """
    left, seconds = call.left() or 0.0, call.seconds
    exchange = call.exchange = Exchange(left, seconds)
    handed_on = False
    try:
        response = send(**{**options, "timeout": clipped(options.get("timeout"), left)})
        if _is_over(call):
            # Cut off in its header section, an answer looks like a whole one with fewer fields.
            response.close()
            raise _exceeded(seconds, request, "the answer had come", response=response, unanswered=left)
        _watch_body(response, exchange)
        handed_on = True
        return response
    except DeadlineExceeded:
        raise
    except _BROKEN as error:
        if not _is_over(call):
            raise
        raise _exceeded(seconds, request, "the answer had come", unanswered=left) from root(error)
    finally:
        call.exchange = None
        if not handed_on:
            exchange.finish()


def until_deadline(response: Response, exchange: Exchange, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Hand on `chunks`, and raise DeadlineExceeded for whatever ends them once the deadline has passed."""
    try:
        for chunk in chunks:
            if exchange.ended:
                break
            yield chunk
    except _BROKEN as error:
        if not exchange.late:
            raise
        response._broke = DeadlineExceeded
        response.close()
        raise _body_exceeded(response, exchange) from root(error)
    if exchange.ended:  # the end of the connection may look like that of the body
        response._broke = DeadlineExceeded
        response.close()
        raise _body_exceeded(response, exchange)


def _is_over(call: Call) -> bool:
    return (call.left() or 0.0) <= 0


def _watch_body(response: Response, exchange: Exchange) -> None:
    raw = response.raw
    if not isinstance(raw, urllib3.HTTPResponse):
        exchange.finish()
        return
    if not exchange.watched:  # sent by an adapter that is not ours
        exchange.hold(raw)
    if not exchange.watched:  # in memory
        exchange.finish()
        return
    response.exchange = exchange
    _finish_before_release(raw, exchange)
    response.when_released(exchange.finish)


def _finish_before_release(raw: urllib3.HTTPResponse, exchange: Exchange) -> None:
    """Have `exchange` finish before its connection is in the pool, where another one may take it at once.

    `when_released` alone would come a moment too late. A connection that was shut down does not serve again.
    """
    release = type(raw).release_conn
    alive = weakref.ref(raw)  # no cycle: a forgotten answer's socket is closed at once

    def release_conn() -> None:
        one: Any = alive()
        if one is None:
            return
        if not exchange.finish() and one.connection is not None:
            one.connection.close()
        release(one)

    raw.release_conn = release_conn  # type: ignore[method-assign]


def _exceeded(
    seconds: float, request: Any, before: str, response: Any = None, unanswered: float = 0.0
) -> DeadlineExceeded:
    what = f"{request.method} {redact(request.url or '')}: " if request is not None else ""
    text = f"{what}the deadline of {seconds:g} s passed before {before}"
    return DeadlineExceeded(text, deadline=seconds, unanswered=unanswered, request=request, response=response)


def _body_exceeded(response: Response, exchange: Exchange) -> DeadlineExceeded:
    return _exceeded(exchange.seconds, response.request, "the body had come", response=response)
