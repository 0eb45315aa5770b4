"""Sessions with a cache, for tests: on a clock that only the test moves, over a store that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from kreuz_sync import Cache, CacheStore, MemoryStore, Session
from kreuz_sync.cache import Record, StoreTrouble
from kreuz_sync.cache.store import Body

from .fakes import FakeClock

# Cache-Control of answers that are fresh for a minute, and of ones that must be validated.
FRESH = {"Cache-Control": "max-age=60"}
NO_STORE = {"Cache-Control": "no-store"}


class WatchedStore(CacheStore):
    """A MemoryStore that lists what was asked of it. trouble: what every call raises, None for nothing."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.inner = MemoryStore()
        self.calls: list[str] = []
        self.trouble = trouble
        self.failing: frozenset[str] | None = None  # the methods that fail; None for all

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if self.trouble is not None and (self.failing is None or name in self.failing):
            raise self.trouble

    def read(self, key: str) -> Record | None:
        self._note("read")
        return self.inner.read(key)

    def write(self, key: str, head: bytes, body: Body) -> None:
        self._note("write")
        self.inner.write(key, head, body)

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        self._note("rewrite_head")
        return self.inner.rewrite_head(key, head, expected)

    def delete(self, key: str) -> bool:
        self._note("delete")
        return self.inner.delete(key)

    def delete_under(self, prefix: str) -> int:
        self._note("delete_under")
        return self.inner.delete_under(prefix)

    def keys(self) -> Iterator[str]:
        self._note("keys")
        return self.inner.keys()

    def clear(self) -> int:
        self._note("clear")
        return self.inner.clear()

    def __len__(self) -> int:
        return len(self.inner)

    def volume(self) -> int:
        return self.inner.volume()

    def spool(self) -> BinaryIO:
        self._note("spool")
        return self.inner.spool()

    def secret(self) -> bytes:
        self._note("secret")
        return self.inner.secret()


def locked() -> StoreTrouble:
    return StoreTrouble("the database is locked")


def clock() -> FakeClock:
    """One that stands in the middle of a second: what comes without a Date gets one in whole seconds."""
    return FakeClock(wall=1_800_000_000.5)


def rfc(**settings: Any) -> Cache:
    """A cache in memory that does what the origin says, on a clock of its own unless one is given."""
    settings.setdefault("clock", clock())
    return Cache(settings.pop("store", MemoryStore()), policy="rfc9111", **settings)


def ttl(seconds: float = 60.0, **settings: Any) -> Cache:
    """A cache in memory that keeps everything for so long."""
    settings.setdefault("clock", clock())
    return Cache(settings.pop("store", MemoryStore()), ttl=seconds, **settings)


def caching(cache: Cache, **settings: Any) -> Session:
    """A session without pace around `cache`."""
    settings.setdefault("throttle", None)
    settings.setdefault("timeout", 10.0)
    return Session(cache=cache, **settings)
