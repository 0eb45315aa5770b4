"""Workers do not wait on one host's pace while another host is due."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import requests

from kreuz_sync import Cache, MemoryStore, RateLimiter, Retry, Session, Throttle
from kreuz_sync.fetch_all.pacing import Asked, Estimated, names_of
from kreuz_sync.ratelimit import RateLimit
from kreuz_sync.throttle import HostSettings

from ..fakes import ScriptedAdapter
from ..loopback import Server, answer, redirect, sequence
from ..waiting import GUARD_S

DELAY_S = 0.05


def urls(host: str, count: int) -> list[str]:
    return [f"http://{host}.test/{number}" for number in range(count)]


def taken(session: Session, given: list[str], count: int, **options: Any) -> list[str]:
    """The hosts of the first `count` results; the rest is given up."""
    with session.fetch_all(given, **options) as found:
        return [next(found).url[7:].partition(".")[0] for _ in range(count)]


def failing_at_a(request: requests.PreparedRequest) -> int:
    return 503 if "//a." in (request.url or "") else 200


class TestWaits:
    """What one host's request waits for holds up nobody else, even with one worker."""

    @pytest.mark.parametrize(
        "options",
        [
            {"throttle": Throttle(0, hosts={"a.test": 3600})},
            {"throttle": None, "retry": Retry(5, base=3600, cap=3600)},
            {
                "throttle": None,
                "rate_limits": [
                    RateLimit(
                        "a",
                        limit=1,
                        window=3600,
                        key=lambda request: "a",
                        skip=lambda request: "//a." not in (request.url or ""),
                        on_limit="wait",
                    )
                ],
            },
        ],
        ids=["a turn", "a retry", "a window"],
    )
    def test_other_hosts_go_on(self, options: dict[str, Any]) -> None:
        session = Session(adapter=ScriptedAdapter(failing_at_a), **options)
        hosts = taken(session, urls("a", 2) + urls("b", 30), 30, workers=1)
        assert hosts.count("b") >= 29

    def test_a_limiter_of_ones_own_too(self) -> None:
        """It can only be asked by waiting; three more workers than one may wait so."""
        release = threading.Event()

        class Mine(RateLimiter):
            def acquire(self, host: str) -> None:
                if host == "a.test":
                    assert release.wait(GUARD_S)

            def record_response(self, host: str, status: int) -> None: ...
            def set_crawl_delay(self, host: str, seconds: float) -> None: ...

        session = Session(adapter=ScriptedAdapter(200), throttle=Mine())
        with session.fetch_all(urls("a", 5) + urls("b", 30), workers=1) as found:
            assert {next(found).url[7] for _ in range(30)} == {"b"}
            release.set()
            assert len(list(found)) == 5

    def test_a_host_with_few_places_too(self) -> None:
        """Its second request is not handed out while the first is under way."""
        hold = threading.Event()

        def slow_at_a(request: requests.PreparedRequest) -> int:
            assert "//a." not in (request.url or "") or hold.wait(GUARD_S)
            return 200

        throttle = Throttle(0, hosts={"a.test": HostSettings(concurrency=1)})
        session = Session(adapter=ScriptedAdapter(slow_at_a), throttle=throttle)
        with session.fetch_all(urls("a", 5) + urls("b", 30), workers=2) as found:
            assert {next(found).url[7] for _ in range(30)} == {"b"}
            assert len(found._crew.workers) <= 2
            hold.set()
            assert len(list(found)) == 5

    def test_a_redirect_to_a_host_that_is_waited_for(self, server: Server) -> None:
        slow = server.route("/slow", answer(body="slow"), host="127.0.0.2")
        server.route("/go", redirect(slow))
        server.route("/page/*", answer(body="page"))
        throttle = Throttle(0, hosts={"127.0.0.2": 3600})
        with Session(throttle=throttle) as session:
            session.get(slow)
            given = [server.url("/go")] + [server.url(f"/page/{number}") for number in range(30)]
            with session.fetch_all(given, workers=1) as found:
                assert {next(found).index for _ in range(30)} == set(range(1, 31))


class TestPace:
    """The pace is the throttle's own."""

    def test_hosts_are_asked_no_faster_than_their_pace(self, server: Server) -> None:
        server.route("/page/*", answer(body="page"))
        given = [server.url(f"/page/{n}", host=f"127.0.0.{n % 3 + 1}") for n in range(30)]
        with Session(throttle=DELAY_S) as session:
            began = time.monotonic()
            assert len(list(session.fetch_all(given))) == 30
            assert time.monotonic() - began >= 0.9 * 9 * DELAY_S
            reports = session.throttle.snapshot()  # type: ignore[union-attr]
        assert {name: report.starts for name, report in reports.items()} == {f"127.0.0.{n}": 10 for n in (1, 2, 3)}

    def test_it_is_shared_with_calls_of_ones_own(self, server: Server) -> None:
        server.route("/page/*", answer(body="page"))
        given = [server.url(f"/page/{number}") for number in range(4)]
        with Session(throttle=DELAY_S) as session:
            session.get(server.url("/"))
            began = time.monotonic()
            list(session.fetch_all(given))
            assert time.monotonic() - began >= 0.9 * 4 * DELAY_S - 0.005

    def test_a_429_slows_its_host_and_no_other(self, server: Server) -> None:
        server.route("/page/*", answer(body="page"))
        server.route("/busy", sequence(answer(429, fields={"Retry-After": "3600"}), 200))
        busy = server.url("/busy", host="127.0.0.2")
        given = [busy, busy + "?2"] + [server.url(f"/page/{number}") for number in range(10)]
        with Session(throttle=0.01) as session, session.fetch_all(given, workers=1) as found:
            assert len({next(found).index for _ in range(11)} - {1}) == 11
        assert len(server.requests_to("/busy")) == 1

    def test_what_a_cache_answers_waits_for_nobody(self) -> None:
        given, cache = urls("a", 20), Cache(MemoryStore())
        with Session(adapter=ScriptedAdapter((200, {}, b"page")), throttle=0, cache=cache) as session:
            assert len(list(session.fetch_all(given))) == 20
        with Session(adapter=ScriptedAdapter(500), throttle=3600, cache=cache) as session:
            results = list(session.fetch_all(given))
        assert [result.response is not None and result.response.from_cache for result in results] == [True] * 20

    def test_workers_are_no_more_than_there_is_work_for(self) -> None:
        session = Session(adapter=ScriptedAdapter(200), throttle=3600)
        with session.fetch_all(urls("a", 100), workers=16) as found:
            next(found)
            time.sleep(0.05)
            assert len(found._crew.workers) <= 2


class TestNames:
    """The name that a URL has its pace under."""

    @pytest.mark.parametrize(
        ("url", "name"),
        [("http://A.Test:8080/x", "a.test"), ("nonsense", ""), ("http://[::1", ""), ("", ""), ("file:///etc", "")],
    )
    @pytest.mark.parametrize("limiter", [None, Throttle()])
    def test_what_is_no_url_has_none(self, url: str, name: str, limiter: RateLimiter | None) -> None:
        assert names_of(limiter)(url) == name

    def test_a_throttles_key_gives_it(self) -> None:
        assert names_of(Throttle(key=lambda url: url[-1]))("http://a.test/x") == "x"

    def test_a_key_that_gives_nothing_is_said_by_the_request(self) -> None:
        throttle = Throttle(key=lambda url: None)  # type: ignore[arg-type,return-value]
        session = Session(adapter=ScriptedAdapter(200), throttle=throttle)
        (result,) = session.fetch_all(["http://a.test/"])
        assert "a string is wanted" in str(result.error)


class TestAsked:
    """A pace that is asked of a limiter."""

    def test_of_a_throttle(self) -> None:
        paces = Asked(Throttle(5.0, hosts={"b.test": HostSettings(delay=0, concurrency=3)}))
        assert (paces.wait("a.test", 0), paces.places("a.test"), paces.handed_out("a.test", 0)) == (0, None, True)
        assert (paces.wait("b.test", 0), paces.places("b.test"), paces.handed_out("b.test", 0)) == (0, 3, False)

    def test_of_one_that_can_tell_when_a_host_is_due(self) -> None:
        class Telling(RateLimiter):
            def acquire(self, host: str) -> None: ...
            def record_response(self, host: str, status: int) -> None: ...
            def set_crawl_delay(self, host: str, seconds: float) -> None: ...
            def wait_for(self, host: str) -> float:
                return 7.0

        assert Asked(Telling()).wait("a.test", 0) == 7.0


class Came:
    """What is looked at in a response or an error."""

    def __init__(self, waited: float = 0.0, *, from_cache: bool = False, attempts: int = 1) -> None:
        self.waited, self.from_cache, self.attempts = waited, from_cache, attempts


class TestEstimated:
    """A pace that others keep."""

    def paces(self) -> Estimated:
        paces = Estimated(Throttle(1.0))
        assert paces.wait("a.test", 10.0) == 0
        assert paces.handed_out("a.test", 10.0) is False
        return paces

    def test_a_host_is_due_a_delay_after_it_was_handed_out(self) -> None:
        paces = self.paces()
        assert paces.wait("a.test", 10.2) == pytest.approx(0.8)
        paces.handed_out("a.test", 10.9)
        assert paces.wait("a.test", 10.9) == pytest.approx(1.1)

    def test_one_that_had_to_wait_elsewhere_is_slower_than_was_thought(self) -> None:
        paces = self.paces()
        paces.learn("a.test", 14.0, Came(waited=4.0))
        assert paces.wait("a.test", 14.0) == pytest.approx(4.0)
        paces.handed_out("a.test", 18.0)
        for moment in (18.1, 18.2, 18.3):
            paces.learn("a.test", moment, Came())
        paces.handed_out("a.test", 22.0)
        assert paces.wait("a.test", 22.0) == pytest.approx(1.0)

    def test_one_that_a_cache_answered_took_no_turn(self) -> None:
        paces = self.paces()
        paces.learn("a.test", 10.1, Came(from_cache=True, attempts=0))
        assert paces.wait("a.test", 10.1) <= 0

    def test_hosts_that_nobody_asks_for_are_forgotten(self) -> None:
        paces = Estimated(Throttle(1.0))
        for number in range(30_000):
            paces.handed_out(f"h{number}", float(number))
        assert len(paces._hosts) <= 20_001
