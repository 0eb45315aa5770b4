"""The response: requests' own, which knows how it came about and says what is wrong with it.

A `Response` is a `requests.Response` in every way. It adds typed `raise_for_status()`, the
numbers of its exchange, and a watch over its body while that is read (see `body.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import requests
from requests.utils import stream_decode_response_unicode

from . import body
from .clock import SYSTEM_CLOCK
from .deadline import until_deadline
from .errors import StatusError, WafBlocked, classify, portable, status_error
from .fields import retry_after
from .urls import redact, without_user_info

if TYPE_CHECKING:
    from .budget.meter import Meter
    from .calls import Attempt
    from .ratelimit.usage import PolicyUsage, RateLimitContext
    from .waf import WafMatch
    from .watchdog import Exchange

REASON_SHOWN = 200  # characters of a reason phrase, which the server chooses, in an error's text


_Value = TypeVar("_Value")


class Computed(Generic[_Value]):
    """A property whose place a value takes that is assigned to the instance, as on any requests response."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, response: None, kind: type) -> Computed[_Value]: ...
    @overload
    def __get__(self, response: object, kind: type) -> _Value: ...
    def __get__(self, response: object | None, kind: type) -> Computed[_Value] | _Value:
        return self if response is None else self._compute(response)


class Response(requests.Response):
    """What requests returns, and how it came about.

    attempts: how often this request was put on the wire (0: a layer answered itself).
    waited: seconds it waited for its host's turn and before retries. waf: what gave a
    challenge or block page away (`WafMatch`), None for the page that was asked for. earlier:
    what the attempts before this answer came to, each an `Attempt`. retry_skipped: why the
    retry did not repeat what it might have; None where there was nothing to explain.
    from_cache: whether the body came from a cache, also one that was validated first.
    cache_status: what the cache did, in the words of RFC 9211 (`kreuz; hit; ttl=30`), None
    without a cache. rate_limits: what the session's rate limits counted for this request
    (`ratelimit.RateLimitContext`), None if none did. from_rate_limit: whether a rate limit answered in
    place of the server. limited_by: the one whose window is full (`ratelimit.PolicyUsage`).

    As with `elapsed`, each response of `history` has its own numbers. `elapsed` runs from
    sending the last attempt to its header section, without waits; what a cache gives out has
    that of the exchange that it was stored from.
    """

    __attrs__ = [
        *requests.Response.__attrs__,
        *("attempts", "waited", "waf", "earlier", "retry_skipped", "from_cache", "cache_status"),
        *("rate_limits", "from_rate_limit", "limited_by"),
    ]

    attempts: int = 0
    waited: float = 0.0
    waf: WafMatch | None = None
    earlier: tuple[Attempt, ...] = ()
    retry_skipped: str | None = None
    from_cache: bool = False
    cache_status: str | None = None
    rate_limits: RateLimitContext | None = None
    from_rate_limit: bool = False
    limited_by: PolicyUsage | None = None
    _own_retry_after: int | None = None  # the Retry-After that a rate limit wrote, and nobody else
    limits: body.Limits = body.NO_LIMITS
    exchange: Exchange | None = None  # what ends a body at its call's deadline
    arrived: float | None = None  # when the header section had come: `time.perf_counter()`, None if it never did
    meter: Meter | None = None  # what counts the body for a budget
    reads_itself: bool = False  # whether the body is read through `iter_content`, and not from `raw`
    _when_whole: Callable[[Response], object] | None = None
    _timed = False
    _closed_early = False
    _iterating = False  # `body.checked` is reading it
    _raw_ended: bool | None = None  # whether `raw` gave its connection back at its end; None as long as it has it
    _broke: type[BaseException] | None = None  # what reading its body ended with; known before it is closed for that
    _held: tuple[Any, ...] = ()

    # --- what is wrong with it --------------------------------------------------------

    @Computed
    def tag(self) -> str | None:
        """The stable word for what is wrong (`not_found`, `waf_blocked`, ...); None if nothing is."""
        return classify(self)

    @Computed
    def retry_after(self) -> float | None:
        """Seconds the server asks to be left alone (RFC 9110, section 10.2.3), uncapped; None if it does not."""
        return retry_after(self.headers, now=SYSTEM_CLOCK.wall())

    @Computed
    def error(self) -> StatusError | None:
        """What `raise_for_status()` would raise; None if nothing."""
        return self._typed_error()

    def _typed_error(self) -> StatusError | None:
        kind = WafBlocked if self.waf is not None else status_error(self.status_code)
        if kind is None:
            return None
        came = self._came()
        asked = retry_after(self.headers, now=came)
        context: dict[str, Any] = {"status": self.status_code, "retry_after": asked, "as_of": came}
        if self.waf is not None:
            context["vendor"] = self.waf.vendor
        error = kind(self._sentence(), response=self, attempts=self.attempts, **context)
        error.earlier, error.retry_skipped = self.earlier, self.retry_skipped
        return error

    def raise_for_status(self) -> None:
        """Raise the typed error for a status of 400 or more, or for a challenge page whatever its status.

        Raises a subclass of `StatusError`, which is a `requests.HTTPError`.
        """
        error = self._typed_error()
        if error is not None:
            raise error

    def _sentence(self) -> str:
        reason = self.reason or ""
        if isinstance(reason, bytes):
            try:
                reason = reason.decode("utf-8")
            except UnicodeDecodeError:  # as in requests
                reason = reason.decode("iso-8859-1")
        side = "Server" if self.status_code >= 500 else "Client"
        blocked = f" ({self.waf.vendor} {self.waf.kind} page)" if self.waf is not None else ""
        return f"{self.status_code} {side} Error: {reason[:REASON_SHOWN]}{blocked} for url: {redact(self.url or '')}"

    def _came(self) -> float:
        """Unix seconds when the header section had come, which is what Retry-After counts from; now if nobody knows."""
        now = SYSTEM_CLOCK.wall()
        return now if self.arrived is None else now - (perf_counter() - self.arrived)

    # --- its time -----------------------------------------------------------------------

    @property
    def elapsed(self) -> timedelta:
        """From sending the last attempt to the end of its header section."""
        return cast(timedelta, self.__dict__.get("elapsed", timedelta(0)))

    @elapsed.setter
    def elapsed(self, value: timedelta) -> None:
        # requests assigns the time of the whole stack, waits included; the transport's stays.
        # It does so once: what is assigned after that is a user's.
        if self._timed:
            self._timed = False
        else:
            self.__dict__["elapsed"] = value

    def took(self, seconds: float) -> None:
        """Set `elapsed` against the session's own. For transports, and for layers that answer themselves."""
        self.__dict__["elapsed"] = timedelta(seconds=seconds)
        self._timed = True

    # --- its body -----------------------------------------------------------------------

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """As in requests; a body that is cut, too large or undecodable raises its typed error.

        Raises DataLoss, UndecodableBody, BodyTooLarge, BodyTimeout, SslError, DeadlineExceeded, BudgetExceeded.
        """
        if self._content_consumed or chunk_size == 0:  # of 0 bytes, nothing is read that could be checked
            return cast(Iterator[Any], super().iter_content(chunk_size, decode_unicode))  # type: ignore[call-overload]
        self.reads_itself = True
        chunks: Iterable[bytes] = super().iter_content(body.step(self, chunk_size))
        if self.exchange is not None:
            chunks = until_deadline(self, self.exchange, chunks)
        if self.meter is not None:
            chunks = self.meter.watch(self, chunks)
        chunks = body.checked(self, chunks, asked=chunk_size)
        if decode_unicode:
            return iter(stream_decode_response_unicode(chunks, self))
        return iter(chunks)

    def when_whole(self, tell: Callable[[Response], object]) -> None:
        """Call `tell` with this response once its body has been read through `iter_content` or `content`,
        and nothing was wrong with it. Not called for a body that is read from `raw`.
        """
        self._when_whole = tell

    def when_released(self, give_back: Callable[[], object]) -> None:
        """Call `give_back` once: when the body has been read, or the response is closed or forgotten.

        At once if the body has been read already, or none can come. Also when `raw` itself has been
        read to its end.
        """
        if body.is_over(self):
            give_back()
            return
        if not self._held:
            body.release_with_raw(self)
        finalizer = weakref.finalize(self, give_back)
        finalizer.atexit = False
        self._held = (*self._held, finalizer)

    def release(self) -> None:
        """Give back what layers hold for this response. Does nothing the second time."""
        # Emptied last: what an interrupt cuts short is done again.
        for finalizer in self._held:
            finalizer()
        self._held = ()

    def close(self) -> None:
        """As in requests. What is read after that is empty, and no loss: the reader wanted no more."""
        if not self._content_consumed:
            self._closed_early = True
        try:
            super().close()
        finally:
            self.release()

    # --- pickling -----------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The whole response with its body, which is read for that; the request and the URL without credentials.

        A body that can't be read any more is left out.
        """
        try:
            content = self.content
        except (requests.RequestException, RuntimeError):
            content = None  # as requests has it where no body came
        state = {name: getattr(self, name, None) for name in self.__attrs__}
        state["_content"] = content
        state["request"] = portable(self.request)
        state["url"] = without_user_info(self.url or "") or self.url
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._timed = True


def adopt(response: requests.Response) -> Response:
    """Make `response`, which an adapter built, a `Response` of ours, in place.

    A subclass of requests.Response stays an instance of itself. What is no requests.Response, but a
    double that looks like one, is left as it is.
    """
    kind = type(response)
    if kind is requests.Response:
        response.__class__ = Response
    elif not issubclass(kind, Response) and issubclass(kind, requests.Response):
        response.__class__ = _joined(kind)  # type: ignore[arg-type]
    return cast(Response, response)


@lru_cache(maxsize=64)
def _joined(kind: type[requests.Response]) -> type[Response]:
    namespace: dict[str, Any] = {"__reduce__": lambda self: (_remade, (kind,), self.__getstate__())}
    for name in ("error", "raise_for_status", "retry_after", "tag"):
        for base in kind.__mro__[: kind.__mro__.index(requests.Response)]:
            if name in vars(base):  # what a user's class says itself comes before what we add
                namespace[name] = vars(base)[name]
                break
    return type(kind.__name__, (Response, kind), namespace)


def _remade(kind: type[requests.Response]) -> Response:
    """What a pickle of a joined class, which has no name to be found by, begins with."""
    joined = _joined(kind)  # type: ignore[arg-type]
    return joined.__new__(joined)
