"""The throttle as a layer: what it is told of each attempt, and what it gives back when."""

import contextlib
import gc
import io
import time

import pytest
import requests
from urllib3 import HTTPResponse

from kreuz_sync import Retry, Session
from kreuz_sync.calls import Call, current
from kreuz_sync.errors import ThrottleTimeout
from kreuz_sync.stack import Stack
from kreuz_sync.throttle import RateLimiter, Throttle
from kreuz_sync.transport import Transport
from kreuz_sync.waf import Waf

from .fakes import FakeClock, ScriptedAdapter, prepared
from .waiting import Worker, eventually

HOST = "example.test"
WALL = Waf(
    [
        {
            "id": "wall",
            "vendor": "example",
            "proof": "definitive",
            "kind": "challenge",
            "signals": [{"header": "x-wall", "value": "closed"}],
        },
    ]
)


def interrupt(request):
    raise KeyboardInterrupt


class Wired:
    """A throttle's layer over a scripted wire."""

    def __init__(self, *answers, waf=None, **settings):
        self.clock = FakeClock()
        self.throttle = Throttle(**{"delay": 0.1, "clock": self.clock, **settings})
        self.wire = ScriptedAdapter(*answers)
        self.adapter = self.throttle(Transport(self.wire, waf=waf))

    def send(self, url=f"http://{HOST}/", **options):
        return self.adapter.send(prepared(url), **options)

    @property
    def delay(self):
        return pytest.approx(self.throttle.delay_for(HOST))

    @property
    def report(self):
        return self.throttle.snapshot()[HOST]


class TestPace:
    def test_attempts_wait_for_their_turns(self):
        wired = Wired()
        for _ in range(3):
            wired.send()
        assert wired.clock.waits == pytest.approx([0.1, 0.1])

    def test_the_call_is_told_how_long_it_waited(self):
        wired = Wired()
        call = Call()
        token = current.set(call)
        try:
            wired.send()
            wired.send()
        finally:
            current.reset(token)
        assert call.waited == pytest.approx(0.1)

    def test_a_refusal_carries_the_request_and_sends_nothing(self):
        wired = Wired(max_wait=0)
        wired.send()
        with pytest.raises(ThrottleTimeout) as caught:
            wired.send("http://example.test/second")
        assert caught.value.request.url == "http://example.test/second"
        assert len(wired.wire.requests) == 1

    def test_options_reach_the_wire_untouched(self):
        wired = Wired()
        options = {"stream": False, "timeout": (1, 2), "verify": "/ca", "cert": "/c", "proxies": {"http": "p"}}
        wired.send(**options)
        assert wired.wire.options == [options]

    def test_urls_without_a_host_have_no_pace(self):
        wired = Wired(delay=100.0)
        for _ in range(2):
            request = requests.PreparedRequest()
            request.method, request.url = "GET", "file:///tmp/x"
            request.headers = requests.structures.CaseInsensitiveDict()
            wired.adapter.send(request)
        assert wired.throttle.snapshot() == {}

    def test_closing_reaches_the_wire(self):
        wired = Wired()
        wired.adapter.close()
        assert wired.wire.closed == 1


class TestKeys:
    """Which requests share a pace."""

    @pytest.mark.parametrize(
        ("first", "second", "waits"),
        [
            ("http://EXAMPLE.test./a", "http://example.test/b", True),
            ("http://example.test/", "https://example.test:8443/", True),
            ("http://bücher.example/", "http://xn--bcher-kva.example/", True),
            ("http://example.test/", "http://api.example.test/", False),
            ("http://127.0.0.1/", "http://127.0.0.2/", False),
        ],
    )
    def test_the_host_is_the_key_in_one_spelling(self, first, second, waits):
        wired = Wired(delay=0.5)
        wired.send(first)
        wired.send(second)
        assert bool(wired.clock.waits) is waits

    def test_a_function_may_replace_it(self):
        wired = Wired(delay=0.5, key=lambda url: "all")
        wired.send("http://example.test/")
        wired.send("http://api.example.test/")
        assert wired.clock.waits == [0.5]
        assert list(wired.throttle.snapshot()) == ["all"]

    def test_a_key_that_is_no_string_is_an_error(self):
        with pytest.raises(TypeError, match="a string is wanted"):
            Wired(key=lambda url: None).send()


class TestLearning:
    def test_a_429_doubles_the_delay(self):
        wired = Wired(429)
        wired.send()
        assert wired.delay == 0.2

    def test_quick_errors_after_it_leave_it_there_and_five_successes_end_it(self):
        wired = Wired(429, *[503] * 5, *[200] * 5)
        delays = []
        for _ in range(11):
            wired.send()
            delays.append(wired.delay)
        assert delays == [0.2] * 10 + [0.1]

    def test_an_error_on_the_wire_breaks_the_run(self):
        wired = Wired(429, *[200] * 4, requests.ConnectionError("reset"), *[200] * 5)
        wired.send()
        for _ in range(4):
            wired.send()
        with pytest.raises(requests.ConnectionError):
            wired.send()
        wired.send()
        assert wired.delay == 0.2
        for _ in range(4):
            wired.send()
        assert wired.delay == 0.1

    def test_429s_for_requests_under_way_together_are_one_step(self):
        """Three are sent before the first 429 is back."""
        wired = Wired()
        turns = [wired.throttle.turns.take(HOST) for _ in range(3)]
        for turn in turns:
            wired.throttle.turns.answered(HOST, 429, raised=turn.raised)
        assert wired.delay == 0.2
        wired.wire.answers = [429]
        wired.send()
        assert wired.delay == 0.4

    @pytest.mark.parametrize("status", [200, 202, 403, 503])
    def test_a_challenge_page_slows_down_whatever_its_status(self, status):
        wired = Wired((status, {"X-Wall": "closed"}, b"prove that you are human"), waf=WALL)
        wired.send()
        assert wired.delay == 0.2

    def test_a_challenge_page_is_no_success(self):
        wired = Wired(429, *[200] * 4, (200, {"X-Wall": "closed"}, b""), 200, waf=WALL)
        for _ in range(7):
            wired.send()
        assert wired.throttle.delay_for(HOST) == pytest.approx(0.4)


class TestPauses:
    @pytest.mark.parametrize("status", [301, 403, 413, 429, 503])
    def test_retry_after_pauses_the_host(self, status):
        wired = Wired((status, {"Retry-After": "30"}, b""), 200)
        wired.send()
        wired.send()
        assert wired.clock.waits == [30.0]

    def test_a_date_is_read_with_the_clock_of_the_answer(self):
        fields = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"}
        wired = Wired((503, fields, b""))
        wired.send()
        assert wired.throttle.wait_for(HOST) == pytest.approx(10.0)

    def test_a_date_alone_is_read_with_ours(self):
        wired = Wired((503, {"Retry-After": "Fri, 15 Jan 2027 08:00:20 GMT"}, b""))
        wired.send()
        assert wired.throttle.wait_for(HOST) == pytest.approx(20.0)

    @pytest.mark.parametrize("status", [200, 404, 500])
    def test_with_other_statuses_it_does_not(self, status):
        wired = Wired((status, {"Retry-After": "30"}, b""))
        wired.send()
        assert wired.throttle.wait_for(HOST) == pytest.approx(0.1)

    @pytest.mark.parametrize("value", ["", "-5", "soon", "1e9", "²", "NaN", "inf"])
    def test_a_value_that_is_none_is_ignored(self, value):
        wired = Wired((503, {"Retry-After": value}, b""))
        wired.send()
        assert wired.throttle.wait_for(HOST) == pytest.approx(0.1)

    @pytest.mark.parametrize("value", ["9999999999", "9" * 400])
    def test_centuries_are_cut_to_the_ceiling(self, value):
        wired = Wired((503, {"Retry-After": value}, b""), max_retry_after=60)
        wired.send()
        assert wired.throttle.wait_for(HOST) == pytest.approx(60.0)

    def test_other_hosts_go_on(self):
        wired = Wired((429, {"Retry-After": "30"}, b""), 200)
        wired.send()
        wired.send("http://other.test/")
        assert wired.clock.waits == []


class TestDeadHosts:
    def test_connections_that_fail_slow_the_host_down_and_cut_bodies_do_not(self):
        for error, delay in ((requests.ConnectionError("refused"), 2.0), (requests.ReadTimeout("slow"), 1.0)):
            wired = Wired(error, delay=1.0)
            for _ in range(5):
                with pytest.raises(requests.RequestException):
                    wired.send()
            assert wired.throttle.delay_for("example.test") == delay

    def test_an_answer_between_starts_the_count_anew(self):
        refused = requests.ConnectionError("refused")
        wired = Wired(*[refused] * 4, 200, *[refused] * 4, 200, delay=1.0)
        for _ in range(10):
            with contextlib.suppress(requests.RequestException):
                wired.send()
        assert wired.throttle.delay_for("example.test") == 1.0


class TestStreams:
    """What is not read yet may still break off."""

    def test_a_success_counts_when_its_body_has_been_read(self):
        wired = Wired(429, (200, {}, b"body"))
        wired.send()
        responses = [wired.send(stream=True) for _ in range(5)]
        assert wired.delay == 0.2
        for response in responses:
            assert response.content == b"body"
        assert wired.delay == 0.1

    def test_a_success_that_is_given_up_does_not_count(self):
        wired = Wired(429, (200, {}, b"body"))
        wired.send()
        for _ in range(20):
            wired.send(stream=True).close()
        assert wired.delay == 0.2

    def test_an_error_counts_at_once(self):
        wired = Wired((429, {"Retry-After": "30"}, b"slow down"))
        response = wired.send(stream=True)
        assert wired.delay == 0.2
        assert wired.throttle.wait_for(HOST) == pytest.approx(30.0)
        response.close()
        assert wired.delay == 0.2

    def test_a_body_shorter_than_promised_does_not_count(self):
        def cut(request):
            return 200, {"Content-Length": "100"}, b"too short"

        wired = Wired(429, cut)
        wired.send()
        for _ in range(5):
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                wired.send(stream=True).content  # noqa: B018  # reads it
        assert wired.delay == 0.2

    def test_a_challenge_found_in_the_body_slows_down(self):
        wired = Wired((200, {}, b"body"))
        response = wired.send(stream=True)
        response.waf = WALL.look(403, {"X-Wall": "closed"}, None)
        response.content  # noqa: B018  # reads it
        assert wired.delay == 0.2


class TestPlaces:
    """With `concurrency`, a place is held until the body has been read, closed or forgotten."""

    def test_an_answer_that_is_read_gives_its_place_back(self):
        wired = Wired(concurrency=1)
        for _ in range(3):
            wired.send()

    def test_an_attempt_that_failed_gives_its_place_back(self):
        wired = Wired(requests.ConnectionError("reset"), interrupt, 200, concurrency=1)
        with pytest.raises(requests.ConnectionError):
            wired.send()
        with pytest.raises(KeyboardInterrupt):
            wired.send()
        wired.send()

    @pytest.mark.parametrize(
        "end",
        [lambda it: it.pop().content, lambda it: it.pop().close(), lambda it: (it.clear(), gc.collect())],
        ids=["read", "closed", "forgotten"],
    )
    def test_a_stream_holds_its_place_until_it_ends(self, end):
        wired = Wired((200, {}, b"body"), delay=0.0, concurrency=1)
        held = [wired.send(stream=True)]
        second = Worker(wired.send)
        eventually(lambda: wired.report.waiting == 1)
        assert len(wired.wire.requests) == 1
        end(held)
        assert second.outcome().content == b"body"

    def test_an_interrupt_while_learning_gives_the_place_back(self, monkeypatch):
        wired = Wired(200, delay=0.0, concurrency=1)
        with monkeypatch.context() as patch:
            patch.setattr(wired.throttle.turns, "answered", lambda *_, **__: interrupt(None))
            with pytest.raises(KeyboardInterrupt):
                wired.send()
        wired.send()

    def test_a_retry_after_that_an_adapter_set_as_a_number(self):
        wired = Wired((503, {}, b""), 200, delay=0.0, concurrency=1)
        send = wired.wire.send

        def numbered(request, **options):
            response = send(request, **options)
            response.headers["Retry-After"] = 1
            return response

        wired.wire.send = numbered
        assert wired.send().retry_after == 1.0
        assert wired.throttle.wait_for(HOST) == pytest.approx(1.0)

    def test_a_double_that_only_looks_like_a_response_passes(self):
        class Odd(ScriptedAdapter):
            def send(self, request, **options):
                return double

        double = object()
        clock = FakeClock()
        throttle = Throttle(0, concurrency=1, clock=clock)
        for limiter in (throttle, Recorder()):
            adapter = Stack([Retry(1, clock=clock), limiter], Transport(Odd(), waf=WALL))
            for _ in range(2):
                assert adapter.send(prepared()) is double

    def test_a_response_forgotten_while_the_throttle_is_busy_cannot_stop_it(self):
        """The garbage collector may give a place back on the very thread that holds the lock."""
        wired = Wired((200, {}, b"body"), delay=0.0, concurrency=1)
        held = [wired.send(stream=True)]
        with wired.throttle.turns._lock:
            held.clear()
            gc.collect()
        wired.send()

    def test_a_response_of_an_adapter_that_reads_nothing(self):
        """A layer may stand right on requests' own kind of adapter."""
        throttle = Throttle(0, concurrency=1, clock=FakeClock())
        adapter = throttle(ScriptedAdapter((200, {}, b"body")))
        for _ in range(3):
            assert adapter.send(prepared()).content == b"body"

    def test_a_response_without_a_body_on_the_wire(self):
        """As test doubles make them."""

        class Double(ScriptedAdapter):
            def send(self, request, **options):
                response = requests.Response()
                response.status_code, response._content = 200, b"whole"
                response.raw = HTTPResponse(io.BytesIO(), preload_content=False)
                return response

        throttle = Throttle(0, concurrency=1, clock=FakeClock())
        kept = [throttle(Double()).send(prepared(), stream=True) for _ in range(3)]
        assert len(kept) == 3


class Recorder(RateLimiter):
    """A user's own limiter, which writes down what it is asked."""

    def __init__(self):
        self.calls = []

    def acquire(self, host):
        self.calls.append(("acquire", host))

    def record_response(self, host, status):
        self.calls.append(("record_response", host, status))

    def set_crawl_delay(self, host, seconds):
        self.calls.append(("set_crawl_delay", host, seconds))


class TestOwnLimiters:
    """`RateLimiter` is the seam: three methods, and nothing else is asked of them."""

    def test_a_session_asks_it_before_each_attempt_and_tells_it_each_answer(self):
        limiter = Recorder()
        with Session(throttle=limiter, retry=1, adapter=ScriptedAdapter(503, 200), waf=None) as session:
            session.get("http://EXAMPLE.test:8080/")
        assert limiter.calls == [
            ("acquire", HOST),
            ("record_response", HOST, 503),
            ("acquire", HOST),
            ("record_response", HOST, 200),
        ]

    def test_a_challenge_page_is_told_as_429(self):
        limiter = Recorder()
        limiter(Transport(ScriptedAdapter((200, {"X-Wall": "closed"}, b"")), waf=WALL)).send(prepared())
        assert limiter.calls[-1] == ("record_response", HOST, 429)

    def test_of_an_attempt_without_an_answer_it_is_told_nothing(self):
        limiter = Recorder()
        with pytest.raises(requests.ConnectionError):
            limiter(ScriptedAdapter(requests.ConnectionError("reset"))).send(prepared())
        assert limiter.calls == [("acquire", HOST)]

    def test_what_it_raises_reaches_the_caller_and_nothing_is_sent(self):
        class Closed(Recorder):
            def acquire(self, host):
                raise PermissionError("office hours only")

        wire = ScriptedAdapter()
        with pytest.raises(PermissionError):
            Closed()(wire).send(prepared())
        assert wire.requests == []

    def test_its_waiting_is_part_of_the_call(self):
        class Slow(Recorder):
            def acquire(self, host):
                time.sleep(0.01)

        with Session(throttle=Slow(), adapter=ScriptedAdapter()) as session:
            assert session.get("http://example.test/").waited >= 0.01

    def test_one_that_lacks_a_method_cannot_be_made(self):
        class Half(RateLimiter):
            def acquire(self, host):
                pass

        with pytest.raises(TypeError, match="record_response"):
            Half()
