"""Records that were read before, in the memory of this process: they are not sent again while they hold."""

from __future__ import annotations

import threading
from typing import NamedTuple

from kreuz_sync import fork
from kreuz_sync.cache.lru import Lru
from kreuz_sync.cache.store import Record

_OVERHEAD = 1024  # bytes that a record takes besides its head and body, a decoded head among them
_LARGEST = 8  # a record larger than this part of it all would push out too much else


class Held(NamedTuple):
    """A record, and the value that it had on the server."""

    value: bytes
    record: Record


class HeldRecords:
    """Records of at most `max_bytes` together. Whether one still holds, the server is asked every time."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._begin()
        fork.renew_in_child(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()  # guards _records
        self._records: Lru[Held] = Lru(0, self._max_bytes)

    def after_fork(self) -> None:
        """In a child: begin anew if a thread that is gone held the lock, in the middle of a change."""
        if self._lock.locked():
            self._begin()

    def get(self, key: str) -> Held | None:
        """What is held under `key`."""
        with self._lock:
            return self._records.get(key)

    def put(self, key: str, held: Held) -> None:
        """Hold it, if its body is in memory and it is not too large."""
        body = held.record.body
        if isinstance(body, bytes):
            size = len(held.record.head) + len(body) + _OVERHEAD
            with self._lock:
                self._records.drop(key)
                if size <= self._max_bytes // _LARGEST:
                    self._records.put(key, held, size)

    def drop(self, key: str) -> None:
        """Forget it."""
        with self._lock:
            self._records.drop(key)
