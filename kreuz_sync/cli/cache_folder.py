"""The folder that `kreuz-sync cache` looks into: whether it is one of a cache, and its answers whoever stored them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kreuz_sync.cache import Cache, CacheEntry, Policy
from kreuz_sync.cache.kept import Kept
from kreuz_sync.cache.listing import cache_entry
from kreuz_sync.cache.store import Record
from kreuz_sync.cache.uris import canonical
from kreuz_sync.response import Response

_REDACTED = "REDACTED"  # in place of a secret in a URL


def named(folder: str) -> str:
    """The path that a cache takes `folder` for, in a shell or without one."""
    return os.path.expandvars(os.path.expanduser(folder))


def is_cache(folder: str) -> bool:
    """Whether `folder` holds a cache. Changes nothing: opening another folder would make one of it."""
    import sqlite3
    from contextlib import closing
    from urllib.request import pathname2url

    from kreuz_sync.cache.folder.connect import DATABASE

    path = os.path.join(os.path.abspath(named(folder)), DATABASE)
    if not os.path.isfile(path):
        return False
    try:
        with closing(sqlite3.connect(f"file:{pathname2url(path)}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return {"Cache", "Settings"} <= found


def can_be_made_one(folder: str) -> bool:
    """Whether nothing is at `folder`, or a folder without anything in it."""
    try:
        return not os.listdir(named(folder))
    except FileNotFoundError:
        return True
    except OSError:
        return False


def require_export(path: str) -> None:
    """Raise ValueError or OSError unless `path` is a file that `export` wrote."""
    from kreuz_sync.cache.loading import read

    next(read(path), None)


class Shown(Cache):
    """Every answer by the policy that it was stored under."""

    _RFC9111 = Policy("rfc9111")

    def _each(self, *, bodies: bool = True) -> Iterator[tuple[CacheEntry, tuple[Record, Kept]]]:
        for entry, (record, kept) in super()._each(bodies=bodies):
            stored = kept.stored
            if stored.kept_for is None and "pinned" not in stored.extra:
                by_origin = Kept(record.head, stored, self._RFC9111, stored.url)
                yield cache_entry(entry.key, by_origin, self.clock.wall()), (record, by_origin)
            else:
                yield entry, (record, kept)

    def named(self, url: str) -> list[CacheEntry]:
        """Those that a listing shows under `url`, written like that, the newest first."""
        shown = canonical(url)
        found = [entry for entry in self.entries() if entry.url == shown]
        return sorted(found, key=lambda entry: entry.stored_at, reverse=True)

    def given(self, what: str | CacheEntry) -> Response | None:
        """The stored answer, whichever policy stores it."""
        for one in (self, self._by_rfc9111()):
            if (response := one.get(what)) is not None:
                return response
        return None

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the answers of a file that `export` wrote, each by the policy that it was stored under; how many."""
        from kreuz_sync.cache.loading import admit, read

        by_time, by_origin = (self, self._tools()), self._by_rfc9111()
        others = (by_origin, by_origin._tools())
        return sum(admit(*(others if item.kept_for is None else by_time), item) for item in read(path))

    def _by_rfc9111(self) -> Cache:
        return Cache(self.store, policy=self._RFC9111, max_entry_size=None)


def is_somebodys(entry: CacheEntry) -> bool:
    """Whether it was asked for with credentials, be it in its URL."""
    return entry.for_somebody or _REDACTED in entry.url
