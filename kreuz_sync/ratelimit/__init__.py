"""Layer 6: keyed rate limits, for a session and for WSGI servers.

`RateLimit` says what is limited: `Session(rate_limits=[...])` takes it as it is, and
`RateLimitMiddleware` makes the same limit of a server. The names are loaded when they are
asked for: a session without rate limits pays for none of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .addresses import PeerAddress, TrustedProxies
    from .digests import digest
    from .disk import DiskStore
    from .failures import KeyUnavailable, LimitUnavailable, RateLimitFailure, StoreUnavailable
    from .header import by_header
    from .keys import by_credential, by_host, by_origin, by_path
    from .memory import MemoryStore
    from .redis import RedisStore
    from .setting import RateLimit
    from .store import CounterStore
    from .usage import PolicyUsage, RateLimitContext, Usage
    from .wsgi import RateLimitMiddleware

# Where each name of this page is at home.
_HOMES = {
    "CounterStore": "store",
    "DiskStore": "disk",
    "KeyUnavailable": "failures",
    "LimitUnavailable": "failures",
    "MemoryStore": "memory",
    "PeerAddress": "addresses",
    "PolicyUsage": "usage",
    "RateLimit": "setting",
    "RateLimitContext": "usage",
    "RateLimitFailure": "failures",
    "RateLimitMiddleware": "wsgi",
    "RedisStore": "redis",
    "StoreUnavailable": "failures",
    "TrustedProxies": "addresses",
    "Usage": "usage",
    "by_credential": "keys",
    "by_header": "header",
    "by_host": "keys",
    "by_origin": "keys",
    "by_path": "keys",
    "digest": "digests",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "CounterStore",
    "DiskStore",
    "KeyUnavailable",
    "LimitUnavailable",
    "MemoryStore",
    "PeerAddress",
    "PolicyUsage",
    "RateLimit",
    "RateLimitContext",
    "RateLimitFailure",
    "RateLimitMiddleware",
    "RedisStore",
    "StoreUnavailable",
    "TrustedProxies",
    "Usage",
    "by_credential",
    "by_header",
    "by_host",
    "by_origin",
    "by_path",
    "digest",
]
