"""The contract of a store: where the counters are."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .usage import Usage


class CounterStore(ABC):
    """Counts hits by key, in windows that begin with a key's first hit.

    One store may serve many rate limits and many threads. What `increment` does to one key is
    one step: no two hits get the same number, and none is lost.

    is_shared: whether several processes count together in it.
    """

    is_shared: bool = False

    @abstractmethod
    def increment(self, key: str, window: float) -> Usage:
        """Count one hit of `key`, and say how many its window has now and when it ends.

        A key that has no window, or whose window has ended (at its very end too), begins one of
        `window` seconds with this hit, and `used` is 1. A window under way keeps its end, whatever
        `window` says: the length is no part of the key. No hit moves the end, and hits beyond a
        limit count like any other.

        `key` is a scoped key (`scope.scoped_key`): text of bounded length, to be taken as it is.
        Raises StoreUnavailable if the hit could not be counted, and nothing else.
        """

    def close(self) -> None:  # noqa: B027 - not every store has something to close
        """Give back what the store itself has opened. By default there is nothing."""
