"""A store in this process's memory."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from kreuz_sync import checks
from kreuz_sync.fork import renew_in_child

from .lru import Lru
from .store import Body, CacheStore, Record


class MemoryStore(CacheStore):
    """Keeps records in memory: the fastest store, gone with the process and shared with no other.

    max_entries: records kept, the least recently used go first; 0 for any number. max_bytes:
    of their heads and bodies together, None for any size; a record larger than that is not
    kept. A copy, and what comes out of pickling, has the same limits and is empty.
    """

    def __init__(self, *, max_entries: int = 10_000, max_bytes: int | None = 256 * 2**20) -> None:
        self.max_entries = checks.count("max_entries", max_entries)
        self.max_bytes = None if max_bytes is None else checks.count("max_bytes", max_bytes, least=1)
        self._renew()
        renew_in_child(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()  # guards _records
        self._records: Lru[Record] = Lru(self.max_entries, self.max_bytes)

    def read(self, key: str) -> Record | None:
        with self._lock:
            return self._records.get(key)

    def write(self, key: str, head: bytes, body: Body) -> None:
        content = body if isinstance(body, bytes) else body.read()
        with self._lock:
            self._put(key, Record(head, content))

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        with self._lock:
            found = self._records.get(key)
            if found is None or expected not in (None, found.head):
                return False
            # A new record: others may be reading the one they were given.
            self._put(key, Record(head, found.body))
            return True

    def delete(self, key: str) -> bool:
        with self._lock:
            return self._records.drop(key)

    def delete_under(self, prefix: str) -> int:
        with self._lock:
            found = [key for key in self._records if key.startswith(prefix)]
            return sum(map(self._records.drop, found))

    def keys(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._records))

    def clear(self) -> int:
        with self._lock:
            return self._records.clear()

    def __len__(self) -> int:
        return len(self._records)

    def volume(self) -> int:
        return self._records.volume

    def spool(self) -> BinaryIO:
        """Memory too: somebody who chose this store may have no disk to write to."""
        return io.BytesIO()

    def after_fork(self) -> None:
        """In a child: begin anew if a thread that is gone held the lock, in the middle of a change."""
        if self._lock.locked():
            self._renew()

    def _put(self, key: str, record: Record) -> None:
        self._records.put(key, record, len(record.head) + len(record.body))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"MemoryStore(max_entries={self.max_entries!r}, max_bytes={self.max_bytes!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"max_entries": self.max_entries, "max_bytes": self.max_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
