"""A body on its way back: all at once, or piece by piece while it is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn
from zlib import crc32

from kreuz_sync.cache.store import Body, DamagedBody, StoreTrouble
from kreuz_sync.clock import SYSTEM_CLOCK

from . import scripts
from .records import Facts
from .wire import Server, Step

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

IN_MEMORY = 2**20  # bytes: up to this length a body is handed out as bytes
LINGER_S = 60.0  # how long a body stays that no record has any more, for those who still read it
LINGER = b"%d" % (LINGER_S * 1000)
_HOLD_EVERY_S = LINGER_S / 4  # how often a slow reader says that it still reads
_BUFFER = 2**16


def open_body(server: Server, key: bytes, facts: Facts, gone: Callable[[], None]) -> Body | None:
    """The body under `key` of the server, None if it is not there, or damaged. gone: called if that shows later."""
    if facts.length <= IN_MEMORY:
        (pieces,) = server.run(Step(b"HMGET", (key,), tuple(b"%d" % number for number in range(facts.pieces))))
        content = b"".join(piece or b"" for piece in pieces)
        return content if len(content) == facts.length and crc32(content) == facts.total else None
    (first,) = server.run(Step(scripts.OPEN_BODY, (key,), (b"%d" % facts.pieces,)))
    if first is None:
        return None
    return io.BufferedReader(StoredBody(server, key, facts, first, gone), _BUFFER)


class StoredBody(io.RawIOBase):
    """Has one piece in memory at a time.

    If a piece is not there any more, or read from start to end all of them have another sum than
    they should, the read that would give it raises `DamagedBody`.
    """

    def __init__(self, server: Server, key: bytes, facts: Facts, first: bytes, gone: Callable[[], None]) -> None:
        self._server = server
        self._key = key
        self._facts = facts
        self._when_gone = gone
        self._at = 0
        self._sum = 0
        self._summed = 0  # pieces, from the first one on
        self._held_at = SYSTEM_CLOCK.monotonic()
        self._number, self._piece = 0, b""
        self._take(0, first)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        found = self._here()[: len(view)]
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def readall(self) -> bytes:
        found = []
        while data := self._here():
            found.append(bytes(data))
            self._at += len(data)
        return b"".join(found)

    def _here(self) -> memoryview:
        """What is at hand, or now fetched, from the position on."""
        self._checkClosed()
        if not 0 <= self._at < self._facts.length:
            return memoryview(b"")
        number, offset = divmod(self._at, self._facts.piece)
        if number != self._number:
            self._take(number, self._fetch(number))
        return memoryview(self._piece)[offset:]

    def _fetch(self, number: int) -> bytes | None:
        steps = [Step(b"HGET", (self._key,), (b"%d" % number,))]
        now = SYSTEM_CLOCK.monotonic()
        if now - self._held_at > _HOLD_EVERY_S:
            self._held_at = now
            steps.insert(0, Step(scripts.HOLD, (self._key,), (LINGER,)))
        found: bytes | None = self._server.run(*steps)[-1]
        return found

    def _take(self, number: int, piece: bytes | None) -> None:
        facts = self._facts
        if piece is None or len(piece) != min(facts.piece, facts.length - number * facts.piece):
            self._fail("a stored body is gone: it was evicted, or what replaced it is too old")
        if number == self._summed:
            self._sum = crc32(piece, self._sum)
            self._summed += 1
            if self._summed == facts.pieces and self._sum != facts.total:
                self._fail("a stored body is damaged: what was read of it is not to be trusted")
        self._number, self._piece = number, piece

    def _fail(self, problem: str) -> NoReturn:
        with suppress(StoreTrouble):
            self._when_gone()
        raise DamagedBody(problem)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._facts.length}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._piece = b""
        super().close()
