"""What a store of responses promises, whichever it is.

A store keeps *records* under string keys: a head (a few hundred bytes that it does not look
into) and a body. It knows nothing of HTTP. Its promises, the same for every store, are one test
class that each store's tests inherit:

- A record is there whole or not at all, whatever happens while it is written: threads,
  processes, kill -9, a full disk.
- `read` gives None for what is absent, damaged or foreign, and never runs code that it finds.
- Trouble (locked, read-only, full) raises `StoreTrouble` and nothing else; the layer makes a miss
  and one warning of it. Waiting for a lock is bounded well below a request's time-out. A write
  that fails leaves what was there, or nothing.
- At most `max_entries` records (and `max_bytes`, where given) are kept; the least recently used
  go first. Reading does not write: recency is noted in memory and put down in batches.
- All methods may be called by any thread, and after a fork. Closing releases everything; a closed
  store opens again when it is used.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, Protocol

Body = bytes | BinaryIO


class StoreTrouble(Exception):
    """The store could not do its work now: locked, full, read-only, gone."""


class DamagedBody(StoreTrouble):
    """A body that was already being read turned out, at its end, not to be the one that was stored."""


class Record:
    """What a store gives back: the head, and the body in memory or as an open file.

    body: bytes, or a binary file positioned at its start that the reader must close; it stays
    whole though the record be replaced or dropped meanwhile. A file too large to be checked
    before it is handed out is checked as it is read: the read that would end it raises
    `DamagedBody` instead, and the record is dropped. parsed: a place for the layer to keep the
    decoded head as long as the record is in memory. A record may be given to several readers at
    once: nobody changes its head or body.
    """

    __slots__ = ("body", "head", "parsed")

    def __init__(self, head: bytes, body: Body) -> None:
        self.head = head
        self.body = body
        self.parsed: object | None = None


class Lead(Protocol):
    """Says that its holder asks for what is to be kept under a key, and that others had better wait for it.

    It ends with `end`, when it is dropped, or with the process that has it, however that ends.
    """

    @property
    def is_taken_over(self) -> bool:
        """Whether the one before was never ended: its holder died."""

    def end(self) -> None:
        """Let others lead; the second time does nothing. Never raises."""


class CacheStore(ABC):
    """An interface for stores; subclass it to keep responses elsewhere."""

    @abstractmethod
    def read(self, key: str) -> Record | None:
        """The record under `key`, or None."""

    @abstractmethod
    def write(self, key: str, head: bytes, body: Body) -> None:
        """Keep a record under `key`, in place of what is there. A file is read from its position to its end."""

    def write_if_current(self, key: str, head: bytes, body: Body, age: float) -> bool:
        """`write`, unless what begins with the key's first 32 characters was dropped within `age` seconds.

        Whether it was written. Another process may have made invalid (`delete_under`) what this one
        has asked for `age` seconds ago, and then the answer may be from before that. A store that is
        shared should know of it; this one takes it that nobody did.
        """
        self.write(key, head, body)
        return True

    @abstractmethod
    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        """Put another head before the body under `key`; False if there is no such record.

        expected: the head that must be there now, or else nothing is done and False returned:
        the record may have been replaced since it was read, by one with another body.
        """

    @abstractmethod
    def delete(self, key: str) -> bool:
        """Drop the record under `key`; False if there was none."""

    def delete_under(self, prefix: str) -> int:
        """Drop all records whose keys begin with `prefix`; how many there were.

        This goes through all keys; a store that finds them faster should.
        """
        return sum(self.delete(key) for key in list(self.keys()) if key.startswith(prefix))

    @abstractmethod
    def keys(self) -> Iterator[str]:
        """All keys, each once, least recently used first, in pieces: the store may be used meanwhile.

        A key written meanwhile may be among them or not, and come again if it was dropped first.
        """

    def records(self, *, bodies: bool = True) -> Iterator[tuple[str, Record]]:
        """All records with their keys, in the order of `keys`. Whoever asks closes each one's body.

        bodies: False if these are not wanted; a store that would have to fetch them may leave them empty.
        """
        for key in self.keys():
            record = self.read(key)
            if record is not None:
                yield key, record

    @abstractmethod
    def clear(self) -> int:
        """Drop all records; how many there were."""

    @abstractmethod
    def __len__(self) -> int:
        """How many records there are."""

    @abstractmethod
    def volume(self) -> int:
        """Bytes of all heads and bodies: what a limit in bytes limits."""

    def spool(self) -> BinaryIO:
        """A temporary binary file, on the store's own file system, for a body on its way in.

        For one that is too large to be held in memory. Give it to `write` positioned at its
        start, and close it, which removes it unless it was written.
        """
        import tempfile

        return tempfile.TemporaryFile()

    def secret(self) -> bytes:
        """32 bytes to make keys with, which nobody else has, the same for as long as the records are kept.

        These are this object's own; a store that outlives it, or is shared, must keep them.
        """
        made: bytes = self.__dict__.setdefault("_secret", os.urandom(32))
        return made

    @property
    def has_leads(self) -> bool:
        """Whether processes that share this store can wait for each other's answers: then there is `lead`."""
        return False

    def lead(self, key: str) -> Lead | bytes:
        """The lead for `key`, as long as nobody else has it, in this process or another.

        Otherwise what tells the one who has it from the next, b"" where that is not known. This never
        waits for somebody, and of one key's holder another key knows nothing.
        """
        raise StoreTrouble(f"{type(self).__name__} has no leads")

    @property
    def renewals(self) -> int:
        """How often `secret` has changed since this object was made, since others began the store anew."""
        return 0

    def close(self) -> None:  # noqa: B027 - there may be nothing to release
        """Release what is open."""
