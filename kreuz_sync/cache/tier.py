"""The memory in front of a folder: what was read before, records and that there was none, as long as it holds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from .lru import Lru
from .store import Record

if TYPE_CHECKING:
    from .folder.marks import Marks

_OVERHEAD = 1024  # bytes that a record takes besides its head and body, a decoded head among them
_ABSENT = 4096  # keys remembered to have no record: 0.5 MiB
_LARGEST = 8  # a record larger than this part of the tier would push out too much else


class Held(NamedTuple):
    """A record, and the number of the row it came from."""

    record: Record
    row: int


class MemoryTier:
    """Records of at most `max_bytes` together, each with the mark its slot had before it was read.

    As long as the slot has that mark, no process has changed the record (marks.py).
    """

    def __init__(self, max_bytes: int, marks: Marks) -> None:
        self.marks = marks
        self._largest = max_bytes // _LARGEST
        self._lock = threading.Lock()  # guards _records
        self._records: Lru[tuple[Held, int, bytes]] = Lru(0, max_bytes)
        self._absent: dict[str, tuple[int, bytes]] = {}  # needs no lock: each step on a dict is atomic

    def get(self, key: str) -> Held | None:
        """What is held under `key`; None if it is not here, or may have changed."""
        with self._lock:
            found = self._records.get(key)
        if found is None:
            return None
        held, slot, mark = found
        if self.marks.read(slot) == mark:
            return held
        with self._lock:
            self._records.drop(key)
        return None

    def is_absent(self, key: str) -> bool:
        """Whether there was no record under `key`, and nobody has written one since."""
        found = self._absent.get(key)
        if found is None:
            return False
        slot, mark = found
        if self.marks.read(slot) == mark:
            return True
        self._absent.pop(key, None)
        return False

    def put_absent(self, key: str, slot: int, mark: bytes) -> None:
        """Note that there is no record under `key`. mark: of its slot, read before that was found."""
        if self.marks.is_still(mark):
            if len(self._absent) >= _ABSENT:
                self._absent.clear()
            self._absent[key] = (slot, mark)

    def mark(self, key: str) -> tuple[int, bytes]:
        """The slot of `key`, and its mark now."""
        slot = self.marks.slot(key)
        return slot, self.marks.read(slot)

    def put(self, key: str, held: Held, slot: int, mark: bytes) -> None:
        """Keep it, if the body is in memory. mark: of its slot, read before the record was."""
        record = held.record
        if not isinstance(record.body, bytes) or not self.marks.is_still(mark):
            return
        size = len(record.head) + len(record.body) + _OVERHEAD
        if size <= self._largest:
            with self._lock:
                self._records.put(key, (held, slot, mark), size)
