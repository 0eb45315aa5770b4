"""Counters in a cluster: each key is on the node that has its slot, wherever that goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from kreuz_sync.ratelimit import StoreUnavailable
from kreuz_sync.ratelimit.redis import RedisStore
from kreuz_sync.redis_cluster import ClusterConnections
from tests.redis_server import RedisCluster, RedisServer

from .contract import hits, in_threads

pytest.importorskip("redis")

# One key on each node; a key of its own for each test that moves its slot.
KEYS = [f"policy:{number}" for number in range(20)]


@pytest.fixture
def client(redis_cluster: RedisCluster) -> Iterator[Any]:
    with redis_cluster.client() as client:
        yield client


@pytest.fixture
def store(redis_cluster: RedisCluster, client: Any) -> Iterator[RedisStore]:
    for node in redis_cluster.nodes:
        with node.client() as direct:
            direct.flushall()
    with closing(RedisStore(client, timeout=5)) as store:
        yield store


def failure_of(store: RedisStore, key: str) -> str | None:
    """The detail of a hit's failure, None if it is counted."""
    try:
        store.increment(key, 60)
    except StoreUnavailable as failure:
        return failure.detail
    return None


class Move:
    """The slot of a key on its way from the node that has it to the other, step by step."""

    def __init__(self, cluster: RedisCluster, client: Any, key: str) -> None:
        self.name = f"rl:{key}"
        self.slot = client.keyslot(self.name)
        self.source = cluster.node_of(client.get_node_from_key(self.name).port)
        self.target = next(node for node in cluster.nodes if node is not self.source)

    def command(self, node: RedisServer, *words: object) -> Any:
        with node.client() as direct:
            return direct.execute_command(*words)

    def begin(self) -> None:
        source, target = (self.command(node, "CLUSTER", "MYID") for node in (self.source, self.target))
        self.command(self.target, "CLUSTER", "SETSLOT", self.slot, "IMPORTING", source)
        self.command(self.source, "CLUSTER", "SETSLOT", self.slot, "MIGRATING", target)

    def move_key(self) -> None:
        assert self.command(self.source, "MIGRATE", "127.0.0.1", self.target.port, self.name, 0, 5000) == b"OK"

    def end(self, *nodes: RedisServer) -> None:
        target = self.command(self.target, "CLUSTER", "MYID")
        for node in nodes or (self.target, self.source):
            self.command(node, "CLUSTER", "SETSLOT", self.slot, "NODE", target)


class TestNodes:
    """Whoever has a key's slot counts it."""

    @pytest.mark.slow
    def test_every_key_is_counted_on_its_node(self, store: RedisStore, redis_cluster: RedisCluster) -> None:
        assert [hits(store, 2, key) for key in KEYS] == [[1, 2]] * 20
        sizes = []
        for node in redis_cluster.nodes:
            with node.client() as direct:
                sizes.append(direct.dbsize())
        assert sum(sizes) == 20 and min(sizes) > 0

    def test_threads_lose_no_hit(self, store: RedisStore) -> None:
        in_threads(8, lambda number: [hits(store, 5, key) for key in KEYS])
        assert [hits(store, 1, key) for key in KEYS] == [[41]] * 20

    def test_each_node_may_forget_the_script(self, store: RedisStore, redis_cluster: RedisCluster) -> None:
        for key in KEYS:
            hits(store, 1, key)
        for node in redis_cluster.nodes:
            with node.client() as direct:
                direct.script_flush()
        assert [hits(store, 1, key) for key in KEYS] == [[2]] * 20

    @pytest.mark.filterwarnings("ignore:.*read_from_replicas:DeprecationWarning")
    def test_a_client_that_reads_from_replicas_counts_on_primaries(self, redis_cluster: RedisCluster) -> None:
        with redis_cluster.client(read_from_replicas=True) as client, closing(RedisStore(client, timeout=5)) as store:
            assert [hits(store, 2, f"replicas:{number}") for number in range(4)] == [[1, 2]] * 4

    def test_a_closed_store_may_be_used_again(self, store: RedisStore) -> None:
        hits(store, 2)
        store.close()
        assert hits(store, 1) == [3]

    def test_a_key_of_another_type_is_a_failure(self, store: RedisStore, client: Any) -> None:
        """Of that key alone; the node is as good as before."""
        client.rpush("rl:policy:list", "a")
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                store.increment("policy:list", 60)
        assert [hits(store, 1, key) for key in KEYS] == [[1]] * 20


class TestMoves:
    """A slot may go to another node at any time, its keys with it."""

    def test_no_hit_is_lost_on_the_way(self, store: RedisStore, redis_cluster: RedisCluster, client: Any) -> None:
        key = "moving:0"
        move = Move(redis_cluster, client, key)
        assert hits(store, 2, key) == [1, 2]
        move.begin()
        assert hits(store, 1, key) == [3]  # still where it was
        move.move_key()
        assert hits(store, 2, key) == [4, 5]  # asked for where it goes to
        move.command(move.target, "SCRIPT", "FLUSH")
        assert hits(store, 2, key) == [6, 7]
        move.end()
        assert hits(store, 2, key) == [8, 9]  # moved

    def test_a_move_is_remembered(self, store: RedisStore, redis_cluster: RedisCluster, client: Any) -> None:
        """The client is not told, and need not be."""
        key = "moving:1"
        move = Move(redis_cluster, client, key)
        move.begin()
        move.end()
        hits(store, 1, key)
        with move.source.client() as direct:
            before = direct.info("errorstats")
            hits(store, 5, key)
            assert direct.info("errorstats") == before


class TestOutage:
    """Of one node, while others go on."""

    def test_a_node_that_hangs_is_a_failure_in_time(self, redis_cluster: RedisCluster, client: Any) -> None:
        """Of the keys that it has."""
        with closing(RedisStore(client, timeout=0.1)) as store:
            for key in KEYS:
                hits(store, 1, key)
            redis_cluster.nodes[1].freeze()
            began = time.monotonic()
            details = [failure_of(store, key) for key in KEYS]
            assert time.monotonic() - began < 20
            assert set(details) == {None, "redis_command_failed"}
            redis_cluster.nodes[1].thaw()
            time.sleep(0.2)
            for key in KEYS:
                assert store.increment(key, 60).used >= 2

    def test_a_node_whose_slots_another_took_over_is_gone_round(self, redis_cluster: RedisCluster, client: Any) -> None:
        """As after a failover, of which the client has not heard."""
        key = "moving:2"
        move = Move(redis_cluster, client, key)
        with closing(RedisStore(client, timeout=0.1)) as store:
            move.begin()
            move.source.freeze()
            with pytest.raises(StoreUnavailable):
                store.increment(key, 60)
            move.end(move.target)
            assert hits(store, 2, key) == [1, 2]
            move.source.thaw()
            move.end(move.source)

    def test_a_cluster_that_sends_us_in_circles_is_a_failure(self) -> None:
        """And not a loop."""

        class AskError(Exception):
            host, port = "127.0.0.1", 2

        class MovedError(AskError):
            pass

        def talk(_: Any) -> None:
            raise MovedError

        class Connection:
            def __init__(self, **settings: Any) -> None:
                pass

            def connect(self) -> None:
                pass

            disconnect = connect

        pool = SimpleNamespace(connection_class=Connection, connection_kwargs={}, max_connections=3)
        node = SimpleNamespace(host="127.0.0.1", port=1)
        client = SimpleNamespace(
            keyslot=lambda key: 5,
            get_node_from_key=lambda key: node,
            get_default_node=lambda: node,
            get_primaries=lambda: [node],
            get_redis_connection=lambda node: SimpleNamespace(connection_pool=pool),
        )
        with pytest.raises(ConnectionError, match="from one to another"):
            ClusterConnections(client, 1.0).ask(b"key", talk)
