"""The store in memory, and the arithmetic that it and the memory tier share."""

from __future__ import annotations

import io
import random
from collections import OrderedDict
from typing import Any

import pytest

from kreuz_sync.cache.lru import Lru
from kreuz_sync.cache.memory import MemoryStore
from kreuz_sync.cache.store import CacheStore

from .store_contract import MakeStore, StoreContract, content, fill


class TestMemoryStore(StoreContract):
    """All that every store promises."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        def make(**limits: Any) -> CacheStore:
            return MemoryStore(**limits)

        return make

    def test_it_does_not_touch_the_disk(self) -> None:
        """A body on its way in is held in memory too."""
        assert isinstance(MemoryStore().spool(), io.BytesIO)

    def test_a_body_from_a_file_is_kept_as_bytes(self) -> None:
        store = MemoryStore()
        store.write("key", b"head", io.BytesIO(b"x" * 3_000_000))
        record = store.read("key")
        assert record is not None and isinstance(record.body, bytes)

    def test_by_default_it_is_bounded(self) -> None:
        store = MemoryStore()
        assert store.max_entries == 10_000
        assert store.max_bytes == 256 * 2**20

    def test_a_copy_is_empty(self) -> None:
        import copy

        store = MemoryStore()
        fill(store, "a")
        assert len(copy.deepcopy(store)) == 0

    def test_a_child_goes_on_with_what_there_was(self) -> None:
        store = MemoryStore()
        fill(store, "a")
        store.after_fork()
        assert content(store.read("a")) == b"x" * 10

    def test_a_child_begins_anew_where_a_thread_was_in_the_middle_of_a_change(self) -> None:
        """That thread is not in the child, and its lock would never be released."""
        store = MemoryStore()
        fill(store, "a")
        store._lock.acquire()
        store.after_fork()
        assert store.read("a") is None

    def test_it_shows_its_limits(self) -> None:
        assert repr(MemoryStore(max_entries=5, max_bytes=None)) == "MemoryStore(max_entries=5, max_bytes=None)"


class TestLru:
    """What is used longest ago goes first, and the sizes always add up."""

    @pytest.mark.parametrize("seed", range(10))
    def test_it_does_as_a_plain_list_would(self, seed: int) -> None:
        draw = random.Random(seed)
        most, most_bytes = draw.choice([(0, None), (3, None), (0, 50), (4, 50)])
        lru: Lru[int] = Lru(most, most_bytes)
        plain: OrderedDict[str, tuple[int, int]] = OrderedDict()
        for step in range(400):
            key, size = str(draw.randrange(8)), draw.randrange(1, 60)
            if draw.random() < 0.5:
                plain.pop(key, None)
                kept = most_bytes is None or size <= most_bytes
                if kept:
                    plain[key] = (step, size)
                while (most and len(plain) > most) or (
                    most_bytes is not None and sum(size for _, size in plain.values()) > most_bytes
                ):
                    plain.popitem(last=False)
                assert lru.put(key, step, size) is kept
            elif draw.random() < 0.7:
                if key in plain:
                    plain.move_to_end(key)
                assert lru.get(key) == plain.get(key, (None,))[0]
            else:
                assert lru.drop(key) == (plain.pop(key, None) is not None)
            assert list(lru) == list(plain)
            assert lru.volume == sum(size for _, size in plain.values())

    def test_clearing_tells_how_many(self) -> None:
        lru: Lru[int] = Lru(0, None)
        lru.put("a", 1, 5)
        assert (lru.clear(), len(lru), lru.volume) == (1, 0, 0)
