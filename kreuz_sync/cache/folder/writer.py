"""How a folder's database is changed: one thread at a time, in transactions that other processes notice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kreuz_sync.cache.store import StoreTrouble

from .change import Change
from .drops import Drops
from .marks import Marks
from .turn import Turn
from .uses import Uses

_CLOSE_WAIT_S = 5.0  # how long closing waits for whoever writes; then that one closes


class Writer:
    """The connection to write with. wait: seconds for the lock between threads, and for that between processes.

    cache: a diskcache on that connection. drops: used within a transaction alone.
    """

    def __init__(
        self, connection: sqlite3.Connection, cache: Any, marks: Marks, uses: Uses, drops: Drops, wait: float
    ) -> None:
        self._turn = Turn()  # guards the connection, and a transaction on it
        self._pause = object()
        self._is_closing = False
        self._is_closed = False
        self._connection = connection
        self._cache = cache
        self._marks = marks
        self._uses = uses
        self._drops = drops
        self._wait = wait

    @contextmanager
    def changing(self) -> Iterator[Change]:
        """A transaction, committed if all goes well."""
        token = object()
        slots: set[int] = set()
        try:
            if not self._turn.take(token, self._wait):
                raise StoreTrouble(f"other threads were writing for {self._wait:g} seconds")
            if self._is_closing:
                raise StoreTrouble("the store was closed meanwhile")
            self._cache.undo_left()
            with self._cache.changing() as (_, remove_file):
                self._uses.put_down()  # before they are compared, and before the next number
                change = Change(self._connection, remove_file, self._uses)
                yield change
                slots = change.slots
                self._marks.set_busy(slots)
            self._uses.written(change.last_use)
        finally:
            try:
                if self._turn.holder is token and not self._is_closed:
                    self._cache.undo_left()
                if slots:
                    self._marks.set_still(slots)
            finally:
                had_it = self._turn.holder is token
                if had_it:
                    self._turn.holder = None
                self._turn.tell()
                if had_it and self._is_closing:
                    self.close()

    def shrink(self) -> None:
        """Give the file system back what an empty database takes."""
        token = object()
        try:
            if self._turn.take(token, self._wait):
                with suppress(sqlite3.Error):
                    self._connection.execute("VACUUM")
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            if self._turn.holder is token:
                self._turn.holder = None
            self._turn.tell()

    def pause(self, seconds: float) -> bool:
        """Wait until nobody writes; then nobody does until `resume`."""
        return self._turn.take(self._pause, seconds)

    def resume(self) -> None:
        """Let others write again."""
        if self._turn.holder is self._pause:
            self._turn.holder = None
        self._turn.tell()

    def close(self) -> None:
        """Wait until nobody writes, and release all; if that takes too long, whoever writes does it in the end."""
        self._is_closing = True
        token = object()
        try:
            if self._turn.take(token, _CLOSE_WAIT_S) and not self._is_closed:
                self._is_closed = True
                self._uses.close()
                self._close()
        finally:
            if self._turn.holder is token:
                self._turn.holder = None
            self._turn.tell()

    def abandon(self) -> None:
        """Release all, paused, where no other thread is."""
        self._uses.abandon()
        self._close()

    def _close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        self._drops.close()
        self._marks.close()
