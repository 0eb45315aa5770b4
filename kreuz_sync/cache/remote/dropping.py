"""How records go: one, all of a URI, or all there are.

A record is dropped when its group does not know it any more. What is left of it then nobody finds,
and its body stays for a while, for those who still read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kreuz_sync.cache.store import StoreTrouble

from . import scripts
from .index import Index
from .names import GROUP, Names, text
from .outgoing import LINGER
from .records import body_name
from .wire import Server, Step

# How long, in ms, it is remembered that a group was dropped: what was asked for before that is not stored.
_REMEMBERED = b"%d" % 600_000


class Dropper:
    """Drops records from the server, and from the list of them."""

    def __init__(self, server: Server, names: Names, index: Index) -> None:
        self._server = server
        self._names = names
        self._index = index

    def drop(self, *keys: str, value: bytes = b"") -> int:
        """Drop records, which stay on the list; how many there were. value: what they must have, if it is given."""
        places = [self._names.place(key) for key in keys]
        answers = self._run([Step(scripts.DROP, place[:2], (place.field, value)) for place in places])
        dropped = [(place.group, its) for place, its in zip(places, answers, strict=True) if its is not None]
        self._run(self.letting_go(*dropped))
        return len(dropped)

    def letting_go(self, *records: tuple[bytes, bytes]) -> list[Step]:
        """Lets the bodies go that records of these groups, with these values, had beside them."""
        bodies = (self._names.body(group, name) for group, value in records if (name := body_name(value)))
        return [Step(scripts.LET_GO, (body,), (LINGER,)) for body in bodies]

    def delete(self, key: str) -> bool:
        """See `CacheStore.delete`."""
        if not self.drop(key):
            return False
        self._server.run(self._index.unlisting((key, b"")))
        return True

    def forget(self, key: str, value: bytes) -> None:
        """Drop a record that cannot be used, if it still has `value`."""
        with suppress(StoreTrouble):
            self.drop(key, value=value)
            self._server.run(self._index.unlisting((key, value)))

    def delete_under(self, prefix: str) -> int:
        """See `CacheStore.delete_under`. A whole group goes in one step, whether it is on the list or not."""
        if len(prefix) != GROUP:
            return sum(self.delete(key) for page in self._index.pages() for key in page if key.startswith(prefix))
        group = self._names.place(prefix).group
        (found,) = self._server.run(self._dropping(group))
        records, steps = self._rest_of(group, found)
        if records:
            gone = ((prefix + text(field[1:]), value) for field, value in records)
            self._run([*steps, self._index.unlisting(*gone)])
        return len(records)

    def clear(self) -> int:
        """See `CacheStore.clear`. What is not on the list is looked for among all keys that the server has."""
        count = self.clear_list()
        for names in self._server.scan(self._names.pattern):
            count += self._sweep(names)
        return count

    def clear_list(self) -> int:
        """Drop all that is on the list; how many there were."""
        count = 0
        while keys := self._index.take():
            count += self.drop(*keys)
        return count

    def _sweep(self, names: Iterable[bytes]) -> int:
        kinds: dict[bytes, list[bytes]] = {b"g": [], b"r": [], b"b": []}
        for name in names:
            kinds[self._names.kind(name)].append(name)
        answers = self._run([self._dropping(group) for group in kinds[b"g"]])
        count = 0
        steps = [Step(b"UNLINK", (record,)) for record in kinds[b"r"]]
        steps += [Step(scripts.LET_GO, (body,), (LINGER,)) for body in kinds[b"b"]]
        for group, found in zip(kinds[b"g"], answers, strict=True):
            records, rest = self._rest_of(group, found)
            count += len(records)
            steps += rest
        self._run(steps)
        return count

    def _dropping(self, group: bytes) -> Step:
        return Step(scripts.DROP_GROUP, (group,), (_REMEMBERED,))

    def _rest_of(self, group: bytes, found: list[bytes]) -> tuple[list[tuple[bytes, bytes]], list[Step]]:
        """The field and value of each record that a group had, and the steps that take away what is left of them."""
        records = [(field, value) for field, value in zip(found[::2], found[1::2], strict=True) if field[:1] == b":"]
        steps = [Step(b"UNLINK", (self._names.record(group, field),)) for field, _ in records]
        return records, steps + self.letting_go(*((group, value) for _, value in records))

    def _run(self, steps: list[Step]) -> list[Any]:
        return self._server.run(*steps) if steps else []
