"""The breaker in a session: dead hosts fail at once, and are tried by one request at a time."""

import collections
import copy
import gc
import itertools
import logging
import pickle
import socket
import threading
import time

import pytest
import requests

import kreuz_sync
from kreuz_sync import Breaker, CircuitOpen, RateLimiter, Retry, Session, Throttle, errors
from kreuz_sync.breaker.circuits import HOSTS_KEPT, PROBE_S
from kreuz_sync.errors import (
    ConnectionRefused,
    ConnectTimeout,
    DataLoss,
    DeadlineExceeded,
    DnsError,
    ReadTimeout,
    ThrottleTimeout,
)
from kreuz_sync.stack import LayerAdapter, Stack

from .fakes import FakeClock, ScriptedAdapter, respond
from .loopback import Server, answer, cut, hang_up, sequence, silent
from .waiting import GUARD_S, Worker

A, B = "http://a.test/", "http://b.test/"
REFUSED = requests.ConnectionError(ConnectionRefusedError(111, "Connection refused"))


class Wire(ScriptedAdapter):
    """Answers with what `now` is: a status, or an error to raise."""

    def __init__(self, now=REFUSED):
        super().__init__(lambda request: self.now)
        self.now = now


class OwnError(requests.ConnectionError):
    """Of an adapter that is not ours."""


class Raising(ScriptedAdapter):
    """Keeps no error that it raises, as doubles that are told which do."""

    def send(self, request, **options):
        raise OwnError


@pytest.fixture
def clock():
    return FakeClock()


def asks(session, url=A, **options):
    """The tag of what a call comes to; "ok" for an answer."""
    try:
        return session.get(url, **options).tag or "ok"
    except requests.RequestException as error:
        return kreuz_sync.classify(error)


@pytest.fixture
def dead(clock):
    """Makes a session and its wire, on which nobody answers; its circuits open after 3 failures, for 10 s."""

    def make(wire=None, **settings):
        wire = wire or Wire()
        breaker = Breaker(3, 10.0, 35.0, clock=clock)
        return Session(**{"throttle": None, "adapter": wire, "breaker": breaker, **settings}), wire

    return make


class TestOpening:
    def test_after_so_many_failures_in_a_row_nothing_is_sent(self, dead):
        session, wire = dead()
        assert [asks(session) for _ in range(5)] == ["connection_refused"] * 3 + ["circuit_open"] * 2
        assert len(wire.requests) == 3

    def test_the_error_says_who_why_and_when(self, dead, clock):
        session, _ = dead()
        for _ in range(3):
            asks(session)
        clock.advance(4)
        with pytest.raises(CircuitOpen) as caught:
            session.get(A)
        error = caught.value
        assert (error.tag, error.host, error.last, error.attempts) == (
            "circuit_open",
            "a.test",
            "connection_refused",
            0,
        )
        assert (error.retry_after, error.ready_at) == (6.0, clock.wall() + 6.0)
        assert error.request.url == A
        assert str(error) == "a.test: 3 failures in a row, the last: connection_refused; it may be tried again in 6 s"

    def test_one_failure_is_no_row(self, dead, clock):
        session, _ = dead(breaker=Breaker(1, clock=clock))
        asks(session)
        with pytest.raises(CircuitOpen, match="^a.test: 1 failure, the last: connection_refused; "):
            session.get(A)

    def test_old_code_catches_it_as_a_connection_error(self, dead):
        session, _ = dead()
        for _ in range(3):
            asks(session)
        with pytest.raises(requests.ConnectionError):
            session.get(A)

    def test_other_hosts_are_asked_as_ever(self, dead):
        session, wire = dead()
        for _ in range(3):
            asks(session)
        wire.now = 200
        assert (asks(session, A), asks(session, B)) == ("circuit_open", "ok")

    def test_ports_and_spellings_of_a_host_share_a_circuit(self, dead):
        session, _ = dead()
        urls = ("http://A.test:81/", "https://a.test./", A)
        assert [asks(session, url) for url in (*urls, *urls)][3:] == ["circuit_open"] * 3

    def test_a_key_may_replace_the_host(self, clock):
        breaker = Breaker(2, key=lambda url: "" if "free" in url else "all", clock=clock)
        session = Session(throttle=None, adapter=Wire(), breaker=breaker)
        assert [asks(session, url) for url in (A, B, A)] == ["connection_refused"] * 2 + ["circuit_open"]
        assert {asks(session, "http://free.test/") for _ in range(5)} == {"connection_refused"}

    def test_a_key_that_gives_no_text_is_named(self):
        session = Session(throttle=None, adapter=Wire(), breaker=Breaker(key=lambda url: None))
        with pytest.raises(TypeError, match="key="):
            session.get(A)

    @pytest.mark.parametrize("status", [200, 301, 404, 429, 500, 503])
    def test_any_answer_begins_the_count_anew(self, dead, status):
        session, wire = dead()
        for _ in range(4):
            for now in (REFUSED, REFUSED, status):
                wire.now = now
                assert asks(session) != "circuit_open"

    def test_statuses_count_as_failures_where_they_are_named(self, clock):
        breaker = Breaker(2, statuses={503}, clock=clock)
        session = Session(throttle=None, adapter=(wire := Wire(503)), breaker=breaker)
        assert [asks(session) for _ in range(3)] == ["server_error", "server_error", "circuit_open"]
        clock.advance(30)
        wire.now = 500
        assert [asks(session) for _ in range(3)] == ["server_error"] * 3

    def test_what_never_reached_the_host_does_not_count(self, clock):
        throttle = Throttle(100.0, max_wait=1.0, clock=clock)
        session = Session(throttle=throttle, adapter=Wire(), breaker=Breaker(2, clock=clock))
        tags = [asks(session) for _ in range(6)]
        assert tags == ["connection_refused"] + ["throttle_timeout"] * 5
        assert session.breaker.snapshot()["a.test"].failures == 1

    def test_redirects_count_for_the_host_that_they_lead_to(self, clock):
        def lead(request):
            return (302, {"Location": B}, b"") if request.url == A else REFUSED

        session = Session(throttle=None, adapter=ScriptedAdapter(lead), breaker=Breaker(2, clock=clock))
        assert [asks(session, A) for _ in range(3)] == ["connection_refused"] * 2 + ["circuit_open"]
        assert list(session.breaker.snapshot()) == ["b.test"]

    def test_a_url_without_a_host_has_no_circuit(self):
        session = Session(throttle=None, adapter=(wire := Wire()), breaker=Breaker(1))
        session.mount("data:", wire)
        assert [asks(session, "data:,x") for _ in range(3)] == ["connection_refused"] * 3
        assert session.breaker.snapshot() == {}


class TestTrying:
    """Half-open: one request tries the host."""

    def open(self, session, clock):
        while asks(session) != "circuit_open":
            pass
        clock.advance(10)

    def test_an_answer_closes_the_circuit(self, dead, clock):
        session, wire = dead()
        self.open(session, clock)
        wire.now = 404
        assert [asks(session) for _ in range(3)] == ["not_found"] * 3
        assert session.breaker.snapshot() == {}

    def test_a_failure_doubles_the_time(self, dead, clock):
        session, _ = dead()
        self.open(session, clock)
        waits = []
        for _ in range(4):
            assert [asks(session), asks(session)] == ["connection_refused", "circuit_open"]
            waits.append(session.breaker.snapshot()["a.test"].retry_after)
            clock.advance(waits[-1])
        assert waits == [20, 35, 35, 35]

    def test_it_waits_its_turn_of_the_hosts_pace(self, dead, clock):
        throttle = Throttle(7.0, clock=clock)
        session, wire = dead(throttle=throttle)
        self.open(session, clock)
        wire.now = 200
        throttle.acquire("a.test")
        assert session.get(A).waited == 7.0

    def test_a_request_that_is_refused_takes_no_turn(self, dead, clock):
        throttle = Throttle(0.0, clock=clock)
        session, _ = dead(throttle=throttle)
        for _ in range(10):
            asks(session)
        assert throttle.snapshot()["a.test"].starts == 3

    def test_while_one_is_trying_the_others_fail_at_once(self, dead, clock):
        session, wire = dead()
        self.open(session, clock)
        trying, go = threading.Event(), threading.Event()

        def slow(request):
            trying.set()
            assert go.wait(GUARD_S)
            return 200

        wire.answers = [slow]
        worker = Worker(asks, session)
        assert trying.wait(GUARD_S)
        with pytest.raises(CircuitOpen, match="one request is trying it now") as caught:
            session.get(A)
        assert (caught.value.retry_after, caught.value.ready_at) == (None, None)
        assert session.breaker.snapshot()["a.test"].state == "probing"
        go.set()
        assert worker.outcome() == "ok"

    @pytest.mark.parametrize(
        "interrupt",
        [
            *(KeyboardInterrupt, SystemExit, MemoryError, ValueError, requests.exceptions.InvalidURL),
            *(
                ThrottleTimeout,
                DeadlineExceeded,
                errors.RateLimitExceeded,
                errors.AddressBlocked,
                errors.BudgetExceeded,
            ),
        ],
    )
    def test_a_try_that_is_called_off_lets_the_next_one_try(self, dead, clock, interrupt):
        session, wire = dead()
        self.open(session, clock)

        def strike(request):
            raise interrupt

        wire.answers = [strike]
        with pytest.raises(interrupt):
            session.get(A)
        wire.answers = [200]
        assert asks(session) == "ok"

    def test_a_try_that_is_forgotten_lets_the_next_one_try(self, dead, clock):
        """An interrupt may strike where nobody is yet responsible for it."""
        session, _ = dead()
        self.open(session, clock)
        circuits = session.breaker.circuits
        probe = circuits.admit("a.test")
        assert probe is not None
        del probe
        gc.collect()
        assert circuits.admit("a.test") is not None

    def test_a_try_that_hangs_does_not_keep_the_host_out_of_reach_for_ever(self, dead, clock):
        session, _ = dead()
        self.open(session, clock)
        hanging = session.breaker.circuits.admit("a.test")
        clock.advance(PROBE_S - 1)
        assert asks(session) == "circuit_open"
        clock.advance(1)
        assert asks(session) == "connection_refused"
        assert hanging is not None

    def test_a_stream_that_is_never_read_has_answered_all_the_same(self, dead, clock):
        session, wire = dead()
        self.open(session, clock)
        wire.now = (200, {"Content-Length": "3"}, b"abc")
        response = session.get(A, stream=True)
        assert asks(session) == "ok"
        del response
        gc.collect()
        assert asks(session) == "ok"

    def test_a_throttle_that_refuses_lets_the_next_one_try(self, dead, clock):
        throttle = Throttle(0.0, max_wait=5.0, clock=clock)
        session, wire = dead(throttle=throttle)
        self.open(session, clock)
        wire.now = 200
        throttle.set_crawl_delay("a.test", 30)
        throttle.turns.roster.hosts["a.test"].start(clock.monotonic())
        assert asks(session) == "throttle_timeout"
        assert session.breaker.snapshot()["a.test"].state == "open"
        clock.advance(30)
        assert asks(session) == "ok"

    def test_a_limiter_that_raises_lets_the_next_one_try(self, dead, clock):
        class Sulking(RateLimiter):
            sulks = False

            def acquire(self, host):
                if self.sulks:
                    raise ThrottleTimeout("not today")

            def record_response(self, host, status): ...
            def set_crawl_delay(self, host, seconds): ...

        limiter = Sulking()
        session, wire = dead(throttle=limiter)
        self.open(session, clock)
        wire.now, limiter.sulks = 200, True
        assert [asks(session), asks(session)] == ["throttle_timeout"] * 2
        limiter.sulks = False
        assert asks(session) == "ok"

    def test_an_answer_of_a_layer_below_is_none_of_the_hosts(self, clock):
        """A rate limit answers 429 itself: the circuit stays open, and the next one tries."""

        class Local(LayerAdapter):
            answers = False

            def send(self, request, **options):
                return respond(request, 429) if Local.answers else super().send(request, **options)

        breaker, wire = Breaker(2, 10.0, clock=clock), Wire()
        session = Session(layers=[breaker, Local], adapter=wire)
        assert [asks(session) for _ in range(2)] == ["connection_refused"] * 2
        clock.advance(10)
        Local.answers = True
        assert [asks(session) for _ in range(3)] == ["rate_limited"] * 3
        assert breaker.snapshot()["a.test"].state == "open"
        Local.answers, wire.now = False, 200
        assert asks(session) == "ok"
        assert breaker.snapshot() == {}

    def test_an_answer_to_an_older_request_closes_the_circuit_too(self, dead, clock):
        session, wire = dead()
        asked, go = threading.Event(), threading.Event()

        def slow(request):
            asked.set()
            assert go.wait(GUARD_S)
            return 200

        wire.answers = [slow, REFUSED]
        worker = Worker(asks, session)
        assert asked.wait(GUARD_S)
        assert [asks(session) for _ in range(4)][-1] == "circuit_open"
        go.set()
        assert worker.outcome() == "ok"
        assert session.breaker.snapshot() == {}

    def test_failures_of_older_requests_do_not_put_off_the_try(self, dead, clock):
        session, wire = dead()
        asked, go = threading.Semaphore(0), threading.Event()

        def slow(request):
            asked.release()
            assert go.wait(GUARD_S)
            return REFUSED

        wire.answers = [slow] * 5
        workers = [Worker(asks, session) for _ in range(5)]
        for _ in workers:
            assert asked.acquire(timeout=GUARD_S)
        wire.answers = [REFUSED]
        self.open(session, clock)
        go.set()
        assert [worker.outcome() for worker in workers] == ["connection_refused"] * 5
        report = session.breaker.snapshot()["a.test"]
        assert (report.state, report.failures, report.recovery, report.retry_after) == ("open", 3, 10.0, 0.0)


class TestRetry:
    """Outside the breaker: each attempt counts, and what the breaker refuses is not repeated."""

    def test_what_it_refuses_to_repeat_ends_as_the_last_attempt_did(self, dead, clock):
        session, wire = dead(retry=Retry(5, base=1.0, clock=clock))
        assert asks(session) == "connection_refused"
        assert len(wire.requests) == 3
        assert clock.waits == [1.0, 2.0, 4.0]

    def test_the_error_has_what_came_before(self, dead, clock):
        session, _ = dead(retry=Retry(5, base=1.0, clock=clock))
        with pytest.raises(ConnectionRefused, match=r"connection refused .* \(not repeated: a.test: 3 fail") as caught:
            session.get(A)
        assert [attempt.tag for attempt in caught.value.earlier] == ["connection_refused"] * 2
        assert caught.value.attempts == 3
        assert caught.value.retry_skipped.startswith("a.test: 3 failures in a row, the last: connection_refused; ")

    def test_the_next_call_is_refused_as_such(self, dead, clock):
        session, wire = dead(retry=Retry(5, base=1.0, clock=clock))
        assert [asks(session) for _ in range(2)] == ["connection_refused", "circuit_open"]
        assert len(wire.requests) == 3

    def test_an_answer_that_is_not_repeated_is_handed_over(self, dead, clock):
        breaker = Breaker(2, statuses={503}, clock=clock)
        session, _ = dead(ScriptedAdapter((503, {}, b"busy")), retry=Retry(5, clock=clock), breaker=breaker)
        page = session.get(A)
        assert (page.status_code, page.content, page.attempts) == (503, b"busy", 2)
        assert [attempt.status for attempt in page.earlier] == [503]
        assert "2 failures in a row" in page.retry_skipped

    def test_of_a_stream_nothing_is_left_to_hand_over(self, server, clock):
        url = server.route("/", answer(503, body="busy"))
        breaker = Breaker(2, statuses={503}, clock=clock)
        with Session(throttle=None, retry=Retry(5, clock=clock), breaker=breaker) as session:
            with pytest.raises(CircuitOpen) as caught:
                session.get(url, stream=True)
        assert caught.value.response.status_code == 503
        assert [attempt.status for attempt in caught.value.earlier] == [503, 503]

    def test_nothing_keeps_the_error_alive_afterwards(self, dead, clock):
        session, _ = dead(retry=Retry(5, clock=clock), adapter=Raising())
        gc.collect()
        gc.disable()
        try:
            asks(session)
            assert not [one for one in gc.get_objects() if type(one) is OwnError]
        finally:
            gc.enable()

    def test_a_stale_answer_of_the_cache_may_stand_in(self, dead, clock):
        """For the cache it is an error of the wire like any other."""
        session, wire = dead(cache=kreuz_sync.Cache(kreuz_sync.MemoryStore(), ttl=1, stale_if_error=3600, clock=clock))
        wire.now = (200, {"Content-Type": "text/plain"}, b"kept")
        assert session.get(A).content == b"kept"
        clock.advance(5)
        wire.now = REFUSED
        for _ in range(5):
            assert session.get(A).content == b"kept"
        assert len(wire.requests) == 4


class TestThreads:
    """Sixteen at once, and exact counts."""

    COUNT = 16

    def together(self, session, calls=1):
        """What each of COUNT threads gets, all begun at once."""
        ready = threading.Barrier(self.COUNT)

        def ask():
            ready.wait(GUARD_S)
            return [asks(session) for _ in range(calls)]

        workers = [Worker(ask) for _ in range(self.COUNT)]
        return [tag for worker in workers for tag in worker.outcome()]

    def test_one_of_them_tries_and_the_others_fail_at_once(self, dead, clock):
        session, wire = dead()
        TestTrying().open(session, clock)
        for round_number in range(5):
            go = threading.Event()

            def slow(request, go=go):
                assert go.wait(GUARD_S)
                return REFUSED

            wire.answers = [slow]
            sent = len(wire.requests)
            refused = threading.Semaphore(0)
            ready = threading.Barrier(self.COUNT)

            def ask(ready=ready, refused=refused):
                ready.wait(GUARD_S)
                tag = asks(session)
                refused.release()
                return tag

            workers = [Worker(ask) for _ in range(self.COUNT)]
            for _ in range(self.COUNT - 1):
                assert refused.acquire(timeout=GUARD_S)
            go.set()
            tags = sorted(worker.outcome() for worker in workers)
            assert tags == ["circuit_open"] * (self.COUNT - 1) + ["connection_refused"], round_number
            assert len(wire.requests) == sent + 1
            clock.advance(35)

    def test_every_failure_counts_once(self, clock):
        total = self.COUNT * 20
        session = Session(throttle=None, adapter=Wire(), breaker=Breaker(total, clock=clock))
        assert set(self.together(session, calls=20)) == {"connection_refused"}
        report = session.breaker.snapshot()["a.test"]
        assert (report.state, report.failures) == ("open", total)

    def test_in_a_storm_of_all_outcomes_one_tries_at_a_time(self):
        """Failures, interrupts and refusals below, while the clock runs: never two at the host, and none stuck."""

        class Running(FakeClock):
            def monotonic(self):
                self.advance(0.01)
                return super().monotonic()

        under_way, most, sent = [], [], []

        def come(request):
            under_way.append(1)
            sent.append(1)
            most.append(len(under_way))
            number = len(sent)
            time.sleep(0.001)
            under_way.pop()
            raise [REFUSED, KeyboardInterrupt, ThrottleTimeout("below"), DeadlineExceeded("below")][number % 4]

        breaker = Breaker(1, 1.0, 1.0, clock=Running())
        breaker.circuits.failed("a.test", "dns", None)
        session = Session(throttle=None, adapter=ScriptedAdapter(come), breaker=breaker)

        def ask():
            try:
                return asks(session)
            except KeyboardInterrupt:
                return "interrupt"

        ready = threading.Barrier(self.COUNT)

        def run():
            ready.wait(GUARD_S)
            return [ask() for _ in itertools.takewhile(lambda _: len(sent) < 40, range(100_000))]

        workers = [Worker(run) for _ in range(self.COUNT)]
        tags = collections.Counter(tag for worker in workers for tag in worker.outcome())
        assert set(most) == {1}
        assert sum(tags.values()) - tags["circuit_open"] == len(sent) >= 40
        assert tags["connection_refused"] == breaker.snapshot()["a.test"].failures - 1
        assert breaker.snapshot()["a.test"].state == "open"

    def test_several_sessions_share_a_breaker(self, dead):
        first, _ = dead()
        second = Session(throttle=None, adapter=Wire(200), breaker=first.breaker)
        while asks(first) != "circuit_open":
            pass
        assert asks(second) == "circuit_open"


class TestState:
    def test_a_host_that_never_failed_leaves_no_trace(self, dead):
        session, wire = dead()
        wire.now = 200
        for number in range(100):
            session.get(f"http://h{number}.test/")
        assert session.breaker.circuits.hosts == {}

    def test_memory_is_bounded_and_the_last_to_fail_is_the_last_to_be_forgotten(self):
        circuits = Breaker(3).circuits
        for number in range(HOSTS_KEPT + 100):
            circuits.failed(f"h{number}.test", "dns", None)
            circuits.failed("a.test", "dns", None)
        assert len(circuits.hosts) == HOSTS_KEPT
        assert "a.test" in circuits.hosts and "h0.test" not in circuits.hosts

    def test_it_can_be_closed_by_hand(self, dead):
        session, _ = dead()
        for url in (A, B) * 3:
            asks(session, url)
        session.breaker.reset("A.TEST.")
        assert (asks(session, A), asks(session, B)) == ("connection_refused", "circuit_open")
        session.breaker.reset()
        assert session.breaker.snapshot() == {}

    def test_a_snapshot_says_how_things_stand(self, dead, clock):
        session, _ = dead()
        asks(session, B)
        for _ in range(3):
            asks(session, A)
        clock.advance(3)
        assert session.breaker.snapshot() == {
            "b.test": ("closed", 1, "connection_refused", 0.0, 0.0),
            "a.test": ("open", 3, "connection_refused", 10.0, 7.0),
        }

    def test_a_copy_is_the_same_breaker(self):
        it = Breaker()
        assert copy.copy(it) is copy.deepcopy(it) is it

    def test_a_pickle_has_the_settings_and_begins_closed(self, dead):
        session, _ = dead()
        while asks(session) != "circuit_open":
            pass
        again = pickle.loads(pickle.dumps(Breaker(7, 8.0, 9.0, statuses={503})))
        assert (again.failures, again.recovery, again.max_recovery, again.statuses) == (7, 8.0, 9.0, {503})
        assert again.snapshot() == {}

    def test_a_session_pickles_with_it(self):
        again = pickle.loads(pickle.dumps(Session(breaker=Breaker(7))))
        assert again.breaker.failures == 7

    def test_it_is_renewed_in_a_forked_child(self, dead, clock):
        """A thread of the parent may hold the lock, or be trying a host, at the moment of the fork."""
        session, _ = dead()
        TestTrying().open(session, clock)
        circuits = session.breaker.circuits
        probe = circuits.admit("a.test")
        circuits._lock.acquire()
        circuits.after_fork()
        assert circuits.admit("a.test") is not None and probe is not None

    def test_it_works_on_any_session_of_requests(self, clock):
        """In a stack without our transport, attempts are not counted: then every answer is the host's."""
        session, wire = requests.Session(), Wire()
        session.mount("http://", Stack([Breaker(2, 10.0, clock=clock)], wire))
        assert [asks_plain(session) for _ in range(3)] == ["connection", "connection", "circuit_open"]
        clock.advance(10)
        wire.now = 200
        assert asks_plain(session) == "ok"
        wire.now = REFUSED
        assert [asks_plain(session) for _ in range(3)] == ["connection", "connection", "circuit_open"]

    def test_it_is_said_once_in_the_log(self, dead, clock, caplog):
        session, wire = dead()
        with caplog.at_level(logging.INFO, "kreuz_sync.breaker"):
            for _ in range(6):
                asks(session)
            clock.advance(10)
            asks(session)
            clock.advance(20)
            wire.now = 200
            asks(session)
        assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
            ("WARNING", "a.test: 3 failures in a row, the last: connection_refused; left alone for 10 s"),
            ("INFO", "a.test: still failing (connection_refused); left alone for 20 s"),
            ("INFO", "a.test: it answers again"),
        ]


def asks_plain(session, url=A):
    try:
        return "ok" if session.get(url).status_code < 400 else "bad"
    except requests.RequestException as error:
        return kreuz_sync.classify(error)


class TestArguments:
    @pytest.mark.parametrize("off", [None, False])
    def test_none_and_false_are_no_breaker(self, off):
        assert Session(breaker=off).breaker is None

    def test_true_is_the_usual_one(self):
        it = Session(breaker=True).breaker
        assert (it.failures, it.recovery, it.max_recovery, it.statuses, it.key) == (5, 30.0, 600.0, frozenset(), None)

    @pytest.mark.parametrize("value", [1, "yes", Throttle])
    def test_other_things_are_refused_by_name(self, value):
        with pytest.raises(TypeError, match="breaker="):
            Session(breaker=value)

    @pytest.mark.parametrize("name", ["failures", "recovery", "max_recovery"])
    @pytest.mark.parametrize("value", [0, -1, float("nan"), "1", None, True])
    def test_impossible_settings_are_refused_by_name(self, name, value):
        with pytest.raises((TypeError, ValueError), match=f"{name}="):
            Breaker(**{name: value})

    @pytest.mark.parametrize(("name", "value"), [("statuses", 503), ("statuses", {99}), ("key", "host"), ("clock", 1)])
    def test_so_are_the_others(self, name, value):
        with pytest.raises((TypeError, ValueError), match=name):
            Breaker(**{name: value})

    def test_a_recovery_beyond_the_usual_maximum_is_its_own_maximum(self):
        assert Breaker(recovery=900.0).max_recovery == 900.0

    def test_a_whole_stack_has_it_among_its_layers(self):
        it = Breaker()
        assert Session(layers=[it]).breaker is it
        with pytest.raises(ValueError, match="breaker"):
            Session(layers=[], breaker=True)


@pytest.fixture
def closed_port():
    """A port of this machine on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]  # bound, not listening: nobody else can take it meanwhile


class TestWire:
    """Real sockets on loopback."""

    @pytest.fixture
    def session(self):
        with Session(throttle=None, breaker=Breaker(2, 60.0), timeout=0.2) as session:
            yield session

    def expect(self, session, url, kind):
        for _ in range(2):
            with pytest.raises(kind):
                session.get(url)
        with pytest.raises(CircuitOpen) as caught:
            session.get(url)
        assert caught.value.last == kind.tag
        assert 50 < caught.value.retry_after <= 60

    def test_a_closed_port(self, session, closed_port):
        self.expect(session, f"http://127.0.0.1:{closed_port}/", ConnectionRefused)

    def test_a_server_that_is_silent(self, session, server):
        self.expect(session, server.route("/silent", silent()), ReadTimeout)
        assert len(server.requests) == 2

    def test_a_name_without_an_address(self, session, monkeypatch):
        def look_up(*args, **options):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        self.expect(session, "http://nowhere.test/", DnsError)

    def test_a_connection_that_never_comes_about(self, session, monkeypatch):
        def connect(*args, **options):
            raise socket.timeout("timed out")  # noqa: UP041

        monkeypatch.setattr("urllib3.util.connection.create_connection", connect)
        self.expect(session, "http://127.0.0.1:9/", ConnectTimeout)

    def test_a_server_that_hangs_up(self, session, server):
        url = server.route("/hang-up", hang_up())
        assert [asks(session, url) for _ in range(3)] == ["connection", "connection", "circuit_open"]

    def test_a_body_that_breaks_off_comes_of_a_host_that_answers(self, session, server):
        url = server.route("/cut", cut(b"abcdef", 3))
        for _ in range(5):
            with pytest.raises(DataLoss):
                session.get(url)

    def test_a_deadline_that_passes_on_the_wire_counts_if_it_was_long_enough(self, server):
        url = server.route("/silent", silent())
        with Session(throttle=None, breaker=Breaker(1, 60.0)) as session:
            with pytest.raises(DeadlineExceeded):
                session.get(url, deadline=0.05)
            assert session.breaker.snapshot() == {}
            with pytest.raises(DeadlineExceeded) as caught:
                session.get(url, deadline=1.1)
            assert caught.value.unanswered > 1.0
            assert asks(session, url) == "circuit_open"

    def test_a_host_that_comes_back_is_found_again(self, closed_port):
        """The circuit opens on a closed port, and closes when somebody listens there."""
        clock = FakeClock()
        with Server("127.0.0.1") as running, Session(throttle=None, breaker=Breaker(2, 10.0, clock=clock)) as session:
            dead = f"http://127.0.0.1:{closed_port}/"
            assert [asks(session, dead) for _ in range(3)] == ["connection_refused"] * 2 + ["circuit_open"]
            assert asks(session, running.url("/")) == "circuit_open"  # the same host, another port
            clock.advance(10)
            assert [asks(session, running.url("/")) for _ in range(2)] == ["ok", "ok"]
            assert len(running.requests) == 2

    def test_sixteen_threads_send_one_request_for_each_time_that_it_may_be_tried(self, server):
        """The server's own count: two to open the circuit, one for each try."""
        clock = FakeClock()
        session = Session(throttle=None, breaker=Breaker(2, 10.0, 10.0, clock=clock), timeout=GUARD_S)
        url = server.route("/", sequence(hang_up(), hang_up(), hang_up(), hang_up(), hang_up(), answer(body="back")))
        assert [asks(session, url) for _ in range(3)] == ["connection", "connection", "circuit_open"]
        for tries in range(1, 4):
            clock.advance(10)
            tags = sorted(TestThreads.together(TestThreads(), _On(session, url)))
            # Who comes after the try has failed finds the circuit open again, and the clock stands still.
            assert tags == ["circuit_open"] * 15 + ["connection"]
            assert len(server.requests) == 2 + tries
        clock.advance(10)
        assert asks(session, url) == "ok"
        session.close()


class _On:
    """A session whose every call goes to one URL."""

    def __init__(self, session, url):
        self.get = lambda _: session.get(url)
