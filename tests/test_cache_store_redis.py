"""The store in Redis: what it promises beyond every store's promises, as long as nothing goes wrong."""

from __future__ import annotations

import copy
import io
import itertools
import logging
import pickle
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, BinaryIO

import pytest

from kreuz_sync import Session
from kreuz_sync.cache import CacheStore, Record, RedisCacheStore
from kreuz_sync.cache.remote import uses
from kreuz_sync.cache.remote.outgoing import IN_MEMORY, LINGER_S
from kreuz_sync.cache.store import DamagedBody

from .redis_server import GivenServer
from .store_contract import LARGE, MIDDLE, SMALL, MakeStore, StoreContract, content, fill, in_threads
from .test_cache_store_disk import run_python

redis = pytest.importorskip("redis")

URI = "0123456789abcdef" * 2  # as long as the digest that all keys for one URI begin with
SECRET = b"s3cret-that-nobody-else-may-have"


@pytest.fixture
def client(redis_server: GivenServer) -> Iterator[Any]:
    with redis_server.client() as client:
        yield client


@pytest.fixture
def store(client: Any, redis_space: str) -> Iterator[RedisCacheStore]:
    with closing(RedisCacheStore(client, namespace=redis_space, memory=0, timeout=5)) as store:
        yield store


def names(client: Any, space: str, kind: str = "") -> list[bytes]:
    """What lies on the server: all of a namespace, or its groups (g), records (r) or bodies (b)."""
    start = f"{space}:cache:" if space else "cache:"
    return sorted(client.scan_iter(match=f"{start}{kind}*"))


def opened(record: Record | None) -> BinaryIO:
    """The body of a large record."""
    assert record is not None and not isinstance(record.body, bytes)
    return record.body


class TestRedisCacheStore(StoreContract):
    """All that every store promises."""

    # Small enough that both what is held and what is not are met, and that MIDDLE is in two pieces.
    memory = 2**20
    chunk = 2**16
    options: dict[str, Any] = {}

    @pytest.fixture
    def make_store(self, redis_server: GivenServer, redis_space: str) -> MakeStore:
        numbers = itertools.count()
        make_client = partial(redis.Redis.from_url, redis_server.url, **self.options)

        def make(**limits: Any) -> CacheStore:
            settings = {"memory": self.memory, "chunk": self.chunk, "timeout": 10, **limits}
            return RedisCacheStore(make_client, namespace=f"{redis_space}.{next(numbers)}", **settings)

        return make


class TestWithoutMemory(TestRedisCacheStore):
    """The same, every record from the server, and no end to how long it stays there."""

    memory = 0

    @pytest.fixture
    def make_store(self, redis_server: GivenServer, redis_space: str) -> MakeStore:
        numbers = itertools.count()
        make_client = partial(redis.Redis.from_url, redis_server.url, protocol=2, decode_responses=True)
        return lambda **limits: RedisCacheStore(
            make_client, namespace=f"{redis_space}.{next(numbers)}", memory=0, ttl=None, timeout=10, **limits
        )

    def test_the_same_record_is_given_again(self, store: CacheStore) -> None:
        """Without memory nobody can remember what was noted on a record."""
        store.write("key", b"head", SMALL)
        assert store.read("key") is not store.read("key")


class TestOnTheServer:
    """What lies there, and for how long."""

    def test_all_names_begin_with_the_namespace(self, store: RedisCacheStore, client: Any, redis_space: str) -> None:
        store.write(f"{URI}.rest", b"head", LARGE)
        store.secret()
        start = f"{redis_space}:cache:".encode()
        found = names(client, redis_space)
        assert len(found) == 6 and all(name.startswith(start) for name in found)
        assert start + b"r{k" + URI.encode() + b"}.rest" in found

    def test_an_empty_namespace_adds_nothing(self, client: Any, redis_space: str) -> None:
        with closing(RedisCacheStore(client)) as store:
            fill(store, redis_space)
            assert client.exists(f"cache:r{{k{redis_space[:32]}}}{redis_space[32:]}")
            store.clear()
        for name in client.scan_iter(match="cache:*"):
            client.delete(name)

    def test_namespaces_keep_apart(self, client: Any, redis_space: str) -> None:
        spaces = [f"{redis_space}.{name}" for name in ("a", "b", "a:cache", "[ab]*")]
        stores = [RedisCacheStore(client, namespace=space) for space in spaces]
        for number, store in enumerate(stores):
            store.write("key", b"head", b"%d" % number)
        assert [content(store.read("key")) for store in stores] == [b"0", b"1", b"2", b"3"]
        assert stores[3].clear() == 1
        assert stores[0].clear() == 1
        assert [content(store.read("key")) for store in stores[1:3]] == [b"1", b"2"]
        for store in stores:
            store.close()

    def test_nothing_stays_for_ever(self, store: RedisCacheStore, client: Any, redis_space: str) -> None:
        """Whatever was done with it."""
        store.secret()
        for key, body in ((f"{URI}.a", SMALL), (f"{URI}.b", LARGE), ("c", LARGE), ("c", LARGE), ("d", SMALL)):
            store.write(key, b"head", body)
        store.rewrite_head("c", b"other")
        store.delete("d")
        store.delete_under(URI)
        content(store.read("c"))
        found = names(client, redis_space)
        assert len(found) > 8
        assert all(0 < client.pttl(name) <= 30 * 24 * 3600 * 1000 for name in found)

    def test_the_time_to_live_begins_anew_with_each_change(self, client: Any, redis_space: str) -> None:
        with closing(RedisCacheStore(client, namespace=redis_space, ttl=1000)) as store:
            store.write("key", b"head", LARGE)
            for name in names(client, redis_space):
                client.pexpire(name, 5000)
            store.rewrite_head("key", b"other")
            assert all(client.pttl(name) > 900_000 for name in names(client, redis_space))

    def test_a_group_lives_as_long_as_the_last_of_its_records(self, client: Any, redis_space: str) -> None:
        left = []
        for ttl in (10, 1000, 10, None, 10):
            with closing(RedisCacheStore(client, namespace=redis_space, ttl=ttl)) as store:
                fill(store, f"{URI}.{ttl}")
                left += map(client.ttl, names(client, redis_space, "g"))
        assert [0 < seconds <= 10 for seconds in left] == [True, False, False, False, False]
        assert [900 < seconds <= 1000 for seconds in left] == [False, True, True, False, False]
        assert left[3:] == [-1, -1]

    def test_what_was_not_used_for_so_long_is_listed_no_more(self, client: Any, redis_space: str) -> None:
        """The server has let the record go, and does not say so."""
        with closing(RedisCacheStore(client, namespace=redis_space, ttl=1000)) as store:
            fill(store, "old", "new")
            client.zincrby(f"{redis_space}:cache:{{index}}:uses", -1_001_000_000, "old")
            fill(store, "other")
            assert (len(store), list(store.keys())) == (2, ["new", "other"])

    def test_the_client_is_used_for_nothing(self, redis_server: GivenServer, redis_space: str) -> None:
        client = redis_server.client()
        store = RedisCacheStore(client, namespace=redis_space)
        fill(store, "key")
        store.close()
        assert content(store.read("key")) == b"x" * 10
        store.close()
        assert client.connection_pool._available_connections == []


class TestBodies:
    """Small ones are with their records, others in pieces beside them."""

    def test_one_that_fits_into_one_piece_is_with_its_record(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        store.write("key", b"head", b"x" * store.chunk)
        assert names(client, redis_space, "b") == []
        store.write("key", b"head", b"x" * (store.chunk + 1))
        (body,) = names(client, redis_space, "b")
        assert [client.hstrlen(body, str(number)) for number in range(3)] == [store.chunk, 1, 0]

    @pytest.mark.parametrize("extra", [-1, 0, 1])
    def test_every_length_comes_back(self, client: Any, redis_space: str, extra: int) -> None:
        with closing(RedisCacheStore(client, namespace=redis_space, chunk=1024)) as store:
            body = bytes(range(256)) * 4 * 3 + b"?"
            body = body[: 3 * 1024 + extra]
            for given in (body, io.BytesIO(body), Trickle(body)):
                store.write("key", b"head", given)  # type: ignore[arg-type]
                assert content(store.read("key")) == body

    def test_a_stream_of_any_length_takes_little_memory(self, store: RedisCacheStore) -> None:
        """On its way in through a spool, and out."""
        chunk, count = bytes(range(256)) * 256, 800
        fill(store, "warm")
        tracemalloc.start()
        try:
            with store.spool() as file:
                for _ in range(count):
                    file.write(chunk)
                file.seek(0)
                store.write("key", b"head", file)
            with opened(store.read("key")) as body:
                length = 0
                while piece := body.read(2**16):
                    length += len(piece)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert length == len(chunk) * count
        assert peak < 3 * 2**20

    def test_any_part_can_be_read(self, store: RedisCacheStore) -> None:
        store.write("key", b"head", LARGE)
        with opened(store.read("key")) as body:
            for start, size in ((1_000_000, 600_000), (5, 10), (len(LARGE) - 3, 10), (len(LARGE) + 5, 1)):
                assert body.seek(start) == start
                assert body.read(size) == LARGE[start : start + size]
            assert body.seek(-4, io.SEEK_END) == len(LARGE) - 4
            assert (body.read(), body.tell()) == (LARGE[-4:], len(LARGE))

    def test_a_closed_one_is_read_no_more(self, store: RedisCacheStore) -> None:
        store.write("key", b"head", LARGE)
        body = opened(store.read("key"))
        body.close()
        with pytest.raises(ValueError, match="closed"):
            body.read(1)

    def test_one_that_nobody_has_any_more_goes_in_a_minute(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        """Replaced, deleted, evicted, cleared, or made invalid."""
        changes = (
            lambda: store.write(URI, b"head", SMALL),
            lambda: store.delete(URI),
            lambda: store.clear(),
            lambda: store.delete_under(URI),
            lambda: RedisCacheStore(client, namespace=redis_space, max_entries=1).write("other", b"head", SMALL),
        )
        for change in changes:
            store.write(URI, b"head", LARGE)
            body = opened(store.read(URI))
            change()
            assert all(0 < client.pttl(name) <= LINGER_S * 1000 for name in names(client, redis_space, "b"))
            assert content(Record(b"", body)) == LARGE

    def test_a_slow_reader_keeps_it_there(
        self, store: RedisCacheStore, client: Any, redis_space: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kreuz_sync.cache.remote.outgoing._HOLD_EVERY_S", 0.0)
        store.write("key", b"head", LARGE)
        with opened(store.read("key")) as body:
            store.delete("key")
            (name,) = names(client, redis_space, "b")
            client.pexpire(name, 3000)
            body.read(2 * store.chunk)
            assert client.pttl(name) > 3000

    def test_pieces_of_a_body_that_was_given_up_are_removed(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        fill(store, "key")
        with pytest.raises(RuntimeError, match="enough"):
            store.write("key", b"head", Trickle(LARGE, ends=RuntimeError("enough")))  # type: ignore[arg-type]
        assert names(client, redis_space, "b") == []
        assert content(store.read("key")) == b"x" * 10

    def test_a_body_larger_than_the_limit_is_not_sent_to_its_end(self, client: Any, redis_space: str) -> None:
        with closing(RedisCacheStore(client, namespace=redis_space, max_bytes=400_000)) as store:
            endless = Trickle(b"x" * 10**8)
            store.write("key", b"head", endless)  # type: ignore[arg-type]
            assert endless.tell() < 10**6
            assert (store.read("key"), names(client, redis_space, "b")) == (None, [])


class Trickle(io.BytesIO):
    """A file that gives little at a time. ends: what it raises in the middle."""

    def __init__(self, data: bytes, ends: Exception | None = None) -> None:
        super().__init__(data)
        self._ends = ends

    def read(self, size: int | None = -1, /) -> bytes:
        if self._ends is not None and self.tell() > 10**6:
            raise self._ends
        return super().read(min(50_000, size or 0))


class TestDamage:
    """What is not as it was stored counts as absent, whoever did that."""

    @pytest.fixture
    def record(self, store: RedisCacheStore, client: Any, redis_space: str) -> bytes:
        fill(store, "key")
        (name,) = names(client, redis_space, "r")
        return name

    @pytest.mark.parametrize("field", ["value", "sum", "head", "facts", "body"])
    @pytest.mark.parametrize("value", [None, b"", b"other", b"1 10 5 0"])
    def test_a_record_that_was_changed(
        self, store: RedisCacheStore, client: Any, record: bytes, field: str, value: bytes | None
    ) -> None:
        client.hdel(record, field) if value is None else client.hset(record, field, value)
        assert store.read("key") is None
        assert (len(store), client.exists(record)) == (0, 0)

    def test_something_else_in_its_place(self, store: RedisCacheStore, client: Any, record: bytes) -> None:
        client.delete(record)
        client.set(record, "a text")
        assert store.read("key") is None
        fill(store, "key")
        assert content(store.read("key")) == b"x" * 10

    def test_something_else_in_place_of_a_group(
        self, store: RedisCacheStore, client: Any, record: bytes, redis_space: str
    ) -> None:
        (group,) = names(client, redis_space, "g")
        client.delete(group)
        client.rpush(group, "a list")
        assert store.read("key") is None

    def test_a_record_that_was_copied_to_another_key(
        self, store: RedisCacheStore, client: Any, record: bytes, redis_space: str
    ) -> None:
        fill(store, "other")
        for kind in "gr":
            client.copy(f"{redis_space}:cache:{kind}{{kkey}}", f"{redis_space}:cache:{kind}{{kother}}", replace=True)
        assert content(store.read("key")) == b"x" * 10
        assert store.read("other") is None

    def test_it_is_told_once(self, store: RedisCacheStore, client: Any, caplog: pytest.LogCaptureFixture) -> None:
        fill(store, "a", "b")
        for name in names(client, store.namespace, "r"):
            client.hset(name, "body", "other")
        assert (store.read("a"), store.read("b")) == (None, None)
        assert [one.levelno for one in caplog.records] == [logging.WARNING]

    def test_a_body_in_pieces_ends_with_an_error(self, store: RedisCacheStore, client: Any, redis_space: str) -> None:
        store.write("key", b"head", LARGE)
        (name,) = names(client, redis_space, "b")
        client.hset(name, "1", b"?" * store.chunk)
        with opened(store.read("key")) as body:
            assert body.read(2**18) == LARGE[: 2**18]
            with pytest.raises(DamagedBody, match="damaged"):
                body.read()
        assert store.read("key") is None

    @pytest.mark.parametrize("body", [MIDDLE * 5, LARGE], ids=["in memory", "streamed"])
    def test_a_body_that_is_not_there(
        self, store: RedisCacheStore, client: Any, redis_space: str, body: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The server evicted it: that is no damage."""
        assert store.chunk < len(body) and (len(body) > IN_MEMORY) is (body is LARGE)
        store.write("key", b"head", body)
        client.delete(*names(client, redis_space, "b"))
        assert store.read("key") is None
        assert (len(store), caplog.records) == (0, [])

    def test_a_body_that_goes_while_it_is_read(self, store: RedisCacheStore, client: Any, redis_space: str) -> None:
        store.write("key", b"head", LARGE)
        with opened(store.read("key")) as body:
            body.read(100)
            client.delete(*names(client, redis_space, "b"))
            with pytest.raises(DamagedBody, match="gone"):
                body.read()
        assert store.read("key") is None

    @pytest.mark.parametrize("which", ["uses", "facts"])
    def test_a_list_of_which_half_is_gone_begins_anew(
        self, store: RedisCacheStore, client: Any, redis_space: str, which: str
    ) -> None:
        """Its records are there all the same, and are found by who clears it all."""
        fill(store, "a", "b")
        store.write(URI, b"head", LARGE)
        client.delete(f"{redis_space}:cache:{{index}}:{which}")
        fill(store, "c")
        assert (len(store), list(store.keys()), store.volume()) == (1, ["c"], 19)
        assert content(store.read("a")) == b"x" * 10
        assert store.clear() == 4
        assert [store.read(key) for key in ("a", "b", "c", URI)] == [None] * 4
        assert names(client, redis_space, "r") == []

    def test_what_the_server_evicted_is_listed_until_somebody_lists_it(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        fill(store, "a", "b")
        client.delete(f"{redis_space}:cache:g{{ka}}")
        assert len(store) == 2
        assert list(store.keys()) == ["b"]
        assert len(store) == 1


class TestSeveralStores:
    """Each with a memory and a list of uses of its own, as on several machines."""

    @pytest.fixture
    def two(self, client: Any, redis_space: str) -> Iterator[tuple[RedisCacheStore, RedisCacheStore]]:
        one, other = (RedisCacheStore(client, namespace=redis_space, max_entries=3, timeout=5) for _ in range(2))
        yield one, other
        one.close()
        other.close()

    Two = tuple[RedisCacheStore, RedisCacheStore]

    def test_a_change_by_another_is_seen_at_once(self, two: Two) -> None:
        """Though the record was in memory."""
        one, other = two
        fill(one, "key")
        assert one.read("key") is one.read("key")
        other.write("key", b"theirs", b"body")
        record = one.read("key")
        assert record is not None and record.head == b"theirs"
        other.rewrite_head("key", b"new")
        record = one.read("key")
        assert record is not None and (record.head, record.body) == (b"new", b"body")
        other.delete("key")
        assert one.read("key") is None

    def test_what_one_has_read_another_does_not_evict(self, two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
        one, other = two
        fill(one, "a", "b", "c")
        one.read("a")
        monkeypatch.setattr(uses, "MOST", 1)
        one.read("b")  # the next one is told at once, with those before
        fill(other, "d")
        assert [store.read("c") for store in two] == [None, None]
        assert sorted(other.keys()) == ["a", "b", "d"]

    def test_telling_of_uses_evicts_nothing(self, two: Two, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Though this one's limit is lower: who stores a record drops what has to go."""
        fill(two[0], "a", "b", "c")
        monkeypatch.setattr(uses, "MOST", 1)
        with closing(RedisCacheStore(client, namespace=two[0].namespace, max_entries=1)) as small:
            small.read("a")
            assert (len(small), list(small.keys())) == (3, ["b", "c", "a"])
            fill(small, "d")
            assert (len(small), list(small.keys())) == (1, ["d"])

    def test_reading_does_not_write(self, two: Two, client: Any) -> None:
        fill(two[0], "a")
        before = client.info("commandstats")
        for _ in range(20):
            two[0].read("a")
        after = client.info("commandstats")
        assert {name for name in after if after[name]["calls"] != before.get(name, {"calls": 0})["calls"]} == {
            *("cmdstat_evalsha", "cmdstat_hget", "cmdstat_hmget", "cmdstat_info")
        }

    def test_what_is_held_is_not_sent_again(self, two: Two, client: Any) -> None:
        two[0].write("key", b"head", b"x" * 200_000)
        two[0].read("key")
        sent = client.info("stats")["total_net_output_bytes"]
        two[0].read("key")
        assert client.info("stats")["total_net_output_bytes"] - sent < 50_000

    def test_a_listing_sends_no_bodies(self, two: Two, client: Any) -> None:
        two[0].write("a", b"head", b"x" * 200_000)
        two[0].write("b", b"head", b"x" * 300_000)
        sent = client.info("stats")["total_net_output_bytes"]
        assert [(key, record.head) for key, record in two[0].records(bodies=False)] == [("a", b"head"), ("b", b"head")]
        assert client.info("stats")["total_net_output_bytes"] - sent < 50_000

    def test_an_answer_from_before_an_invalidation_is_not_stored(self, two: Two) -> None:
        """Another machine has dropped all there is for its URI since it was asked for."""
        one, other = two
        for age, is_kept in ((0.0, True), (5.0, True)):
            assert one.write_if_current(f"{URI}.a", b"head", SMALL, age) is is_kept
        assert other.delete_under(URI) == 1
        for age, is_kept in ((5.0, False), (0.0, True), (600.0, False), (0.0, True)):
            assert one.write_if_current(f"{URI}.b", b"head", LARGE, age) is is_kept
        assert list(one.keys()) == [f"{URI}.b"]
        assert one.write_if_current("f" * 32, b"head", SMALL, 5.0)

    def test_a_body_that_came_for_nothing_is_removed(self, two: Two, client: Any, redis_space: str) -> None:
        two[1].delete_under(URI)
        assert two[0].write_if_current(URI, b"head", LARGE, 5.0) is False
        assert (names(client, redis_space, "b"), len(two[0])) == ([], 0)

    def test_an_invalidation_needs_no_list(self, two: Two, client: Any, redis_space: str) -> None:
        """The server may have evicted that."""
        fill(two[0], URI, f"{URI}.a", f"{URI}.a~b")
        client.delete(*names(client, redis_space, "{index}"))
        assert two[1].delete_under(URI) == 3
        assert [two[0].read(key) for key in (URI, f"{URI}.a", f"{URI}.a~b")] == [None] * 3
        assert names(client, redis_space, "r") == []


class TestSecret:
    """One for all who share a namespace."""

    def test_of_many_who_ask_at_once_all_get_the_same(self, client: Any, redis_space: str) -> None:
        stores = [RedisCacheStore(client, namespace=redis_space, timeout=10) for _ in range(8)]
        secrets = set()
        in_threads(8, lambda number: secrets.add(stores[number].secret()))
        assert len(secrets) == 1
        for store in stores:
            store.close()

    def test_a_damaged_one_is_replaced(self, store: RedisCacheStore, client: Any, redis_space: str) -> None:
        client.set(f"{redis_space}:cache:{{index}}:secret", "short")
        assert store.secret() == client.get(f"{redis_space}:cache:{{index}}:secret")

    def test_one_that_was_given_is_not_sent(self, client: Any, redis_space: str) -> None:
        with closing(RedisCacheStore(client, namespace=redis_space, secret=SECRET)) as store:
            assert store.secret() == SECRET
            fill(store, "key")
            store.delete_under("key")
            assert names(client, redis_space, "{index}:secret") == []
            assert "s3cret" not in repr(store)

    def test_a_server_that_lost_it_is_given_it_again(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        """By the first who has something to say, so that all who were there before go on with it."""
        secret = store.secret()
        client.delete(*names(client, redis_space))
        fill(store, "key")
        with closing(RedisCacheStore(client, namespace=redis_space)) as other:
            assert other.secret() == secret
        assert store.renewals == 0

    @pytest.mark.parametrize("use", [lambda store: fill(store, "key"), lambda store: store.delete_under(URI)])
    def test_if_somebody_else_was_faster_theirs_holds(
        self, store: RedisCacheStore, client: Any, redis_space: str, use: Any
    ) -> None:
        first = store.secret()
        client.delete(*names(client, redis_space))
        with closing(RedisCacheStore(client, namespace=redis_space)) as other:
            theirs = other.secret()
            fill(other, "theirs")
            use(store)
            assert theirs not in (first, b"")
            assert (store.secret(), store.renewals) == (theirs, 1)
            fill(store, "key")
            assert store.renewals == 1

    def test_what_to_make_invalid_cannot_be_told_by_who_has_another(
        self, store: RedisCacheStore, client: Any, redis_space: str
    ) -> None:
        """So all of it is."""
        store.secret()
        client.delete(*names(client, redis_space))
        with closing(RedisCacheStore(client, namespace=redis_space)) as other:
            other.secret()
            fill(other, "theirs")
            assert store.delete_under(URI) == 1
            assert other.read("theirs") is None


def make_client() -> Any:
    return redis.Redis(port=1)


class TestObject:
    """Arguments, copies, and what a session makes of it."""

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("namespace", 5, TypeError),
            ("ttl", 0, ValueError),
            ("ttl", "1 day", TypeError),
            ("timeout", 0, ValueError),
            ("chunk", 10, ValueError),
            ("memory", -1, ValueError),
        ],
    )
    def test_an_impossible_argument_is_refused(self, name: str, value: object, kind: type[Exception]) -> None:
        with pytest.raises(kind, match=f"{name}={value!r}"):
            RedisCacheStore(make_client, **{name: value})  # type: ignore[arg-type]

    @pytest.mark.parametrize("secret", [b"short", "s" * 32, b""])
    def test_an_impossible_secret_is_refused_and_not_shown(self, secret: Any) -> None:
        with pytest.raises(ValueError, match=r"^secret=\.\.\.: 32 bytes are wanted$"):
            RedisCacheStore(make_client, secret=secret)

    @pytest.mark.parametrize("client", [None, "redis://127.0.0.1", 5])
    def test_what_is_no_client_is_refused(self, client: object) -> None:
        with pytest.raises(TypeError, match=r"redis\.Redis or redis\.RedisCluster is wanted"):
            RedisCacheStore(client)

    def test_a_client_for_asyncio_is_refused(self) -> None:
        asyncio_redis = pytest.importorskip("redis.asyncio")
        with pytest.raises(TypeError, match=r"redis\.asyncio"):
            RedisCacheStore(asyncio_redis.Redis())

    def test_a_copy_is_the_same_store(self, store: RedisCacheStore) -> None:
        assert copy.copy(store) is store and copy.deepcopy(store) is store

    def test_one_with_a_function_can_be_pickled(self) -> None:
        store = RedisCacheStore(make_client, namespace="n", max_bytes=10**6, ttl=None, chunk=4096, secret=SECRET)
        again = pickle.loads(pickle.dumps(store))
        assert repr(again) == repr(store)
        assert again.secret() == SECRET

    def test_one_with_a_client_says_what_would_be_right(self, store: RedisCacheStore) -> None:
        with pytest.raises(TypeError, match="function that makes the client"):
            pickle.dumps(store)

    def test_nothing_is_imported_before_it_is_used(self) -> None:
        code = """
import sys
import kreuz_sync.cache
print(sorted(name for name in sys.modules if name.partition(".")[0] == "redis" or "cache.remote" in name))
"""
        assert run_python(code).strip() == "[]"

    def test_a_session_takes_it_for_a_cache(self, store: RedisCacheStore) -> None:
        with Session(cache=store) as session:
            assert session.cache is not None and session.cache.store is store
