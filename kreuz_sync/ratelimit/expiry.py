"""Whose windows are over: keys in batches, so that each can be dropped when its time has come.

Not thread-safe: its store's lock guards it. No clock: `now` is an argument.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

# Windows of one length that begin within this share of it end up in one batch, and are dropped
# together: a key is held that much longer than it counts, and costs 9 bytes here.
SHARE = 1 / 16


class Batch:
    """Keys whose windows of `window` seconds are all over at `due`. Open for more until `closes`."""

    __slots__ = ("closes", "due", "keys", "window")

    def __init__(self, window: float, now: float) -> None:
        self.window = window
        self.closes = now + window * SHARE
        self.due = self.closes + window
        self.keys: list[str] = []

    def __lt__(self, other: Batch) -> bool:
        return self.due < other.due


class Expiry:
    """The batches of one store. next_due: when the first of them is over, `inf` for none."""

    __slots__ = ("_heap", "_open", "next_due")

    def __init__(self) -> None:
        self.next_due = inf
        self._heap: list[Batch] = []
        self._open: dict[float, Batch] = {}  # by window length: the last one begun

    def add(self, key: str, window: float, now: float) -> None:
        """Note that `key` began a window of `window` seconds at `now`."""
        batch = self._open.get(window)
        if batch is None or now >= batch.closes:
            batch = Batch(window, now)
            heappush(self._heap, batch)  # first: what a fork or an interrupt leaves half done loses no key
            self._open[window] = batch
            self.next_due = self._heap[0].due
        batch.keys.append(key)

    def pop(self) -> str | None:
        """Take a key out of the first batch; None for the batch itself, once it is empty.

        Its window was over at `next_due`, unless it has begun another since, which stands in a
        later batch. For stores that have seen that moment only.
        """
        batch = self._heap[0] if self._heap else None
        if batch is not None and batch.keys:
            return batch.keys.pop()
        if batch is not None:
            heappop(self._heap)
            if self._open.get(batch.window) is batch:
                del self._open[batch.window]
        self.next_due = self._heap[0].due if self._heap else inf
        return None
