"""Rate limits of a session: over them nothing reaches the wire, and nothing takes our word for a server's."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
import requests

from kreuz_sync import (
    DeadlineExceeded,
    RateLimit,
    RateLimited,
    RateLimitExceeded,
    RateLimitUnavailable,
    Retry,
    Session,
    SessionClosed,
    Throttle,
    classify,
)
from kreuz_sync.calls import Call, current
from kreuz_sync.clock import Clock
from kreuz_sync.ratelimit import (
    KeyUnavailable,
    LimitUnavailable,
    MemoryStore,
    PolicyUsage,
    RateLimitContext,
    RateLimitFailure,
    StoreUnavailable,
    by_origin,
)
from kreuz_sync.response import Response
from kreuz_sync.stack import Stack
from kreuz_sync.transport import Transport
from tests.fakes import FakeClock, ScriptedAdapter, prepared
from tests.loopback import answer, redirect, sequence
from tests.waiting import GUARD_S, Worker

from .counting import NotingStore

URL = "http://example.test/"


@pytest.fixture
def clock():
    return FakeClock()


def stacked(*layers, wire=None):
    """The layers over a scripted wire, as a session has them."""
    wire = wire or ScriptedAdapter(200)
    return Stack(layers, Transport(wire)), wire


class TestAnswer:
    """Over the limit: a 429 of our own."""

    @pytest.fixture
    def over(self, clock):
        adapter, self.wire = stacked(RateLimit("search", limit=1, window=60, clock=clock))
        adapter.send(prepared())
        clock.advance(18.5)
        return adapter.send(prepared(URL, "POST", data="x"))

    def test_it_is_a_429_with_nothing_in_it(self, over):
        assert (over.status_code, over.reason, over.content, over.text) == (429, "Too Many Requests", b"", "")
        assert (over.url, over.request.method) == (URL, "POST")
        assert (over.headers["Content-Length"], over.raw.status, over.raw.read()) == ("0", 429, b"")

    def test_nothing_reached_the_wire(self, over):
        assert len(self.wire.requests) == 1
        assert over.attempts == 0

    def test_it_says_when_the_window_is_over(self, over):
        """Rounded up: 41.5 seconds are left."""
        assert over.headers["Retry-After"] == "42"
        assert over.retry_after == 42.0

    def test_it_has_the_fields_of_revision_11(self, over):
        assert over.headers["RateLimit-Policy"] == '"search";q=1;w=60'
        assert over.headers["RateLimit"] == '"search";r=0;t=42'

    def test_it_is_marked_as_ours(self, over):
        assert over.from_rate_limit
        assert over.limited_by == PolicyUsage("search", 1, 60.0, 2, 41.5)

    def test_an_allowed_request_has_a_context_and_no_context_has_a_refused_one(self, over):
        assert over.rate_limits is None

    def test_raise_for_status_takes_it_for_what_it_is(self, over):
        with pytest.raises(RateLimited) as caught:
            over.raise_for_status()
        assert caught.value.retry_after == 42.0
        assert classify(over) == "rate_limited"

    def test_it_pickles_with_its_mark(self, over):
        copy = pickle.loads(pickle.dumps(over))
        assert (copy.from_rate_limit, copy.limited_by, copy.status_code) == (True, over.limited_by, 429)
        assert copy.headers["Retry-After"] == "42"

    @pytest.mark.parametrize(
        ("fields", "written"),
        [
            ("draft-11", {"RateLimit-Policy": '"p";q=1;w=60', "RateLimit": '"p";r=0;t=60'}),
            ("draft-7", {"RateLimit-Policy": "1;w=60", "RateLimit": "limit=1, remaining=0, reset=60"}),
            ("none", {}),
        ],
    )
    def test_fields_are_a_setting_and_retry_after_is_not(self, clock, fields, written):
        adapter, _ = stacked(RateLimit("p", fields=fields, clock=clock))
        adapter.send(prepared())
        headers = adapter.send(prepared()).headers
        assert {name: headers[name] for name in headers if name.startswith("RateLimit")} == written
        assert headers["Retry-After"] == "60"

    def test_a_limit_of_0_answers_all(self, clock):
        adapter, wire = stacked(RateLimit(limit=0, clock=clock))
        assert adapter.send(prepared()).status_code == 429
        assert wire.requests == []

    def test_who_waits_exactly_that_long_is_let_through(self, clock):
        """Window 2 s: the second request at 0.4 s is told 2, and passes 2 seconds later."""
        adapter, _ = stacked(RateLimit(window=2.0, clock=clock))
        adapter.send(prepared())
        clock.advance(0.4)
        refused = adapter.send(prepared())
        assert refused.headers["Retry-After"] == "2"
        clock.advance(2)
        assert adapter.send(prepared()).status_code == 200

    def test_a_window_begins_with_its_first_request(self, clock):
        """At 12:00:50 with a window of 60 s: `t` is 60, not the 10 to the full minute."""
        clock.advance(50)
        adapter, _ = stacked(RateLimit(clock=clock))
        assert adapter.send(prepared()).rate_limits.policies[0].reset_after == 60.0
        clock.advance(59)
        assert adapter.send(prepared()).headers["Retry-After"] == "1"
        clock.advance(1)
        assert adapter.send(prepared()).status_code == 200


class TestAllowed:
    """The server's answer, and beside it what is left."""

    def test_it_has_the_context(self, clock):
        adapter, _ = stacked(RateLimit("search", limit=30, clock=clock))
        response = adapter.send(prepared())
        assert response.rate_limits == RateLimitContext((PolicyUsage("search", 30, 60.0, 1, 60.0),))
        assert response.rate_limits.policies[0].remaining == 29
        assert (response.from_rate_limit, response.limited_by) == (False, None)

    def test_the_servers_fields_are_left_as_they_came(self, clock):
        """A cache further out would keep ours, and hand them out later."""
        fields = {"RateLimit": '"theirs";r=5;t=9', "Retry-After": "7"}
        adapter, _ = stacked(RateLimit(clock=clock), wire=ScriptedAdapter((200, fields, b"x")))
        assert dict(adapter.send(prepared()).headers) == fields

    @pytest.mark.parametrize("status", [200, 304, 404, 429, 503])
    def test_every_status_has_it_and_stays_counted(self, clock, status):
        store = NotingStore(clock)
        adapter, _ = stacked(RateLimit(limit=2, store=store), wire=ScriptedAdapter(status))
        assert adapter.send(prepared()).rate_limits.policies[0].used == 1
        assert not adapter.send(prepared()).from_rate_limit
        assert adapter.send(prepared()).from_rate_limit

    @pytest.mark.parametrize("error", [requests.ConnectionError("gone"), RuntimeError("odd")])
    def test_an_error_passes_and_stays_counted(self, clock, error):
        adapter, _ = stacked(RateLimit(limit=1, clock=clock), wire=ScriptedAdapter(error))
        with pytest.raises(type(error)):
            adapter.send(prepared())
        assert adapter.send(prepared()).status_code == 429

    def test_an_interrupt_passes_and_stays_counted(self, clock):
        def interrupt(request):
            raise KeyboardInterrupt

        adapter, _ = stacked(RateLimit(limit=1, clock=clock), wire=ScriptedAdapter(interrupt))
        with pytest.raises(KeyboardInterrupt):
            adapter.send(prepared())
        assert adapter.send(prepared()).status_code == 429

    def test_what_is_skipped_has_none_and_touches_no_counter(self):
        store = NotingStore()
        adapter, _ = stacked(RateLimit(store=store, skip=lambda request: request.method == "OPTIONS"))
        answers = [adapter.send(prepared(method="OPTIONS")) for _ in range(5)]
        assert [one.status_code for one in answers] == [200] * 5
        assert answers[0].rate_limits is None
        assert store.asked == []

    def test_a_double_that_only_looks_like_a_response_passes(self, clock):
        double: Any = type("Double", (), {"status_code": 200})()

        class Wire(ScriptedAdapter):
            def send(self, request, **options):
                return double

        layer = RateLimit(clock=clock)(Wire())
        assert layer.send(prepared()) is double

    def test_requests_options_reach_the_wire(self, clock):
        adapter, wire = stacked(RateLimit(clock=clock))
        adapter.send(prepared(), stream=True, timeout=3, verify=False, cert="c", proxies={"http": "p"})
        options = {"stream": True, "timeout": 3, "verify": False, "cert": "c", "proxies": {"http": "p"}}
        assert wire.options == [options]

    def test_closing_reaches_the_wire(self, clock):
        adapter, wire = stacked(RateLimit(clock=clock))
        adapter.close()
        assert wire.closed == 1


class TestKey:
    """By default every host has its own counter."""

    def test_hosts_count_apart_and_ports_together(self, clock):
        adapter, _ = stacked(RateLimit(clock=clock))
        urls = ("http://a.test/", "http://b.test/", "https://A.test:8443/x")
        assert [adapter.send(prepared(url)).status_code for url in urls] == [200, 200, 429]

    def test_a_function_says_otherwise(self, clock):
        adapter, _ = stacked(RateLimit(key=by_origin, clock=clock))
        urls = ("http://a.test/", "http://a.test:81/", "http://a.test/x")
        assert [adapter.send(prepared(url)).status_code for url in urls] == [200, 200, 429]

    def test_one_limit_for_two_sessions_is_one_counter(self, clock):
        limit = RateLimit(limit=3, clock=clock)
        statuses = []
        for _ in range(2):
            with Session(rate_limits=limit, throttle=None, adapter=ScriptedAdapter(200)) as session:
                statuses += [session.get(URL).status_code for _ in range(2)]
        assert statuses == [200, 200, 200, 429]

    def test_a_mounted_adapter_has_the_same_counter(self, clock):
        with Session(
            rate_limits=RateLimit(limit=1, clock=clock), throttle=None, adapter=ScriptedAdapter(200)
        ) as session:
            session.mount(f"{URL}api", ScriptedAdapter(200))
            assert session.get(URL).status_code == 200
            assert session.get(f"{URL}api").status_code == 429


class TestNesting:
    """Several limits, the outermost first."""

    def test_the_context_lists_the_outermost_first(self, clock):
        adapter, _ = stacked(*(RateLimit(name, clock=clock) for name in ("outer", "middle", "inner")))
        policies = adapter.send(prepared()).rate_limits.policies
        assert [policy.name for policy in policies] == ["outer", "middle", "inner"]

    def test_a_refusal_inside_was_charged_outside_already(self, clock):
        outer = RateLimit("outer", limit=5, clock=clock)
        adapter, _ = stacked(outer, RateLimit("inner", limit=1, clock=clock))
        assert [adapter.send(prepared()).status_code for _ in range(3)] == [200, 429, 429]
        assert outer.store.increment("outer:example.test", 60.0).used == 4

    def test_its_fields_list_the_innermost_first(self, clock):
        """The answer meets the inner limit first. Retry-After is written once."""
        adapter, _ = stacked(
            RateLimit("outer", limit=5, window=10, clock=clock), RateLimit("inner", limit=1, clock=clock)
        )
        adapter.send(prepared())
        headers = adapter.send(prepared()).headers
        assert headers["RateLimit-Policy"] == '"inner";q=1;w=60, "outer";q=5;w=10'
        assert headers["RateLimit"] == '"inner";r=0;t=60, "outer";r=3;t=10'
        assert headers["Retry-After"] == "60"

    @pytest.mark.parametrize("order", [(60, 5), (5, 60)])
    def test_its_retry_after_is_that_of_the_last_window_without_room(self, clock, order):
        """Who comes back with the inner one's would be refused by the outer one."""
        outer, inner = order
        adapter, _ = stacked(
            RateLimit("outer", limit=2, window=outer, clock=clock), RateLimit("inner", window=inner, clock=clock)
        )
        assert adapter.send(prepared()).status_code == 200
        refused = adapter.send(prepared())
        assert refused.headers["Retry-After"] == "60"
        assert (refused.retry_after, refused.limited_by.name) == (60.0, "inner")
        clock.advance(60.0)
        assert adapter.send(prepared()).status_code == 200

    def test_an_outer_window_with_room_does_not_lengthen_it(self, clock):
        adapter, _ = stacked(
            RateLimit("outer", limit=3, window=60, clock=clock), RateLimit("inner", window=5, clock=clock)
        )
        adapter.send(prepared())
        assert adapter.send(prepared()).headers["Retry-After"] == "5"

    def test_a_retry_after_of_the_user_s_own_stays(self, clock):
        """Whatever it is, and though it is the number that we would have written."""

        def response(request, reason):
            made = requests.Response()
            made.status_code, made._content = 429, b""
            made.headers["Retry-After"] = "5"
            return made

        adapter, _ = stacked(
            RateLimit("outer", limit=2, window=60, clock=clock),
            RateLimit("inner", window=5, clock=clock, response=response),
        )
        adapter.send(prepared())
        assert adapter.send(prepared()).headers["Retry-After"] == "5"

    def test_so_it_is_with_an_exception(self, clock):
        adapter, _ = stacked(
            RateLimit("outer", limit=2, window=60, clock=clock),
            RateLimit("inner", window=5, on_limit="raise", clock=clock),
        )
        adapter.send(prepared())
        with pytest.raises(RateLimitExceeded) as caught:
            adapter.send(prepared())
        assert (caught.value.policy, caught.value.retry_after) == ("inner", 60.0)

    def test_a_refusal_outside_charges_nothing_inside(self, clock):
        inner = NotingStore(clock)
        adapter, _ = stacked(RateLimit("outer", clock=clock), RateLimit("inner", limit=9, store=inner))
        adapter.send(prepared())
        refused = adapter.send(prepared())
        assert refused.headers["RateLimit-Policy"] == '"outer";q=1;w=60'
        assert refused.limited_by.name == "outer"
        assert len(inner.asked) == 1

    def test_one_that_says_nothing_adds_nothing(self, clock):
        adapter, _ = stacked(
            RateLimit("outer", limit=5, fields="none", clock=clock), RateLimit("inner", limit=1, clock=clock)
        )
        adapter.send(prepared())
        assert adapter.send(prepared()).headers["RateLimit"] == '"inner";r=0;t=60'

    def test_what_the_outer_one_skips_the_inner_counts(self, clock):
        adapter, _ = stacked(RateLimit("outer", skip=lambda request: True), RateLimit("inner", limit=1, clock=clock))
        policies = adapter.send(prepared()).rate_limits.policies
        assert [policy.name for policy in policies] == ["inner"]
        assert adapter.send(prepared()).headers["RateLimit-Policy"] == '"inner";q=1;w=60'


class TestRaise:
    """`on_limit="raise"`."""

    @pytest.fixture
    def caught(self, clock):
        adapter, self.wire = stacked(RateLimit("search", window=1.0, limit=2, on_limit="raise", clock=clock))
        for _ in range(2):
            adapter.send(prepared())
        clock.advance(0.25)
        with pytest.raises(RateLimitExceeded) as caught:
            adapter.send(prepared("http://example.test/?token=tok9"))
        return caught.value

    def test_it_says_which_limit_and_for_how_long(self, caught):
        assert (caught.policy, caught.limit, caught.retry_after) == ("search", 2, 0.75)
        assert caught.ready_at == 1_800_000_001.0
        assert (caught.tag, classify(caught)) == ("rate_limit_exceeded", "rate_limit_exceeded")
        assert len(self.wire.requests) == 2

    def test_its_text_is_for_people_and_has_no_credentials(self, caught):
        assert str(caught) == (
            "GET http://example.test/?token=REDACTED: over the rate limit 'search' of 2 in 1 s; "
            "its next window is 0.75 s away"
        )
        assert caught.request.url == "http://example.test/?token=tok9"

    def test_it_is_an_error_of_requests_and_pickles(self, caught):
        assert isinstance(caught, requests.RequestException)
        copy = pickle.loads(pickle.dumps(caught))
        assert (copy.policy, copy.limit, copy.retry_after, str(copy)) == ("search", 2, 0.75, str(caught))

    def test_no_answer_of_ones_own_is_asked_for(self, clock):
        limit = RateLimit(limit=0, on_limit="raise", response=lambda request, reason: 1 / 0, clock=clock)
        with pytest.raises(RateLimitExceeded):
            stacked(limit)[0].send(prepared())


class TestWait:
    """`on_limit="wait"`: until the window is over, and then ask again. Without a margin, so that seconds are round."""

    def test_five_calls_with_room_for_two_a_second_take_two_seconds(self, clock):
        adapter, wire = stacked(RateLimit(limit=2, window=1.0, on_limit="wait", margin=0.0, clock=clock))
        answers = [adapter.send(prepared()) for _ in range(5)]
        assert [one.status_code for one in answers] == [200] * 5
        assert clock.waits == [1.0, 1.0]
        assert clock.monotonic() == 1002.0
        assert [one.waited for one in answers] == [0.0, 0.0, 1.0, 0.0, 1.0]
        assert len(wire.requests) == 5

    def test_it_waits_only_for_what_is_left_of_the_window(self, clock):
        adapter, _ = stacked(RateLimit(window=60.0, on_limit="wait", margin=0.0, clock=clock))
        adapter.send(prepared())
        clock.advance(45.0)
        adapter.send(prepared())
        assert clock.waits == [15.0]

    def test_it_asks_again_after_the_wait_and_waits_again_if_others_were_faster(self, clock):
        class Crowded(NotingStore):
            def increment(self, key, window):
                if len(self.asked) == 2:  # somebody else, just as the next window begins
                    self.counters.increment(key, window)
                return super().increment(key, window)

        store = Crowded(clock)
        adapter, _ = stacked(RateLimit(store=store, on_limit="wait", margin=0.0, clock=clock))
        adapter.send(prepared())
        answer = adapter.send(prepared())
        assert clock.waits == [60.0, 60.0]
        assert answer.waited == 120.0
        assert answer.rate_limits.policies[0].used == 1

    def test_keys_do_not_wait_for_each_other(self, clock):
        adapter, _ = stacked(RateLimit(on_limit="wait", margin=0.0, clock=clock))
        adapter.send(prepared("http://a.test/"))
        adapter.send(prepared("http://b.test/"))
        assert clock.waits == []

    def test_a_wait_that_is_too_long_is_not_begun(self, clock):
        adapter, _ = stacked(RateLimit("search", on_limit="wait", margin=0.0, max_wait=30.0, clock=clock))
        adapter.send(prepared())
        with pytest.raises(RateLimitExceeded, match="60 s away, further than max_wait allows") as caught:
            adapter.send(prepared())
        assert (caught.value.retry_after, caught.value.policy, clock.waits) == (60.0, "search", [])
        clock.advance(30.0)
        assert adapter.send(prepared()).status_code == 200

    def test_all_waits_of_one_request_together_are_bounded(self, clock):
        store = NotingStore(clock)

        class Busy(NotingStore):
            def increment(self, key, window):
                store.increment(key, window)
                return store.increment(key, window)

        adapter, _ = stacked(RateLimit(store=Busy(), on_limit="wait", margin=0.0, max_wait=100.0, clock=clock))
        with pytest.raises(RateLimitExceeded):
            adapter.send(prepared())
        assert clock.waits == [60.0]

    def test_a_wait_beyond_the_deadline_is_not_begun(self, clock):
        adapter, _ = stacked(RateLimit("search", on_limit="wait", margin=0.0, clock=clock))
        adapter.send(prepared())
        token = current.set(Call(30.0, clock))
        try:
            with pytest.raises(DeadlineExceeded, match="rate limit 'search': its next window is 60 s away") as caught:
                adapter.send(prepared())
        finally:
            current.reset(token)
        assert (caught.value.retry_after, caught.value.deadline, clock.waits) == (60.0, 30.0, [])
        assert caught.value.request is not None

    def test_a_limit_of_0_is_not_waited_for(self, clock):
        """No window has room."""
        adapter, _ = stacked(RateLimit(limit=0, on_limit="wait", margin=0.0, clock=clock))
        with pytest.raises(RateLimitExceeded, match="it lets nothing through"):
            adapter.send(prepared())
        assert clock.waits == []

    def test_a_store_that_fails_meanwhile_is_a_failure(self, clock):
        class Failing(NotingStore):
            def increment(self, key, window):
                self.out = len(self.asked) == 2
                return super().increment(key, window)

        adapter, _ = stacked(RateLimit(store=Failing(clock), on_limit="wait", margin=0.0, clock=clock))
        adapter.send(prepared())
        with pytest.raises(RateLimitUnavailable):
            adapter.send(prepared())

    def test_closing_wakes_who_waits(self):
        class Telling(Clock):
            asleep = threading.Event()

            def wait(self, condition, seconds):
                self.asleep.set()
                assert condition.wait(GUARD_S), "nobody woke it"

        limit = RateLimit(window=3600.0, on_limit="wait", clock=Telling())
        adapter, _ = stacked(limit)
        adapter.send(prepared())
        worker = Worker(adapter.send, prepared())
        assert Telling.asleep.wait(GUARD_S)
        adapter.close()
        with pytest.raises(SessionClosed) as caught:
            worker.outcome()
        assert caught.value.request.url == URL

    def test_every_thread_gets_its_turn_and_no_window_more_than_its_limit(self):
        """Real time: 12 requests of 12 threads, 4 in 0.1 s."""
        limit = RateLimit(limit=4, window=0.1, on_limit="wait")
        adapter, wire = stacked(limit)
        answers = [worker.outcome() for worker in [Worker(adapter.send, prepared()) for _ in range(12)]]
        assert [one.status_code for one in answers] == [200] * 12
        assert len(wire.requests) == 12
        assert max(one.rate_limits.policies[0].used for one in answers) <= 4


class TestMargin:
    """A server's window begins when a request arrives, so that it ends later than the one that is counted here."""

    class Counting(ScriptedAdapter):
        """A server with the same quota; the first request takes longer to get there."""

        def __init__(self, clock):
            super().__init__(200)
            self.clock, self.counters, self.ways = clock, MemoryStore(clock=clock), [0.04]

        def send(self, request, **options):
            self.clock.advance(self.ways.pop() if self.ways else 0.01)
            response = super().send(request, **options)
            if self.counters.increment("everybody", 1.0).used > 5:
                response.status_code = 429
            return response

    def statuses(self, clock, **settings):
        limit = RateLimit(limit=5, window=1.0, on_limit="wait", clock=clock, **settings)
        adapter, _ = stacked(limit, wire=self.Counting(clock))
        return [adapter.send(prepared()).status_code for _ in range(30)]

    def test_who_waits_keeps_to_a_quota_that_is_exactly_the_servers(self, clock):
        assert self.statuses(clock) == [200] * 30

    def test_without_one_the_next_window_comes_too_early(self, clock):
        assert 429 in self.statuses(clock, margin=0.0)

    @pytest.mark.parametrize(("window", "waits"), [(1.0, 1.05), (60.0, 60.5), (86_400.0, 86_400.5)])
    def test_it_is_a_twentieth_of_the_window_and_half_a_second_at_most(self, clock, window, waits):
        adapter, _ = stacked(RateLimit(window=window, on_limit="wait", clock=clock))
        adapter.send(prepared())
        adapter.send(prepared())
        assert clock.waits == [pytest.approx(waits)]

    def test_who_comes_within_it_waits_too(self, clock):
        adapter, _ = stacked(RateLimit(window=1.0, on_limit="wait", margin=0.5, clock=clock))
        adapter.send(prepared())
        clock.advance(1.25)
        adapter.send(prepared())
        assert clock.waits == [0.25]

    @pytest.mark.parametrize("on_limit", ["answer", "raise"])
    def test_where_nobody_waits_there_is_none_unless_it_is_asked_for(self, on_limit):
        assert RateLimit(on_limit=on_limit).margin == 0.0
        assert RateLimit(on_limit=on_limit, margin=2).length == 62.0


class TestFailure:
    """Where it cannot be told whether there is room, the program hears of it."""

    FAILURES = (
        ({"key": KeyUnavailable("no_key", "secret words")}, "no_key"),
        ({"limit": LimitUnavailable("no_limit")}, "no_limit"),
        ({"key": ZeroDivisionError()}, "key_function_failed"),
    )

    def broken(self, **settings):
        def raising(error):
            def function(request):
                raise error

            return function

        return {name: raising(error) for name, error in settings.items()}

    @pytest.mark.parametrize(("settings", "code"), FAILURES)
    @pytest.mark.parametrize("mode", ["reject", "allow", "local"])
    def test_key_and_limit_are_a_typed_error(self, settings, code, mode):
        limit = RateLimit("search", on_store_failure=mode, **self.broken(**settings))
        adapter, wire = stacked(limit)
        with pytest.raises(RateLimitUnavailable) as caught:
            adapter.send(prepared("http://example.test/?token=tok9"))
        error = caught.value
        assert (error.policy, error.code, error.tag) == ("search", code, "rate_limit_unavailable")
        assert isinstance(error.__cause__, RateLimitFailure)
        assert isinstance(error, requests.RequestException)
        assert "tok9" not in str(error)
        assert wire.requests == []
        assert pickle.loads(pickle.dumps(error)).code == code

    def store(self, mode, **settings):
        store = NotingStore()
        store.out = True
        return stacked(RateLimit("search", store=store, on_store_failure=mode, clock=FakeClock(), **settings))

    def test_reject_is_a_typed_error(self):
        adapter, wire = self.store("reject")
        with pytest.raises(RateLimitUnavailable, match="rate limit 'search' cannot tell") as caught:
            adapter.send(prepared())
        assert caught.value.code == "test_store_error"
        assert wire.requests == []

    def test_allow_sends_without_a_word_of_quota(self):
        adapter, wire = self.store("allow")
        response = adapter.send(prepared())
        assert (response.status_code, response.rate_limits) == (200, None)
        assert not any(name.startswith("RateLimit") for name in response.headers)
        assert len(wire.requests) == 1

    def test_local_limits_by_itself(self):
        adapter, _ = self.store("local", limit=2)
        assert [adapter.send(prepared()).status_code for _ in range(3)] == [200, 200, 429]

    def test_a_retry_does_not_ask_again(self):
        """What the program has set up wrongly, the next attempt does not mend."""
        store = NotingStore()
        store.out = True
        adapter, _ = stacked(Retry(3), RateLimit(store=store))
        with pytest.raises(RateLimitUnavailable):
            adapter.send(prepared())
        assert len(store.asked) == 1


class TestResponseFactory:
    """`response=`: an answer of one's own."""

    def made(self, status=418, **fields):
        response = requests.Response()
        response.status_code = status
        response._content = b"slow down"
        response.headers.update(fields)
        return response

    def test_it_is_given_the_request_and_the_reason(self, clock):
        given = []

        def factory(request, reason):
            given.append((request.url, reason))
            return self.made()

        adapter, _ = stacked(RateLimit("p", limit=0, response=factory, clock=clock))
        response = adapter.send(prepared())
        assert given == [(URL, PolicyUsage("p", 0, 60.0, 1, 60.0))]
        assert (response.status_code, response.content, response.url) == (418, b"slow down", URL)
        assert isinstance(response, Response)
        assert response.request.url == URL

    def test_fields_and_retry_after_are_added_and_the_mark(self, clock):
        adapter, _ = stacked(RateLimit("p", limit=0, response=lambda *_: self.made(), clock=clock))
        response = adapter.send(prepared())
        assert (response.headers["RateLimit"], response.headers["Retry-After"]) == ('"p";r=0;t=60', "60")
        assert (response.from_rate_limit, response.limited_by.name) == (True, "p")

    def test_a_retry_after_of_its_own_stays(self, clock):
        made = self.made(**{"Retry-After": "600", "RateLimit": '"mine";r=0;t=600'})
        adapter, _ = stacked(RateLimit("p", limit=0, response=lambda *_: made, clock=clock))
        headers = adapter.send(prepared()).headers
        assert headers["Retry-After"] == "600"
        assert headers["RateLimit"] == '"mine";r=0;t=600, "p";r=0;t=60'

    def test_a_failure_is_answered_too_and_makes_no_claim_of_a_quota(self):
        given = []

        def factory(request, reason):
            given.append(reason)
            return self.made(503)

        store = NotingStore()
        store.out = True
        adapter, wire = stacked(Retry(3), RateLimit(store=store, response=factory))
        response = adapter.send(prepared())
        assert response.status_code == 503
        assert dict(response.headers) == {}
        assert (response.from_rate_limit, response.limited_by) == (True, None)
        assert [type(reason) for reason in given] == [StoreUnavailable]
        assert wire.requests == []

    def test_what_it_raises_is_raised(self, clock):
        def factory(request, reason):
            raise LookupError("no template")

        adapter, wire = stacked(RateLimit(limit=0, response=factory, clock=clock))
        with pytest.raises(LookupError):
            adapter.send(prepared())
        assert wire.requests == []

    @pytest.mark.parametrize("made", [None, 429, b"slow down"])
    def test_anything_else_than_a_response_is_refused(self, clock, made):
        adapter, wire = stacked(RateLimit(limit=0, response=lambda *_: made, clock=clock))
        with pytest.raises(TypeError, match=r"a requests\.Response is wanted"):
            adapter.send(prepared())
        assert wire.requests == []


class TestAmongTheLayers:
    """Inside the retry, outside the throttle: every attempt counts, and what is refused takes no turn."""

    def test_the_order_of_a_session(self, clock):
        limits = [RateLimit("a"), RateLimit("b")]
        with Session(retry=2, rate_limits=limits) as session:
            kinds = [type(layer).__name__ for layer in session.layers]
        assert kinds == ["Retry", "RateLimit", "RateLimit", "Throttle"]

    def test_the_retry_leaves_our_429_alone(self, clock):
        adapter, wire = stacked(Retry(3, clock=clock), RateLimit(limit=1, window=1.0, clock=clock))
        adapter.send(prepared())
        response = adapter.send(prepared())
        assert (response.status_code, response.earlier, clock.waits) == (429, (), [])
        assert len(wire.requests) == 1

    def test_and_repeats_a_servers(self, clock):
        adapter, wire = stacked(
            Retry(3, clock=clock), RateLimit(limit=9, clock=clock), wire=ScriptedAdapter(429, 429, 200)
        )
        response = adapter.send(prepared())
        assert (response.status_code, len(wire.requests)) == (200, 3)
        assert response.rate_limits.policies[0].used == 3

    def test_every_attempt_counts_and_the_last_answer_says_what_came_before(self, clock):
        """Two attempts are sent, and for the third there is no room."""
        adapter, wire = stacked(Retry(5, clock=clock), RateLimit(limit=2, clock=clock), wire=ScriptedAdapter(503))
        response = adapter.send(prepared())
        assert (response.status_code, response.from_rate_limit, response.attempts) == (503, False, 2)
        assert [attempt.status for attempt in response.earlier] == [503]
        assert response.retry_skipped.startswith("the rate limit ")
        assert response.retry_skipped.endswith(" has no room for another attempt")
        assert len(wire.requests) == 2

    def test_our_429_takes_no_turn_and_does_not_slow_the_host_down(self, clock):
        throttle = Throttle(1.0, clock=clock)
        adapter, _ = stacked(RateLimit(limit=1, clock=clock), throttle)
        adapter.send(prepared())
        for _ in range(5):
            assert adapter.send(prepared()).status_code == 429
        assert clock.waits == []
        assert throttle.delay_for("example.test") == 1.0

    def test_every_hop_of_a_redirect_counts(self, server):
        server.route("/end", answer(body="here"))
        url = server.route("/start", redirect("/end"))
        with Session(throttle=None, rate_limits=RateLimit(limit=3)) as session:
            response = session.get(url)
            assert response.text == "here"
            assert response.rate_limits.policies[0].used == 2
            assert response.history[0].rate_limits.policies[0].used == 1
            assert session.get(url).status_code == 429
        assert len(server.requests) == 3

    def test_a_hit_in_the_cache_uses_no_quota(self, server, tmp_path):
        url = server.route("/page", answer(body="page", fields={"Cache-Control": "max-age=60"}))
        store = NotingStore()
        limit = RateLimit(store=store, limit=1)
        with Session(throttle=None, cache=tmp_path / "pages", rate_limits=limit) as session:
            answers = [session.get(url) for _ in range(5)]
            assert [one.text for one in answers] == ["page"] * 5
            assert [one.from_cache for one in answers] == [False, True, True, True, True]
            assert answers[1].rate_limits is None
            assert len(store.asked) == 1
            refused = session.get(server.route("/other", 200))
            assert refused.from_rate_limit

    @pytest.mark.parametrize("policy", ["ttl", "rfc9111"])
    def test_our_429_is_not_kept_by_the_cache(self, server, tmp_path, policy, clock):
        from kreuz_sync import Cache

        url = server.route("/page", answer(body="page"))
        limit = RateLimit(limit=1, clock=clock)
        cache = Cache(tmp_path / "pages", policy=policy)
        with Session(throttle=None, cache=cache, rate_limits=limit) as session:
            session.get(server.url("/"))
            assert session.get(url).status_code == 429
            clock.advance(60.0)
            response = session.get(url)
        assert (response.text, response.from_cache) == ("page", False)
        assert "RateLimit" not in response.headers

    def test_raise_for_status_of_the_session_raises_for_it(self, clock):
        with Session(
            throttle=None, raise_for_status=True, rate_limits=RateLimit(clock=clock), adapter=ScriptedAdapter(200)
        ) as session:
            session.get(URL)
            with pytest.raises(RateLimited) as caught:
                session.get(URL)
        assert caught.value.response.from_rate_limit
        assert caught.value.retry_after == 60.0

    def test_hooks_see_it_like_any_response(self, clock):
        seen = []
        with Session(throttle=None, rate_limits=RateLimit(clock=clock), adapter=ScriptedAdapter(200)) as session:
            session.hooks["response"].append(lambda response, **_: seen.append(response.status_code))
            session.get(URL)
            session.get(URL, stream=True).close()
        assert seen == [200, 429]

    def test_exactly_the_limit_reaches_the_server_with_16_threads(self, server):
        url = server.route("/page", answer(body="page"))
        with Session(throttle=None, rate_limits=RateLimit(limit=40, window=3600.0)) as session:

            def run():
                return [session.get(url).status_code for _ in range(10)]

            workers = [Worker(run) for _ in range(16)]
            statuses = [status for worker in workers for status in worker.outcome()]
        assert (statuses.count(200), statuses.count(429)) == (40, 120)
        assert len(server.requests) == 40

    def test_a_server_that_limits_itself_is_still_listened_to(self, server, clock):
        """Its 429 pauses the host; ours does not."""
        url = server.route("/page", sequence(answer(429, fields={"Retry-After": "7"}), answer(body="page")))
        throttle = Throttle(0.0, clock=clock)
        with Session(throttle=throttle, rate_limits=RateLimit(limit=5, clock=clock)) as session:
            assert not session.get(url).from_rate_limit
            assert session.get(url).text == "page"
        assert sum(clock.waits) == pytest.approx(7.0)

    def test_a_memory_store_may_serve_several_limits(self, clock):
        store = MemoryStore(clock=clock)
        adapter, _ = stacked(RateLimit("a", limit=5, store=store), RateLimit("b", limit=1, store=store))
        assert [adapter.send(prepared()).status_code for _ in range(2)] == [200, 429]
        assert len(store) == 2
