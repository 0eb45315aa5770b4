"""Connections of our own to the server of a redis-py client, on which every use has an end.

A client that a user hands in may wait for ever, since its sockets need no time-out; and it may
send a command again whose answer was lost, though a counter must not be increased twice. So a
store takes from the client where the server is and how to log in, and talks on connections of
its own. Nothing here imports redis-py: the connections' class is the client's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from kreuz_sync import fork
from kreuz_sync.clock import SYSTEM_CLOCK, monotonic_of

from .redis_sockets import bounded

Answer = TypeVar("Answer")

# What redis-py adds to a pool's settings so that the pool may lengthen its connections' time-outs.
_OF_THEIR_POOL = ("maint_", "maintenance_", "orig_", "oss_")

_WAITS = ("socket_connect_timeout", "socket_timeout")  # settings of a pool: the longest that one wait may take

_now = monotonic_of(SYSTEM_CLOCK)


class Connections:
    """As many as are in use at once, but no more than the client's pool may have.

    pool: the `connection_pool` of a client. timeout: seconds that one use may take in all, with the wait for
    a free connection, connecting, the handshake and every answer. place: settings that are to stand in
    place of the pool's, such as another host.

    Nothing is connected before it is needed. A connection that the server has closed meanwhile is
    made anew, one that failed is closed, and nothing is sent twice. Threads may share this, and a
    child of a fork makes its own connections. Text is given out as bytes, whatever the client does.

    A server that let the time pass is left alone for as long again: nobody waits for it meanwhile, and after
    that one tries, and the others do so once it has answered. What is connected to it is given up, since
    the other end of those connections may be gone without a word.
    """

    def __init__(self, pool: Any, timeout: float, **place: Any) -> None:
        self._pool = pool
        self._timeout = timeout
        self._place = place
        self._kind = bounded(pool.connection_class)
        self._waits = {name: min(pool.connection_kwargs.get(name) or timeout, timeout) for name in _WAITS}
        # Who came to the server when half of the time was over, as one of many, knows nothing of it.
        self._patience = min(self._waits.values()) / 2
        self._begin()
        fork.renew_in_child(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()  # guards _places, and who may try
        self._places = 0  # for connections: made, or to be made by whoever took the place
        self._free: SimpleQueue[Any] = SimpleQueue()  # connections that nobody uses; None is a place for one
        self._rests_until = 0.0  # 0 for a server that answers

    def after_fork(self) -> None:
        """Begin without connections. Those that the parent goes on to use are closed on this side only."""
        self._begin()

    def ask(self, talk: Callable[[Any], Answer], ends: float | None = None) -> Answer:
        """What `talk` makes of a connection; raises what it, or connecting, raises.

        `talk` sends with `send_packed_command` and reads every answer with `read_response`. ends: when
        this has to end by the monotonic clock, for what is a part of something longer.
        """
        came = _now()
        ends = came + self._timeout if ends is None else ends
        if self._rests_until:
            self._let_one_try(came, ends)
        free = self._free  # as it is now: after a close or a fork another stands in its place
        connection = self._take(free, ends)
        asked = _now()
        try:
            connection = self._ready(connection, ends)
            answer = talk(connection)
        except BaseException as error:
            # An answer may still be on the way, and the next to ask must not take it for his own.
            free.put(None)
            if connection is not None:
                _close(connection)
            if not is_named(error, "TimeoutError"):
                self._rests_until = 0.0
            elif _now() - asked > self._patience:
                self._rest(free)
            raise
        if self._rests_until:
            self._rests_until = 0.0
        free.put(connection)
        return answer

    def close(self) -> None:
        """Close the free ones; those in use are closed when they are given back. `ask` makes new ones."""
        free = self._free
        self._begin()
        _close_all(free)

    def _take(self, free: SimpleQueue[Any], ends: float) -> Any:
        with suppress(Empty):
            return free.get_nowait()
        with self._lock:
            if self._places < self._pool.max_connections:
                self._places += 1
                return None
        try:
            return free.get(timeout=max(0.0, ends - _now()))
        except Empty:
            raise TimeoutError("all connections were in use for too long") from None

    def _ready(self, connection: Any, ends: float) -> Any:
        """`connection`, or a new one, connected."""
        if connection is None:
            connection = self._made()
        elif not connection.news.has_news():
            connection.moment.at = ends
            return connection
        else:
            connection.disconnect()
        connection.moment.at = ends
        try:
            connection.connect()
        except BaseException:
            _close(connection)
            raise
        return connection

    def _made(self) -> Any:
        theirs = self._pool.connection_kwargs
        settings = {name: value for name, value in theirs.items() if not name.startswith(_OF_THEIR_POOL)}
        settings.update(self._place)
        settings.update(self._waits)
        settings.update(retry=None, retry_on_timeout=False, retry_on_error=[])
        settings.update(encoding="utf-8", encoding_errors="strict", decode_responses=False)
        return self._kind(**settings)

    def _let_one_try(self, came: float, ends: float) -> None:
        """Raise TimeoutError for whoever comes while the server is left alone, or while another tries until `ends`."""
        with self._lock:
            if came < self._rests_until:
                raise TimeoutError("it gave no answer in time a moment ago")
            if self._rests_until:
                self._rests_until = ends

    def _rest(self, free: SimpleQueue[Any]) -> None:
        """Leave the server alone, and give up what is connected to it."""
        self._rests_until = _now() + self._timeout
        for _ in range(_close_all(free)):
            free.put(None)


def _close_all(free: SimpleQueue[Any]) -> int:
    """Close what nobody uses; how many places are left by that."""
    places = 0
    with suppress(Empty):
        while True:
            connection = free.get_nowait()
            places += 1
            if connection is not None:
                _close(connection)
    return places


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.disconnect()


def is_named(error: BaseException, name: str) -> bool:
    """Whether `error` is of the class of redis-py called `name`: in redis-py itself, or in its fork valkey-py."""
    return any(kind.__name__ == name for kind in type(error).__mro__)
