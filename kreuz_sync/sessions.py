"""The session: reads its arguments, builds the stack, mounts it."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import requests
from requests import exceptions as theirs
from requests.adapters import BaseAdapter

from . import arguments, checks
from .arguments import UNSET, Kind, Timeout
from .auth import OriginAuth
from .calls import Call, current, helper, next_send
from .errors import AddressBlocked, TooManyRedirects, portable
from .order import polite_order, traced
from .preparing import RememberingSession
from .response import REASON_SHOWN, Computed, Response, adopt
from .retry import Retry
from .stack import Layer, Stack
from .throttle import RateLimiter, Throttle, as_throttle
from .transport import Transport
from .urls import host_of, redact, redact_text
from .useragent import DEFAULT_USER_AGENT, UserAgents
from .waf import DEFAULT_WAF, Waf
from .wire import WireAdapter

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .breaker.setting import Breaker
    from .budget.setting import Budget
    from .cache.setting import Cache
    from .cache.store import CacheStore
    from .fetch_all import FetchAll
    from .ratelimit.setting import RateLimit
    from .robots import Robots, RobotsHandle
    from .ssrf import AddressGuard
    from .tracing import Tracing

DEFAULT_TIMEOUT_S = 30.0
# urllib3 forgets the least used host beyond the first number, and throws away connections
# of one host beyond the second. An idle place costs a few bytes.
POOL_CONNECTIONS = 256
WORKERS = 16
AHEAD = 50_000
POOL_MAXSIZE = 64


class Session(RememberingSession):
    """A `requests.Session` that waits its turn at every host.

    Without arguments it differs from requests' in two things: requests to one host start at
    least 0.2 s apart, and a call that names no time-out has one of 30 s.

    throttle: seconds between requests to one host, a `Throttle` (several sessions may share it),
    any `RateLimiter`, or None for no pace. retry: sends after the first, or a `Retry`; 0 by
    default. cache: a folder to keep answers in, a `Cache`, or a `CacheStore`; none by default.
    robots: True to ask each origin's robots.txt first and to obey it, "crawl-delay" to keep its
    pace alone, or a `Robots`; off by default. breaker: True to leave hosts alone for a while that
    cannot be reached, or a `Breaker`. budget: a number of requests for the whole session, or a
    `Budget`. rate_limits: `RateLimit`s, outermost first, which count every attempt; none by
    default. headers: fields for every call, under the call's own. user_agents: agents to rotate, or
    a `UserAgents`. auth: what requests takes, for every call, or a mapping of origins
    (`"https://api.example.com"`) to credentials. deny_private: whether to refuse connections to
    private addresses, or an `AddressGuard`; it goes with `layers` too. raise_for_status: raise a
    typed error for every answer of 400 or more, and for challenge pages. timeout: seconds to
    connect and between bytes, or a pair of the two; None to wait for ever. deadline: seconds for a
    whole call with its waits, attempts, redirects and body; None for no bound. max_body: decoded
    bytes of a body. length_tolerance: bytes that a body may fall short of its Content-Length. waf:
    the rules that tell challenge pages, None to look for none. adapter: what sends instead of
    requests' HTTPAdapter. pool_connections, pool_maxsize: hosts whose connections are kept, and how
    many of each. layers: the whole stack, outermost first, in place of throttle, cache, robots,
    retry, breaker, budget, rate_limits, user_agents and origins' credentials. tracing: True to tell
    OpenTelemetry of every call and attempt, or a `Tracing`; off by default; it goes with `layers` too.

    Raises TypeError or ValueError, naming the argument, for what cannot work.
    """

    __attrs__ = [
        *requests.Session.__attrs__,
        *("timeout", "deadline", "raise_for_status", "layers", "throttle", "retry", "cache", "rate_limits"),
        *("breaker", "budget"),
        *("_layers", "_transport_options", "_built", "_is_guarded", "_tracing"),
    ]

    # False while requests' own __init__ runs: the adapters that it mounts are replaced.
    _built = False
    _is_guarded = False
    _tracing: Tracing | None = None

    def __init__(
        self,
        *,
        throttle: float | RateLimiter | None = UNSET,
        retry: int | Retry | None = UNSET,
        cache: str | os.PathLike[str] | Cache | CacheStore | None = UNSET,
        robots: bool | str | Robots | None = UNSET,
        breaker: bool | Breaker | None = UNSET,
        budget: int | Budget | None = UNSET,
        rate_limits: Sequence[RateLimit] | RateLimit | None = UNSET,
        headers: Mapping[str, str | bytes] | None = None,
        user_agents: Sequence[str] | UserAgents | None = UNSET,
        auth: Any = None,
        deny_private: bool | AddressGuard = False,
        raise_for_status: bool = False,
        timeout: Timeout = DEFAULT_TIMEOUT_S,
        deadline: float | None = None,
        max_body: int | None = None,
        length_tolerance: int = 0,
        waf: Waf | None = DEFAULT_WAF,
        adapter: BaseAdapter | None = None,
        pool_connections: int = POOL_CONNECTIONS,
        pool_maxsize: int = POOL_MAXSIZE,
        layers: Sequence[Layer] | None = None,
        tracing: bool | Tracing = False,
    ) -> None:
        self.timeout = arguments.timeout(timeout)
        self.deadline = arguments.deadline(deadline)
        self.raise_for_status = checks.flag("raise_for_status", raise_for_status)
        self._transport_options: dict[str, Any] = {
            "max_body": None if max_body is None else checks.count("max_body", max_body),
            "length_tolerance": checks.count("length_tolerance", length_tolerance),
            "waf": arguments.instance("waf", waf, Waf),
        }
        origin_auth = arguments.origin_auth(auth)
        if layers is None:
            layers = polite_order(
                user_agents=arguments.user_agents(user_agents),
                auth=origin_auth,
                cache=arguments.cache(cache),
                robots=arguments.robots(robots),
                retry=arguments.retry(retry),
                breaker=arguments.breaker(breaker),
                budget=arguments.budget(budget),
                rate_limits=arguments.rate_limits(rate_limits),
                throttle=as_throttle(Throttle() if throttle is UNSET else throttle),
            )
        else:
            layers = arguments.layers(
                layers,
                throttle=throttle,
                retry=retry,
                cache=cache,
                robots=arguments.robots(robots),
                breaker=arguments.breaker(breaker),
                budget=budget,
                rate_limits=rate_limits,
                user_agents=user_agents,
                auth=origin_auth,
            )
        layers = traced(arguments.speaking_for(layers, headers), arguments.tracing(tracing))
        guard = arguments.deny_private(deny_private)
        self._layers = (*layers, guard) if guard is not None else layers
        self._is_guarded = _guarded(self._layers)
        self._transport_options["retries_above"] = self._layer(Retry) is not None
        # To look at. Nothing here reads them: a subclass in old code may use these names itself.
        self.layers = self._layers
        self.throttle: RateLimiter | None = self._layer(RateLimiter)  # type: ignore[type-abstract]
        self.retry: Retry | None = self._layer(Retry)
        self.cache: Cache | None = self._marked("is_cache")
        self.breaker: Breaker | None = self._marked("is_breaker")
        self.budget: Budget | None = self._marked("is_budget")
        self._tracing = self._marked("is_tracing")
        self.rate_limits = cast("tuple[RateLimit, ...]", tuple(filter(_is_rate_limit, self._layers)))
        super().__init__()
        self.headers["User-Agent"] = DEFAULT_USER_AGENT
        self.headers.update(arguments.headers(headers))
        self.auth = None if origin_auth is not None else arguments.auth(auth)
        wire = self._stack(
            arguments.instance("adapter", adapter, BaseAdapter)
            or WireAdapter(
                pool_connections=checks.count("pool_connections", pool_connections, least=1),
                pool_maxsize=checks.count("pool_maxsize", pool_maxsize, least=1),
            )
        )
        self._built = True
        self.mount("https://", wire)
        self.mount("http://", wire)

    @property
    def _origin_auth(self) -> OriginAuth | None:  # type: ignore[override]
        return self._layer(OriginAuth)

    def _layer(self, kind: type[Kind]) -> Kind | None:
        return next((layer for layer in self._layers if isinstance(layer, kind)), None)

    def _marked(self, mark: str) -> Any:
        """The layer with this attribute, which says what it is without its class being loaded; None for none."""
        return next((layer for layer in self._layers if hasattr(layer, mark)), None)

    # --- mounting -----------------------------------------------------------------------

    def mount(self, prefix: str, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter`, inside this session's layers.

        A `Stack` is mounted as it is. An adapter with retries of its own gives them up when
        the session retries: two loops, one inside the other, would multiply.
        """
        if self._built and not isinstance(adapter, Stack):
            adapter = self._stack(adapter)
        self._require_guarded(adapter)
        super().mount(prefix, adapter)

    def mount_raw(self, prefix: str, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter` alone: no pace, no retry, no checks."""
        checks.adapter("adapter", adapter)
        self._require_guarded(adapter)
        super().mount(prefix, adapter)

    def _require_guarded(self, adapter: BaseAdapter) -> None:
        if self._built and self._is_guarded and not _guarded(getattr(adapter, "layers", ())):
            raise TypeError(f"{type(adapter).__name__}: this session has deny_private, which does not guard it there")

    def _require_guarded_way(self, request: requests.PreparedRequest) -> None:
        """Raise AddressBlocked if `request` would go through what was put into `adapters` by hand."""
        adapter = self.get_adapter(request.url or "")
        if not _guarded(getattr(adapter, "layers", ())):
            why = f"would go through a {type(adapter).__name__} that deny_private does not guard (mount it)"
            text = f"{request.method} {redact(request.url or '')} {why}"
            raise AddressBlocked(text, host=host_of(request.url or ""), kind="unknown", request=request)

    def _is_from_private(self, response: Any) -> bool:
        call = current.get()
        known: bool | None = getattr(response, "at_private", None)
        if known or (known is None and call is not None and call.at_private):
            return True
        # From a cache, the answer to what the caller asked for. Its host is not looked up: a name leads anywhere.
        cached = call is not None and call.by_caller and getattr(response, "from_cache", False)
        return bool(cached and self._marked("is_guard").is_private(response.url))

    def _stack(self, inner: BaseAdapter) -> Stack:
        return Stack(self._layers, Transport(checks.adapter("adapter", inner), **self._transport_options))

    # --- sending ------------------------------------------------------------------------

    def request(
        self,
        method: str | bytes,
        url: str | bytes,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        cookies: Any = None,
        files: Any = None,
        auth: Any = None,
        timeout: Timeout = UNSET,
        allow_redirects: bool = True,
        proxies: Any = None,
        hooks: Any = None,
        stream: bool | None = None,
        verify: Any = None,
        cert: Any = None,
        json: Any = None,
        *,
        deadline: float | None = UNSET,
        robots: bool = UNSET,
    ) -> Response:
        """As requests' own; a `timeout` or `deadline` that is not given is the session's, and None means none.

        robots: False for a call that asks no robots.txt, neither for its first request nor for redirects.

        Raises the typed errors of `kreuz_sync.errors`.
        """
        call = self._call(deadline, robots)
        if timeout is UNSET:
            timeout = self.timeout
        if isinstance(method, bytes):
            method = method.decode("ascii")
        try:
            prepared = self.prepare_request(
                requests.Request(
                    method=method.upper(),
                    url=url,
                    headers=headers,
                    files=files,
                    data=data or {},
                    json=json,
                    params=params or {},
                    auth=auth,
                    cookies=cookies,
                    hooks=hooks,
                )
            )
            settings = self.merge_environment_settings(prepared.url, proxies or {}, stream, verify, cert)
        except _QUOTING_ERRORS as error:
            if type(error) not in _QUOTING_ERRORS:
                raise
            raise _without_secrets(error) from None
        token = next_send.set(call)
        try:
            return self.send(prepared, timeout=timeout, allow_redirects=allow_redirects, **settings)
        finally:
            next_send.reset(token)

    if TYPE_CHECKING:
        # requests' own, which hand on all that they are given: its annotations know neither
        # `deadline` nor our Response.
        def get(self, url: str | bytes, params: Any = None, **options: Any) -> Response: ...
        def options(self, url: str | bytes, **options: Any) -> Response: ...
        def head(self, url: str | bytes, **options: Any) -> Response: ...
        def post(self, url: str | bytes, data: Any = None, json: Any = None, **options: Any) -> Response: ...
        def put(self, url: str | bytes, data: Any = None, **options: Any) -> Response: ...
        def patch(self, url: str | bytes, data: Any = None, **options: Any) -> Response: ...
        def delete(self, url: str | bytes, **options: Any) -> Response: ...

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:
        """As requests' own; a `timeout` or `deadline` that is not given is the session's. robots: as of `request`."""
        options.setdefault("timeout", self.timeout)
        deadline, robots = options.pop("deadline", UNSET), options.pop("robots", UNSET)
        call = next_send.get()
        if call is None:
            call = self._call(deadline, robots)
        else:
            next_send.set(None)
        is_hop, call.begun = call.begun, True
        led, call.led_by_private = call.led_by_private, None
        if led is None:
            led = getattr(request, "led_by_private", None)
        call.by_caller, call.at_private = not is_hop if led is None else led, False
        call.credential_fields += getattr(request, "credential_fields", ())
        token = current.set(call)
        try:
            if self._is_guarded:
                self._require_guarded_way(request)
            if self._tracing is None:
                response = adopt(super().send(request, **options))
            else:
                response = adopt(self._tracing.send(super().send, call, request, options))
        except _QUOTING_ERRORS as error:
            if type(error) not in _QUOTING_ERRORS:
                raise
            raise _without_secrets(error) from None
        except theirs.TooManyRedirects as error:
            raise _counted(error, call) from None
        finally:
            current.reset(token)
        if self.raise_for_status and not is_hop:
            response.raise_for_status()
        return response

    def _call(self, deadline: Any = UNSET, robots: Any = UNSET) -> Call:
        seconds = self.deadline if deadline is UNSET else deadline
        call = Call(None if seconds is None else arguments.deadline(seconds))
        call.session, call.helper = self, helper.get()
        if robots is not UNSET:
            call.obeys_robots = checks.flag("robots", robots)
            if robots and self._marked("is_robots") is None:
                raise ValueError("robots=True: a call can only do without; Session(robots=True) makes a session ask")
        return call

    # --- many at once -------------------------------------------------------------------

    def fetch_all(
        self,
        urls: Iterable[Any],
        *,
        workers: int = WORKERS,
        executor: Executor | None = None,
        progress: bool = False,
        on_error: str = "return",
        ordered: bool = False,
        ahead: int = AHEAD,
        live: bool = False,
        **arguments: Any,
    ) -> FetchAll:
        """Fetch many URLs at once, each when its host is due, and give the results as they come.

        urls: anything that gives URLs one after the other, and is read as far ahead as is needed: strings,
        `requests.Request`s, pairs of a URL and arguments of `request`, or `fetch_all.Item`s, which have a
        priority. Equal GETs that are waiting or under way at the same time are one request. What is none of
        these is an `InvalidItem`, and ends nothing else. arguments: those of `request`, for all.

        Gives a `fetch_all.Result` for each input, with its `input` and `index`, and its `response` or `error`.
        ordered: in the order of the inputs; otherwise as they are complete. on_error: "raise" raises the first
        error, and stops everything. workers: requests under way at once; those that wait for their turn do not
        count. executor: where to make them instead of on threads of its own: a `ThreadPoolExecutor`, or one
        of other processes. progress: show a bar, if tqdm is installed and there is somebody to see it. ahead:
        inputs that may have been read and have no result yet; a fifth of that is held, unless these are of few
        hosts. live: read `urls` on a thread of its own, for a list that waits, such as a queue.

        No more than eight results for each worker wait to be taken; until they are, no more is asked for.
        Raises TypeError or ValueError for what cannot work, and while it is iterated SessionClosed after
        `close()`, and what reading `urls` raises.
        """
        from .fetch_all.begin import fetch_all

        return fetch_all(
            self,
            urls,
            workers=workers,
            executor=executor,
            progress=progress,
            on_error=on_error,
            ordered=ordered,
            ahead=ahead,
            live=live,
            arguments=arguments,
            runs=self.__dict__.setdefault("_runs", WeakSet()),
        )

    def close(self) -> None:
        """As requests' own. Who waits for a turn or before a retry is woken, and every `fetch_all` of it ends."""
        for run in list(self.__dict__.get("_runs", ())):
            run.stop(closed=True)
        super().close()

    # Not a data descriptor: a subclass in old code may have an attribute of this name.
    @Computed
    def robots(self) -> RobotsHandle:
        """What robots.txt says of a URL, for those who want to know first. Also of a session that does not ask it."""
        from .robots import Robots, RobotsHandle

        robots: Robots | None = self._marked("is_robots") or self.__dict__.get("_robots_aside")
        if robots is None:
            robots = Robots().speaking_for(self.headers.get("User-Agent"))
            robots = self.__dict__.setdefault("_robots_aside", robots)
        return RobotsHandle(self, robots)

    def resolve_redirects(self, resp: Any, req: Any, *args: Any, **options: Any) -> Generator[Any, None, None]:
        """As requests' own. Every hop is part of the call that it belongs to."""
        hops = super().resolve_redirects(resp, req, *args, **options)
        last = resp
        while True:
            # Without a current one, somebody follows them by hand: each is a call then.
            call = current.get() or self._call(options.get("deadline", UNSET), options.get("robots", UNSET))
            call.led_by_private = from_private = self._is_guarded and self._is_from_private(last)
            token = next_send.set(call)
            try:
                hop = last = next(hops)
            except StopIteration:
                return
            except ValueError as error:
                if isinstance(error, requests.RequestException):
                    raise
                # A Location that is no URL (UnicodeError is a ValueError too).
                target = redact(resp.headers.get("Location", ""))[:REASON_SHOWN]
                raise theirs.InvalidURL(f"redirected to what is no URL: {target!r}", response=resp) from None
            finally:
                next_send.reset(token)
                call.led_by_private = None
            if isinstance(hop, requests.PreparedRequest):  # to be sent later
                hop.led_by_private = from_private
            yield hop

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(repr, self._layers)) or 'without pace or retries'}>"


def _is_rate_limit(layer: Layer) -> bool:
    return hasattr(layer, "is_rate_limit")


def _guarded(layers: Sequence[Layer]) -> bool:
    return any(hasattr(layer, "is_guard") for layer in layers)


_QUOTING_ERRORS = (theirs.InvalidURL, theirs.MissingSchema, theirs.InvalidSchema, theirs.InvalidHeader)


def _counted(error: theirs.TooManyRedirects, call: Call) -> TooManyRedirects:
    typed = TooManyRedirects(str(error), request=error.request, response=error.response, attempts=call.attempts)
    typed.waited = call.waited
    return typed


def _without_secrets(error: requests.RequestException) -> requests.RequestException:
    shown = [redact_text(str(arg)) for arg in error.args]
    if isinstance(error, theirs.InvalidHeader):  # it quotes the value, which may be a token
        shown = [f"{text.partition(':')[0]} (its value is left out)" for text in shown]
    return type(error)(*shown, request=portable(error.request), response=error.response)
