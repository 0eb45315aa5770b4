"""When each row was last used, put down where it costs little: reading a record must not write to the database.

A file of numbers (64-bit floats), one for each row. A use is numbered by the last write before it,
and by a fraction that grows with each use after that, so no clock decides what was used longest ago.
The rows have such a number too (access_time). A write sets it and a read does not, so it may be
behind the one here; whoever evicts compares the two (change.py). Uses are collected in memory first.
What is lost when a process is killed, or confused when several use one row at once, makes a record
go too early or too late, and no more.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
from contextlib import suppress

MOST = 512  # rows whose uses are collected; putting down as many takes half a millisecond
EVERY_S = 1.0  # and how long: until then other processes do not know of them
_ROWS = 2**20 - 1  # beyond as many rows two share a number; the file has holes, and takes as little as it needs
_STEP = 2.0**-22
_NUMBER = struct.Struct("<d")
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Uses:
    """The uses of the rows of one folder, in the file at `path`. The number of the last write comes first there.

    Noting takes no lock: each step on a dict is atomic, and the order of uses in the same moment is nobody's.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()  # guards writing to the file, which must not be another's by then
        self._file = os.open(path, _FLAGS, 0o600)
        self._noted: dict[int, None] = {}
        self._due_at = 0.0
        self._write = 0.0
        self._fractions = itertools.count(1)
        self._usable = hasattr(os, "pread")  # not on Windows: there what was written longest ago goes first

    def note(self, row: int, now: float) -> None:
        """`row` was used at `now`, in seconds of any clock."""
        noted = self._noted
        if not noted:
            self._due_at = now + EVERY_S
        noted.pop(row, None)
        noted[row] = None
        if len(noted) >= MOST or now >= self._due_at:
            self.put_down()

    def put_down(self) -> None:
        """Put down what was noted. A disk that is full is no reason not to read."""
        noted, self._noted = self._noted, {}
        if not noted or not self._usable:
            return
        with self._lock, suppress(OSError):
            write = self.last_write()
            if write != self._write:
                self._write = write
                self._fractions = itertools.count(1)
            for row in list(noted):
                fraction = min(next(self._fractions) * _STEP, 1 - _STEP)
                os.pwrite(self._file, _NUMBER.pack(self._write + fraction), _place(row))

    def last_write(self) -> float:
        """The number of the last write that any process committed; 0.0 if nobody knows."""
        return self._read(0)

    def last(self, row: int) -> float:
        """The number of the last use of `row` that was put down; 0.0 if there is none."""
        return self._read(_place(row))

    def written(self, number: float) -> None:
        """A write with this number is committed: what is used from now on comes after it."""
        if self._usable:
            with self._lock, suppress(OSError):
                os.pwrite(self._file, _NUMBER.pack(number), 0)

    def close(self) -> None:
        """Put down what was noted, and release the file."""
        self.put_down()
        with self._lock:
            self.abandon()

    def abandon(self) -> None:
        """Release the file, where no other thread is."""
        file, self._file = self._file, -1
        os.close(file)

    def _read(self, place: int) -> float:
        if self._usable:
            with suppress(OSError, struct.error):
                number: float = _NUMBER.unpack(os.pread(self._file, _NUMBER.size, place))[0]
                return number
        return 0.0


def _place(row: int) -> int:
    return (1 + row % _ROWS) * _NUMBER.size
