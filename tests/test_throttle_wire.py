"""The throttle in a session, before real servers."""

import contextlib
import gc
import io
import itertools
import os
import shutil
import threading
import time
import warnings
import weakref

import pytest
import requests
from requests.auth import HTTPDigestAuth

from kreuz_sync import Retry, Session, Throttle
from kreuz_sync.errors import SessionClosed, ThrottleTimeout
from kreuz_sync.stack import LayerAdapter

from .fakes import FakeClock, respond
from .loopback import DigestAuth, answer, chunked, cut, redirect, sequence
from .waiting import GUARD_S, Worker, eventually

# Between the throttle's clock and the server's lie a connection and two threads, which a busy
# machine may run late. The exact times are tested elsewhere, on clocks that do not wait.
NOISE_S = 0.04
TRIES = 3  # for what such a machine may spoil altogether


@pytest.fixture(autouse=True)
def collected():
    """Interrupted and abandoned requests leave sockets to the garbage collector, which says so whenever it comes."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def arrivals(server):
    return [request.at for request in server.requests]


def crowd(server, session, *, threads, requests):
    """When each of `requests` requests arrived, which `threads` threads sent as fast as they could."""
    before = len(server.requests)
    numbers = iter(range(requests))  # shared: `next` on it is one step
    barrier = threading.Barrier(threads)

    def work():
        barrier.wait(GUARD_S)
        while next(numbers, None) is not None:
            session.get(server.url("/"))

    for worker in [Worker(work) for _ in range(threads)]:
        worker.outcome()
    return arrivals(server)[before:]


def overloaded():
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1)


def joined(throttle):
    """Requests that were started or are in line, over all hosts."""
    return sum(host.starts + host.waiting for host in throttle.snapshot().values())


class TestManyThreads:
    def test_they_arrive_in_the_order_in_which_they_came(self, server):
        """16 threads join the line one after the other, and arrive so, none before its turn."""
        throttle = Throttle(0.05)
        with Session(throttle=throttle) as session:
            session.get(server.url("/"))
            workers = []
            for number in range(1, 17):
                workers.append(Worker(session.get, server.url("/"), params={"n": number}))
                eventually(lambda number=number: joined(throttle) == number + 1)
            for worker in workers:
                assert worker.outcome().status_code == 200
        assert [request.query for request in server.requests] == ["", *(f"n={n}" for n in range(1, 17))]
        first = arrivals(server)[0]
        for number, arrived in enumerate(arrivals(server)):
            assert arrived - first >= number * 0.05 - NOISE_S

    @pytest.mark.slow
    def test_the_rate_is_the_ideal_one(self, server):
        """16 threads, 50 ms: at least 98 % of 20 requests a second, and never more than that."""
        rates = []
        while max(rates, default=0) < 0.98 and len(rates) < TRIES:
            with Session(throttle=0.05) as session:
                came = crowd(server, session, threads=16, requests=40)
            assert len(came) == 40
            assert came[-1] - came[0] >= 39 * 0.05 - NOISE_S
            rates.append(39 * 0.05 / (came[-1] - came[0]))
        if max(rates) < 0.98 and overloaded():
            pytest.skip("more work waits for this machine's processors than they can do: no rate can be measured")
        assert max(rates) >= 0.98

    def test_twenty_threads_that_come_at_once_are_spread(self, server):
        """The n-th arrives n delays after the first. (How far apart they start: `TestRealThreads`.)"""
        with Session(throttle=0.05) as session:
            came = crowd(server, session, threads=20, requests=20)
        assert len(came) == 20
        for number, arrived in enumerate(came):
            assert arrived - came[0] >= number * 0.05 - NOISE_S

    def test_with_wake_ups_a_few_milliseconds_late_it_still_is(self):
        """The same on a clock where every wake-up is 0 to 5 ms late."""
        late = itertools.cycle([0.0, 0.005, 0.001, 0.003])

        class Late(FakeClock):
            def wait(self, condition, seconds):
                super().wait(condition, None if seconds is None else seconds + next(late))

        clock = Late()
        throttle = Throttle(0.05, clock=clock)
        for _ in range(601):
            throttle.acquire("example.test")
        assert 600 * 0.05 <= clock.monotonic() - 1000 <= 600 * 0.05 + 0.006

    def test_one_session_a_thread_on_one_throttle_is_one_schedule(self, server):
        throttle = Throttle(0.05)
        barrier = threading.Barrier(5)

        def work():
            with Session(throttle=throttle) as session:
                barrier.wait(GUARD_S)
                session.get(server.url("/"))

        for worker in [Worker(work) for _ in range(5)]:
            worker.outcome()
        assert arrivals(server)[-1] - arrivals(server)[0] >= 4 * 0.05 - NOISE_S

    def test_a_host_that_is_waited_for_holds_up_no_other(self, server):
        """Three queue for a minute; the fourth wants another host, and is answered while they wait."""
        throttle = Throttle(0, hosts={"127.0.0.1": 60.0})
        session = Session(throttle=throttle)
        session.get(server.url("/", host="127.0.0.1"))
        workers = [Worker(session.get, server.url("/", host="127.0.0.1")) for _ in range(3)]
        eventually(lambda: throttle.snapshot()["127.0.0.1"].waiting == 3)
        for _ in range(10):
            assert session.get(server.url("/", host="127.0.0.2")).waited == 0.0
        assert throttle.snapshot()["127.0.0.1"].waiting == 3
        session.close()
        for worker in workers:
            with pytest.raises(SessionClosed):
                worker.outcome()


class TestEveryAttemptTakesATurn:
    """Not every call: on a clock that does not wait, before real servers."""

    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    def throttle(self, clock):
        return Throttle(0.2, clock=clock)

    def test_retries_do(self, server, throttle, clock):
        url = server.route("/busy", sequence(503, 503, answer(200)))
        with Session(throttle=throttle, retry=Retry(2, base=0.0)) as session:
            response = session.get(url)
        assert response.attempts == 3
        assert clock.waits == pytest.approx([0.2, 0.2])
        assert response.waited >= 0.4 - 1e-9

    def test_a_retry_after_a_429_waits_the_doubled_delay(self, server, throttle, clock):
        url = server.route("/busy", sequence(429, answer(200)))
        with Session(throttle=throttle, retry=Retry(1, base=0.0)) as session:
            session.get(url)
        assert clock.waits == pytest.approx([0.4])

    def test_each_hop_of_a_redirect_takes_one_of_its_own_host(self, server, throttle, clock):
        """From one host to another and back: the first sees two requests a delay apart."""
        end = server.route("/end", 200, host="127.0.0.1")
        there = server.route("/there", redirect(end), host="127.0.0.2")
        start = server.route("/start", redirect(there), host="127.0.0.1")
        with Session(throttle=throttle) as session:
            response = session.get(start)
        assert [hop.waited for hop in (*response.history, response)] == pytest.approx([0, 0, 0.2])
        assert {name: host.starts for name, host in throttle.snapshot().items()} == {"127.0.0.1": 2, "127.0.0.2": 1}

    def test_the_second_round_of_digest_does(self, server, throttle, clock):
        url = server.route("/digest", DigestAuth("user", "pass"))
        with Session(throttle=throttle) as session:
            assert session.get(url, auth=HTTPDigestAuth("user", "pass")).status_code == 200
        assert len(server.requests) == 2
        assert clock.waits == pytest.approx([0.2])

    def test_an_answer_from_a_layer_outside_takes_none_and_counts_for_nothing(self, throttle, clock):
        """As those of a cache: they wait for nobody, and are no successes."""

        class Store(LayerAdapter):
            def send(self, request, **options):
                if request.url.endswith("/stored"):
                    return respond(request, 200)
                return self.inner.send(request, **options)

        throttle.record_response("example.test", 429)
        with Session(layers=[Store, throttle]) as session:
            for _ in range(10):
                session.get("http://example.test/stored")
        assert clock.waits == []
        assert throttle.snapshot()["example.test"].starts == 0
        assert throttle.delay_for("example.test") == pytest.approx(0.4)


class TestErrorsThatComeQuickly:
    def test_the_pace_follows_429s_and_not_how_fast_they_come(self, server):
        url = server.route("/", sequence(429, *[503] * 5, *[200] * 5))
        clock = FakeClock()
        throttle = Throttle(0.1, clock=clock)
        delays = []
        with Session(throttle=throttle) as session:
            for _ in range(11):
                session.get(url)
                delays.append(throttle.delay_for("127.0.0.1"))
        assert delays == pytest.approx([0.2] * 10 + [0.1])

    def test_a_429_comes_back_as_a_response_and_is_learnt_from(self, server):
        url = server.route("/", answer(429, fields={"Retry-After": "7"}))
        throttle = Throttle(0.1, clock=FakeClock())
        with Session(throttle=throttle) as session:
            assert session.get(url).status_code == 429
        assert throttle.wait_for("127.0.0.1") == pytest.approx(7)

    def test_a_body_that_breaks_off_is_no_success(self, server):
        url = server.route("/", sequence(429, *[200] * 4, answer(body="x" * 100, cut=10), 200))
        throttle = Throttle(0.1, clock=FakeClock())
        with Session(throttle=throttle) as session:
            for _ in range(5):
                session.get(url)
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                session.get(url)
            session.get(url)
        assert throttle.delay_for("127.0.0.1") == pytest.approx(0.2)


class TestStopping:
    def test_closing_a_session_ends_its_waits_and_another_goes_on(self, server):
        throttle = Throttle(30)
        session, other = Session(throttle=throttle), Session(throttle=throttle)
        session.get(server.url("/"))
        mine = [Worker(session.get, server.url("/")) for _ in range(2)]
        eventually(lambda: throttle.snapshot()["127.0.0.1"].waiting == 2)
        theirs = Worker(other.get, server.url("/"))
        eventually(lambda: throttle.snapshot()["127.0.0.1"].waiting == 3)
        began = time.monotonic()
        session.close()
        for worker in mine:
            with pytest.raises(SessionClosed) as caught:
                worker.outcome()
            assert caught.value.request.url == server.url("/")
        assert time.monotonic() - began < GUARD_S
        assert throttle.snapshot()["127.0.0.1"].waiting == 1
        other.close()
        with pytest.raises(SessionClosed):
            theirs.outcome()

    def test_a_new_session_on_the_same_throttle_waits_the_normal_delay(self, server):
        throttle = Throttle(0.2)
        with Session(throttle=throttle) as session:
            session.get(server.url("/"))
            waiting = [Worker(session.get, server.url("/")) for _ in range(5)]
            eventually(lambda: throttle.snapshot()["127.0.0.1"].waiting >= 4)
        for worker in waiting:
            with contextlib.suppress(SessionClosed):
                worker.outcome()
        with Session(throttle=throttle) as session:
            assert session.get(server.url("/")).waited < 0.6, "places of those who left still count"

    def test_an_interrupted_wait_leaves_the_session_usable(self, server):
        clock = FakeClock()
        wait = clock.wait

        def interrupted(condition, seconds):
            clock.wait = wait
            raise KeyboardInterrupt

        with Session(throttle=Throttle(1.0, clock=clock)) as session:
            session.get(server.url("/"))
            clock.wait = interrupted
            with pytest.raises(KeyboardInterrupt):
                session.get(server.url("/"))
            assert session.get(server.url("/")).waited == pytest.approx(1.0)
        assert len(server.requests) == 2

    def test_a_ceiling_is_decided_before_waiting(self, server):
        clock = FakeClock()
        with Session(throttle=Throttle(5, max_wait=1, clock=clock)) as session:
            session.get(server.url("/"))
            with pytest.raises(ThrottleTimeout) as caught:
                session.get(server.url("/"))
            assert caught.value.retry_after == pytest.approx(5)
            assert isinstance(caught.value, requests.Timeout)
            clock.advance(5)
            assert session.get(server.url("/")).waited == 0.0
        assert clock.waits == []


class TestKindsOfHosts:
    def test_a_proxy_is_not_the_host(self, server, proxy):
        """The pace belongs to who is asked, not to who passes it on."""
        throttle = Throttle(0.5, clock=FakeClock())
        with Session(throttle=throttle) as session:
            session.proxies = {"http": proxy.url()}
            session.get(server.url("/", host="127.0.0.2"))
        assert list(throttle.snapshot()) == ["127.0.0.2"]

    def test_a_crawl_delay_holds_without_any_other(self, server):
        clock = FakeClock()
        throttle = Throttle(0, clock=clock)
        throttle.set_crawl_delay("127.0.0.1", 0.5)
        with Session(throttle=throttle) as session:
            for _ in range(3):
                session.get(server.url("/"))
        assert clock.waits == pytest.approx([0.5, 0.5])


class TestReadersOfRaw:
    """The bytes of `response.raw` go past us; urllib3 tells when they are at their end."""

    READERS = {
        "copyfileobj": lambda raw: shutil.copyfileobj(raw, io.BytesIO()),
        "read": lambda raw: raw.read(),
        "stream": lambda raw: list(raw.stream(100)),
        "buffered": lambda raw: io.BufferedReader(raw).read(),
        "drain_conn": lambda raw: raw.drain_conn(),
    }

    @pytest.fixture(params=["length", "chunked"])
    def url(self, request, server):
        return server.route(
            "/", answer(body=b"x" * 1000) if request.param == "length" else chunked(b"x" * 500, b"x" * 500)
        )

    @pytest.fixture
    def session(self):
        with Session(throttle=Throttle(0, concurrency=1, max_wait=GUARD_S)) as session:
            self.opened = contextlib.ExitStack()
            with self.opened:
                yield session

    def stream(self, session, url, method="GET"):
        """A response that is held till the test's end, as by somebody who never closes one."""
        return self.opened.enter_context(session.request(method, url, stream=True))

    def count(self, session):
        return len(session.throttle.turns.roster.hosts["127.0.0.1"].taken)

    @pytest.mark.parametrize("reader", READERS)
    @pytest.mark.slow
    def test_at_the_end_the_place_is_free(self, session, url, reader):
        kept = self.stream(session, url)
        assert self.count(session) == 1
        self.READERS[reader](kept.raw)
        assert self.count(session) == 0

    @pytest.mark.parametrize("size", [1, 5000])
    @pytest.mark.slow
    def test_the_first_piece_of_an_iteration(self, session, url, size):
        """What follows may still be read, unless urllib3 has let the connection go."""
        kept = self.stream(session, url)
        for _ in kept.iter_content(size):
            break
        is_open = kept.raw._connection is not None
        assert self.count(session) == is_open
        kept.close()
        assert self.count(session) == 0

    @pytest.mark.slow
    def test_it_counts_as_a_success_only_at_its_end(self, session, url, server):
        told = []
        session.throttle.turns.answered = lambda name, status, **_: told.append(status)
        session.get(url, stream=True).close()
        with session.get(url, stream=True) as peeked:
            for _ in peeked.iter_content(1):
                break
        assert told == []
        kept = self.stream(session, url)
        kept.raw.read()
        assert (told, kept.status_code) == ([200], 200)

    def test_a_cut_body_frees_the_place_and_is_no_success(self, session, server):
        told = []
        session.throttle.turns.answered = lambda name, status, **_: told.append(status)
        kept = self.stream(session, server.route("/cut", cut(b"x" * 1000, after=10)))
        with contextlib.suppress(Exception):  # urllib3 1.26 says nothing
            kept.raw.read()
        assert (self.count(session), told) == (0, [])

    @pytest.mark.parametrize("method", ["HEAD", "GET"])
    @pytest.mark.slow
    def test_an_answer_without_a_body_has_no_place(self, session, server, method):
        url = server.route("/", answer(body=b"" if method == "GET" else b"x"))
        kept = self.stream(session, url, method)
        assert (self.count(session), kept.status_code) == (0, 200)

    @pytest.mark.slow
    def test_a_forgotten_response_is_not_kept_alive_by_the_watch(self, session, url):
        response = session.get(url, stream=True)
        gone = weakref.ref(response.raw)
        gc.disable()
        try:
            response.close()
            del response
            assert gone() is None
        finally:
            gc.enable()
