"""How a folder's database is changed: one thread at a time, in transactions that other processes notice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kreuz_sync.cache.store import StoreTrouble

from .change import Change
from .marks import Marks
from .uses import Uses


class Writer:
    """The connection to write with. wait: seconds for the lock between threads, and for that between processes.

    cache: a diskcache on that connection.
    """

    def __init__(self, connection: sqlite3.Connection, cache: Any, marks: Marks, uses: Uses, wait: float) -> None:
        self._lock = threading.Lock()  # guards the connection, and a transaction on it
        self._connection = connection
        self._cache = cache
        self._marks = marks
        self._uses = uses
        self._wait = wait

    @contextmanager
    def changing(self) -> Iterator[Change]:
        """A transaction, committed if all goes well."""
        if not self._lock.acquire(timeout=self._wait):
            raise StoreTrouble(f"other threads were writing for {self._wait:g} seconds")
        slots: set[int] = set()
        try:
            with self._cache.changing() as (_, remove_file):
                self._uses.put_down()  # before they are compared, and before the next number
                change = Change(self._connection, remove_file, self._uses)
                yield change
                slots = change.slots
                self._marks.set_busy(slots)
            self._uses.written(change.last_use)
        finally:
            try:
                self._marks.set_still(slots)
            finally:
                self._lock.release()

    def shrink(self) -> None:
        """Give the file system back what an empty database takes."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def pause(self, seconds: float) -> bool:
        """Wait until nobody writes; then nobody does until `resume`."""
        return self._lock.acquire(timeout=seconds)

    def resume(self) -> None:
        """Let others write again."""
        self._lock.release()

    def close(self) -> None:
        """Wait until nobody writes, and release all."""
        with self._lock:
            self._uses.close()
            self._close()

    def abandon(self) -> None:
        """Release all, paused, where no other thread is."""
        self._uses.abandon()
        self._close()

    def _close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        self._marks.close()
