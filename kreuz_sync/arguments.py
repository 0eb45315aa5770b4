"""Reading the session's arguments: a plain value or a setting becomes the setting, and nothing wrong gets by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import requests

from . import checks
from .auth import OriginAuth
from .retry import Retry
from .stack import Layer
from .useragent import UserAgents

Timeout = float | tuple[float | None, float | None] | None
Kind = TypeVar("Kind")


class _Unset:
    """Not given. (None is a value: no time-out, no throttle.)"""

    def __repr__(self) -> str:
        return "<default>"


UNSET: Any = _Unset()


def timeout(value: Any) -> Timeout:
    """Seconds, a pair of (connect, read) of which either may be None, or None for no time-out."""
    if value is None:
        return None
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"timeout={value!r}: a pair is (connect, read), in seconds or None")
        connect, read = (None if part is None else checks.seconds("timeout", part, above=0) for part in value)
        return connect, read
    return checks.seconds("timeout", value, above=0)


def deadline(value: Any) -> float | None:
    """Seconds for a whole call, or None for no bound."""
    return None if value is None else checks.seconds("deadline", value, above=0)


def instance(name: str, value: Any, kind: type[Kind]) -> Kind | None:
    """`value` if it is a `kind` or None."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name}={value!r}: a {kind.__name__} is wanted, or None")
    return value


def headers(value: Any) -> Mapping[str, Any]:
    """Fields for every call; None for none. requests itself says what a field may hold."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"headers: a mapping of names to values is wanted, not {type(value).__name__}")
    for name, content in value.items():
        if content is not None:
            try:
                requests.utils.check_header_validity((name, content))
            except requests.exceptions.InvalidHeader:  # its text quotes a value, which may be secret
                raise ValueError(f"headers: the field {name!r} has a name or a value that is not allowed") from None
            for part in (name, content):
                # Earlier releases of requests let a line end at the very end pass.
                if part[-1:] in ("\n", "\r", b"\n", b"\r"):
                    raise ValueError(f"headers: {name!r}: a field ends where its line does; leave the line end out")
    return value


def retry(value: Any) -> Retry | None:
    """A number of sends after the first, a `Retry`, or None; 0 is None."""
    if value is UNSET or value is None or isinstance(value, Retry):
        return None if value is UNSET else value
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"retry={value!r}: a number of retries after the first try is wanted, or a kreuz_sync.Retry")
    attempts = checks.count("retry", value)
    return Retry(attempts=attempts) if attempts else None


def cache(value: Any) -> Layer | None:
    """A folder, a `CacheStore`, a `Cache`, or None. The rooms of the cache are loaded for those who use one."""
    if value is UNSET or value is None:
        return None
    from .cache.setting import as_cache

    return as_cache(value)


def robots(value: Any) -> Layer | None:
    """True, a mode, a `Robots`, or None; False is None. The rooms of robots.txt are loaded for those who use one."""
    if value is UNSET or value is None or value is False:
        return None
    from .robots.setting import as_robots

    return as_robots(value)


def speaking_for(layers: Sequence[Any], fields: Any) -> tuple[Layer, ...]:
    """`layers`, of which that of robots.txt goes by the product in the User-Agent that a session is made with."""
    if not any(hasattr(layer, "is_robots") for layer in layers):
        return tuple(layers)
    agent = requests.structures.CaseInsensitiveDict(headers(fields)).get("User-Agent")
    return tuple(layer.speaking_for(agent) if hasattr(layer, "is_robots") else layer for layer in layers)


def breaker(value: Any) -> Layer | None:
    """True for the usual one, a `Breaker`, or None; False is None."""
    if value is UNSET or value is None or value is False:
        return None
    from .breaker.setting import Breaker

    if value is True:
        return Breaker()
    if not isinstance(value, Breaker):
        raise TypeError(f"breaker={value!r}: True is wanted, or a kreuz_sync.Breaker")
    return value


def budget(value: Any) -> Layer | None:
    """A number of requests, a `Budget`, or None."""
    if value is UNSET or value is None:
        return None
    from .budget.setting import Budget

    if isinstance(value, Budget):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"budget={value!r}: a number of requests is wanted, or a kreuz_sync.Budget")
    return Budget(checks.count("budget", value))


def rate_limits(value: Any) -> tuple[Layer, ...]:
    """`RateLimit`s, outermost first, or one alone; None for none. Their rooms are loaded for those who use one."""
    if value is UNSET or value is None:
        return ()
    from .ratelimit.keys import by_host
    from .ratelimit.setting import several

    return several(value, by_host)


def deny_private(value: Any) -> Any:
    """True, False or None, or an `AddressGuard`, of which the session has its own copy. None for no guard."""
    if value is False or value is None:
        return None
    from .ssrf import AddressGuard

    if value is True:
        return AddressGuard()
    if not isinstance(value, AddressGuard):
        raise TypeError(f"deny_private={value!r}: True or False is wanted, or a kreuz_sync.AddressGuard")
    return value.copy()


def tracing(value: Any) -> Any:
    """True for the usual one, a `Tracing`, or None; False is None. Raises ImportError without opentelemetry-api."""
    if value is UNSET or value is None or value is False:
        return None
    from .tracing import Tracing

    if value is True:
        return Tracing()
    if not isinstance(value, Tracing):
        raise TypeError(f"tracing={value!r}: True or False is wanted, or a kreuz_sync.Tracing")
    return value


def user_agents(value: Any) -> UserAgents | None:
    """A list of agents, a `UserAgents`, or None."""
    if value is UNSET or value is None or isinstance(value, UserAgents):
        return None if value is UNSET else value
    return UserAgents(value)


def origin_auth(value: Any) -> OriginAuth | None:
    """The credentials of a mapping of origins; None where `value` is requests' own kind of auth."""
    if isinstance(value, Mapping):
        return OriginAuth(value)
    return value if isinstance(value, OriginAuth) else None


def auth(value: Any) -> Any:
    """What requests takes: a pair (user, password), a callable, or None."""
    if value is None or callable(value) or (isinstance(value, tuple) and len(value) == 2):
        return value
    raise TypeError(
        f"auth: a pair (user, password), Basic, Bearer, HeaderAuth or another callable is wanted, or a mapping of"
        f" origins to these, not {type(value).__name__}"
    )


def layers(value: Any, **others: Any) -> tuple[Layer, ...]:
    """A whole stack, outermost first. `others` are arguments that belong into it."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(callable(layer) for layer in value):
        raise TypeError(f"layers={value!r}: a list of layers is wanted, outermost first")
    also = [name for name, other in others.items() if other is not UNSET and other is not None]
    if also:
        raise ValueError(f"layers= is the whole stack: put {', '.join(also)} into it instead of beside it")
    return tuple(value)
