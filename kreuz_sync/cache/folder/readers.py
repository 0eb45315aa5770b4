"""The connections to read with."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.clock import SYSTEM_CLOCK

from .connect import connect

_MOST = 8  # connections


class Readers:
    """A thread takes a connection, and gives it back after its one SELECT.

    So a thread that ends leaves nothing open, and a thousand threads at once do not open a thousand
    files each. (SQLite keeps the files of a closed connection until the last one closes.)
    """

    def __init__(self, path: str, wait: float) -> None:
        self._path = path
        self._wait = wait
        self._closed = False
        self._idle: list[sqlite3.Connection] = []  # needs no lock: a list's append and pop are atomic
        self._given_back = threading.Condition()  # guards the three below
        self._made = 0
        self._waiting = 0
        self._paused: list[sqlite3.Connection] = []

    def rows(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """All rows of a SELECT."""
        connection = self._pop() or self._make_or_wait()
        try:
            rows = connection.execute(statement, values).fetchall()
        except BaseException:
            self._drop(connection)
            raise
        self._give_back(connection)
        return rows

    def each(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a SELECT one by one, to be taken at once: until then the log of the database grows."""
        connection = self._pop() or self._make_or_wait()
        try:
            yield from connection.execute(statement)
        except BaseException:
            self._drop(connection)
            raise
        self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self.close()
        elif self._waiting:
            with self._given_back:
                self._given_back.notify()

    def close(self) -> None:
        """Close what is idle now, and the others when they are given back."""
        self._closed = True
        while connection := self._pop():
            connection.close()

    def pause(self, until: float) -> bool:
        """Wait, up to `until` on the monotonic clock, until nobody reads; then nobody does until `resume`."""
        self._given_back.acquire()
        self._waiting += 1
        while len(self._paused) < self._made:
            left = until - SYSTEM_CLOCK.monotonic()
            if left <= 0 or (connection := self._given_back.wait_for(self._pop, left)) is None:
                self.resume()
                return False
            self._paused.append(connection)
        return True

    def resume(self) -> None:
        """Let others read again."""
        self._waiting -= 1
        self._idle.extend(self._paused)
        self._paused.clear()
        self._given_back.notify_all()
        self._given_back.release()

    def close_paused(self) -> None:
        """Close what `pause` took: all there are."""
        while self._paused:
            self._paused.pop().close()

    def _make_or_wait(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreTrouble("the store was closed meanwhile")
        with self._given_back:
            if self._made < _MOST:
                self._made += 1
            else:
                return self._wait_for_one()
        try:
            return connect(self._path, self._wait)
        except BaseException:
            with self._given_back:
                self._made -= 1
            raise

    def _wait_for_one(self) -> sqlite3.Connection:
        self._waiting += 1
        try:
            # Whoever gives one back after the first look here sees that somebody waits.
            connection = self._given_back.wait_for(self._pop, self._wait)
        finally:
            self._waiting -= 1
        if connection is None:
            raise StoreTrouble(f"other threads were reading for {self._wait:g} seconds")
        return connection

    def _pop(self) -> sqlite3.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drop(self, connection: sqlite3.Connection) -> None:
        connection.close()
        with self._given_back:
            self._made -= 1
