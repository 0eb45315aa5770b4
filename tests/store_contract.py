"""What every store promises, as a test class that each store's tests inherit."""

from __future__ import annotations

import copy
import io
import pickle
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kreuz_sync.cache.store import CacheStore, Record

SMALL = b"body"
MIDDLE = bytes(range(256)) * 400  # 100 KiB: in a file, where a store has files, and handed out as bytes
LARGE = bytes(range(256)) * 12_000  # 3 MiB: handed out as a file
SIZES = pytest.mark.parametrize("body", [b"", SMALL, MIDDLE, LARGE], ids=["empty", "small", "middle", "large"])

MakeStore = Callable[..., CacheStore]


def content(record: Record | None) -> bytes:
    """The whole body of a record that must be there."""
    assert record is not None
    if isinstance(record.body, bytes):
        return record.body
    with record.body as file:
        return file.read()


def fill(store: CacheStore, *keys: str, size: int = 10) -> None:
    for key in keys:
        store.write(key, b"head of " + key.encode(), b"x" * size)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(0)` to `work(count - 1)` at once, and raise what any of them raised."""
    barrier = threading.Barrier(count)
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(20)
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]


class Model:
    """The least recently used, as plainly as it can be written."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()

    def read(self, key: str) -> tuple[bytes, bytes] | None:
        if key in self.kept:
            self.kept.move_to_end(key)
        return self.kept.get(key)

    def write(self, key: str, head: bytes, body: bytes) -> None:
        self.kept.pop(key, None)
        self.kept[key] = (head, body)
        while len(self.kept) > self.most:
            self.kept.popitem(last=False)

    def rewrite_head(self, key: str, head: bytes) -> bool:
        if key not in self.kept:
            return False
        self.write(key, head, self.kept[key][1])
        return True

    def delete(self, key: str) -> bool:
        return self.kept.pop(key, None) is not None


class StoreContract:
    """A subclass gives the fixture `make_store`, which makes a new, empty store with the limits it is given."""

    @pytest.fixture
    def store(self, make_store: MakeStore) -> Iterator[CacheStore]:
        store = make_store()
        yield store
        store.close()

    # --- a record comes back as it was ---

    @SIZES
    def test_what_was_written_is_read(self, store: CacheStore, body: bytes) -> None:
        store.write("key", b"head", body)
        record = store.read("key")
        assert record is not None and record.head == b"head"
        assert content(record) == body

    @SIZES
    def test_a_body_may_come_from_a_file(self, store: CacheStore, body: bytes) -> None:
        """It is read from its position to its end, and stays open."""
        file = io.BytesIO(b"skipped" + body)
        file.seek(7)
        store.write("key", b"head", file)
        assert content(store.read("key")) == body
        assert not file.closed

    def test_what_was_never_written_is_absent(self, store: CacheStore) -> None:
        assert store.read("key") is None

    @pytest.mark.parametrize("head", [b"", b"\0\xff" * 50, b"h" * 20_000], ids=["empty", "binary", "long"])
    def test_a_head_is_any_bytes(self, store: CacheStore, head: bytes) -> None:
        store.write("key", head, SMALL)
        record = store.read("key")
        assert record is not None and record.head == head and content(record) == SMALL

    @pytest.mark.parametrize("key", ["", "a/../b", "a\0b", "'; DROP TABLE Cache; --", "ключ", "\U0001f511", "k" * 5000])
    def test_a_key_is_any_text(self, store: CacheStore, key: str) -> None:
        store.write(key, b"head", SMALL)
        store.write("other", b"other", b"other")
        assert content(store.read(key)) == SMALL
        assert set(store.keys()) == {key, "other"}
        assert store.delete(key)

    @pytest.mark.parametrize("before", [SMALL, MIDDLE])
    @pytest.mark.parametrize("after", [b"after", MIDDLE[::-1]])
    def test_a_second_write_replaces_the_first(self, store: CacheStore, before: bytes, after: bytes) -> None:
        store.write("key", b"first", before)
        store.write("key", b"second", after)
        record = store.read("key")
        assert record is not None and record.head == b"second" and content(record) == after
        assert len(store) == 1

    def test_what_nobody_made_invalid_is_not_too_old(self, store: CacheStore) -> None:
        for age, body in ((0.0, SMALL), (1e6, MIDDLE)):
            assert store.write_if_current("key", b"head", body, age) is True
            assert content(store.read("key")) == body

    def test_a_record_outlives_its_replacement(self, store: CacheStore) -> None:
        """Somebody still reads the old body while a new one comes."""
        store.write("key", b"head", LARGE)
        old = store.read("key")
        store.write("key", b"head", b"new")
        store.clear()
        assert content(old) == LARGE

    def test_the_same_record_is_given_again(self, store: CacheStore) -> None:
        """What the layer noted on it, a decoded head, is still there."""
        store.write("key", b"head", SMALL)
        first = store.read("key")
        assert first is not None
        first.parsed = "decoded"
        again = store.read("key")
        assert again is not None and again.parsed == "decoded"

    def test_a_new_record_is_not_the_old_one(self, store: CacheStore) -> None:
        store.write("key", b"head", SMALL)
        old = store.read("key")
        assert old is not None
        old.parsed = "decoded"
        store.rewrite_head("key", b"new head")
        new = store.read("key")
        assert new is not None and new.parsed is None
        assert (old.head, new.head) == (b"head", b"new head")

    # --- a body on its way in ---

    @SIZES
    def test_a_spool_becomes_the_body(self, store: CacheStore, body: bytes) -> None:
        with store.spool() as file:
            for start in range(0, len(body), 70_000):
                file.write(body[start : start + 70_000])
            file.seek(0)
            store.write("key", b"head", file)
        assert content(store.read("key")) == body

    @pytest.mark.parametrize("length", [5000, len(MIDDLE)])
    def test_a_spool_may_be_written_in_any_order(self, store: CacheStore, length: int) -> None:
        body = MIDDLE[:length]
        with store.spool() as file:
            file.write(b"?" * length)
            file.seek(0)
            file.write(body[:1000])
            file.flush()
            file.write(body[1000:])
            file.seek(0)
            assert file.read(5) == body[:5]
            file.seek(0)
            store.write("key", b"head", file)
        assert content(store.read("key")) == body

    def test_a_spool_may_be_cut_short(self, store: CacheStore) -> None:
        with store.spool() as file:
            file.write(LARGE)
            file.truncate(len(MIDDLE))
            file.seek(0)
            store.write("key", b"head", file)
        assert content(store.read("key")) == LARGE[: len(MIDDLE)]

    def test_a_spool_can_be_written_under_two_keys(self, store: CacheStore) -> None:
        with store.spool() as file:
            file.write(MIDDLE)
            for key in ("a", "b"):
                file.seek(0)
                store.write(key, b"head", file)
        store.delete("a")
        assert content(store.read("b")) == MIDDLE

    # --- heads ---

    @SIZES
    def test_a_new_head_keeps_the_body(self, store: CacheStore, body: bytes) -> None:
        store.write("key", b"head", body)
        assert store.rewrite_head("key", b"a longer head than that") is True
        record = store.read("key")
        assert record is not None and record.head == b"a longer head than that" and content(record) == body

    def test_a_head_without_a_record_is_not_kept(self, store: CacheStore) -> None:
        assert store.rewrite_head("key", b"head") is False
        assert store.read("key") is None

    @pytest.mark.parametrize("body", [SMALL, MIDDLE])
    def test_a_head_can_be_made_to_fit_one_record_only(self, store: CacheStore, body: bytes) -> None:
        """Between a read and a new head somebody may have put another body there."""
        store.write("key", b"theirs", body)
        assert store.rewrite_head("key", b"new", b"mine") is False
        assert store.rewrite_head("key", b"new", b"theirs") is True
        record = store.read("key")
        assert record is not None and record.head == b"new"

    # --- gone ---

    @SIZES
    def test_what_was_deleted_is_absent(self, store: CacheStore, body: bytes) -> None:
        store.write("key", b"head", body)
        content(store.read("key"))
        assert store.delete("key") is True
        assert store.read("key") is None
        assert store.delete("key") is False
        assert (len(store), store.volume()) == (0, 0)

    def test_all_that_begins_alike_goes_together(self, store: CacheStore) -> None:
        keys = ["ab", "ab.1", "ab.2~3", "ab\U0010fffe", "a", "abc"[:1] + "c", "b.ab", "AB"]
        fill(store, *keys)
        assert store.delete_under("ab") == 4
        assert sorted(store.keys()) == sorted(["a", "ac", "b.ab", "AB"])
        assert store.delete_under("ab") == 0

    def test_clearing_tells_how_many(self, store: CacheStore) -> None:
        fill(store, *map(str, range(30)))
        store.write("file", b"head", MIDDLE)
        assert store.clear() == 31
        assert (len(store), store.volume(), list(store.keys())) == (0, 0, [])
        assert store.clear() == 0

    # --- counting and listing ---

    def test_it_counts_records_and_bytes(self, store: CacheStore) -> None:
        assert (len(store), store.volume()) == (0, 0)
        store.write("a", b"head", SMALL)
        store.write("b", b"head", LARGE)
        assert len(store) == 2
        assert len(LARGE) <= store.volume() <= len(LARGE) + 200

    def test_keys_come_in_the_order_of_their_last_use(self, store: CacheStore) -> None:
        fill(store, "a", "b", "c", "d")
        store.read("b")
        store.rewrite_head("a", b"head")
        fill(store, "c")
        assert list(store.keys()) == ["d", "b", "a", "c"]

    @pytest.mark.parametrize("bodies", [True, False])
    def test_records_come_with_their_keys(self, store: CacheStore, bodies: bool) -> None:
        """In the same order. Without their bodies, if a store would have to fetch these."""
        store.write("b", b"head of b", MIDDLE)
        fill(store, "a")
        found = {key: (record.head, content(record)) for key, record in store.records(bodies=bodies)}
        assert list(found) == ["b", "a"]
        assert [head for head, _ in found.values()] == [b"head of b", b"head of a"]
        assert not bodies or found["b"][1] == MIDDLE

    def test_each_key_comes_once_though_the_store_is_used_meanwhile(self, store: CacheStore) -> None:
        """More keys than one piece of the listing, and uses that move them behind its end."""
        names = [f"{number:04}" for number in range(1200)]
        fill(store, *names)
        seen = []
        for key in store.keys():
            seen.append(key)
            if len(seen) % 100 == 0:
                fill(store, "0003", f"{1199 - len(seen):04}")
            if len(seen) == 150:
                store.delete("0900")
        assert len(seen) == len(set(seen))
        assert set(names) - set(seen) <= {"0900"}

    # --- the limits ---

    def test_the_least_recently_used_goes_first(self, make_store: MakeStore) -> None:
        store = make_store(max_entries=3)
        fill(store, "a", "b", "c")
        store.read("a")
        fill(store, "d")
        assert store.read("b") is None
        assert len(store) == 3
        assert sorted(store.keys()) == ["a", "c", "d"]
        store.close()

    def test_a_record_that_was_read_goes_too_when_its_turn_comes(self, make_store: MakeStore) -> None:
        """Nor is it answered from a memory that the limit does not reach."""
        store = make_store(max_entries=2)
        fill(store, "a")
        store.read("a")
        store.read("a")
        fill(store, "b", "c")
        assert store.read("a") is None
        store.close()

    def test_a_new_head_counts_as_use(self, make_store: MakeStore) -> None:
        store = make_store(max_entries=2)
        fill(store, "a", "b")
        store.rewrite_head("a", b"head")
        fill(store, "c")
        assert (store.read("a") is None, store.read("b") is None) == (False, True)
        store.close()

    def test_zero_is_any_number(self, make_store: MakeStore) -> None:
        store = make_store(max_entries=0)
        fill(store, *map(str, range(300)))
        assert len(store) == 300
        store.close()

    @pytest.mark.parametrize("size", [100, 20_000])
    def test_bytes_are_limited_too(self, make_store: MakeStore, size: int) -> None:
        store = make_store(max_entries=0, max_bytes=10 * size)
        fill(store, *map(str, range(50)), size=size)
        assert 8 * size <= store.volume() <= 10 * size
        assert list(store.keys())[-1] == "49"
        store.close()

    def test_one_large_record_pushes_out_many_small_ones(self, make_store: MakeStore) -> None:
        store = make_store(max_entries=0, max_bytes=50_000)
        fill(store, *map(str, range(40)), size=1000)
        store.write("large", b"head", b"x" * 40_000)
        assert store.volume() <= 50_000
        assert content(store.read("large")) == b"x" * 40_000
        assert len(store) <= 11
        store.close()

    def test_what_is_larger_than_the_limit_is_not_kept(self, make_store: MakeStore) -> None:
        """And what was there before is not left in its place, nor is anything else pushed out."""
        store = make_store(max_bytes=50_000)
        fill(store, "key", "other")
        store.write("key", b"head", MIDDLE)
        assert store.read("key") is None
        assert list(store.keys()) == ["other"]
        store.close()

    @pytest.mark.parametrize("seed", range(6))
    def test_any_sequence_of_uses_ends_as_the_model_does(self, make_store: MakeStore, seed: int) -> None:
        draw = random.Random(seed)
        most = draw.choice([1, 2, 5, 20])
        store, model = make_store(max_entries=most), Model(most)
        for step in range(300):
            key = str(draw.randrange(most * 2 + 2))
            action = draw.choice(["read", "read", "read", "write", "write", "head", "delete", "reopen"])
            if action == "read":
                record, wanted = store.read(key), model.read(key)
                assert (record and (record.head, content(record))) == wanted
            elif action == "write":
                body = b"%d" % step * draw.choice([1, 1, 1, 5000])
                store.write(key, b"%d" % step, body)
                model.write(key, b"%d" % step, body)
            elif action == "head":
                assert store.rewrite_head(key, b"new %d" % step) == model.rewrite_head(key, b"new %d" % step)
            elif action == "delete":
                assert store.delete(key) == model.delete(key)
            elif draw.random() < 0.2:
                self.reopen(store)
            assert len(store) == len(model.kept)
        assert list(store.keys()) == list(model.kept)
        store.close()

    def reopen(self, store: CacheStore) -> None:
        """Close `store`; what it keeps must not change by that. The next use opens it again."""
        store.close()

    # --- threads ---

    @pytest.mark.slow
    def test_fifty_threads_lose_nothing(self, store: CacheStore) -> None:
        """Each thread does a hundred things, with keys of its own and with one that all share."""

        def work(number: int) -> None:
            for step in range(25):
                key, body = f"{number}.{step}", f"{number}/{step}".encode() * 20
                store.write(key, b"head", body)
                assert content(store.read(key)) == body
                store.write("shared", body[:100], body)
                record = store.read("shared")
                assert record is not None and content(record)[:100] == record.head

        in_threads(50, work)
        assert len(store) == 50 * 25 + 1
        for number in range(50):
            assert content(store.read(f"{number}.24")) == f"{number}/24".encode() * 20

    def test_the_limit_holds_under_threads(self, make_store: MakeStore) -> None:
        store = make_store(max_entries=20)
        in_threads(10, lambda number: fill(store, *(f"{number}.{step}" for step in range(40))))
        assert len(store) == len(list(store.keys())) == 20
        store.close()

    # --- the object ---

    def test_a_closed_store_opens_again(self, store: CacheStore) -> None:
        store.close()
        store.close()
        store.write("key", b"head", SMALL)
        assert content(store.read("key")) == SMALL

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
    def test_a_copy_has_the_same_limits(self, make_store: MakeStore, copied: Callable[[Any], Any]) -> None:
        """And its own locks and connections: used at once, the two do not get in each other's way."""
        store = make_store(max_entries=3, max_bytes=10**6)
        fill(store, "a")
        other = copied(store)
        fill(other, "a", "b", "c", "d")
        assert (other.max_entries, other.max_bytes, len(other)) == (3, 10**6, 3)
        other.close()
        store.close()

    def test_it_has_a_secret(self, store: CacheStore) -> None:
        secret = store.secret()
        assert len(secret) == 32
        store.close()
        assert store.secret() == secret

    def test_two_stores_have_two_secrets(self, make_store: MakeStore) -> None:
        one, other = make_store(), make_store()
        assert one.secret() != other.secret()
        one.close()
        other.close()

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("max_entries", -1, ValueError),
            ("max_entries", "many", TypeError),
            ("max_entries", 1.5, TypeError),
            ("max_entries", True, TypeError),
            ("max_bytes", 0, ValueError),
            ("max_bytes", "1 GiB", TypeError),
        ],
    )
    def test_an_impossible_limit_is_refused(
        self, make_store: MakeStore, name: str, value: object, kind: type[Exception]
    ) -> None:
        """The error names the argument and its value."""
        with pytest.raises(kind, match=f"{name}={value!r}"):
            make_store(**{name: value})
