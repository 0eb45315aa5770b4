"""The site that the documentation's examples ask, and `kreuz-sync demo --serve`, which keeps it up."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import IO
from urllib.parse import urlsplit

from . import job
from .serving import Reply, Server

ADDRESS = "127.0.0.1"
PORT = 8765  # the documentation's

PAGE = Reply(body=b"<h1>Example</h1>")

# Every page but /me, whose reply depends on the request. What is in neither is PAGE.
REPLIES = {
    "/": PAGE,
    "/robots.txt": Reply(
        body=b"User-agent: *\nDisallow: /shop\nCrawl-delay: 0.3\n\nSitemap: https://example.com/sitemap.xml\n",
        kind="text/plain",
    ),
    "/missing": Reply(404, body=b"no such page"),
    "/busy": Reply(429, (("Retry-After", "1"),), b"slow down"),
    "/quota": Reply(
        200, (("RateLimit-Policy", '"pages";q=50;w=60'), ("RateLimit", '"pages";r=40;t=20')), b"enough left"
    ),
    "/search": Reply(
        200,
        (("X-RateLimit-Resource", "search"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "2")),
        b"the last one for two seconds",
    ),
    "/cut": Reply(body=b"<p>".ljust(5_000), cut=3),
    "/large": Reply(body=b"x" * 2_000_000, kind="text/plain"),
    "/shop": Reply(403, (("cf-mitigated", "challenge"),), b"<title>Just a moment...</title>"),
    "/login": Reply(200, (("Set-Cookie", "user=reader"),), b"welcome"),
}

DESCRIPTION = {
    "/": "a page; so is every path that is not named here",
    "/robots.txt": "disallows /shop, and asks for 0.3 s between requests",
    "/missing": "404",
    "/busy": "429 with Retry-After: 1, always",
    "/quota": "says that 40 requests are left for the next 20 s, always",
    "/search": "says that none is left for searches for two seconds, always",
    "/cut": "a body that breaks off after 3 of 5,000 bytes",
    "/large": "a body of 2,000,000 bytes",
    "/shop": "403, a firewall's challenge page",
    "/login": "sets a cookie",
    "/me": "says in JSON what it was sent: path, authorization, cookie",
}


def reply_to(target: str, field: Callable[[str], str | None]) -> Reply:
    """What the site answers. target: path and query. field: gives the value of the request's field of a name."""
    path = urlsplit(target).path
    if path != "/me":
        return REPLIES.get(path, PAGE)
    seen = {"path": path, "authorization": field("Authorization"), "cookie": field("Cookie")}
    return Reply(body=json.dumps(seen).encode("ascii"), kind="application/json")


def open_site(port: int = PORT) -> Server:
    """The site, once `serve_forever()` is called. port: 0 for any that is free. Raises OSError."""
    return Server(ADDRESS, port, _answer)


def _answer(request: BaseHTTPRequestHandler) -> Reply:
    return reply_to(request.path, request.headers.get)


def serve(port: int, stream: IO[str]) -> int:
    """Keep the site up until Ctrl-C or SIGTERM, which is its planned end; the exit code. Raises OSError."""
    with open_site(port) as server:
        job.say(stream, introduction(server.port))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return job.OK
    return job.OK


def introduction(port: int) -> str:
    """What is there, and under which URL."""
    width = max(map(len, DESCRIPTION))
    pages = "\n".join(f"  {path.ljust(width)}  {text}" for path, text in DESCRIPTION.items())
    return (
        f"The site of the documentation's examples is at http://{ADDRESS}:{port}\n"
        f"and, under a name that is another host to a session, at http://localhost:{port}\n\n"
        f"{pages}\n\nCtrl-C ends it."
    )
