"""Equal requests at the same moment make one, if its answer is good for all of them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

import kreuz_sync
from kreuz_sync import SessionClosed
from kreuz_sync.cache.collapse import ALONE_REMEMBERED, Flights
from kreuz_sync.cache.generations import Generations
from kreuz_sync.clock import SYSTEM_CLOCK

from .cache_sessions import FRESH, NO_STORE, caching, rfc, ttl
from .loopback import answer, chunked, hang_up, sequence
from .waiting import GUARD_S, Worker, eventually

THREADS = 20


def live(make=rfc, **settings):
    """A cache on the system's clock: here threads really wait."""
    return make(clock=SYSTEM_CLOCK, **settings)


def waiting(cache):
    """How many wait for an equal request."""
    flights = cache.workings.flights
    with flights._lock:
        conditions = [flight.condition for flight in flights._flights.values() if flight.condition is not None]
        return sum(len(condition._waiters) for condition in conditions)


def ask_together(session, url, gate, cache, waiters=THREADS - 1, **options):
    """What THREADS threads get, all of which have asked before `gate` lets the server answer."""
    workers = [Worker(session.get, url, **options) for _ in range(THREADS)]
    eventually(lambda: waiting(cache) == waiters)
    gate.set()
    return workers


def outcome_of(worker):
    """The status that a thread got, or the name of its error."""
    try:
        return str(worker.outcome().status_code)
    except requests.RequestException as error:
        return type(error).__name__


class TestMisses:
    @pytest.mark.parametrize("policy", [rfc, ttl])
    def test_many_make_one_request(self, server, policy):
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        cache = live(policy)
        with caching(cache) as session:
            answers = [one.outcome() for one in ask_together(session, url, gate, cache)]
        assert ({one.text for one in answers}, len(server.requests)) == ({"page"}, 1)
        told = sorted(one.cache_status.replace("; ttl=59", "").replace("; ttl=3599", "") for one in answers)
        assert told == ["kreuz; fwd=uri-miss; collapsed"] * 19 + ["kreuz; fwd=uri-miss; stored"]
        assert [one.from_cache for one in answers].count(True) == 19
        assert cache.statistics.collapsed == 19
        assert sum(one.attempts for one in answers) == 1

    def test_an_error_that_may_be_stored_is_an_answer(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(404, body="none", fields=FRESH, delay=gate))
        cache = live()
        with caching(cache) as session:
            answers = [one.outcome() for one in ask_together(session, url, gate, cache)]
        assert ({one.status_code for one in answers}, len(server.requests)) == ({404}, 1)

    def test_sessions_that_share_a_cache_share_it(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        cache = live()
        sessions = [caching(cache) for _ in range(THREADS)]
        workers = [Worker(session.get, url) for session in sessions]
        eventually(lambda: waiting(cache) == THREADS - 1)
        gate.set()
        assert {one.outcome().text for one in workers} == {"page"}
        assert len(server.requests) == 1
        for session in sessions:
            session.close()

    def test_stale_answers_are_validated_once(self, server):
        gate = threading.Event()
        stale = answer(body="page", fields={"Cache-Control": "max-age=0", "ETag": '"a"'})
        url = server.route("/page", stale)
        cache = live()
        with caching(cache) as session:
            session.get(url)
            server.route("/page", answer(304, fields=FRESH, delay=gate))
            answers = [one.outcome() for one in ask_together(session, url, gate, cache)]
        assert ({one.text for one in answers}, len(server.requests)) == ({"page"}, 2)

    def test_others_are_not_held_up(self, server):
        gate = threading.Event()
        slow = server.route("/slow", answer(fields=FRESH, delay=gate))
        cache = live()
        with caching(cache) as session:
            leader = Worker(session.get, slow)
            eventually(lambda: len(server.requests) == 1)
            assert session.get(server.route("/other", answer(fields=FRESH))).ok
            gate.set()
            leader.outcome()

    def test_it_can_be_switched_off(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(fields=FRESH, delay=gate))
        cache = live(collapse=False)
        with caching(cache) as session:
            workers = [Worker(session.get, url) for _ in range(3)]
            eventually(lambda: len(server.requests) == 3)
            gate.set()
            assert all(one.outcome().ok for one in workers)


class TestNotForAll:
    """Whoever cannot use the answer asks for one of its own."""

    def test_one_that_may_not_be_stored(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=NO_STORE, delay=gate))
        cache = live()
        with caching(cache) as session:
            answers = [one.outcome() for one in ask_together(session, url, gate, cache)]
        assert (len(server.requests), {one.text for one in answers}) == (THREADS, {"page"})

    def test_they_are_released_before_its_body_has_come(self, server):
        """The header section says that it will not be stored; its body may take for ever."""
        gate, rest = threading.Event(), threading.Event()
        body = [b"x" * 10, b"y" * 10]
        first = chunked(*body, fields=NO_STORE, delay=gate, pause=rest)
        url = server.route("/page", sequence(first, answer(body="other")))
        cache = live()
        with caching(cache) as session:
            leader = Worker(session.get, url)
            eventually(lambda: len(server.requests) == 1)
            follower = Worker(session.get, url)
            eventually(lambda: waiting(cache) == 1)
            gate.set()
            assert follower.outcome().text == "other"
            rest.set()
            assert leader.outcome().content == b"".join(body)

    def test_the_next_ones_do_not_wait_in_vain_again(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(fields=NO_STORE, delay=gate))
        cache = live()
        with caching(cache) as session:
            for one in ask_together(session, url, gate, cache):
                one.outcome()
            gate.clear()
            workers = [Worker(session.get, url) for _ in range(3)]
            eventually(lambda: len(server.requests) == THREADS + 3)
            gate.set()
            for one in workers:
                one.outcome()

    def test_until_it_can_be_stored_again(self, server):
        gate = threading.Event()
        gate.set()
        url = server.route("/page", answer(fields=NO_STORE))
        cache = live()
        with caching(cache) as session:
            session.get(url)
            server.route(
                "/page", answer(fields={**FRESH, "Cache-Control": "max-age=0, must-revalidate", "ETag": '"a"'})
            )
            session.get(url)
            server.route("/page", answer(fields={**FRESH, "ETag": '"b"'}))
            session.get(url)
            session.post(url)
            gate.clear()
            server.route("/page", answer(fields=FRESH, delay=gate))
            for one in ask_together(session, url, gate, cache):
                one.outcome()
        assert len(server.requests) == 5

    def test_different_credentials_never_wait_for_each_other(self, server):
        gate = threading.Event()
        url = server.route(
            "/page", lambda request: answer(body=request.fields["Authorization"], fields=FRESH, delay=gate)
        )
        cache = live()
        with caching(cache) as session:
            workers = [Worker(session.get, url, headers={"Authorization": f"Bearer {n}"}) for n in range(5)]
            eventually(lambda: len(server.requests) == 5)
            gate.set()
            assert [one.outcome().text for one in workers] == [f"Bearer {n}" for n in range(5)]

    def test_another_variant_is_fetched(self, server):
        gate = threading.Event()

        def page(request):
            return answer(body=request.fields["Accept"], fields={**FRESH, "Vary": "Accept"}, delay=gate)

        url = server.route("/page", page)
        cache = live()
        with caching(cache) as session:
            workers = [Worker(session.get, url, headers={"Accept": kind}) for kind in ("a/a", "b/b", "a/a", "b/b")]
            eventually(lambda: waiting(cache) == 3)
            gate.set()
            assert [one.outcome().text for one in workers] == ["a/a", "b/b", "a/a", "b/b"]
        assert len(server.requests) <= 3

    def test_who_wants_a_new_answer_asks_for_it(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(fields=FRESH, delay=gate))
        cache = live()
        with caching(cache) as session:
            workers = [Worker(session.get, url, headers={"Cache-Control": "no-cache"}) for _ in range(3)]
            eventually(lambda: len(server.requests) == 3)
            gate.set()
            assert all(one.outcome().ok for one in workers)

    def test_streams_go_by_themselves(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        cache = live()
        with caching(cache) as session:
            workers = [Worker(session.get, url, stream=True) for _ in range(3)]
            eventually(lambda: len(server.requests) == 3)
            gate.set()
            assert {one.outcome().text for one in workers} == {"page"}

    def test_a_call_made_while_it_is_under_way_by_the_same_thread_does_not_wait_for_itself(self, server):
        url = server.route("/page", answer(fields=FRESH))
        inner = []

        class Nosy(kreuz_sync.LayerAdapter):
            def send(self, request, **options):
                if not inner:
                    inner.append(True)
                    inner.append(session.get(url))
                return self.inner.send(request, **options)

        with kreuz_sync.Session(layers=[live(), Nosy]) as session:
            started = time.monotonic()
            assert session.get(url).ok
            assert time.monotonic() - started < GUARD_S


class TestFailures:
    @pytest.mark.parametrize("then", [hang_up(), 503])
    def test_a_failing_leader_wakes_the_rest(self, server, then):
        gate = threading.Event()
        first = [True]

        def page(request):
            if first:
                first.clear()
                gate.wait(GUARD_S)
                return then
            return answer(body="page", fields=FRESH)

        url = server.route("/page", page)
        cache = live()
        with caching(cache) as session:
            outcomes = sorted(map(outcome_of, ask_together(session, url, gate, cache)))
        assert outcomes == sorted(["200"] * 19 + ["503" if then == 503 else "ConnectionFailed"])

    def test_an_interrupted_leader_wakes_the_rest(self, server):
        entered, gate = threading.Event(), threading.Event()

        class Interrupted(kreuz_sync.LayerAdapter):
            def send(self, request, **options):
                if not entered.is_set():
                    entered.set()
                    gate.wait(GUARD_S)
                    raise KeyboardInterrupt
                return self.inner.send(request, **options)

        url = server.route("/page", answer(fields=FRESH))
        cache = live()
        with kreuz_sync.Session(layers=[cache, Interrupted]) as session:
            leader = Worker(session.get, url)
            assert entered.wait(GUARD_S)
            follower = Worker(session.get, url)
            eventually(lambda: waiting(cache) == 1)
            gate.set()
            with pytest.raises(KeyboardInterrupt):
                leader.outcome()
            assert follower.outcome().ok

    def test_who_waits_too_long_goes_itself(self, server):
        """As long as an answer of its own might take: its time-out."""
        gate = threading.Event()
        url = server.route("/page", sequence(answer(body="slow", fields=FRESH, delay=gate), answer(body="quick")))
        cache = live()
        with caching(cache) as session:
            leader = Worker(session.get, url)
            eventually(lambda: len(server.requests) == 1)
            assert session.get(url, timeout=(5, 0.2)).text == "quick"
            gate.set()
            leader.outcome()

    def test_closing_its_session_wakes_who_waits(self, server):
        gate = threading.Event()
        url = server.route("/page", answer(fields=FRESH, delay=gate))
        cache = live()
        leading, following, staying = caching(cache), caching(cache), caching(cache)
        leader = Worker(leading.get, url)
        eventually(lambda: len(server.requests) == 1)
        follower, stayer = Worker(following.get, url), Worker(staying.get, url)
        eventually(lambda: waiting(cache) == 2)
        following.close()
        with pytest.raises(SessionClosed):
            follower.outcome()
        gate.set()
        assert leader.outcome().ok and stayer.outcome().ok
        assert following.get(url).from_cache
        for session in (leading, following, staying):
            session.close()


class TestMany:
    @pytest.mark.slow
    def test_threads_over_a_few_urls_ask_once_for_each(self, server, tmp_path):
        """50 threads, 20 URLs, 100 calls each, out of one folder: no error, and no request too many."""
        server.route("/p/*", lambda request: answer(body=request.path, fields=FRESH))
        urls = [server.url(f"/p/{number}") for number in range(20)]
        # Half a second, the usual wait for the folder, can pass on a busy machine: that would be a miss.
        patient = kreuz_sync.Cache(kreuz_sync.DiskStore(tmp_path / "pages", lock_wait=20))
        with kreuz_sync.Session(cache=patient, throttle=None) as session:

            def run(thread):
                return all(session.get(url).text == url[url.index("/p/") :] for url in urls * 5)

            with ThreadPoolExecutor(50) as pool:
                assert all(pool.map(run, range(50)))
        assert len(server.requests) == 20


class TestFlights:
    def test_what_is_remembered_is_bounded(self):
        flights = Flights(SYSTEM_CLOCK)
        for number in range(ALONE_REMEMBERED + 100):
            flight, leads = flights.join(str(number), self)
            assert leads
            flights.land(flight, of_use=False)
        assert len(flights._alone) == ALONE_REMEMBERED
        assert not flights._flights

    def test_landing_twice_does_nothing(self):
        flights = Flights(SYSTEM_CLOCK)
        flight, _ = flights.join("key", self)
        flights.land(flight, of_use=None)
        other, leads = flights.join("key", self)
        flights.land(flight, of_use=None)
        assert leads and not other.landed

    def test_one_whose_leader_has_gone_holds_up_nobody(self):
        """An interrupt may strike between taking off and being able to land."""

        class Leader:
            pass

        flights, leader = Flights(SYSTEM_CLOCK), Leader()
        lost, _ = flights.join("key", leader)
        lost.thread = None
        assert flights.join("key", self) == (lost, False)
        del leader
        other, leads = flights.join("key", self)
        assert leads and other is not lost
        flights.land(lost, of_use=None)
        assert flights._flights == {"key": other}


class TestGenerations:
    """What was changed since a request began."""

    def test_a_change_outdates_what_began_before_it(self):
        generations = Generations()
        before = generations.now()
        generations.change("a")
        after = generations.now()
        assert generations.is_outdated("a", before)
        assert not generations.is_outdated("b", before)
        assert not generations.is_outdated("a", after)

    def test_what_is_forgotten_outdates_all(self):
        generations = Generations(remembered=2)
        before = generations.now()
        for uri in "abc":
            generations.change(uri)
        assert generations.is_outdated("never seen", before)
        assert not generations.is_outdated("never seen", generations.now())

    def test_clearing_outdates_all(self):
        generations = Generations()
        before = generations.now()
        generations.clear()
        assert generations.is_outdated("a", before)
