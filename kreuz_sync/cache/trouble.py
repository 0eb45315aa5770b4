"""A store that may fail: what goes wrong with it is told once an outage, and is never the caller's trouble."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

from kreuz_sync.clock import Clock

from .counters import Counters
from .store import Body, CacheStore, Lead, Record

_log = logging.getLogger("kreuz_sync.cache")

Given = TypeVar("Given")

OUTAGE_S = 60.0  # what fails within such a time of something else is likely to fail with it
READING, WRITING, LEADING = "read", "written", "shared with other processes"


class GuardedStore:
    """The methods of a `CacheStore`, none of which raises.

    A read that fails finds nothing, a change that fails changes nothing. The first failure is
    logged as a warning, further ones not until the same kind of work has succeeded again (a
    folder on a full disk can still be read), nor those of the other kind within the same minute.
    Whatever a store of a user's own raises counts as its failure.

    Takes no lock: two threads that fail at the same moment may both tell.
    """

    def __init__(self, store: CacheStore, counters: Counters, clock: Clock) -> None:
        self.store = store
        self._counters = counters
        self._clock = clock
        self._failing: set[str] = set()
        self._quiet_until = float("-inf")

    def read(self, key: str) -> Record | None:
        """The record under `key`; None if there is none, or the store fails."""
        try:
            record = _checked(self.store.read(key))
        except Exception as error:
            self.failed(READING, error)
            return None
        if self._failing:
            self._works(READING)
        return record

    def write(self, key: str, head: bytes, body: Body) -> bool:
        """Whether the record was written."""
        return self._changed(lambda: self.store.write(key, head, body) or True)

    def write_if_current(self, key: str, head: bytes, body: Body, age: float) -> bool:
        """The same, unless it is too old: see `CacheStore.write_if_current`."""
        return self._changed(lambda: self.store.write_if_current(key, head, body, age))

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        """Whether the head was replaced."""
        return self._changed(lambda: self.store.rewrite_head(key, head, expected))

    def delete(self, key: str) -> bool:
        """Whether the record is gone now, also if it was not there."""
        return self._changed(lambda: self.store.delete(key) or True)

    def delete_under(self, prefix: str) -> bool:
        """Whether all records whose keys begin so are gone now."""
        return self._changed(lambda: self.store.delete_under(prefix) >= 0)

    def spool(self) -> BinaryIO | None:
        """A temporary file of the store's, None if it has none to give now."""
        return self._tried(WRITING, lambda: _checked_file(self.store.spool()))

    def secret(self) -> bytes | None:
        """The store's secret; None if it cannot be had now."""
        return self._tried(READING, lambda: _checked_secret(self.store.secret()))

    def lead(self, key: str) -> Lead | bytes | None:
        """See `CacheStore.lead`; None if the store cannot say that now."""
        return self._tried(LEADING, lambda: self.store.lead(key))

    def close(self) -> None:
        """Release what is open."""
        self._tried(WRITING, self.store.close)

    def failed(self, work: str, error: BaseException) -> None:
        """Note a failure, and tell of it if it is the first. Also for what goes wrong with a body's file."""
        self._counters.add("store_failures")
        now = self._clock.monotonic()
        is_new = work not in self._failing and (not self._failing or now >= self._quiet_until)
        self._failing.add(work)
        if is_new:
            self._quiet_until = now + OUTAGE_S
            _log.warning(
                "the cache cannot be %s now, and requests go on without it: %s",
                *(work, error or repr(error)),
                extra={"event": "store_failure", "work": work, "error_type": type(error).__name__},
            )

    def _changed(self, change: Callable[[], Any]) -> bool:
        return bool(self._tried(WRITING, change))

    def _tried(self, work: str, action: Callable[[], Given]) -> Given | None:
        try:
            given = action()
        except Exception as error:
            self.failed(work, error)
            return None
        if self._failing:
            self._works(work)
        return given

    def _works(self, work: str) -> None:
        self._failing.discard(work)
        if not self._failing:
            _log.info("the cache works again", extra={"event": "store_recovery"})


def _checked(given: Any) -> Record | None:
    """What a store of a user's own gave for a record. Raises TypeError if it is none."""
    if given is None:
        return None
    if not isinstance(given, Record) or type(given.head) is not bytes:
        raise TypeError(f"{type(given).__name__} is not a Record whose head is bytes")
    if type(given.body) is not bytes:
        _checked_file(given.body)
    return given


def _checked_file(given: Any) -> BinaryIO:
    if not hasattr(given, "read") or not hasattr(given, "close"):
        raise TypeError(f"{type(given).__name__} is neither bytes nor a binary file")
    file: BinaryIO = given
    return file


def _checked_secret(given: Any) -> bytes:
    if not isinstance(given, bytes) or not 16 <= len(given) <= 64:
        raise TypeError("the store's secret is not 32 bytes")
    return given
