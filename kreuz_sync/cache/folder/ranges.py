"""Locks between processes, one for each number, on bytes of one file: they end with the process, however that ends.

They say nothing among the threads of a process.
"""

from __future__ import annotations

import os
from contextlib import suppress

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_BEHIND = 2**30  # on Windows nobody else can read a byte that is locked, so these are where nothing is
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class PosixRanges:
    """Of fcntl. The bytes need not be there.

    There must be one such object for a file in a process: when any descriptor of the file is
    closed, the process loses all its locks on it. The child of a fork has none of its parent's.
    """

    def __init__(self, path: str) -> None:
        self.file = os.open(path, _FLAGS, 0o600)

    def lock(self, number: int) -> bool:
        """False if another process has it."""
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # which of the two is the system's choice
            return False
        return True

    def unlock(self, number: int) -> None:
        """Let others have it."""
        with suppress(OSError):
            fcntl.lockf(self.file, fcntl.LOCK_UN, 1, number)


class WindowsRanges:
    """Of msvcrt, which locks where the descriptor stands: so each lock has one of its own.

    It counts in 32 bits, so two numbers may be one lock.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._locked: dict[int, int] = {}
        self.file = os.open(path, _FLAGS, 0o600)

    def lock(self, number: int) -> bool:
        """False if somebody else has it."""
        import msvcrt

        file = os.open(self._path, _FLAGS, 0o600)
        try:
            os.lseek(file, _BEHIND + number % _BEHIND, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._locked[number] = file
        return True

    def unlock(self, number: int) -> None:
        """Let others have it."""
        import msvcrt

        file = self._locked.pop(number, None)
        if file is not None:
            with suppress(OSError):  # closing alone would do it at some time
                os.lseek(file, _BEHIND + number % _BEHIND, os.SEEK_SET)
                msvcrt.locking(file, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
            os.close(file)


Ranges = PosixRanges if fcntl is not None else WindowsRanges
