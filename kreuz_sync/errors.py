"""Every exception of the package, and the word that names each.

    KreuzError                      also requests.RequestException
    ├── StatusError                 also requests.HTTPError: an answer came, and it is an error
    │   ├── ClientError             any other 4xx
    │   │   ├── Unauthorized        401
    │   │   ├── Forbidden           403
    │   │   │   └── WafBlocked      a challenge or block page, whatever its status
    │   │   ├── NotFound            404
    │   │   ├── RequestTimeout      408
    │   │   ├── Gone                410
    │   │   └── RateLimited         429
    │   └── ServerError             5xx
    │       └── BadGateway          502
    ├── ConnectionFailed            also requests.ConnectionError: the wire failed
    │   ├── ConnectionRefused
    │   ├── DnsError
    │   ├── SslError                also requests.exceptions.SSLError
    │   ├── ProxyError              also requests.exceptions.ProxyError
    │   ├── ConnectTimeout          also requests.ConnectTimeout
    │   └── ProtocolViolation       also requests.exceptions.InvalidHeader: no HTTP answer can be read from this
    ├── ReadTimeout                 also requests.ReadTimeout
    │   └── BodyTimeout             also requests.ConnectionError, as requests has it
    ├── DataLoss                    also requests.exceptions.ChunkedEncodingError: the body broke off
    │   └── UndecodableBody         also requests.exceptions.ContentDecodingError
    ├── BodyTooLarge
    ├── ThrottleTimeout             also requests.Timeout
    ├── RetriesExhausted            also requests.exceptions.RetryError: an inner adapter gave up retrying
    └── SessionClosed

An error keeps `request`, `response` and `attempts`, and pickles with them; its text holds
no credentials. Tags are stable: programs may compare with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import requests
from requests import exceptions as theirs

from .urls import redact

if TYPE_CHECKING:
    from .calls import Attempt


class KreuzError(requests.RequestException):
    """Base of all.

    attempts: how many times the request was put on the wire. waited: seconds it waited for its
    turn and before retries. earlier: what the attempts before the last came to, each an
    `Attempt`. retry_skipped: why the retry did not repeat what it might have; None where there
    was nothing to explain.
    """

    tag: ClassVar[str] = "other"
    attempts: int = 0
    waited: float = 0.0
    earlier: tuple[Attempt, ...] = ()
    retry_skipped: str | None = None

    def __init__(self, message: str = "", *, attempts: int = 0, **context: Any) -> None:
        super().__init__(message, **context)
        self.attempts = attempts

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (not repeated: {self.retry_skipped})" if self.retry_skipped else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, {**self.__dict__, "request": portable(self.request)})


def _rebuild(kind: type[KreuzError], args: tuple[Any, ...], state: dict[str, Any]) -> KreuzError:
    error = kind.__new__(kind, *args)
    error.args = args  # OSError sets them in an __init__ that does not run here
    error.__dict__.update(state)
    return error


# Fields that hold credentials whatever else is configured (RFC 9110, section 11; RFC 6265).
SECRET_FIELDS = frozenset({"authorization", "proxy-authorization", "cookie"})


def portable(request: Any) -> Any:
    """`request` as it may leave the process: no hooks, no open files, no credentials."""
    if not isinstance(request, requests.PreparedRequest):
        return None
    copy = requests.PreparedRequest()
    copy.method, copy.url = request.method, request.url and redact(request.url)
    copy.body = request.body if isinstance(request.body, (bytes, str)) else None
    secret = SECRET_FIELDS | {name.lower() for name in getattr(request, "credential_fields", ())}
    fields = {name: value for name, value in (request.headers or {}).items() if name.lower() not in secret}
    copy.headers = requests.structures.CaseInsensitiveDict(fields)
    copy._cookies = requests.cookies.RequestsCookieJar()  # Response pickles it
    return copy


# --- an answer came, and it is an error ---------------------------------------------------


class StatusError(KreuzError, requests.HTTPError):
    """A status of 400 or more, or a challenge page. `status`: the code; `retry_after`: seconds, or None."""

    tag = "status"
    status: int = 0
    retry_after: float | None = None

    def __init__(
        self, message: str = "", *, status: int = 0, retry_after: float | None = None, **context: Any
    ) -> None:
        super().__init__(message, **context)
        self.status = status
        self.retry_after = retry_after


class ClientError(StatusError):
    """A 4xx without a class of its own."""

    tag = "client_error"


class Unauthorized(ClientError):
    """401: credentials are missing or wrong."""

    tag = "unauthorized"


class Forbidden(ClientError):
    """403: the server refuses."""

    tag = "forbidden"


class WafBlocked(Forbidden):
    """A firewall's challenge or block page in place of the answer. `vendor`: whose, as in `waf.py`'s rules."""

    tag = "waf_blocked"
    vendor: str = ""

    def __init__(self, message: str = "", *, vendor: str = "", **context: Any) -> None:
        super().__init__(message, **context)
        self.vendor = vendor


class NotFound(ClientError):
    """404."""

    tag = "not_found"


class RequestTimeout(ClientError):
    """408: the server gave up waiting for the request."""

    tag = "timeout"


class Gone(ClientError):
    """410."""

    tag = "gone"


class RateLimited(ClientError):
    """429. `retry_after`: the seconds the server asked for, uncapped, or None."""

    tag = "rate_limited"


class ServerError(StatusError):
    """Any 5xx."""

    tag = "server_error"


class BadGateway(ServerError):
    """502."""

    tag = "bad_gateway"


# --- the wire failed ----------------------------------------------------------------------


class ConnectionFailed(KreuzError, requests.ConnectionError):
    """The connection could not be made, or broke before an answer came."""

    tag = "connection"


class ConnectionRefused(ConnectionFailed):
    """Nobody listens there. Nothing of the request was sent."""

    tag = "connection_refused"


class DnsError(ConnectionFailed):
    """The host's name has no address. Nothing of the request was sent."""

    tag = "dns"


class SslError(ConnectionFailed, theirs.SSLError):
    """TLS could not be agreed on, or the certificate is not trusted."""

    tag = "ssl"


class ProxyError(ConnectionFailed, theirs.ProxyError):
    """The proxy could not be reached, or refused."""

    tag = "proxy"


class ConnectTimeout(ConnectionFailed, requests.ConnectTimeout):
    """No connection within the time-out. Nothing of the request was sent."""

    tag = "connect_timeout"


class ProtocolViolation(ConnectionFailed, theirs.InvalidHeader):
    """What came is not HTTP, or frames its body in an impossible way."""

    tag = "protocol"


class ReadTimeout(KreuzError, requests.ReadTimeout):
    """The server sent nothing for as long as the time-out allows."""

    tag = "read_timeout"


class BodyTimeout(ReadTimeout, requests.ConnectionError):
    """The same, in the middle of a body."""


class DataLoss(KreuzError, theirs.ChunkedEncodingError):
    """The body broke off, or could not be decoded.

    expected, received: bytes on the wire (None where the answer did not say). partial:
    what could be decoded of a body that was not streamed, 64 KiB of it at most.
    """

    tag = "data_loss"
    expected: int | None = None
    received: int | None = None
    partial: bytes = b""

    def __init__(
        self,
        message: str = "",
        *,
        expected: int | None = None,
        received: int | None = None,
        partial: bytes = b"",
        **context: Any,
    ) -> None:
        super().__init__(message, **context)
        self.expected = expected
        self.received = received
        self.partial = partial


class UndecodableBody(DataLoss, theirs.ContentDecodingError):
    """The body came, but its Content-Encoding is not what it says."""


class BodyTooLarge(KreuzError):
    """The decoded body is longer than `max_body` allows. `limit`: that many bytes."""

    tag = "body_too_large"
    limit: int = 0

    def __init__(self, message: str = "", *, limit: int = 0, **context: Any) -> None:
        super().__init__(message, **context)
        self.limit = limit


class RetriesExhausted(KreuzError, theirs.RetryError):
    """An adapter below with retries of its own (`HTTPAdapter(max_retries=...)`) gave up."""

    tag = "retries_exhausted"


# --- this session's own rules -------------------------------------------------------------


class ThrottleTimeout(KreuzError, requests.Timeout):
    """The host's next turn lies further ahead than `max_wait` allows.

    host: whose turn. retry_after: seconds until that turn, as far as is known.
    """

    tag = "throttle_timeout"
    host: str = ""
    retry_after: float = 0.0

    def __init__(self, message: str = "", *, host: str = "", retry_after: float = 0.0, **context: Any) -> None:
        super().__init__(message, **context)
        self.host = host
        self.retry_after = retry_after


class SessionClosed(KreuzError):
    """`close()` was called while this call waited for its turn."""

    tag = "session_closed"


# --- naming -------------------------------------------------------------------------------

_OF_STATUS: dict[int, type[StatusError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: RequestTimeout,
    410: Gone,
    429: RateLimited,
    502: BadGateway,
}


def status_error(status: int) -> type[StatusError] | None:
    """The class for an answer with this status; None below 400, and for what HTTP does not know, as in requests."""
    if not 400 <= status < 600:
        return None
    return _OF_STATUS.get(status) or (ServerError if status >= 500 else ClientError)


# requests' own exceptions, most particular first, for errors that did not pass through a stack.
_OF_THEIRS: tuple[tuple[type[BaseException], str], ...] = (
    (theirs.ConnectTimeout, "connect_timeout"),
    (theirs.ReadTimeout, "read_timeout"),
    (theirs.Timeout, "read_timeout"),
    (theirs.SSLError, "ssl"),
    (theirs.ProxyError, "proxy"),
    (theirs.ConnectionError, "connection"),
    (theirs.ChunkedEncodingError, "data_loss"),
    (theirs.ContentDecodingError, "data_loss"),
    (theirs.RetryError, "retries_exhausted"),
    (theirs.TooManyRedirects, "too_many_redirects"),
    (theirs.InvalidURL, "invalid_url"),
    (theirs.MissingSchema, "invalid_url"),
    (theirs.InvalidSchema, "invalid_url"),
)


def classify(outcome: requests.Response | BaseException) -> str | None:
    """The tag of an answer or an exception; None for an answer that is no error.

    >>> classify(RateLimited("slow down"))
    'rate_limited'
    """
    if isinstance(outcome, requests.Response):
        if getattr(outcome, "waf", None) is not None:
            return WafBlocked.tag
        kind = status_error(outcome.status_code or 0)
        return None if kind is None else kind.tag
    if isinstance(outcome, KreuzError):
        return outcome.tag
    if isinstance(outcome, requests.HTTPError) and outcome.response is not None:
        return classify(outcome.response) or KreuzError.tag
    return next((tag for kind, tag in _OF_THEIRS if isinstance(outcome, kind)), KreuzError.tag)
