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
    BadGateway,
    BodyTimeout,
    BodyTooLarge,
    ClientError,
    ConnectionFailed,
    ConnectionRefused,
    DataLoss,
    DeadlineExceeded,
    DnsError,
    Forbidden,
    Gone,
    KreuzError,
    NotFound,
    ProtocolViolation,
    ProxyError,
    RateLimited,
    RequestTimeout,
    RetriesExhausted,
    ServerError,
    SessionClosed,
    SslError,
    StatusError,
    ThrottleTimeout,
    Unauthorized,
    UndecodableBody,
    WafBlocked,
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
    from .cache import Cache, CacheStore, DiskStore, MemoryStore

# Loaded when they are asked for: a program without a cache does not pay for one.
_OF_THE_CACHE = ("Cache", "CacheStore", "DiskStore", "MemoryStore")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_CACHE:
        from . import cache

        return getattr(cache, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_THE_CACHE})


__all__ = [
    "BadGateway",
    "Basic",
    "Bearer",
    "BodyTimeout",
    "BodyTooLarge",
    "Cache",
    "CacheStore",
    "ClientError",
    "ConnectTimeout",
    "ConnectionError",
    "ConnectionFailed",
    "ConnectionRefused",
    "DataLoss",
    "DeadlineExceeded",
    "DiskStore",
    "DnsError",
    "Forbidden",
    "Gone",
    "HTTPError",
    "HeaderAuth",
    "JSONDecodeError",
    "KreuzError",
    "LayerAdapter",
    "MemoryStore",
    "NotFound",
    "PreparedRequest",
    "ProtocolViolation",
    "ProxyError",
    "RateLimited",
    "RateLimiter",
    "ReadTimeout",
    "Request",
    "RequestException",
    "RequestTimeout",
    "Response",
    "RetriesExhausted",
    "Retry",
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
    "URLRequired",
    "Unauthorized",
    "UndecodableBody",
    "UserAgents",
    "Waf",
    "WafBlocked",
    "WafMatch",
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
