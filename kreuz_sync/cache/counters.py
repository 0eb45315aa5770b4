"""How often what happened."""

from __future__ import annotations

import threading
from typing import NamedTuple


class Statistics(NamedTuple):
    """Counts since the cache was made, or since `reset`.

    hits: answers from the store, without a word to the origin; stale_hits: those of them that
    were stale. validated: stored answers that the origin confirmed, or completed. rescued: stored
    answers in place of an error. collapsed: answers that another request for the same brought.
    misses: answers of the origin. stored: answers that were stored. refused: `only-if-cached` that
    found nothing. bypassed: requests that had nothing to do with the cache. invalidated: URLs that
    a change made invalid. refreshed: stored answers renewed in the background. store_failures:
    times the store could not do its work.
    """

    hits: int = 0
    stale_hits: int = 0
    validated: int = 0
    rescued: int = 0
    collapsed: int = 0
    misses: int = 0
    stored: int = 0
    refused: int = 0
    bypassed: int = 0
    invalidated: int = 0
    refreshed: int = 0
    store_failures: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of calls that were answered without the origin; 0.0 before the first."""
        spared = self.hits + self.collapsed
        calls = spared + self.validated + self.rescued + self.misses
        return spared / calls if calls else 0.0


class Counters:
    """The counts, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _counts
        self._counts = dict.fromkeys(Statistics._fields, 0)

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            self._counts[name] += count

    def snapshot(self) -> Statistics:
        with self._lock:
            return Statistics(**self._counts)

    def reset(self) -> None:
        with self._lock:
            self._counts = dict.fromkeys(Statistics._fields, 0)

    def after_fork(self) -> None:
        """In a child: a thread that is gone may hold the lock."""
        self._lock = threading.Lock()
