"""Doubles for tests of rate limits: stores that note what they are asked, and fail when told to."""

from __future__ import annotations

from kreuz_sync.ratelimit import CounterStore, MemoryStore, StoreUnavailable, Usage
from tests.fakes import FakeClock


class NotingStore(CounterStore):
    """A memory store that lists what it was asked to count, and is out while `out` is True."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.counters = MemoryStore(clock=clock or FakeClock())
        self.asked: list[tuple[str, float]] = []
        self.out = False

    def increment(self, key: str, window: float) -> Usage:
        self.asked.append((key, window))
        if self.out:
            raise StoreUnavailable("test_store_error", "key 'tok9' at 10.0.0.9 is out", "unplugged")
        return self.counters.increment(key, window)


class SayingStore(CounterStore):
    """A store that says what it is told to, whatever that is, and raises what is an exception."""

    def __init__(self, said: object) -> None:
        self.said = said

    def increment(self, key: str, window: float) -> Usage:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said  # type: ignore[return-value]
