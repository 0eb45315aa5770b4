"""`get`, `post` and their kin, as in requests: a session for one call.

They share one `Throttle` over the whole process, so that a loop of `get` is as polite as a
session is. A session of one's own also keeps connections and cookies, and is faster.
"""

from __future__ import annotations

from typing import Any

from .response import Response
from .sessions import Session
from .throttle import Throttle

# Everything that has no session of its own waits its turn here.
PROCESS_THROTTLE = Throttle()


def session() -> Session:
    """A new `Session`, as `requests.session()` gives one of requests'."""
    return Session()


def request(method: str, url: str | bytes, **options: Any) -> Response:
    """Send one request. `options` are those of `Session.request`; the errors too."""
    with Session(throttle=PROCESS_THROTTLE) as one_call:
        return one_call.request(method, url, **options)


def get(url: str | bytes, params: Any = None, **options: Any) -> Response:
    """Send a GET request."""
    return request("GET", url, params=params, **options)


def options(url: str | bytes, **options: Any) -> Response:
    """Send an OPTIONS request."""
    return request("OPTIONS", url, **options)


def head(url: str | bytes, **options: Any) -> Response:
    """Send a HEAD request; redirects are followed only if asked, as in requests."""
    options.setdefault("allow_redirects", False)
    return request("HEAD", url, **options)


def post(url: str | bytes, data: Any = None, json: Any = None, **options: Any) -> Response:
    """Send a POST request."""
    return request("POST", url, data=data, json=json, **options)


def put(url: str | bytes, data: Any = None, **options: Any) -> Response:
    """Send a PUT request."""
    return request("PUT", url, data=data, **options)


def patch(url: str | bytes, data: Any = None, **options: Any) -> Response:
    """Send a PATCH request."""
    return request("PATCH", url, data=data, **options)


def delete(url: str | bytes, **options: Any) -> Response:
    """Send a DELETE request."""
    return request("DELETE", url, **options)
