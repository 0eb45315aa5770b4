"""Counters in Redis while the server is slow, silent or gone: each hit ends in time, and none is lost or sent twice."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest

from kreuz_sync.ratelimit import RateLimit, StoreUnavailable
from kreuz_sync.ratelimit.redis import RedisStore
from kreuz_sync.ratelimit.wsgi import RateLimitMiddleware
from tests.loopback import Authority
from tests.redis_server import GUARD_S, RedisServer

from .contract import hits, in_threads

redis = pytest.importorskip("redis")


class Relay:
    """Stands before a server, and counts what passes.

    delay: seconds that each piece of an answer takes. cut: answers go on byte by byte. tls: a context, for a relay
    that speaks TLS. came: connections. ended: those that were closed while nothing was asked. answers: pieces
    that have come from the server.
    """

    def __init__(
        self,
        server: tuple[str, int] | None,
        *,
        delay: float = 0.0,
        cut: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._server, self.delay, self._cut, self._tls = server, delay, cut, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._closed = threading.Event()
        self.came = self.ended = self.answers = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                self.came += 1
                self._open.append(ours)
                threading.Thread(target=self._serve, args=(ours,), daemon=True).start()

    def _serve(self, ours: socket.socket) -> None:
        with suppress(OSError):
            if self._tls is not None:
                ours = self._tls.wrap_socket(ours, server_side=True)
                self._open.append(ours)
            if self._server is None:
                return
            theirs = socket.create_connection(self._server, GUARD_S)
            self._open.append(theirs)
            while words := ours.recv(65536):  # who asks waits for the answer before it asks again
                theirs.sendall(words)
                self._answer(theirs.recv(65536), ours)
            self.ended += 1

    def _answer(self, answer: bytes, ours: socket.socket) -> None:
        self.answers += 1
        for piece in [answer[at : at + 1] for at in range(len(answer))] if self._cut else [answer]:
            self._closed.wait(self.delay)
            ours.sendall(piece)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def store_at(port: int, timeout: float, **settings: Any) -> Iterator[RedisStore]:
    with closing(redis.Redis(port=port, **settings)) as client, closing(RedisStore(client, timeout=timeout)) as store:
        yield store


@contextmanager
def fails() -> Iterator[pytest.ExceptionInfo[StoreUnavailable]]:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as raised:
        yield raised
    assert time.monotonic() - began < GUARD_S
    assert raised.value.detail == "redis_command_failed"


class TestTheWholeHit:
    """One time for all: a place, the connection, the handshake, the answer."""

    @pytest.mark.parametrize("settings", [{}, {"db": 1, "client_name": "counter"}])
    def test_the_answers_to_a_handshake_are_bounded_together(
        self, own_redis: RedisServer, settings: dict[str, Any]
    ) -> None:
        """Each of them comes in time, and all of them do not."""
        with Relay(own_redis.address, delay=0.2) as relay, store_at(relay.port, 0.3, **settings) as store:
            with fails():
                store.increment("policy:key", 60)
            assert relay.answers <= 2

    def test_a_slow_server_does_where_the_time_is_long_enough(self, own_redis: RedisServer) -> None:
        with Relay(own_redis.address, delay=0.02) as relay, store_at(relay.port, GUARD_S) as store:
            assert hits(store, 3) == [1, 2, 3]

    @pytest.mark.parametrize("protocol", [2, 3])
    def test_a_server_that_sends_a_byte_now_and_then_is_ended(self, own_redis: RedisServer, protocol: int) -> None:
        """Each byte ends one of redis-py's waits, and to the end of the answer it would take longer than GUARD_S."""
        with Relay(own_redis.address, delay=0.2, cut=True) as relay:
            with store_at(relay.port, 0.5, protocol=protocol) as store, fails():
                store.increment("policy:key" * 100, 60)

    def test_so_it_is_on_a_connection_that_was_good_before(self, own_redis: RedisServer) -> None:
        with Relay(own_redis.address, cut=True) as relay, store_at(relay.port, 1.0) as store:
            assert hits(store, 2) == [1, 2]
            relay.delay = 2.0
            with fails():
                store.increment("policy:key", 60)

    def test_the_wait_for_a_place_is_a_part_of_it(self, own_redis: RedisServer) -> None:
        """Twelve threads and two places: whoever gets one late has what is left, and not a whole time more."""
        with Relay(None) as relay, store_at(relay.port, 0.3, max_connections=2) as store:
            took = []

            def work(_: int) -> None:
                began = time.monotonic()
                with fails():
                    store.increment("policy:key", 60)
                took.append(time.monotonic() - began)

            in_threads(12, work)
        assert len(took) == 12

    def test_nested_limits_wait_once(self) -> None:
        """For a server that answers nobody: three limits, one connection."""
        with Relay(None) as relay, store_at(relay.port, 0.3) as store:
            limits = [RateLimit(name, store=store, on_store_failure="allow") for name in "abc"]
            statuses: list[str] = []
            app = RateLimitMiddleware(lambda environ, start: (start("200 OK", []), [])[1], *limits)
            app({"REMOTE_ADDR": "192.0.2.1", "REQUEST_METHOD": "GET"}, lambda status, *_: statuses.append(status))
            assert (statuses, relay.came) == (["200 OK"], 1)


class TestRest:
    """A server that let the time of a hit pass is left alone for as long again."""

    def test_nobody_waits_meanwhile(self) -> None:
        with Relay(None) as relay, store_at(relay.port, 0.3) as store:
            with fails():
                store.increment("policy:key", 60)
            for _ in range(5):
                with fails() as raised:
                    store.increment("policy:key", 60)
                assert "a moment ago" in str(raised.value.__cause__)
            assert relay.came == 1

    def test_then_one_tries_and_the_others_go_on_without(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=0.5)) as store:
            hits(store, 1)
            own_redis.freeze()
            with fails():
                store.increment("policy:key", 60)
            time.sleep(0.55)
            problems: list[str] = []

            def work(number: int) -> None:
                time.sleep(0.1 * number)
                with fails() as raised:
                    store.increment("policy:key", 60)
                problems.append(str(raised.value.__cause__))

            in_threads(4, work)
            own_redis.thaw()
        assert len([problem for problem in problems if "a moment ago" in problem]) == 3

    def test_once_it_answers_it_is_as_before(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=1.0)) as store:
            in_threads(4, lambda number: hits(store, 2, f"policy:{number}"))
            own_redis.freeze()
            with fails():
                store.increment("policy:key", 60)
            own_redis.thaw()
            time.sleep(1.05)
            hits(store, 1)
            in_threads(4, lambda number: hits(store, 2, f"policy:{number}"))
            assert [hits(store, 1, f"policy:{number}") for number in range(4)] == [[5]] * 4

    def test_a_server_that_refuses_is_asked_every_time(self, own_redis: RedisServer) -> None:
        """That costs no time."""
        with own_redis.client() as client, closing(RedisStore(client)) as store:
            own_redis.stop()
            for _ in range(3):
                with fails() as raised:
                    store.increment("policy:key", 60)
                assert "a moment ago" not in str(raised.value.__cause__)
            own_redis.start()
            assert hits(store, 2) == [1, 2]

    def test_who_had_to_wait_for_others_says_nothing_of_the_server(self, own_redis: RedisServer) -> None:
        """A time that was half over before the server was asked is no sign of it."""
        with Relay(own_redis.address) as relay, store_at(relay.port, 2.0, max_connections=1) as store:
            hits(store, 1)
            relay.delay = 1.4
            outcomes: list[str] = []

            def work(_: int) -> None:
                try:
                    outcomes.append(str(store.increment("policy:key", 60).used))
                except StoreUnavailable as failure:
                    outcomes.append(str(failure.__cause__))

            in_threads(3, work)
            assert "2" in outcomes
            relay.delay = 0.0
            assert hits(store, 1) != []

    def test_closing_the_store_ends_it(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=1.0)) as store:
            own_redis.freeze()
            with fails():
                store.increment("policy:key", 60)
            own_redis.thaw()
            store.close()
            assert hits(store, 1) != []


class TestEndsOfConnections:
    """Every use looks first whether the server has closed the connection: no hit is lost to find that out."""

    def test_a_restart_costs_no_hit(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=GUARD_S)) as store:
            for _ in range(5):
                assert hits(store, 1) == [1]
                own_redis.restart()

    def test_nor_does_a_connection_that_an_operator_kills(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisStore(client, timeout=GUARD_S)) as store:
            in_threads(6, lambda _: hits(store, 20))
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            in_threads(6, lambda _: hits(store, 1))
            assert hits(store, 1) == [6 * 21 + 1]

    def test_a_good_connection_is_kept(self, own_redis: RedisServer) -> None:
        with Relay(own_redis.address) as relay, store_at(relay.port, GUARD_S) as store:
            hits(store, 20)
            assert relay.came == 1

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_both_hold_over_tls(self, own_redis: RedisServer, authority: Authority, version: ssl.TLSVersion) -> None:
        """Whose own messages, such as tickets, are no end."""
        context = authority.server_context("127.0.0.1")
        context.maximum_version = version
        with ExitStack() as stack:
            relay = stack.enter_context(Relay(own_redis.address, tls=context))
            trust = {"ssl": True, "ssl_ca_certs": authority.bundle, "host": "127.0.0.1"}
            store = stack.enter_context(store_at(relay.port, GUARD_S, **trust))
            assert hits(store, 20) == list(range(1, 21))
            assert relay.came == 1
            for each in relay._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            assert hits(store, 2) == [21, 22]
            assert relay.came == 2

    def test_one_that_hangs_takes_the_others_along(self, own_redis: RedisServer) -> None:
        """After a fail-over all of them may be dead without a word; the next hits connect anew."""
        with Relay(own_redis.address, delay=0.1) as relay, store_at(relay.port, 2.0) as store:
            in_threads(3, lambda _: hits(store, 1))
            assert relay.came == 3
            relay.delay = 30.0
            with fails():
                store.increment("policy:key", 60)
            until = time.monotonic() + GUARD_S
            while relay.ended < 2:
                assert time.monotonic() < until, "those that nobody used are still open"
                time.sleep(0.01)

    def test_a_system_without_poll_looks_as_well(self, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
        import select

        monkeypatch.delattr(select, "poll")
        with own_redis.client() as client, closing(RedisStore(client, timeout=GUARD_S)) as store:
            assert hits(store, 3) == [1, 2, 3]
            own_redis.restart()
            assert hits(store, 2) == [1, 2]
