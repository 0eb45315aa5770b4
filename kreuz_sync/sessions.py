"""The session: reads its arguments, builds the stack, mounts it."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import requests
from requests import exceptions as theirs
from requests.adapters import BaseAdapter

from . import arguments, checks
from .arguments import UNSET, Kind, Timeout
from .auth import OriginAuth
from .calls import Call, current, next_send
from .errors import TooManyRedirects, portable
from .order import polite_order
from .preparing import RememberingSession
from .response import REASON_SHOWN, Response, adopt
from .retry import Retry
from .stack import Layer, Stack
from .throttle import RateLimiter, Throttle, as_throttle
from .transport import Transport
from .urls import redact, redact_text
from .useragent import DEFAULT_USER_AGENT, UserAgents
from .waf import DEFAULT_WAF, Waf
from .wire import WireAdapter

if TYPE_CHECKING:
    from .cache.setting import Cache
    from .cache.store import CacheStore

DEFAULT_TIMEOUT_S = 30.0
# urllib3 forgets the least used host beyond the first number, and throws away connections
# of one host beyond the second. An idle place costs a few bytes.
POOL_CONNECTIONS = 256
POOL_MAXSIZE = 64


class Session(RememberingSession):
    """A `requests.Session` that waits its turn at every host.

    Without arguments it differs from requests' in two things: requests to one host start at
    least 0.2 s apart, and a call that names no time-out has one of 30 s.

    throttle: seconds between requests to one host, a `Throttle` (several sessions may share
    it), any `RateLimiter`, or None for no pace. retry: sends after the first, or a `Retry`;
    0 by default. cache: a folder to keep answers in, a `Cache`, or a `CacheStore`; none by
    default. headers: fields for every call, under the call's own. user_agents: agents to
    rotate, or a `UserAgents`. auth: what requests takes, for every call, or a mapping of
    origins (`"https://api.example.com"`) to credentials. raise_for_status: raise a typed
    error for every answer of 400 or more, and for challenge pages. timeout: seconds to
    connect and between bytes, or a pair of the two; None to wait for ever. deadline: seconds
    for a whole call with its waits, attempts, redirects and body; None for no bound. max_body: decoded
    bytes of a body. length_tolerance: bytes that a body may fall short of its Content-Length.
    waf: the rules that tell challenge pages, None to look for none. adapter: what sends
    instead of requests' HTTPAdapter. pool_connections, pool_maxsize: hosts whose connections
    are kept, and how many of each. layers: the whole stack, outermost first, in place of
    throttle, cache, retry, user_agents and origins' credentials.

    Raises TypeError or ValueError, naming the argument, for what cannot work.
    """

    __attrs__ = [
        *requests.Session.__attrs__,
        *("timeout", "deadline", "raise_for_status", "layers", "throttle", "retry", "cache"),
        *("_layers", "_transport_options", "_built"),
    ]

    # False while requests' own __init__ runs: the adapters that it mounts are replaced.
    _built = False

    def __init__(
        self,
        *,
        throttle: float | RateLimiter | None = UNSET,
        retry: int | Retry | None = UNSET,
        cache: str | os.PathLike[str] | Cache | CacheStore | None = UNSET,
        headers: Mapping[str, str | bytes] | None = None,
        user_agents: Sequence[str] | UserAgents | None = UNSET,
        auth: Any = None,
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
                retry=arguments.retry(retry),
                throttle=as_throttle(Throttle() if throttle is UNSET else throttle),
            )
        else:
            layers = arguments.layers(
                layers, throttle=throttle, retry=retry, cache=cache, user_agents=user_agents, auth=origin_auth
            )
        self._layers = tuple(layers)
        self._transport_options["retries_above"] = self._layer(Retry) is not None
        # To look at. Nothing here reads them: a subclass in old code may use these names itself.
        self.layers = self._layers
        self.throttle: RateLimiter | None = self._layer(RateLimiter)  # type: ignore[type-abstract]
        self.retry: Retry | None = self._layer(Retry)
        self.cache: Cache | None = cast(Any, next((one for one in self._layers if hasattr(one, "is_cache")), None))
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

    # --- mounting -----------------------------------------------------------------------

    def mount(self, prefix: str, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter`, inside this session's layers.

        A `Stack` is mounted as it is. An adapter with retries of its own gives them up when
        the session retries: two loops, one inside the other, would multiply.
        """
        if self._built and not isinstance(adapter, Stack):
            adapter = self._stack(adapter)
        super().mount(prefix, adapter)

    def mount_raw(self, prefix: str, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter` alone: no pace, no retry, no checks."""
        checks.adapter("adapter", adapter)
        super().mount(prefix, adapter)

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
    ) -> Response:
        """As requests' own; a `timeout` or `deadline` that is not given is the session's, and None means none.

        Raises the typed errors of `kreuz_sync.errors`.
        """
        call = self._call(deadline)
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
        """As requests' own; a `timeout` or `deadline` that is not given is the session's."""
        options.setdefault("timeout", self.timeout)
        deadline = options.pop("deadline", UNSET)
        call = next_send.get()
        if call is None:
            call = self._call(deadline)
        else:
            next_send.set(None)
        is_hop, call.begun = call.begun, True
        call.credential_fields += getattr(request, "credential_fields", ())
        token = current.set(call)
        try:
            response = adopt(super().send(request, **options))
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

    def _call(self, deadline: Any) -> Call:
        seconds = self.deadline if deadline is UNSET else deadline
        return Call(None if seconds is None else arguments.deadline(seconds))

    def resolve_redirects(self, resp: Any, req: Any, *args: Any, **options: Any) -> Generator[Any, None, None]:
        """As requests' own. Every hop is part of the call that it belongs to."""
        call = current.get()
        hops = super().resolve_redirects(resp, req, *args, **options)
        while True:
            token = next_send.set(call)
            try:
                hop = next(hops)
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
            yield hop

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(repr, self._layers)) or 'without pace or retries'}>"


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
