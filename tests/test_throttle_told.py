"""What servers declare, acted on: each dialect before a real server that speaks it, and whose pace it changes."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from kreuz_sync import Cache, MemoryStore, RateLimit, Retry, Session, Throttle, reference_order
from kreuz_sync.errors import DeadlineExceeded, ThrottleTimeout
from kreuz_sync.throttle.verdict import Declared
from kreuz_sync.waf import Waf

from .fakes import FakeClock, ScriptedAdapter, respond
from .loopback import answer, redirect, sequence
from .test_throttle_declared import DATE, LEFT, NAMES, NOW, REFUSALS, VALUES
from .waiting import GUARD_S, Worker, eventually

HERE, THERE = "127.0.0.1", "127.0.0.2"
CEILING = 300.0
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


@pytest.fixture
def clock():
    return FakeClock(wall=NOW - 3600)  # an hour slow: what servers write is read with their own clock


@pytest.fixture
def throttle(clock):
    return Throttle(0, clock=clock)


@pytest.fixture
def session(throttle):
    with Session(throttle=throttle) as session:
        yield session


def says(status=200, **fields):
    """An answer of NOW with these fields; `_` in a name stands for `-`."""
    return answer(status, fields={"Date": DATE, **{name.replace("_", "-"): value for name, value in fields.items()}})


def paused(throttle, host=HERE):
    """Seconds, and the field that says so, of the host's own pause or that of its bucket."""
    report = throttle.snapshot()[host]
    found = max([report, *report.buckets], key=lambda one: one.paused)
    return pytest.approx(found.paused), found.pause_source


class TestEachDialect:
    """The server says that the last unit is used up; the next request comes when it is granted anew."""

    @pytest.mark.parametrize("dialect", REFUSALS)
    def test_the_next_request_waits_and_another_host_does_not(self, server, session, throttle, clock, dialect):
        (status, fields), (pause, bucket, source) = REFUSALS[dialect]
        backoff = 1.0 if status == 429 else 0.0
        url = server.route("/api", sequence(answer(status, fields={"Date": DATE, **fields}), 200))
        assert session.get(url).status_code == status
        kept = min(pause, CEILING)
        if pause:
            assert paused(throttle) == (kept, source)
            assert [one.name for one in throttle.snapshot()[HERE].buckets] == ([bucket] if bucket else [])
        assert session.get(server.url("/", host=THERE)).waited == 0.0
        came = clock.monotonic()
        assert session.get(url).waited == pytest.approx(max(kept, backoff))
        assert clock.monotonic() - came == pytest.approx(max(kept, backoff))

    @pytest.mark.parametrize(
        ("status", "fields", "seconds"),
        [
            (200, {"RateLimit": '"search";r=0;t=1'}, 1.0),
            (503, {"Retry-After": "1"}, 1.0),
            (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "0.4", "X-RateLimit-Bucket": "b"}, 0.4),
            (503, {"Retry-After-Ms": "300"}, 0.3),
            (400, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "350ms"}, 0.35),
            (200, {"X-Shopify-Shop-Api-Call-Limit": "40/40"}, 0.5),
        ],
    )
    @pytest.mark.slow
    def test_by_the_servers_own_clock(self, server, status, fields, seconds):
        """Really waited for: when the second one arrives is what counts. Another host is asked meanwhile."""
        url = server.route("/api", sequence(answer(status, fields=fields), 200))
        with Session(throttle=0) as session:
            session.get(url)
            second = Worker(session.get, url)
            other = session.get(server.url("/", host=THERE))
            second.outcome()
        first, *others = (one.at for one in server.requests)
        assert len(others) == 2 and max(others) - first >= seconds - 0.02
        assert other.waited == 0.0

    def test_threads_that_wait_already_wait_for_it_too(self, server):
        """The first answer comes when three are in line, and says that nothing is left for a second."""
        hold = threading.Event()
        url = server.route("/api", sequence(answer(fields={"RateLimit": '"a";r=0;t=1'}, delay=hold), 200))
        with Session(throttle=Throttle(0.05, hosts={THERE: 0})) as session:
            workers = [Worker(session.get, url)]
            eventually(lambda: len(server.requests) == 1)
            said = server.requests[0].at
            session.throttle.set_crawl_delay(HERE, 0.4)
            workers += [Worker(session.get, url) for _ in range(3)]
            eventually(lambda: session.throttle.snapshot()[HERE].waiting == 3)
            hold.set()
            for worker in workers:
                worker.outcome()
        for number, one in enumerate(server.requests[1:]):
            assert one.at - said >= 1 + number * 0.4 - 0.04

    @pytest.mark.parametrize("dialect", LEFT)
    def test_what_is_left_is_told_and_slows_nobody_down(self, server, session, throttle, clock, dialect):
        fields, said = LEFT[dialect]
        session.get(server.route("/api", answer(fields={"Date": DATE, **fields})))
        report = throttle.snapshot()[HERE]
        one = report.buckets[0] if said.bucket else report
        assert (one.remaining, one.reset) == (said.remaining, said.reset)
        assert (one.paused, throttle.wait_for(HERE), throttle.delay_for(HERE)) == (0, 0, 0)
        clock.advance(10_000)
        after = throttle.snapshot()[HERE]
        after = after.buckets[0] if said.bucket else after
        assert (after.remaining, after.reset) == (None if said.reset else said.remaining, None)


class TestWhatCounts:
    """Which answers are listened to, and what for."""

    def test_it_never_speeds_up(self, server, clock):
        throttle = Throttle(2.0, clock=clock)
        with Session(throttle=throttle) as session:
            url = server.route("/", says(RateLimit='"a";r=1000;t=1'))
            for _ in range(3):
                session.get(url)
        assert clock.waits == pytest.approx([2.0, 2.0])

    def test_a_retry_that_does_not_respect_it_pauses_nothing(self, server, throttle, clock):
        url = server.route("/", sequence(says(429, RateLimit='"a";r=0;t=60', Retry_After="60"), 200))
        with Session(throttle=throttle, retry=Retry(1, base=0, respect_retry_after=False)) as session:
            assert session.get(url).status_code == 200
        assert clock.waits == [1.0]  # the backoff alone

    def test_a_challenge_has_a_backoff_and_no_pause(self, server, throttle):
        """The fields beside it are the firewall's, or of the answer that was not given."""
        url = server.route("/", says(429, X_Wall="closed", RateLimit='"a";r=0;t=60'))
        with Session(throttle=throttle, waf=WALL) as session:
            session.get(url)
        assert throttle.wait_for(HERE) == 1.0

    def test_unless_it_has_a_retry_after(self, server, throttle):
        url = server.route("/", says(200, X_Wall="closed", RateLimit='"a";r=5;t=60', Retry_After="30"))
        with Session(throttle=throttle, waf=WALL) as session:
            session.get(url)
        assert throttle.wait_for(HERE) == 30.0

    def test_an_answer_from_the_cache_says_nothing_of_now(self, server, throttle, clock):
        """Even where the throttle stands outside the cache, and sees it."""
        url = server.route("/", says(RateLimit='"a";r=0;t=30'))
        cache = Cache(MemoryStore(), clock=FakeClock())  # on which all that is stored was made just now
        with Session(layers=reference_order(throttle=throttle, cache=cache)) as session:
            session.get(url)
            for _ in range(2):
                assert session.get(url).from_cache
        assert clock.waits == [30.0]

    def test_nor_what_a_rate_limit_of_the_session_answers(self, server, throttle, clock):
        limit = RateLimit("own", limit=1, window=60, clock=clock)
        with Session(layers=[throttle, limit]) as session:
            session.get(server.url("/"))
            assert session.get(server.url("/")).from_rate_limit
        assert throttle.snapshot()[HERE].paused == 0

    def test_a_body_that_broke_off_takes_nothing_back(self, server, session, throttle):
        url = server.route("/", answer(503, "x" * 100, {"Retry-After": "30"}, cut=10))
        with pytest.raises(Exception, match="10 of 100 bytes"):
            session.get(url)
        assert throttle.wait_for(HERE) == 30.0

    def test_a_stream_is_listened_to_before_its_body_has_come(self, server, session, throttle):
        finish = threading.Event()
        url = server.route("/", answer(200, "body" * 10, {"RateLimit": '"a";r=0;t=30'}, piece=4, pause=finish))
        response = session.get(url, stream=True)
        assert throttle.wait_for(HERE) == 30.0
        finish.set()
        assert len(response.content) == 40
        assert throttle.wait_for(HERE) == 30.0

    def test_the_report_names_the_field(self, server, session, throttle):
        session.get(server.route("/", says(RateLimit='"a";r=0;t=30')))
        report = throttle.snapshot()[HERE]
        assert (report.paused, report.pause_source, report.remaining, report.reset) == (30, "ratelimit", 0, 30)

    def test_a_pause_that_is_over_has_no_source(self, server, session, throttle, clock):
        session.get(server.route("/", says(503, Retry_After="30")))
        assert throttle.snapshot()[HERE].pause_source == "retry-after"
        clock.advance(31)
        assert throttle.snapshot()[HERE].pause_source == ""

    def test_a_port_that_gets_a_line_of_its_own_goes_on_from_it(self, throttle):
        throttle.turns.heed(HERE, Declared(30.0, "", "a", 0, 30.0, "ratelimit"))
        throttle.set_crawl_delay(f"{HERE}:8080", 1)
        throttle.turns.heed(f"{HERE}:8080", Declared(5.0, "", "a", 0, 5.0, "ratelimit"))
        reports = throttle.snapshot()
        assert [(one.paused, one.pause_source) for one in reports.values()] == [(30, "ratelimit"), (5, "ratelimit")]

    def test_a_limit_on_waiting_is_decided_before_it(self, server, clock):
        throttle = Throttle(0, max_wait=10, clock=clock)
        url = server.route("/", says(RateLimit='"a";r=0;t=30'))
        with Session(throttle=throttle) as session:
            session.get(url)
            with pytest.raises(ThrottleTimeout) as caught:
                session.get(url)
        assert (caught.value.retry_after, clock.waits, len(server.requests)) == (30, [], 1)

    def test_so_is_a_deadline(self, server, session, clock):
        url = server.route("/", says(RateLimit='"a";r=0;t=30'))
        session.get(url)
        with pytest.raises(DeadlineExceeded) as caught:
            session.get(url, deadline=10)
        assert (caught.value.retry_after, clock.waits) == (30, [])


class TestRedirects:
    """Whoever is redirected is asked to wait before following (RFC 9110, section 10.2.3)."""

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_on_the_same_host(self, server, session, clock, status):
        end = server.route("/end", 200)
        begin = server.route("/begin", answer(status, fields={"Location": end, "Retry-After": "7"}))
        assert session.get(begin).waited == 7.0
        assert clock.waits == [7.0]

    def test_to_another_host_whose_other_requests_go_on(self, server):
        end = server.route("/end", 200, host=THERE)
        begin = server.route("/begin", answer(302, fields={"Location": end, "Retry-After": "1"}))
        with Session(throttle=0) as session:
            redirected = Worker(session.get, begin)
            eventually(lambda: THERE in session.throttle.snapshot())
            assert session.get(server.url("/", host=THERE)).waited == 0.0
            assert redirected.outcome().waited >= 1.0 - 0.01
        assert [one.path for one in server.requests] == ["/begin", "/", "/end"]
        assert server.requests[-1].at - server.requests[0].at >= 1.0 - 0.01

    def test_that_wait_too_is_bounded_by_the_call(self, server, session, clock):
        end = server.route("/end", 200, host=THERE)
        begin = server.route("/begin", answer(302, fields={"Location": end, "Retry-After": "60"}))
        with pytest.raises(DeadlineExceeded) as caught:
            session.get(begin, deadline=10)
        assert (caught.value.retry_after, clock.waits) == (60, [])

    def test_and_by_max_wait(self, server, clock):
        end = server.route("/end", 200, host=THERE)
        begin = server.route("/begin", answer(302, fields={"Location": end, "Retry-After": "60"}))
        with Session(throttle=Throttle(0, max_wait=10, clock=clock)) as session:
            with pytest.raises(ThrottleTimeout) as caught:
                session.get(begin)
        assert (caught.value.retry_after, caught.value.host) == (60, THERE)

    def test_the_next_call_does_not_wait_for_it(self, server, session, clock):
        end = server.route("/end", 200, host=THERE)
        begin = server.route("/begin", answer(302, fields={"Location": end, "Retry-After": "7"}))
        session.get(begin, allow_redirects=False)
        assert session.get(end).waited == 0.0

    @pytest.mark.parametrize("more", [{}, {"X-RateLimit-Resource": "search"}])
    def test_a_quota_that_it_spends_is_that_of_its_own_host_or_part(self, server, session, clock, more):
        end = server.route("/end", 200, host=THERE)
        fields = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "7", **more}
        begin = server.route("/begin", redirect(end, fields=fields))
        assert session.get(begin).waited == 0.0
        assert (clock.waits, session.throttle.wait_for(THERE)) == ([], 0.0)

    def test_without_it_a_redirect_waits_for_nothing(self, server, session, clock):
        end = server.route("/end", 200, host=THERE)
        session.get(server.route("/begin", redirect(end)))
        assert clock.waits == []


class TestCeiling:
    """No value freezes the program: a longer pause is cut, and a single request asks whether it is over."""

    @pytest.mark.parametrize(
        "fields",
        [
            {"Retry-After": "9" * 400},
            {"RateLimit": '"a";r=0;t=999999999999999'},
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999-12-31T23:59:59Z"},
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999999"},
        ],
    )
    def test_a_pause_is_cut(self, server, session, throttle, fields):
        session.get(server.route("/", answer(503, fields={"Date": DATE, **fields})))
        assert throttle.wait_for(HERE) == CEILING

    def test_after_it_one_asks_and_the_others_wait_for_the_answer(self, server):
        """Eight threads wait for the end of a cut pause; with no delay at all, one request is on the wire."""
        hold = threading.Event()
        url = server.route("/", sequence(says(503, Retry_After="60"), answer(200, delay=hold), 200))
        with Session(throttle=Throttle(0, max_retry_after=0.1)) as session:
            session.get(url)
            workers = [Worker(session.get, url) for _ in range(8)]
            eventually(lambda: len(server.requests) == 2)
            assert session.throttle.snapshot()[HERE].waiting == 7
            hold.set()
            for worker in workers:
                assert worker.outcome().status_code == 200
        assert len(server.requests) == 9

    def test_if_the_answer_is_the_same_all_wait_again(self, server, clock):
        url = server.route("/", sequence(*[says(503, Retry_After="3600")] * 2, 200))
        with Session(throttle=Throttle(0, clock=clock)) as session:
            for _ in range(3):
                session.get(url)
        assert clock.waits == [CEILING, CEILING]

    def test_a_probe_without_an_answer_is_followed_by_another(self, clock):
        wire = ScriptedAdapter((503, {"Retry-After": "3600"}, b""), OSError("reset"), 200)
        throttle = Throttle(0, clock=clock)
        with Session(throttle=throttle, adapter=wire) as session:
            session.get("http://example.test/")
            with pytest.raises(OSError, match="reset"):
                session.get("http://example.test/")
            assert throttle.wait_for("example.test") == 0
            session.get("http://example.test/")
            session.get("http://example.test/")
        assert clock.waits == [CEILING]

    def test_a_probe_that_is_never_told_of_holds_the_others_up_for_seconds_only(self, clock, throttle):
        throttle.turns.answered(HERE, 503, pause=3600)
        throttle.acquire(HERE)
        throttle.acquire(HERE)
        assert clock.waits == [CEILING, 5.0]

    def test_by_hand_an_answer_that_is_recorded_ends_it(self, clock, throttle):
        throttle.turns.answered(HERE, 503, pause=3600)
        throttle.acquire(HERE)
        throttle.record_response(HERE, 200)
        throttle.acquire(HERE)
        assert clock.waits == [CEILING]

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([200, 204, 302, 304, 403, 404, 413, 429, 500, 503]),
                st.dictionaries(NAMES, VALUES, max_size=6),
            ),
            min_size=1,
            max_size=4,
        ),
        st.booleans(),
    )
    def test_whatever_comes_nothing_is_raised_and_no_wait_is_longer(self, answers, smooth):
        def answering(status, fields):
            def answered(request):
                response = respond(request, status)
                response.headers = CaseInsensitiveDict(fields)
                return response

            return answered

        class Wire(ScriptedAdapter):
            def send(self, request, **options):
                status, fields = answers[min(len(self.requests), len(answers) - 1)]
                self.requests.append(request)
                return answering(status, fields)(request)

        clock = FakeClock(wall=NOW)
        with Session(throttle=Throttle(0, smooth=smooth, clock=clock), adapter=Wire(), waf=None) as session:
            for number in range(len(answers) + 2):
                response = session.get(f"http://example.test/{number % 2}", allow_redirects=False)
                assert response.waited <= CEILING + 1e-6
            session.throttle.snapshot()


class TestShortening:
    """A later word on the same policy counts; of different ones, the longest."""

    def told(self, server, throttle, *answers):
        """What `throttle` has its host paused for after `answers` to requests that were all sent at the start."""
        barrier = threading.Barrier(len(answers))
        events = [threading.Event() for _ in answers]
        waits = []
        for number, (one, event) in enumerate(zip(answers, events, strict=True)):
            one.delay = event
            server.route(f"/{number}", one)
        with Session(throttle=throttle) as session:

            def ask(number):
                barrier.wait(GUARD_S)
                session.get(server.url(f"/{number}"))

            workers = [Worker(ask, number) for number in range(len(answers))]
            eventually(lambda: len(server.requests) == len(answers))
            for worker, event in zip(workers, events, strict=True):
                event.set()
                worker.outcome()
                waits.append(throttle.wait_for(HERE))
        return waits

    def test_a_later_word_on_the_same_policy(self, server, throttle):
        first, second = says(RateLimit='"a";r=0;t=100'), says(RateLimit='"a";r=0;t=10')
        assert self.told(server, throttle, first, second) == [100, 10]

    def test_a_word_on_another(self, server, throttle):
        first, second = says(RateLimit='"a";r=0;t=100'), says(RateLimit='"b";r=0;t=10')
        assert self.told(server, throttle, first, second) == [100, 100]

    def test_it_does_not_go_below_what_another_policy_said(self, server, throttle):
        answers = [says(RateLimit=f'"{name}";r=0;t={seconds}') for name, seconds in (("a", 100), ("b", 50), ("a", 10))]
        assert self.told(server, throttle, *answers) == [100, 100, 50]

    def test_an_order_is_never_shortened(self, server, throttle):
        first, second = says(503, Retry_After="100"), says(503, Retry_After="10")
        assert self.told(server, throttle, first, second) == [100, 100]

    def test_nor_by_a_quota(self, server, throttle):
        first, second = says(503, Retry_After="100"), says(RateLimit='"a";r=0;t=10')
        assert self.told(server, throttle, first, second) == [100, 100]

    def test_what_was_left_before_the_quota_was_used_up_ends_nothing(self, server, throttle):
        """Two answers that overtook each other."""
        first, second = says(RateLimit='"a";r=0;t=100'), says(RateLimit='"a";r=1;t=100')
        assert self.told(server, throttle, first, second) == [100, 100]


class TestSmoothing:
    """What is left of a quota is spread out until its reset, where that is asked for."""

    def test_forty_in_twenty_seconds_are_one_in_half_a_second(self, server, clock):
        left = iter(range(40, 0, -1))
        began = clock.monotonic()

        def api(request):
            remaining = next(left)
            return says(RateLimit=f'"a";r={remaining};t={max(1, round(20 - (clock.monotonic() - began)))}')

        url = server.route("/", api)
        with Session(throttle=Throttle(0, smooth=True, clock=clock)) as session:
            for _ in range(11):
                session.get(url)
            assert session.throttle.delay_for(HERE) == pytest.approx(0.5, rel=0.1)
        assert clock.waits == pytest.approx([0.5] * 10, rel=0.1)

    def test_it_is_off_unless_asked_for(self, server, session, clock):
        url = server.route("/", says(RateLimit='"a";r=40;t=20'))
        for _ in range(3):
            session.get(url)
        assert clock.waits == []

    def test_it_is_never_faster_than_the_delay(self, server, clock):
        url = server.route("/", says(RateLimit='"a";r=40;t=20'))
        with Session(throttle=Throttle(2.0, smooth=True, clock=clock)) as session:
            for _ in range(3):
                session.get(url)
        assert clock.waits == pytest.approx([2.0, 2.0])

    def test_at_the_reset_it_is_forgotten(self, server, clock):
        """One left for 20 s: the next waits for the reset, and the one after that for nothing."""
        url = server.route("/", sequence(says(RateLimit='"a";r=1;t=20'), 200))
        with Session(throttle=Throttle(0, smooth=True, clock=clock)) as session:
            for _ in range(4):
                session.get(url)
            assert session.throttle.delay_for(HERE) == 0
        assert clock.waits == [20.0]

    def test_a_reset_beyond_the_ceiling_is_forgotten_there(self, server, clock):
        url = server.route("/", sequence(says(RateLimit='"a";r=2;t=999999999'), 200))
        with Session(throttle=Throttle(0, smooth=True, clock=clock)) as session:
            session.get(url)
            assert session.throttle.delay_for(HERE) == CEILING
            for _ in range(2):
                session.get(url)
        assert clock.waits == [CEILING]

    def test_threads_that_wait_are_spread_as_well(self, server):
        url = server.route("/", sequence(says(RateLimit='"a";r=10;t=2'), 200))
        with Session(throttle=Throttle(0, smooth=True)) as session:
            session.get(url)
            for worker in [Worker(session.get, url) for _ in range(4)]:
                worker.outcome()
        first, *others = (one.at for one in server.requests)
        for number, at in enumerate(others, 1):
            assert at - first >= number * 0.2 - 0.04

    @pytest.mark.parametrize("value", [1, "yes", None])
    def test_it_is_a_flag(self, value):
        with pytest.raises(TypeError, match="smooth"):
            Throttle(smooth=value)
