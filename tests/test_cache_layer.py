"""The cache between a session and a server: what is answered from the store, what is asked, what is kept."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextvars import ContextVar
from pathlib import Path

import pytest
import requests

import kreuz_sync
from kreuz_sync import DataLoss, Session, Throttle
from kreuz_sync.auth import OriginAuth
from kreuz_sync.cache.dates import imf_fixdate

from . import cache_sessions
from .cache_sessions import FRESH, NO_STORE, WatchedStore, caching, locked, rfc, ttl
from .fakes import FakeClock
from .loopback import answer, chunked, cut, cut_chunked, echo, gzipped, hang_up, redirect, sequence, set_cookies
from .waiting import Worker, eventually


def counted(server, path="/page"):
    """How often `path` was asked for."""
    return sum(one.path == path for one in server.requests)


def numbered(**how):
    """Answers whose bodies are 1, 2, 3, ..."""
    lock, count = threading.Lock(), [0]

    def one(request):
        with lock:
            count[0] += 1
            return answer(body=str(count[0]), **how)

    return one


class TestHits:
    """An answer that is fresh is the answer."""

    def test_the_second_get_is_answered_from_the_store(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc()) as session:
            first, second = session.get(url), session.get(url)
        assert (first.text, second.text) == ("1", "1")
        assert (first.from_cache, second.from_cache) == (False, True)
        assert (first.cache_status, second.cache_status) == ("kreuz; fwd=uri-miss; stored", "kreuz; hit; ttl=59")
        assert (first.attempts, second.attempts, counted(server)) == (1, 0, 1)

    def test_a_ttl_is_kept_whatever_the_origin_says(self, server):
        url = server.route("/page", numbered(fields={"Cache-Control": "max-age=0, must-revalidate"}))
        cache = ttl(3600)
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(3599)
            assert session.get(url).text == "1"
            cache.clock.advance(2)
            assert session.get(url).text == "2"

    def test_it_waits_for_nobody(self, server):
        """A hit takes no turn, and is not one of the successes that speed a host up."""
        url = server.route("/page", numbered(fields=FRESH))
        clock = FakeClock()
        throttle = Throttle(1.0, clock=clock)
        with caching(rfc(), throttle=throttle) as session:
            answers = [session.get(url) for _ in range(11)]
        assert [one.waited for one in answers] == [0.0] * 11
        assert (counted(server), clock.waits) == (1, [])

    def test_a_validation_waits_its_turn(self, server):
        url = server.route(
            "/page", sequence(answer(body="1", fields={"ETag": '"a"', "Cache-Control": "no-cache"}), 304)
        )
        clock = FakeClock()
        with caching(rfc(), throttle=Throttle(1.0, clock=clock)) as session:
            session.get(url)
            second = session.get(url)
        assert (second.text, second.attempts, clock.waits) == ("1", 1, [1.0])

    def test_its_age_is_told(self, server):
        url = server.route("/page", answer(fields={**FRESH, "Age": "5"}))
        cache = rfc()
        with caching(cache) as session:
            assert session.get(url).headers["Age"] == "5"
            cache.clock.advance(20)
            assert session.get(url).headers["Age"] == "25"

    def test_an_answer_that_may_not_be_stored_is_fetched_every_time(self, server):
        url = server.route("/page", numbered(fields=NO_STORE))
        for cache in (rfc(), ttl()):
            with caching(cache) as session:
                assert not any(session.get(url).from_cache for _ in range(3))
            assert len(cache) == 0

    def test_a_stored_error_is_an_error(self, server):
        url = server.route("/page", answer(404, fields=FRESH))
        with caching(rfc(), raise_for_status=True) as session:
            for _ in range(2):
                with pytest.raises(kreuz_sync.NotFound):
                    session.get(url)
        assert counted(server) == 1


class TestValidation:
    """What is stale is validated, not fetched anew."""

    def test_a_304_renews_freshness(self, server):
        url = server.route(
            "/page",
            sequence(
                answer(body="1", fields={"Cache-Control": "max-age=1", "ETag": '"a"'}),
                answer(304, fields={"Cache-Control": "max-age=60", "X-New": "yes"}),
            ),
        )
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(2)
            validated = session.get(url)
            assert server.last.fields["If-None-Match"] == '"a"'
            hits = [session.get(url) for _ in range(3)]
        assert (validated.status_code, validated.text, validated.from_cache) == (200, "1", True)
        assert validated.cache_status == "kreuz; fwd=stale; fwd-status=304; ttl=59"
        assert [one.headers["X-New"] for one in (validated, *hits)] == ["yes"] * 4
        assert counted(server) == 2

    def test_after_its_ttl_an_answer_is_validated_with_what_it_came_with(self, server):
        fields = {"ETag": '"a"', "Last-Modified": imf_fixdate(1_700_000_000)}
        url = server.route("/page", sequence(answer(body="1", fields=fields), 304))
        cache = ttl(60)
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(61)
            assert session.get(url).text == "1"
            sent = server.last.fields
            assert (sent["If-None-Match"], sent["If-Modified-Since"]) == ('"a"', fields["Last-Modified"])
            cache.clock.advance(59)
            assert session.get(url).cache_status.startswith("kreuz; hit")
        assert counted(server) == 2

    def test_a_new_answer_takes_the_place_of_the_old(self, server):
        url = server.route("/page", numbered(fields={"Cache-Control": "max-age=1", "ETag": '"a"'}))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(2)
            assert [session.get(url).text for _ in range(2)] == ["2", "2"]
        assert len(cache) == 1

    def test_it_goes_the_way_of_the_call(self, server, proxy, monkeypatch):
        """Through the proxy of the environment, within the session's time-out."""
        url = server.route("/page", sequence(answer(fields={"ETag": '"a"', "Cache-Control": "no-cache"}), 304))
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        with caching(rfc()) as session:
            assert [session.get(url).status_code for _ in range(2)] == [200, 200]
        assert [one.fields.get("If-None-Match") for one in proxy.requests] == [None, '"a"']

    def test_the_request_of_the_caller_is_left_as_it_was(self, server):
        url = server.route("/page", sequence(answer(fields={"ETag": '"a"', "Cache-Control": "no-cache"}), 304))
        with caching(rfc()) as session:
            session.get(url)
            request = session.prepare_request(requests.Request("GET", url))
            response = session.send(request)
        assert "If-None-Match" in server.last.fields
        assert "If-None-Match" not in request.headers
        assert response.request is request

    def test_a_304_about_something_else_is_asked_again_without_a_condition(self, server):
        url = server.route(
            "/page",
            sequence(
                answer(body="1", fields={"ETag": '"a"', "Cache-Control": "no-cache"}),
                answer(304, fields={"ETag": '"b"'}),
                answer(body="2", fields={"ETag": '"b"', "Cache-Control": "no-cache"}),
            ),
        )
        with caching(rfc()) as session:
            session.get(url)
            assert session.get(url).text == "2"
        assert [one.fields.get("If-None-Match") for one in server.requests] == [None, '"a"', None]

    def test_a_304_is_answered_though_the_entry_has_gone_meanwhile(self, server):
        cache = rfc()

        def evict(request):
            cache.clear()
            return answer(304)

        stored = answer(body="1", fields={"ETag": '"a"', "Cache-Control": "no-cache"})
        url = server.route("/page", sequence(stored, evict, answer(body="2")))
        with caching(cache) as session:
            session.get(url)
            assert session.get(url).text == "2"

    def test_always_revalidate_asks_before_every_use(self, server):
        url = server.route("/page", sequence(answer(body="1", fields={**FRESH, "ETag": '"a"'}), 304))
        with caching(rfc(always_revalidate=True)) as session:
            assert [session.get(url).text for _ in range(3)] == ["1"] * 3
        assert counted(server) == 3

    def test_a_head_that_differs_makes_the_get_stale(self, server):
        same = {"Cache-Control": "max-age=60", "ETag": '"a"'}
        url = server.route("/page", numbered(fields=same))
        with caching(rfc()) as session:
            session.get(url)
            server.route("/page", answer(body="2", fields={**same, "ETag": '"b"'}))
            session.head(url, headers={"Cache-Control": "no-cache"})
            assert session.get(url).text == "2"


class TestTheCallersWord:
    """Request directives act under both policies: RFC 9111, section 5.2.1."""

    @pytest.fixture(params=[rfc, ttl])
    def cache(self, request):
        return request.param()

    def test_no_cache_asks_and_refreshes(self, server, cache):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(cache) as session:
            session.get(url)
            assert session.get(url, headers={"Cache-Control": "no-cache"}).text == "2"
            assert session.get(url).text == "2"

    def test_no_store_passes_by_and_keeps_nothing(self, server, cache):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(cache) as session:
            assert session.get(url, headers={"Cache-Control": "no-store"}).text == "1"
            assert (session.get(url).text, len(cache)) == ("2", 1)
            assert session.get(url, headers={"Cache-Control": "no-store"}).text == "3"
            assert session.get(url).text == "2"

    def test_only_if_cached_never_touches_the_wire(self, server, cache):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(cache) as session:
            refused = session.get(url, headers={"Cache-Control": "only-if-cached"})
            assert (refused.status_code, refused.content, refused.attempts) == (504, b"", 0)
            assert (refused.from_cache, refused.tag) == (False, "server_error")
            session.get(url)
            assert session.get(url, headers={"Cache-Control": "only-if-cached"}).text == "1"
        assert counted(server) == 1

    def test_max_stale_takes_what_is_stale(self, server, cache):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(70)
            stale = session.get(url, headers={"Cache-Control": "max-stale=20"})
            assert (stale.text, stale.cache_status) == ("1", "kreuz; hit; ttl=-10; detail=max-stale")
            assert session.get(url, headers={"Cache-Control": "max-stale=5"}).text == "2"

    def test_min_fresh_wants_more_than_is_left(self, server, cache):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(40)
            assert session.get(url, headers={"Cache-Control": "min-fresh=10"}).text == "1"
            assert session.get(url, headers={"Cache-Control": "min-fresh=30"}).text == "2"


class TestOffline:
    def test_the_store_alone_answers_stale_or_not(self, server):
        url = server.route("/page", numbered(fields={"Cache-Control": "max-age=1"}))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(1000)
            with cache.using(offline=True):
                assert session.get(url).cache_status == "kreuz; hit; ttl=-999; detail=offline"
                assert session.get(server.url("/other")).status_code == 504
                assert session.post(url).status_code == 504
        assert len(server.requests) == 1

    def test_it_may_hold_for_a_whole_session(self, server):
        with caching(rfc(offline=True)) as session:
            assert session.get(server.url()).status_code == 504
        assert server.requests == []


class TestStaleOnError:
    """RFC 5861, section 4, and the user's own word."""

    STORED = {"Cache-Control": "max-age=1", "ETag": '"a"'}

    def stale(self, server, cache, then, fields=None):
        """A session, and the URL of an answer that is 5 seconds stale; from now on its origin does as `then` says."""
        session = caching(cache)
        url = server.route("/page", answer(body="old", fields=self.STORED if fields is None else fields))
        session.get(url)
        cache.clock.advance(6)
        server.route("/page", then)
        return session, url

    @pytest.mark.parametrize("then", [hang_up(), 500, 503, answer(504)])
    def test_a_stored_answer_stands_in(self, server, then):
        session, url = self.stale(server, rfc(stale_if_error=60), then)
        with session:
            response = session.get(url)
        assert (response.status_code, response.text, response.from_cache) == (200, "old", True)
        assert "detail=stale-if-error" in response.cache_status or "detail=disconnected" in response.cache_status
        assert response.attempts == 1

    def test_each_call_may_say_so_itself(self, server):
        session, url = self.stale(server, ttl(1), 503)
        with session:
            assert session.get(url).status_code == 503
            assert session.get(url, headers={"Cache-Control": "stale-if-error=60"}).text == "old"
            with session.cache.using(stale_if_error=60):
                assert session.get(url).text == "old"
            with session.cache.using(stale_if_error=4):
                assert session.get(url).status_code == 503

    def test_the_origin_may_say_so(self, server):
        fields = {"Cache-Control": "max-age=1, stale-if-error=10"}
        session, url = self.stale(server, rfc(), 500, fields)
        with session:
            assert session.get(url).text == "old"
            session.cache.clock.advance(10)
            assert session.get(url).status_code == 500

    def test_not_where_the_origin_forbids_it(self, server):
        fields = {"Cache-Control": "max-age=1, must-revalidate"}
        session, url = self.stale(server, rfc(stale_if_error=60), hang_up(), fields)
        with session, pytest.raises(requests.ConnectionError):
            session.get(url)

    @pytest.mark.parametrize("then", [404, 403, 429])
    def test_another_answer_is_the_answer(self, server, then):
        session, url = self.stale(server, rfc(stale_if_error=60), then)
        with session:
            assert session.get(url).status_code == then

    def test_what_the_session_itself_refuses_is_told(self, server):
        """A host's next turn beyond `max_wait` says nothing about the origin."""
        clock = FakeClock()
        cache = rfc(stale_if_error=60)
        url = server.route("/page", answer(body="old", fields=self.STORED))
        with caching(cache, throttle=Throttle(100, max_wait=1, clock=clock)) as session:
            session.get(url)
            cache.clock.advance(6)
            with pytest.raises(kreuz_sync.ThrottleTimeout):
                session.get(url)

    @pytest.mark.parametrize("then", [hang_up(), 503, cut(b"x" * 20, 5)])
    def test_a_failed_validation_deletes_nothing(self, server, then):
        session, url = self.stale(server, ttl(1), then)
        with session:
            try:
                assert session.get(url).status_code == 503
            except requests.RequestException:
                pass
            server.route("/page", 304)
            assert session.get(url).text == "old"

    def test_a_body_that_breaks_off_is_a_failure_of_the_wire(self, server):
        session, url = self.stale(server, rfc(stale_if_error=60), cut(b"new" * 10, 5))
        with session:
            assert session.get(url).text == "old"


class TestStaleWhileRevalidate:
    """RFC 5861, section 3: the caller gets the stale answer at once, and the next one a new one."""

    FIELDS = {"Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": '"a"'}

    def test_it_is_renewed_in_the_background(self, server):
        url = server.route("/page", numbered(fields=self.FIELDS))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(5)
            stale = session.get(url, headers={"X-Mine": "yes"})
            assert (stale.text, stale.attempts) == ("1", 0)
            assert stale.cache_status == "kreuz; hit; ttl=-4; detail=stale-while-revalidate"
            eventually(lambda: cache.statistics.refreshed == 1)
            assert (server.last.fields["If-None-Match"], server.last.fields["X-Mine"]) == ('"a"', "yes")
            assert session.get(url).text == "2"

    def test_many_who_ask_cause_one_request(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(body="1", fields=self.FIELDS))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(5)
            server.route("/page", answer(body="2", fields=self.FIELDS, delay=gate))
            assert {session.get(url).text for _ in range(20)} == {"1"}
            gate.set()
            eventually(lambda: cache.statistics.refreshed == 1)
            assert (session.get(url).text, counted(server)) == ("2", 2)

    def test_closing_waits_for_what_is_under_way(self, server):
        url = server.route("/page", answer(fields=self.FIELDS))
        cache = rfc()
        session = caching(cache)
        session.get(url)
        cache.clock.advance(5)
        server.route("/page", answer(fields=self.FIELDS, delay=0.2))
        session.get(url)
        eventually(lambda: len(server.requests) == 2)
        session.close()
        assert cache.statistics.refreshed == 1
        assert not [one for one in threading.enumerate() if one.name == "kreuz_sync cache"]

    def test_it_waits_its_hosts_turn_and_closing_wakes_it(self, server):
        url = server.route("/page", answer(fields=self.FIELDS))
        cache = rfc()
        session = caching(cache, throttle=Throttle(30.0))
        session.get(url)
        cache.clock.advance(5)
        session.get(url)
        started = time.monotonic()
        session.close()
        assert (len(server.requests), time.monotonic() - started < 10) == (1, True)

    def test_it_belongs_to_whoever_caused_it(self, server):
        """What the caller's context holds, a trace say, is seen by the layers below."""
        trace = ContextVar("trace", default=None)
        seen = []

        class Looking(kreuz_sync.LayerAdapter):
            def send(self, request, **options):
                seen.append((trace.get(), threading.current_thread() is threading.main_thread(), options["timeout"]))
                return self.inner.send(request, **options)

        url = server.route("/page", answer(fields=self.FIELDS))
        cache = rfc()
        with Session(layers=[cache, Looking], timeout=7) as session:
            session.get(url)
            cache.clock.advance(5)
            token = trace.set("mine")
            session.get(url)
            trace.reset(token)
            eventually(lambda: cache.statistics.refreshed == 1)
        assert seen == [(None, True, 7), ("mine", False, 7)]

    def test_a_failure_is_nobodys(self, server):
        url = server.route("/page", sequence(answer(body="1", fields=self.FIELDS), hang_up()))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(5)
            assert session.get(url).text == "1"
            eventually(lambda: counted(server) == 2)
            assert session.get(url).text == "1"


class TestConditionsAndRanges:
    """A caller's own condition or range, answered from what is stored."""

    def test_a_condition_is_answered_with_304(self, server):
        url = server.route("/page", numbered(fields={**FRESH, "ETag": '"a"'}))
        with caching(rfc()) as session:
            session.get(url)
            same = session.get(url, headers={"If-None-Match": 'W/"a"'})
            other = session.get(url, headers={"If-None-Match": '"b"'})
        assert (same.status_code, same.reason, same.content, same.headers["ETag"]) == (304, "Not Modified", b"", '"a"')
        assert (other.status_code, other.text, counted(server)) == (200, "1", 1)

    def test_the_origins_304_to_it_is_passed_on_and_freshens(self, server):
        stored = answer(body="1", fields={"Cache-Control": "max-age=1", "ETag": '"a"'})
        url = server.route("/page", sequence(stored, answer(304, fields={**FRESH, "ETag": '"a"'})))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(2)
            assert session.get(url, headers={"If-None-Match": '"a"'}).status_code == 304
            assert (session.get(url).text, counted(server)) == ("1", 2)

    @pytest.mark.parametrize(
        ("asked", "given", "told"),
        [
            ("bytes=2-4", b"234", "bytes 2-4/10"),
            ("bytes=7-", b"789", "bytes 7-9/10"),
            ("bytes=-1", b"9", "bytes 9-9/10"),
        ],
    )
    def test_a_range_is_cut_out(self, server, asked, given, told):
        url = server.route("/page", answer(body="0123456789", fields=FRESH))
        with caching(rfc()) as session:
            session.get(url)
            for stream in (False, True):
                part = session.get(url, headers={"Range": asked}, stream=stream)
                assert (part.status_code, part.content, part.headers["Content-Range"]) == (206, given, told)
                assert (part.headers["Content-Length"], part.raw.headers["Content-Range"]) == (str(len(given)), told)
        assert counted(server) == 1

    def test_a_range_of_a_coded_body_is_for_the_origin(self, server):
        """It would be one of the coded bytes, which nobody could decode."""
        url = server.route("/page", gzipped(b"0123456789"))
        with caching(ttl()) as session:
            session.get(url)
            session.get(url, headers={"Range": "bytes=2-4"})
        assert counted(server) == 2

    def test_a_part_is_never_stored(self, server):
        part = answer(206, body="234", fields={**FRESH, "Content-Range": "bytes 2-4/10"})
        url = server.route("/page", part)
        for cache in (rfc(), ttl()):
            with caching(cache) as session:
                session.get(url, headers={"Range": "bytes=2-4"})
                session.get(url)
            assert len(cache) == 0


class TestWriting:
    """What changes a resource makes what is stored of it invalid: RFC 9111, section 4.4."""

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "FROBNICATE"])
    def test_a_success_invalidates(self, server, method):
        url = server.route("/page", numbered(fields=FRESH))
        for cache in (rfc(), ttl()):
            with caching(cache) as session:
                before = int(session.get(url).text)
                session.request(method, url)
                assert int(session.get(url).text) == before + 2

    def test_an_error_does_not(self, server):
        url = server.route("/page", lambda request: answer(500 if request.method == "POST" else 200, fields=FRESH))
        with caching(rfc()) as session:
            session.get(url)
            session.post(url)
            assert session.get(url).from_cache

    def test_locations_of_the_same_origin_go_too(self, server, second_server):
        here, there = server.route("/page", answer(fields=FRESH)), second_server.route("/page", answer(fields=FRESH))
        server.route("/write", answer(201, fields=[("Location", "/page"), ("Content-Location", there)]))
        with caching(rfc()) as session:
            session.get(here), session.get(there)
            session.post(server.url("/write"))
            assert (session.get(here).from_cache, session.get(there).from_cache) == (False, True)

    def test_all_variants_and_everybodys_go(self, server):
        url = server.route("/page", answer(fields={**FRESH, "Vary": "Accept"}))
        with caching(rfc()) as session:
            for accept in ("text/plain", "application/json"):
                for token in ("a", "b"):
                    session.get(url, headers={"Accept": accept, "Authorization": token})
            session.post(url)
            assert len(session.cache) == 0

    def test_an_older_get_under_way_is_not_written_back(self, server):
        """It began before the change, and may be answered with what was there before it."""
        gate = threading.Event()
        url = server.route("/page", lambda request: answer(fields=FRESH, delay=gate if request.method == "GET" else 0))
        cache = rfc()
        with caching(cache) as session:
            reader = Worker(session.get, url)
            eventually(lambda: counted(server) == 1)
            session.post(url)
            gate.set()
            assert reader.outcome().cache_status == "kreuz; fwd=uri-miss"
            assert len(cache) == 0
            assert not session.get(url).from_cache
            assert session.get(url).from_cache

    def test_nor_is_a_stream_that_is_read_after_it(self, server):
        url = server.route("/page", answer(body="old", fields=FRESH))
        with caching(rfc()) as session:
            stream = session.get(url, stream=True)
            session.post(url)
            assert stream.text == "old"
            assert len(session.cache) == 0

    def test_a_change_by_another_session_of_the_same_cache_counts(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        cache = rfc()
        with caching(cache) as reader, caching(cache) as writer:
            reader.get(url)
            writer.post(url)
            assert reader.get(url).text == "3"

    def test_what_the_store_could_not_drop_is_not_given_out(self, server):
        store = WatchedStore(locked())
        store.failing = frozenset()
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc(store=store)) as session:
            session.get(url)
            store.failing = frozenset({"delete_under"})
            session.post(url)
            assert session.get(url).text == "3"
            store.failing = frozenset()
            assert (session.get(url).text, session.get(url).text) == ("4", "4")


class TestPost:
    def test_nothing_of_it_is_stored_by_default(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(ttl()) as session:
            assert [session.post(url, data="a").text for _ in range(2)] == ["1", "2"]

    def test_if_wanted_its_body_tells_one_from_another(self, server):
        url = server.route("/page", echo)
        with caching(ttl(post=True)) as session:
            for _ in range(2):
                assert [session.post(url, data=data).json()["body"] for data in ("a", "b")] == ["a", "b"]
            session.post(url, json={"a": 1})
            assert session.post(url, data='{"a": 1}').json()["body"] == '{"a": 1}'
        assert len(server.requests) == 4

    def test_a_body_that_is_a_stream_is_neither_read_nor_kept(self, server):
        url = server.route("/page", echo)
        with caching(ttl(post=True)) as session:
            for _ in range(2):
                assert session.post(url, data=iter([b"a", b"b"])).json()["body"] == "ab"
            assert len(session.cache) == 0


class TestHead:
    def test_it_never_answers_a_get(self, server):
        url = server.route("/page", answer(body="body", fields=FRESH))
        with caching(rfc()) as session:
            session.head(url)
            assert (session.get(url).text, counted(server)) == ("body", 2)
            head = session.head(url)
        assert (head.from_cache, head.content, head.headers["Content-Length"]) == (True, b"", "4")
        assert counted(server) == 2


class TestWhoAsks:
    """Answers to one set of credentials are never given to another."""

    @pytest.mark.parametrize("policy", [rfc, ttl])
    @pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-API-Key", "Private-Token", "X-Auth-Token"])
    def test_each_has_an_answer_of_its_own(self, server, policy, name):
        url = server.route("/page", lambda request: answer(body=request.fields.get(name) or "anybody", fields=FRESH))
        with caching(policy()) as session:
            for _ in range(2):
                said = [session.get(url, headers={name: value}).text for value in ("Bearer a", "Bearer b")]
                assert (said, session.get(url).text) == (["Bearer a", "Bearer b"], "anybody")
        # A page that the origin gives to anybody for a minute is good for who shows only a cookie.
        assert counted(server) == 3

    def test_the_user_in_a_url_counts(self, server):
        server.route("/page", lambda request: answer(body=request.fields.get("Authorization") or "", fields=FRESH))
        urls = [server.url("/page").replace("//", f"//{user}:pw@") for user in ("a", "b")]
        with caching(rfc()) as session:
            assert session.get(urls[0]).text != session.get(urls[1]).text
            assert session.get(urls[0]).from_cache

    def test_credentials_of_an_origin_count(self, server):
        url = server.route(
            "/page", lambda request: answer(body=request.fields.get("Authorization") or "", fields=FRESH)
        )
        cache = rfc()
        for token in ("a", "b"):
            with caching(cache, auth={server.url(): kreuz_sync.Bearer(token)}) as session:
                assert [session.get(url).text for _ in range(2)] == [f"Bearer {token}"] * 2
        assert counted(server) == 2

    def test_where_credentials_are_added_below_the_cache_nothing_is_stored(self, server):
        """As in the reference's order, where the cache cannot know whose answer it sees."""
        url = server.route(
            "/page", lambda request: answer(body=request.fields.get("Authorization") or "", fields=FRESH)
        )
        cache = rfc()
        for token in ("a", "b"):
            auth = OriginAuth({server.url(): kreuz_sync.Bearer(token)})
            layers = kreuz_sync.reference_order(cache=cache, auth=auth)
            with Session(layers=layers) as session:
                assert session.get(url).text == f"Bearer {token}"
        assert len(cache) == 0

    def test_a_visitor_keeps_the_page_that_came_with_its_cookie(self, server):
        """The origin says that it stays good, and the cookie is the one that it gave with it."""
        page = server.route("/page", set_cookies("visitor=1; Path=/"))
        server.route(
            "/page", answer(body="page", fields=[("Cache-Control", "max-age=60"), ("Set-Cookie", "visitor=1; Path=/")])
        )
        with caching(rfc()) as session:
            session.get(page)
            assert session.get(page).from_cache
            session.cookies.set("visitor", "2", domain="127.0.0.1", path="/")
            assert not session.get(page).from_cache

    def test_where_credentials_are_the_reason_the_answer_says_so(self, server):
        """Who wonders why nothing is found again sees what `ignored_cookies` is for."""
        url = server.route("/page", answer(fields=[*FRESH.items(), ("Set-Cookie", "visit=1; Path=/")]))
        with caching(rfc()) as session:
            told = []
            for number in range(3):
                session.cookies.set("visit", str(number), domain="127.0.0.1", path="/") if number else None
                told.append(session.get(url).cache_status)
            session.cookies.set("visit", "other", domain="127.0.0.1", path="/")
            told.append(session.get(url, headers={"Authorization": "x"}).cache_status)
        assert told == [
            "kreuz; fwd=uri-miss; stored",
            "kreuz; hit; ttl=59",  # whoever has the cookie that came with it
            "kreuz; fwd=uri-miss; detail=cookies; stored",
            "kreuz; fwd=uri-miss; detail=credentials; stored",
        ]

    def test_it_says_so_across_processes_if_one_had_no_cookies(self, server):
        url, cache = server.route("/page", answer(fields=FRESH)), rfc()
        with caching(cache) as session:
            session.get(url)
        with caching(rfc(store=cache.store, clock=cache.clock)) as other:
            told = [other.get(url, headers={"Cookie": f"sid={number}"}).cache_status for number in (1, 2, 2)]
            other.cookies.clear()
            told.append(other.get(f"{url}?other", headers={"Cookie": "sid=1"}).cache_status)
        assert told == [
            *["kreuz; fwd=uri-miss; detail=cookies; stored"] * 2,
            "kreuz; hit; ttl=59",
            "kreuz; fwd=uri-miss; stored",
        ]

    def test_what_was_dropped_is_not_somebody_else_s(self, server):
        url = server.route("/page", answer(fields=FRESH))
        with caching(rfc()) as session:
            for _ in range(2):
                told = session.get(url, headers={"Authorization": "x"}).cache_status
                session.cache.clear()
        assert told == "kreuz; fwd=uri-miss; stored"

    def test_no_secret_is_readable_in_the_store(self, server, tmp_path):
        url = server.route("/page", answer(body="page", fields={**FRESH, "Vary": "X-API-Key"}))
        secrets = {"Authorization": "Bearer s3cr3t-a", "Cookie": "sid=s3cr3t-b", "X-API-Key": "s3cr3t-c"}
        cache = kreuz_sync.Cache(tmp_path / "pages", policy="rfc9111", ignored_parameters=["token"])
        with caching(cache) as session:
            session.get(f"{url}?token=s3cr3t-d&api_key=s3cr3t-f".replace("//", "//me:s3cr3t-e@"), headers=secrets)
            assert len(cache) == 1
        files = [path for path in (tmp_path / "pages").rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if b"s3cr3t" in path.read_bytes()]


class TestVariants:
    """Several answers to one URL, chosen by Vary: RFC 9111, section 4.1."""

    def test_they_live_side_by_side(self, server, caplog):
        url = server.route(
            "/page", lambda request: answer(body=request.fields["Accept"], fields={**FRESH, "Vary": "Accept"})
        )
        with caching(rfc()) as session:
            kinds = ["application/json", "text/plain"] * 2
            assert [session.get(url, headers={"Accept": kind}).text for kind in kinds] == kinds
        assert (counted(server), caplog.records) == (2, [])

    def test_each_is_validated_by_its_own_tag(self, server):
        def page(request):
            tag = f'"{request.fields["Accept"]}"'
            known = request.fields.get("If-None-Match") or ""
            fields = {"Cache-Control": "no-cache", "Vary": "Accept", "ETag": tag}
            return answer(304 if tag in known else 200, body=request.fields["Accept"], fields=fields)

        url = server.route("/page", page)
        with caching(rfc()) as session:
            for _ in range(2):
                assert [session.get(url, headers={"Accept": kind}).text for kind in ("a/a", "b/b")] == ["a/a", "b/b"]
            assert session.cache.statistics.validated == 2

    def test_a_redirected_tag_makes_one_stored_body_answer_several(self, server):
        """A 304 to the tags of other variants says which of them is the answer here too."""

        def page(request):
            fields = {**FRESH, "Vary": "Accept", "ETag": '"same"'}
            return answer(304 if request.fields.get("If-None-Match") == '"same"' else 200, body="same", fields=fields)

        url = server.route("/page", page)
        with caching(rfc()) as session:
            answers = [session.get(url, headers={"Accept": kind}) for kind in ("a/a", "b/b", "b/b", "a/a")]
        assert [one.text for one in answers] == ["same"] * 4
        assert [one.from_cache for one in answers] == [False, True, True, True]
        assert counted(server) == 2


class TestNeverStored:
    @pytest.mark.parametrize("policy", [rfc, ttl])
    def test_a_challenge_page(self, server, policy):
        challenge = answer(
            fields={**FRESH, "cf-mitigated": "challenge"}, content_type="text/html", body="<title>Just a moment..."
        )
        url = server.route("/page", sequence(challenge, answer(body="real", fields=FRESH)))
        with caching(policy()) as session:
            assert session.get(url).waf is not None
            assert session.get(url).text == "real"

    @pytest.mark.parametrize("policy", [rfc, ttl])
    @pytest.mark.parametrize("broken", [cut(b"x" * 20, 5, fields=FRESH), cut_chunked(b"x" * 20, fields=FRESH)])
    def test_a_body_that_broke_off(self, server, policy, broken):
        url = server.route("/page", sequence(broken, answer(body=b"y" * 20, fields=FRESH)))
        with caching(policy()) as session:
            with pytest.raises(DataLoss):
                session.get(url)
            assert [len(session.get(url).content) for _ in range(2)] == [20, 20]
        assert counted(server) == 2

    def test_a_body_that_is_short_but_tolerated(self, server):
        url = server.route("/page", cut(b"x" * 1000, 950, fields=FRESH))
        with caching(rfc(), length_tolerance=100) as session:
            assert len(session.get(url).content) == 950
            assert len(session.cache) == 0

    @pytest.mark.parametrize("status", [403, 404, 429, 500, 503, 302])
    def test_an_error_page_for_a_fixed_time(self, server, status):
        url = server.route("/page", sequence(answer(status, fields=FRESH), answer(body="real")))
        with caching(ttl()) as session:
            session.get(url, allow_redirects=False)
            assert session.get(url).text == "real"

    def test_a_body_over_the_limit(self, server):
        url = server.route("/page", answer(body=b"x" * 101, fields=FRESH))
        with caching(rfc(max_entry_size=100)) as session:
            assert len(session.get(url).content) == 101
            server.route("/page", chunked(b"x" * 101, fields=FRESH))
            assert len(session.get(url).content) == 101
            assert len(session.cache) == 0
            server.route("/page", answer(body=b"x" * 100, fields=FRESH))
            session.get(url)
            assert len(session.cache) == 1

    def test_what_a_predicate_refuses(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(ttl(store_if=lambda request, response: response.text != "1")) as session:
            assert [session.get(url).text for _ in range(3)] == ["1", "2", "2"]

    def test_a_predicate_that_fails_is_no_trouble_of_the_call(self, server, caplog):
        """Its author finds one warning, with the place, and another one when it fails again after it worked."""

        def wanted(request, response):
            if "bad" in response.headers:
                raise ValueError("a s3cret")
            return False

        url, fine = server.route("/page", answer(body="page", fields={"bad": "1"})), server.route("/fine", answer())
        with caching(ttl(store_if=wanted)) as session:
            for stream in (False, True, False):
                answer_ = session.get(url, stream=stream)
                assert (answer_.text, answer_.cache_status) == ("page", "kreuz; fwd=uri-miss")
            assert len(session.cache) == 0
            session.get(fine)
            session.get(url)
        assert [record.event for record in caplog.records] == ["function_failure"] * 2
        assert "store_if raised ValueError in" in caplog.text
        assert "s3cret" not in caplog.text

    def test_a_body_that_breaks_off_while_a_predicate_reads_it_is_the_callers(self, server):
        url = server.route("/page", cut(b"x" * 100, 10))
        with caching(ttl(store_if=lambda request, response: response.content)) as session:
            with pytest.raises(DataLoss):
                session.get(url, stream=True)

    def test_a_predicate_that_is_interrupted_ends_the_call(self, server):
        def interrupted(request, response):
            raise KeyboardInterrupt

        url = server.route("/page", answer())
        with caching(ttl(store_if=interrupted)) as session, pytest.raises(KeyboardInterrupt):
            session.get(url)


class TestRedirects:
    """Each hop is an answer of its own."""

    def test_they_are_stored_one_by_one(self, server):
        server.route("/a", redirect("/b", 307, fields=NO_STORE))
        server.route("/b", answer(body="b", fields=FRESH))
        with caching(rfc()) as session:
            answers = [session.get(server.url("/a")) for _ in range(2)]
        assert [len(one.history) for one in answers] == [1, 1]
        assert [one.url for one in answers] == [server.url("/b")] * 2
        assert (counted(server, "/a"), counted(server, "/b")) == (2, 1)

    def test_a_stored_one_is_followed(self, server):
        server.route("/a", redirect("/b", 301, fields=FRESH))
        server.route("/b", answer(body="b", fields=FRESH))
        with caching(rfc()) as session:
            session.get(server.url("/a"))
            again = session.get(server.url("/a"))
        assert (again.text, again.history[0].from_cache, len(server.requests)) == ("b", True, 2)

    def test_that_of_a_post_is_not_replayed(self, server):
        server.route("/a", redirect("/b", 308, fields=FRESH))
        server.route("/b", echo)
        with caching(ttl()) as session:
            for body in ("1", "2"):
                assert session.post(server.url("/a"), data=body).json()["body"] == body
        assert counted(server, "/a") == 2

    @pytest.mark.parametrize("broken", [lambda **how: cut(b"x" * 20, 5, **how), lambda **how: cut_chunked(b"x", **how)])
    def test_a_body_that_broke_off_is_not_stored_with_it(self, server, broken):
        server.route("/a", broken(status=301, fields={**FRESH, "Location": "/b"}))
        server.route("/b", answer(body="b", fields=NO_STORE))
        with caching(rfc()) as session:
            for _ in range(2):
                assert session.get(server.url("/a")).text == "b"
        assert counted(server, "/a") == 2


class TestDates:
    """No field can make a call fail."""

    @pytest.mark.parametrize("expires", ["0", "-1", "", "Thu, 99 Foo", "x" * 5000])
    def test_an_unreadable_end_has_passed(self, server, expires):
        url = server.route("/page", answer(fields={"Expires": expires, "ETag": '"a"'}))
        with caching(rfc()) as session:
            assert [session.get(url).from_cache for _ in range(2)] == [False, False]

    def test_a_date_ahead_of_the_clock_adds_nothing(self, server):
        cache = rfc()
        tomorrow = imf_fixdate(cache.clock.wall() + 86_400)
        url = server.route("/page", answer(fields={**FRESH, "Date": tomorrow}))
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(59)
            assert session.get(url).from_cache
            cache.clock.advance(2)
            assert not session.get(url).from_cache


class TestTheStore:
    """Its trouble is a miss and one warning, never an exception out of a call."""

    def test_every_call_is_answered_and_one_warning_told(self, server, caplog):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc(store=WatchedStore(locked()))) as session:
            assert [session.get(url).text for _ in range(5)] == ["1", "2", "3", "4", "5"]
        warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
        assert [one.name for one in warnings] == ["kreuz_sync.cache"]
        assert "locked" in warnings[0].getMessage()

    @pytest.mark.parametrize("failing", ["read", "write", "rewrite_head", "delete", "delete_under", "spool"])
    def test_whatever_fails(self, server, failing):
        store = WatchedStore(locked())
        store.failing = frozenset({failing})
        url = server.route("/page", numbered(fields={"Cache-Control": "max-age=1", "ETag": '"a"'}))
        big = server.route("/big", answer(body=b"x" * 2**19, fields=FRESH))
        cache = rfc(store=store)
        with caching(cache) as session:
            for _ in range(2):
                assert session.get(url).ok
                assert len(session.get(big, stream=True).content) == 2**19
                cache.clock.advance(2)
                assert session.get(url).ok
                assert session.head(url).ok
                assert session.post(url).ok

    def test_what_a_store_of_a_users_own_raises_is_trouble_too(self, server):
        url = server.route("/page", answer(fields=FRESH))
        with caching(rfc(store=WatchedStore(KeyError("bug")))) as session:
            assert session.get(url).ok

    def test_an_outage_that_ends_and_comes_back_is_told_twice(self, server, caplog):
        store = WatchedStore()
        server.route("/*", answer(fields=FRESH))
        with caching(rfc(store=store)) as session:
            for number, trouble in enumerate((None, locked(), locked(), None, locked(), locked())):
                store.trouble = trouble
                session.get(server.url(f"/{number}"))
        assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 2

    def test_only_if_cached_is_refused_when_it_cannot_be_read(self, server):
        with caching(rfc(store=WatchedStore(locked()))) as session:
            assert session.get(server.url(), headers={"Cache-Control": "only-if-cached"}).status_code == 504
        assert server.requests == []

    def test_a_folder_that_cannot_be_used_is_no_cache(self, server, tmp_path, caplog):
        (tmp_path / "file").write_text("in the way")
        url = server.route("/page", answer(fields=FRESH))
        with Session(cache=tmp_path / "file" / "below", throttle=None) as session:
            assert all(session.get(url).ok for _ in range(3))
        assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 1

    def test_a_damaged_head_is_a_miss(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc()) as session:
            session.get(url)
            store = session.cache.store
            (key,) = store.keys()
            store.write(key, b"kz1\n[nonsense", b"1")
            assert [session.get(url).text for _ in range(2)] == ["2", "2"]


class TestTheFolder:
    """The store on disk, under what real programs do to it."""

    def test_calls_are_answered_while_somebody_else_has_the_database(self, server, tmp_path):
        server.route("/*", numbered(fields=FRESH))
        with Session(cache=tmp_path / "pages", throttle=None) as session:
            session.get(server.url("/kept"))
            other = sqlite3.connect(tmp_path / "pages" / "cache.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            try:
                assert session.get(server.url("/kept")).ok
                assert all(session.get(server.url(f"/{number}")).ok for number in range(2))
            finally:
                other.execute("ROLLBACK")
                other.close()
            session.get(server.url("/later"))
            assert session.get(server.url("/later")).from_cache

    def test_threads_that_come_and_go_leave_nothing_open(self, server, tmp_path):
        server.route("/*", answer(fields=FRESH))
        url = server.url("/page")
        descriptors = Path("/proc/self/fd")
        if not descriptors.exists():
            pytest.skip("needs the kernel's list of open files")
        session = Session(cache=tmp_path / "pages", throttle=None)
        before = len(list(descriptors.iterdir()))
        for number in range(200):
            Worker(session.get, f"{url}?{number % 20}").outcome()
        assert len(list(descriptors.iterdir())) - before < 50
        session.close()
        eventually(lambda: len(list(descriptors.iterdir())) <= before + len(server_sockets(server)))
        assert session.get(f"{url}?1").from_cache
        session.close()


def server_sockets(server):
    """The server's side of connections, which is in this process too."""
    return [None] * len({one.connection for one in server.requests})


class TestSwitchedOff:
    def test_it_does_not_touch_the_store(self, server):
        store = WatchedStore()
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc(store=store)) as session:
            session.get(url)
            before = len(store.calls)
            with session.cache.disabled():
                passed = session.get(url)
                session.post(url)
            assert (passed.text, passed.cache_status, len(store.calls)) == ("2", "kreuz; fwd=bypass", before)
            assert session.get(url).text == "1"

    def test_it_is_so_for_this_thread_alone(self, server):
        url = server.route("/page", numbered(fields=FRESH))
        with caching(rfc()) as session:
            session.get(url)
            with session.cache.disabled():
                assert Worker(session.get, url).outcome().from_cache
                assert not session.get(url).from_cache

    def test_another_cache_goes_on(self, server):
        url = server.route("/page", answer(fields=FRESH))
        with caching(rfc()) as one, caching(rfc()) as other:
            one.get(url), other.get(url)
            with one.cache.disabled():
                assert (one.get(url).from_cache, other.get(url).from_cache) == (False, True)


class TestInterrupted:
    """A KeyboardInterrupt at any point leaves everything usable, and writes no part of an entry."""

    @pytest.mark.parametrize("point", ["read", "write", "wire"])
    def test_the_next_call_works(self, server, point):
        store = WatchedStore(KeyboardInterrupt())  # type: ignore[arg-type]
        store.failing = frozenset({point})
        url = server.route("/page", answer(body="page", fields=FRESH))
        with caching(rfc(store=store)) as session:
            if point == "wire":
                inner = session.get_adapter(url).adapter
                send, inner.send = inner.send, _interrupted
            with pytest.raises(KeyboardInterrupt):
                session.get(url)
            assert len(store) == 0
            store.trouble = None
            if point == "wire":
                inner.send = send
            assert [session.get(url).text for _ in range(2)] == ["page", "page"]
            assert len(store) == 1


def _interrupted(*_, **__):
    raise KeyboardInterrupt


class TestOtherLayers:
    def test_retries_happen_below_it(self, server):
        url = server.route("/page", sequence(503, cut(b"x" * 20, 5), answer(body="page", fields=FRESH)))
        with caching(rfc(), retry=kreuz_sync.Retry(2, base=0.001)) as session:
            first = session.get(url)
            assert (first.text, first.attempts, session.get(url).from_cache) == ("page", 3, True)

    def test_rotated_agents_are_seen_by_it(self, server):
        url = server.route(
            "/page", lambda request: answer(body=request.fields["User-Agent"], fields={**FRESH, "Vary": "User-Agent"})
        )
        with caching(rfc(), user_agents=["a/1", "b/2"]) as session:
            assert [session.get(url).text for _ in range(4)] == ["a/1", "b/2"] * 2
        assert counted(server) == 2

    def test_it_may_stand_alone_on_a_plain_session(self, server):
        """Without our transport the body is read after it has passed, and is stored then."""
        url = server.route("/page", numbered(fields=FRESH))
        session = requests.Session()
        session.mount("http://", rfc()(requests.adapters.HTTPAdapter()))
        with session:
            assert [session.get(url).text for _ in range(3)] == ["1"] * 3
        assert counted(server) == 1

    def test_a_layer_below_may_change_what_the_answer_says(self, server):
        class Longer(kreuz_sync.LayerAdapter):
            def send(self, request, **options):
                response = self.inner.send(request, **options)
                response.headers["Cache-Control"] = "max-age=60"
                return response

        url = server.route("/page", numbered(fields={"Cache-Control": "no-store"}))
        with Session(layers=[rfc(), Longer]) as session:
            assert [session.get(url).text for _ in range(2)] == ["1", "1"]

    def test_the_time_of_an_answer_is_that_of_its_header_section(self, server):
        """A body that takes long to come does not make the answer younger."""
        clock = cache_sessions.clock()

        class Slow(kreuz_sync.LayerAdapter):
            def send(self, request, **options):
                clock.advance(50)  # waits in the throttle
                return self.inner.send(request, **options)

        url = server.route("/page", answer(fields=FRESH))
        with Session(layers=[rfc(clock=clock), Slow]) as session:
            session.get(url)
            assert session.get(url).headers["Age"] == "0"
