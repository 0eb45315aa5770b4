"""The connections to read with."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.clock import SYSTEM_CLOCK

from .connect import Connection, connect

_MOST = 8  # connections


class _Place:
    """Counts a connection, from before it is made for as long as somebody knows it.

    A number would be wrong for ever after an interrupt that makes a thread forget what it took.
    """

    __slots__ = ("__weakref__",)


class Readers:
    """A thread takes a connection, and gives it back after its one SELECT.

    So a thread that ends leaves nothing open, and a thousand threads at once do not open a thousand
    files each. (SQLite keeps the files of a closed connection until the last one closes.)
    """

    def __init__(self, path: str, wait: float) -> None:
        self._path = path
        self._wait = wait
        self._closed = False
        self._idle: list[Connection] = []  # needs no lock: a list's append and pop are atomic
        self._lock = threading.Lock()  # guards the three below
        self._given_back = threading.Condition(self._lock)
        self._made: weakref.WeakSet[_Place] = weakref.WeakSet()
        self._waiting = 0
        self._paused: list[Connection] = []

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

    def _give_back(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self.close()
        elif self._waiting:
            with self._lock:
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
        while len(self._paused) < len(self._made):
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

    def _make_or_wait(self) -> Connection:
        if self._closed:
            raise StoreTrouble("the store was closed meanwhile")
        with self._lock:
            if len(self._made) >= _MOST:
                return self._wait_for_one()
            place = _Place()
            self._made.add(place)
        try:
            connection = connect(self._path, self._wait)
        except BaseException:
            self._made.discard(place)  # an error keeps what its frames know
            raise
        connection.place = place
        return connection

    def _wait_for_one(self) -> Connection:
        self._waiting += 1
        try:
            # Whoever gives one back after the first look here sees that somebody waits.
            connection = self._given_back.wait_for(self._pop, self._wait)
        finally:
            self._waiting -= 1
        if connection is None:
            raise StoreTrouble(f"other threads were reading for {self._wait:g} seconds")
        return connection

    def _pop(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drop(self, connection: Connection) -> None:
        connection.close()
        connection.place = None
