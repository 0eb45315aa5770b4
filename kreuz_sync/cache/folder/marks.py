"""How a process notices that another has changed a record, without asking the database.

A file of 512 marks of 8 bytes; a record's key says which is its. Whoever changes a record puts a
busy mark there before the change can be seen, and a still one after it. No two marks are ever the
same, so a mark that is still, and is what it was before the record was read, says that nobody has
changed it since. (A mark is written while the database is locked for writing, except the still one,
which may come late, and then only makes a reader read again.)

A process killed between the two leaves a busy mark: records of that slot are read from the database
until the next change to one of them.

The file is read, not mapped into memory: a mapped file that somebody cuts short kills the process.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from zlib import crc32

SLOTS = 512
_SIZE = 8
_STILL, _BUSY = b"\0", b"\1"
_MANY = 64  # slots: from here on the whole file is written at once


class Marks:
    """The marks of one folder, in the file at `path`."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if os.fstat(self._file).st_size < SLOTS * _SIZE:
            os.ftruncate(self._file, SLOTS * _SIZE)
        self._mine = os.urandom(4)
        self._count = itertools.count()
        # Without positioned reads (Windows) no mark is ever still, and the memory tier stays empty.
        self._usable = hasattr(os, "pread")

    @staticmethod
    def slot(key: str) -> int:
        """Which mark is `key`'s."""
        return crc32(key.encode()) % SLOTS

    @staticmethod
    def is_still(mark: bytes) -> bool:
        """Whether no change was under way."""
        return len(mark) == _SIZE and mark.endswith(_STILL)

    def read(self, slot: int) -> bytes:
        """The mark of `slot`; empty if the file was cut short, or closed."""
        try:
            return os.pread(self._file, _SIZE, slot * _SIZE) if self._usable else b""
        except OSError:
            return b""

    def set_busy(self, slots: Collection[int]) -> None:
        """Records of `slots` are about to change."""
        self._set(slots, _BUSY)

    def set_still(self, slots: Collection[int]) -> None:
        """They have changed, or will not after all."""
        self._set(slots, _STILL)

    def close(self) -> None:
        file, self._file = self._file, -1
        os.close(file)

    def _set(self, slots: Collection[int], state: bytes) -> None:
        if not self._usable:
            return
        mark = self._mine + (next(self._count) & 0xFFFFFF).to_bytes(3, "little") + state
        if len(slots) >= _MANY:
            os.pwrite(self._file, mark * SLOTS, 0)
        else:
            for slot in slots:
                os.pwrite(self._file, mark, slot * _SIZE)
