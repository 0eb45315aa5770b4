"""A body on its way to the server, in pieces."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO
from zlib import crc32

from kreuz_sync.cache.store import StoreTrouble

from . import scripts
from .records import ID, Facts
from .wire import Server, Step

# How long, in ms, pieces stay that are nobody's yet; each new one gives them all as long again. What a killed writer
# leaves goes by that.
_UNCLAIMED = b"%d" % 60_000


class Sent:
    """A body that is nobody's until a record has its name. key_of: gives the key of the server for a name.

    piece: bytes that are sent at once.
    """

    def __init__(self, server: Server, key_of: Callable[[bytes], bytes], piece: int) -> None:
        self.name = os.urandom(ID)
        self.key = key_of(self.name)
        self._server = server
        self._piece = piece
        self._length = self._sum = self._count = 0

    @property
    def facts(self) -> Facts:
        """Of what was sent."""
        return Facts(self._length, self._sum, self._piece)

    def send(self, first: bytes, rest: BinaryIO | None, most: int | None) -> bool:
        """Send all of a body: what was read of it already, and what comes after that.

        False if it is larger than `most` bytes. Then, or if something goes wrong, nothing of it stays.
        """
        try:
            while first and (most is None or self._length + len(first) <= most):
                self._add(first[: self._piece])
                first = first[self._piece :]
                if rest is not None and len(first) < self._piece:
                    first += read_up_to(rest, self._piece - len(first))
        except BaseException:
            self.withdraw()
            raise
        if first:
            self.withdraw()
        return not first

    def withdraw(self) -> None:
        """Remove what is there of it."""
        if self._count:
            with suppress(StoreTrouble):
                self._server.run(Step(b"UNLINK", (self.key,)))

    def _add(self, content: bytes) -> None:
        self._server.run(Step(scripts.ADD_PIECE, (self.key,), (b"%d" % self._count, content, _UNCLAIMED)))
        self._sum = crc32(content, self._sum)
        self._length += len(content)
        self._count += 1


def read_up_to(body: BinaryIO, size: int) -> bytes:
    """The next `size` bytes; fewer at the end."""
    try:
        content = body.read(size)
        while len(content) < size and (more := body.read(size - len(content))):
            content += more
    except OSError as error:
        raise StoreTrouble(f"a body cannot be read: {error}") from error
    return content
