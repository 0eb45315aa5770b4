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
    │   ├── UploadFailed            the body that was to be sent could not be read
    │   └── ProtocolViolation       also requests.exceptions.InvalidHeader: no HTTP answer can be read from this
    ├── ReadTimeout                 also requests.ReadTimeout
    │   └── BodyTimeout             also requests.ConnectionError, as requests has it
    ├── DataLoss                    also requests.exceptions.ChunkedEncodingError: the body broke off
    │   ├── BrokenFraming           also ProtocolViolation: its chunks have impossible sizes
    │   └── UndecodableBody         also requests.exceptions.ContentDecodingError
    ├── BodyTooLarge
    ├── ThrottleTimeout             also requests.Timeout
    ├── RateLimitExceeded           a rate limit of this session is used up
    ├── RateLimitUnavailable        ... or cannot be told
    ├── RobotsDisallowed            robots.txt does not allow it, or is unreachable
    ├── TooManyRedirects            also requests.TooManyRedirects
    ├── DeadlineExceeded            also requests.Timeout
    ├── CircuitOpen                 also requests.ConnectionError: the host failed lately, and was not asked
    ├── BudgetExceeded
    ├── RetriesExhausted            also requests.exceptions.RetryError: an inner adapter gave up retrying
    ├── AddressBlocked              a private address, which the session does not connect to
    ├── InvalidItem                 also ValueError: what cannot be fetched stood in a list of URLs
    ├── WorkerLost                  the executor that was to make the request is broken
    └── SessionClosed

An error keeps `request`, `response` and `attempts`, and pickles with them; its text holds
no credentials. Tags are stable: programs may compare with them.
"""

from __future__ import annotations

from time import time  # `clock.py`, where times are read otherwise, needs these errors itself
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
    was nothing to explain. retry_after: seconds after which another try is worth while, counted
    from `as_of`; None where nobody knows. as_of: Unix seconds, when the error was made unless
    it says another moment.
    """

    tag: ClassVar[str] = "other"
    attempts: int = 0
    retry_after: float | None = None
    as_of: float | None = None
    waited: float = 0.0
    earlier: tuple[Attempt, ...] = ()
    retry_skipped: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        attempts: int = 0,
        retry_after: float | None = None,
        as_of: float | None = None,
        **context: Any,
    ) -> None:
        super().__init__(message, **context)
        self.attempts = attempts
        self.retry_after = retry_after
        self.as_of = time() if as_of is None else as_of

    @property
    def ready_at(self) -> float | None:
        """Unix seconds from which another try is worth while; None where nobody knows."""
        if self.retry_after is None or self.as_of is None:
            return None
        return self.as_of + self.retry_after

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

    def __init__(self, message: str = "", *, status: int = 0, **context: Any) -> None:
        super().__init__(message, **context)
        self.status = status


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


class UploadFailed(ConnectionFailed):
    """The file or generator that was to be sent raised an OSError. The host is not to blame; it may have had a part."""

    tag = "upload"


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


class BrokenFraming(DataLoss, ProtocolViolation):
    """The body's chunks have sizes that are none: what came cannot be told apart."""

    tag = "protocol"


class BodyTooLarge(KreuzError):
    """The decoded body is longer than `max_body` allows. `limit`: that many bytes."""

    tag = "body_too_large"
    limit: int = 0

    def __init__(self, message: str = "", *, limit: int = 0, **context: Any) -> None:
        super().__init__(message, **context)
        self.limit = limit


class TooManyRedirects(KreuzError, requests.TooManyRedirects):
    """More redirects than the session's `max_redirects`, 30 by default. `attempts`: over all of them."""

    tag = "too_many_redirects"


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
        super().__init__(message, retry_after=retry_after, **context)
        self.host = host


class RobotsDisallowed(KreuzError):
    """The robots.txt of the URL's origin does not allow it, and nothing was sent (RFC 9309).

    url: what was asked for, as it may be shown. rule: the line that says so, such as
    `Disallow: /private/`. token: the product token it says it to. unreachable: whether there is no
    such line, but no file to be had either, which disallows everything; then `retry_after` says
    in how many seconds it is asked for again.
    """

    tag = "robots_disallowed"
    url: str = ""
    rule: str = ""
    token: str = ""
    unreachable: bool = False

    def __init__(
        self,
        message: str = "",
        *,
        url: str = "",
        rule: str = "",
        token: str = "",
        unreachable: bool = False,
        **context: Any,
    ) -> None:
        super().__init__(message, **context)
        self.url = url
        self.rule = rule
        self.token = token
        self.unreachable = unreachable


class RateLimitExceeded(KreuzError):
    """A rate limit of this session has no room for the request, which was not sent.

    policy: the rate limit's name. limit: requests that a window of it has room for. retry_after:
    seconds until the next window.
    """

    tag = "rate_limit_exceeded"
    policy: str = ""
    limit: int = 0

    def __init__(self, message: str = "", *, policy: str = "", limit: int = 0, **context: Any) -> None:
        super().__init__(message, **context)
        self.policy = policy
        self.limit = limit


class RateLimitUnavailable(KreuzError):
    """Whether a rate limit of this session has room cannot be told, so the request was not sent.

    policy: the rate limit's name. code: what failed, in a stable word; `__cause__` is the
    `kreuz_sync.ratelimit.RateLimitFailure` that says more.
    """

    tag = "rate_limit_unavailable"
    policy: str = ""
    code: str = ""

    def __init__(self, message: str = "", *, policy: str = "", code: str = "", **context: Any) -> None:
        super().__init__(message, **context)
        self.policy = policy
        self.code = code


class DeadlineExceeded(KreuzError, requests.Timeout):
    """The call's `deadline` has passed, or it is known that it cannot be met.

    deadline: seconds for the whole call. retry_after: seconds until the host's turn, where that
    lay beyond the deadline; None where it is not known. unanswered: seconds that the server was
    given for its answer, and sent none; 0.0 where the deadline passed elsewhere.
    """

    tag = "deadline"
    deadline: float = 0.0
    unanswered: float = 0.0

    def __init__(self, message: str = "", *, deadline: float = 0.0, unanswered: float = 0.0, **context: Any) -> None:
        super().__init__(message, **context)
        self.deadline = deadline
        self.unanswered = unanswered


class CircuitOpen(KreuzError, requests.ConnectionError):
    """The host failed too often in a row, and is left alone for a while: nothing was sent.

    host: which. last: the tag of its latest failure. retry_after: seconds until one request may
    try it again; None while one is trying.
    """

    tag = "circuit_open"
    host: str = ""
    last: str = ""

    def __init__(self, message: str = "", *, host: str = "", last: str = "", **context: Any) -> None:
        super().__init__(message, **context)
        self.host = host
        self.last = last


class BudgetExceeded(KreuzError):
    """The session's `budget` is used up: nothing was sent, or a body was ended where it crossed it.

    what: "requests", "bytes" or "seconds". limit: as many of these as are allowed. used: as many
    as were used by then. host: whose budget it is; None for that of the whole session.
    """

    tag = "budget_exceeded"
    what: str = ""
    limit: float = 0
    used: float = 0
    host: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        what: str = "",
        limit: float = 0,
        used: float = 0,
        host: str | None = None,
        **context: Any,
    ) -> None:
        super().__init__(message, **context)
        self.what = what
        self.limit = limit
        self.used = used
        self.host = host


class AddressBlocked(KreuzError):
    """The host has a private address, and the session's `deny_private` refuses to connect: nothing was sent.

    host: which. address: what it led to, or was written as. network: the one that the address lies
    in, such as "10.0.0.0/8". kind: the word for that, such as "loopback" or "link-local". Of what can't
    be checked (`AddressGuard(proxies="refuse")`) there are no address and no network.
    """

    tag = "address_blocked"
    host: str = ""
    address: str = ""
    network: str = ""
    kind: str = ""

    def __init__(
        self,
        message: str = "",
        *,
        host: str = "",
        address: str = "",
        network: str = "",
        kind: str = "",
        **context: Any,
    ) -> None:
        super().__init__(message, **context)
        self.host = host
        self.address = address
        self.network = network
        self.kind = kind


class InvalidItem(KreuzError, ValueError):
    """Something in the list that `fetch_all` was given is neither a URL nor anything else that can be fetched."""

    tag = "invalid_item"


class WorkerLost(KreuzError):
    """The executor that `fetch_all` was given did not make the request.

    It was shut down, its process was killed, or the request could not be sent to that. Whether anything reached the
    server, nobody knows. `__cause__` is what the executor said.
    """

    tag = "worker_lost"


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
