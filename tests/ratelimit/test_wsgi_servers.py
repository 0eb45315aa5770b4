"""The middleware in servers that listen: the standard library's, waitress, and gunicorn with two workers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import requests

from kreuz_sync.ratelimit.wsgi import PeerAddress, RateLimitMiddleware, TrustedProxies

from ..redis_server import GUARD_S, GivenServer
from .wsgi_calls import Hello, checked

ROOT = Path(__file__).resolve().parent.parent.parent


class Quiet(WSGIRequestHandler):
    """A handler that writes no log."""

    def log_message(self, format: str, *values: Any) -> None:
        pass


@contextlib.contextmanager
def wsgiref(app: Any) -> Iterator[str]:
    """The standard library's server."""
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(GUARD_S)


@contextlib.contextmanager
def waitress(app: Any, **settings: Any) -> Iterator[str]:
    """waitress, with several threads."""
    create_server = pytest.importorskip("waitress").create_server
    from waitress import wasyncore

    sockets: dict[int, Any] = {}
    server = create_server(app, map=sockets, host="127.0.0.1", port=0, threads=4, **settings)
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            wasyncore.loop(timeout=0.02, map=sockets, count=1)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/"
    finally:
        ended.set()
        thread.join(GUARD_S)
        server.task_dispatcher.shutdown()
        wasyncore.close_all(sockets)


@pytest.mark.parametrize("serving", [wsgiref, waitress])
class TestInAThread:
    """What a client sees."""

    def test_allowed_and_refused(self, serving: Any) -> None:
        with serving(checked(RateLimitMiddleware(Hello(), limit=2, window=600))) as url, requests.Session() as session:
            answers = [session.get(url) for _ in range(3)]
        assert [(answer.status_code, answer.content) for answer in answers] == [
            (200, b"hello"),
            (200, b"hello"),
            (429, b""),
        ]
        assert [answer.headers["RateLimit"].partition(";t=")[0] for answer in answers] == [
            '"default-policy";r=1',
            '"default-policy";r=0',
            '"default-policy";r=0',
        ]
        assert 590 <= int(answers[2].headers["Retry-After"]) <= 600
        assert answers[2].headers["Content-Length"] == "0"

    def test_a_refused_upload_is_not_read(self, serving: Any) -> None:
        """The next request on the connection, if there is one, is not confused by it."""
        with serving(RateLimitMiddleware(Hello(), limit=0)) as url, requests.Session() as session:
            answers = [session.post(url, data=b"x" * 100_000) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [429, 429]

    def test_head(self, serving: Any) -> None:
        app = RateLimitMiddleware(Hello(), limit=1, response=lambda *_: (429, {}, b"slow down"))
        with serving(app) as url, requests.Session() as session:
            answers = [session.head(url) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert answers[1].headers["Content-Length"] == "9"


class TestWaitressBehindAProxy:
    """It removes what proxies say, unless it is told not to. The test stands in for the proxy."""

    def statuses(self, key: Any, **settings: Any) -> list[int]:
        """What each of two callers is answered to its first request, and one of them to a second."""
        with waitress(RateLimitMiddleware(Hello(), limit=1, key=key), **settings) as url, requests.Session() as session:
            callers = ("203.0.113.1", "203.0.113.2", "203.0.113.1")
            return [session.get(url, headers={"X-Forwarded-For": caller}).status_code for caller in callers]

    def test_by_default_all_callers_are_the_proxy(self) -> None:
        """Nothing is malformed, and nobody is told: the field is not there."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of waitress, about this default
            assert self.statuses(TrustedProxies(hops=1)) == [200, 429, 429]

    def test_told_not_to_it_leaves_them_to_trusted_proxies(self) -> None:
        assert self.statuses(TrustedProxies(hops=1), clear_untrusted_proxy_headers=False) == [200, 200, 429]

    def test_or_it_reads_them_itself(self) -> None:
        """Then the address of the peer is the caller's."""
        trust = {"trusted_proxy": "127.0.0.1", "trusted_proxy_count": 1, "trusted_proxy_headers": "x-forwarded-for"}
        assert self.statuses(PeerAddress(), clear_untrusted_proxy_headers=True, **trust) == [200, 200, 429]


@contextlib.contextmanager
def gunicorn(*options: str, **environment: str) -> Iterator[str]:
    """gunicorn with two workers, listening."""
    pytest.importorskip("gunicorn")
    paths = os.pathsep.join(path for path in (str(ROOT), os.environ.get("PYTHONPATH")) if path)
    # Once this end of the listener is closed, connections are refused if the server is not there.
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        port = listener.getsockname()[1]
        bind = ["--bind", f"fd://{listener.fileno()}", "--config", "python:tests.ratelimit.gunicorn_conf"]
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *bind, *options, "tests.ratelimit.gunicorn_app:app"],
            env={**os.environ, "PYTHONPATH": paths, **environment},
            pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        try:
            log = process.communicate(timeout=GUARD_S)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            log = process.communicate()[1]
    assert "Traceback" not in log, log


@pytest.mark.skipif(sys.platform == "win32", reason="gunicorn forks")
@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["loaded by each worker", "forked from one"])
class TestGunicorn:
    """Two processes that count together in Redis."""

    @pytest.fixture
    def url(self, redis_server: GivenServer, redis_space: str, options: tuple[str, ...]) -> Iterator[str]:
        with gunicorn(*options, REDIS_URL=redis_server.url, NAMESPACE=redis_space) as url:
            workers: set[bytes] = set()
            until = time.monotonic() + 2 * GUARD_S
            while len(workers) < 2:  # each connection is one worker's
                assert time.monotonic() < until, "there are not two workers"
                workers.add(requests.get(url + "worker", headers={"Connection": "close"}, timeout=GUARD_S).content)
            yield url

    @pytest.mark.slow
    def test_both_together_let_through_what_one_would(self, url: str) -> None:
        def ask(number: int) -> requests.Response:
            # Each connection is the choice of the system, so most likely both workers get some.
            fields = {"Connection": "close", "X-Forwarded-For": f"10.0.0.{number}, 203.0.113.9"}
            return requests.get(url, headers=fields, timeout=GUARD_S)

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(50)))
        assert sorted(answer.status_code for answer in answers) == [200] * 20 + [429] * 30
        left = sorted(
            int(answer.headers["RateLimit"].split(";")[1].removeprefix("r=")) for answer in answers if answer.ok
        )
        assert left == list(range(20))
