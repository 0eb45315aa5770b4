"""The store of one's own that the documentation shows keeps what every store promises, but for limits of its size."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync import Cache, CacheStore
from kreuz_sync.cache import StoreTrouble

from .cache_sessions import caching
from .loopback import answer
from .store_contract import MakeStore, StoreContract

PAGE = Path(__file__).resolve().parent.parent / "docs" / "caching.md"


def shown() -> Any:
    """The class in the documentation."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(import os\nimport sqlite3\n.*?)^session = ", text, re.M | re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["InOneFile"]


class TestInOneFile(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        numbers = count()

        def make() -> CacheStore:
            store: CacheStore = shown()(tmp_path / f"{next(numbers)}.sqlite")
            return store

        return make

    # It has no limits, notes no use, remembers no record, and a file is not copied with its object.
    test_the_least_recently_used_goes_first = None
    test_a_record_that_was_read_goes_too_when_its_turn_comes = None
    test_a_new_head_counts_as_use = None
    test_zero_is_any_number = None
    test_bytes_are_limited_too = None
    test_one_large_record_pushes_out_many_small_ones = None
    test_what_is_larger_than_the_limit_is_not_kept = None
    test_any_sequence_of_uses_ends_as_the_model_does = None
    test_the_limit_holds_under_threads = None
    test_an_impossible_limit_is_refused = None
    test_keys_come_in_the_order_of_their_last_use = None
    test_the_same_record_is_given_again = None
    test_a_copy_has_the_same_limits = None
    test_fifty_threads_lose_nothing = None  # each of its 5,000 changes waits for the disk

    def test_another_session_finds_what_one_stored(self, tmp_path: Path, server: Any) -> None:
        url = server.route("/page", answer(body="page"))
        for expected in (False, True):
            with caching(Cache(shown()(tmp_path / "answers.sqlite"))) as session:
                assert session.get(url).from_cache is expected

    def test_what_goes_wrong_is_trouble_of_the_store(self, tmp_path: Path) -> None:
        with pytest.raises(StoreTrouble, match="no-such-folder"):
            shown()(tmp_path / "no-such-folder" / "answers.sqlite")
