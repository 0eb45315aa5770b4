"""One at work for a `fetch_all`: the layers tell it when its request has to wait, and what it has on the wire."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from kreuz_sync.errors import SessionClosed
from kreuz_sync.wire import take_ticket

from .bell import Bell

if TYPE_CHECKING:
    from .crew import Crew
    from .result import Done
    from .schedule import Job

Given = TypeVar("Given")

ENDED = "fetch_all was ended while this call was under way"


class Wakeable(Protocol):
    """What lets those go who wait in it."""

    def wake(self, owner: object) -> None: ...


class Worker:
    """Makes one request at a time. To the layers it is a `calls.Helper`.

    crew: whose it is. bell: what it waits by. called: whether it was woken or hired and has not looked for a
    job yet, guarded by the crew's lock. job, done: what it does now, and what that came to.
    """

    __slots__ = ("_connected", "_waits_in", "bell", "called", "crew", "done", "job")

    def __init__(self, crew: Crew, job: Job | None = None, *, called: bool = False) -> None:
        self.crew = crew
        self.bell = Bell()
        self.called = called
        self.job = job
        self.done: Done | None = None
        self._waits_in: tuple[Wakeable, object] | None = None
        self._connected: tuple[list[None], Any] | None = None  # the ticket of a connection, and its socket

    # --- what the layers tell -----------------------------------------------------------

    def wait(self, take: Callable[[], Given], line: Wakeable | None = None, owner: object = None) -> Given:
        """`take()`, which waits for a host's turn. line: what lets `owner` go from there, None where nothing does.

        Raises SessionClosed once the run is over.
        """
        self._waits_in = None if line is None else (line, owner or self)
        self.crew.pauses()
        try:
            self.require_going_on()
            return take()
        finally:
            self._waits_in = None
            self.crew.resumes()

    def had_turn(self) -> None:
        """The request may go out now, and the next one of its host may be on its way."""
        if self.job is not None and self.job.on_way:
            self.crew.had_turn(self.job)

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds. Raises SessionClosed as soon as the run is over."""
        clock = self.crew.clock
        until = clock.monotonic() + seconds
        self.crew.pauses()
        try:
            while not self.crew.stopped and (left := until - clock.monotonic()) > 0:
                clock.wait(cast(threading.Condition, self.bell), left)
        finally:
            self.crew.resumes()
        self.require_going_on()

    def require_going_on(self) -> None:
        """Raise SessionClosed once the run is over."""
        if self.crew.stopped:
            raise SessionClosed(ENDED)

    def connected(self, connection: Any) -> None:
        """The request goes out on this connection."""
        connection.ticket = ticket = [None]
        self._connected = ticket, connection.sock

    def aside(self) -> Aside:
        """The same, for another request that a layer makes for this one."""
        return Aside(self)

    # --- the end ------------------------------------------------------------------------

    def halt(self) -> None:
        """End what it waits for, or what it has on the wire. Needs no lock, and may be called again."""
        self.bell.ring()
        waits_in, connected = self._waits_in, self._connected
        if waits_in is not None:
            line, owner = waits_in
            line.wake(owner)
        if connected is not None:
            ticket, sock = connected
            if isinstance(sock, socket.socket) and take_ticket(ticket):
                with suppress(OSError):
                    # Not TLS's own, which would take the socket apart under the thread that reads it.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def let_go(self) -> None:
        """The request is over; a stream goes on without it."""
        self._connected = None


class Aside:
    """A worker in a request that is not its job: a turn at a host is not the job's."""

    __slots__ = ("_worker",)

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def wait(self, take: Callable[[], Given], line: Wakeable | None = None) -> Given:
        """As of a worker."""
        return self._worker.wait(take, line, self)

    def had_turn(self) -> None:
        """Nothing: it was another's turn."""

    def sleep(self, seconds: float) -> None:
        """As of a worker."""
        self._worker.sleep(seconds)

    def require_going_on(self) -> None:
        """As of a worker."""
        self._worker.require_going_on()

    def connected(self, connection: Any) -> None:
        """As of a worker."""
        self._worker.connected(connection)

    def aside(self) -> Aside:
        """As of a worker."""
        return self
