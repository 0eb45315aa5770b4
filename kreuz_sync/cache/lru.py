"""A mapping that forgets what was used longest ago. Arithmetic only: whoever shares one guards it with a lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Lru(Generic[Kept]):
    """At most `max_entries` things (0: any number) of at most `max_bytes` together (None: any size).

    Everything takes the same time however much is kept. volume: bytes of all that is kept.
    """

    def __init__(self, max_entries: int, max_bytes: int | None) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.volume = 0
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        """The keys, least recently used first."""
        return iter(self._kept)

    def get(self, key: str) -> Kept | None:
        """What is kept under `key`, which counts as a use of it."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: str, thing: Kept, size: int) -> bool:
        """Keep `thing`, of `size` bytes, in place of what is there; False if it alone is too large."""
        self.drop(key)
        if self.max_bytes is not None and size > self.max_bytes:
            return False
        self._kept[key] = (thing, size)
        self.volume += size
        while self._is_over():
            _, (_, freed) = self._kept.popitem(last=False)
            self.volume -= freed
        return True

    def drop(self, key: str) -> bool:
        """Forget what is under `key`; False if there was nothing."""
        found = self._kept.pop(key, None)
        if found is None:
            return False
        self.volume -= found[1]
        return True

    def clear(self) -> int:
        """Forget all; how many there were."""
        count = len(self._kept)
        self._kept.clear()
        self.volume = 0
        return count

    def _is_over(self) -> bool:
        too_many = 0 < self.max_entries < len(self._kept)
        return too_many or (self.max_bytes is not None and self.volume > self.max_bytes)
