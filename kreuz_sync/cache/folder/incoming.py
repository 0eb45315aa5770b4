"""A body on its way into the folder: a file that goes away unless it is kept."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, Any
from zlib import crc32

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed by others
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class TakenAway(OSError):
    """Another process took a new file for a dead one, in the moment before it was locked."""


class BodyFile(io.FileIO):
    """A new file in `folder`, readable and writable by its owner alone, locked for as long as it is open.

    The lock (flock) says that somebody is at work on it: it ends with the process, however that
    ends, and then the file is nobody's (see `remove_if_dead`). kept: whether closing it leaves it there.
    """

    def __init__(self, folder: str) -> None:
        self.kept = False
        self._process = os.getpid()
        self._sum: int | None = 0
        self._end = 0
        self.path = os.path.join(folder, os.urandom(16).hex())
        super().__init__(self.path, "x+", opener=_private)
        if not self._lock():
            self.close()
            raise TakenAway(f"{self.path} was taken away while it was made")

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of `data`, whatever the system takes at a time."""
        left = memoryview(data).cast("B")
        self._follow(left)
        count = len(left)
        while left:
            left = left[super().write(left) or 0 :]
        return count

    def truncate(self, size: int | None = None, /) -> int:
        self._sum = None
        return super().truncate(size)

    def measure(self) -> tuple[int, int]:
        """The length, and the CRC-32, of all that was written."""
        length = os.fstat(self.fileno()).st_size
        if self._sum is None or self._end != length:
            self._sum = self._sum_up()
            self._end = length
        return length, self._sum

    def _sum_up(self) -> int:
        at, total = self.tell(), 0
        self.seek(0)
        while chunk := self.read(2**18):
            total = crc32(chunk, total)
        self.seek(at)  # a buffer around this file relies on it
        return total

    def move(self, path: str) -> None:
        """Give the file its place, where it is still nobody's until it is kept."""
        if fcntl is None:
            self._close_only()  # Windows does not move a file that is open
        try:
            os.rename(self.path, path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            os.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        if not self.closed:
            self._close_only()
        # A child that inherited it at a fork leaves it to its parent.
        if not self.kept and self._process == os.getpid():
            self.kept = True
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _close_only(self) -> None:
        super().close()

    def _follow(self, data: memoryview) -> None:
        """Sum up what is appended; what is written elsewhere makes the sum unknown."""
        at = self.tell()
        if self._sum is not None and at == self._end:
            self._sum = crc32(data, self._sum)
            self._end += len(data)
        else:
            self._sum = None

    def _lock(self) -> bool:
        """False if a sweep was faster."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(self.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no locks on this file system: then there are no sweeps either
        return os.fstat(self.fileno()).st_nlink > 0


def remove_if_dead(path: str, is_kept: Any) -> bool:
    """Remove the file at `path` if nobody is at work on it and `is_kept()` is false; whether it was."""
    if fcntl is None:
        return False
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Asked for under the lock: whoever had it before has put the file in a row by now, or never will.
            if not is_kept():
                os.unlink(path)
                return True
        finally:
            os.close(file)
    return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
