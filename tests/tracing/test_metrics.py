"""What is measured."""

from __future__ import annotations

import pytest

import kreuz_sync
from kreuz_sync import Retry, Throttle
from kreuz_sync.tracing.meters import DURATION_BUCKETS, Meters

from ..cache_sessions import FRESH, rfc
from ..fakes import FakeClock
from ..loopback import answer, sequence

DURATION = "http.client.request.duration"


class TestDuration:
    def test_every_attempt_is_counted_by_what_came_of_it(self, recorder, server):
        url = server.route("/busy", sequence(503, 200))
        recorder.session(retry=Retry(1, base=0.001)).get(url)
        common = {
            "http.request.method": "GET",
            "server.address": "127.0.0.1",
            "server.port": server.port,
            "network.protocol.version": "1.1",
        }
        points = {point.attributes["http.response.status_code"]: point for point in recorder.points(DURATION)}
        assert dict(points[200].attributes) == {**common, "http.response.status_code": 200}
        assert dict(points[503].attributes) == {**common, "http.response.status_code": 503, "error.type": "503"}
        assert [point.count for point in points.values()] == [1, 1]

    def test_an_error_has_no_status(self, recorder):
        with pytest.raises(kreuz_sync.ConnectionRefused):
            recorder.session().get("http://127.0.0.1:1/")
        (point,) = recorder.points(DURATION)
        assert point.attributes["error.type"] == "kreuz_sync.errors.ConnectionRefused"
        assert "http.response.status_code" not in point.attributes

    def test_its_buckets_are_those_of_the_conventions(self, recorder, server):
        recorder.session().get(server.url("/"))
        (point,) = recorder.points(DURATION)
        assert point.explicit_bounds == DURATION_BUCKETS

    def test_waits_are_not_part_of_it(self, recorder, server):
        """The fake clock's seconds would be no part of it anyway; the span that is measured begins after the wait."""
        clock = FakeClock()
        session = recorder.session(throttle=Throttle(20.0, clock=clock))
        for _ in range(2):
            session.get(server.url("/"))
        (point,) = recorder.points(DURATION)
        assert (point.count, point.sum < 10) == (2, True)
        (wait,) = recorder.points("kreuz_sync.throttle.wait")
        assert (wait.count, wait.sum) == (1, pytest.approx(20.0))

    def test_a_measurement_belongs_to_its_span(self, recorder, server):
        recorder.session().get(server.url("/"))
        (point,) = recorder.points(DURATION)
        assert [exemplar.span_id for exemplar in point.exemplars] == [recorder.attempt.context.span_id]


class TestOurs:
    def test_backoffs_are_counted_with_their_seconds(self, recorder, server):
        url = server.route("/busy", sequence(503, 503, 200))
        recorder.session(retry=Retry(2, base=1.0, clock=FakeClock())).get(url)
        (point,) = recorder.points("kreuz_sync.retry.wait")
        assert (point.count, point.sum, dict(point.attributes)) == (2, pytest.approx(3.0), {})
        assert set(DURATION_BUCKETS) < set(point.explicit_bounds)

    def test_hits_are_counted_by_their_kind(self, recorder, server):
        url = server.route("/page", answer(body="1", fields=FRESH))
        session = recorder.session(cache=rfc())
        for _ in range(3):
            session.get(url)
        points = recorder.points("kreuz_sync.cache.requests")
        assert {point.attributes["kreuz_sync.cache.result"]: point.value for point in points} == {"miss": 1, "hit": 2}

    def test_attempts_are_counted_for_each_call(self, recorder, server):
        session = recorder.session(retry=Retry(2, base=0.001), cache=rfc())
        session.get(server.route("/busy", sequence(503, answer(fields=FRESH))))
        session.get(server.url("/busy"))
        (point,) = recorder.points("kreuz_sync.attempts")
        assert (point.count, point.sum, point.min) == (2, 2, 0)

    def test_challenge_pages_are_counted_by_vendor(self, recorder, server):
        url = server.route("/", answer(fields={"cf-mitigated": "challenge", "Server": "cloudflare"}))
        response = recorder.session().get(url)
        (point,) = recorder.points("kreuz_sync.waf.blocked")
        assert (dict(point.attributes), point.value) == ({"kreuz_sync.waf.vendor": response.waf.vendor}, 1)

    def test_they_name_the_host_if_that_is_wanted(self, recorder, server):
        recorder.session(hosts_in_metrics=True).get(server.url("/"))
        (point,) = recorder.points("kreuz_sync.attempts")
        assert dict(point.attributes) == {"server.address": "127.0.0.1"}

    def test_two_sessions_share_the_instruments(self, recorder, server, caplog):
        for _ in range(2):
            recorder.session().get(server.url("/"))
        (point,) = recorder.points(DURATION)
        assert (point.count, caplog.records) == (2, [])


class OldMeter:
    """One of an API before 1.30."""

    def create_histogram(self, name, unit="", description=""):
        return name

    create_counter = create_histogram


def test_an_older_api_measures_without_advice():
    assert Meters(OldMeter(), with_hosts=False).duration == DURATION
