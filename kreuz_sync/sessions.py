"""The session: reads its arguments, builds the stack, mounts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import requests
from requests import exceptions as theirs
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.cookies import RequestsCookieJar, cookiejar_from_dict, merge_cookies
from requests.sessions import merge_hooks, merge_setting
from requests.structures import CaseInsensitiveDict

from . import checks
from .auth import OriginAuth, credential_fields
from .calls import Call, current, next_hop
from .environment import Environment
from .order import polite_order
from .response import Response, adopt
from .retry import Retry, without_own_retries
from .stack import Layer, Stack
from .throttle import RateLimiter, Throttle, as_throttle
from .transport import Transport
from .urls import redact
from .useragent import DEFAULT_USER_AGENT, UserAgents
from .waf import DEFAULT_WAF, Waf

Timeout = float | tuple[float | None, float | None] | None

DEFAULT_TIMEOUT_S = 30.0
# urllib3 forgets the least used host beyond the first number, and throws away connections
# of one host beyond the second. An idle place costs a few bytes.
POOL_CONNECTIONS = 256
POOL_MAXSIZE = 64


class _Unset:
    """Not given. (None is a value: no time-out, no throttle.)"""

    def __repr__(self) -> str:
        return "<default>"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


class Session(requests.Session):
    """A `requests.Session` that waits its turn at every host.

    Without arguments it differs from requests' in two things: requests to one host start at
    least 0.2 s apart, and a call that names no time-out has one of 30 s.

    throttle: seconds between requests to one host, a `Throttle` (several sessions may share
    it), any `RateLimiter`, or None for no pace. retry: sends after the first, or a `Retry`;
    0 by default. headers: fields for every call, under the call's own. user_agents: agents to
    rotate, or a `UserAgents`. auth: what requests takes, for every call, or a mapping of
    origins (`"https://api.example.com"`) to credentials. raise_for_status: raise a typed
    error for every answer of 400 or more, and for challenge pages. timeout: seconds to
    connect and between bytes, or a pair of the two; None to wait for ever. max_body: decoded
    bytes of a body. length_tolerance: bytes that a body may fall short of its Content-Length.
    waf: the rules that tell challenge pages, None to look for none. adapter: what sends
    instead of requests' HTTPAdapter. pool_connections, pool_maxsize: hosts whose connections
    are kept, and how many of each. layers: the whole stack, outermost first, in place of
    throttle, retry, user_agents and origins' credentials.

    Raises TypeError or ValueError, naming the argument, for what cannot work.
    """

    __attrs__ = [
        *requests.Session.__attrs__,
        *("timeout", "raise_for_status", "layers", "throttle", "retry"),
        *("_origin_auth", "_transport_options"),
    ]

    # None while requests' own __init__ runs: the adapters that it mounts are replaced.
    _environment: Environment | None = None

    def __init__(
        self,
        *,
        throttle: float | RateLimiter | None = UNSET,
        retry: int | Retry | None = UNSET,
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
        self.timeout = _timeout(timeout)
        self.raise_for_status = checks.flag("raise_for_status", raise_for_status)
        self._transport_options = {
            "max_body": None if max_body is None else checks.count("max_body", max_body),
            "length_tolerance": checks.count("length_tolerance", length_tolerance),
            "waf": _instance("waf", waf, Waf),
        }
        self._origin_auth = OriginAuth(auth) if isinstance(auth, Mapping) else None
        if layers is None:
            self.throttle: RateLimiter | None = as_throttle(Throttle() if throttle is UNSET else throttle)
            self.retry = _retry(retry)
            self.layers = polite_order(
                user_agents=None if user_agents in (UNSET, None) else _user_agents(user_agents),
                auth=self._origin_auth,
                retry=self.retry,
                throttle=self.throttle,
            )
        else:
            self.layers = _layers(layers, throttle=throttle, retry=retry, user_agents=user_agents, auth=self._origin_auth)
            self.throttle = next((layer for layer in self.layers if isinstance(layer, RateLimiter)), None)
            self.retry = next((layer for layer in self.layers if isinstance(layer, Retry)), None)
        super().__init__()
        self._environment = Environment()
        self.headers["User-Agent"] = DEFAULT_USER_AGENT
        self.headers.update(_headers(headers))
        if self._origin_auth is None:
            self.auth = auth
        inner = _instance("adapter", adapter, BaseAdapter) or HTTPAdapter(
            pool_connections=checks.count("pool_connections", pool_connections, least=1),
            pool_maxsize=checks.count("pool_maxsize", pool_maxsize, least=1),
        )
        wire = self._stack(inner)
        self.mount("https://", wire)
        self.mount("http://", wire)

    # --- mounting -----------------------------------------------------------------------

    def mount(self, prefix: str | bytes, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter`, inside this session's layers.

        A `Stack` is mounted as it is. An adapter with retries of its own gives them up when
        the session retries: two loops, one inside the other, would multiply.
        """
        if self._environment is not None and not isinstance(adapter, Stack):
            adapter = self._stack(adapter)
        super().mount(prefix, adapter)

    def mount_raw(self, prefix: str | bytes, adapter: BaseAdapter) -> None:
        """Send URLs that start with `prefix` through `adapter` alone: no pace, no retry, no checks."""
        super().mount(prefix, adapter)

    def _stack(self, inner: BaseAdapter) -> Stack:
        if self.retry is not None:
            without_own_retries(inner)
        return Stack(self.layers, Transport(inner, **self._transport_options))

    # --- sending ------------------------------------------------------------------------

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **options: Any) -> Response:  # type: ignore[override]
        """As requests' own; without a `timeout` it is the session's, and None means none.

        Raises the typed errors of `kreuz_sync.errors`.
        """
        # The ninth positional argument is requests' `timeout`.
        if len(args) <= _TIMEOUT_POSITION and "timeout" not in options:
            options["timeout"] = self.timeout
        if isinstance(method, bytes):
            method = method.decode("ascii")
        try:
            return super().request(method, url, *args, **options)  # type: ignore[return-value]
        except _URL_ERRORS as error:
            raise _without_secrets(error) from None

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        """As requests' own; without a `timeout` it is the session's."""
        options.setdefault("timeout", self.timeout)
        call = next_hop.get()
        is_hop = call is not None
        if is_hop:
            next_hop.set(None)
        token = current.set(call or Call())
        try:
            response = adopt(super().send(request, **options))
        finally:
            current.reset(token)
        if self.raise_for_status and not is_hop:
            response.raise_for_status()
        return response

    def resolve_redirects(self, resp: Any, req: Any, *args: Any, **options: Any) -> Iterator[Any]:  # type: ignore[override]
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

    # --- preparing ----------------------------------------------------------------------

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """As requests' own, with the netrc file remembered, and explicit credentials first.

        Credentials are taken from the first of: the call's `auth`, its Authorization field,
        the session's, the URL's, the netrc file's.
        """
        cookies = request.cookies or {}
        if not isinstance(cookies, requests.compat.cookielib.CookieJar):
            cookies = cookiejar_from_dict(cookies)
        auth = self._auth_for(request)
        prepared = requests.PreparedRequest()
        prepared.prepare(
            method=(request.method or "").upper(),
            url=request.url,
            files=request.files,
            data=request.data,
            json=request.json,
            headers=self._headers_for(request),
            params=self._params_for(request),
            auth=auth,
            cookies=merge_cookies(merge_cookies(RequestsCookieJar(), self.cookies), cookies),
            hooks=merge_hooks(request.hooks, self.hooks),
        )
        fields = credential_fields(auth)
        if fields:
            prepared.credential_fields = fields  # type: ignore[attr-defined]
        return prepared

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """As requests' own, from the remembered environment."""
        if self.trust_env:
            if proxies is not None:
                proxies = {**self._environment.proxies(url, proxies.get("no_proxy")), **proxies}
            if verify is True or verify is None:
                verify = self._environment.ca_bundle() or verify
        return {
            "proxies": merge_setting(proxies, self.proxies) if self.proxies else proxies,
            "stream": self.stream if stream is None else stream,
            "verify": merge_setting(verify, self.verify),
            "cert": merge_setting(cert, self.cert),
        }

    def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
        """Leave credentials behind when a redirect leaves their origin; take the netrc file's for the new one."""
        fields = getattr(response.request, "credential_fields", ())
        if self.should_strip_auth(response.request.url, prepared_request.url):
            for name in ("Authorization", *fields):
                prepared_request.headers.pop(name, None)
        elif fields:
            prepared_request.credential_fields = fields
        if "Authorization" not in prepared_request.headers:
            found = self._netrc_auth(prepared_request.url)
            if found is not None:
                prepared_request.prepare_auth(found)

    def _auth_for(self, request: requests.Request) -> Any:
        if request.auth:
            return request.auth
        if request.headers and any(_lower(name) == "authorization" for name in request.headers):
            return _as_given
        if self.auth:
            return self.auth
        url = request.url if isinstance(request.url, str) else str(request.url or "")
        if "@" in url and any(requests.utils.get_auth_from_url(url)):
            return None  # requests takes them from the URL
        return None if "Authorization" in self.headers else self._netrc_auth(url)

    def _netrc_auth(self, url: str) -> tuple[str, str] | None:
        if not self.trust_env or (self._origin_auth is not None and self._origin_auth.covers(url)):
            return None
        return self._environment.netrc_auth(url)

    def _params_for(self, request: requests.Request) -> Any:
        # An empty string says "no parameters" to requests at once; an empty dict takes it a while.
        return merge_setting(request.params, self.params) if self.params else request.params or ""

    def _headers_for(self, request: requests.Request) -> Any:
        if not request.headers and None not in self.headers.values():
            return self.headers  # preparing copies it
        return merge_setting(request.headers, self.headers, dict_class=CaseInsensitiveDict)

    # --- copies -------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self._environment = Environment()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(repr, self.layers)) or 'without layers'}>"


_TIMEOUT_POSITION = 6  # of request()'s arguments after method and url
_URL_ERRORS = (theirs.InvalidURL, theirs.MissingSchema, theirs.InvalidSchema)


def _as_given(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An auth that leaves the request's Authorization field as the caller wrote it."""
    return request


def _lower(name: str | bytes) -> str:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower()


def _without_secrets(error: requests.RequestException) -> requests.RequestException:
    return type(error)(*(redact(str(arg)) for arg in error.args), request=error.request, response=error.response)


# --- reading the arguments ------------------------------------------------------------------


def _timeout(value: Any) -> Timeout:
    if value is None:
        return None
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"timeout={value!r}: a pair is (connect, read), in seconds or None")
        connect, read = (None if part is None else checks.seconds("timeout", part, above=0) for part in value)
        return connect, read
    return checks.seconds("timeout", value, above=0)


def _instance(name: str, value: Any, kind: type) -> Any:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name}={value!r}: a {kind.__name__} is wanted, or None")
    return value


def _headers(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"headers: a mapping of names to values is wanted, not {type(value).__name__}")
    for name, content in value.items():
        if content is not None:
            requests.utils.check_header_validity((name, content))
    return value


def _retry(value: Any) -> Retry | None:
    if value is UNSET or value is None or (value == 0 and type(value) is int):
        return None
    return value if isinstance(value, Retry) else Retry(attempts=checks.count("retry", value))


def _user_agents(value: Any) -> UserAgents:
    return value if isinstance(value, UserAgents) else UserAgents(value)


def _layers(layers: Any, **others: Any) -> tuple[Layer, ...]:
    if isinstance(layers, str) or not isinstance(layers, Sequence) or not all(callable(layer) for layer in layers):
        raise TypeError(f"layers={layers!r}: a list of layers is wanted, outermost first")
    also = [name for name, value in others.items() if value is not UNSET and value is not None]
    if also:
        raise ValueError(f"layers= is the whole stack: put {', '.join(also)} into it instead of beside it")
    return tuple(layers)
