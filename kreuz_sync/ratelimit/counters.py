"""The counters in one folder, as long as it is open: a diskcache database of which we write the rows.

The table Cache is diskcache's, and `diskcache.Cache(folder)` opens it too. Each key has one row,
of which we use these columns; nothing pickled is put there, and nothing there is unpickled:

    key, raw       the scoped key, as text, and 1
    mode, value    1 ("as it is"), and the number of hits
    tag            the start of the machine in which the window was measured
    access_time    its end by the monotonic clock of that start
    expire_time    its end by the wall clock
    store_time     its length in seconds

See spans.py for what decides when a window is over.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kreuz_sync.cache.folder.connect import DATABASE, connect, is_locked
from kreuz_sync.cache.folder.layout import open_cache
from kreuz_sync.clock import SYSTEM_CLOCK, Clock, Pause

from .failures import StoreUnavailable
from .spans import Now, Span, as_of, begin, time_left
from .usage import Usage

_SWEPT_AT_ONCE = 3  # rows looked at in each of two orders, where a window begins: more than the one that it adds
_MOST = 2**53

_ROW = "SELECT rowid, value, tag, access_time, expire_time, store_time FROM Cache"
_FIND = f"{_ROW} WHERE key = ? AND raw = 1"
_FIRST_BY_END = f"{_ROW} WHERE access_time <= ? ORDER BY access_time LIMIT {_SWEPT_AT_ONCE}"
_FIRST_BY_WALL_END = f"{_ROW} WHERE expire_time <= ? ORDER BY expire_time LIMIT {_SWEPT_AT_ONCE}"
_COUNT = "UPDATE Cache SET value = ? WHERE rowid = ?"
_PLACE = (
    "UPDATE Cache SET value = ?, tag = ?, access_time = ?, expire_time = ?, store_time = ?, mode = 1 WHERE rowid = ?"
)
_INSERT = (
    "INSERT INTO Cache (value, tag, access_time, expire_time, store_time, mode, size, key, raw)"
    " VALUES (?, ?, ?, ?, ?, 1, 0, ?, 1)"
)
_DELETE = "DELETE FROM Cache WHERE rowid = ?"


class Counters:
    """For one thread at a time. clock: what windows are measured by. wait: seconds for other processes, in opening."""

    def __init__(self, folder: str, clock: Clock, wait: float) -> None:
        self._clock = clock
        self._boot = boot()
        for path in (os.path.dirname(folder), folder):  # the mode is that of the last one it makes
            os.makedirs(path, 0o700, exist_ok=True)
        self._database = os.path.join(folder, DATABASE)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(self._database, os.O_RDWR | os.O_CREAT, 0o600))
        self._identity = _identity(self._database)
        self._connection = connect(self._database, wait)
        try:
            open_cache(folder, self._connection)
            # SQLite would look again after longer and longer times, up to 0.1 s, while others come and go.
            self._connection.execute("PRAGMA busy_timeout = 0").fetchall()
        except BaseException:
            self.close()
            raise
        self._do = self._connection.execute

    def is_there(self) -> bool:
        """Whether the folder still has the database that is open here."""
        with suppress(OSError):
            return _identity(self._database) == self._identity
        return False

    def hit(self, key: str | bytes, window: float, until: float) -> Usage:
        """Count one hit of `key`, once or, if it raises, not at all.

        until: when to give up waiting for other processes, by the machine's monotonic clock.
        """
        with self._transaction(until):
            now = Now(self._boot, self._clock.monotonic(), self._clock.wall())  # later than any before it
            for row in self._do(_FIND, (key,)).fetchall():
                counted = _read(row)
                if counted is None:
                    return self._begin(window, now, rowid=row[0])
                used, span = counted
                current = as_of(span, now)
                left = time_left(current, now)
                if left <= 0:
                    return self._begin(window, now, rowid=row[0])
                used = min(used + 1, _MOST)
                if current is span:
                    self._do(_COUNT, (used, row[0]))
                else:
                    self._do(_PLACE, (used, *current, row[0]))
                return Usage(used, left)
            return self._begin(window, now, key=key)

    def _begin(self, window: float, now: Now, *, rowid: int = 0, key: str | bytes | None = None) -> Usage:
        """Begin a window in the row `rowid`, or in a new one for `key`."""
        span = begin(window, now)
        if span is None:
            raise StoreUnavailable("disk_store_error", "this clock cannot count such a window", "invalid_window")
        if key is None:
            self._do(_PLACE, (1, *span, rowid))
        else:
            self._do(_INSERT, (1, *span, key))
        self._sweep(now)
        return Usage(1, time_left(span, now))

    def _sweep(self, now: Now) -> None:
        """Drop a few rows whose windows are over.

        Those of this start of the machine come in the order of the one clock, those of earlier
        ones in that of the other.
        """
        rows = {row[0]: row for row in self._do(_FIRST_BY_END, (now.monotonic,)).fetchall()}
        rows.update((row[0], row) for row in self._do(_FIRST_BY_WALL_END, (now.wall,)).fetchall())
        for rowid, row in rows.items():
            used, span = _read(row) or (0, None)
            current = as_of(span, now) if span else None
            if current is None or time_left(current, now) <= 0:
                self._do(_DELETE, (rowid,))
            elif current is not span:
                self._do(_PLACE, (used, *current, rowid))

    @contextmanager
    def _transaction(self, until: float = 0.0) -> Iterator[None]:
        self._take_lock(until)
        try:
            yield
            self._do("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._do("ROLLBACK")
            raise

    def _take_lock(self, until: float) -> None:
        while True:
            try:
                self._do("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_locked(error) or SYSTEM_CLOCK.monotonic() > until:
                    raise
            # A hit takes a fraction of that. At random, so that nobody comes too late every time.
            Pause().sleep(random.uniform(0.0002, 0.002))

    def close(self) -> None:
        """Release the files."""
        with suppress(sqlite3.Error):
            self._connection.close()


def boot() -> str:
    """A text that is the same until the machine starts anew; "" where there is none to be had."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""


def _read(row: tuple[object, ...]) -> tuple[int, Span] | None:
    """Hits and window in a row; None for one that is damaged or not ours."""
    _, used, tag, end, wall_end, length = row
    if type(used) is not int or used < 1 or not isinstance(tag, str):
        return None
    if not isinstance(end, float) or not isinstance(wall_end, float) or not isinstance(length, float):
        return None
    return used, Span(tag, end, wall_end, length)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
