"""The small site of the demo: three hosts on this machine, and what each of their pages answers."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .errors import DataLoss, NotFound, RateLimited, WafBlocked


class Reply(NamedTuple):
    """One answer. delay: seconds before it. cut: bytes of the body that are sent, None for all.

    tag: what a client should call it. remark: what the site says about it, if it is out of the ordinary.
    """

    status: int = 200
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b"<!doctype html><title>A page</title><p>A page of the demo.</p>\n"
    delay: float = 0.0
    cut: int | None = None
    tag: str | None = None
    remark: str = ""


class Page(NamedTuple):
    """A page and its replies: the first to the first request, and so on; the last one from then on."""

    host: str
    path: str
    replies: tuple[Reply, ...]

    def reply(self, visit: int) -> Reply:
        """The reply to the request number `visit`, counted from 0."""
        return self.replies[min(visit, len(self.replies) - 1)]


HOSTS = {
    "ordinary": "answers at once; one page is missing",
    "busy": "answers once 429, too many requests; one page breaks off at first",
    "slow": "takes 0.4 s for a page; one page is a firewall's challenge",
}

GOOD = Reply()
SLOW = Reply(delay=0.4)
MISSING = Reply(404, body=b"No such page.\n", tag=NotFound.tag)
TOO_OFTEN = Reply(
    429,
    (("Retry-After", "1"),),
    b"Slow down.\n",
    tag=RateLimited.tag,
    remark="429, Retry-After: 1. Backed off: nothing for 1 s, then half as often",
)
CUT = Reply(
    cut=20,
    tag=DataLoss.tag,
    remark="the body broke off half-way: a failed attempt, not a page",
)
CHALLENGE = Reply(
    403,
    (("cf-mitigated", "challenge"), ("Server", "cloudflare")),
    b"<!doctype html><title>Just a moment...</title>\n",
    tag=WafBlocked.tag,
)

PAGES = (
    *(Page("ordinary", f"/{number}", (GOOD,)) for number in range(1, 6)),
    Page("ordinary", "/missing", (MISSING,)),
    Page("busy", "/1", (TOO_OFTEN, GOOD)),
    Page("busy", "/2", (GOOD,)),
    Page("busy", "/cut", (CUT, GOOD)),
    *(Page("busy", f"/{number}", (GOOD,)) for number in range(3, 6)),
    *(Page("slow", f"/{number}", (SLOW,)) for number in range(1, 4)),
    Page("slow", "/guarded", (CHALLENGE,)),
)

# Each host its own address, as Linux and Windows have them; else the one that every machine has.
ADDRESSES = (("127.0.0.1", "127.0.0.2", "127.0.0.3"), ("127.0.0.1", "127.0.0.1", "127.0.0.1"))

Told = Callable[[str, str, str], object]  # host, path, remark


class Site:
    """The hosts, served until `close()`. `tell` is called for every reply with a remark, on a server thread.

    addresses: for each try, where the hosts should be. `one_address`: this machine has no
    second loopback address, so that all hosts share the first and differ by their ports.
    """

    def __init__(self, tell: Told, addresses: Iterable[Sequence[str]] = ADDRESSES) -> None:
        self.tell = tell
        self._lock = threading.Lock()  # guards the next two
        self._visits: dict[tuple[str, str], int] = {}
        self._arrivals: dict[str, list[float]] = {name: [] for name in HOSTS}
        self._servers = dict(zip(HOSTS, _servers(self, tuple(HOSTS), addresses), strict=True))
        self.one_address = len({server.server_address[0] for server in self._servers.values()}) < len(HOSTS)
        for server in self._servers.values():
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, host: str, path: str) -> str:
        """The URL of a page, or of a host with the path ""."""
        address, port = self._servers[host].server_address[:2]
        return f"http://{address!s}:{port}{path}"

    def host_at(self, url: str) -> str:
        """The name, as in `HOSTS`, of the host that a URL leads to."""
        port = urlsplit(url).port
        return next(name for name, server in self._servers.items() if server.server_address[1] == port)

    def next_reply(self, host: str, path: str) -> Reply:
        """Count a visit, and choose the reply to it."""
        page = next((one for one in PAGES if (one.host, one.path) == (host, path)), Page(host, path, (MISSING,)))
        with self._lock:
            self._arrivals[host].append(time.monotonic())
            visit = self._visits.get((host, path), 0)
            self._visits[host, path] = visit + 1
        return page.reply(visit)

    def mean_gaps(self) -> dict[str, float]:
        """Seconds between two requests, on average, as each host saw it."""
        with self._lock:
            return {name: mean_gap(times) for name, times in self._arrivals.items() if len(times) > 1}

    def close(self) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def mean_gap(times: Sequence[float]) -> float:
    """The mean difference between neighbours, of two times or more."""
    return (times[-1] - times[0]) / (len(times) - 1)


def _servers(site: Site, names: tuple[str, ...], addresses: Iterable[Sequence[str]]) -> list[_Server]:
    for tried in addresses:
        with contextlib.ExitStack() as made:
            try:
                servers = [made.enter_context(_Server(site, *pair)) for pair in zip(names, tried, strict=True)]
            except OSError:
                continue  # those that were made are closed
            made.pop_all()
            return servers
    raise OSError("no port on 127.0.0.1 can be listened on")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that was interrupted may leave a thread waiting

    def __init__(self, site: Site, name: str, address: str) -> None:
        self.site = site
        self.name = name
        super().__init__((address, 0), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own looks up the address' name, which can take seconds without a network.
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is nothing to print a traceback for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site, host = self.server.site, self.server.name
        reply = site.next_reply(host, self.path)
        time.sleep(reply.delay)
        if reply.remark:
            site.tell(host, self.path, reply.remark)
        self.send_response_only(reply.status)
        for name, value in (*reply.fields, ("Content-Type", "text/html"), ("Content-Length", str(len(reply.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut])
        self.close_connection = reply.cut is not None

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: the demo says what is worth saying."""
