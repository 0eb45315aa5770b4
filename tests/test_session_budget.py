"""The budget of a session: requests, bytes and seconds, for all of it and host by host."""

import copy
import gzip
import io
import pickle
import shutil
import threading

import pytest
import requests
import urllib3

import kreuz_sync
from kreuz_sync import Budget, BudgetExceeded, HostBudget, Retry, Session, Throttle
from kreuz_sync.budget.account import Account, Limits
from kreuz_sync.stack import LayerAdapter, Stack

from .fakes import FakeClock, ScriptedAdapter, respond
from .loopback import answer, chunked, cut, drip, gzipped, redirect, sequence, silent
from .waiting import GUARD_S, HeldClock, Worker, eventually

A, B = "http://a.test/", "http://b.test/"


def scripted(*answers, budget, **settings):
    """A session on a scripted wire, and the wire."""
    wire = ScriptedAdapter(*(answers or (200,)))
    return Session(**{"throttle": None, "adapter": wire, "budget": budget, **settings}), wire


def asks(session, url=A, **options):
    """The tag of what a call comes to; "ok" for an answer."""
    try:
        return session.get(url, **options).tag or "ok"
    except requests.RequestException as error:
        return kreuz_sync.classify(error)


class TestAccount:
    """The arithmetic of one account."""

    def spent(self, limits, *, requests=1, size=0, at=100.0):
        account = Account(limits)
        for _ in range(requests):
            account.enter(at)
        account.receive(size)
        return account

    @pytest.mark.parametrize(
        ("limits", "what"),
        [
            (Limits(), None),
            (Limits(requests=3), None),
            (Limits(requests=2), "requests"),
            (Limits(bytes=11), None),
            (Limits(bytes=10), "bytes"),
            (Limits(seconds=5.1), None),
            (Limits(seconds=5.0), "seconds"),
            (Limits(requests=2, bytes=10, seconds=5.0), "requests"),
        ],
    )
    def test_what_is_used_up_is_refused(self, limits, what):
        refusal = self.spent(limits, requests=2, size=10).refusal(105.0)
        assert (None if refusal is None else refusal.what) == what

    def test_bytes_that_are_just_enough_are_enough(self):
        account = Account(Limits(bytes=10))
        assert (account.receive(10), account.receive(1).used) == (None, 11)

    def test_time_begins_with_the_first_request(self):
        account = Account(Limits(seconds=5.0))
        assert account.refusal(1e9) is None
        account.enter(1e9)
        account.enter(1e9 + 4)
        assert account.refusal(1e9 + 5).used == 5.0

    def test_a_request_that_never_was_has_not_begun_it(self):
        account = self.spent(Limits(seconds=5.0))
        account.correct(-1)
        assert account.used(1000.0) == (0, 0, 0.0)

    def test_what_is_left_is_never_negative(self):
        account = self.spent(Limits(1, 5, 2.0), requests=3, size=9)
        assert account.left(1000.0) == (0, 0, 0.0)
        assert Account(Limits()).left(0.0) == (None, None, None)


class TestRequests:
    def test_so_many_are_sent_and_no_more(self):
        session, wire = scripted(budget=3)
        assert [asks(session) for _ in range(5)] == ["ok"] * 3 + ["budget_exceeded"] * 2
        assert len(wire.requests) == 3

    def test_the_error_says_what_and_how_much(self):
        session, _ = scripted(budget=1)
        session.get(A)
        with pytest.raises(BudgetExceeded, match="^no request is left of the budget of 1$") as caught:
            session.get(A)
        error = caught.value
        assert (error.what, error.limit, error.used, error.host, error.attempts) == ("requests", 1, 1, None, 0)
        assert (error.retry_after, error.ready_at) == (None, None)
        assert error.request.url == A

    def test_retries_count_and_the_last_answer_is_handed_over(self):
        session, wire = scripted((503, {}, b"busy"), budget=3, retry=Retry(9, clock=FakeClock()))
        page = session.get(A)
        assert (len(wire.requests), page.content, page.attempts) == (3, b"busy", 3)
        assert [attempt.tag for attempt in page.earlier] == ["server_error"] * 2
        assert page.retry_skipped == "no request is left of the budget of 3"
        assert asks(session) == "budget_exceeded"

    def test_redirects_count(self):
        session, wire = scripted((302, {"Location": B}, b""), budget=4)
        assert asks(session) == "budget_exceeded"
        assert len(wire.requests) == 4

    def test_what_a_cache_answers_costs_nothing(self):
        session, wire = scripted((200, {}, b"abc"), budget=Budget(1, bytes=3), cache=kreuz_sync.MemoryStore())
        assert [asks(session) for _ in range(5)] == ["ok"] * 5
        assert (len(wire.requests), session.budget.used()[:2]) == (1, (1, 3))

    def test_what_is_refused_takes_no_turn(self):
        throttle = Throttle(0.0)
        session, _ = scripted(budget=2, throttle=throttle)
        for _ in range(6):
            asks(session)
        assert throttle.snapshot()["a.test"].starts == 2

    def test_what_a_throttle_refuses_is_given_back(self):
        clock = FakeClock()
        session, _ = scripted(budget=2, throttle=Throttle(100.0, max_wait=1.0, clock=clock))
        assert [asks(session) for _ in range(4)] == ["ok"] + ["throttle_timeout"] * 3
        assert session.budget.left().requests == 1
        clock.advance(100)
        assert [asks(session) for _ in range(2)] == ["ok", "budget_exceeded"]

    def test_what_a_layer_below_answers_itself_is_given_back(self):
        class Local(LayerAdapter):
            def send(self, request, **options):
                return respond(request, 429)

        budget = Budget(1, per_host=1)
        session = Session(layers=[budget, Local])
        assert [asks(session) for _ in range(3)] == ["rate_limited"] * 3
        assert budget.used() == (0, None, 0.0)
        assert budget.snapshot() == {"a.test": (0, None, 0.0)}

    @pytest.mark.parametrize("error", [KeyboardInterrupt, requests.ConnectionError])
    def test_an_attempt_that_fails_was_one(self, error):
        def fail(request):
            raise error

        session, _ = scripted(fail, budget=2)
        with pytest.raises(error):
            session.get(A)
        assert session.budget.left().requests == 1

    def test_an_interrupt_while_it_waits_gives_it_back(self):
        class Interrupted(FakeClock):
            def wait(self, condition, seconds):
                raise KeyboardInterrupt

        session, _ = scripted(budget=5, throttle=Throttle(10.0, clock=Interrupted()))
        session.get(A)
        with pytest.raises(KeyboardInterrupt):
            session.get(A)
        assert session.budget.used().requests == 1

    def test_a_retry_below_it_counts_too(self):
        """In another order, attempts are only known when they have been made."""
        budget = Budget(3)
        session = Session(layers=[budget, Retry(2, clock=FakeClock())], adapter=ScriptedAdapter(503))
        assert [asks(session) for _ in range(2)] == ["server_error", "budget_exceeded"]
        assert budget.used().requests == 3

    def test_none_are_allowed_by_0(self):
        session, wire = scripted(budget=0)
        assert (asks(session), wire.requests) == ("budget_exceeded", [])

    def test_it_works_on_any_session_of_requests(self):
        session, wire = requests.Session(), ScriptedAdapter((200, {}, b"abc"))
        session.mount("http://", Stack([budget := Budget(2)], wire))
        session.get(A)
        session.get(A)
        with pytest.raises(BudgetExceeded):
            session.get(A)
        assert (len(wire.requests), budget.used().requests) == (2, 2)

    def test_it_works_without_a_stack(self):
        budget = Budget(2)
        adapter = budget(ScriptedAdapter())
        session = requests.Session()
        session.mount("http://", adapter)
        session.get(A)
        session.get(A)
        with pytest.raises(BudgetExceeded):
            session.get(A)


class TestHosts:
    def test_each_host_has_as_much(self):
        session, wire = scripted(budget=Budget(per_host=2))
        assert [asks(session, url) for url in (A, A, A, B, B, B)] == ["ok", "ok", "budget_exceeded"] * 2
        assert len(wire.requests) == 4

    def test_the_error_names_the_host(self):
        session, _ = scripted(budget=Budget(10, per_host=HostBudget(1)))
        session.get(A)
        with pytest.raises(BudgetExceeded, match="^a.test: no request is left of the budget of 1$") as caught:
            session.get(A)
        assert caught.value.host == "a.test"

    def test_what_a_host_is_refused_does_not_count_for_the_session(self):
        session, _ = scripted(budget=Budget(3, per_host=1))
        assert [asks(session, url) for url in (A, A, A, B)] == ["ok", "budget_exceeded", "budget_exceeded", "ok"]
        assert session.budget.used().requests == 2

    @pytest.mark.parametrize(
        ("host", "allowed"),
        [("a.test", 1), ("x.b.test", 2), ("x.y.b.test", 3), ("b.test", 4), ("c.test", 4)],
    )
    def test_a_mapping_says_it_for_names_and_patterns(self, host, allowed):
        budget = Budget(per_host={"A.test.": 1, "*.b.test": HostBudget(2), "*.y.b.test": 3, "*": 4})
        session, _ = scripted(budget=budget)
        assert [asks(session, f"http://{host}/") for _ in range(5)].count("ok") == allowed

    def test_hosts_that_nothing_was_sent_to_leave_no_trace(self):
        session, _ = scripted(budget=Budget(1, per_host=5))
        for number in range(20):
            asks(session, f"http://h{number}.test/")
        assert list(session.budget.snapshot()) == ["h0.test"]

    def test_hosts_that_a_mapping_does_not_name_have_no_limit_and_leave_no_trace(self):
        session, _ = scripted(budget=Budget(per_host={"a.test": 1}))
        assert [asks(session, B) for _ in range(5)] == ["ok"] * 5
        assert session.budget.snapshot() == {}
        assert session.budget.left("b.test") == (None, None, None)

    def test_ports_of_a_host_share_one(self):
        session, _ = scripted(budget=Budget(per_host=1))
        assert [asks(session, "http://a.test:1/"), asks(session, "http://A.test:2/")] == ["ok", "budget_exceeded"]

    def test_a_key_may_replace_the_host(self):
        session, _ = scripted(budget=Budget(per_host=1, key=lambda url: url.rpartition("/")[2]))
        urls = ("http://a.test/x", "http://b.test/x", "http://a.test/y", "http://a.test/", "http://a.test/")
        assert [asks(session, url) for url in urls] == ["ok", "budget_exceeded", "ok", "ok", "ok"]


class TestBytes:
    """On the wire, as they come."""

    @pytest.fixture
    def session(self):
        with Session(throttle=None, budget=Budget(bytes=10_000)) as session:
            yield session

    BODIES = {
        "of known length": answer(body=b"x" * 3000),
        "in chunks": chunked(b"x" * 1000, b"x" * 2000),
        "to the end of the connection": answer(body=b"x" * 3000, length=None),
        "in pieces": drip(b"x" * 3000, piece=500, pause=0.001),
        "of an error": answer(404, body=b"x" * 3000),
    }

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("kind", BODIES)
    def test_a_body_is_counted(self, session, server, kind, stream):
        response = session.get(server.route("/b", self.BODIES[kind]), stream=stream)
        assert len(response.content) == 3000
        assert session.budget.used().bytes == 3000

    def test_compressed_bytes_are_counted_as_they_are(self, session, server):
        body = gzipped(b"x" * 1_000_000)
        assert len(session.get(server.route("/z", body)).content) == 1_000_000
        assert session.budget.used().bytes == len(body.body)

    @pytest.mark.parametrize("method", ["HEAD", "GET"])
    def test_what_has_no_body_costs_none(self, session, server, method):
        session.request(method, server.route("/none", answer(204) if method == "GET" else answer(body=b"abc")))
        assert session.budget.used()[:2] == (1, 0)

    def test_bodies_of_redirects_count(self, session, server):
        server.route("/end", answer(body=b"end"))
        session.get(server.route("/start", redirect("/end", body=b"moved")))
        assert session.budget.used()[:2] == (2, 8)

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("kind", ["in chunks", "to the end of the connection"])
    def test_a_body_that_crosses_the_budget_ends_with_its_error(self, session, server, kind, stream):
        large = {
            "in chunks": chunked(*[b"x" * 1000] * 500),
            "to the end of the connection": answer(body=b"x" * 500_000, length=None),
        }
        url = server.route("/large", large[kind])
        with pytest.raises(BudgetExceeded, match="of the budget of 10000 bytes, .* in the middle of a body") as caught:
            for _ in session.get(url, stream=stream).iter_content(1000):
                pass
        error = caught.value
        assert (error.what, error.limit, error.response.status_code, error.request.url) == ("bytes", 10_000, 200, url)
        assert error.used == session.budget.used().bytes > 10_000
        assert asks(session, server.url("/")) == "budget_exceeded"

    def test_a_stream_is_counted_as_it_is_read(self, session, server):
        chunks = session.get(server.route("/s", answer(body=b"x" * 5000)), stream=True).iter_content(1000)
        seen = []
        for _ in range(3):
            next(chunks)
            seen.append(session.budget.used().bytes)
        assert seen == [1000, 2000, 3000]

    def test_what_came_before_it_crossed_was_handed_over(self, session, server):
        chunks = session.get(server.route("/s", answer(body=b"x" * 50_000)), stream=True).iter_content(999)
        got = [next(chunks) for _ in range(10)]
        with pytest.raises(BudgetExceeded):
            next(chunks)
        assert sum(map(len, got)) == 9990

    def test_one_that_says_that_it_is_too_long_is_not_read(self, session, server):
        """And so it uses nothing up: what is left is there for others."""
        url = server.route("/large", answer(body=b"x" * 10_001))
        with pytest.raises(BudgetExceeded, match="bytes, 0 have been received, and this body has 10001$"):
            session.get(url)
        assert session.budget.used()[:2] == (1, 0)
        assert session.get(server.route("/fits", answer(body=b"x" * 10_000))).ok
        assert asks(session, server.url("/")) == "budget_exceeded"

    def test_one_that_breaks_off_costs_what_came(self, session, server):
        with pytest.raises(kreuz_sync.DataLoss):
            session.get(server.route("/cut", cut(b"x" * 3000, 1000)))
        assert session.budget.used().bytes == 1000

    @pytest.mark.parametrize("max_body", [100, 2500])
    def test_one_that_the_session_does_not_want_costs_what_came(self, server, max_body):
        with Session(throttle=None, max_body=max_body, budget=Budget(bytes=10_000)) as session:
            with pytest.raises(kreuz_sync.BodyTooLarge):
                session.get(server.route("/large", answer(body=b"x" * 3000)))
            assert session.budget.used().bytes == 0  # it said so itself
            with pytest.raises(kreuz_sync.BodyTooLarge):
                session.get(server.route("/large", chunked(*[b"x" * 1000] * 5)))
            assert 1000 <= session.budget.used().bytes <= 3000

    def test_each_of_several_answers_to_one_request_counts(self):
        """A retry below the budget has them, in another order."""
        budget = Budget(bytes=100)
        answers = (503, {"Content-Length": "5"}, b"wait."), (200, {"Content-Length": "3"}, b"abc")
        session = Session(layers=[budget, Retry(2, clock=FakeClock())], adapter=ScriptedAdapter(*answers))
        session.get(A)
        assert budget.used()[:2] == (2, 8)

    def test_without_a_limit_of_them_they_are_not_counted(self, server):
        with Session(throttle=None, budget=Budget(5, per_host=5, seconds=60)) as session:
            session.get(server.url("/"))
            assert (session.budget.used().bytes, session.budget.used("127.0.0.1").bytes) == (None, None)

    def test_a_reader_of_raw_is_counted_and_stopped_too(self, session, server):
        response = session.get(server.route("/raw", answer(body=b"x" * 500_000)), stream=True)
        with pytest.raises(urllib3.exceptions.ProtocolError) as caught:
            shutil.copyfileobj(response.raw, io.BytesIO(), 1000)
        assert isinstance(caught.value.args[1], BudgetExceeded)

    def test_a_cached_stream_that_crosses_is_not_stored(self, server):
        with Session(throttle=None, budget=Budget(bytes=2500), cache=kreuz_sync.MemoryStore()) as session:
            url = server.route("/page", chunked(*[b"x" * 1000] * 4))
            for stream in (False, True):
                with pytest.raises(BudgetExceeded):
                    _ = session.get(url, stream=stream).content
                assert list(session.cache.entries()) == []
                session.budget.reset()
            session.get(server.route("/page", chunked(b"x" * 1000, b"x" * 1000)), stream=True).content  # noqa: B018
            assert session.get(url).from_cache
            assert session.budget.used()[:2] == (1, 2000)

    def test_bodies_that_no_wire_brought_count_as_they_are(self):
        """A double may give a body whole, or one that is no urllib3's."""

        def whole(request):
            response = respond(request, 200)
            response._content, response._content_consumed = b"abc", True
            return response

        def strange(request):
            response = respond(request, 200)
            response.raw = io.BytesIO(b"abcdef")
            return response

        class Odd(ScriptedAdapter):
            def send(self, request, **options):
                return (whole if request.url == A else strange)(request)

        session = Session(throttle=None, adapter=Odd(), budget=Budget(bytes=20))
        assert [session.get(url).content for url in (A, B)] == [b"abc", b"abcdef"]
        assert session.budget.used().bytes == 9
        assert [asks(session, url) for url in (B, A, A, A)] == ["ok", "ok", "budget_exceeded", "budget_exceeded"]

    def test_hosts_have_bytes_of_their_own(self, server):
        url = server.route("/b", answer(body=b"x" * 600))
        other = url.replace("127.0.0.1", "127.0.0.2")
        with Session(throttle=None, budget=Budget(per_host=HostBudget(bytes=1000))) as session:
            tags = [asks(session, one) for one in (url, url, other)]
            assert tags == ["ok", "budget_exceeded", "ok"]
            assert session.budget.left("127.0.0.1").bytes == 400

    def test_a_retry_does_not_wait_beyond_its_end(self):
        clock = FakeClock()
        session, wire = scripted(
            (503, {"Retry-After": "3"}, b"busy"), budget=Budget(seconds=2, clock=clock), retry=Retry(5, clock=clock)
        )
        page = session.get(A)
        assert (page.status_code, len(wire.requests), clock.waits) == (503, 1, [])
        assert page.retry_skipped.startswith("the next attempt is 3 s away, and the end of the budget's time ")

    def test_that_of_one_host_does_not_bound_the_retries_of_another(self):
        clock = FakeClock()
        budget = Budget(per_host={"a.test": HostBudget(seconds=2)}, clock=clock)
        wire = ScriptedAdapter((302, {"Location": B}, b""), (503, {"Retry-After": "3"}, b""), 200)
        with Session(throttle=None, adapter=wire, budget=budget, retry=Retry(5, clock=clock)) as session:
            assert session.get(A).status_code == 200
        assert clock.waits == [3.0]

    def test_what_a_retry_lets_go_of_is_no_error(self, server):
        """The rest of an answer that nobody reads may cross the budget: the retry's own answer counts."""
        url = server.route("/busy", sequence(answer(503, body=b"x" * 50), answer(body=b"ok")))
        with Session(throttle=None, budget=Budget(bytes=60), retry=Retry(1, base=0)) as session:
            assert session.get(url, stream=True).content == b"ok"

    def test_a_deadline_of_the_calls_own_stays_one(self, session, server):
        with pytest.raises(kreuz_sync.DeadlineExceeded):
            session.get(server.route("/silent", silent()), deadline=0.1)


class TestSeconds:
    def test_after_them_nothing_is_sent(self):
        clock = FakeClock()
        session, wire = scripted(budget=Budget(seconds=60, clock=clock))
        clock.advance(1000)
        assert asks(session) == "ok"
        clock.advance(59.9)
        assert asks(session) == "ok"
        clock.advance(0.1)
        with pytest.raises(BudgetExceeded, match="the budget of 60 s is over, 60 s after the first request") as caught:
            session.get(A)
        assert (caught.value.what, caught.value.limit) == ("seconds", 60)
        assert len(wire.requests) == 2

    def test_a_host_has_seconds_of_its_own(self):
        clock = FakeClock()
        session, _ = scripted(budget=Budget(seconds=100, per_host=HostBudget(seconds=10), clock=clock))
        asks(session, A)
        clock.advance(10)
        assert (asks(session, A), asks(session, B)) == ("budget_exceeded", "ok")

    def test_a_turn_beyond_them_is_not_waited_for(self):
        """Sixteen threads do not stretch a minute to a quarter of an hour."""
        throttle = Throttle(60.0)
        session, wire = scripted(budget=Budget(seconds=30), throttle=throttle)
        tags = [asks(session) for _ in range(4)]
        assert tags == ["ok"] + ["budget_exceeded"] * 3
        assert (len(wire.requests), throttle.snapshot()["a.test"].starts) == (1, 1)

    def test_what_is_under_way_is_ended(self, server):
        with Session(throttle=None, budget=Budget(seconds=0.3)) as session:
            with pytest.raises(BudgetExceeded) as caught:
                session.get(server.route("/silent", silent()))
            assert caught.value.what == "seconds"
            assert caught.value.used >= 0.3

    def test_so_is_a_stream(self, server):
        url = server.route("/drip", drip(b"x" * 1000, pause=0.02))
        with Session(throttle=None, budget=Budget(per_host=HostBudget(seconds=0.3))) as session:
            with pytest.raises(BudgetExceeded, match=r"^127\.0\.0\.1: the budget of 0\.3 s is over") as caught:
                _ = session.get(url, stream=True).content
            assert (caught.value.what, caught.value.host) == ("seconds", "127.0.0.1")

    def test_a_deadline_that_comes_first_is_a_deadline(self, server):
        with Session(throttle=None, budget=Budget(seconds=60)) as session:
            url = server.route("/silent", silent())
            assert asks(session, url, deadline=0.1) == "deadline"

    def test_a_deadline_that_comes_later_is_still_there_afterwards(self, server):
        """A redirect is another request of the same call."""
        server.route("/end", silent())
        with Session(throttle=None, budget=Budget(per_host={"127.0.0.1": HostBudget(seconds=30)})) as session:
            start = server.route("/start", redirect(server.url("/end", host="127.0.0.2")))
            with pytest.raises(kreuz_sync.DeadlineExceeded) as caught:
                session.get(start, deadline=0.4)
            assert caught.value.deadline == 0.4


class TestThreads:
    """Sixteen at once, and exact counts."""

    COUNT = 16

    def together(self, ask):
        ready = threading.Barrier(self.COUNT)

        def run():
            ready.wait(GUARD_S)
            return ask()

        workers = [Worker(run) for _ in range(self.COUNT)]
        return [worker.outcome() for worker in workers]

    def test_they_never_send_more_than_is_allowed(self, server):
        with Session(throttle=None, budget=Budget(100, per_host={"127.0.0.2": 30})) as session:
            urls = [server.url("/"), server.url("/", host="127.0.0.2")]
            tags = [
                tag for tags in self.together(lambda: [asks(session, urls[n % 2]) for n in range(20)]) for tag in tags
            ]
            assert (tags.count("ok"), tags.count("budget_exceeded")) == (100, 220)
            assert len(server.requests) == 100
            assert session.budget.used().requests == 100
            assert session.budget.used("127.0.0.2").requests == 30

    def test_every_byte_is_counted(self, server):
        url = server.route("/b", chunked(b"x" * 700, b"x" * 300))
        with Session(throttle=None, budget=Budget(bytes=10**9)) as session:
            self.together(lambda: [asks(session, url) for _ in range(10)])
            assert session.budget.used()[:2] == (160, 160_000)

    def test_bodies_of_known_length_never_cross_it_together(self, server):
        """Each would fit alone: they are charged before they are read."""
        url = server.route("/b", answer(body=b"x" * 300))
        with Session(throttle=None, budget=Budget(bytes=10_000)) as session:
            tags = [tag for tags in self.together(lambda: [asks(session, url) for _ in range(5)]) for tag in tags]
            assert tags.count("ok") == 33
            assert session.budget.used().bytes == 9900

    def test_those_who_wait_hold_what_they_may_spend(self):
        """A request that waits for its turn has been counted: no other can take its place meanwhile."""
        clock = HeldClock()
        session, wire = scripted(budget=3, throttle=Throttle(10.0, clock=clock))
        session.get(A)
        waiting = [Worker(asks, session) for _ in range(2)]
        eventually(lambda: session.budget.used().requests == 3)
        assert asks(session, B) == "budget_exceeded"
        eventually(lambda: clock.asleep == 1)
        for _ in range(2):
            eventually(lambda: clock.asleep)
            clock.advance(10)
        assert [worker.outcome() for worker in waiting] == ["ok", "ok"]
        assert len(wire.requests) == 3

    def test_sessions_may_share_it(self):
        budget = Budget(3)
        sessions = [scripted(budget=budget)[0] for _ in range(3)]
        assert [asks(session) for session in sessions * 2] == ["ok"] * 3 + ["budget_exceeded"] * 3


class TestState:
    def test_what_is_left(self):
        clock = FakeClock()
        budget = Budget(10, bytes=1000, seconds=60, per_host={"a.test": HostBudget(5)}, clock=clock)
        session, _ = scripted((200, {}, b"abc"), budget=budget)
        assert budget.left() == (10, 1000, 60.0)
        session.get(A)
        clock.advance(2)
        assert budget.left() == (9, 997, 58.0)
        assert budget.used() == (1, 3, 2.0)
        assert budget.left("A.test.") == (4, None, None)
        assert budget.snapshot() == {"a.test": (1, 3, 2.0)}

    def test_it_begins_anew(self):
        session, _ = scripted(budget=Budget(1, per_host=1))
        assert [asks(session) for _ in range(2)] == ["ok", "budget_exceeded"]
        session.budget.reset()
        assert session.budget.snapshot() == {}
        assert [asks(session) for _ in range(2)] == ["ok", "budget_exceeded"]

    def test_what_was_under_way_then_belongs_to_what_was_before(self, server):
        with Session(throttle=None, budget=Budget(bytes=5)) as session:
            response = session.get(server.route("/b", answer(body=b"abc")), stream=True)
            session.budget.reset()
            assert response.content == b"abc"
            assert session.budget.used() == (0, 0, 0.0)

    def test_a_copy_is_the_same_budget(self):
        it = Budget(5)
        assert copy.copy(it) is copy.deepcopy(it) is it

    def test_a_pickle_has_the_settings_and_has_spent_nothing(self):
        session, _ = scripted(budget=Budget(5, bytes=6, seconds=7.0, per_host={"a.test": HostBudget(1), "*": 2}))
        session.get(A)
        again = pickle.loads(pickle.dumps(session.budget))
        assert (again.requests, again.bytes, again.seconds) == (5, 6, 7.0)
        assert (again.per_host, again.used()) == ({"a.test": HostBudget(1), "*": 2}, (0, 0, 0.0))

    def test_a_session_pickles_with_it(self):
        assert pickle.loads(pickle.dumps(Session(budget=5))).budget.requests == 5

    def test_it_is_renewed_in_a_forked_child(self):
        """A thread of the parent may hold the lock at the moment of the fork."""
        it = Budget(5)
        it.ledger._lock.acquire()
        it.ledger.after_fork()
        assert it.left().requests == 5

    def test_a_response_that_was_counted_pickles(self, server):
        with Session(throttle=None, budget=Budget(bytes=1000)) as session:
            response = session.get(server.route("/z", answer(body=gzip.compress(b"abc"))), stream=True)
            assert pickle.loads(pickle.dumps(response)).content == response.content


class TestArguments:
    @pytest.mark.parametrize("value", [True, "5", 1.5, Budget])
    def test_other_things_than_a_number_or_a_budget_are_refused(self, value):
        with pytest.raises(TypeError, match="budget="):
            Session(budget=value)

    @pytest.mark.parametrize("kind", [Budget, HostBudget])
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("requests", one) for one in (-1, 1.5, True, "1")),
            *(("bytes", one) for one in (-1, 1.5, True, "1")),
            *(("seconds", one) for one in (-1, 0, float("nan"), True, "1")),
        ],
    )
    def test_impossible_limits_are_refused_by_name(self, kind, name, value):
        with pytest.raises((TypeError, ValueError), match=f"{name}="):
            kind(**{name: value})

    @pytest.mark.parametrize(
        "value",
        [
            *(-1, 1.5, True, "1"),
            *({"a.test": None}, {"a.test": -1}, {"a.test": "x"}, {"http://a.test": 1}, {"a*": 1}, {1: 1}),
            *({"a.test": 1, "A.test.": 2}, {"*": "x"}, {"*": -1}),
        ],
        ids=repr,
    )
    def test_impossible_limits_of_hosts_are_refused_by_name(self, value):
        with pytest.raises((TypeError, ValueError), match="per_host"):
            Budget(per_host=value)

    @pytest.mark.parametrize(("name", "value"), [("key", "host"), ("clock", 1)])
    def test_so_are_the_others(self, name, value):
        with pytest.raises(TypeError, match=f"{name}="):
            Budget(**{name: value})

    def test_a_whole_stack_has_it_among_its_layers(self):
        it = Budget(1)
        assert Session(layers=[it]).budget is it
        with pytest.raises(ValueError, match="budget"):
            Session(layers=[], budget=5)
