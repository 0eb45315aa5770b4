"""Connections that are made to the address that was checked, and to no other."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import urllib3
import urllib3.connection
import urllib3.connectionpool
import urllib3.util.connection
from urllib3 import exceptions as lower

from kreuz_sync import wire
from kreuz_sync.calls import current

from .blocked import Blocked

if TYPE_CHECKING:
    from .guard import AddressGuard

# urllib3 1.26 has one error for all that keeps a connection from being made.
_NameResolutionError: Any = getattr(lower, "NameResolutionError", None)


class _ToCheckedAddress:
    """In place of urllib3's way to connect, which looks a name up without telling what it found.

    guard: set by the pool. private: whether the peer has a private address, which the guard lets pass.
    """

    guard: AddressGuard
    private = False
    host: str
    port: int
    timeout: Any
    source_address: Any
    socket_options: Any
    sock: Any
    _dns_host: str  # with the trailing dot that `host` does without

    def _new_conn(self) -> socket.socket:
        host = self._dns_host.strip("[]")
        try:
            rows = self._look_up(host)
            for row in rows:  # all of them: a name with one private address among others is a trap
                self._admit(host, row[4])
            sock = self._connect(rows)
            try:
                # Redirecting firewalls and replaced socket classes aside, this is the address just checked.
                self.private = self._admit(host, sock.getpeername())
            except BaseException:
                sock.close()
                raise
        except socket.gaierror as error:
            raise self._unresolved(error) from error
        except socket.timeout as error:  # noqa: UP041  # in Python 3.10 they are two
            text = f"Connection to {self.host} timed out. (connect timeout={self.timeout})"
            raise lower.ConnectTimeoutError(self, text) from error
        except OSError as error:
            raise self._failed(error) from error
        self.tell()
        sys.audit("http.client.connect", self, self.host, self.port)
        return sock

    def tell(self) -> None:
        """Let the call know what kind of peer it talks to: a redirect may come from there."""
        call = current.get()
        if call is not None:
            call.at_private = self.private

    def admit_again(self) -> None:
        """As when the connection was made, for the call that takes it from its pool now. Raises Blocked."""
        if self.sock is None:
            return  # it was dropped meanwhile, and will be made anew
        if self.private:
            self._admit(self._dns_host.strip("[]"), self.sock.getpeername())
        self.tell()

    def _admit(self, host: str, address: Any) -> bool:
        return self.guard.admit(host, address[0] if address else "", current.get())

    def _look_up(self, host: str) -> list[tuple[Any, ...]]:
        family = urllib3.util.connection.allowed_gai_family()
        try:
            host.encode("idna")
            rows = list(self.guard.lookup(host, self.port, family, socket.SOCK_STREAM))
        except UnicodeError:
            raise lower.LocationParseError(f"'{host}', label empty or too long") from None
        if not rows:
            raise OSError("the look-up gave no address")
        return rows

    def _connect(self, rows: Iterable[tuple[Any, ...]]) -> socket.socket:
        """A connection to the first address that takes one, as urllib3 makes it. Raises OSError."""
        failure: OSError | None = None
        for family, kind, protocol, _, address in rows:
            sock = None
            try:
                sock = socket.socket(family, kind, protocol)
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                if self.timeout is None or isinstance(self.timeout, (int, float)):  # else: the system's default
                    sock.settimeout(self.timeout)
                if self.source_address:
                    sock.bind(self.source_address)
                sock.connect(address)
                return sock
            except OSError as error:
                failure = error
                if sock is not None:
                    sock.close()
        try:
            assert failure is not None
            raise failure
        finally:
            failure = None  # it knows this frame by its traceback

    def _unresolved(self, error: socket.gaierror) -> Exception:
        if _NameResolutionError is None:
            return self._failed(error)
        return cast(Exception, _NameResolutionError(self.host, self, error))

    def _failed(self, error: OSError) -> Exception:
        return lower.NewConnectionError(cast(Any, self), f"Failed to establish a new connection: {error}")


class HTTPConnection(wire.Connection, _ToCheckedAddress, urllib3.connection.HTTPConnection):
    """That of `wire.py`, to checked addresses."""


class HTTPSConnection(wire.Connection, _ToCheckedAddress, urllib3.connection.HTTPSConnection):
    """That of `wire.py`, to checked addresses. The server's name for TLS stays the host's."""


_CONNECTIONS: dict[type, type] = {
    urllib3.connection.HTTPConnection: HTTPConnection,
    urllib3.connection.HTTPSConnection: HTTPSConnection,
    wire.HTTPConnection: HTTPConnection,
    wire.HTTPSConnection: HTTPSConnection,
}


class _GuardedPool:
    """A pool all of whose connections are guarded by one guard, from the first on."""

    guard: AddressGuard

    def __init__(self, *args: Any, guard: AddressGuard, **options: Any) -> None:
        self.guard = guard
        super().__init__(*args, **options)

    @property
    def ConnectionCls(self) -> Any:
        """Ours in place of those of `wire.py`."""
        kind = super().ConnectionCls  # type: ignore[misc]
        return _CONNECTIONS.get(kind, kind)

    def _new_conn(self) -> Any:
        connection = super()._new_conn()  # type: ignore[misc]
        # A connection that vcrpy put in place keeps the one that it records from in `real_connection`.
        real = connection
        if not isinstance(connection, _ToCheckedAddress):
            real = getattr(connection, "real_connection", None)
            if type(real) not in _CONNECTIONS:
                why = f"would be connected to by a {type(connection).__name__}, where its address cannot be checked"
                raise Blocked(self.host, why, kind="unknown")  # type: ignore[attr-defined]
            real.__class__ = _CONNECTIONS[type(real)]
        real.guard = self.guard
        return connection

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        # What a strict guard let into the pool it would let in again; the other kind asks whose call it is.
        if self.guard.redirects_only and isinstance(connection, _ToCheckedAddress):
            try:
                connection.admit_again()
            except BaseException:
                connection.close()  # type: ignore[attr-defined]  # urllib3 gives its place back
                raise
        return connection


class HTTPConnectionPool(_GuardedPool, wire.HTTPConnectionPool):  # type: ignore[override]
    """That of `wire.py`, with the connections of this file."""


class HTTPSConnectionPool(_GuardedPool, wire.HTTPSConnectionPool):  # type: ignore[override]
    """That of `wire.py`, with the connections of this file."""


_POOLS: dict[Any, type] = {
    urllib3.connectionpool.HTTPConnectionPool: HTTPConnectionPool,
    urllib3.connectionpool.HTTPSConnectionPool: HTTPSConnectionPool,
    wire.HTTPConnectionPool: HTTPConnectionPool,
    wire.HTTPSConnectionPool: HTTPSConnectionPool,
}


# How urllib3's manager gets at a pool. One that overrides any of these may use others.
_TO_A_POOL = (
    *("_new_pool", "connection_from_context", "connection_from_host", "connection_from_pool_key"),
    *("connection_from_url", "urlopen"),
)


def guard_pools(manager: Any, guard: AddressGuard) -> None:
    """Have every connection that `manager` makes from now on guarded, and drop those it has.

    Raises ValueError if another guard has it already, TypeError if it or its pools are of a kind unknown here.
    """
    _require_known(manager)
    made: dict[str, Any] = {}
    for scheme, pool in manager.pool_classes_by_scheme.items():
        other = pool.keywords["guard"] if isinstance(pool, partial) else None
        if other == guard:
            return  # both schemes are done at once
        if other is not None:
            raise ValueError("this adapter serves another session, whose deny_private differs: make one for each")
        if pool not in _POOLS:
            raise TypeError(f"deny_private cannot check the connections of {pool!r}, which this adapter uses")
        made[scheme] = partial(_POOLS[pool], guard=guard)
    manager.pool_classes_by_scheme = made
    manager.clear()


def _require_known(manager: Any) -> None:
    kind, plain = type(manager), urllib3.PoolManager
    own = {*getattr(manager, "__dict__", ())}
    if not isinstance(manager, plain) or any(
        getattr(kind, name) is not getattr(plain, name) or name in own for name in _TO_A_POOL
    ):
        raise TypeError(f"deny_private cannot check the connections of a {kind.__name__}, which this adapter uses")
    if "pool_classes_by_scheme" not in own:
        raise TypeError(f"deny_private cannot set the pools of a {kind.__name__}, which this adapter uses")
