"""The same for a cluster: which of its nodes has a key, and what follows when that has changed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from kreuz_sync import fork
from kreuz_sync.clock import SYSTEM_CLOCK

from .redis_connections import Answer, Connections, is_named

Address = tuple[str, int]

_REDIRECTIONS = 5  # a key is where the first of them says, unless slots are on the move


class ClusterConnections:
    """Connections to each node, used for one key at a time.

    client: a `RedisCluster`. It knows the nodes and the slots since it was made, and is asked
    for no more than that: it sends nothing. Where a slot has gone since then the nodes say
    themselves, and what they said is remembered here. A node that failed is not asked first the
    next time: any other primary tells who has its slots now.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self.after_fork()
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        """In the child, another thread may have held the lock."""
        self._lock = threading.Lock()  # guards changes of the three that follow
        self._nodes: dict[Address, Connections] = {}
        self._owners: dict[int, Address] = {}  # by slot: who had it when it was last used
        self._failing: set[Address] = set()

    def ask(self, key: bytes, talk: Callable[[Any], Answer]) -> Answer:
        """What `talk` makes of a connection to the node that has `key`. All nodes together get one `timeout`."""
        ends = SYSTEM_CLOCK.monotonic() + self._timeout
        slot = self._client.keyslot(key)
        address = self._owners.get(slot) or self._known_owner(key)
        if address in self._failing:
            address = self._another(address)
        answer: Answer
        asking = False
        for _ in range(_REDIRECTIONS):
            answer, elsewhere = self._try(address, _asking(talk) if asking else talk, ends)
            if elsewhere is None:
                if address in self._failing or (self._owners.get(slot) != address and not asking):
                    self._learn(slot, address, asking)
                return answer
            # A MovedError is an AskError too. Without a host the node means its own.
            address = (elsewhere.host or address[0], elsewhere.port)
            asking = not is_named(elsewhere, "MovedError")
        raise ConnectionError("the nodes of the cluster send us from one to another")

    def everywhere(self) -> list[Callable[[Callable[[Any], Any]], Any]]:
        """A way to ask each primary, for what is about no key in particular."""
        nodes = {(node.host, node.port) for node in self._client.get_primaries()} | {*self._owners.values()}
        return [self._node(address).ask for address in sorted(nodes)]

    def close(self) -> None:
        """See `Connections.close`."""
        for node in list(self._nodes.values()):
            node.close()

    def _try(self, address: Address, talk: Callable[[Any], Answer], ends: float) -> tuple[Any, Any]:
        """The answer of a node, or its redirection; one of the two is None."""
        try:
            return self._node(address).ask(talk, ends), None
        except Exception as error:
            if is_named(error, "AskError"):
                return None, error
            with self._lock:
                self._failing.add(address)
            raise

    def _learn(self, slot: int, address: Address, asking: bool) -> None:
        with self._lock:
            self._failing.discard(address)
            if not asking:  # one that was asked has no more than a part of the slot so far
                self._owners[slot] = address

    def _known_owner(self, key: bytes) -> Address:
        node = self._client.get_node_from_key(key)
        return node.host, node.port

    def _another(self, failing: Address) -> Address:
        primaries = [(node.host, node.port) for node in self._client.get_primaries()]
        with self._lock:
            others = {*primaries, *self._owners.values()} - {failing}
            healthy = others - self._failing
        return random.choice(sorted(healthy or others or {failing}))

    def _node(self, address: Address) -> Connections:
        with self._lock:
            if address not in self._nodes:
                # All nodes are reached with the same settings; this one may be new to the client.
                like = self._client.get_redis_connection(self._client.get_default_node())
                place = {"host": address[0], "port": address[1]}
                self._nodes[address] = Connections(like.connection_pool, self._timeout, **place)
            return self._nodes[address]


class _Asking:
    """A connection to a node that a slot is moving to, which takes a command for it only after ASKING."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.read_response = connection.read_response

    def send_packed_command(self, command: list[bytes]) -> None:
        self._connection.send_command("ASKING")
        self._connection.read_response()
        self._connection.send_packed_command(command)


def _asking(talk: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    return lambda connection: talk(_Asking(connection))
