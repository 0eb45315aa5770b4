"""Connections of redis-py's kind on which everything ends at one moment, whatever the server does.

A socket's time-out bounds one wait. redis-py waits often: for each address of a host, for each reply of the
handshake, for each piece of an answer, so that a server which sends a byte now and then could hold its caller
for ever. Here each of these waits lasts no longer than what is left. Nothing here imports redis-py.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from kreuz_sync.clock import SYSTEM_CLOCK, monotonic_of

_now = monotonic_of(SYSTEM_CLOCK)

# To set a time-out is a call of the system, and takes longer than to read a short answer. So one that is nearly right
# stays; a use may end so much late.
_NEARLY_S = 0.005


class Moment:
    """When the use of a connection ends that is under way, by the monotonic clock."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = inf

    def left(self, most: float) -> float:
        """Seconds until then, at most `most`. Raises TimeoutError if none are."""
        left = self.at - _now()
        if left <= 0:
            raise TimeoutError("the time for this is over")
        return min(left, most)


class BoundedSocket:
    """A connected socket, of which each wait ends with what is left until `moment`.

    has_news: tells at once whether there is something to read. Where everything was read that was
    asked for, that is the end of the connection. On a TLS connection it may be a message of TLS's own,
    which none sends between two answers without a reason.
    """

    def __init__(self, sock: socket.socket, moment: Moment, most: float) -> None:
        self._socket = sock
        self._moment = moment
        self._most = most
        self._set = -1.0  # the time-out that the socket has
        self.has_news = _look_at(sock)

    def recv(self, *arguments: Any) -> bytes:
        self._bound()
        return self._socket.recv(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        self._bound()
        return self._socket.recv_into(*arguments)

    def sendall(self, data: Any) -> None:
        self._bound()
        self._socket.sendall(data)

    def settimeout(self, seconds: float | None) -> None:
        """The longest of each wait from here on; redis-py's way to look without waiting."""
        self._most = inf if seconds is None else seconds

    def _bound(self) -> None:
        left = self._moment.left(self._most)
        if abs(left - self._set) > _NEARLY_S or left < _NEARLY_S:
            self._socket.settimeout(left)
            self._set = left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class Bounded:
    """Goes before the class of redis-py that makes a connection. See `bounded`."""

    def __init__(self, *, socket_timeout: float, socket_connect_timeout: float, **settings: Any) -> None:
        self.moment = Moment()
        self.news: BoundedSocket | None = None
        self._waits = socket_connect_timeout, socket_timeout
        settings.update(socket_timeout=socket_timeout, socket_connect_timeout=socket_connect_timeout)
        super().__init__(**settings)

    # Read for each address that is tried, and for the handshake of TLS. redis-py also sets them: to what we gave it.

    @property
    def socket_connect_timeout(self) -> float:
        return self.moment.left(self._waits[0])

    @socket_connect_timeout.setter
    def socket_connect_timeout(self, seconds: float | None) -> None:
        pass

    @property
    def socket_timeout(self) -> float:
        return self.moment.left(self._waits[1])

    @socket_timeout.setter
    def socket_timeout(self, seconds: float | None) -> None:
        pass

    def _connect(self) -> BoundedSocket:
        sock = super()._connect()  # type: ignore[misc]
        self.news = BoundedSocket(sock, self.moment, self._waits[1])
        return self.news


def bounded(kind: type) -> type[Any]:
    """A kind of connection like `kind`, of redis-py, whose `moment.at` is to be set before each use.

    Made with what `kind` takes, `socket_timeout` and `socket_connect_timeout` in any case: seconds for one wait.
    """
    return type(f"Bounded{kind.__name__}", (Bounded, kind), {})


def _look_at(sock: socket.socket) -> Callable[[], object]:
    """Something true where `sock` can be read from, or has ended, or failed."""
    if not hasattr(select, "poll"):  # Windows
        return lambda: select.select([sock], [], [], 0)[0]
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return partial(poll.poll, 0)
