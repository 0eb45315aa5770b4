"""The records in one folder, as long as it is open."""

from __future__ import annotations

import functools
import io
import logging
import os
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO, TypeVar

from kreuz_sync.cache.store import Body, Lead, Record, StoreTrouble
from kreuz_sync.cache.tier import MemoryTier
from kreuz_sync.clock import SYSTEM_CLOCK

from . import statements
from .bodies import Bodies
from .change import Limits
from .connect import DATABASE, connect, is_locked, is_ruined
from .drops import Drops
from .layout import open_cache
from .leads import Leads
from .listing import in_order
from .marks import Marks
from .readers import Readers
from .reading import Reading
from .rows import Row
from .secret import read_secret
from .uses import Uses
from .writer import Writer

INLINE = 2**15  # bytes of head and body: up to this much a row is cheaper to write and to read than a file
_SPOOL_BUFFER = 2**16
_PIECE = 500  # keys of a listing that are read together

_log = logging.getLogger("kreuz_sync.cache")

Method = TypeVar("Method", bound=Callable[..., Any])


def seam(method: Method) -> Method:
    """What goes wrong below becomes `StoreTrouble` here."""

    @functools.wraps(method)
    def guarded(self: Shelf, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise self.trouble(error) from error

    return guarded  # type: ignore[return-value]


class Shelf:
    """One folder. broken: it must be opened anew. ruined: what lies there is no database any more."""

    def __init__(self, folder: str, limits: Limits, memory: int, wait: float) -> None:
        self.folder = folder
        self.broken = False
        self.ruined = False
        self._limits = limits
        self._database = os.path.join(folder, DATABASE)
        self._has_warned = False
        self._leads: Leads | None = None
        os.makedirs(folder, 0o700, exist_ok=True)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(self._database, os.O_RDWR | os.O_CREAT, 0o600))
        self.identity = identity(self._database)
        with ExitStack() as undo:
            connection = connect(self._database, wait)
            undo.callback(connection.close)
            cache = open_cache(folder, connection)
            marks = Marks(f"{self._database}-changes")
            undo.callback(marks.close)
            self._drops = Drops(f"{self._database}-drops")
            undo.callback(self._drops.close)
            self._uses = Uses(f"{self._database}-uses")
            undo.pop_all()
        self._readers = Readers(self._database, wait)
        self._writer = Writer(connection, cache, marks, self._uses, self._drops, wait)
        self._bodies = Bodies(folder, cache.disk)
        tier = MemoryTier(memory, marks) if memory else None
        self._reading = Reading(self._readers, self._bodies, tier, self._uses, self._met_damage)
        with suppress(sqlite3.Error, OSError):
            self._bodies.sweep(self._has_row)

    def is_there(self) -> bool:
        """Whether the folder still has the database that is open here."""
        try:
            return identity(self._database) == self.identity
        except OSError:
            return False

    def trouble(self, error: Exception) -> StoreTrouble:
        """What to raise for `error`; notes whether the folder can be used further."""
        if is_ruined(error):
            self.ruined = self.broken = True
        elif isinstance(error, sqlite3.Error) and not is_locked(error):
            self.broken = True
        return StoreTrouble(f"{self.folder}: {error}")

    @seam
    def read(self, key: str) -> Record | None:
        return self._reading.read(key)

    @seam
    def write(self, key: str, head: bytes, body: Body, began: float | None = None) -> bool:
        """See `CacheStore.write_if_current`. began: when it was asked for, by `perf_counter`."""
        with self._bodies.receive(body, INLINE - len(head)) as content:
            if isinstance(content, bytes):
                row = Row(head, content, len(content), 0)
                with self._writer.changing() as change:
                    return self._is_current(key, began) and change.put(key, row, None, self._limits)
            length, total = content.measure()
            name, path = self._bodies.place()
            row = Row(head, None, length, total)
            with self._writer.changing() as change:
                kept = self._is_current(key, began) and change.put(key, row, name, self._limits)
                if kept:
                    content.move(path)  # when all else is done, and only committing it is left
            content.kept = kept
        return kept

    def _is_current(self, key: str, began: float | None) -> bool:
        """Within a transaction: whether what was asked for at `began` is not from before a drop."""
        return began is None or not self._drops.is_outdated(key, began)

    @seam
    def spool(self) -> BinaryIO:
        return io.BufferedRandom(self._bodies.new(), _SPOOL_BUFFER)

    @seam
    def rewrite_head(self, key: str, head: bytes, expected: bytes | None) -> bool:
        with self._writer.changing() as change:
            return change.rewrite_head(key, head, expected)

    @seam
    def delete(self, key: str, only_name: str | None = None) -> bool:
        if not self._readers.rows(statements.FIND_ROW, (key,)):
            return False  # without waiting for a lock
        with self._writer.changing() as change:
            if only_name is None:  # or it is only damaged
                self._drops.note(key)
            return change.delete(key, only_name)

    @seam
    def delete_under(self, prefix: str) -> int:
        bounds = (prefix, f"{prefix}\U0010ffff")
        gone = 0
        while True:
            with self._writer.changing() as change:  # where there is nothing, too: it may be under way
                self._drops.note_under(prefix)
                some = change.delete_under(bounds)
            gone += some
            if some < statements.MOST_UNDER:
                return gone

    @seam
    def secret(self) -> bytes:
        return read_secret(f"{self._database}-secret")

    @seam
    def lead(self, key: str) -> Lead | bytes:
        leads = self._leads
        if leads is None:
            leads = self._leads = Leads(f"{self._database}-leads")  # that of another thread is of the same file
        return leads.take(key)

    @seam
    def clear(self) -> int:
        with self._writer.changing():
            self._drops.note_under("")
        last_row = self._number(statements.LAST_ROW)  # what comes after it is not from before the drop
        gone = 0
        while True:
            with self._writer.changing() as change:
                some = change.delete_some(last_row)
            if not some:
                break
            gone += some
        self._bodies.sweep_all(self._has_row)
        if not self._number(statements.COUNT):
            self._writer.shrink()
        return gone

    @seam
    def count(self) -> int:
        return self._number(statements.COUNT)

    @seam
    def volume(self) -> int:
        return self._number(statements.VOLUME)

    def keys(self) -> Iterator[str]:
        rows = self._in_order()
        for start in range(0, len(rows), _PIECE):
            yield from self._keys_of(rows[start : start + _PIECE])

    @seam
    def _in_order(self) -> array[int]:
        self._uses.put_down()
        return in_order(self._readers.each(statements.USES), self._uses)

    @seam
    def _keys_of(self, rows: array[int]) -> list[str]:
        found = (self._readers.rows(statements.KEY, (row,)) for row in rows)
        return [key for keys in found for (key,) in keys if isinstance(key, str)]

    def _met_damage(self, key: str | None = None, name: str | None = None) -> None:
        """Say so, once. key, name: of a record to drop, if it still has this body file."""
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s: a record there is damaged or not ours, and counts as absent",
                self.folder,
                extra={"event": "record_damaged", "path": self.folder},
            )
        if key is not None:
            with suppress(StoreTrouble):
                self.delete(key, name)

    def close(self) -> None:
        self._readers.close()
        self._writer.close()
        self._leads = None

    def pause(self, seconds: float) -> bool:
        """Wait until no thread is at work with SQLite; then none is until `resume`. False if it took too long.

        SQLite has locks of its own, and tables of what the process holds locks on. A child of a
        fork inherits them as they are, so at that moment they must be at rest.
        """
        until = SYSTEM_CLOCK.monotonic() + seconds
        if not self._writer.pause(seconds):
            return False
        if not self._readers.pause(until):
            self._writer.resume()
            return False
        return True

    def resume(self) -> None:
        """In the parent, after the fork."""
        self._readers.resume()
        self._writer.resume()

    def abandon(self) -> None:
        """In the child: forget what was inherited, so that SQLite takes locks of the child's own when it opens anew."""
        self._readers.close_paused()
        self._writer.abandon()
        self._leads = None

    def _has_row(self, name: str) -> bool:
        return bool(self._readers.rows(statements.HAS_FILE, (name,)))

    def _number(self, statement: str) -> int:
        rows: Any = self._readers.rows(statement)
        return max(0, rows[0][0] or 0) if rows else 0


def identity(path: str) -> tuple[int, int]:
    """What tells one file from another, though it have the same name."""
    found = os.stat(path)
    return found.st_dev, found.st_ino
