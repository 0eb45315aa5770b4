"""The store in Redis, shared by processes: those that work, those that fork, and those that are killed."""

from __future__ import annotations

import random
import signal
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync import Cache
from kreuz_sync.cache import RedisCacheStore

from .cache_sessions import caching
from .loopback import Server, answer
from .redis_server import GivenServer
from .store_contract import content, fill
from .test_cache_store_disk import run_python
from .test_cache_store_processes import finish, posix, start
from .test_cache_store_redis import names
from .waiting import Worker, eventually

redis = pytest.importorskip("redis")

pytestmark = pytest.mark.slow

# What begins each program: a store over the server and the namespace that it is told.
OPENING = """
import os, sys, redis
from kreuz_sync.cache import RedisCacheStore, StoreTrouble
client = redis.Redis.from_url(sys.argv[1])
def opened(**settings):
    return RedisCacheStore(client, namespace=sys.argv[2], timeout=20, chunk=2**16, **settings)
"""


@pytest.fixture
def client(redis_server: GivenServer) -> Iterator[Any]:
    with redis_server.client() as client:
        yield client


@pytest.fixture
def store(client: Any, redis_space: str) -> Iterator[RedisCacheStore]:
    with closing(RedisCacheStore(client, namespace=redis_space, timeout=10)) as store:
        yield store


@pytest.fixture
def place(redis_server: GivenServer, redis_space: str) -> tuple[str, str]:
    return redis_server.url, redis_space


Place = tuple[str, str]


class TestSeveralProcesses:
    """They see each other's records, and no write of one is lost to another."""

    def test_all_may_begin_at_once(self, store: RedisCacheStore, place: Place) -> None:
        code = f"""{OPENING}
store = opened()
print(store.secret().hex())
for number in range(30):
    key = sys.argv[3] + "." + str(number)
    store.write(key, b"head", key.encode() * 300 * (number % 5))
    store.write("shared", sys.argv[3].encode(), sys.argv[3].encode() * 150_000)
    record = store.read("shared")
    body = record.body if isinstance(record.body, bytes) else record.body.read()
    assert body == record.head * 150_000
store.close()
"""
        secrets = {finish(process) for process in [start(code, *place, number) for number in range(4)]}
        assert secrets == {f"{store.secret().hex()}\n"}
        assert len(store) == len(list(store.keys())) == 4 * 30 + 1
        for number in range(4):
            assert content(store.read(f"{number}.29")) == f"{number}.29".encode() * 1200

    def test_a_limit_holds_for_all_together(self, client: Any, place: Place) -> None:
        code = f"""{OPENING}
store = opened(max_entries=50)
for number in range(100):
    store.write(sys.argv[3] + "." + str(number), b"head", b"x" * (100_000 if number % 10 == 0 else 10))
store.close()
"""
        for process in [start(code, *place, number) for number in range(4)]:
            finish(process)
        with closing(RedisCacheStore(client, namespace=place[1], max_entries=50)) as store:
            assert len(store) == len(list(store.keys())) == len(names(client, place[1], "r")) == 50


@posix
class TestFork:
    """A child makes connections of its own. In processes of their own: a test's process has threads."""

    def test_parent_and_child_go_on_side_by_side(self, place: Place) -> None:
        code = f"""{OPENING}
store = opened()
store.write("before", b"head", b"body")
store.read("before")
children = []
for number in range(4):
    child = os.fork()
    if not child:
        assert store.read("before").body == b"body"
        for step in range(50):
            store.write(f"{{number}}.{{step}}", b"head", b"x" * 300 * step)
        store.close()
        os._exit(0)
    children.append(child)
for step in range(50):
    store.write(f"parent.{{step}}", b"head", b"body")
for child in children:
    assert os.waitpid(child, 0)[1] == 0
for number in range(4):
    for step in range(50):
        assert store.read(f"{{number}}.{{step}}").body == b"x" * 300 * step
print(len(store))
store.close()
"""
        assert run_python(code, *place).strip() == "251"

    def test_a_fork_while_threads_are_at_work(self, place: Place) -> None:
        """A lock that a thread held is not held in the child, where that thread is not."""
        code = f"""{OPENING}
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of such a fork
store = opened()
store.write("key", b"head", b"body")
stop = threading.Event()
def work():
    while not stop.is_set():
        store.write("busy", b"head", b"body")
        store.read("busy")
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(10):
    child = os.fork()
    if not child:
        store.write(str(number), b"head", b"body")
        os._exit(0 if store.read("key").body == b"body" else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(len(store))
store.close()
"""
        assert run_python(code, *place).strip() == "12"


# Writes records of all sizes, in all ways, as fast as it can. A record's head is the checksum of its body.
WRITER = f"""{OPENING}
import random, zlib
draw = random.Random(os.getpid())
store = opened(max_entries=60)
len(store)
print("ready", flush=True)
while True:
    key = str(draw.randrange(100))
    body = os.urandom(draw.choice([10, 3000, 150_000, 400_000]))
    if draw.random() < 0.1:
        store.delete(key)
    elif draw.random() < 0.2:
        store.rewrite_head(key, b"%d" % zlib.crc32(body), b"another")
    else:
        store.write(key, b"%d" % zlib.crc32(body), body)
    store.read(str(draw.randrange(100)))
"""


@posix
class TestKilled:
    """kill -9 at any moment loses at most the record that was being written."""

    def test_whatever_was_killed_every_record_is_whole_or_absent(
        self, client: Any, place: Place, redis_space: str
    ) -> None:
        """Three times four writers, killed in the middle; and what they leave has an end."""
        draw = random.Random(1)
        with closing(RedisCacheStore(client, namespace=redis_space, max_entries=60, timeout=10, memory=0)) as store:
            for _ in range(3):
                writers = [start(WRITER, *place) for _ in range(4)]
                for writer in writers:
                    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
                time.sleep(0.15)
                for writer in writers:
                    time.sleep(draw.random() * 0.05)
                    writer.send_signal(signal.SIGKILL)
                for writer in writers:
                    assert writer.communicate(timeout=20) == ("", "")
                fill(store, "after")
                keys = list(store.keys())
                assert len(keys) == len(set(keys)) == len(store) <= 60
                for number in range(100):
                    record = store.read(str(number))
                    assert record is None or int(record.head) == zlib.crc32(content(record))
            assert len(keys) > 20
            assert all(client.pttl(name) > 0 for name in names(client, redis_space))
            store.clear()
            assert (names(client, redis_space, "r"), len(store), store.volume()) == ([], 0, 0)
            # Of bodies there are those that were half written, and those that somebody could still be reading.
            assert all(client.pttl(name) <= 60_000 for name in names(client, redis_space, "b"))


class TestSessions:
    """A cache each, as on several machines, over one server."""

    @pytest.fixture
    def caches(self, client: Any, redis_space: str) -> Iterator[list[Cache]]:
        stores = [RedisCacheStore(client, namespace=redis_space, timeout=10) for _ in range(2)]
        yield [Cache(store, ttl=60) for store in stores]
        for store in stores:
            store.close()

    def test_what_one_was_answered_another_is_given(self, server: Server, caches: list[Cache]) -> None:
        """And nobody who asks with other credentials."""
        url = server.route("/page", lambda request: answer(body=request.fields.get("Authorization") or "nobody"))
        with caching(caches[0]) as one, caching(caches[1]) as other:
            one.get(url)
            assert one.get(url, headers={"Authorization": "Bearer a"}).text == "Bearer a"
            assert other.get(url).from_cache
            again = other.get(url, headers={"Authorization": "Bearer a"})
            assert (again.from_cache, again.text) == (True, "Bearer a")
            assert other.get(url, headers={"Authorization": "Bearer b"}).text == "Bearer b"

    def test_what_one_makes_invalid_is_so_for_all(self, server: Server, caches: list[Cache]) -> None:
        url = server.route("/page", lambda request: answer(body="page" if request.method == "GET" else ""))
        with caching(caches[0]) as one, caching(caches[1]) as other:
            for headers in ({}, {"Authorization": "Bearer a"}):
                one.get(url, headers=headers)
                assert other.get(url, headers=headers).from_cache and other.get(url, headers=headers).from_cache
            one.delete(url)
            for headers in ({}, {"Authorization": "Bearer a"}):
                assert not other.get(url, headers=headers).from_cache
                assert one.get(url, headers=headers).from_cache

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_answer_under_way_meanwhile_is_not_stored(
        self, server: Server, caches: list[Cache], stream: bool
    ) -> None:
        """It may be from before the change that another machine has made."""
        changed: list[str] = []

        def page(request: Any) -> Any:
            if request.method != "GET":
                changed.append(request.method)
                return 204
            body = "new" if changed else "old"
            if body == "old":
                asked.append(body)
                eventually(lambda: answers)
            return answer(body=body)

        asked: list[str] = []
        answers: list[Any] = []
        url = server.route("/page", page)
        with caching(caches[0]) as one, caching(caches[1]) as other:
            slow = Worker(lambda: one.get(url, stream=stream).text)
            eventually(lambda: asked)
            answers.append(other.post(url))
            assert slow.outcome() == "old"
            assert [session.get(url).text for session in (one, other, one)] == ["new"] * 3
            assert one.get(url).from_cache

    def test_after_a_change_of_the_secret_they_go_on_together(
        self, server: Server, caches: list[Cache], client: Any, redis_space: str
    ) -> None:
        """The server has lost everything, and another process was there before all others."""
        url = server.route("/page", answer(body="page"))
        with caching(caches[0]) as one, caching(caches[1]) as other:
            one.get(url)
            client.delete(*names(client, redis_space))
            other.get(url)
            assert not one.get(url).from_cache  # it finds out
            assert one.get(url).from_cache and other.get(url).from_cache
            assert caches[0].delete(url) == 1
            assert not other.get(url).from_cache

    def test_what_a_cache_does_by_hand(self, server: Server, caches: list[Cache]) -> None:
        for number in range(5):
            server.route(f"/{number}", answer(body=f"page {number}"))
        one, other = caches
        with caching(one) as session:
            urls = [server.url(f"/{number}") for number in range(5)]
            for url in urls:
                session.get(url)
        assert (len(other), [entry.url for entry in other]) == (5, urls)
        assert urls[0] in other and other.get(urls[0]).text == "page 0"  # type: ignore[union-attr]
        assert other.update_ttl(600, host="127.0.0.1") == 5
        assert other.delete(urls[0]) == 1
        assert other.delete(next(other.entries(url=urls[1]))) == 1
        assert other.volume() > 0
        assert (other.clear(), len(one), one.volume()) == (3, 0, 0)

    def test_a_session_travels_to_another_process(self, server: Server, place: Place, tmp_path: Path) -> None:
        """With a function that makes the client; each process then has a store of its own, over one server."""
        url = server.route("/page", answer(body="page"))
        code = f"""
import pickle, sys, redis
from functools import partial
import kreuz_sync
from kreuz_sync.cache import RedisCacheStore
store = RedisCacheStore(partial(redis.Redis.from_url, sys.argv[1]), namespace=sys.argv[2], timeout=10)
with kreuz_sync.Session(cache=store) as session:
    print(session.get({url!r}).from_cache)
    with open(sys.argv[3], "wb") as file:
        pickle.dump(session, file)
"""
        again = f"""
import pickle, sys
with open(sys.argv[1], "rb") as file, pickle.load(file) as session:
    print(session.get({url!r}).from_cache)
"""
        file = tmp_path / "session"
        assert [run_python(code, *place, file), run_python(again, file)] == ["False\n", "True\n"]
