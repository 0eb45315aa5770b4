"""Accepting connections, each on a thread of its own, and ending them all: what servers and proxies share."""

from __future__ import annotations

import contextlib
import errno
import select
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable
from typing import Any, BinaryIO

from .answers import Ending, Step
from .received import Received, read_request

GUARD_S = 30.0  # nothing here waits longer, whatever a test forgets


class Connection:
    """One client's connection, as its thread sees it."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        self.stream: BinaryIO = sock.makefile("rb")
        self.peer = sock.getpeername()[:2]
        self.local = sock.getsockname()[:2]

    def read(self) -> Received | None:
        """The next request, None at the end."""
        request = read_request(self.stream)
        if request is not None:
            request.connection, request.peer, request.local = self.number, self.peer, self.local
            if isinstance(self.sock, ssl.SSLSocket):
                request.certificate = self.sock.getpeercert()
        return request

    def client_left(self) -> bool:
        """Whether the client has closed its side; nothing is taken from the wire."""
        if isinstance(self.sock, ssl.SSLSocket):
            return False
        readable, _, _ = select.select([self.sock], [], [], 0)
        return bool(readable) and self.sock.recv(1, socket.MSG_PEEK) == b""

    def abort(self) -> None:
        """Make the coming close a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(0)
                self.sock.unwrap()  # says goodbye, and does not wait for the client's
        with contextlib.suppress(OSError, ValueError):
            self.stream.close()
        self.sock.close()


class Listener:
    """Listens on one port of one or several loopback addresses, until `close()`.

    requests: what came, in order. accepted: how many connections were accepted so far. peak: how many requests
    were being answered at once, at most. handshakes_failed: TLS errors of clients, as text.
    """

    def __init__(self, *addresses: str, tls: ssl.SSLContext | None = None) -> None:
        self.addresses = addresses or ("127.0.0.1",)
        self.tls = tls
        self.accepted = 0
        self.peak = 0
        self.handshakes_failed: list[str] = []
        self._busy = 0
        self._log: list[Received] = []
        self._changed = threading.Condition()  # guards all that is counted or listed here
        self._threads: set[threading.Thread] = set()
        self._sockets: set[socket.socket] = set()
        self.closing = threading.Event()
        self._listening = _listen(self.addresses)
        self.port: int = self._listening[0].getsockname()[1]
        self._waker, self._woken = socket.socketpair()
        self._acceptor = threading.Thread(target=self._accept, name=f"loopback-{self.port}", daemon=True)
        self._acceptor.start()

    # --- what a test asks ---------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        """The first address, and the port."""
        return self.addresses[0], self.port

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    def url(self, target: str = "/", *, host: str | None = None) -> str:
        """The URL of `target`, under the first address or `host` (another address, `localhost`, `user:pw@host`)."""
        return f"{self.scheme}://{host or self.addresses[0]}:{self.port}{target}"

    @property
    def requests(self) -> list[Received]:
        """All requests so far; a copy."""
        with self._changed:
            return list(self._log)

    def requests_to(self, path: str) -> list[Received]:
        """Those for one path."""
        return [request for request in self.requests if request.path == path]

    @property
    def last(self) -> Received:
        """The latest request."""
        return self.requests[-1]

    def wait_for(self, count: int, *, seconds: float = 10.0) -> list[Received]:
        """Wait until `count` requests have come; AssertionError if they do not within `seconds`."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._log) >= count, seconds), (
                f"{len(self._log)} of {count} requests came within {seconds} s"
            )
            return list(self._log)

    def open_connections(self) -> int:
        """How many clients are connected now."""
        with self._changed:
            return len(self._threads)

    def wait_until_idle(self, *, seconds: float = 10.0) -> None:
        """Wait until no client is connected any more; AssertionError if one still is after `seconds`."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._threads, seconds), (
                f"{len(self._threads)} connections still open after {seconds} s"
            )

    # --- life ---------------------------------------------------------------------------

    def close(self) -> None:
        """End every connection and thread; the second time there is nothing to do. AssertionError if one stays."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._waker.send(b"x")
        self._acceptor.join(GUARD_S)
        for sock in (self._waker, self._woken):
            sock.close()
        with self._changed:
            sockets, threads = list(self._sockets), list(self._threads)
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(GUARD_S)
        alive = [thread.name for thread in (self._acceptor, *threads) if thread.is_alive()]
        assert not alive, f"still running: {alive}"

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- one connection -----------------------------------------------------------------

    def answer(self, connection: Connection, request: Received) -> bool:
        """Answer one request; whether the connection goes on. What a server and a proxy differ in."""
        raise NotImplementedError

    def perform(self, connection: Connection, steps: Iterable[Step]) -> bool:
        """Do what an answer says; whether the connection goes on."""
        for step in steps:
            if isinstance(step, bytes):
                connection.sock.sendall(step)
            elif isinstance(step, Ending):
                if step is Ending.RESET:
                    connection.abort()
                return False
            elif isinstance(step, threading.Event):
                if not self._hold(connection, step):
                    return False
            elif self.closing.wait(step):
                return False
        return True

    def adopt(self, sock: socket.socket) -> None:
        """Shut `sock` down too when everything is closed. Whoever made it still closes it."""
        with self._changed:
            self._sockets.add(sock)

    def forget(self, sock: socket.socket) -> None:
        with self._changed:
            self._sockets.discard(sock)

    def _hold(self, connection: Connection, event: threading.Event) -> bool:
        until = time.monotonic() + GUARD_S
        while not event.wait(0.005):
            if self.closing.is_set() or time.monotonic() > until or connection.client_left():
                return False
        return True

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in (*self._listening, self._woken):
                selector.register(sock, selectors.EVENT_READ)
            while not self.closing.is_set():
                for key, _ in selector.select():
                    if key.fileobj is not self._woken:
                        with contextlib.suppress(OSError):  # the client has gone again
                            self._start(key.fileobj.accept()[0])  # type: ignore[union-attr]
        for sock in self._listening:
            sock.close()

    def _start(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            self.accepted += 1
            number = self.accepted
            thread = threading.Thread(
                target=self._serve, args=(sock, number), name=f"loopback-{self.port}-{number}", daemon=True
            )
            self._threads.add(thread)
            self._sockets.add(sock)
        thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        connection = None
        try:
            sock = self._secured(sock)
            connection = Connection(sock, number)
            while not self.closing.is_set():
                request = connection.read()
                if request is None or not self._logged(connection, request):
                    break
        except (OSError, ValueError):  # the client, or close(), ended it
            pass
        finally:
            with self._changed:
                self._sockets.discard(sock)
            (connection or sock).close()
            with self._changed:
                self._threads.discard(threading.current_thread())
                self._changed.notify_all()

    def _secured(self, sock: socket.socket) -> socket.socket:
        if self.tls is None:
            return sock
        secure = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        with self._changed:
            self._sockets.discard(sock)
            self._sockets.add(secure)
        try:
            secure.do_handshake()
        except OSError as error:
            with self._changed:
                self.handshakes_failed.append(str(error))
                self._sockets.discard(secure)
            secure.close()
            raise
        return secure

    def _logged(self, connection: Connection, request: Received) -> bool:
        with self._changed:
            self._log.append(request)
            self._busy += 1
            self.peak = max(self.peak, self._busy)
            self._changed.notify_all()
        try:
            return self.answer(connection, request) and request.complete and request.keeps_alive
        finally:
            with self._changed:
                self._busy -= 1


def _listen(addresses: Iterable[str]) -> list[socket.socket]:
    """A socket for each address, all on one free port."""
    for _ in range(20):
        made: list[socket.socket] = []
        try:
            for address in addresses:
                port = made[0].getsockname()[1] if made else 0
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                made.append(socket.create_server((address, port), family=family, backlog=512))
            return made
        except OSError as error:  # the port is taken at one of the other addresses
            for sock in made:
                sock.close()
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(f"no port is free at all of {addresses}")
