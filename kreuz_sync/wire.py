"""requests' HTTPAdapter, whose connections are known to the call that uses them.

A call with a deadline has to end an exchange that is stuck anywhere: in the TLS handshake, in
a proxy's CONNECT, in the header section. So each connection tells the current call's
`Exchange` of its socket: a new one as soon as it is connected, before a byte is sent on it,
and a kept one when it is taken from the pool. A call without a deadline pays for one look
into a context variable. A call that somebody makes for others (`fetch_all`) tells them of its
connection too, since they may end it at any moment.

Pools made by other code (a user's own adapter, SOCKS proxies) do not do this: there the
time-outs bound a call until its answer comes.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import urllib3.connection
import urllib3.connectionpool
from requests.adapters import HTTPAdapter

from .calls import current

if TYPE_CHECKING:
    from .watchdog import Exchange


class WireAdapter(HTTPAdapter):
    """requests' HTTPAdapter with the pools of this file."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """As requests' own."""
        super().init_poolmanager(*args, **options)
        _use_our_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """As requests' own."""
        manager = super().proxy_manager_for(proxy, **options)
        _use_our_pools(manager)
        return manager


def _use_our_pools(manager: Any) -> None:
    manager.pool_classes_by_scheme = {
        scheme: _POOLS.get(pool, pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }


def _exchange() -> Exchange | None:
    call = current.get()
    return None if call is None else call.exchange


def take_ticket(ticket: list[None]) -> bool:
    """Whether whoever asks is the first to do so."""
    try:
        ticket.pop()
    except IndexError:
        return False
    return True


def _tell_helper(connection: Any) -> None:
    call = current.get()
    if call is not None and call.helper is not None and getattr(connection, "sock", None) is not None:
        call.helper.connected(connection)


class Connection:
    """What is added to urllib3's connections.

    ticket: a list with one item, while a helper's call uses it. Whoever takes that out decides: the helper, to
    end what goes on here, or the pool that it is given back to, after which nobody ends it. None without a helper.
    """

    socket_options: Any
    ticket: list[None] | None = None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        _tell_helper(self)

    def _new_conn(self) -> Any:
        exchange = _exchange()
        connect = super()._new_conn  # type: ignore[misc]
        if exchange is None:
            return connect()
        options = self.socket_options
        self.socket_options = _WhileInTime(options or (), exchange)
        try:
            sock = connect()
        finally:
            self.socket_options = options
        exchange.hold(sock)
        return sock

    def _tunnel(self) -> None:
        super()._tunnel()  # type: ignore[misc]
        exchange = _exchange()
        if exchange is not None:  # cut off in its header section, a proxy's answer looks like a whole one
            _require_time(exchange)


class _WhileInTime:
    """Socket options that are refused once it is late.

    urllib3 asks for them anew for each address of a host, and each has the whole connect time-out.
    """

    def __init__(self, options: Any, exchange: Exchange) -> None:
        self._options = options
        self._exchange = exchange

    def __iter__(self) -> Iterator[Any]:
        _require_time(self._exchange)
        return iter(self._options)


def _require_time(exchange: Exchange) -> None:
    if exchange.late:
        raise socket.timeout("the deadline has passed")  # noqa: UP041  # in Python 3.10 they are two


class HTTPConnection(Connection, urllib3.connection.HTTPConnection):
    """urllib3's, and it tells of its socket."""


class HTTPSConnection(Connection, urllib3.connection.HTTPSConnection):
    """urllib3's, and it tells of its socket."""


_CONNECTIONS: dict[type, type] = {
    urllib3.connection.HTTPConnection: HTTPConnection,
    urllib3.connection.HTTPSConnection: HTTPSConnection,
}


class _Pool:
    """What is added to urllib3's pools."""

    @property
    def ConnectionCls(self) -> Any:
        """Ours in place of urllib3's own; but what somebody else (vcrpy) put there stays."""
        kind = super().ConnectionCls  # type: ignore[misc]
        return _CONNECTIONS.get(kind, kind)

    def _get_conn(self, timeout: float | None = None) -> Any:
        exchange = _exchange()
        if exchange is not None:
            _require_time(exchange)  # urllib3 may be repeating by itself
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        if exchange is not None:
            exchange.hold(getattr(connection, "sock", None))
        _tell_helper(connection)
        return connection

    def _put_conn(self, conn: Any) -> None:
        ticket = getattr(conn, "ticket", None)
        if ticket is not None:
            conn.ticket = None
            if not take_ticket(ticket):
                conn.close()  # it was shut down, and serves nobody again
        super()._put_conn(conn)  # type: ignore[misc]


class HTTPConnectionPool(_Pool, urllib3.connectionpool.HTTPConnectionPool):  # type: ignore[override]
    """urllib3's, with the connections of this file."""


class HTTPSConnectionPool(_Pool, urllib3.connectionpool.HTTPSConnectionPool):  # type: ignore[override]
    """urllib3's, with the connections of this file."""


_POOLS: dict[type, type] = {
    urllib3.connectionpool.HTTPConnectionPool: HTTPConnectionPool,
    urllib3.connectionpool.HTTPSConnectionPool: HTTPSConnectionPool,
}
