"""The session: reads its arguments, builds the stack, mounts it."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import requests
from requests import exceptions as theirs
from requests.adapters import BaseAdapter, HTTPAdapter

from . import arguments, checks
from .arguments import UNSET, Kind, Timeout
from .auth import OriginAuth
from .calls import Call, current, next_hop
from .order import polite_order
from .preparing import RememberingSession
from .response import Response, adopt
from .retry import Retry, without_own_retries
from .stack import Layer, Stack
from .throttle import RateLimiter, Throttle, as_throttle
from .transport import Transport
from .urls import redact_text
from .useragent import DEFAULT_USER_AGENT, UserAgents
from .waf import DEFAULT_WAF, Waf

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
    connect and between bytes, or a pair of the two; None to wait for ever. max_body: decoded
    bytes of a body. length_tolerance: bytes that a body may fall short of its Content-Length.
    waf: the rules that tell challenge pages, None to look for none. adapter: what sends
    instead of requests' HTTPAdapter. pool_connections, pool_maxsize: hosts whose connections
    are kept, and how many of each. layers: the whole stack, outermost first, in place of
    throttle, cache, retry, user_agents and origins' credentials.

    Raises TypeError or ValueError, naming the argument, for what cannot work.
    """

    __attrs__ = [
        *requests.Session.__attrs__,
        *("timeout", "raise_for_status", "layers", "_transport_options", "_built"),
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
        max_body: int | None = None,
        length_tolerance: int = 0,
        waf: Waf | None = DEFAULT_WAF,
        adapter: BaseAdapter | None = None,
        pool_connections: int = POOL_CONNECTIONS,
        pool_maxsize: int = POOL_MAXSIZE,
        layers: Sequence[Layer] | None = None,
    ) -> None:
        self.timeout = arguments.timeout(timeout)
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
        self.layers = tuple(layers)
        super().__init__()
        self.headers["User-Agent"] = DEFAULT_USER_AGENT
        self.headers.update(arguments.headers(headers))
        self.auth = auth if origin_auth is None else None
        wire = self._stack(
            arguments.instance("adapter", adapter, BaseAdapter)
            or HTTPAdapter(
                pool_connections=checks.count("pool_connections", pool_connections, least=1),
                pool_maxsize=checks.count("pool_maxsize", pool_maxsize, least=1),
            )
        )
        self._built = True
        self.mount("https://", wire)
        self.mount("http://", wire)

    # --- its layers ---------------------------------------------------------------------

    @property
    def throttle(self) -> RateLimiter | None:
        """What paces this session's requests."""
        return self._layer(RateLimiter)  # type: ignore[type-abstract]

    @property
    def retry(self) -> Retry | None:
        """What repeats this session's requests."""
        return self._layer(Retry)

    @property
    def cache(self) -> Cache | None:
        """What keeps this session's answers; to list, delete, export, switch off for a while."""
        return next((layer for layer in self.layers if getattr(layer, "is_cache", False)), None)  # type: ignore[return-value]

    @property
    def _origin_auth(self) -> OriginAuth | None:  # type: ignore[override]
        return self._layer(OriginAuth)

    def _layer(self, kind: type[Kind]) -> Kind | None:
        return next((layer for layer in self.layers if isinstance(layer, kind)), None)

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
        super().mount(prefix, adapter)

    def _stack(self, inner: BaseAdapter) -> Stack:
        if self.retry is not None:
            without_own_retries(inner)
        return Stack(self.layers, Transport(inner, **self._transport_options))

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
    ) -> Response:
        """As requests' own; without a `timeout` it is the session's, and None means none.

        Raises the typed errors of `kreuz_sync.errors`.
        """
        if timeout is UNSET:
            timeout = self.timeout
        if isinstance(method, bytes):
            method = method.decode("ascii")
        try:
            response = super().request(
                *(method, url, params, data, headers, cookies, files, auth, timeout),
                *(allow_redirects, proxies, hooks, stream, verify, cert, json),
            )
        except _URL_ERRORS as error:
            raise _without_secrets(error) from None
        return cast(Response, response)

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:
        """As requests' own; without a `timeout` it is the session's."""
        options.setdefault("timeout", self.timeout)
        call = next_hop.get()
        is_hop = call is not None
        if is_hop:
            next_hop.set(None)
        token = current.set(call or Call())
        try:
            response = adopt(super().send(request, **options))
        except _URL_ERRORS as error:
            raise _without_secrets(error) from None
        finally:
            current.reset(token)
        if self.raise_for_status and not is_hop:
            response.raise_for_status()
        return response

    def resolve_redirects(self, resp: Any, req: Any, *args: Any, **options: Any) -> Generator[Any, None, None]:
        """As requests' own. Every hop is part of the call that it belongs to."""
        call = current.get()
        hops = super().resolve_redirects(resp, req, *args, **options)
        while True:
            token = next_hop.set(call)
            try:
                hop = next(hops)
            except StopIteration:
                return
            finally:
                next_hop.reset(token)
            yield hop

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(repr, self.layers)) or 'without layers'}>"


_URL_ERRORS = (theirs.InvalidURL, theirs.MissingSchema, theirs.InvalidSchema)


def _without_secrets(error: requests.RequestException) -> requests.RequestException:
    shown = (redact_text(str(arg)) for arg in error.args)
    return type(error)(*shown, request=error.request, response=error.response)
