"""Small HTTP servers on loopback, for the demo (`demo_site.py`) and the examples (`example_site.py`)."""

from __future__ import annotations

import socketserver
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MOST_BODY = 1_000_000  # bytes of a request's body that are read; beyond it the connection is closed


class Reply(NamedTuple):
    """One answer. delay: seconds before it. cut: bytes of the body that are sent, None for all.

    tag: what a client should call it. remark: what the demo says about it, if it is out of the ordinary.
    """

    status: int = 200
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b"<!doctype html><title>A page</title><p>A page of the demo.</p>\n"
    kind: str = "text/html; charset=utf-8"
    delay: float = 0.0
    cut: int | None = None
    tag: str | None = None
    remark: str = ""


class Server(ThreadingHTTPServer):
    """Gives every request the reply that `answer` finds for it, on a thread of its own.

    port: 0 for any that is free. Raises OSError if it cannot be listened on.
    """

    daemon_threads = True
    block_on_close = False  # a client that was interrupted may leave a thread waiting

    def __init__(self, address: str, port: int, answer: Callable[[BaseHTTPRequestHandler], Reply]) -> None:
        self.answer = answer
        super().__init__((address, port), _Handler)

    @property
    def port(self) -> int:
        """The one that it listens on."""
        return int(self.server_address[1])

    @property
    def netloc(self) -> str:
        """Address and port, as a URL has them."""
        return f"{self.server_address[0]!s}:{self.port}"

    def server_bind(self) -> None:
        # HTTPServer's own looks up the address' name, which can take seconds without a network.
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is nothing to print a traceback for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._read_body()
        reply = self.server.answer(self)
        time.sleep(reply.delay)
        self.send_response_only(reply.status)
        for name, value in (*reply.fields, ("Content-Type", reply.kind), ("Content-Length", str(len(reply.body)))):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body[: reply.cut])
        self.close_connection = self.close_connection or reply.cut is not None

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

    def _read_body(self) -> None:
        """What is left unread would be taken for the next request."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or int(length) > MOST_BODY:
            self.close_connection = True
        else:
            self.rfile.read(int(length))

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: whoever serves says what is worth saying."""
