"""`deadline=`: one bound over a whole call, against servers that keep every time-out and never end."""

import contextlib
import gc
import itertools
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import weakref

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync import DeadlineExceeded, RateLimiter, Retry, Session, Throttle, ThrottleTimeout
from kreuz_sync.calls import Call, current
from kreuz_sync.deadline import clipped
from kreuz_sync.errors import ReadTimeout
from kreuz_sync.stack import Stack
from kreuz_sync.throttle import HostSettings
from kreuz_sync.transport import Transport
from kreuz_sync.watchdog import SWEEP_LEAST, WATCHDOG, Exchange, Watchdog

from .fakes import FakeClock, ScriptedAdapter, prepared
from .loopback import Raw, answer, drip, redirect, reset, sequence, silent
from .waiting import GUARD_S, HeldClock, Worker, eventually

SOON_S = 0.2  # a deadline that has to pass
ROOMY_S = 0.6  # one before which something has to happen, on a slow machine too
LATER_S = 60.0  # one that has not

HEAD = b"HTTP/1.1 200 OK\r\n"


def slowly(start, piece):
    """`start`, then `piece` every 20 ms for as long as a test may take: no time-out ever passes."""
    return Raw([start, *itertools.chain.from_iterable(itertools.repeat((0.02, piece), int(GUARD_S / 0.02)))])


# Where a server may keep a client.
STUCK = {
    "in silence": silent(),
    "in the status line": slowly(b"HTTP/1.1 200 ", b"O"),
    "in the header section": slowly(HEAD + b"X: ", b"x"),
    "after half a header section": slowly(HEAD + b"X: y\r\n", b"Z: z\r\n"),
    "in a body of known length": slowly(HEAD + b"Content-Length: 9999\r\n\r\n", b"x"),
    "in a body that the connection's end ends": slowly(HEAD + b"Connection: close\r\n\r\n", b"x"),
    "in a body that only the connection's end can end": slowly(b"HTTP/1.0 200 OK\r\n\r\n", b"x"),
    "in chunks": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "in one chunk": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n9999\r\n", b"x"),
    "in a compressed body": slowly(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9999\r\n\r\n\x1f\x8b", b"\x08"),
    "in silence in a body": Raw([HEAD + b"Content-Length: 9\r\n\r\nx", threading.Event()]),
    "in interim answers": slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}
IN_THE_BODY = {place: what for place, what in STUCK.items() if " body" in place or "chunk" in place}


@pytest.fixture
def session():
    with Session(throttle=None, timeout=GUARD_S) as one:
        yield one


def read(session, url, **options):
    response = session.get(url, **options)
    return response.content


@contextlib.contextmanager
def in_call(seconds=None, clock=None):
    """Layers used inside are part of a call."""
    token = current.set(Call(seconds, *([] if clock is None else [clock])))
    try:
        yield current.get()
    finally:
        current.reset(token)


@contextlib.contextmanager
def dripping_port(start, piece):
    """A port that says `start` to whoever connects, and then `piece` again and again, and listens to nothing."""
    over = threading.Event()

    def serve():
        with contextlib.suppress(OSError):
            accepted, _ = listening.accept()
            with accepted:
                accepted.sendall(start)
                while not over.wait(0.02):
                    accepted.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(GUARD_S)
        worker = Worker(serve)
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            worker.outcome()


class TestServersThatNeverEnd:
    """The call ends at its deadline wherever the server keeps it, and the session goes on."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("place", STUCK)
    @pytest.mark.slow
    def test_the_call_ends_at_its_deadline(self, session, server, place, stream):
        url = server.route("/stuck", STUCK[place])
        with pytest.raises(DeadlineExceeded) as caught:
            read(session, url, deadline=SOON_S, stream=stream)
        assert (caught.value.tag, caught.value.deadline) == ("deadline", SOON_S)
        assert caught.value.request.url == url
        assert session.get(server.url("/")).text == "ok"

    @pytest.mark.parametrize("place", STUCK)
    @pytest.mark.slow
    def test_a_kept_connection_is_ended_too(self, session, server, place):
        session.get(server.url("/"))
        with pytest.raises(DeadlineExceeded):
            read(session, server.route("/stuck", STUCK[place]), deadline=SOON_S)
        assert server.accepted == 1
        assert session.get(server.url("/")).text == "ok"
        assert server.accepted == 2

    @pytest.mark.parametrize("place", STUCK)
    @pytest.mark.slow
    def test_over_tls_too(self, session, tls_server, authority, place):
        url = tls_server.route("/stuck", STUCK[place])
        session.verify = authority.bundle
        with pytest.raises(DeadlineExceeded):
            read(session, url, deadline=SOON_S, stream=True)
        assert session.get(tls_server.url("/")).text == "ok"

    def test_a_handshake_without_end_is_ended(self, session):
        """A TLS record of 16 KiB that comes byte by byte."""
        with dripping_port(b"\x16\x03\x03\x40\x00\x02", b"\x00") as port, pytest.raises(DeadlineExceeded):
            session.get(f"https://127.0.0.1:{port}/", deadline=SOON_S)

    def test_a_proxy_that_never_opens_its_tunnel_is_ended(self, session):
        with dripping_port(HEAD + b"X: ", b"x") as port, pytest.raises(DeadlineExceeded):
            proxies = {"https": f"http://127.0.0.1:{port}"}
            session.get("https://example.test/", proxies=proxies, deadline=SOON_S)

    def test_a_proxy_that_hands_on_whole_urls_is_ended(self, session):
        with dripping_port(HEAD + b"X: ", b"x") as port, pytest.raises(DeadlineExceeded):
            session.get("http://example.test/", proxies={"http": f"http://127.0.0.1:{port}"}, deadline=SOON_S)

    def test_through_a_proxy_a_stuck_origin_is_ended(self, session, proxy, tls_server, authority):
        url = tls_server.route("/stuck", STUCK["in the header section"])
        with pytest.raises(DeadlineExceeded):
            session.get(url, proxies={"https": proxy.url("")}, verify=authority.bundle, deadline=ROOMY_S)
        assert proxy.tunnels

    def test_an_upload_that_nobody_takes_is_ended(self, session):
        with dripping_port(b"", b"") as port, pytest.raises(DeadlineExceeded):
            session.post(f"http://127.0.0.1:{port}/", data=b"x" * 50_000_000, deadline=SOON_S)

    def test_an_upload_in_chunks_gets_its_deadline_too(self, session, server):
        url = server.route("/stuck", STUCK["in the header section"])
        with pytest.raises(DeadlineExceeded):
            session.post(url, data=iter([b"a", b"b"]), deadline=SOON_S)

    def test_an_adapters_own_retries_do_not_go_on(self, session, server):
        session.get_adapter(server.url("/")).max_retries = urllib3.Retry(500)
        with pytest.raises(DeadlineExceeded):
            session.get(server.route("/", reset()), deadline=SOON_S)
        with pytest.raises(DeadlineExceeded):
            session.get(server.route("/", silent()), deadline=SOON_S)
        assert len(server.requests) < 500

    def test_addresses_of_a_host_are_not_tried_once_it_is_late(self, session, monkeypatch):
        """A host of a hundred addresses, each of which takes its share of the time."""
        tried = []

        class Slow(socket.socket):
            def connect(self, address):
                tried.append(address)
                time.sleep(SOON_S / 2)
                raise ConnectionRefusedError

        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9))] * 100
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
        monkeypatch.setattr(socket, "socket", Slow)
        with pytest.raises(DeadlineExceeded):
            session.get("http://example.test/", deadline=SOON_S)
        assert 1 <= len(tried) <= 3


class TestAdaptersOfOthers:
    """A user's own adapter: time-outs bound it until the answer comes, the watchdog in the body."""

    @pytest.fixture
    def session(self):
        with Session(throttle=None, timeout=GUARD_S, adapter=HTTPAdapter()) as one:
            yield one

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("place", IN_THE_BODY)
    @pytest.mark.slow
    def test_a_body_without_end_is_ended(self, session, server, place, stream):
        with pytest.raises(DeadlineExceeded):
            read(session, server.route("/stuck", IN_THE_BODY[place]), deadline=SOON_S, stream=stream)
        assert session.get(server.url("/")).text == "ok"

    def test_silence_is_ended_by_a_shorter_time_out(self, session, server):
        with pytest.raises(DeadlineExceeded):
            session.get(server.route("/stuck", silent()), deadline=SOON_S)


class TestStreams:
    """With stream=True the deadline covers the reading too."""

    def test_what_came_before_the_deadline_is_handed_over(self, session, server):
        url = server.route("/", slowly(HEAD + b"Content-Length: 9999\r\n\r\nbeginning", b"x"))
        response = session.get(url, stream=True, deadline=LATER_S)
        pieces = response.iter_content(9)
        assert next(pieces) == b"beginning"
        response.exchange.end()
        with pytest.raises(DeadlineExceeded) as caught:
            list(pieces)
        assert caught.value.response.status_code == 200

    def test_a_reader_who_takes_too_long_is_told(self, session, server):
        """Though all of it may lie in the socket's buffer."""
        response = session.get(server.route("/", answer(body=b"x" * 20_000)), stream=True, deadline=LATER_S)
        pieces = response.iter_content(100)
        next(pieces)
        response.exchange.end()
        with pytest.raises(DeadlineExceeded):
            list(pieces)

    @pytest.mark.parametrize("how", ["read", "close", "forget"])
    @pytest.mark.slow
    def test_the_watch_ends_with_the_response(self, session, server, how):
        response = session.get(server.route("/", answer(body=b"x" * 100)), stream=True, deadline=LATER_S)
        exchange = response.exchange
        assert not exchange.decided
        if how == "read":
            response.content  # noqa: B018
        elif how == "close":
            response.close()
        del response
        gc.collect()
        assert exchange.decided and not exchange.ended and not exchange._handles

    def test_a_body_that_was_read_serves_after_the_deadline(self, session, server):
        response = session.get(server.route("/", answer(body=b"x" * 100)), deadline=LATER_S, stream=True)
        content = response.content
        response.exchange.end()
        assert response.content == content == b"x" * 100
        assert b"".join(response.iter_content(10)) == content

    def test_pickling_a_stuck_stream_leaves_its_body_out(self, session, server):
        response = session.get(server.route("/", STUCK["in chunks"]), stream=True, deadline=ROOMY_S)
        assert pickle.loads(pickle.dumps(response)).status_code == 200


class TestConnections:
    """An ended connection serves nobody any more, a finished one is not ended."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_finished_connection_is_kept_and_left_alone(self, session, server, stream):
        """Though it serves another call when the moment comes."""
        first = session.get(server.route("/", answer(body=b"first")), deadline=LATER_S, stream=stream)
        assert first.content == b"first"
        second = session.get(server.route("/slow", drip(b"second", pause=0.01)), stream=True)
        first.exchange.end()
        assert second.content == b"second"
        assert server.accepted == 1

    def test_one_that_was_ended_at_its_very_end_is_not_kept(self, session, server):
        """All of the body may have come: its connection serves nobody any more."""
        response = session.get(server.route("/", answer(body=b"x" * 100)), deadline=LATER_S, stream=True)
        response.exchange.end()
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            response.raw.read()
        session.get(server.url("/"))
        assert server.accepted == 2

    def test_an_answer_without_a_body_gives_its_connection_back(self, session, server):
        server.route("/none", 204)
        session.get(server.url("/none"), deadline=SOON_S)
        session.head(server.url("/"), deadline=SOON_S)
        session.get(server.url("/"))
        assert server.accepted == 1

    def test_no_call_is_hit_by_the_deadline_of_another(self, session, server):
        """Deadlines fall all around the moment at which connections change hands; calls without never fail."""
        url = server.route("/", answer(body=b"x" * 100, delay=0.002))
        results = []

        def hurried(number):
            for turn in range(60):
                with contextlib.suppress(DeadlineExceeded):
                    read(session, url, deadline=0.001 + 0.0005 * ((number + turn) % 12), stream=bool(turn % 2))

        def patient():
            for _ in range(60):
                results.append(session.get(url).content)

        workers = [Worker(hurried, number) for number in range(4)] + [Worker(patient) for _ in range(4)]
        for worker in workers:
            worker.join(6 * GUARD_S)
            worker.outcome()
        assert results == [b"x" * 100] * 240

    def test_no_descriptor_is_left(self, session, server):
        """Nor a warning about one: they are errors here."""
        folder = "/proc/self/fd"
        if not os.path.isdir(folder):
            pytest.skip("no /proc")
        url = server.route("/", answer(body=b"x"))
        session.get(url, deadline=LATER_S)
        before = len(os.listdir(folder))
        for stream in [False, True] * 10:
            session.get(url, deadline=LATER_S, stream=stream).close()
        stuck = server.route("/stuck", STUCK["in chunks"])
        for _ in range(3):
            with pytest.raises(DeadlineExceeded):
                session.get(stuck, deadline=0.03)
        gc.collect()
        eventually(lambda: len(os.listdir(folder)) <= before)

    def test_a_broken_answer_is_forgotten_at_once(self, session, server):
        """No cycle keeps the response of a failed call alive until the next garbage collection."""
        gc.disable()
        try:
            with pytest.raises(DeadlineExceeded) as caught:
                session.get(server.route("/", STUCK["in chunks"]), deadline=ROOMY_S)
            alive = weakref.ref(caught.value.response)
            del caught
            assert alive() is None
        finally:
            gc.enable()


class TestTheWholeCall:
    """One bound over everything that belongs to the call, and nothing that does not."""

    def test_redirects_share_it(self, session, server):
        server.route("/*", lambda request: redirect(f"{request.path}x", delay=0.04))
        with pytest.raises(DeadlineExceeded):
            session.get(server.url("/a"), deadline=ROOMY_S)
        assert 2 <= len(server.requests) <= 16

    def test_preparing_the_request_counts(self, session, server):
        def slow_auth(request):
            time.sleep(0.02)
            return request

        with pytest.raises(DeadlineExceeded) as caught:
            session.get(server.url("/"), auth=slow_auth, deadline=0.01)
        assert server.requests == [] and caught.value.attempts == 0

    def test_a_call_of_an_auth_is_a_call_of_its_own(self, session, server):
        """Fetching a token while the request is prepared takes neither the deadline nor the count."""
        tokens = []

        def fetches_a_token(request):
            tokens.append(session.get(server.route("/token", answer(body=b"t", delay=0.05)), deadline=None))
            return request

        response = session.get(server.url("/"), auth=fetches_a_token, deadline=LATER_S)
        assert [one.attempts for one in (response, *tokens)] == [1, 1]
        assert tokens[0].exchange is None and response.exchange is not None

    def test_a_call_of_a_hook_is_a_call_of_its_own(self, session, server):
        url = server.route("/a", redirect("/b"))
        server.route("/b", 200)
        others = []

        def hook(response, **_):
            if not others:
                others.append(session.get(server.url("/")))

        response = session.get(url, hooks={"response": hook}, deadline=LATER_S)
        assert others[0].exchange is None
        assert response.exchange is not None and response.history

    def test_digest_authentication_shares_it(self, session, server):
        challenge = answer(401, fields={"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'})
        url = server.route("/", sequence(challenge, silent()))
        with pytest.raises(DeadlineExceeded):
            session.get(url, auth=requests.auth.HTTPDigestAuth("u", "p"), deadline=ROOMY_S)
        assert len(server.requests) == 2

    def test_the_calls_own_counts_before_the_sessions(self, server):
        url = server.route("/", answer(delay=2 * SOON_S))
        with Session(throttle=None, deadline=SOON_S) as session:
            with pytest.raises(DeadlineExceeded):
                session.get(url)
            assert session.get(url, deadline=LATER_S).ok
            assert session.get(url, deadline=None).ok

    def test_a_prepared_request_is_bounded_too(self, session, server):
        request = session.prepare_request(requests.Request("GET", server.route("/", silent())))
        with pytest.raises(DeadlineExceeded):
            session.send(request, deadline=SOON_S)
        session.deadline = SOON_S
        with pytest.raises(DeadlineExceeded):
            session.send(request)

    def test_calls_without_a_session_take_one(self, server):
        with pytest.raises(DeadlineExceeded):
            kreuz_sync.get(server.route("/", silent()), deadline=SOON_S)

    def test_a_session_keeps_it_in_a_pickle(self):
        assert pickle.loads(pickle.dumps(Session(deadline=7))).deadline == 7.0

    @pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
    def test_no_bound_can_be_kept_for_that(self, session, value):
        for attempt in (lambda: Session(deadline=value), lambda: session.get("http://example.test/", deadline=value)):
            with pytest.raises(ValueError, match="deadline="):
                attempt()

    @pytest.mark.parametrize("value", ["5", True, (1, 2), object()])
    def test_what_is_no_number_of_seconds_is_refused(self, session, value):
        for attempt in (lambda: Session(deadline=value), lambda: session.get("http://example.test/", deadline=value)):
            with pytest.raises(TypeError, match="deadline="):
                attempt()

    def test_the_error_holds_no_secrets(self, session, server):
        server.route("/stuck", silent())
        with pytest.raises(DeadlineExceeded) as caught:
            session.get(server.url("/stuck?token=s3cret", host="me:s3cret@127.0.0.1"), deadline=SOON_S)
        assert "s3cret" not in str(caught.value) and "0.2 s" in str(caught.value)


class TestTimeOuts:
    """What one attempt may take is cut to what is left."""

    @pytest.mark.parametrize(
        ("timeout", "expected"),
        [
            (None, 5.0),
            (3, 3),
            (30.0, 5.0),
            ((3.05, None), (3.05, 5.0)),
            ((30, 2), (5.0, 2)),
            ("soon", "soon"),
            ((1, 2, 3), (1, 2, 3)),
        ],
    )
    def test_none_of_it_is_longer(self, timeout, expected):
        assert clipped(timeout, 5.0) == expected

    @pytest.mark.parametrize(("total", "expected"), [(None, 5.0), (3.0, 3.0), (30.0, 5.0)])
    def test_urllib3s_own_gets_a_total(self, total, expected):
        given = urllib3.Timeout(connect=1.0, read=2.0, total=total)
        assert clipped(given, 5.0).total == expected
        assert given.total == total

    def test_a_time_out_before_the_deadline_is_one(self, session, server):
        with pytest.raises(ReadTimeout):
            session.get(server.route("/", silent()), timeout=0.05, deadline=LATER_S)

    def test_the_wire_is_told(self):
        wire, clock = ScriptedAdapter(200), FakeClock()
        with in_call(5.0, clock):
            clock.advance(1.5)
            Transport(wire).send(prepared(), timeout=(2.0, 30.0))
        assert wire.options[0]["timeout"] == (2.0, 3.5)

    def test_nothing_is_sent_when_nothing_is_left(self):
        wire, clock = ScriptedAdapter(200), FakeClock()
        with in_call(5.0, clock) as call, pytest.raises(DeadlineExceeded):
            clock.advance(5.0)
            Transport(wire).send(prepared(), timeout=None)
        assert wire.requests == [] and call.attempts == 0

    def test_an_error_after_the_deadline_is_the_deadlines(self):
        """Its cause says what happened."""
        clock = FakeClock()

        def late(request):
            clock.advance(9.0)
            return requests.ConnectionError(ConnectionResetError("reset"))

        with in_call(5.0, clock), pytest.raises(DeadlineExceeded) as caught:
            Transport(ScriptedAdapter(late)).send(prepared(), timeout=None)
        assert isinstance(caught.value.__cause__, ConnectionResetError)


class Paced:
    """A throttle over a scripted wire, on a clock that never waits."""

    def __init__(self, *answers, retry=None, clock=None, **settings):
        self.clock = clock or FakeClock()
        self.throttle = Throttle(**{"delay": 10.0, "clock": self.clock, **settings})
        self.wire = ScriptedAdapter(*answers)
        layers = [self.throttle] if retry is None else [Retry(**retry, clock=self.clock), self.throttle]
        self.stack = Stack(layers, Transport(self.wire))

    def send(self, deadline=None):
        with in_call(deadline, self.clock):
            return self.stack.send(prepared(), timeout=None)


class TestThrottle:
    """A turn beyond the deadline is known before it is waited for."""

    def test_it_is_refused_at_once_and_no_turn_is_used(self):
        paced = Paced()
        paced.send()
        with pytest.raises(DeadlineExceeded) as caught:
            paced.send(deadline=5.0)
        error = caught.value
        assert (error.deadline, error.retry_after) == (5.0, pytest.approx(10.0))
        assert error.request is not None
        assert paced.clock.waits == [] and len(paced.wire.requests) == 1
        assert paced.throttle.wait_for("example.test") == pytest.approx(10.0)

    def test_a_turn_before_it_is_waited_for(self):
        paced = Paced()
        paced.send()
        assert paced.send(deadline=11.0).ok
        assert paced.clock.waits == pytest.approx([10.0])

    def test_the_nearer_bound_counts(self):
        paced = Paced(max_wait=3.0)
        paced.send()
        with pytest.raises(ThrottleTimeout):
            paced.send(deadline=5.0)
        with pytest.raises(DeadlineExceeded):
            paced.send(deadline=2.0)

    def test_a_host_that_is_due_gets_no_request_after_the_deadline(self):
        paced = Paced()
        with in_call(5.0, paced.clock), pytest.raises(DeadlineExceeded):
            paced.clock.advance(6.0)
            paced.stack.send(prepared())
        assert paced.throttle.snapshot() == {}

    def test_a_pause_that_comes_while_it_waits_ends_the_wait(self):
        paced = Paced(clock=HeldClock())
        paced.send()
        waiting = Worker(paced.send, deadline=15.0)
        eventually(lambda: paced.clock.asleep)
        paced.throttle.turns.answered("example.test", 429, pause=100.0)
        with pytest.raises(DeadlineExceeded) as caught:
            waiting.outcome()
        assert caught.value.retry_after == pytest.approx(100.0)

    def test_waiting_for_a_place_ends_at_the_deadline(self):
        paced = Paced(clock=HeldClock(), delay=0.0, hosts={"example.test": HostSettings(concurrency=1)})
        held = paced.throttle.turns.take("example.test")
        waiting = Worker(paced.send, deadline=15.0)
        eventually(lambda: paced.clock.asleep)
        paced.clock.advance(15.0)
        with pytest.raises(DeadlineExceeded):
            waiting.outcome()
        held.give_back()
        assert paced.send(deadline=15.0).ok

    def test_a_limiter_of_ones_own_is_not_asked_when_nothing_is_left(self):
        hosts = []

        class Own(RateLimiter):
            def acquire(self, host):
                hosts.append(host)

            def record_response(self, host, status): ...
            def set_crawl_delay(self, host, seconds): ...

        clock = FakeClock()
        with in_call(5.0, clock), pytest.raises(DeadlineExceeded):
            clock.advance(6.0)
            Stack([Own()], Transport(ScriptedAdapter(200))).send(prepared())
        assert hosts == []


class TestRetry:
    """A wait beyond the deadline is not begun: the last outcome is what there is."""

    def test_the_last_answer_is_handed_back(self):
        paced = Paced(503, retry={"attempts": 5, "base": 4.0}, delay=0.0)
        response = paced.send(deadline=10.0)
        assert (response.status_code, response.attempts) == (503, 2)
        assert paced.clock.waits == pytest.approx([4.0])
        assert response.retry_skipped == "the next attempt is 8 s away, and the deadline 6 s"

    def test_the_last_error_is_raised(self):
        paced = Paced(requests.ConnectionError("broken"), retry={"attempts": 5, "base": 4.0}, delay=0.0)
        with pytest.raises(kreuz_sync.ConnectionFailed, match="not repeated: the next attempt is 8 s away"):
            paced.send(deadline=10.0)

    def test_retry_after_beyond_it_is_not_waited_for(self):
        paced = Paced((429, {"Retry-After": "30"}, b""), retry={"attempts": 5}, delay=0.0)
        response = paced.send(deadline=10.0)
        assert (response.attempts, response.retry_after) == (1, 30.0)
        assert "30 s away" in response.retry_skipped

    def test_no_token_of_the_budget_is_spent(self):
        paced = Paced(503, retry={"attempts": 5, "base": 40.0}, delay=0.0)
        assert "deadline" in paced.send(deadline=10.0).retry_skipped
        assert paced.stack.layers[0].budget._ledger.buckets == {}

    def test_a_turn_beyond_it_raises_and_says_what_came_before(self):
        paced = Paced(503, retry={"attempts": 5, "base": 1.0}, delay=60.0)
        with pytest.raises(DeadlineExceeded) as caught:
            paced.send(deadline=10.0)
        assert [attempt.tag for attempt in caught.value.earlier] == ["server_error"]
        assert (caught.value.attempts, caught.value.retry_after) == (1, pytest.approx(59.0))

    def test_it_is_never_repeated(self, server):
        with Session(throttle=None, retry=Retry(5, base=0.001)) as session, pytest.raises(DeadlineExceeded) as caught:
            session.get(server.route("/", silent()), deadline=SOON_S)
        assert caught.value.attempts == len(server.requests) == 1

    def test_attempts_share_the_deadline(self, server):
        with Session(throttle=None, retry=Retry(99, base=0.001, cap=0.001, budget=None), timeout=0.05) as session:
            with pytest.raises((DeadlineExceeded, ReadTimeout)) as caught:
                session.get(server.route("/", silent()), deadline=ROOMY_S)
        assert 2 <= caught.value.attempts <= 13


class TestWatchdog:
    """The thread that ends exchanges."""

    def exchange(self, left=LATER_S):
        """One over a socket pair: with its own end, and the peer's."""
        ours, theirs = socket.socketpair()
        one = Exchange(left, left)
        one.hold(ours)
        return one, ours, theirs

    def test_without_a_deadline_there_is_no_thread(self, server):
        code = f"""
import threading, kreuz_sync
session = kreuz_sync.Session(throttle=None)
for _ in range(3):
    assert session.get({server.url("/")!r}).ok
print(threading.active_count(), end=" ")
for _ in range(3):
    assert session.get({server.url("/")!r}, deadline=30).ok
print(threading.active_count(), *(one.daemon for one in threading.enumerate()[1:]))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == ["1", "2", "True"]

    def test_an_answer_without_a_socket_needs_none(self):
        before = len(WATCHDOG._heap)
        with Session(throttle=None, adapter=ScriptedAdapter((200, {}, b"abc"))) as session:
            assert session.get("http://example.test/", deadline=LATER_S).content == b"abc"
        assert len(WATCHDOG._heap) == before

    def test_an_exchange_is_ended_at_its_moment(self):
        one, ours, theirs = self.exchange(left=0.05)
        with ours, theirs:
            ours.settimeout(GUARD_S)
            assert ours.recv(1) == b""
            assert one.ended and not one.finish()

    def test_the_earliest_is_ended_first(self):
        """A moment that is nearer than all before it wakes the thread."""
        later, *two = self.exchange()
        sooner, *four = self.exchange(left=0.05)
        eventually(lambda: sooner.ended)
        assert not later.decided
        assert later.finish()
        for sock in (*two, *four):
            sock.close()

    def test_a_finished_one_is_left_alone(self):
        one, ours, theirs = self.exchange()
        with ours, theirs:
            assert one.finish() and one.finish()
            one.end()
            assert not one.ended
            theirs.sendall(b"x")
            assert ours.recv(1) == b"x"

    def test_only_one_of_the_two_comes_first(self):
        for _ in range(200):
            one, ours, theirs = self.exchange()
            with ours, theirs:
                barrier = threading.Barrier(2)

                def end(one=one, barrier=barrier):
                    barrier.wait()
                    one.end()

                worker = Worker(end)
                barrier.wait()
                finished = one.finish()
                worker.outcome()
                assert finished is not one.ended
                assert not one._handles
                theirs.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    assert theirs.recv(1) == b"" and one.ended
                    continue
                assert finished

    def test_a_socket_that_comes_after_the_moment_is_shut_at_once(self):
        one = Exchange(LATER_S, LATER_S)
        one.end()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            one.hold(ours)
            assert theirs.recv(1) == b""

    def test_it_shuts_no_socket_that_took_the_number_of_its_own(self):
        one, ours, theirs = self.exchange()
        number = ours.fileno()
        ours.close()
        a, b = socket.socketpair()
        assert number in (a.fileno(), b.fileno())
        one.end()
        with a, b, theirs:
            a.sendall(b"x")
            assert b.recv(1) == b"x"
            assert theirs.recv(1) == b""

    @pytest.mark.parametrize("thing", [None, object(), urllib3.HTTPResponse(b"", preload_content=False)])
    def test_what_has_no_socket_is_not_watched(self, thing):
        one = Exchange(LATER_S, LATER_S)
        one.hold(thing)
        assert not one.watched

    def test_finished_ones_do_not_pile_up(self):
        """An hour's deadline does not mean an hour in memory."""
        dog = Watchdog(HeldClock())
        dog._thread = threading.current_thread()  # nobody looks
        for _ in range(20 * SWEEP_LEAST):
            one = Exchange(3600.0, 3600.0)
            dog.watch(one)
            one.finish()
        assert len(dog._heap) <= SWEEP_LEAST

    def test_those_that_are_not_finished_stay(self):
        dog = Watchdog(HeldClock())
        dog._thread = threading.current_thread()
        waiting = [Exchange(3600.0, 3600.0) for _ in range(3 * SWEEP_LEAST)]
        for one in waiting:
            dog.watch(one)
        assert len(dog._heap) == len(waiting)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    def test_a_child_does_not_end_what_its_parent_is_doing(self, session, server):
        """And can have deadlines of its own."""
        url, stuck = server.route("/", drip(b"x" * 30, pause=0.01)), server.route("/stuck", silent())
        response = session.get(url, stream=True, deadline=LATER_S)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert WATCHDOG._heap == [] and WATCHDOG._thread is None
                try:
                    Session(throttle=None).get(stuck, deadline=SOON_S)
                except DeadlineExceeded:
                    status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert response.content == b"x" * 30
