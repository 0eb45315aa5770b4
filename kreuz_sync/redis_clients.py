"""Which kind of redis-py client somebody handed in, and the ways to its server that are made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .redis_cluster import ClusterConnections
from .redis_connections import Connections

Talk = Callable[[Any], Any]

A_FUNCTION = "give it a function that makes the client, from the top level of a module"

# What a client makes for one piece of work has its pool too.
_OF_A_CLIENT = frozenset({"Pipeline", "ClusterPipeline", "PubSub", "ClusterPubSub", "Monitor"})


class Ways(NamedTuple):
    """How a server, or the nodes of a cluster, are asked. See `Connections.ask`.

    ask: asks whoever has a key, with a function of a connection. everywhere: ways to ask each
    primary. together: whether one node has all keys, so that several commands may be sent at once.
    """

    ask: Callable[[bytes, Talk], Any]
    everywhere: Callable[[], list[Callable[[Talk], Any]]]
    close: Callable[[], None]
    together: bool


def is_client(thing: Any) -> bool:
    """Whether it looks like a client of redis-py or valkey-py, and not like a function that makes one."""
    return hasattr(thing, "get_node_from_key") or hasattr(getattr(thing, "connection_pool", None), "connection_class")


def require_picklable(client: Any, owner: str, remedy: str) -> None:
    """Raise TypeError if `client` cannot travel with its `owner`. remedy: what to do about it."""
    import pickle

    try:
        pickle.dumps(client)
    except Exception as error:
        raise TypeError(f"{owner} cannot be pickled, since its client cannot ({error}): {remedy}") from error


def ways_to(client: Any, timeout: float) -> Ways:
    """The ways to the server of a `redis.Redis` or `redis.RedisCluster`. timeout: seconds for each use.

    Raises TypeError for anything else (a client for asyncio, a pipeline), ValueError for one that reads from replicas.
    """
    kinds = type(client).__mro__
    if not any(".asyncio." in f"{kind.__module__}." or kind.__name__ in _OF_A_CLIENT for kind in kinds):
        pool = getattr(client, "connection_pool", None)
        if getattr(pool, "is_master", True) is False:
            raise ValueError("client: it reads from replicas, and this store writes; Sentinel's master_for() is wanted")
        if hasattr(pool, "connection_class"):
            connections = Connections(pool, timeout)
            return Ways(
                lambda _, talk: connections.ask(talk), lambda: [connections.ask], connections.close, together=True
            )
        if hasattr(client, "get_node_from_key"):
            cluster = ClusterConnections(client, timeout)
            return Ways(cluster.ask, cluster.everywhere, cluster.close, together=False)
    kind = f"{kinds[0].__module__}.{kinds[0].__name__}"
    raise TypeError(f"client: a redis.Redis or redis.RedisCluster is wanted, not {kind}")
