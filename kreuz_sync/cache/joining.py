"""A part on its way into the store, where it is put together with what is there.

Bodies that are small are joined in memory, others in a file of the store's, so that memory stays
flat. Two calls that join something at the same moment may lose the part of one of them, which
is then asked for again.
"""

from __future__ import annotations

import io
import shutil
from contextlib import suppress
from typing import BinaryIO

from . import parts
from .capture import IN_MEMORY
from .exchange import Exchange, Times
from .finding import close
from .kept import Kept, is_fresh
from .spans import Span
from .store import Body, DamagedBody, Record
from .stored import Stored
from .trouble import READING, WRITING
from .validation import Nominee
from .workings import Tools

_PIECE = 2**18  # bytes


class Joiner:
    """Stores the 206 that answers `exchange`.

    most: bytes of an entry, None for any number. now: Unix seconds.
    """

    def __init__(self, exchange: Exchange, tools: Tools, *, most: int | None, now: float) -> None:
        self.exchange = exchange
        self.keeper = tools.keeper
        self.finder = tools.finder
        self.url = tools.keys.canonical(exchange.ask.url)
        self.most = most
        self.now = now

    def keep(self, stored: Stored, body: Body) -> bool:
        """Store a part, and what it completes; whether what it brought is stored now."""
        came = parts.placed(stored, self.exchange.ask.get("range"))
        if came is None:
            return False
        key = self.keeper.key_for(self.exchange.key, came)
        found = self.finder.kept(key, self.url)
        if found is None:
            return self.keeper.keep(self.exchange, came, body)
        record, kept = found
        try:
            return self._keep_beside(key, record, kept, came, body)
        finally:
            close(record)

    def _keep_beside(self, key: str, record: Record, kept: Kept, came: Stored, body: Body) -> bool:
        """Store `came`, where `record` is under its key already."""
        held = kept.stored
        both = None if kept.entry is None else parts.together(held, came)
        if both is None:
            return not self._is_better(kept) and self.keeper.keep(self.exchange, came, body)
        if both == parts.span_of(held):  # all of it is there, and still holds
            times = Times(came.request_time, came.response_time, came.elapsed)
            self.keeper.freshen(self.exchange, Nominee(key, None, None, 0.0), record, kept, came.fields, times)
            return True
        if self.most is not None and both.size > self.most:
            return False
        head = parts.combined(held, came, both)
        if both.size == came.size:
            return self.keeper.keep(self.exchange, head, body)
        return self._keep_joined(head, both, (held, record.body), (came, body))

    def _is_better(self, kept: Kept) -> bool:
        """Whether what is there is of more use than a part that it cannot be joined with."""
        return kept.stored.status != parts.PARTIAL and kept.entry is not None and is_fresh(kept.entry, self.now)

    def _keep_joined(self, head: Stored, both: Span, held: tuple[Stored, Body], came: tuple[Stored, Body]) -> bool:
        file = io.BytesIO() if both.size <= IN_MEMORY else self.keeper.store.spool()
        if file is None:
            return False
        try:
            if not self._join(file, held, came, both.size):
                return False
            body: Body = file.getvalue() if isinstance(file, io.BytesIO) else file
            return self.keeper.keep(self.exchange, head, body)
        finally:
            with suppress(Exception):  # what a full disk has not taken yet, it does not take now
                file.close()

    def _join(self, file: BinaryIO, held: tuple[Stored, Body], came: tuple[Stored, Body], size: int) -> bool:
        """Write both bodies into `file`: all of what is held, and of what came what lies before and behind it.

        Whether that went well, and they are `size` bytes.
        """
        mine, its = parts.span_of(held[0]), parts.span_of(came[0])
        assert mine is not None
        assert its is not None
        old, new = _opened(held[1]), _opened(came[1])
        try:
            _copy(new, file, mine.first - its.first)
            shutil.copyfileobj(old, file, _PIECE)  # to its very end, where it would turn out to be damaged
            if its.end > mine.end:
                new.seek(mine.end - its.first)
                shutil.copyfileobj(new, file, _PIECE)
            is_sound = file.tell() == size
            file.seek(0)
        except Exception as error:
            self.keeper.store.failed(READING if isinstance(error, DamagedBody) else WRITING, error)
            return False
        return is_sound


def _copy(source: BinaryIO, file: BinaryIO, size: int) -> None:
    while size > 0 and (piece := source.read(min(size, _PIECE))):
        file.write(piece)
        size -= len(piece)


def _opened(body: Body) -> BinaryIO:
    return io.BytesIO(body) if isinstance(body, bytes) else body
