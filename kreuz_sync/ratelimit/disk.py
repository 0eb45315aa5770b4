"""Counters in a folder, for the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from typing import Any

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.fork import pause_for_fork, renew_in_child
from kreuz_sync.settings import Single

from .counters import Counters
from .failures import StoreUnavailable
from .store import CounterStore
from .usage import Usage

_FORK_WAIT_S = 2.0  # how long a fork waits for a thread that counts

# What diskcache raises over a table that is not as it makes it, besides the usual.
_TROUBLE = (sqlite3.Error, OSError, ImportError, LookupError, TypeError, ValueError)

# What a child inherited in the middle of a hit: it must not even be closed, so it is kept here for good.
_inherited: list[object] = []


class DiskStore(Single, CounterStore):
    """Counts in a folder, for all processes of one machine that are given the same one.

    folder: is made with mode 0700 when it is first used; `~` and `$NAME` in its path are replaced.
    The counters are in a diskcache database in its subfolder `counters`, so it may be that of a
    cache. Nothing in it is ever unpickled, and nothing pickled is put there. It must be on a local
    file system: over a network neither locks nor clocks can be relied on.

    timeout: seconds that a hit waits, for other threads and for other processes together; as long again
    where it has to open the folder first. clock: where time comes from; it must be the same for all that
    use the folder.

    Windows are measured by the clock of the machine that nobody can set. While the machine sleeps
    it stands still. After a restart of the machine, windows that began before it end by the wall
    clock, and at most their whole length later. Rows of windows that are over are dropped a few
    at a time, as others begin.

    What goes wrong is StoreUnavailable with the code `disk_store_error`, and as `.detail`
    "locked" (others counted for too long), "failed" (damaged, read-only, full; it is opened anew
    for the next hit), "forked" or "invalid_window". A process that is killed leaves its hits
    counted, and nobody waiting.

    A copy is the same store. A pickle has the settings; whoever opens it uses the same folder. A
    child of a fork opens the folder for itself.
    """

    is_shared = True

    def __init__(self, folder: str | os.PathLike[str], *, timeout: float = 0.5, clock: Clock = SYSTEM_CLOCK) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"folder={folder!r}: the path of a folder is wanted")
        path = checks.text("folder", os.fspath(folder))
        self.folder = os.path.abspath(os.path.expandvars(os.path.expanduser(path)))
        self.timeout = checks.seconds("timeout", timeout)
        self.clock: Clock = checks.clock("clock", clock)
        self._lock = threading.Lock()  # guards all that follows
        self._counters: Counters | None = None
        self._finalizer: weakref.finalize[..., DiskStore] | None = None
        self._paused_by: int | None = None  # the thread that forks now
        self._is_lost = False
        renew_in_child(self)
        pause_for_fork(self)

    def increment(self, key: str, window: float) -> Usage:
        """As every store. Hits are counted exactly up to 2**53, and stay there."""
        if self._is_lost:
            raise _unavailable("this process was forked in the middle of a hit", "forked")
        name = _name(key)
        until = SYSTEM_CLOCK.monotonic() + self.timeout
        if not self._lock.acquire(timeout=self.timeout):
            raise _unavailable("other threads were counting for too long", "locked")
        try:
            return self._open().hit(name, window, until)
        except _TROUBLE as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise _unavailable("other processes were counting for too long", "locked") from error
            self._release()  # and begin anew with the next hit
            raise _unavailable(f"the folder cannot be used: {type(error).__name__}", "failed") from error
        finally:
            self._lock.release()

    def close(self) -> None:
        """Release the files. The folder is opened anew when the store is used again."""
        with self._lock:
            self._release()

    def _open(self) -> Counters:
        """The folder, opened, and still in its place."""
        if self._counters is not None and self._counters.is_there():
            return self._counters
        self._release()
        self._counters = Counters(os.path.join(self.folder, "counters"), self.clock, self.timeout)
        self._finalizer = weakref.finalize(self, self._counters.close)
        return self._counters

    def _release(self) -> None:
        counters, self._counters = self._counters, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if counters is not None:
            counters.close()

    # --- forks --------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Let no thread be in the middle of a hit: a child would inherit SQLite's own locks as they are."""
        if self._lock.acquire(timeout=_FORK_WAIT_S):
            self._paused_by = threading.get_ident()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._paused_by == threading.get_ident():
            self._paused_by = None
            self._lock.release()

    def after_fork(self) -> None:
        """In a child. What was at rest can be given up; the rest can neither be used nor closed."""
        self._lock = threading.Lock()
        if self._paused_by == threading.get_ident():
            self._release()
        else:
            self._is_lost = True
            _inherited.append(self._counters)
            self._counters = None
            if self._finalizer is not None:
                self._finalizer.detach()
        self._paused_by = None

    # --- copies -------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "timeout": self.timeout, "clock": self.clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DiskStore.__init__(self, **state)

    def __repr__(self) -> str:
        return f"DiskStore({self.folder!r}, timeout={self.timeout!r})"


def _name(key: str) -> str | bytes:
    """`key` as the database has it: half of a surrogate pair, which no text there can hold, as bytes."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def _unavailable(message: str, detail: str) -> StoreUnavailable:
    return StoreUnavailable("disk_store_error", message, detail)
