"""One `requests.Session` that is polite, resilient and observable.

    import kreuz_sync

    session = kreuz_sync.Session()
    page = session.get("https://example.com/")

Code written for requests needs one changed import: `import kreuz_sync as requests` works too,
since the names of requests' front page are here as well. Errors of ours are subclasses of the
errors of requests that stand here; those without a name on this page are in `kreuz_sync.errors`.
"""

import logging
from typing import TYPE_CHECKING, Any

from requests import (
    ConnectionError,
    ConnectTimeout,
    HTTPError,
    JSONDecodeError,
    PreparedRequest,
    ReadTimeout,
    Request,
    RequestException,
    Timeout,
    TooManyRedirects,
    URLRequired,
    adapters,
    certs,
    codes,
    compat,
    cookies,
    exceptions,
    hooks,
    models,
    packages,
    status_codes,
    structures,
    utils,
)

from .api import delete, get, head, options, patch, post, put, request, session
from .auth import Basic, Bearer, HeaderAuth
from .errors import (
    AddressBlocked,
    BadGateway,
    BodyTimeout,
    BodyTooLarge,
    BudgetExceeded,
    CircuitOpen,
    ClientError,
    ConnectionFailed,
    ConnectionRefused,
    DataLoss,
    DeadlineExceeded,
    DnsError,
    Forbidden,
    Gone,
    InvalidItem,
    KreuzError,
    NotFound,
    ProtocolViolation,
    ProxyError,
    RateLimited,
    RateLimitExceeded,
    RateLimitUnavailable,
    RequestTimeout,
    RetriesExhausted,
    RobotsDisallowed,
    ServerError,
    SessionClosed,
    SslError,
    StatusError,
    ThrottleTimeout,
    Unauthorized,
    UndecodableBody,
    UploadFailed,
    WafBlocked,
    WorkerLost,
    classify,
)
from .order import polite_order, reference_order
from .response import Response
from .retry import Retry
from .sessions import Session
from .stack import LayerAdapter, Stack, copy_request
from .throttle import RateLimiter, Throttle
from .useragent import UserAgents
from .version import __version__
from .waf import Waf, WafMatch

if TYPE_CHECKING:
    from .breaker import Breaker
    from .budget import Budget, HostBudget
    from .cache import Cache, CacheStore, DiskStore, MemoryStore, RedisCacheStore
    from .ratelimit import RateLimit
    from .robots import Robots
    from .ssrf import AddressGuard
    from .throttle.folder import FolderThrottle
    from .throttle.redis import RedisThrottle
    from .tracing import Tracing

# Loaded when they are asked for: a program without a cache does not pay for one.
_OF_THE_CACHE = ("Cache", "CacheStore", "DiskStore", "MemoryStore", "RedisCacheStore")
_OF_THE_BUDGET = ("Budget", "HostBudget")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_CACHE:
        from . import cache

        return getattr(cache, name)
    if name == "RateLimit":
        from .ratelimit import RateLimit

        return RateLimit
    if name == "AddressGuard":
        from .ssrf import AddressGuard

        return AddressGuard
    if name == "Robots":
        from .robots import Robots

        return Robots
    if name == "FolderThrottle":
        from .throttle.folder import FolderThrottle

        return FolderThrottle
    if name == "RedisThrottle":
        from .throttle.redis import RedisThrottle

        return RedisThrottle
    if name == "Breaker":
        from .breaker import Breaker

        return Breaker
    if name == "Tracing":
        from .tracing import Tracing

        return Tracing
    if name in _OF_THE_BUDGET:
        from . import budget

        return getattr(budget, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    others = ("Breaker", "AddressGuard", "RateLimit", "Robots", "Tracing")
    return sorted({*globals(), *_OF_THE_BUDGET, *_OF_THE_CACHE, *others})


__all__ = [
    "AddressBlocked",
    "AddressGuard",
    "BadGateway",
    "Basic",
    "Bearer",
    "BodyTimeout",
    "BodyTooLarge",
    "Breaker",
    "Budget",
    "BudgetExceeded",
    "Cache",
    "CacheStore",
    "CircuitOpen",
    "ClientError",
    "ConnectTimeout",
    "ConnectionError",
    "ConnectionFailed",
    "ConnectionRefused",
    "DataLoss",
    "DeadlineExceeded",
    "DiskStore",
    "DnsError",
    "FolderThrottle",
    "Forbidden",
    "Gone",
    "HTTPError",
    "HeaderAuth",
    "HostBudget",
    "InvalidItem",
    "JSONDecodeError",
    "KreuzError",
    "LayerAdapter",
    "MemoryStore",
    "NotFound",
    "PreparedRequest",
    "ProtocolViolation",
    "ProxyError",
    "RateLimit",
    "RateLimitExceeded",
    "RateLimitUnavailable",
    "RateLimited",
    "RateLimiter",
    "ReadTimeout",
    "RedisCacheStore",
    "RedisThrottle",
    "Request",
    "RequestException",
    "RequestTimeout",
    "Response",
    "RetriesExhausted",
    "Retry",
    "Robots",
    "RobotsDisallowed",
    "ServerError",
    "Session",
    "SessionClosed",
    "SslError",
    "Stack",
    "StatusError",
    "Throttle",
    "ThrottleTimeout",
    "Timeout",
    "TooManyRedirects",
    "Tracing",
    "URLRequired",
    "Unauthorized",
    "UndecodableBody",
    "UploadFailed",
    "UserAgents",
    "Waf",
    "WafBlocked",
    "WafMatch",
    "WorkerLost",
    "__version__",
    "adapters",
    "certs",
    "classify",
    "codes",
    "compat",
    "cookies",
    "copy_request",
    "delete",
    "exceptions",
    "get",
    "head",
    "hooks",
    "models",
    "options",
    "packages",
    "patch",
    "polite_order",
    "post",
    "put",
    "reference_order",
    "request",
    "session",
    "status_codes",
    "structures",
    "utils",
]

# A library leaves it to the program where its log goes.
logging.getLogger(__name__).addHandler(logging.NullHandler())
