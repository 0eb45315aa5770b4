"""The setting of a rate limit: what is limited, for whom, to how much, and what follows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Shared

from . import scope
from .memory import MemoryStore
from .outage import Outage
from .store import CounterStore

if TYPE_CHECKING:
    from .layer import RateLimitAdapter

DEFAULT_NAME = "default-policy"
SHORTEST_WINDOW_S = 0.001
MOST = 2**64 - 1  # as in tower-rate-limiter; the fields say no more than 15 digits of it
MARGIN, LONGEST_MARGIN_S = 0.05, 0.5  # of a window that is waited for: that part of it, and seconds
_KEYS = {
    "session": "by_host, by_origin, by_path(...), by_credential(...), or a function of the request",
    "server": "PeerAddress(), TrustedProxies(...), by_header(...), by_path(...), or a function of the environ",
}
LONGEST_WINDOW_S = 999_999_999_999_999  # what an Integer of structured fields can say (RFC 9651, section 3.3.1)


class RateLimit(Shared):
    """At most `limit` requests with one key in a window of `window` seconds.

    It serves both ends of the wire. `Session(rate_limits=[...])` takes it as a layer (called with
    an adapter, it makes one), and `ratelimit.wsgi.RateLimitMiddleware` limits a server's callers
    with it. A *request* below is what the end at hand has: a `requests.PreparedRequest` there, a
    WSGI environ here.

    A window is fixed, and begins with a key's first request: it is not aligned to the clock. So up to
    twice the limit can pass within one length of a window, half of it just before a window ends
    and half just after the next has begun; where that is too much, a second limit with a shorter
    window bounds the burst. A request counts before it is sent and whatever comes of it, a
    rejected one too, though no request moves the end of a window.

    name: the policy's, part of the key; rate limits with the same name and the same store share
    their counters, whatever their windows. limit: a whole number below 2**64, 0 to let nothing through,
    or a function from the request to one. window: seconds, at least 0.001. key: a function from the
    request to a text (or bytes) that says whose it is; None for the end's own, the host of the
    URL or the address of the peer. store: where to count; None for a `MemoryStore` of its own.
    skip: a function from the request to True for one that passes without being counted, and to False
    for any other; anything else is a failure, and refused. key_encoder: a function from a scoped key to the
    text that the store is given; by default it is taken as it is, a long or non-ASCII one as a digest (see
    `scope.py`); `digest(secret)` makes one of every key, for stores that others can read.

    on_store_failure: where the store fails, "reject" refuses the request, "allow" lets it through
    uncounted, and "local" counts it in this process, from 0 on, until the store is back. fields: what an
    answer says of the limit: the RateLimit fields of "draft-11" or "draft-7", or "none".
    log_level: of the first record of a store's outage. response: a function (request, reason) to
    an answer of one's own for a refused request, a new one each time: a `requests.Response` here, see
    the middleware there. The reason is a `PolicyUsage` for a request over the limit, or a `RateLimitFailure`.

    For sessions only: on_limit: over the limit, "answer" with a 429 of our own, "raise"
    RateLimitExceeded, or "wait" for the next window. max_wait: seconds that a request waits
    then at most; where it would be more, RateLimitExceeded is raised before waiting. margin: seconds that
    a window lasts longer than `window`: the server's begins when a request arrives, which is after it was
    counted here, and who came at the end of ours would come too early for it. None for a twentieth of the
    window, half a second at most, where requests wait for it, and else for 0. clock: where time comes from.

    A copy is the same limit. A pickle carries the settings; what it says of a store is the store's.
    Raises TypeError or ValueError, naming the argument.
    """

    is_rate_limit = True  # a session finds it among its layers by this, without loading these rooms

    # As keyword arguments; `fields` of the base class is here the keyword of that name.
    _names = (
        *("name", "limit", "window", "key", "store", "response", "skip", "key_encoder", "on_store_failure"),
        *("fields", "log_level", "on_limit", "max_wait", "margin"),
    )

    name: str
    limit: int | Callable[[Any], int]
    window: float
    key: Callable[[Any], str | bytes] | None
    store: CounterStore
    response: Callable[[Any, Any], Any] | None
    skip: Callable[[Any], bool] | None
    key_encoder: Callable[[str], str] | None
    on_store_failure: str
    fields: str  # type: ignore[assignment]
    log_level: int
    on_limit: str
    max_wait: float | None
    margin: float
    clock: Clock
    length: float  # of its windows, with their margin
    prefix: str  # of its scoped keys
    local: CounterStore | None  # counts while the store is out
    outage: Outage  # state; all the others are fixed

    def __init__(
        self,
        name: str = DEFAULT_NAME,
        *,
        limit: int | Callable[[Any], int] = 1,
        window: float = 60.0,
        key: Callable[[Any], str | bytes] | None = None,
        store: CounterStore | None = None,
        response: Callable[[Any, Any], Any] | None = None,
        skip: Callable[[Any], bool] | None = None,
        key_encoder: Callable[[str], str] | None = None,
        on_store_failure: str = "reject",
        fields: str = "draft-11",
        log_level: int = logging.WARNING,
        on_limit: str = "answer",
        max_wait: float | None = None,
        margin: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        checks.one_of("fields", fields, ("draft-11", "draft-7", "none"))
        checks.clock("clock", clock)
        self._fix(
            name=_name(name, shown=fields != "none"),
            limit=limit if callable(limit) else checks.count("limit", limit, most=MOST),
            window=_window(window),
            key=_function("key", key),
            store=MemoryStore(clock=clock) if store is None else _store(store, key),
            response=_function("response", response),
            skip=_function("skip", skip),
            key_encoder=_function("key_encoder", key_encoder),
            on_store_failure=checks.one_of("on_store_failure", on_store_failure, ("reject", "allow", "local")),
            fields=fields,
            log_level=checks.count("log_level", log_level),
            on_limit=checks.one_of("on_limit", on_limit, ("answer", "wait", "raise")),
            max_wait=_max_wait(max_wait, on_limit),
            clock=clock,
            prefix=scope.prefix(name),
            local=MemoryStore(clock=clock) if on_store_failure == "local" else None,
            outage=Outage(),
        )
        margin = _margin(self.window, on_limit) if margin is None else checks.seconds("margin", margin)
        self._fix(margin=margin, length=_window(self.window + margin) if margin else self.window)

    def __call__(self, inner: BaseAdapter) -> RateLimitAdapter:
        from .layer import RateLimitAdapter  # a server does without

        self.require_key_for("session")
        return RateLimitAdapter(self, inner)

    def scoped(self, key: str | bytes) -> str:
        """What the store counts `key` under."""
        if self.key_encoder is None:
            return scope.within(self.prefix, key)
        if isinstance(key, bytes):  # as a digest: no text that an encoder could be given equals bytes
            return self.key_encoder(scope.within(self.prefix, key))
        return self.key_encoder(self.prefix + scope.escape(key))

    def require_key_for(self, end: str) -> None:
        """Raise TypeError for a key that reads the requests of the other end: a "session" has this, or a "server"."""
        made_for = getattr(self.key, "end_of_wire", None)
        if made_for not in (None, end):
            shown = getattr(self.key, "__name__", None) or repr(self.key)
            raise TypeError(f"key={shown}: it reads requests of a {made_for}; a {end} has {_KEYS[end]}")

    # --- copies -------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        RateLimit.__init__(self, **state)

    def __repr__(self) -> str:
        return f"RateLimit({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names)})"


def several(value: Any, default_key: Callable[[Any], str | bytes]) -> tuple[RateLimit, ...]:
    """The rate limits that `Session(rate_limits=value)` stands for: several, outermost first, or one alone.

    default_key: whose request it is where a limit has no `key`. Raises TypeError or ValueError for anything else,
    and for two that count the same things in the same place.
    """
    limits = (value,) if isinstance(value, RateLimit) else value
    if not isinstance(limits, Sequence) or not all(isinstance(limit, RateLimit) for limit in limits):
        raise TypeError(f"rate_limits={value!r}: a list of RateLimit is wanted, outermost first, or one of them")
    counters = [(limit.name, id(limit.store), limit.key or default_key, limit.key_encoder) for limit in limits]
    for limit, counter in zip(limits, counters, strict=True):
        if counters.count(counter) > 1:
            raise ValueError(
                f"rate_limits: two are called {limit.name!r} and have one store and one key, so that each request "
                "would count twice; give them names of their own"
            )
    return tuple(limits)


def _name(value: Any, *, shown: bool) -> str:
    name = checks.text("name", value)
    if shown and not (name.isascii() and name.isprintable()):
        raise ValueError(
            f"name={value!r}: it stands in the RateLimit fields, which hold printable ASCII; or use fields='none'"
        )
    return name


def _window(value: Any) -> float:
    window = checks.seconds("window", value, least=SHORTEST_WINDOW_S)
    if window > LONGEST_WINDOW_S:
        raise ValueError(f"window={value!r}: seconds are wanted, {LONGEST_WINDOW_S} at most")
    return window


def _store(value: Any, key: Any) -> CounterStore:
    if not isinstance(value, CounterStore):
        raise TypeError(
            f"store={value!r}: a kreuz_sync.ratelimit.CounterStore is wanted, such as ratelimit.MemoryStore, "
            "ratelimit.DiskStore or ratelimit.RedisStore"
        )
    if value.is_shared and getattr(key, "is_of_this_process", False):
        raise ValueError(
            f"key={key!r}: its fingerprints are other ones in every process, and the store is shared; give it a secret="
        )
    return value


def _margin(window: float, on_limit: str) -> float:
    return min(window * MARGIN, LONGEST_MARGIN_S, LONGEST_WINDOW_S - window) if on_limit == "wait" else 0.0


def _max_wait(value: Any, on_limit: str) -> float | None:
    if value is None:
        return None
    if on_limit != "wait":
        raise ValueError(f"max_wait={value!r}: only on_limit='wait' waits, and this is on_limit={on_limit!r}")
    return checks.seconds("max_wait", value)


def _function(name: str, value: Any) -> Any:
    return None if value is None else checks.function(name, value)
