"""The store in Redis or Valkey, for several machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kreuz_sync import checks
from kreuz_sync.settings import Single

from .store import Body, CacheStore, Record

_KEEP_S = 30 * 24 * 3600.0


class RedisCacheStore(Single, CacheStore):
    """Keeps records in Redis or Valkey; all that use one server, with one `namespace`, share them.

    client: a `redis.Redis` or `redis.RedisCluster` (valkey-py's do as well), which stays yours: it is
    neither used to send anything nor closed. The store has connections of its own, to the same place
    and with the same log-in, as many as threads use it at once (at most the client's
    `max_connections`). Or a function without arguments that makes such a client, called when the
    store is first used: with one that can be pickled, so can the store. namespace: goes before every
    key, as `namespace:cache:...`, unless it is empty.

    max_entries: records kept, the least recently used go first; 0 for any number. max_bytes: of
    their heads and bodies together, None for any size; a larger body is not kept. ttl: seconds after
    which a record goes that was not stored anew, or found to be still right, since then; None for
    ever. All who share a namespace should have the same three.

    memory: bytes for records that this process read before: they are not sent again as long as
    nobody has changed them, which the server is asked every time. 0 for none.

    timeout: seconds after which a server counts as failed that has not answered; a client's own
    shorter time-outs hold too. Then it is left alone for as long again, and `StoreTrouble` raised at
    once. Sending or reading a large body takes as many such times as it has pieces, at most.

    chunk: bytes of a body in one piece. A larger body is sent, and read, piece by piece. secret: 32
    bytes that all who share the namespace have (see `CacheStore.secret`); None to have one kept in
    Redis, beside the records.

    Whatever the server evicts (`maxmemory`) counts as absent. A body that is being read while its
    record is replaced or dropped stays for a minute, and longer while it is read; if the server
    evicts it, or is gone, the next read raises `StoreTrouble`.

    A copy is the same store. The child of a fork makes its own connections. Needs Redis 5 or later.
    """

    def __init__(
        self,
        client: Any,
        *,
        namespace: str = "",
        max_entries: int = 10_000,
        max_bytes: int | None = None,
        ttl: float | None = _KEEP_S,
        memory: int = 16 * 2**20,
        timeout: float = 0.5,
        chunk: int = 2**18,
        secret: bytes | None = None,
    ) -> None:
        from .remote.index import Limits
        from .remote.names import Names
        from .remote.secret import LENGTH
        from .remote.space import Space
        from .remote.wire import Server

        self.client = client
        self.namespace = checks.text("namespace", namespace) if namespace != "" else ""
        self.max_entries = checks.count("max_entries", max_entries)
        self.max_bytes = None if max_bytes is None else checks.count("max_bytes", max_bytes, least=1)
        self.ttl = None if ttl is None else checks.seconds("ttl", ttl, least=1.0)
        self.memory = checks.count("memory", memory)
        self.timeout = checks.seconds("timeout", timeout, above=0)
        self.chunk = checks.count("chunk", chunk, least=1024)
        if secret is not None and (not isinstance(secret, bytes) or len(secret) != LENGTH):
            raise ValueError(f"secret=...: {LENGTH} bytes are wanted")
        self._own_secret = secret
        self._server = Server(client, self.timeout)
        limits = Limits(self.max_entries, self.max_bytes, b"" if self.ttl is None else b"%d" % (self.ttl * 1000))
        self._space = Space(
            *(self._server, Names(self.namespace), limits),
            piece=self.chunk,
            memory=self.memory,
            own_secret=secret,
        )

    def read(self, key: str) -> Record | None:
        return self._space.read(key)

    def write(self, key: str, head: bytes, body: Body) -> None:
        self._space.write(key, head, body, None)

    def write_if_current(self, key: str, head: bytes, body: Body, age: float) -> bool:
        return self._space.write(key, head, body, age)

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
        return self._space.rewrite_head(key, head, expected)

    def delete(self, key: str) -> bool:
        return self._space.dropper.delete(key)

    def delete_under(self, prefix: str) -> int:
        return self._space.delete_under(prefix)

    def keys(self) -> Iterator[str]:
        return (key for key, _ in self._space.heads())

    def records(self, *, bodies: bool = True) -> Iterator[tuple[str, Record]]:
        """As every store; without `bodies` 500 in one round trip."""
        if bodies:
            return super().records()
        return ((key, Record(head, b"")) for key, head in self._space.heads())

    def clear(self) -> int:
        """As every store. It goes through all keys of the server, other users' too, to find what is ours."""
        return self._space.dropper.clear()

    def __len__(self) -> int:
        """How many records are listed: with those that the server has evicted and nobody has missed yet."""
        return self._space.index.count()

    def volume(self) -> int:
        """Bytes of all heads and bodies that are listed."""
        return self._space.index.volume()

    def secret(self) -> bytes:
        return self._space.secret.get()

    @property
    def renewals(self) -> int:
        return self._space.secret.renewals

    def close(self) -> None:
        """Close the store's own connections. They are made anew when it is used again."""
        self._server.close()

    # --- copies -------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        names = ("namespace", "max_entries", "max_bytes", "ttl", "memory", "timeout", "chunk")
        return {name: getattr(self, name) for name in names}

    def __reduce__(self) -> tuple[Any, ...]:
        from kreuz_sync.redis_clients import A_FUNCTION, require_picklable

        require_picklable(self.client, "RedisCacheStore", A_FUNCTION)
        return _again, (self.client, {**self._settings(), "secret": self._own_secret})

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"RedisCacheStore(..., {settings})"


def _again(client: Any, settings: dict[str, Any]) -> RedisCacheStore:
    return RedisCacheStore(client, **settings)
