"""The store in Redis when something is wrong: it gives a miss, or `StoreTrouble`, and nothing else."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kreuz_sync import Cache
from kreuz_sync.cache import RedisCacheStore, StoreTrouble

from .cache_sessions import caching
from .conftest import need_server
from .loopback import answer
from .redis_server import GUARD_S, RedisServer, closed_port, full_port, silent_port
from .store_contract import LARGE, MIDDLE, SMALL, content, fill
from .test_cache_store_redis import URI, names, opened
from .waiting import eventually

redis = pytest.importorskip("redis")

PASSWORD = "s3cret-pa55word"

USES: tuple[Callable[[RedisCacheStore], object], ...] = (
    lambda store: store.read("key"),
    lambda store: store.write("key", b"head", SMALL),
    lambda store: store.write("key", b"head", LARGE),
    lambda store: store.write_if_current("key", b"head", SMALL, 1.0),
    lambda store: store.rewrite_head("key", b"head"),
    lambda store: store.delete("key"),
    lambda store: store.delete_under(URI),
    lambda store: list(store.keys()),
    lambda store: store.clear(),
    len,
    lambda store: store.volume(),
    lambda store: store.secret(),
)


@contextmanager
def over(port: int, **settings: Any) -> Iterator[RedisCacheStore]:
    client = redis.Redis(port=port, password=PASSWORD)
    with closing(RedisCacheStore(client, **{"timeout": 0.05, **settings})) as store:
        yield store


def works(store: RedisCacheStore) -> bool:
    """Whether it does, or will in a moment."""
    try:
        fill(store, "works")
        return content(store.read("works")) == b"x" * 10
    except StoreTrouble:
        return False


class TestGone:
    """Each use says so, soon, and without a word too many; and when the server is back, all goes well."""

    def test_nobody_listens(self) -> None:
        with over(closed_port()) as store:
            for use in USES:
                with pytest.raises(StoreTrouble) as raised:
                    use(store)
                assert not any(private in str(raised.value) for private in (PASSWORD, "127.0.0.1", "localhost", "key"))

    @pytest.mark.parametrize("port_of", [silent_port, full_port])
    def test_nobody_answers(self, port_of: Any) -> None:
        """The first to try waits `timeout`; then, for as long again, nobody waits."""
        with port_of() as port, over(port, timeout=0.3) as store:
            began = time.monotonic()
            for use in USES:
                with pytest.raises(StoreTrouble):
                    use(store)
            assert 0.2 < time.monotonic() - began < 12 * 0.3

    def test_a_server_that_hangs_is_left_alone_for_a_while(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisCacheStore(client, timeout=0.2)) as store:
            fill(store, "key")
            own_redis.freeze()
            began = time.monotonic()
            for _ in range(3):
                with pytest.raises(StoreTrouble, match="no answer in time"):
                    store.read("key")
            assert time.monotonic() - began < GUARD_S
            own_redis.thaw()
            eventually(lambda: works(store))
            assert content(store.read("key")) == b"x" * 10

    def test_a_restarted_server_is_used_again(self, own_redis: RedisServer) -> None:
        """It has lost everything, the scripts too, and gets the secret back."""
        with own_redis.client() as client, closing(RedisCacheStore(client, timeout=5)) as store:
            secret = store.secret()
            fill(store, "key")
            own_redis.restart()
            eventually(lambda: works(store))
            assert store.read("key") is None
            assert len(store) == 1
            with closing(RedisCacheStore(client)) as other:
                assert other.secret() == secret

    def test_a_server_that_goes_while_a_body_is_read(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisCacheStore(client, timeout=5)) as store:
            store.write("key", b"head", LARGE)
            with opened(store.read("key")) as body:
                body.read(100)
                own_redis.stop()
                with pytest.raises(StoreTrouble, match="Redis failed"):
                    body.read()

    def test_a_server_that_hangs_while_a_body_comes(self, own_redis: RedisServer) -> None:
        class Freezing:
            def read(self, size: int) -> bytes:
                own_redis.freeze()
                return b"x" * size

        with own_redis.client() as client, closing(RedisCacheStore(client, timeout=0.2)) as store:
            with pytest.raises(StoreTrouble, match="no answer in time"):
                store.write("key", b"head", Freezing())  # type: ignore[arg-type]
            own_redis.thaw()
            eventually(lambda: works(store))
            assert store.read("key") is None

    def test_a_wrong_password(self) -> None:
        with RedisServer("--requirepass", PASSWORD) as server:
            client = redis.Redis(port=server.port, password="another")
            with closing(RedisCacheStore(client)) as store, pytest.raises(StoreTrouble) as raised:
                store.read("key")
        assert str(raised.value) == "Redis failed: AuthenticationError"

    def test_something_that_is_no_redis(self, server: Any) -> None:
        with over(server.port, timeout=2) as store:
            for use in USES:
                with pytest.raises(StoreTrouble):
                    use(store)

    def test_a_function_that_makes_no_client(self) -> None:
        for function in (lambda: None, lambda: 1 / 0):
            with closing(RedisCacheStore(function)) as store, pytest.raises(StoreTrouble):
                store.read("key")


@pytest.fixture
def small_redis(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server with little memory, and the policy that the test names."""
    need_server()
    with RedisServer("--maxmemory", "12mb", "--maxmemory-policy", request.param) as server:
        yield server


class TestShortOfMemory:
    """`maxmemory` makes misses, and no trouble where the server evicts."""

    @pytest.mark.parametrize(
        "small_redis", ["allkeys-lru", "allkeys-random", "allkeys-lfu", "volatile-lru", "volatile-ttl"], indirect=True
    )
    def test_what_was_evicted_is_a_miss(self, small_redis: RedisServer) -> None:
        """Whatever key of it is gone: a record, a group, a body, the list, or the secret."""
        bodies = {f"{number:032}": os.urandom((500, 20_000, 150_000)[number % 3]) for number in range(400)}
        with small_redis.client() as client:
            with closing(RedisCacheStore(client, timeout=5, chunk=2**16, memory=0)) as store:
                store.secret()
                for key, body in bodies.items():
                    store.write(key, b"head", body)
                found = {key: record for key in bodies if (record := store.read(key)) is not None}
                assert 0 < len(found) < 300
                assert all(content(record) == bodies[key] for key, record in found.items())
                assert client.info("stats")["evicted_keys"] > 100
                listed = list(store.keys())
                assert len(listed) == len(set(listed)) <= 400
                assert len(store) <= len(listed)  # the list may be evicted too
                store.clear()
                assert names(client, "", "r") == []
                assert (len(store), store.volume()) == (0, 0)

    @pytest.mark.parametrize("small_redis", ["noeviction"], indirect=True)
    def test_a_full_server_takes_nothing_more(self, small_redis: RedisServer) -> None:
        """What is there is still given out; what is dropped is dropped, and makes room."""
        with small_redis.client() as client:
            with closing(RedisCacheStore(client, timeout=5)) as store:
                kept = []
                with pytest.raises(StoreTrouble, match="OutOfMemory"):
                    for number in range(500):
                        store.write(f"{number:032}", b"head", os.urandom(10**5))
                        kept.append(f"{number:032}")
                with pytest.raises(StoreTrouble, match="OutOfMemory"):
                    store.write("large", b"head", LARGE)
                assert (client.keys("cache:b*"), store.read("large")) == ([], None)
                assert len(content(store.read(kept[0]))) == 10**5
                for key in kept[:20]:
                    assert store.delete_under(key) == 1
                    assert store.read(key) is None
                fill(store, "key")
                assert content(store.read("key")) == b"x" * 10

    def test_a_body_that_is_evicted_while_it_comes(self, own_redis: RedisServer) -> None:
        """It is not stored, and what was there stays."""
        with own_redis.client() as client, closing(RedisCacheStore(client, timeout=5)) as store:

            class Evicting:
                left = 5

                def read(self, size: int) -> bytes:
                    client.delete(*client.keys("cache:b*"), "nothing")
                    self.left -= 1
                    return b"x" * size if self.left > 0 else b""

            fill(store, "key")
            assert store.write_if_current("key", b"head", Evicting(), 0.0) is False  # type: ignore[arg-type]
            assert client.keys("cache:b*") == []
            assert content(store.read("key")) == b"x" * 10


class TestSessions:
    """A server that fails is never the trouble of a call."""

    @pytest.fixture
    def cache(self, own_redis: RedisServer) -> Iterator[Cache]:
        with own_redis.client() as client:
            store = RedisCacheStore(client, timeout=0.2)
            yield Cache(store, ttl=60)
            store.close()

    def test_calls_go_on_without_it_and_one_warning_tells(
        self, server: Any, own_redis: RedisServer, cache: Cache, caplog: pytest.LogCaptureFixture
    ) -> None:
        url = server.route("/page", answer(body="page"))
        with caching(cache) as session:
            assert [session.get(url).from_cache for _ in range(2)] == [False, True]
            own_redis.freeze()
            began = time.monotonic()
            assert [session.get(url).text for _ in range(20)] == ["page"] * 20
            assert time.monotonic() - began < GUARD_S
            assert [one.levelno for one in caplog.records] == [logging.WARNING]
            own_redis.thaw()
            eventually(lambda: session.get(url).from_cache)

    def test_a_restart_is_a_miss(self, server: Any, own_redis: RedisServer, cache: Cache) -> None:
        url = server.route("/page", answer(body="page"))
        with caching(cache) as session:
            assert [session.get(url).from_cache for _ in range(2)] == [False, True]
            own_redis.restart()
            assert session.get(url).from_cache is False
            eventually(lambda: session.get(url).from_cache)

    def test_what_could_not_be_made_invalid_is_not_given_out(
        self, server: Any, own_redis: RedisServer, cache: Cache
    ) -> None:
        """The server comes back with what it had."""
        versions = iter(["old", *["new"] * 1000])
        url = server.route("/page", lambda request: answer(body=next(versions) if request.method == "GET" else ""))
        with caching(cache) as session:
            assert [session.get(url).text for _ in range(2)] == ["old", "old"]
            own_redis.freeze()
            session.delete(url)
            own_redis.thaw()
            eventually(lambda: session.get(url).from_cache)
            assert session.get(url).text == "new"

    def test_a_stored_body_that_goes_is_a_clear_end(self, server: Any, own_redis: RedisServer, cache: Cache) -> None:
        url = server.route("/page", answer(body=LARGE))
        with caching(cache) as session, own_redis.client() as client:
            session.get(url)
            with session.get(url, stream=True) as page:
                assert page.from_cache and page.raw.read(1000) == LARGE[:1000]
                client.delete(*names(client, "", "b"))
                with pytest.raises(Exception, match="gone"):
                    page.raw.read()
            assert session.get(url).from_cache is False

    def test_a_body_that_was_evicted_is_a_miss_without_a_word(
        self, server: Any, own_redis: RedisServer, cache: Cache, caplog: pytest.LogCaptureFixture
    ) -> None:
        for body in (MIDDLE * 5, LARGE):
            url = server.route("/page", answer(body=body))
            with caching(cache) as session, own_redis.client() as client:
                session.get(url)
                client.delete(*names(client, "", "b"))
                assert session.get(url).from_cache is False
                assert session.get(url).from_cache is True
                session.cache.clear()
        assert caplog.records == []
