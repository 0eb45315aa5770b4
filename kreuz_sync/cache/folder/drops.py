"""When what is kept for each URI was last dropped: an answer that was asked for before that may be outdated.

A file of 8,192 moments, of 8 bytes each; what the keys of a URI begin with says which is its. It is read and
written only while the database is locked for writing. So whoever stores an answer comes before the drop, which
then takes away what was stored, or finds the moment here.

Two URIs may share a moment. Then now and then an answer is not stored though it might have been.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from time import perf_counter  # one for all processes of a machine, and finer than monotonic() on Windows
from zlib import crc32

SLOTS = 8192
_OF_A_URI = 32  # characters of a key
_MOMENT = struct.Struct("<d")
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Drops:
    """The moments of one folder, in the file at `path`."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, _FLAGS, 0o600)
        if os.fstat(self._file).st_size < SLOTS * _MOMENT.size:
            with suppress(OSError, AttributeError):  # so that a drop can be noted on a full disk as well
                os.posix_fallocate(self._file, 0, SLOTS * _MOMENT.size)

    def note(self, key: str) -> None:
        """What the URI of `key` is kept under is dropped now."""
        self._write(_place(key), _MOMENT.pack(perf_counter()))

    def note_under(self, prefix: str) -> None:
        """All whose keys begin with `prefix` are dropped now."""
        if len(prefix) >= _OF_A_URI:
            self.note(prefix)
        else:  # they may be of any URI
            self._write(0, _MOMENT.pack(perf_counter()) * SLOTS)

    def is_outdated(self, key: str, began: float) -> bool:
        """Whether the URI of `key` was dropped after the moment `began` of `perf_counter`."""
        os.lseek(self._file, _place(key), os.SEEK_SET)
        found = os.read(self._file, _MOMENT.size)
        at: float = _MOMENT.unpack(found)[0] if len(found) == _MOMENT.size else 0.0
        # One that is still to come is from before the machine was started.
        return 0.0 < at and began <= at <= perf_counter()

    def close(self) -> None:
        file, self._file = self._file, -1
        os.close(file)

    def _write(self, place: int, moments: bytes) -> None:
        os.lseek(self._file, place, os.SEEK_SET)
        os.write(self._file, moments)


def _place(key: str) -> int:
    return crc32(key[:_OF_A_URI].encode()) % SLOTS * _MOMENT.size
