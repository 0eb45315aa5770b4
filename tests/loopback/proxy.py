"""A forward proxy: whole URLs are fetched, CONNECT opens a tunnel (RFC 9110, section 9.3.6)."""

from __future__ import annotations

import base64
import contextlib
import http.client
import select
import socket
import ssl
from urllib.parse import urlsplit

from .answers import Answer
from .listener import GUARD_S, Connection, Listener
from .received import Received

# RFC 9110, section 7.6.1: what belongs to one connection and is not handed on.
_HOP_BY_HOP = {"connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade"}
_FOR_THE_PROXY = {"proxy-authorization", "proxy-authenticate"}


class ForwardProxy(Listener):
    """A forward proxy on loopback. `requests` lists what it was asked, tunnels included.

    credentials: user and password that it wants (Basic), or None. names: where hosts really
    are, so that a test may use any name: `proxy.names["example.test"] = server.address`.
    """

    def __init__(
        self, *addresses: str, tls: ssl.SSLContext | None = None, credentials: tuple[str, str] | None = None
    ) -> None:
        self.credentials = credentials
        self.names: dict[str, tuple[str, int]] = {}
        super().__init__(*addresses, tls=tls)

    @property
    def tunnels(self) -> list[str]:
        """host:port of every CONNECT that came."""
        return [request.target for request in self.requests if request.method == "CONNECT"]

    def answer(self, connection: Connection, request: Received) -> bool:
        if not self._admits(request):
            refusal = Answer(407, fields={"Proxy-Authenticate": 'Basic realm="proxy"'})
            return self.perform(connection, refusal.steps(request))
        try:
            if request.method == "CONNECT":
                return self._tunnel(connection, request)
            return self.perform(connection, self._fetch(request).steps(request))
        except OSError:
            return self.perform(connection, Answer(502, close=True).steps(request))

    def _admits(self, request: Received) -> bool:
        if self.credentials is None:
            return True
        wanted = base64.b64encode(":".join(self.credentials).encode()).decode()
        return request.fields.get("Proxy-Authorization") == f"Basic {wanted}"

    def _find(self, host: str, port: int) -> tuple[str, int]:
        return self.names.get(host) or (host, port)

    # --- whole URLs ---------------------------------------------------------------------

    def _fetch(self, request: Received) -> Answer:
        """The origin's answer, fetched whole on a connection of its own."""
        parts = urlsplit(request.target)
        origin = http.client.HTTPConnection(*self._find(parts.hostname or "", parts.port or 80), timeout=GUARD_S)
        try:
            origin.connect()
            self.adopt(origin.sock)
            origin.putrequest(
                request.method,
                parts._replace(scheme="", netloc="").geturl() or "/",
                skip_host=True,
                skip_accept_encoding=True,
            )
            for name, value in _end_to_end(request.fields):
                origin.putheader(name, value)
            if request.chunked:
                origin.putheader("Content-Length", str(len(request.body)))
            origin.endheaders(request.body or None)
            return _relayed(origin.getresponse())
        finally:
            if origin.sock is not None:
                self.forget(origin.sock)
            origin.close()

    # --- tunnels ------------------------------------------------------------------------

    def _tunnel(self, connection: Connection, request: Received) -> bool:
        host, _, port = request.target.rpartition(":")
        with socket.create_connection(self._find(host.strip("[]"), int(port)), timeout=GUARD_S) as origin:
            self.adopt(origin)
            try:
                connection.sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._pump(connection.sock, origin)
            finally:
                self.forget(origin)
        return False

    def _pump(self, client: socket.socket, origin: socket.socket) -> None:
        """Hand on bytes both ways until both sides have ended."""
        other = {client: origin, origin: client}
        reading = [client, origin]
        while reading and not self.closing.is_set():
            for sock in select.select(reading, [], [], 0.5)[0]:
                data = sock.recv(65536)
                if data:
                    other[sock].sendall(data)
                    continue
                reading.remove(sock)
                with contextlib.suppress(OSError):
                    other[sock].shutdown(socket.SHUT_WR)


def _end_to_end(fields: object) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, value in fields  # type: ignore[attr-defined]
        if name.lower() not in _HOP_BY_HOP | _FOR_THE_PROXY
    ]


def _relayed(response: http.client.HTTPResponse) -> Answer:
    length = response.getheader("Content-Length")
    cut = None
    try:
        body = response.read()
    except http.client.IncompleteRead as error:
        body, cut = error.partial, len(error.partial)
    fields = [pair for pair in _end_to_end(response.getheaders()) if pair[0].lower() != "content-length"]
    return Answer(
        response.status,
        body,
        fields,
        reason=response.reason,
        length=length if length is not None else "true",
        cut=cut,
        close=cut is not None,
    )
