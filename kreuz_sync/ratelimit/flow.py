"""One request and one rate limit: the steps from the request to the decision. Both ends of the wire use it.

1. `skip(request)`: what is True here passes, and nothing below happens. Where that fails, or gives something
   else than True or False, the request is refused.
2. `key(request)`: whose request it is. Where that fails the request is refused.
3. `limit(request)`: how much is allowed. Where that fails the request is refused, and was not counted.
4. The scoped key: the policy's name and the key as one text.
5. `store.increment`: the request is counted. What follows a failure is `on_store_failure`.
6. More than the limit: the request is refused. It stays counted, as does one that then fails.

No type of request is known here: it is handed to the functions of the rate limit as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Any, NamedTuple, TypeVar

from .failures import KeyUnavailable, LimitUnavailable, RateLimitFailure, StoreUnavailable
from .outage import broken_function, place_of
from .scope import within
from .setting import RateLimit
from .store import CounterStore
from .usage import PolicyUsage, Usage

_Kind = TypeVar("_Kind", bound=RateLimitFailure)


class Outcome(Enum):
    """What becomes of a request."""

    SKIPPED = "it passes, and the limit says nothing of it"
    ALLOWED = "it passes, and its answer says what is left"
    UNCOUNTED = "it passes since the store is out: nothing is known, and nothing is said"
    LIMITED = "it is refused: its window is full"
    FAILED = "it is refused: whether there is room cannot be told"


_PASSING = frozenset({Outcome.SKIPPED, Outcome.ALLOWED, Outcome.UNCOUNTED})


class Decision(NamedTuple):
    """What becomes of a request, and why.

    policy: of an allowed or a limited one. failure: of one that was refused for it, or uncounted.
    """

    outcome: Outcome
    policy: PolicyUsage | None = None
    failure: RateLimitFailure | None = None

    @property
    def passes(self) -> bool:
        """Whether the request goes on inward."""
        return self.outcome in _PASSING

    @property
    def reason(self) -> PolicyUsage | RateLimitFailure | None:
        """What a response factory is given."""
        return self.policy if self.failure is None else self.failure


_SKIPPED = Decision(Outcome.SKIPPED)


def decide(limit: RateLimit, request: Any, default_key: Callable[[Any], str | bytes]) -> Decision:
    """Count `request` against `limit`, and say what becomes of it.

    default_key: whose request it is where the limit has no `key`. Raises nothing: an exception of a
    function is a failure of its kind.
    """
    try:
        if limit.skip is not None and _is_skipped(limit, request):
            return _SKIPPED
        key = _key(limit, request, limit.key or default_key)
        quota = limit.limit if isinstance(limit.limit, int) else _quota(limit, request)
    except (KeyUnavailable, LimitUnavailable) as failure:
        return Decision(Outcome.FAILED, failure=failure)
    try:
        used, reset_after = _increment(limit.store, key, limit.length)
    except StoreUnavailable as failure:
        limit.outage.failed(limit, failure)
        return _without_store(limit, key, quota, failure)
    if limit.outage.was_told:
        limit.outage.over(limit)
    return _compared(limit, quota, used, reset_after)


def _without_store(limit: RateLimit, key: str, quota: int, failure: StoreUnavailable) -> Decision:
    if limit.on_store_failure == "allow":
        return Decision(Outcome.UNCOUNTED, failure=failure)
    if limit.local is not None:
        try:
            return _compared(limit, quota, *_increment(limit.local, key, limit.length))
        except StoreUnavailable as also:  # full
            failure = also
    return Decision(Outcome.FAILED, failure=failure)


def _compared(limit: RateLimit, quota: int, used: int, reset_after: float) -> Decision:
    policy = PolicyUsage(limit.name, quota, limit.window, used, reset_after)
    return Decision(Outcome.LIMITED if used > quota else Outcome.ALLOWED, policy)


def _is_skipped(limit: RateLimit, request: Any) -> bool:
    is_skipped = _asked(limit, limit.skip, request, KeyUnavailable, "skip_function_failed")
    # What is only like True may be the promise of an answer, which is as true as any object.
    if is_skipped is not True and is_skipped is not False:
        raise _useless(limit, KeyUnavailable, "invalid_skip", "the skip function", is_skipped, "True or False")
    return is_skipped


def _key(limit: RateLimit, request: Any, function: Callable[[Any], str | bytes]) -> str:
    key = _asked(limit, function, request, KeyUnavailable, "key_function_failed")
    if not isinstance(key, (str, bytes)):
        raise _useless(limit, KeyUnavailable, "invalid_key", "the key function", key, "a string")
    if limit.key_encoder is None:
        return within(limit.prefix, key)
    scoped = _asked(limit, limit.scoped, key, KeyUnavailable, "key_encoder_failed")
    if not isinstance(scoped, str):
        raise _useless(limit, KeyUnavailable, "invalid_key", "the key encoder", scoped, "a string")
    return scoped


def _quota(limit: RateLimit, request: Any) -> int:
    quota = _asked(limit, limit.limit, request, LimitUnavailable, "limit_function_failed")
    if isinstance(quota, bool) or not isinstance(quota, int) or quota < 0:
        raise _useless(
            limit, LimitUnavailable, "invalid_limit", "the limit function", quota, "a whole number, 0 or more"
        )
    return quota


def _increment(store: CounterStore, key: str, window: float) -> Usage:
    try:
        usage = store.increment(key, window)
    except StoreUnavailable:
        raise
    except Exception as error:  # a store of a user's own, whose library has errors of its own
        raise StoreUnavailable("store_error", f"the store raised {type(error).__name__}") from error
    if not _is_usage(usage):
        raise StoreUnavailable("invalid_usage", "the store gave no count of 1 or more and seconds to go")
    return usage


def _is_usage(usage: Any) -> bool:
    if not isinstance(usage, tuple) or len(usage) != 2:
        return False
    used, reset_after = usage
    is_count = isinstance(used, int) and used > 0 and used is not True
    return is_count and isinstance(reset_after, (int, float)) and 0 <= reset_after < inf


def _asked(limit: RateLimit, function: Any, argument: Any, kind: type[_Kind], code: str) -> Any:
    """What a user's function gives; whatever it raises is a failure of this `kind`, never one of another."""
    try:
        return function(argument)
    except kind:  # it has seen to the case itself, and there is nothing to tell
        raise
    except Exception as error:
        broken_function(limit, code, f"{type(error).__name__}{place_of(error)}")
        raise kind(code, f"it raised {type(error).__name__}") from error


def _useless(limit: RateLimit, kind: type[_Kind], code: str, who: str, given: object, wanted: str) -> _Kind:
    """The failure that follows from something `given` that a function may not give. Only its type is told."""
    what = f"{who} gave {type(given).__name__}, and not {wanted}"
    broken_function(limit, code, what)
    return kind(code, what)
