"""diskcache, made plain: its folder, tables and counters, without its pickles, its waits and its own eviction.

Uses protected parts of diskcache 5 (`Cache._con`, `Cache._transact`); setup.cfg allows 5.4 and later, but not 6.
`diskcache.Cache(folder)` opens such a folder too, and its `check()` finds it in order.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .connect import PRAGMAS

# What diskcache keeps in its table Settings, and obeys when anybody opens the folder with it. Its own limit (1 GiB
# unless told otherwise) and eviction are off: statements.py evicts.
SETTINGS: dict[str, str | int] = {
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "none",
    "size_limit": 2**62,
    "cull_limit": 0,
    **{f"sqlite_{name}": PRAGMAS[name] for name in ("auto_vacuum", "cache_size", "journal_mode", "mmap_size")},
    "sqlite_synchronous": PRAGMAS["synchronous"],
    "disk_min_file_size": 2**15,
    "disk_pickle_protocol": 0,
}
_COUNTERS = ("count", "size", "hits", "misses")

# Names of body files, ours and diskcache's own. Anything else in a row's column is neither opened nor removed.
BODY_NAME = re.compile(r"[0-9a-f]{2}/([0-9a-f]{30}|[0-9a-f]{2}/[0-9a-f]{28})\.val")

# Under the names of diskcache, which makes what it does not find by name.
_OURS = {
    # Its own is over all rows, and every write adds to it. Nothing of ours expires.
    "Cache_expire_time": "CREATE INDEX Cache_expire_time ON Cache (expire_time) WHERE expire_time IS NOT NULL",
    # Its own acts on every update, and most of ours change access_time alone.
    "Settings_size_update": "CREATE TRIGGER Settings_size_update AFTER UPDATE OF size ON Cache FOR EACH ROW BEGIN"
    " UPDATE Settings SET value = value + NEW.size - OLD.size WHERE key = 'size'; END",
    "Cache_access_time": "CREATE INDEX Cache_access_time ON Cache (access_time)",
    "Cache_filename": "CREATE INDEX Cache_filename ON Cache (filename) WHERE filename IS NOT NULL",
}


def open_cache(folder: str, connection: sqlite3.Connection) -> Any:
    """A `diskcache.Cache` on `connection`, its tables made and its settings ours, all in one transaction."""
    # With the lock in hand none of diskcache's own waits for it, of 60 seconds each, comes about.
    connection.execute("BEGIN IMMEDIATE")
    try:
        _drop_foreign_settings(connection)
        cache = _plain_cache()(folder, connection)
        _put_ours(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    return cache


def _drop_foreign_settings(connection: sqlite3.Connection) -> None:
    """Whatever lies in the table Settings becomes an attribute of the cache, an argument or a pragma."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchall():
        known = (*SETTINGS, *_COUNTERS)
        places = ", ".join("?" * len(known))
        connection.execute(f"DELETE FROM Settings WHERE key NOT IN ({places})", known)


def _put_ours(connection: sqlite3.Connection) -> None:
    there = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
    for name, statement in _OURS.items():
        if there.get(name) != statement:
            kind = statement.split()[1]
            connection.execute(f"DROP {kind} IF EXISTS {name}")
            connection.execute(statement)


@lru_cache(maxsize=1)
def _plain_cache() -> Any:
    import diskcache

    class PlainDisk(diskcache.Disk):  # type: ignore[misc]
        """Names and removes body files. Whatever diskcache would pickle, or unpickle, is refused."""

        def put(self, key: object) -> tuple[str, bool]:
            if type(key) is not str:
                raise TypeError(f"{key!r}: keys are strings")
            return key, True

        def get(self, key: object, raw: object) -> str:
            if type(key) is not str or not raw:
                raise TypeError("a key that is no string is not ours")
            return key

        def store(self, *_: object, **__: object) -> None:
            raise TypeError("values are written by the store itself")

        def fetch(self, *_: object, **__: object) -> None:
            raise TypeError("values are read by the store itself")

        def filename(self, *_: object) -> tuple[str, str]:
            # One level of 256 folders, not diskcache's two of 65,536: there each file would be alone in its own.
            name = os.urandom(16).hex()
            name = f"{name[:2]}/{name[2:]}.val"
            return name, os.path.join(self._directory, name)

        def remove(self, name: object) -> None:
            if isinstance(name, str) and BODY_NAME.fullmatch(name):
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(self._directory, name))

    class PlainCache(diskcache.Cache):  # type: ignore[misc]
        """On the one connection it is given, which is somebody else's to close."""

        def __init__(self, folder: str, connection: sqlite3.Connection) -> None:
            self._connection = connection
            super().__init__(folder, disk=PlainDisk, **SETTINGS)

        @property
        def _con(self) -> sqlite3.Connection:
            return self._connection

        def close(self) -> None:
            pass

        def undo_left(self) -> None:
            """Roll back what an interrupt left open, which nobody could commit any more."""
            self._txn_id = None
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

        @contextlib.contextmanager
        def changing(self) -> Iterator[Any]:
            """A transaction: a function to execute SQL, and one to name files to remove once it is committed."""
            try:
                with self._transact() as tools:
                    yield tools
            except diskcache.Timeout as error:
                # diskcache calls every failure to begin that, though the disk may be full or the folder read-only.
                raise error.__context__ or sqlite3.OperationalError("database is locked") from None

    return PlainCache
