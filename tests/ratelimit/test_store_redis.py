"""Counters in Redis: what they promise beyond every store's promises, whether the server answers or not."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any

import pytest

from kreuz_sync.ratelimit import StoreUnavailable
from kreuz_sync.ratelimit.redis import RedisStore
from tests.redis_server import GivenServer, RedisServer, closed_port, full_port, silent_port

from .contract import MakeStore, SharedContract, StoreContract, finish, hits, in_threads, start

redis = pytest.importorskip("redis")

SECRET = "s3cret-pa55word"


@pytest.fixture
def client(redis_server: GivenServer) -> Iterator[Any]:
    with redis_server.client() as client:
        yield client


@pytest.fixture
def store(client: Any, redis_space: str) -> Iterator[RedisStore]:
    with closing(RedisStore(client, namespace=redis_space)) as store:
        yield store


@contextmanager
def fails(detail: str = "redis_command_failed", within: float | None = None) -> Iterator[None]:
    """A hit fails for `detail`; within: seconds."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as raised:
        yield
    took = time.monotonic() - began
    assert (raised.value.code, raised.value.detail) == ("redis_store_error", detail)
    assert within is None or took < within
    for private in ("policy", "tok9", "127.0.0.1", SECRET):
        assert private not in str(raised.value)


class OverRedis(StoreContract):
    """How the promises of every store are put to the test. options: of the client."""

    short = 0.06
    options: dict[str, Any] = {}

    @pytest.fixture
    def make_store(self, redis_server: GivenServer, redis_space: str) -> Iterator[MakeStore]:
        with ExitStack() as clients:
            yield lambda: RedisStore(
                clients.enter_context(redis_server.client(**self.options)), namespace=redis_space, timeout=5
            )

    @pytest.fixture
    def let_pass(self) -> Callable[[float], None]:
        return time.sleep


class TestRedisStore(OverRedis, SharedContract):
    """All that every store promises, and all that a shared one does."""

    @pytest.fixture
    def program(self, redis_server: GivenServer, redis_space: str) -> str:
        return f"""
import redis
from kreuz_sync.ratelimit.redis import RedisStore
store = RedisStore(redis.Redis.from_url({redis_server.url!r}), namespace={redis_space!r}, timeout=5)
"""


class TestRedisStoreDecoding(OverRedis):
    """The same with a client that decodes what it reads, and packs text in an encoding of its own."""

    options = {"decode_responses": True, "encoding": "utf-16"}


class TestRedisStoreOfTheOldProtocol(OverRedis):
    """The same with RESP2, which older servers speak."""

    options = {"protocol": 2}


class TestKeys:
    """What lies on the server."""

    def test_a_key_is_the_namespace_and_the_scoped_key(self, store: RedisStore, client: Any, redis_space: str) -> None:
        hits(store, 3, "policy:a%3Ab")
        assert client.get(f"{redis_space}:rl:policy:a%3Ab") == b"3"

    def test_an_empty_namespace_adds_nothing(self, client: Any, redis_space: str) -> None:
        with closing(RedisStore(client)) as store:
            hits(store, 2, redis_space)
        assert client.get(f"rl:{redis_space}") == b"2"
        client.delete(f"rl:{redis_space}")

    def test_namespaces_count_apart(self, client: Any, redis_space: str) -> None:
        for name in ("a", "b"):
            with closing(RedisStore(client, namespace=f"{redis_space}.{name}")) as store:
                assert hits(store, 2) == [1, 2]

    def test_a_key_goes_when_its_window_is_over(self, store: RedisStore, client: Any, redis_space: str) -> None:
        store.increment("policy:key", 30.5)
        assert 29_000 < client.pttl(f"{redis_space}:rl:policy:key") <= 30_500

    def test_all_clients_name_a_key_alike(self, store: RedisStore, redis_server: GivenServer, redis_space: str) -> None:
        """Though each may be set to encode text in a way of its own."""
        with redis_server.client(encoding="latin-1") as other, closing(RedisStore(other, namespace=redis_space)) as two:
            assert [hits(store, 1, "ключ"), hits(two, 1, "ключ")] == [[1], [2]]


class TestWindows:
    """Whole milliseconds, truncated, from 1 to what 63 bits hold."""

    @pytest.mark.parametrize(
        ("window", "ms"), [(0.001, 1), (0.0019, 1), (1.001, 1001), (0.29, 290), (1.9999, 1999), (60, 60_000)]
    )
    def test_a_window_is_truncated(self, store: RedisStore, window: float, ms: int) -> None:
        """But not by an error of floating point: 1.001 * 1000 is a little less than 1001."""
        left_ms = store.increment("policy:key", window).reset_after * 1000
        assert ms - 1 <= left_ms <= ms

    @pytest.mark.parametrize("window", [0.0, -5.0, 0.0009, float("nan"), None, "60"])
    def test_less_is_refused(self, store: RedisStore, window: Any) -> None:
        with fails("redis_invalid_window"):
            store.increment("policy:key", window)

    @pytest.mark.parametrize("window", [2.0**63 / 1000, 1e300, float("inf")])
    def test_more_is_refused(self, store: RedisStore, window: float) -> None:
        with fails("redis_window_too_large"):
            store.increment("policy:key", window)

    def test_what_the_server_cannot_count_leaves_nothing_behind(
        self, store: RedisStore, client: Any, redis_space: str
    ) -> None:
        """Within 63 bits, but past the end of time when it begins now. A counter without end must not stay."""
        for _ in range(2):
            with fails():
                store.increment("policy:key", (2**63 - 4096) / 1000)
            assert client.exists(f"{redis_space}:rl:policy:key") == 0

    def test_the_last_millisecond_is_no_failure(self, store: RedisStore, client: Any, redis_space: str) -> None:
        """The server keeps a key through it, with 0 ms to live; by then a window is over."""
        name = f"{redis_space}:rl:policy:key"
        used = set()
        for _ in range(300):
            client.set(name, 5, px=1)
            used.add(store.increment("policy:key", 60).used)
        assert used <= {1, 6}


class TestForeignCounters:
    """What somebody else has put under a key of ours."""

    @pytest.fixture
    def put(self, client: Any, redis_space: str) -> Callable[..., None]:
        return lambda value, **life: client.set(f"{redis_space}:rl:policy:key", value, **life)

    def test_a_counter_without_end_is_given_one(
        self, store: RedisStore, client: Any, redis_space: str, put: Callable[..., None]
    ) -> None:
        """In the same step: a client would be refused for ever."""
        put(5)
        usage = store.increment("policy:key", 30)
        assert usage.used == 6 and 0 < usage.reset_after <= 30
        assert 0 < client.pttl(f"{redis_space}:rl:policy:key") <= 30_000
        assert store.increment("policy:key", 1000).reset_after <= 30

    def test_or_it_is_an_error(self, client: Any, redis_space: str, put: Callable[..., None]) -> None:
        put(5)
        with closing(RedisStore(client, namespace=redis_space, on_missing_expiry="error")) as store:
            with fails("redis_invalid_pttl"):
                store.increment("policy:key", 30)
            assert client.pttl(f"{redis_space}:rl:policy:key") == -1
            client.delete(f"{redis_space}:rl:policy:key")
            assert hits(store, 2) == [1, 2]

    @pytest.mark.parametrize("mode", ["repair", "error"])
    def test_a_counter_with_an_end_keeps_it(
        self, client: Any, redis_space: str, put: Callable[..., None], mode: str
    ) -> None:
        put(5, px=20_000)
        with closing(RedisStore(client, namespace=redis_space, on_missing_expiry=mode)) as store:
            usage = store.increment("policy:key", 1)
        assert usage.used == 6 and 15 < usage.reset_after <= 20

    @pytest.mark.parametrize("value", ["abc", "1.5", "99999999999999999999", ""])
    def test_what_is_no_number_is_a_failure(self, store: RedisStore, put: Callable[..., None], value: str) -> None:
        put(value)
        with fails():
            store.increment("policy:key", 30)

    def test_another_type_is_a_failure(self, store: RedisStore, client: Any, redis_space: str) -> None:
        client.rpush(f"{redis_space}:rl:policy:key", "a")
        with fails():
            store.increment("policy:key", 30)
        assert client.lrange(f"{redis_space}:rl:policy:key", 0, -1) == [b"a"]
        assert hits(store, 2, "policy:other") == [1, 2]

    def test_a_negative_counter_is_a_failure(self, store: RedisStore, put: Callable[..., None]) -> None:
        put(-7, px=20_000)
        with fails("redis_invalid_count"):
            store.increment("policy:key", 30)

    def test_zero_is_a_counter_that_begins(self, store: RedisStore, put: Callable[..., None]) -> None:
        put(0)
        usage = store.increment("policy:key", 30)
        assert usage.used == 1 and 29 < usage.reset_after <= 30

    @pytest.mark.parametrize("value", [2**53 - 2, 2**53, 2**62, 2**63 - 2, 2**63 - 1])
    def test_a_counter_never_overflows(self, store: RedisStore, put: Callable[..., None], value: int) -> None:
        """It is exact up to 2**53, and stays there."""
        put(value, px=20_000)
        for step in (1, 2, 3):
            usage = store.increment("policy:key", 30)
            assert usage.used == min(value + step, 2**53)
            assert 10 < usage.reset_after <= 20


class TestScript:
    """The server may forget it at any time."""

    def test_a_flush_goes_unnoticed(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client)) as store:
            assert hits(store, 1) == [1]
            client.script_flush()
            assert hits(store, 2) == [2, 3]

    def test_it_is_sent_once(self, own_redis: RedisServer) -> None:
        """From then on by its name, and one hit is one command."""
        with own_redis.client() as client, closing(RedisStore(client)) as store:
            hits(store, 10)
            stats = client.info("commandstats")
        assert (stats["cmdstat_eval"]["calls"], stats["cmdstat_evalsha"]["calls"]) == (1, 10)

    def test_many_threads_meet_a_flush(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=10)) as store:
            seen: list[int] = []

            def work(number: int) -> None:
                for step in range(30):
                    if number == 0 and step % 10 == 5:
                        client.script_flush()
                    seen.append(store.increment("policy:key", 60).used)

            in_threads(8, work)
            assert sorted(seen) == list(range(1, 241))


class TestOutage:
    """A server that is gone, hangs, or comes back. Its answer is StoreUnavailable, and soon."""

    def test_nothing_is_connected_before_it_is_needed(self) -> None:
        with closing(redis.Redis(port=closed_port())) as client:
            RedisStore(client).close()

    def test_a_closed_port_is_a_failure_at_once(self) -> None:
        """redis-py itself would try ten times more, for seconds."""
        with closing(redis.Redis(port=closed_port())) as client, closing(RedisStore(client)) as store:
            for _ in range(3):
                with fails(within=5):
                    store.increment("policy:tok9", 60)

    @pytest.mark.parametrize("place", [silent_port, full_port])
    @pytest.mark.parametrize("settings", [{"socket_timeout": None, "socket_connect_timeout": None}, {}])
    def test_a_black_hole_is_a_failure_in_time(
        self, place: Callable[[], AbstractContextManager[int]], settings: dict[str, Any]
    ) -> None:
        """Though the client would wait for ever, or for long and many times."""
        with (
            place() as port,
            closing(redis.Redis(port=port, **settings)) as client,
            closing(RedisStore(client, timeout=0.1)) as store,
        ):
            for _ in range(2):
                with fails(within=5):
                    store.increment("policy:tok9", 60)

    def test_a_server_that_hangs_is_a_failure_in_time(self, own_redis: RedisServer) -> None:
        """On a connection that it has answered before."""
        settings = {"socket_timeout": None, "socket_connect_timeout": None}
        with own_redis.client(**settings) as client, closing(RedisStore(client, timeout=0.1)) as store:
            hits(store, 3)
            own_redis.freeze()
            for _ in range(2):
                with fails(within=5):
                    store.increment("policy:key", 60)
            own_redis.thaw()
            time.sleep(0.15)  # it is left alone for as long as it let pass
            # The hit that was sent is carried out when it wakes up, once; its answer reaches nobody.
            assert 4 <= store.increment("policy:key", 60).used <= 5

    def test_a_late_answer_is_not_taken_for_the_next(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=0.1)) as store:
            hits(store, 1, "policy:other")
            own_redis.freeze()
            with fails():
                store.increment("policy:other", 1000)
            own_redis.thaw()
            time.sleep(0.15)
            usage = store.increment("policy:key", 60)
            assert usage.used == 1 and usage.reset_after <= 60

    def test_a_shorter_time_out_of_the_client_holds(self) -> None:
        settings = {"socket_timeout": 0.05, "socket_connect_timeout": 0.05}
        with (
            silent_port() as port,
            closing(redis.Redis(port=port, **settings)) as client,
            closing(RedisStore(client, timeout=20)) as store,
            fails(within=10),
        ):
            store.increment("policy:key", 60)

    def test_it_works_again_when_the_server_does(self, own_redis: RedisServer) -> None:
        """Without being made anew. What the server has lost begins anew too."""
        with own_redis.client() as client, closing(RedisStore(client)) as store:
            assert hits(store, 3) == [1, 2, 3]
            own_redis.stop()
            for _ in range(2):
                with fails(within=5):
                    store.increment("policy:key", 60)
            own_redis.start()
            assert hits(store, 2) == [1, 2]

    def test_connections_that_were_idle_over_a_restart_are_made_anew(self, own_redis: RedisServer) -> None:
        """No hit is lost to find that out, however short ago they were used."""
        with own_redis.client() as client, closing(RedisStore(client, timeout=10)) as store:
            in_threads(5, lambda number: hits(store, 5, f"policy:{number}"))
            own_redis.restart()
            in_threads(5, lambda number: hits(store, 5, f"policy:{number}"))
            assert hits(store, 1, "policy:0") == [6]

    def test_a_wrong_password_is_a_failure_that_does_not_show_it(self) -> None:
        with (
            RedisServer("--requirepass", "another") as server,
            server.client(password=SECRET) as client,
            closing(RedisStore(client)) as store,
            fails(),
        ):
            store.increment("policy:tok9", 60)

    def test_a_password_and_a_database_are_taken_over(self) -> None:
        with (
            RedisServer("--requirepass", SECRET) as server,
            server.client(password=SECRET, db=5) as client,
            closing(RedisStore(client)) as store,
        ):
            assert hits(store, 2) == [1, 2]
            assert client.get("rl:policy:key") == b"2"
            assert SECRET not in repr(store)

    def test_an_answer_of_another_kind_is_a_failure(self) -> None:
        """Whoever answers there is no Redis."""
        for reply in (b":5\r\n", b"*1\r\n:1\r\n", b"*2\r\n:1\r\n:0\r\n", b"*2\r\n:1\r\n$1\r\n5\r\n", b"\0\xff\r\n"):
            with answering(reply) as port, closing(redis.Redis(port=port, protocol=2, **PLAIN)) as client:
                with closing(RedisStore(client)) as store, pytest.raises(StoreUnavailable) as raised:
                    store.increment("policy:key", 60)
                assert raised.value.code == "redis_store_error"


# As little as possible is said before the first command.
PLAIN: dict[str, Any] = {"lib_name": None, "lib_version": None} if redis.VERSION[0] < 6 else {"driver_info": None}


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that gives `reply` to whatever it is sent."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(65536):
                    connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


class TestClient:
    """The client that was handed in is its owner's."""

    def test_it_is_left_open_and_unused(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client:
            client.ping()
            with closing(RedisStore(client)) as store:
                hits(store, 5)
            assert client.info("clients")["connected_clients"] == 1
            assert client.get("rl:policy:key") == b"5"

    def test_closing_the_client_does_not_close_the_store(self, redis_server: GivenServer, redis_space: str) -> None:
        client = redis_server.client()
        with closing(RedisStore(client, namespace=redis_space)) as store:
            hits(store, 1)
            client.close()
            assert hits(store, 1) == [2]

    def test_there_are_no_more_connections_than_threads(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=10)) as store:
            in_threads(6, lambda number: hits(store, 20, str(number)))
            assert client.info("clients")["connected_clients"] <= 7
            store.close()
            until = time.monotonic() + 10  # the server may see the next question before the end of a connection
            while client.info("clients")["connected_clients"] > 1:
                assert time.monotonic() < until

    def test_nor_more_than_the_client_may_have(self, own_redis: RedisServer) -> None:
        """Others wait for their turn."""
        with own_redis.client(max_connections=2) as client, closing(RedisStore(client, timeout=10)) as store:
            in_threads(12, lambda number: hits(store, 20))
            assert client.info("clients")["connected_clients"] <= 3
            assert hits(store, 1) == [241]

    def test_a_failure_gives_its_place_back(self, own_redis: RedisServer) -> None:
        with own_redis.client(max_connections=1) as client, closing(RedisStore(client, timeout=5)) as store:
            client.rpush("rl:list", "a")
            for _ in range(3):
                with fails():
                    store.increment("list", 60)
            assert hits(store, 2) == [1, 2]

    def test_waiting_for_a_place_has_an_end(self, own_redis: RedisServer) -> None:
        with own_redis.client(max_connections=1) as client, closing(RedisStore(client, timeout=0.2)) as store:
            hits(store, 1)
            own_redis.freeze()
            seen: list[str] = []

            def work(_: int) -> None:
                with pytest.raises(StoreUnavailable) as raised:
                    store.increment("policy:key", 60)
                seen.append(raised.value.detail)

            in_threads(4, work)
            own_redis.thaw()
            assert seen == ["redis_command_failed"] * 4
            time.sleep(0.25)
            assert store.increment("policy:key", 60).used >= 2

    def test_a_unix_socket_does_as_well(self, tmp_path: Any) -> None:
        path = str(tmp_path / "s")
        with RedisServer("--unixsocket", path), redis.Redis(unix_socket_path=path) as client:
            with closing(RedisStore(client)) as store:
                assert hits(store, 2) == [1, 2]

    def test_a_pool_that_waits_does_as_well(self, own_redis: RedisServer) -> None:
        pool = redis.BlockingConnectionPool.from_url(own_redis.url, max_connections=2)
        with redis.Redis(connection_pool=pool) as client, closing(RedisStore(client, timeout=10)) as store:
            in_threads(6, lambda number: hits(store, 10))
            assert hits(store, 1) == [61]
        pool.disconnect()

    def test_a_client_of_valkey_py_does_as_well(self, own_redis: RedisServer) -> None:
        valkey = pytest.importorskip("valkey")
        with valkey.Valkey(port=own_redis.port) as client, closing(RedisStore(client)) as store:
            assert hits(store, 2) == [1, 2]
            client.script_flush()
            assert hits(store, 2) == [3, 4]

    @pytest.mark.parametrize("client", [None, "redis://127.0.0.1", object(), {}])
    def test_anything_else_is_refused(self, client: object) -> None:
        with pytest.raises(TypeError, match="redis.Redis or redis.RedisCluster is wanted, not builtins"):
            RedisStore(client)

    def test_one_for_asyncio_is_refused(self) -> None:
        import redis.asyncio

        with pytest.raises(TypeError, match="not redis.asyncio"):
            RedisStore(redis.asyncio.Redis())

    @pytest.mark.parametrize("make", ["pipeline", "pubsub"])
    def test_what_a_client_makes_is_refused(self, make: str) -> None:
        """Though it has a pool: it is there for one piece of work."""
        with closing(redis.Redis(port=closed_port())) as client, closing(getattr(client, make)()) as made:
            with pytest.raises(TypeError, match="redis.Redis or redis.RedisCluster is wanted, not redis.client"):
                RedisStore(made)

    def test_one_that_reads_from_replicas_is_refused(self) -> None:
        from redis.sentinel import Sentinel

        sentinel = Sentinel([("127.0.0.1", closed_port())])
        with pytest.raises(ValueError, match="master_for"):
            RedisStore(sentinel.slave_for("main"))
        RedisStore(sentinel.master_for("main")).close()


class TestSettings:
    """What the constructor takes, and what becomes of it in copies."""

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("namespace", None, TypeError),
            ("namespace", 5, TypeError),
            ("timeout", 0, ValueError),
            ("timeout", None, TypeError),
            ("timeout", float("inf"), ValueError),
            ("on_missing_expiry", "ignore", ValueError),
        ],
    )
    def test_an_impossible_value_is_refused(self, name: str, value: object, kind: type[Exception]) -> None:
        with closing(redis.Redis()) as client, pytest.raises(kind, match=name):
            RedisStore(client, **{name: value})  # type: ignore[arg-type]

    def test_it_shows_its_settings_but_not_its_client(self) -> None:
        """Whose repr may show a password."""
        with closing(redis.Redis(password=SECRET)) as client:
            store = RedisStore(client, namespace="shop")
            assert repr(store) == "RedisStore(..., namespace='shop', timeout=0.5, on_missing_expiry='repair')"

    def test_a_client_that_cannot_be_pickled_is_named(self) -> None:
        with closing(redis.Redis(password=SECRET)) as client:
            with pytest.raises(TypeError, match="client.*make a store in each process") as raised:
                pickle.dumps(RedisStore(client))
            assert SECRET not in str(raised.value)

    def test_the_settings_travel_with_one_that_can(self) -> None:
        store = RedisStore(PicklableClient("here"), namespace="shop", timeout=2, on_missing_expiry="error")
        again = pickle.loads(pickle.dumps(store))
        assert again.client.place == "here"
        assert (again.namespace, again.timeout, again.on_missing_expiry) == ("shop", 2, "error")

    def test_a_copy_is_the_same_store(self, store: RedisStore) -> None:
        assert copy.copy(store) is store
        assert copy.deepcopy([store])[0] is store


class Pool:
    connection_class = object
    connection_kwargs: dict[str, Any] = {}
    max_connections = 1


class PicklableClient:
    """One that can be sent to another process, such as a user's own."""

    def __init__(self, place: str) -> None:
        self.place = place

    @property
    def connection_pool(self) -> Pool:
        return Pool()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
class TestFork:
    """A child makes connections of its own. In processes of their own: a test's process has threads."""

    @pytest.mark.slow
    def test_parent_and_child_go_on_side_by_side(self, redis_server: GivenServer, redis_space: str) -> None:
        code = """
import os, sys, threading, warnings
import redis
from kreuz_sync.ratelimit.redis import RedisStore
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
client = redis.Redis.from_url(sys.argv[1])
store = RedisStore(client, namespace=sys.argv[2], timeout=10)
stop = threading.Event()
def work():
    while not stop.is_set():
        assert store.increment("policy:busy", 60).used > 0
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(6):
    child = os.fork()
    if not child:
        try:
            for _ in range(20):
                store.increment("policy:key", 60)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
for _ in range(20):
    store.increment("policy:key", 60)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
stop.set()
for thread in threads:
    thread.join()
print(store.increment("policy:key", 60).used)
store.close()
client.close()
"""
        assert finish(start(code, redis_server.url, redis_space)).strip() == "141"


class TestLeftovers:
    """Nothing stays open that nobody uses."""

    def test_a_store_that_is_forgotten_closes_its_connections(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client:
            store = RedisStore(client)
            hits(store, 1)
            assert client.info("clients")["connected_clients"] == 2
            del store
            until = time.monotonic() + 10
            while client.info("clients")["connected_clients"] > 1:
                assert time.monotonic() < until

    def test_importing_the_room_imports_no_redis(self) -> None:
        code = "import sys, kreuz_sync.ratelimit.redis; print('redis' in sys.modules)"
        assert finish(start(code)).strip() == "False"
