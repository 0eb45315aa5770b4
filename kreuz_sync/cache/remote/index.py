"""The list of all records: in what order they were used, how large they are, and which have to go.

It is a list and no more: that a record is there, or not, only its group says. A record that is not
on it (it was evicted, or a writer was killed in between) is still given out, and goes by its time
to live; one that is on it and gone, goes from it in its turn, or when somebody lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kreuz_sync.clock import SYSTEM_CLOCK

from . import scripts
from .names import Names, raw, text
from .secret import Secret
from .uses import Uses
from .wire import Server, Step

_AT_ONCE = 500  # records that go in one step
_PAGE = 500  # keys of a listing that are asked for together


class Limits(NamedTuple):
    """records: 0 for any number. size: bytes, None for any. ttl: milliseconds as text, empty for ever."""

    records: int
    size: int | None
    ttl: bytes


class Listed(NamedTuple):
    """What came of a change. is_other: the server has another secret. gone: the keys of what has to go."""

    is_other: bool
    gone: list[str]


class Index:
    """The list of one namespace, and the watch over its secret: a server that was begun anew is given ours again."""

    def __init__(self, server: Server, names: Names, limits: Limits, secret: Secret) -> None:
        self._server = server
        self._keys = (names.uses, names.facts)
        self._secret_key = names.secret
        self._limits = limits
        self._secret = secret
        self._uses = Uses()

    def note(self, key: str) -> None:
        """The record under `key` was read."""
        now = SYSTEM_CLOCK.monotonic()
        if self._uses.note(key, now):
            self._server.run(self.listing())

    def listing(self, key: str = "", value: bytes = b"", size: int | None = None) -> Step:
        """Tells what was read, and lists the record of `size` bytes that was put under `key`, if there is one."""
        limits = self._limits
        counts = (b"%d" % limits.records, b"%d" % (limits.size or 0), b"%d" % _AT_ONCE)
        what = (raw(key), value, b"" if size is None else b"%d" % size)
        words = (self._secret.ours, limits.ttl, *counts, *what, *self._uses.take(SYSTEM_CLOCK.monotonic()))
        return Step(scripts.LIST, (*self._keys, self._secret_key), words)

    @staticmethod
    def read(answer: list[Any]) -> Listed:
        """What the answer to such a step says."""
        is_other, *gone = answer
        return Listed(bool(is_other), [text(key) for key in gone])

    def unlisting(self, *gone: tuple[str, bytes]) -> Step:
        """Takes keys off the list that have these values there, or any where that is empty."""
        words = [word for key, value in gone for word in (raw(key), value)]
        return Step(scripts.UNLIST, self._keys, tuple(words))

    def take(self) -> list[str]:
        """Take those off the list that were used longest ago: which, and none if it is empty."""
        (keys,) = self._server.run(Step(scripts.TAKE, self._keys, (b"%d" % _AT_ONCE,)))
        return [text(key) for key in keys]

    def pages(self) -> Iterator[list[str]]:
        """All keys in the order of their last use, in pieces, each once though they be used meanwhile."""
        self._server.run(self.listing())
        seen: set[bytes] = set()
        start, size = b"-inf", _PAGE
        while True:
            step = Step(scripts.PAGE, self._keys[:1], (start, b"%d" % size))
            (answer,) = self._server.run(step)
            page = [key for key in answer[::2] if key not in seen]
            seen.update(page)
            if page:
                yield [text(key) for key in page]
            if len(answer) < 2 * size:
                return
            # Those with the last one's moment come again; if all of a page have the same, a larger one goes on.
            size = size if page else 2 * size
            start = answer[-1]

    def count(self) -> int:
        """How many are listed."""
        return int(self._server.run(Step(b"ZCARD", self._keys[:1]))[0])

    def volume(self) -> int:
        """Their bytes."""
        return max(0, int(self._server.run(Step(b"HGET", self._keys[1:], (b"total",)))[0] or 0))
