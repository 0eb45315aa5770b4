"""Connections to a folder's database."""

from __future__ import annotations

import sqlite3

from kreuz_sync.clock import SYSTEM_CLOCK, Clock, Pause

DATABASE = "cache.db"

# diskcache keeps the first five in its own table and sets them again when it opens a folder. mmap_size: a mapped
# database that somebody cuts short kills the process. cache_size: -n is n KiB. wal_autocheckpoint: pages; a
# checkpoint waits for the disk twice, so at diskcache's 1,000 (some 130 writes) it was half of the time of a write.
PRAGMAS: dict[str, str | int] = {
    "auto_vacuum": 0,
    "cache_size": -4096,
    "journal_mode": "wal",
    "mmap_size": 0,
    "synchronous": 1,
    "wal_autocheckpoint": 4000,
    "journal_size_limit": 2**25,
    "trusted_schema": 0,
}


class Connection(sqlite3.Connection):
    """place: something that lives as long as this is in use, for whoever counts these."""

    place: object = None


def connect(path: str, wait: float, clock: Clock = SYSTEM_CLOCK) -> Connection:
    """A connection that any thread may use, one at a time. wait: seconds for other processes' locks."""
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False, factory=Connection)
    # A foreign row may hold a text that is none; it is for the reader of the row to say so.
    connection.text_factory = _text
    try:
        for name, value in PRAGMAS.items():
            _set(connection, f"PRAGMA {name} = {value}", clock.monotonic() + wait, clock)
    except BaseException:
        connection.close()
        raise
    return connection


def _set(connection: sqlite3.Connection, pragma: str, until: float, clock: Clock) -> None:
    # The first change to WAL needs the database for itself, and SQLite does not wait for that.
    while True:
        try:
            connection.execute(pragma).fetchall()
            return
        except sqlite3.OperationalError as error:
            if not is_locked(error) or clock.monotonic() > until:
                raise
        Pause(clock).sleep(0.002)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def is_locked(error: BaseException) -> bool:
    """Whether somebody else has the database, for now."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def is_ruined(error: BaseException) -> bool:
    """Whether what is there is no database, or not any more."""
    # The class is that of these two alone, its subclasses are for the rest. SQLite's message quotes what it found,
    # which need be no text: then it is empty (Python 3.10) or a UnicodeDecodeError.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)
