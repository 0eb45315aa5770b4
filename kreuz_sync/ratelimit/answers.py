"""What a response of a session says of its rate limits, and the response that is made in place of a server's."""

from __future__ import annotations

import io

import requests
import urllib3

from kreuz_sync.response import Response

from .fields import response_fields
from .usage import PolicyUsage, RateLimitContext, whole_seconds

TOO_MANY_REQUESTS = 429  # RFC 6585, section 4
_OVER = io.BytesIO()  # a body that has been read: urllib3's `stream(None)` goes on until it is closed
_OVER.close()


def too_many(request: requests.PreparedRequest) -> Response:
    """The 429 for a request that was not sent. It has no body."""
    response = Response()
    response.status_code = TOO_MANY_REQUESTS
    response.reason = "Too Many Requests"
    response.url = request.url or ""
    response.request = request
    response.headers["Content-Length"] = "0"
    response.raw = urllib3.HTTPResponse(body=_OVER, status=TOO_MANY_REQUESTS, preload_content=False)
    response._content, response._content_consumed = b"", True
    response.took(0.0)
    return response


def note(response: Response, policy: PolicyUsage, revision: str) -> None:
    """Say on an answer from further in that `policy` had room.

    A server's fields are left as they came: a cache further out would keep ours, and hand them
    out when they are long untrue. An answer that a rate limit further in made takes them, and if
    `policy` has no more room either, its Retry-After is that of the later window.
    """
    if response.from_rate_limit:
        if response.limited_by is not None:
            _append(response, policy, revision)
            if response._own_retry_after is not None and not policy.remaining:
                _ask_to_wait(response, max(response._own_retry_after, whole_seconds(policy.reset_after)))
        return
    inner = () if response.rate_limits is None else response.rate_limits.policies
    response.rate_limits = RateLimitContext((policy, *inner))  # outermost first


def add_fields(response: Response, policy: PolicyUsage, revision: str) -> None:
    """Say on an answer of ours that the window of `policy` is full, and when it is over."""
    _append(response, policy, revision)
    if "Retry-After" not in response.headers:  # the user's own function may have set one
        _ask_to_wait(response, whole_seconds(policy.reset_after))


def _ask_to_wait(response: Response, seconds: int) -> None:
    response._own_retry_after = seconds
    response.headers["Retry-After"] = str(seconds)


def _append(response: Response, policy: PolicyUsage, revision: str) -> None:
    for name, value in response_fields([policy], revision):
        before = response.headers.get(name)
        response.headers[name] = f"{before}, {value}" if before else value
