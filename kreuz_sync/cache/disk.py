"""The store on disk."""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, BinaryIO

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.fork import pause_for_fork, renew_in_child

from .folder.turn import Turn
from .store import Body, CacheStore, Lead, Record, StoreTrouble

if TYPE_CHECKING:
    from .folder.shelf import Shelf

_LOOK_AGAIN_S = 1.0  # how long a reader may go on with a database that somebody has taken away

_CLOSE_WAIT_S = 5.0

_FORK_WAIT_S = 2.0  # how long a fork waits for threads that read or write

# What a child inherited in the middle of a change: it must not even be closed, so it is kept here for good.
_inherited: list[object] = []


class DiskStore(CacheStore):
    """Keeps records in a folder, for this process and others, now and later.

    max_entries: records kept, the least recently used go first; 0 for any number. max_bytes: of
    their heads and bodies together, None for any size; a larger body is not kept. memory: bytes
    for records that were read before, answered without touching the disk as long as no process
    changes them; 0 for none. lock_wait: seconds that a write waits for other threads, and as long
    again for other processes. strict: whether a folder that cannot be used is an error now
    (`StoreTrouble`), and not when the store is first used.

    The folder (made with mode 0700; `~` and `$NAME` in its path are replaced) holds a diskcache
    database, with small bodies in it and a file for each larger one. Nothing in it is ever
    unpickled, and nothing pickled is put there. What somebody else lays there may still be
    given out as a stored answer, so only its owner should be able to write to it.

    A database that is damaged is set aside, as `cache.db-damaged`, and a new one begun. A copy,
    and what comes out of pickling, uses the same folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_entries: int = 10_000,
        max_bytes: int | None = None,
        memory: int = 16 * 2**20,
        lock_wait: float = 0.5,
        strict: bool = False,
    ) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"folder={folder!r}: the path of a folder is wanted")
        path = checks.text("folder", os.fspath(folder))
        # diskcache replaces these two as well; done here, all files are sure to be in one folder.
        self.folder = os.path.abspath(os.path.expandvars(os.path.expanduser(path)))
        self.max_entries = checks.count("max_entries", max_entries)
        self.max_bytes = None if max_bytes is None else checks.count("max_bytes", max_bytes, least=1)
        self.memory = checks.count("memory", memory)
        self.lock_wait = checks.seconds("lock_wait", lock_wait)
        self.strict = checks.flag("strict", strict)
        self._shelf: Shelf | None = None
        self._look_at = 0.0
        self._opening = Turn()  # guards the change of _shelf and _finalizer
        self._forking: object = None  # what has the turn for a thread that forks now
        self._finalizer: weakref.finalize[..., DiskStore] | None = None
        self._paused_by: int | None = None  # the thread that forks now
        self._is_lost = False
        self._secret: bytes | None = None  # the last that was asked for
        self._renewals = 0
        renew_in_child(self)
        pause_for_fork(self)
        if self.strict:
            self._checked()

    def read(self, key: str) -> Record | None:
        return self._usable().read(key)

    def write(self, key: str, head: bytes, body: Body) -> None:
        self._checked().write(key, head, body)

    def write_if_current(self, key: str, head: bytes, body: Body, age: float) -> bool:
        asked = perf_counter() - age  # at once: the folder may have to be opened first
        return self._checked().write(key, head, body, asked)

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        return self._checked().rewrite_head(key, head, expected)

    def delete(self, key: str) -> bool:
        return self._checked().delete(key)

    def delete_under(self, prefix: str) -> int:
        return self._checked().delete_under(prefix)

    def keys(self) -> Iterator[str]:
        yield from self._checked().keys()

    def clear(self) -> int:
        return self._checked().clear()

    def __len__(self) -> int:
        return self._checked().count()

    def volume(self) -> int:
        return self._checked().volume()

    def spool(self) -> BinaryIO:
        return self._checked().spool()

    def secret(self) -> bytes:
        self._secret = found = self._checked().secret()
        return found

    @property
    def renewals(self) -> int:
        # Before keys are made: a folder that was taken away may have another secret by now.
        if self._shelf is not None and SYSTEM_CLOCK.monotonic() >= self._look_at:
            with suppress(StoreTrouble):
                self._checked()
        return self._renewals

    @property
    def has_leads(self) -> bool:
        return True

    def lead(self, key: str) -> Lead | bytes:
        return self._usable().lead(key)

    def close(self) -> None:
        token = object()
        try:
            if not self._opening.take(token, _CLOSE_WAIT_S):
                raise StoreTrouble(f"{self.folder}: another thread has been opening it for {_CLOSE_WAIT_S:g} seconds")
            shelf, self._shelf = self._shelf, None
            if self._finalizer is not None:
                self._finalizer.detach()
            if shelf is not None:
                shelf.close()
        finally:
            if self._opening.holder is token:
                self._opening.holder = None
            self._opening.tell()

    def before_fork(self) -> None:
        """Let no thread be in the middle of something that a child would inherit."""
        until = SYSTEM_CLOCK.monotonic() + _FORK_WAIT_S
        token = object()
        if self._opening.take(token, _FORK_WAIT_S):
            left = max(0.0, until - SYSTEM_CLOCK.monotonic())
            if self._shelf is None or self._shelf.pause(left):
                self._forking = token
                self._paused_by = threading.get_ident()
            else:
                if self._opening.holder is token:
                    self._opening.holder = None
                self._opening.tell()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._paused_by == threading.get_ident():
            self._paused_by = None
            if self._shelf is not None:
                self._shelf.resume()
            if self._opening.holder is self._forking:
                self._opening.holder = None
            self._opening.tell()

    def after_fork(self) -> None:
        """In a child, which opens the folder for itself."""
        shelf, self._shelf = self._shelf, None
        self._opening = Turn()
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._paused_by != threading.get_ident():
            self._is_lost = True
            _inherited.append(shelf)
        elif shelf is not None:
            shelf.abandon()
        self._paused_by = None

    def _usable(self) -> Shelf:
        """The folder, opened; whether it is still in its place is looked up once a second."""
        shelf = self._shelf
        if shelf is not None and not shelf.broken and SYSTEM_CLOCK.monotonic() < self._look_at:
            return shelf
        return self._checked()

    def _checked(self) -> Shelf:
        """The folder, opened, and still in its place."""
        shelf = self._shelf
        if shelf is None or shelf.broken or not shelf.is_there():
            shelf = self._open(shelf)
        self._look_at = SYSTEM_CLOCK.monotonic() + _LOOK_AGAIN_S
        return shelf

    def _open(self, before: Shelf | None) -> Shelf:
        """Open the folder in place of `before`, unless another thread has done so meanwhile."""
        if self._is_lost:
            raise StoreTrouble(f"{self.folder}: this process was forked in the middle of a change")
        token = object()
        try:
            if not self._opening.take(token, self.lock_wait):
                raise StoreTrouble(f"{self.folder}: another thread has been opening it for {self.lock_wait:g} seconds")
            # A fork waits for this turn: its child could not import what another thread is in the middle of importing.
            open_shelf = _opener()
            shelf = self._shelf
            if shelf is not None and shelf is not before:
                return shelf
            self._shelf = None
            if self._finalizer is not None:
                self._finalizer.detach()
            limits = (self.max_entries, self.max_bytes)
            self._shelf = shelf = open_shelf(self.folder, limits, self.memory, self.lock_wait, before)
            self._finalizer = weakref.finalize(self, shelf.close)
            self._compare_secret(shelf)
            return shelf
        finally:
            if self._opening.holder is token:
                self._opening.holder = None
            self._opening.tell()

    def _compare_secret(self, shelf: Shelf) -> None:
        """Say so if keys that were made before lead nowhere in a folder that was made anew."""
        if self._secret is None:
            return
        with suppress(StoreTrouble):
            if shelf.secret() == self._secret:
                return
        self._renewals += 1

    def __repr__(self) -> str:
        return f"DiskStore({self.folder!r}, max_entries={self.max_entries!r}, max_bytes={self.max_bytes!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("max_entries", "max_bytes", "memory", "lock_wait", "strict")
        return _again, (self.folder, {name: getattr(self, name) for name in names})


def _opener() -> Callable[..., Shelf]:
    """`open_shelf`; importing it loads sqlite3 and diskcache, which only users of this store need."""
    try:
        from .folder.opening import open_shelf
    except (ImportError, OSError) as error:
        # What was not found because no more files could be opened may be found later.
        importlib.invalidate_caches()
        raise StoreTrouble(f"the modules of the store on disk cannot be imported: {error}") from error
    return open_shelf


def _again(folder: str, settings: dict[str, Any]) -> DiskStore:
    return DiskStore(folder, **settings)
