"""The setting of layer 4: what is cached, where, and for how long."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.settings import Shared

from .handling import Handling
from .keys import IGNORED_COOKIES, Keys
from .layer import CacheAdapter
from .local import holding, wishes_here
from .patterns import Pattern, checked_fields, checked_names
from .policy import NO_WISHES, Policy, Seconds, Wishes, in_seconds
from .rule import StoreIf
from .store import CacheStore
from .workings import Workings

MAX_ENTRIES = 10_000
MAX_ENTRY_SIZE = 2**30
TTL_S = 3600.0

Collapse = bool | Literal["processes"]
KeyFunction = Callable[[requests.PreparedRequest], str | None]


class Cache(Handling, Shared):
    """Keeps answers and gives them out again. Called with an adapter, it makes the layer.

    where: a folder, which several sessions and processes may share, or a `CacheStore`.

    policy: "ttl" keeps every whole 2xx answer to GET (and 301 and 308) for `ttl` seconds whatever
    the origin says about freshness, and validates it then; `no-store` is obeyed. "rfc9111" does
    what the origin says. A `Policy` has more to set. ttl: seconds, or a `timedelta`; 0 for ever.
    ttl_by_url: the same by URL pattern (`"example.com/news/*"`, or a compiled regular expression),
    the first that matches counts; None stores nothing there. stale_if_error: seconds after its end
    for which a stored answer may stand in for a network failure or a 500, 502, 503 or 504.

    max_entries: answers kept in the folder, the least recently used go first; 0 for any number.
    max_bytes: of all of them together, None for any size. max_entry_size: bytes of a body on the
    wire; a larger one passes through. store_if: asked with the request and the response (of which a
    stream has not been read yet) before an answer is stored; where it raises, that is logged, and
    the answer not stored.

    ignored_parameters: names of query parameters that make no difference, and whose values are not
    kept (`*` stands for anything: "utm_*"). key: a function of the request whose text takes the
    place of the URL in the key; None for a request that has nothing to do with the cache.
    identity_fields: names of request fields that say who asks, besides Authorization, Cookie and
    those whose names say so. ignored_cookies: names of cookies that do not say who asks. What one
    user was answered is never given to another.

    store_parts: under "rfc9111", store answers to range requests too, and put parts of one version
    together; otherwise a range is answered from a stored whole alone.

    always_revalidate: ask the origin before every use. offline: answer from the store alone, stale
    or not, and with 504 what is not there. post: store answers to POST too, by their body; a POST
    then makes nothing invalid. collapse: equal requests of several threads at the same moment make
    one; "processes": also those of processes that share the folder; False: none do.

    What a request's own fields ask for (`Cache-Control: no-cache`, `no-store`, `only-if-cached`,
    `max-stale`, ...) always acts. One `Cache` may serve several sessions and threads. A copy is the
    same cache; a pickle carries the settings, opens the same folder, and begins its counts anew.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = (
        *("store", "policy", "max_entry_size", "ignored_parameters", "identity_fields", "ignored_cookies"),
        *("always_revalidate", "offline", "post", "collapse", "store_if", "key"),
    )

    is_cache = True  # how a session finds it among its layers without loading this
    store: CacheStore
    policy: Policy
    max_entry_size: int | None
    store_if: StoreIf | None
    ignored_parameters: tuple[str, ...]
    identity_fields: tuple[str, ...]
    ignored_cookies: tuple[str, ...]
    key: KeyFunction | None
    always_revalidate: bool
    offline: bool
    post: bool
    collapse: Collapse
    clock: Clock
    workings: Workings
    _wishes: Wishes

    def __init__(
        self,
        where: str | os.PathLike[str] | CacheStore,
        *,
        ttl: Seconds | None = None,
        policy: str | Policy = "ttl",
        max_entries: int | None = None,
        max_bytes: int | None = None,
        max_entry_size: int | None = MAX_ENTRY_SIZE,
        ttl_by_url: Mapping[Pattern, Seconds | None] | None = None,
        store_if: StoreIf | None = None,
        ignored_parameters: Iterable[str] = (),
        identity_fields: Iterable[str] = (),
        ignored_cookies: Iterable[str] = IGNORED_COOKIES,
        key: KeyFunction | None = None,
        stale_if_error: Seconds | None = None,
        store_parts: bool = False,
        always_revalidate: bool = False,
        offline: bool = False,
        post: bool = False,
        collapse: Collapse = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        store = _store(where, max_entries, max_bytes)
        self._fix(
            store=store,
            policy=_policy(policy, ttl, ttl_by_url, stale_if_error, store_parts),
            max_entry_size=None if max_entry_size is None else checks.count("max_entry_size", max_entry_size),
            store_if=_function("store_if", store_if),
            ignored_parameters=checked_names("ignored_parameters", ignored_parameters, of="parameter", never="&="),
            identity_fields=checked_fields("identity_fields", identity_fields),
            ignored_cookies=checked_names("ignored_cookies", ignored_cookies, of="cookie", never=";="),
            key=_function("key", key),
            always_revalidate=checks.flag("always_revalidate", always_revalidate),
            offline=checks.flag("offline", offline),
            post=checks.flag("post", post),
            collapse=_collapse(collapse, store),
            clock=clock,
        )
        self._make_ready()

    def _make_ready(self) -> None:
        """What is not a setting: made anew when unpickled."""
        wishes = Wishes(self.always_revalidate, self.offline)
        # The one object that stands for "nothing special" is recognised by its identity.
        self._fix(
            _wishes=NO_WISHES if wishes == NO_WISHES else wishes,
            workings=Workings(self.store, self.policy, self._keys, self.clock, self.store_if),
        )

    def _keys(self, secret: bytes) -> Keys:
        return Keys(
            secret,
            ignored_query=self.ignored_parameters,
            identity_fields=self.identity_fields,
            ignored_cookies=self.ignored_cookies,
        )

    def text_for(self, request: requests.PreparedRequest) -> str | None:
        """What `key` says of `request`, which must be there. Raises TypeError for what is no text."""
        assert self.key is not None
        text = self.key(request)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"key=... returned a {type(text).__name__}: a text is wanted, or None")
        return text

    def __call__(self, inner: BaseAdapter) -> CacheAdapter:
        return CacheAdapter(self, inner)

    # --- for this context alone -------------------------------------------------------------

    def disabled(self) -> AbstractContextManager[None]:
        """A `with` block in which requests pass by this cache, and neither read nor change what is stored.

        Only those of this thread (or task): others go on using it meanwhile.
        """
        return holding(self, None)

    def using(
        self,
        *,
        always_revalidate: bool | None = None,
        offline: bool | None = None,
        stale_if_error: Seconds | None = None,
    ) -> AbstractContextManager[None]:
        """A `with` block in which these differ, on this thread (or in this task) alone. None changes nothing."""
        wishes = self.wishes_here() or self._wishes
        if always_revalidate is not None:
            wishes = wishes._replace(always_revalidate=checks.flag("always_revalidate", always_revalidate))
        if offline is not None:
            wishes = wishes._replace(offline=checks.flag("offline", offline))
        if stale_if_error is not None:
            wishes = wishes._replace(stale_if_error=in_seconds("stale_if_error", stale_if_error))
        return holding(self, NO_WISHES if wishes == NO_WISHES else wishes)

    def wishes_here(self) -> Wishes | None:
        """What is wanted of this cache in this context; None if it is switched off."""
        return wishes_here(self, self._wishes)

    # --- copies -----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*self.fields, "clock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._fix(**state)
        self._make_ready()


def as_cache(value: Any) -> Cache | None:
    """The cache that `Session(cache=value)` stands for: a folder or a store with default settings, None is none."""
    if value is None or isinstance(value, Cache):
        return value
    if isinstance(value, (str, os.PathLike, CacheStore)):
        return Cache(value)
    raise TypeError(f"cache={value!r}: the path of a folder, a Cache, a CacheStore or None is wanted")


def _store(where: Any, max_entries: int | None, max_bytes: int | None) -> CacheStore:
    if isinstance(where, CacheStore):
        if max_entries is not None or max_bytes is not None:
            raise ValueError(f"max_entries and max_bytes are for a folder: give them to {type(where).__name__} instead")
        return where
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(f"where={where!r}: the path of a folder or a CacheStore is wanted")
    from .disk import DiskStore

    return DiskStore(where, max_entries=MAX_ENTRIES if max_entries is None else max_entries, max_bytes=max_bytes)


def _collapse(value: Any, store: CacheStore) -> Collapse:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise TypeError(f'collapse={value!r}: True, False or "processes" is wanted')
    if value != "processes":
        raise ValueError(f'collapse={value!r}: True, False or "processes" is wanted')
    if not store.has_leads:
        raise ValueError(
            f'collapse="processes" is for a folder: a {type(store).__name__} does not tell one process of another'
        )
    return "processes"


def _policy(
    policy: Any, ttl: Seconds | None, ttl_by_url: Any, stale_if_error: Seconds | None, store_parts: bool
) -> Policy:
    if isinstance(policy, Policy):
        given = {"ttl": ttl, "ttl_by_url": ttl_by_url, "stale_if_error": stale_if_error}
        given["store_parts"] = checks.flag("store_parts", store_parts) or None
        besides = [name for name, value in given.items() if value is not None]
        if besides:
            raise ValueError(f"policy= is a whole Policy: put {', '.join(besides)} into it instead of beside it")
        return policy
    if not isinstance(policy, str):
        raise TypeError(f"policy={policy!r}: 'ttl', 'rfc9111' or a Policy is wanted")
    if policy == "rfc9111" and (ttl is not None or ttl_by_url is not None):
        raise ValueError(
            'policy="rfc9111" keeps an answer as long as its origin says: ttl and ttl_by_url are for "ttl"'
        )
    return Policy(
        policy,
        ttl=TTL_S if ttl is None else ttl,
        ttl_by_url=ttl_by_url,
        stale_if_error=0.0 if stale_if_error is None else stale_if_error,
        store_parts=store_parts,
    )


def _function(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{name}={value!r}: a function is wanted, or None")
    return value
