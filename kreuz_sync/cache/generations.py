"""Which URIs were made invalid since a request began: its answer may be older than the change, and is not stored."""

from __future__ import annotations

import threading
from collections import OrderedDict

REMEMBERED = 4096  # URIs


class Generations:
    """A count of changes, and which of them was the last to each URI.

    It remembers a bounded number of URIs. A request that began before the oldest change it still
    knows of is taken to be outdated, whatever its URI: it is not stored, which does no harm.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()  # guards all of these
        self._count = 0
        self._forgotten = 0
        self._changed: OrderedDict[str, int] = OrderedDict()

    def now(self) -> int:
        """The moment at which a request begins."""
        return self._count

    def change(self, uri: str) -> None:
        """What was asked for at `uri` until now is outdated."""
        with self._lock:
            self._count += 1
            self._changed[uri] = self._count
            self._changed.move_to_end(uri)
            if len(self._changed) > self._remembered:
                self._forgotten = self._changed.popitem(last=False)[1]

    def is_outdated(self, uri: str, began: int) -> bool:
        """Whether `uri` was changed after the moment `began`."""
        if began == self._count:  # nothing was
            return False
        with self._lock:
            return began < self._forgotten or self._changed.get(uri, 0) > began

    def clear(self) -> None:
        """Everything that was asked for until now is outdated."""
        with self._lock:
            self._count += 1
            self._forgotten = self._count
            self._changed.clear()

    def after_fork(self) -> None:
        """In a child: a thread that is gone may hold the lock."""
        self._lock = threading.Lock()
