"""How a record is read: from memory, or from its row, and a large body from its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kreuz_sync.cache.store import Record
from kreuz_sync.cache.tier import Held, MemoryTier
from kreuz_sync.clock import SYSTEM_CLOCK

from . import statements
from .bodies import Bodies
from .change import read_row
from .layout import BODY_NAME
from .readers import Readers
from .uses import Uses


class Reading:
    """One SELECT for a record, or none.

    met_damage: called for a record that cannot be used; with its key and the name of its body
    file where that comes out only as the body is read, so that it can be dropped.
    """

    def __init__(
        self,
        readers: Readers,
        bodies: Bodies,
        tier: MemoryTier | None,
        uses: Uses,
        met_damage: Callable[..., None],
    ) -> None:
        self._readers = readers
        self._bodies = bodies
        self._tier = tier
        self._uses = uses
        self._met_damage = met_damage

    def read(self, key: str) -> Record | None:
        """The record under `key`, or None; a use of it."""
        held = self._from_disk(key) if self._tier is None else self._from_memory(self._tier, key)
        if held is None:
            return None
        self._uses.note(held.row, SYSTEM_CLOCK.monotonic())
        return held.record

    def _from_memory(self, tier: MemoryTier, key: str) -> Held | None:
        held = tier.get(key)
        if held is None and not tier.is_absent(key):
            slot, mark = tier.mark(key)  # before the record is read, not after
            held = self._from_disk(key, lambda: tier.put_absent(key, slot, mark))
            if held is not None:
                tier.put(key, held, slot, mark)
        return held

    def _from_disk(self, key: str, is_absent: Callable[[], None] | None = None) -> Held | None:
        for _ in range(2):
            rows: list[Any] = self._readers.rows(statements.FIND, (key,))
            if not rows:
                if is_absent is not None:
                    is_absent()
                return None
            rowid, mode, name, value = rows[0]
            try:
                record = self._record(key, mode, name, value)
            except FileNotFoundError:
                continue  # replaced or evicted since the row was read: look once more
            if record is None:
                break
            return Held(record, rowid)
        self._met_damage()
        return None

    def _record(self, key: str, mode: object, name: object, value: object) -> Record | None:
        row = read_row(key, mode, name, value)
        if row is None:
            return None
        if row.body is not None:
            return Record(row.head, row.body)
        if not isinstance(name, str) or not BODY_NAME.fullmatch(name):
            return None
        body = self._bodies.open(name, row.body_length, row.body_sum, lambda: self._met_damage(key, name))
        return None if body is None else Record(row.head, body)
