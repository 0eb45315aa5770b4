"""Which spans a call makes, over real connections: one for the call, one for each attempt inside it."""

from __future__ import annotations

import threading

import pytest
import requests
from requests.auth import HTTPDigestAuth

import kreuz_sync
from kreuz_sync import AddressGuard, RateLimit, Retry, Robots, Throttle
from kreuz_sync.clock import SYSTEM_CLOCK

from ..cache_sessions import FRESH, rfc
from ..fakes import FakeClock
from ..loopback import DigestAuth, answer, cut, gzipped, redirect, sequence
from ..loopback.answers import Answer
from ..waiting import Worker, eventually
from .recorder import Recorder, events_of, parent_of


def resends(recorder: Recorder) -> list[int]:
    """What the attempts say of how often the request had been sent before; 0 for nothing."""
    return [span.attributes.get("http.request.resend_count", 0) for span in recorder.attempts]


def statuses(recorder: Recorder) -> list[int | None]:
    return [span.attributes.get("http.response.status_code") for span in recorder.attempts]


def all_inside(recorder: Recorder) -> bool:
    """Whether every attempt is a child of the one call."""
    return all(parent_of(span, recorder.spans) is recorder.call for span in recorder.attempts)


class TestOneAnswer:
    def test_a_call_has_a_span_and_its_attempt_another_inside(self, recorder, server):
        recorder.session().get(server.url("/"))
        assert (recorder.call.kind.name, recorder.attempt.kind.name) == ("INTERNAL", "CLIENT")
        assert recorder.call.parent is None
        assert all_inside(recorder)
        assert recorder.call.start_time <= recorder.attempt.start_time
        assert recorder.attempt.end_time <= recorder.call.end_time

    def test_the_attempt_says_what_the_conventions_ask_for(self, recorder, server):
        recorder.session().get(server.url("/"))
        assert recorder.attempt.name == "GET"
        assert dict(recorder.attempt.attributes) == {
            "http.request.method": "GET",
            "url.full": server.url("/"),
            "server.address": "127.0.0.1",
            "server.port": server.port,
            "http.response.status_code": 200,
            "http.response.body.size": 2,
            "network.protocol.version": "1.1",
            "network.peer.address": "127.0.0.1",
            "network.peer.port": server.port,
        }

    def test_the_call_says_what_came_of_it(self, recorder, server):
        recorder.session().get(server.url("/"))
        said = dict(recorder.call.attributes)
        assert said["url.full"] == server.url("/")
        assert (said["http.response.status_code"], said["kreuz_sync.attempts"], said["kreuz_sync.waited"]) == (
            200,
            1,
            0,
        )

    def test_it_is_no_error(self, recorder, server):
        recorder.session().get(server.url("/"))
        assert {span.status.status_code.name for span in recorder.spans} == {"UNSET"}

    def test_an_answer_of_400_or_more_is_one(self, recorder, server):
        recorder.session().get(server.url("/missing"))
        for span in (recorder.attempt, recorder.call):
            assert (span.status.status_code.name, span.status.description) == ("ERROR", None)
            assert span.attributes["error.type"] == "404"

    def test_it_belongs_to_the_programs_span(self, recorder, server):
        with recorder.span("job"):
            recorder.session().get(server.url("/"))
        assert parent_of(recorder.call, recorder.spans).name == "job"

    def test_the_scope_is_the_package(self, recorder, server):
        recorder.session().get(server.url("/"))
        scope = recorder.call.instrumentation_scope
        assert (scope.name, scope.version) == ("kreuz_sync", kreuz_sync.__version__)
        assert scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"

    def test_the_size_of_a_request_is_said_where_it_has_a_body(self, recorder, server):
        recorder.session().post(server.url("/echo"), data=b"12345")
        assert recorder.attempt.attributes["http.request.body.size"] == 5


class TestErrors:
    def test_nobody_listens(self, recorder):
        with pytest.raises(kreuz_sync.ConnectionRefused):
            recorder.session().get("http://127.0.0.1:1/?token=s3cret")
        for span in (recorder.attempt, recorder.call):
            assert span.attributes["error.type"] == "kreuz_sync.errors.ConnectionRefused"
            assert span.status.status_code.name == "ERROR"
            assert "refused" in span.status.description
            assert "http.response.status_code" not in span.attributes
            assert "s3cret" not in span.to_json()

    def test_a_body_that_breaks_off_has_a_status_and_an_error(self, recorder, server):
        url = server.route("/cut", cut(b"0123456789", 4))
        with pytest.raises(kreuz_sync.DataLoss):
            recorder.session().get(url)
        said = recorder.attempt.attributes
        assert (said["http.response.status_code"], said["error.type"]) == (200, "kreuz_sync.errors.DataLoss")
        assert said["http.response.body.size"] == 4
        assert events_of(recorder.attempt, "kreuz_sync.complete") == []

    def test_too_many_redirects_are_the_calls_error(self, recorder, server):
        url = server.route("/loop", redirect("/loop"))
        session = recorder.session()
        session.max_redirects = 2
        with pytest.raises(requests.TooManyRedirects):
            session.get(url)
        assert recorder.call.attributes["error.type"] == "requests.exceptions.TooManyRedirects"
        assert statuses(recorder) == [302, 302, 302]

    def test_what_is_refused_before_it_is_sent_is_no_attempt(self, recorder, server):
        with pytest.raises(kreuz_sync.AddressBlocked):
            recorder.session(deny_private=AddressGuard()).get(server.url("/"))
        assert recorder.attempts == []
        assert recorder.call.attributes["error.type"] == "kreuz_sync.errors.AddressBlocked"
        assert recorder.points("http.client.request.duration") == []

    def test_a_closed_session_is_no_error(self, recorder, server):
        session = recorder.session(retry=Retry(1, base=60.0))
        url = server.route("/", 503)
        call = Worker(session.get, url)
        eventually(lambda: recorder.attempts)
        session.close()
        with pytest.raises(kreuz_sync.SessionClosed):
            call.outcome()
        assert recorder.call.status.status_code.name == "UNSET"

    def test_a_challenge_page_is_an_error_with_a_vendor(self, recorder, server):
        url = server.route("/", answer(fields={"cf-mitigated": "challenge", "Server": "cloudflare"}))
        response = recorder.session().get(url)
        assert response.waf is not None
        for span in (recorder.attempt, recorder.call):
            assert span.attributes["kreuz_sync.waf.vendor"] == response.waf.vendor
            assert span.attributes["error.type"] == "kreuz_sync.errors.WafBlocked"


class TestSentAgain:
    """Each time a request is sent it has a span, which counts the times before, whatever they were for."""

    def test_by_a_retry(self, recorder, server):
        url = server.route("/busy", sequence(503, 503, 200))
        recorder.session(retry=Retry(2, base=0.001)).get(url)
        assert (statuses(recorder), resends(recorder)) == ([503, 503, 200], [0, 1, 2])
        assert [span.status.status_code.name for span in recorder.attempts] == ["ERROR", "ERROR", "UNSET"]
        assert all_inside(recorder)

    def test_by_a_redirect(self, recorder, server, second_server):
        url = server.route("/a", redirect(second_server.url("/")))
        recorder.session().get(url)
        assert (statuses(recorder), resends(recorder)) == ([302, 200], [0, 1])
        assert [span.attributes["server.port"] for span in recorder.attempts] == [server.port, second_server.port]
        assert all_inside(recorder)
        assert recorder.call.attributes["kreuz_sync.attempts"] == 2

    def test_with_an_answer_to_a_challenge(self, recorder, server):
        url = server.route("/it", DigestAuth("me", "pw"))
        assert recorder.session().get(url, auth=HTTPDigestAuth("me", "pw")).status_code == 200
        assert (statuses(recorder), resends(recorder)) == ([401, 200], [0, 1])
        assert all_inside(recorder)
        assert recorder.call.status.status_code.name == "UNSET"

    def test_two_calls_count_by_themselves(self, recorder, server):
        session = recorder.session()
        for _ in range(2):
            session.get(server.url("/"))
        assert resends(recorder) == [0, 0]


class TestWaits:
    def test_before_a_retry(self, recorder, server):
        clock = FakeClock()
        url = server.route("/busy", sequence(answer(429, fields={"Retry-After": "7"}), 200))
        recorder.session(retry=Retry(1, clock=clock)).get(url)
        assert events_of(recorder.call, "kreuz_sync.wait") == [
            {"kreuz_sync.wait.kind": "retry", "kreuz_sync.wait.seconds": 7.0}
        ]
        said = recorder.call.attributes
        assert (said["kreuz_sync.retry.wait"], said["kreuz_sync.waited"]) == (7.0, 7.0)

    def test_for_the_hosts_turn(self, recorder, server):
        """A 429 pauses its host: the next call waits, and no attempt's span has that in it."""
        clock = FakeClock()
        url = server.route("/busy", sequence(answer(429, fields={"Retry-After": "7"}), 200))
        session = recorder.session(throttle=Throttle(0.5, clock=clock))
        session.get(url)
        session.get(url)
        first, second = recorder.calls
        assert "kreuz_sync.throttle.wait" not in first.attributes
        assert second.attributes["kreuz_sync.throttle.wait"] == pytest.approx(7.0)
        assert [event["kreuz_sync.wait.kind"] for event in events_of(second, "kreuz_sync.wait")] == ["throttle"]

    def test_for_a_rate_limits_window(self, recorder, server):
        clock = FakeClock()
        limit = RateLimit("few", limit=1, window=30.0, on_limit="wait", margin=0.0, clock=clock)
        session = recorder.session(rate_limits=[limit])
        session.get(server.url("/"))
        session.get(server.url("/"))
        assert recorder.calls[1].attributes["kreuz_sync.ratelimit.wait"] == pytest.approx(30.0)

    def test_what_a_rate_limit_answers_itself_has_no_attempt(self, recorder, server):
        session = recorder.session(rate_limits=[RateLimit("few", limit=1, window=30.0)])
        session.get(server.url("/"))
        assert session.get(server.url("/")).status_code == 429
        assert statuses(recorder) == [200]
        said = recorder.calls[1].attributes
        assert (said["kreuz_sync.attempts"], said["kreuz_sync.ratelimit.policy"]) == (0, "few")
        assert said["error.type"] == "429"


class TestCache:
    def results(self, recorder: Recorder) -> list[str]:
        return [call.attributes["kreuz_sync.cache.result"] for call in recorder.calls]

    def test_a_hit_has_no_attempt(self, recorder, server):
        session = recorder.session(cache=rfc())
        url = server.route("/page", answer(body="1", fields=FRESH))
        session.get(url)
        session.get(url)
        assert (self.results(recorder), statuses(recorder)) == (["miss", "hit"], [200])
        assert recorder.calls[1].attributes["kreuz_sync.cache.status"].startswith("kreuz; hit; ttl=")
        assert recorder.calls[1].attributes["kreuz_sync.attempts"] == 0

    def test_a_validation_has_one_with_304(self, recorder, server):
        cache = rfc()
        url = server.route("/page", sequence(answer(body="1", fields={**FRESH, "ETag": '"a"'}), 304))
        session = recorder.session(cache=cache)
        session.get(url)
        cache.clock.advance(100)
        assert session.get(url).text == "1"
        assert (self.results(recorder), statuses(recorder)) == (["miss", "revalidated"], [200, 304])
        assert recorder.calls[1].attributes["http.response.status_code"] == 200
        assert recorder.attempts[1].status.status_code.name == "UNSET"

    def test_a_stale_answer_in_place_of_an_error(self, recorder, server):
        cache = rfc(stale_if_error=3600)
        url = server.route("/page", sequence(answer(body="1", fields=FRESH), 503))
        session = recorder.session(cache=cache)
        session.get(url)
        cache.clock.advance(100)
        session.get(url)
        assert (self.results(recorder), statuses(recorder)) == (["miss", "stale"], [200, 503])
        assert recorder.calls[1].status.status_code.name == "UNSET"

    def test_equal_calls_at_once_make_one_attempt(self, recorder, server):
        gate = threading.Event()
        url = server.route("/page", answer(body="1", fields=FRESH, delay=gate))
        session = recorder.session(cache=rfc(clock=SYSTEM_CLOCK))  # on which the second one really waits
        first = Worker(session.get, url)
        eventually(lambda: server.requests)
        second = Worker(session.get, url)
        flights = session.cache.workings.flights
        eventually(lambda: [one for one in list(flights._flights.values()) if one.condition and one.condition._waiters])
        gate.set()
        assert (first.outcome().text, second.outcome().text) == ("1", "1")
        assert (sorted(self.results(recorder)), statuses(recorder)) == (["collapsed", "miss"], [200])

    def test_what_is_not_for_the_cache_passes_it_by(self, recorder, server):
        recorder.session(cache=rfc()).request("OPTIONS", server.url("/"))
        assert self.results(recorder) in (["bypass"], ["miss"])

    def test_what_is_renewed_in_the_background_is_linked_to_its_cause(self, recorder, server):
        """It is a child of what the caller's span is a child of, since that call has ended by then."""
        cache = rfc()
        fields = {"Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": '"a"'}
        url = server.route("/page", sequence(answer(body="1", fields=fields), answer(body="2", fields=fields)))
        session = recorder.session(cache=cache)
        session.get(url)
        cache.clock.advance(5)
        recorder.forget()
        with recorder.span("job"):
            assert session.get(url).text == "1"
        eventually(lambda: len(recorder.calls) == 2)
        cause = next(call for call in recorder.calls if "kreuz_sync.cache.refresh" not in call.attributes)
        refresh = next(call for call in recorder.calls if call is not cause)
        assert cause.attributes["kreuz_sync.cache.result"] == "stale"
        assert [link.context.span_id for link in refresh.links] == [cause.context.span_id]
        assert parent_of(refresh, recorder.spans).name == "job"
        assert parent_of(recorder.attempt, recorder.spans) is refresh


class TestRobots:
    def test_the_file_is_asked_for_inside_the_call_that_needs_it(self, recorder, server):
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /private"))
        recorder.session(robots=Robots()).get(server.url("/"))
        page, file = recorder.calls
        assert (page.attributes["url.full"], file.attributes["url.full"]) == (
            server.url("/"),
            server.url("/robots.txt"),
        )
        assert parent_of(file, recorder.spans) is page
        assert [parent_of(span, recorder.spans) for span in recorder.attempts] == [file, page]
        assert resends(recorder) == [0, 0]

    def test_what_it_refuses_has_no_attempt(self, recorder, server):
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /"))
        session = recorder.session(robots=True)
        with pytest.raises(kreuz_sync.RobotsDisallowed):
            session.get(server.url("/page"))
        assert [span.attributes["url.full"] for span in recorder.attempts] == [server.url("/robots.txt")]
        assert recorder.calls[0].attributes["error.type"] == "kreuz_sync.errors.RobotsDisallowed"
        (point,) = recorder.points("kreuz_sync.robots.refused")
        assert point.value == 1


class TestBodies:
    """An attempt lasts to the end of its body, and says how much of it came over the wire."""

    @pytest.mark.parametrize(
        "body",
        [answer(body=b"x" * 5000), Answer(chunks=[b"x" * 3000, b"x" * 2000])],
        ids=["length", "chunks"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_its_size(self, recorder, server, body, stream):
        url = server.route("/page", body)
        assert len(recorder.session().get(url, stream=stream).content) == 5000
        assert recorder.attempt.attributes["http.response.body.size"] == 5000
        assert events_of(recorder.attempt, "kreuz_sync.complete") == [
            {"http.response.status_code": 200, "http.response.body.size": 5000}
        ]

    @pytest.mark.parametrize("in_chunks", [False, True])
    def test_a_compressed_one_counts_as_it_came(self, recorder, server, in_chunks):
        packed = gzipped(b"x" * 100_000)
        size = len(packed.body)
        if in_chunks:
            packed = Answer(chunks=[packed.body[:50], packed.body[50:]], fields=packed.fields)
        url = server.route("/page", packed)
        assert len(recorder.session().get(url).content) == 100_000
        assert recorder.attempt.attributes["http.response.body.size"] == size

    def test_a_stream_has_its_end_when_it_is_read(self, recorder, server):
        response = recorder.session().get(server.route("/page", answer(body=b"x" * 50_000)), stream=True)
        assert (len(recorder.calls), recorder.attempts) == (1, [])
        assert sum(map(len, response.iter_content(4096))) == 50_000
        assert recorder.attempt.attributes["http.response.body.size"] == 50_000

    def test_a_stream_read_from_raw_too(self, recorder, server):
        response = recorder.session().get(server.route("/page", answer(body=b"x" * 50_000)), stream=True)
        while response.raw.read(4096):
            pass
        assert events_of(recorder.attempt, "kreuz_sync.complete")[0]["http.response.body.size"] == 50_000

    def test_a_stream_that_is_closed_early_is_no_error_and_not_complete(self, recorder, server):
        response = recorder.session().get(server.route("/page", answer(body=b"x" * 500_000)), stream=True)
        next(response.iter_content(1000))
        response.close()
        assert recorder.attempt.attributes["http.response.body.size"] < 500_000
        assert recorder.attempt.status.status_code.name == "UNSET"
        assert events_of(recorder.attempt, "kreuz_sync.complete") == []

    def test_a_stream_that_is_forgotten_ends_with_the_next_call(self, recorder, server):
        """Whoever collects garbage may be in the middle of an exporter, so a finalizer ends no span."""
        session = recorder.session()
        response = session.get(server.route("/page", answer(body=b"x" * 500_000)), stream=True)
        del response
        assert recorder.attempts == []
        session.get(server.url("/"))
        forgotten, _ = recorder.attempts
        assert forgotten.attributes["http.response.status_code"] == 200
        assert forgotten.end_time <= recorder.calls[1].start_time

    def test_or_with_the_session(self, recorder, server):
        session = recorder.session()
        session.get(server.route("/page", answer(body=b"x" * 500_000)), stream=True)
        session.close()
        assert len(recorder.attempts) == 1

    @pytest.mark.parametrize(
        ("settings", "body", "error"),
        [
            ({}, cut(b"x" * 5000, 100), "kreuz_sync.errors.DataLoss"),
            ({}, Answer(chunks=[b"x" * 500], cut=100), "kreuz_sync.errors.DataLoss"),
            ({"max_body": 100}, Answer(chunks=[b"x" * 500, b"x" * 500]), "kreuz_sync.errors.BodyTooLarge"),
            ({}, answer(body=b"no gzip", fields={"Content-Encoding": "gzip"}), "kreuz_sync.errors.UndecodableBody"),
            (
                {"budget": kreuz_sync.Budget(bytes=600)},
                Answer(chunks=[b"x" * 500] * 3),
                "kreuz_sync.errors.BudgetExceeded",
            ),
        ],
        ids=["cut", "cut chunks", "too large", "undecodable", "beyond the budget"],
    )
    def test_a_stream_that_breaks_off_says_with_what(self, recorder, server, settings, body, error):
        response = recorder.session(**settings).get(server.route("/page", body), stream=True)
        with pytest.raises(requests.RequestException):
            for _ in response.iter_content(64):
                pass
        assert recorder.attempt.attributes["error.type"] == error
        assert recorder.attempt.status.status_code.name == "ERROR"
        assert events_of(recorder.attempt, "kreuz_sync.complete") == []

    def test_an_error_of_the_readers_own_is_not_the_bodys(self, recorder, server):
        response = recorder.session().get(server.route("/missing", answer(404, body="no such page")), stream=True)
        try:
            response.raise_for_status()
        except kreuz_sync.NotFound as error:
            assert error.response.text == "no such page"
        assert recorder.attempt.attributes["error.type"] == "404"
        assert len(events_of(recorder.attempt, "kreuz_sync.complete")) == 1

    def test_a_stream_that_is_over_time_says_so(self, recorder, server):
        gate = threading.Event()
        url = server.route("/slow", Answer(chunks=[b"a", b"b"], pause=gate))
        response = recorder.session(deadline=0.3).get(url, stream=True)
        with pytest.raises(kreuz_sync.DeadlineExceeded):
            response.content  # noqa: B018
        gate.set()
        assert recorder.attempt.attributes["error.type"] == "kreuz_sync.errors.DeadlineExceeded"
