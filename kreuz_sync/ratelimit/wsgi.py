"""Rate limits for a WSGI server: Flask, Django, or any other application of PEP 3333.

    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=100, window=60)

What one request meets, in this order:

1. `exempt_methods` and `exempt_paths`: what is exempt goes to the application as it came.
2. Each limit, outermost first: `flow.decide`. The first that refuses answers (`replies.py`), and nothing
   further in hears of the request: neither other limits nor the application.
3. The application, once. What it answers goes out as it is, with fields of each limit added behind its
   own, those of the innermost limit first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from kreuz_sync import checks

from .addresses import NO_PEER, REFERENCE_FIELDS, PeerAddress, TrustedProxies
from .environ import Environ, field, path_of
from .failures import StoreUnavailable
from .fields import response_fields
from .flow import Decision, Outcome, decide
from .header import by_header
from .outage import broken_function
from .replies import UNDECIDED, App, StartResponse, adding, as_app, reply
from .setting import RateLimit, several
from .usage import PolicyUsage, RateLimitContext, whole_seconds

__all__ = [
    "CONTEXT",
    "REFERENCE_FIELDS",
    "PeerAddress",
    "RateLimitMiddleware",
    "TrustedProxies",
    "by_header",
    "field",
    "path_of",
]

CONTEXT = "kreuz_sync.rate_limit"  # where an application finds its RateLimitContext in the environ

_PEER = PeerAddress()
_NO_POLICIES = RateLimitContext()
_RATE_LIMITED = reply(429)  # RFC 6585, section 4
_UNDECIDED = reply(500)
_ON_A_UNIX_SOCKET = (
    "the connection has no address, as on a Unix socket, so that every request is refused; if only your proxy "
    "connects there, give key=TrustedProxies(hops=1, unix_socket=True)"
)
_STORE_OUT = reply(503)


class RateLimitMiddleware:
    """A WSGI application that lets through to `app` what is within the limits.

    limits: `RateLimit`s, outermost first. Without any, the keyword arguments make one, and are those of
    `RateLimit`: `limit=`, `window=`, `key=`, `store=`, ... Its functions (key, limit, skip, response) are
    given the environ, as the request; the key is the address of the peer unless there is another.

    A request over a limit is answered 429 with Retry-After and the RateLimit fields; one whose key or
    limit cannot be told 500; one that cannot be counted 503, unless `on_store_failure` says otherwise;
    all three without a body. A limit's `response=` function (environ, reason) answers in their place. It
    returns a WSGI application, such as a Flask or Werkzeug response, or a triple of status, fields and
    body: `(429, {"Content-Type": "text/plain"}, b"Slow down")`. The fields are added to that too.

    An allowed request carries a `RateLimitContext` in `environ["kreuz_sync.rate_limit"]`, to which a
    middleware further in appends its own limits. Every request counts, HEAD and OPTIONS too, before it
    reaches the application and whatever that makes of it.

    exempt_methods: methods that are not counted, such as `["OPTIONS"]`. exempt_paths: paths, from the root of
    the host on, that are not counted: `"/health"` is that one, `"/static/*"` is all below. Exempt requests
    get no fields, no context and touch no store.

    Warns once (RuntimeWarning) if the server has several processes and a store does not count across
    them: then each of them allows as much. Raises TypeError or ValueError, naming the argument.
    """

    def __init__(
        self,
        app: App,
        *limits: RateLimit,
        exempt_methods: Iterable[str] = (),
        exempt_paths: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        self.app: App = checks.function("app", app)
        self.limits = _limits(limits, settings)
        self.exempt_methods = frozenset(
            checks.token("exempt_methods", method).upper() for method in checks.texts("exempt_methods", exempt_methods)
        )
        self.exempt_paths = tuple(_path(path) for path in checks.texts("exempt_paths", exempt_paths))
        self._exact_paths = frozenset(path for path in self.exempt_paths if not path.endswith("*"))
        self._path_prefixes = tuple(path[:-1] for path in self.exempt_paths if path.endswith("*"))
        # What the one warning is about, until a thread takes it to warn: `pop` is one step of a list.
        unshared = [limit.name for limit in self.limits if not limit.store.is_shared]
        self._unwarned = [unshared] if unshared else []
        self._limited = self.app
        for limit in reversed(self.limits):
            self._limited = _Limited(limit, self._limited)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if self._unwarned and environ.get("wsgi.multiprocess"):
            self._warn()
        app = self.app if self._is_exempt(environ) else self._limited
        return app(environ, start_response)

    def _is_exempt(self, environ: Environ) -> bool:
        if environ.get("REQUEST_METHOD") in self.exempt_methods:
            return True
        if not self.exempt_paths:
            return False
        path = path_of(environ)
        if path in self._exact_paths:
            return True
        # What may be another path to the application (/static/../login) is not exempt.
        return path.startswith(self._path_prefixes) and "//" not in path and not {".", ".."} & set(path.split("/"))

    def _warn(self) -> None:
        try:
            names = self._unwarned.pop()
        except IndexError:  # another thread warns
            return
        warnings.warn(
            f"rate limits {names}: the server has several processes, and the store counts in each apart, so that "
            "together they allow several times the limit; give them a store that they share, such as RedisStore",
            RuntimeWarning,
            stacklevel=3,
        )

    def __repr__(self) -> str:
        return f"RateLimitMiddleware({', '.join(map(repr, (self.app, *self.limits)))})"


class _Limited:
    """One limit around what is further in."""

    def __init__(self, limit: RateLimit, app: App) -> None:
        self.limit = limit
        self.app = app

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        decision = decide(self.limit, environ, _PEER)
        policy = decision.policy
        if not decision.passes:
            return self._refuse(decision, environ, start_response)
        if policy is None:  # skipped or uncounted: nothing is said
            return self.app(environ, start_response)
        environ[CONTEXT] = environ.get(CONTEXT, _NO_POLICIES).appended(policy)
        fields = response_fields([policy], self.limit.fields)
        return self.app(environ, adding(start_response, fields, environ) if fields else start_response)

    def _refuse(self, decision: Decision, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if decision.failure is not None and decision.failure.code == NO_PEER:
            # No caller's doing, but that of how the server was set up.
            broken_function(self.limit, NO_PEER, _ON_A_UNIX_SOCKET)
        # Asked for outside any `try`: if it raises, the request has failed, and was not let through.
        answer = _default(decision) if self.limit.response is None else self.limit.response(environ, decision.reason)
        if decision.policy is None:
            environ[UNDECIDED] = True
        else:
            fields = response_fields([decision.policy], self.limit.fields)
            retry_after = str(whole_seconds(_wait(decision.policy, environ)))
            start_response = adding(start_response, fields, environ, retry_after=retry_after)
        return as_app(answer)(environ, start_response)


def _wait(policy: PolicyUsage, environ: Environ) -> float:
    """Seconds until there may be room again: that of `policy`, and those of limits further out that are used up."""
    outer: tuple[PolicyUsage, ...] = environ.get(CONTEXT, _NO_POLICIES).policies
    return max(policy.reset_after, *(other.reset_after for other in outer if not other.remaining), 0.0)


def _default(decision: Decision) -> App:
    if decision.outcome is Outcome.LIMITED:
        return _RATE_LIMITED
    return _STORE_OUT if isinstance(decision.failure, StoreUnavailable) else _UNDECIDED


def _limits(limits: tuple[RateLimit, ...], settings: dict[str, Any]) -> tuple[RateLimit, ...]:
    if limits and settings:
        raise TypeError(f"{', '.join(settings)}: these make one limit where none is given, and {len(limits)} are given")
    if not all(isinstance(limit, RateLimit) for limit in limits):
        raise TypeError(f"limits={limits!r}: RateLimit(...)s are wanted, or keyword arguments such as limit=100")
    if not limits:
        limits = (RateLimit(**settings),)
    for limit in limits:
        limit.require_key_for("server")
        if limit.on_limit != "answer":
            raise ValueError(f"on_limit={limit.on_limit!r}: a server answers, only a session can wait or raise")
        if limit.margin:
            raise ValueError(f"margin={limit.margin!r}: only a session, which comes to a server's window late, has one")
    return several(limits, _PEER)


def _path(path: str) -> str:
    if not path.startswith("/") or "*" in path[:-1]:
        raise ValueError(f"exempt_paths: {path!r}: a path such as '/health' is wanted, or all below one: '/static/*'")
    if path.endswith("*") and not path.endswith("/*"):
        raise ValueError(f"exempt_paths: {path!r}: the star stands for all below a path, as in '/static/*'")
    return path
