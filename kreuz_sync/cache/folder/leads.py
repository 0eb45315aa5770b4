"""Which of the processes that use a folder leads for a key: it asks, and the others wait for what it brings.

Each key has a lock of its own, on one of the 2^56 bytes that a file could have: nobody waits for another key.
The file itself holds 1,024 notes of 8 bytes: who leads, or led last, for one of the keys that share it. They are there
for those who wait, and may be lost or wrong: then these wait a little longer, or ask once too often.

    digest of the key, 7 bytes | 7 bits that tell one leader from the next, and 1: it has not ended

A process that is killed leaves such a note without a lock, and so it shows that nothing was brought.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import suppress
from hashlib import blake2b

from kreuz_sync import fork

from .ranges import Ranges

_NOTES = 1024
_NOTE = 8  # bytes
_turns = itertools.count(os.getpid())


class LeadsFile:
    """The file at `path`, once for each process: see `ranges.py`. held: by key's digest, who has the lock here."""

    def __init__(self, path: str) -> None:
        self.ranges = Ranges(path)
        weakref.finalize(self, os.close, self.ranges.file)
        found = os.fstat(self.ranges.file)
        self.identity = (found.st_dev, found.st_ino)
        self.held: dict[int, object] = {}  # each step on it is atomic
        self._usable = hasattr(os, "pread")  # without positioned reads (Windows) there are no notes
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        """In a child, which has no lock of its parent's."""
        self.held = {}

    def note(self, digest: int) -> bytes:
        """Who leads for a key, or led last; empty if that is not known."""
        if not self._usable:
            return b""
        with suppress(OSError):
            note = os.pread(self.ranges.file, _NOTE, digest % _NOTES * _NOTE)
            if note[:-1] == digest.to_bytes(_NOTE - 1, "little"):
                return note
        return b""

    def put_note(self, digest: int, turn: int, *, ended: bool) -> None:
        """Say who leads for a key. A disk that is full is no reason not to lead."""
        if self._usable:
            note = digest.to_bytes(_NOTE - 1, "little") + bytes([turn % 128 << 1 | (not ended)])
            with suppress(OSError):
                os.pwrite(self.ranges.file, note, digest % _NOTES * _NOTE)


class FileLead:
    """The lead for one key, once `begin` has said so. See `kreuz_sync.cache.store.Lead`.

    Where an interrupt loses it, it ends by itself.
    """

    __slots__ = ("_digest", "_file", "_process", "_token", "_turn", "is_taken_over")

    def __init__(self, file: LeadsFile, digest: int) -> None:
        self.is_taken_over = False
        self._file = file
        self._digest = digest
        self._turn = next(_turns)
        self._token = object()
        self._process = os.getpid()

    def begin(self) -> bool:
        """False if somebody else leads, in this process or another."""
        file, digest = self._file, self._digest
        if file.held.setdefault(digest, self._token) is not self._token:
            return False
        if not file.ranges.lock(digest):
            del file.held[digest]
            return False
        note = file.note(digest)
        self.is_taken_over = _is_under_way(note)
        if self.is_taken_over:  # whoever waited for the one before waits for this one
            self._turn = note[-1] >> 1
        else:
            file.put_note(digest, self._turn, ended=False)
        return True

    def end(self) -> None:
        if self._process != os.getpid() or self._file.held.get(self._digest) is not self._token:
            return
        self._file.put_note(self._digest, self._turn, ended=True)
        self._file.ranges.unlock(self._digest)
        del self._file.held[self._digest]  # not before: the lock says nothing within this process

    def __del__(self) -> None:
        self.end()


class Leads:
    """The leads in one folder, in the file at `path`."""

    def __init__(self, path: str) -> None:
        self._file = _files.at(path)

    def take(self, key: str) -> FileLead | bytes:
        """See `CacheStore.lead`."""
        digest = int.from_bytes(blake2b(key.encode(), digest_size=_NOTE - 1).digest(), "little")
        lead = FileLead(self._file, digest)
        if lead.begin():
            return lead
        note = self._file.note(digest)
        return note if _is_under_way(note) else b""


class _Files:
    """All that are open in this process."""

    def __init__(self) -> None:
        self._open: weakref.WeakValueDictionary[tuple[int, int], LeadsFile] = weakref.WeakValueDictionary()
        self.after_fork()
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        """In a child: a thread that is gone may hold the lock."""
        self._lock = threading.Lock()  # guards _open

    def at(self, path: str) -> LeadsFile:
        with self._lock:
            with suppress(OSError):
                found = os.stat(path)
                if (known := self._open.get((found.st_dev, found.st_ino))) is not None:
                    return known
            file = LeadsFile(path)
            return self._open.setdefault(file.identity, file)


_files = _Files()


def _is_under_way(note: bytes) -> bool:
    return bool(note and note[-1] & 1)
