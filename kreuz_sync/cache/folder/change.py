"""What one transaction does to the rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

from . import statements
from .marks import SLOTS, Marks
from .rows import Row, pack, unpack
from .uses import Uses

_EVICTED_AT_ONCE = 500  # rows a write may evict: one, unless a limit was lowered or is in bytes
ABSURD = 9e15  # a number from here on is damage: with fractions none could be told from the next
_LOOKED_AT = 32  # rows that a write may find used since they were last looked at, at 10 µs each


class Limits(NamedTuple):
    """max_entries: 0 for any number. max_bytes: None for any size."""

    max_entries: int
    max_bytes: int | None


class Oldest(NamedTuple):
    """A row that may be evicted. use: the number of its last use."""

    use: float
    rowid: int
    key: object
    name: object
    size: int


class Change:
    """The steps of a transaction that has begun. slots: the marks of what it changes (marks.py).

    remove_file: takes the name of a body file that is to go once all is committed. last_use: the
    number of the last write, in this transaction or before.
    """

    def __init__(self, connection: sqlite3.Connection, remove_file: Callable[[object], None], uses: Uses) -> None:
        self._do = connection.execute
        self._do_many = connection.executemany
        self._remove_file = remove_file
        self._uses = uses
        self._looks = _LOOKED_AT
        self.slots: set[int] = set()
        last = self._do(statements.LAST_USE).fetchall()
        written = uses.last_write()
        # The row with the last use may be gone; its number must not be given again.
        self.last_use = int(max(last[0][0] if last else 0, written if written < ABSURD else 0))

    def put(self, key: str, row: Row, name: str | None, limits: Limits) -> bool:
        """Put `row` under `key`, and evict what is too much then; False if it alone is, and nothing is kept there.

        name: of its body file, if it has one.
        """
        value = pack(key, row)
        size = _size(row, value)
        if limits.max_bytes is not None and size > limits.max_bytes:
            self.delete(key, None)
            return False
        mode = statements.IN_ROW if name is None else statements.IN_FILE
        values = (self._next_use(), size, mode, name, value)
        excess = self._number(statements.COUNT) - limits.max_entries if limits.max_entries else -1
        found = self._do(statements.FIND_ROW, (key,)).fetchall()
        if found:
            ((rowid, old_name),) = found
            self._do(statements.REPLACE, (*values, rowid))
            self._remove_file(old_name)
        elif excess >= 0 and (oldest := self._oldest()):
            self._do(statements.RECYCLE, (*values, key, oldest.rowid))
            self._has_gone(oldest.key, oldest.name)
        else:
            self._do(statements.INSERT, (*values, key))
        self.slots.add(Marks.slot(key))
        self._evict(excess, limits.max_bytes, key)
        return True

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None) -> bool:
        """See `CacheStore.rewrite_head`."""
        for rowid, mode, name, value in self._do(statements.FIND, (key,)).fetchall():
            row = read_row(key, mode, name, value)
            if row is None or expected not in (None, row.head):
                return False
            row = row._replace(head=head)
            packed = pack(key, row)
            self._do(statements.REWRITE, (self._next_use(), _size(row, packed), packed, rowid))
            self.slots.add(Marks.slot(key))
            return True
        return False

    def delete(self, key: str, only_name: str | None) -> bool:
        """Delete the row under `key`. only_name: if it has this body file, and no other."""
        for rowid, name in self._do(statements.FIND_ROW, (key,)).fetchall():
            if only_name in (None, name):
                self._drop(rowid, key, name)
                return True
        return False

    def delete_under(self, bounds: tuple[str, str]) -> int:
        """Delete up to 500 rows whose keys lie between the two; how many."""
        rows = self._do(statements.UNDER, bounds).fetchall()
        for rowid, key, name in rows:
            self._drop(rowid, key, name)
        return len(rows)

    def delete_some(self, last_row: int) -> int:
        """Delete up to 1,000 rows, none after `last_row`; how many."""
        rows = self._do(statements.SOME, (last_row,)).fetchall()
        for _, name in rows:
            self._remove_file(name)
        self._do_many(statements.DELETE, ((rowid,) for rowid, _ in rows))
        self.slots.update(range(SLOTS))
        if not rows:
            self._do(statements.RECOUNT)
        return len(rows)

    def _next_use(self) -> int:
        self.last_use += 1
        return self.last_use

    def _evict(self, excess: int, max_bytes: int | None, spared: str) -> None:
        """Delete what was used longest ago, but not `spared`: `excess` rows, and as many as are too large together."""
        over = 0 if max_bytes is None else self._number(statements.VOLUME) - max_bytes
        for _ in range(_EVICTED_AT_ONCE):
            if excess <= 0 and over <= 0:
                return
            oldest = self._oldest()
            if oldest is None or oldest.key == spared:
                # The counters say that there is more to evict than there is.
                self._do(statements.RECOUNT)
                return
            self._drop(oldest.rowid, oldest.key, oldest.name)
            excess -= 1
            over -= oldest.size

    def _oldest(self) -> Oldest | None:
        """The row used longest ago.

        The first in the order of access_time, unless it was used since. Then it is put where it
        belongs, and the next is looked at. If more than a few in a row were, it is the one of
        these that was used longest ago.
        """
        looked_at: list[Oldest] = []
        while rows := self._do(statements.OLDEST).fetchall():
            rowid, known, key, name, size = rows[0]
            use = self._uses.last(rowid)
            was_used = known < use < self.last_use + 1
            looked_at.append(Oldest(use if was_used else known, rowid, key, name, size))
            if not was_used or self._looks <= 0:
                return min(looked_at, key=_use)
            self._looks -= 1
            self._do(statements.TOUCH, (use, rowid))
        return None

    def _drop(self, rowid: int, key: object, name: object) -> None:
        self._do(statements.DELETE, (rowid,))
        self._has_gone(key, name)

    def _has_gone(self, key: object, name: object) -> None:
        self._remove_file(name)
        if isinstance(key, str):
            self.slots.add(Marks.slot(key))

    def _number(self, statement: str) -> int:
        rows: list[Any] = self._do(statement).fetchall()
        return int(rows[0][0] or 0) if rows else 0


def read_row(key: str, mode: object, name: object, value: object) -> Row | None:
    """What a row's columns hold; None if it is damaged or not ours, such as a pickle."""
    if not isinstance(value, bytes) or (mode, name is None) not in _KINDS:
        return None
    return unpack(key, value, has_file=name is not None)


_KINDS = ((statements.IN_ROW, True), (statements.IN_FILE, False))


def _use(row: Oldest) -> float:
    return row.use


def _size(row: Row, value: bytes) -> int:
    # diskcache's `check` holds the size of a row with a file to be that of the file.
    return len(value) if row.body is not None else row.body_length
