"""Opening a folder, and setting aside what is no database."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress

from kreuz_sync.cache.store import StoreTrouble

from .change import Limits
from .connect import DATABASE, is_ruined
from .shelf import Shelf, identity

_log = logging.getLogger("kreuz_sync.cache")

# What diskcache raises over a table that is not as it makes it, besides the usual.
_TROUBLE = (sqlite3.Error, OSError, ImportError, LookupError, TypeError, ValueError)


def open_shelf(folder: str, limits: tuple[int, int | None], memory: int, wait: float, before: Shelf | None) -> Shelf:
    """The records in `folder`. before: the shelf that was open until now, and is closed."""
    try:
        if before is not None:
            before.close()
            if before.ruined:
                _set_aside(folder, before.identity)
        try:
            return Shelf(folder, Limits(*limits), memory, wait)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_ruined(error):
                raise
            _set_aside(folder, identity(os.path.join(folder, DATABASE)))
            return Shelf(folder, Limits(*limits), memory, wait)
    except _TROUBLE as error:
        raise StoreTrouble(f"{folder} cannot be opened: {error}") from error


def _set_aside(folder: str, ruin: tuple[int, int]) -> None:
    """Rename the database, if it is still the one that was found ruined: another process may have been faster."""
    database = os.path.join(folder, DATABASE)
    with suppress(FileNotFoundError):
        if identity(database) != ruin:
            return
        # Before the rename: with a new database these would be taken for parts of it.
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(database + suffix)
        os.replace(database, f"{database}-damaged")
        _log.warning(
            "%s was damaged and is now %s-damaged; the cache begins anew",
            *(database, database),
            extra={"event": "store_damaged", "path": database},
        )
