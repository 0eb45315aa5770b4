"""The body files of a folder: how they come in, where they lie, and how leftovers go."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from kreuz_sync.cache.store import Body

from .connect import DATABASE
from .incoming import BodyFile, TakenAway, remove_if_dead
from .layout import BODY_NAME
from .outgoing import BodyReader

# diskcache's `check` leaves alone what has the database's name in its path.
_INCOMING = f"{DATABASE}-incoming"
_CHUNK = 2**18
_SWEPT_AT_ONCE = 256  # files, about 2 ms


class Bodies:
    """A body is written in the folder of incoming ones, and moves to one of 256 others with its row."""

    def __init__(self, folder: str, disk: Any) -> None:
        self._folder = folder
        self._incoming = os.path.join(folder, _INCOMING)
        self._disk = disk
        self._reader = BodyReader()

    def new(self) -> BodyFile:
        """An empty one, to be closed."""
        os.makedirs(self._incoming, 0o700, exist_ok=True)
        for _ in range(10):
            with suppress(TakenAway):
                return BodyFile(self._incoming)
        return BodyFile(self._incoming)

    def place(self) -> tuple[str, str]:
        """A name for a body, as its row has it, and the path of that."""
        name, path = self._disk.filename()
        return name, path

    @contextmanager
    def receive(self, body: Body, room: int) -> Iterator[bytes | BodyFile]:
        """`body` as bytes if there are at most `room` of them, else as a file."""
        if not isinstance(body, bytes):
            ours = self._ours(body)
            if ours is not None and ours.measure()[0] > room:
                yield ours
                return
        first, rest = (body, None) if isinstance(body, bytes) else (_read_up_to(body, room + 1), body)
        if len(first) <= room:
            yield first
            return
        with self.new() as file:
            file.write(first)
            while rest is not None and (chunk := rest.read(_CHUNK)):
                file.write(chunk)
            yield file

    def _ours(self, body: BinaryIO) -> BodyFile | None:
        """The file of a `spool()` that nobody has used yet: it need not be copied."""
        if not isinstance(body, io.BufferedRandom) or not isinstance(body.raw, BodyFile):
            return None
        file = body.raw
        body.flush()
        is_here = os.path.dirname(file.path) == self._incoming
        return file if is_here and not file.kept and body.tell() == 0 else None

    def open(self, name: str, length: int, total: int, damaged: Callable[[], None]) -> Body | None:
        """See `BodyReader.open`."""
        return self._reader.open(os.path.join(self._folder, name), length, total, damaged)

    def sweep(self, is_kept: Callable[[str], bool]) -> None:
        """Remove what killed processes left: all they were writing, and part of what had no row yet or no more.

        The work is bounded, so the latter are looked for in one folder of the 256. is_kept:
        whether a row has this name.
        """
        for name in _list(self._incoming)[:_SWEPT_AT_ONCE]:
            remove_if_dead(os.path.join(self._incoming, name), lambda: False)
        part = f"{random.randrange(256):02x}"
        names = _list(os.path.join(self._folder, part))
        self._sweep(part, random.sample(names, min(len(names), _SWEPT_AT_ONCE)), is_kept)

    def sweep_all(self, is_kept: Callable[[str], bool]) -> None:
        """The same, with no bound."""
        for name in _list(self._incoming):
            remove_if_dead(os.path.join(self._incoming, name), lambda: False)
        for part in (f"{number:02x}" for number in range(256)):
            path = os.path.join(self._folder, part)
            self._sweep(part, _list(path), is_kept)
            with suppress(OSError):
                os.rmdir(path)

    def _sweep(self, part: str, names: list[str], is_kept: Callable[[str], bool]) -> None:
        for name in (f"{part}/{name}" for name in names):
            if BODY_NAME.fullmatch(name):
                remove_if_dead(os.path.join(self._folder, name), lambda name=name: is_kept(name))


def _read_up_to(body: BinaryIO, count: int) -> bytes:
    content = body.read(count)
    while len(content) < count and (more := body.read(count - len(content))):
        content += more
    return content


def _list(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []
