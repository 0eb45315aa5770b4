"""The store in a cluster: what belongs together is on one node, wherever that is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from kreuz_sync.cache import RedisCacheStore
from kreuz_sync.cache.store import StoreTrouble

from .redis_server import RedisCluster
from .store_contract import LARGE, SMALL, MakeStore, StoreContract, content, fill
from .test_cache_store_redis import URI

redis = pytest.importorskip("redis")

# Keys whose groups are on both nodes.
KEYS = [f"{number:032x}" for number in range(20)]


@pytest.fixture(scope="module")
def client(redis_cluster: RedisCluster) -> Iterator[Any]:
    with redis_cluster.client() as client:
        yield client


@pytest.fixture
def store(redis_cluster: RedisCluster, client: Any) -> Iterator[RedisCacheStore]:
    for node in redis_cluster.nodes:
        with node.client() as direct:
            direct.flushall()
    with closing(RedisCacheStore(client, timeout=10, memory=0, chunk=2**16)) as store:
        yield store


class TestRedisCacheStore(StoreContract):
    """All that every store promises."""

    @pytest.fixture
    def make_store(self, redis_cluster: RedisCluster) -> MakeStore:
        make_client = partial(redis.RedisCluster, host="127.0.0.1", port=redis_cluster.nodes[0].port)
        return lambda **limits: RedisCacheStore(
            make_client, namespace=uuid.uuid4().hex, timeout=10, chunk=2**16, **limits
        )


class TestNodes:
    """Each has a share of the records, whole."""

    def where(self, redis_cluster: RedisCluster) -> dict[bytes, int]:
        """Which node has what."""
        found = {}
        for number, node in enumerate(redis_cluster.nodes):
            with node.client() as direct:
                found.update(dict.fromkeys(direct.keys("*"), number))
        return found

    def test_all_of_one_uri_is_on_one_node(self, store: RedisCacheStore, redis_cluster: RedisCluster) -> None:
        for rest in ("", ".identity", ".identity~variant"):
            store.write(f"{URI}{rest}", b"head", LARGE)
        where = self.where(redis_cluster)
        parts = {number for name, number in where.items() if URI.encode() in name}
        assert len([name for name in where if URI.encode() in name]) == 7
        assert len(parts) == 1
        assert store.delete_under(URI) == 3

    def test_different_ones_are_spread(self, store: RedisCacheStore, redis_cluster: RedisCluster) -> None:
        fill(store, *KEYS)
        where = self.where(redis_cluster)
        assert {number for name, number in where.items() if name.startswith(b"cache:g")} == {0, 1}
        assert (len(store), list(store.keys())) == (20, KEYS)
        assert [content(store.read(key)) for key in KEYS] == [b"x" * 10] * 20

    def test_clearing_reaches_all_nodes(self, store: RedisCacheStore, redis_cluster: RedisCluster, client: Any) -> None:
        """Also what is not on the list."""
        fill(store, *KEYS)
        client.delete("cache:{index}:uses")
        fill(store, "listed")
        assert store.clear() == 21
        assert not [name for name in self.where(redis_cluster) if name.startswith((b"cache:r", b"cache:b"))]

    def test_a_slot_that_moves_takes_its_records_along(
        self, store: RedisCacheStore, redis_cluster: RedisCluster, client: Any
    ) -> None:
        """While it does, what is in both places may be trouble; before and after it nothing is."""
        store.write(URI, b"head", LARGE)
        body = store.read(URI)
        names = sorted(name for name in self.where(redis_cluster) if URI.encode() in name)
        slot = client.keyslot(names[0])
        source = redis_cluster.node_of(client.get_node_from_key(names[0]).port)
        target = next(node for node in redis_cluster.nodes if node is not source)
        with source.client() as there, target.client() as here:
            target_id, source_id = (one.execute_command("CLUSTER", "MYID") for one in (here, there))
            here.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
            there.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
            for name in names:
                assert there.execute_command("MIGRATE", "127.0.0.1", target.port, name, 0, 5000) == b"OK"
                try:
                    record = store.read(URI)
                    assert record is None or content(record) == LARGE
                except StoreTrouble:
                    pass
            for one in (here, there):
                one.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        assert content(body) == LARGE
        store.write(URI, b"head", SMALL)
        assert content(store.read(URI)) == SMALL
