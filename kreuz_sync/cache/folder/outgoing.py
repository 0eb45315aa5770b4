"""A body on its way out of the folder: checked for length when opened, and for content once a process."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from kreuz_sync.cache.store import Body, DamagedBody

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

IN_MEMORY = 2**20  # bytes: up to this length a body is handed out as bytes
CHECKED_FIRST = 2**23  # bytes: up to this length it is checked before it is handed out, in about 5 ms
_CHUNK = 2**18
_REMEMBERED = 4096

# A link or a pipe that somebody laid in a file's place is not followed, or waited for.
UNFOLLOWED = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    UNFOLLOWED |= getattr(os, _name, 0)


class BodyReader:
    """Opens body files, and remembers which were found whole.

    A body file never changes under its name, so one that was whole, and has not been written to
    since by anybody, is whole. Takes no lock: each step on the dict is atomic.
    """

    def __init__(self) -> None:
        self._whole: dict[str, tuple[int, int]] = {}

    def open(self, path: str, length: int, total: int, damaged: Callable[[], None]) -> Body | None:
        """The body of `length` bytes whose CRC-32 is `total`; None if it is damaged.

        damaged: called when that comes out only at the end of reading it. Raises
        FileNotFoundError, and OSError where the system cannot open files now.
        """
        file = os.open(path, UNFOLLOWED)
        try:
            found = os.fstat(file)
            identity = (found.st_ino, found.st_mtime_ns)
            if not stat.S_ISREG(found.st_mode) or found.st_size != length:
                return None
            whole = self._whole.get(path) == identity
            if length <= IN_MEMORY:
                content = _read_all(file, length)
                if not whole and crc32(content) != total:
                    return None
                self._remember(path, identity)
                return content
            if not whole and length <= CHECKED_FIRST:
                if _sum(file) != total:
                    return None
                whole = True
                self._remember(path, identity)
            body, file = io.FileIO(file), -1
        finally:
            if file >= 0:
                os.close(file)
        if whole:
            return io.BufferedReader(body, _CHUNK)
        checked = CheckedBody(body, length, total, lambda: self._remember(path, identity), damaged)
        return io.BufferedReader(checked, _CHUNK)

    def _remember(self, path: str, identity: tuple[int, int]) -> None:
        if len(self._whole) >= _REMEMBERED:
            self._whole.clear()
        self._whole[path] = identity


class CheckedBody(io.RawIOBase):
    """A body file that is summed up while it is read from start to end.

    If the sum is wrong, the read that would give the last bytes raises `DamagedBody`. A reader
    that leaves the straight way (`seek`) gets what is there.
    """

    def __init__(
        self, file: io.FileIO, length: int, total: int, whole: Callable[[], None], damaged: Callable[[], None]
    ) -> None:
        self._file = file
        self._left = length
        self._total = total
        self._sum: int | None = 0
        self._when_whole = whole
        self._when_damaged = damaged

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        count = self._file.readinto(view)
        if self._sum is not None:
            self._sum = crc32(view[:count], self._sum)
            self._left -= count
            if self._left <= 0 or count == 0:
                self._settle()
        return count

    def _settle(self) -> None:
        if self._left != 0 or self._sum != self._total:
            self._sum = None
            self._when_damaged()
            raise DamagedBody("a stored body is damaged: what was read of it is not to be trusted")
        self._sum = None
        self._when_whole()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._sum = None
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()
        super().close()


def _read_all(file: int, length: int) -> bytes:
    content = os.read(file, length)
    while len(content) < length and (more := os.read(file, length - len(content))):
        content += more
    return content


def _sum(file: int) -> int:
    """The CRC-32 of all of `file`, which is left at its start."""
    total = 0
    while chunk := os.read(file, _CHUNK):
        total = crc32(chunk, total)
    os.lseek(file, 0, os.SEEK_SET)
    return total
