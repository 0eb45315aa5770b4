"""The layer in a session: when it asks, what it refuses, and what it leaves alone."""

from __future__ import annotations

import logging
import pickle

import pytest
import requests

import kreuz_sync
from kreuz_sync import Cache, MemoryStore, Robots, RobotsDisallowed, Throttle
from kreuz_sync.order import polite_order

from ..fakes import FakeClock, ScriptedAdapter
from ..loopback import Server, answer, redirect, sequence, silent
from ..waiting import eventually
from .sessions import CLOSED, PRIVATE, asked, asking, opened, refused


class TestRefusal:
    def test_nothing_of_it_is_sent_and_no_turn_is_taken(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=PRIVATE))
        session = asking(throttle=Throttle(0.0))
        error = refused(session, server.url("/private/x"))
        assert [request.path for request in server.requests] == ["/robots.txt"]
        assert session.throttle.snapshot()["127.0.0.1"].starts == 1 and error.attempts == 0

    def test_it_says_what_who_and_why(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: MyBot\nDisallow: /private/ # all of it"))
        session = opened(robots=True, throttle=None, headers={"User-Agent": "MyBot/1.0 (+https://example.com)"})
        url = server.url("/private/x?token=abc&page=2", host="me:pw@127.0.0.1")
        error = refused(session, url)
        shown = server.url("/private/x?token=REDACTED&page=2", host="REDACTED@127.0.0.1")
        assert (error.url, error.rule, error.token) == (shown, "Disallow: /private/", "MyBot")
        assert str(error) == (f"{server.url('/robots.txt')} does not allow MyBot to fetch {shown}: Disallow: /private/")
        assert (error.unreachable, error.retry_after, error.ready_at) == (False, None, None)
        assert kreuz_sync.classify(error) == "robots_disallowed"

    def test_an_unreachable_file_says_when_it_is_asked_for_again(self, server: Server) -> None:
        server.route("/robots.txt", 503)
        clock = FakeClock()
        session = asking(clock)
        refused(session, server.url("/"))
        clock.advance(20)
        error = refused(session, server.url("/"))
        assert (error.unreachable, error.retry_after, error.ready_at) == (True, 40.0, clock.wall() + 40)

    def test_it_pickles(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        error = refused(asking(), server.url("/x?token=abc"), headers={"Authorization": "secret"})
        pickled = pickle.dumps(error)
        copy = pickle.loads(pickled)
        assert (copy.url, copy.rule, copy.token, str(copy)) == (error.url, error.rule, error.token, str(error))
        assert b"secret" not in pickled and b"abc" not in pickled

    def test_it_is_an_exception_of_requests(self) -> None:
        assert issubclass(RobotsDisallowed, requests.RequestException)

    def test_it_is_not_retried(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        refused(asking(retry=3), server.url("/"))
        assert len(server.requests) == 1

    @pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE"])
    def test_whatever_the_method(self, server: Server, method: str) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        with pytest.raises(RobotsDisallowed):
            asking().request(method, server.url("/"))

    def test_each_redirect_is_asked_about_at_its_own_origin(self, server: Server, second_server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /b"))
        second_server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /c"))
        server.route("/a", redirect(second_server.url("/b")))
        second_server.route("/b", redirect("/c"))
        error = refused(asking(), server.url("/a"))
        assert error.url == second_server.url("/c")
        assert [request.path for request in second_server.requests] == ["/robots.txt", "/b"]


class TestLeftAlone:
    def test_a_call_that_asks_for_nothing(self, server: Server) -> None:
        """Neither for itself nor for its redirects."""
        server.route("/robots.txt", answer(body=CLOSED))
        server.route("/a", redirect("/b"))
        server.route("/b", answer(body="b"))
        session = asking()
        assert session.get(server.url("/a"), robots=False).text == "b"
        assert session.send(session.prepare_request(requests.Request("GET", server.url("/b"))), robots=False).ok
        assert asked(server) == 0
        refused(session, server.url("/b"))

    def test_true_is_what_a_session_does_anyway(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        refused(asking(), server.url("/"), robots=True)

    def test_a_session_without_cannot_do_it_for_one_call(self, server: Server) -> None:
        with pytest.raises(ValueError, match=r"Session\(robots=True\)"):
            opened(throttle=None).get(server.url("/"), robots=True)
        assert opened(throttle=None).get(server.url("/"), robots=False).ok

    @pytest.mark.parametrize("value", [None, 0, "crawl-delay"])
    def test_what_is_neither_is_an_error(self, server: Server, value: object) -> None:
        with pytest.raises(TypeError, match="robots="):
            asking().get(server.url("/"), robots=value)

    def test_hosts_for_which_it_is_off(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        session = asking(hosts={"127.0.0.1": False, "127.0.0.2": "crawl-delay"})
        assert session.get(server.url("/")).ok and asked(server) == 0
        assert session.get(server.url("/", host="127.0.0.2")).ok and asked(server) == 1
        refused(session, server.url("/", host="127.0.0.3"))

    def test_hosts_for_which_it_is_on(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        session = asking(mode="crawl-delay", hosts={"127.0.0.2": True})
        assert session.get(server.url("/")).ok
        refused(session, server.url("/", host="127.0.0.2"))

    def test_the_file_itself(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        assert asking().get(server.url("/robots.txt")).text == CLOSED
        assert asked(server) == 1

    def test_other_schemes(self) -> None:
        session = asking()
        session.mount("data:", ScriptedAdapter())
        assert session.get("data:,x").ok

    def test_a_session_without_robots_has_no_such_layer(self) -> None:
        for value in (None, False):
            assert opened(robots=value, throttle=None).layers == ()


class TestPlace:
    def test_it_stands_inside_the_cache_and_outside_all_that_waits(self) -> None:
        order = polite_order(cache="cache", robots="robots", retry="retry", throttle="throttle", auth="auth")
        assert order == ("auth", "cache", "robots", "retry", "throttle")

    def test_what_is_stored_needs_no_leave(self, server: Server) -> None:
        server.route("/robots.txt", sequence(answer(body=PRIVATE), answer(body=CLOSED)))
        clock = FakeClock()
        session = asking(clock, cache=Cache(MemoryStore(), ttl=10 * 24 * 3600, clock=clock))
        assert not session.get(server.url("/")).from_cache
        clock.advance(25 * 3600)
        assert session.get(server.url("/")).from_cache
        refused(session, server.url("/other"))

    def test_the_file_is_stored_as_any_page(self, server: Server) -> None:
        """A program that starts again finds it there."""
        server.route("/robots.txt", answer(body=CLOSED, fields={"Cache-Control": "max-age=3600"}))
        cache = Cache(MemoryStore(), policy="rfc9111")
        for _ in range(2):
            refused(asking(cache=cache), server.url("/"))
        assert asked(server) == 1

    def test_also_if_it_is_asked_for_by_hand(self, server: Server) -> None:
        server.route("/robots.txt", sequence(answer(body=PRIVATE), answer(body=CLOSED)))
        clock = FakeClock()
        cache = Cache(MemoryStore(), ttl=0, clock=clock)
        assert asking(clock, cache=cache).robots.allowed(server.url("/"))
        clock.advance(2 * 24 * 3600)
        assert not asking(clock, cache=cache).robots.allowed(server.url("/"))

    def test_but_for_no_longer_than_a_day(self, server: Server) -> None:
        server.route("/robots.txt", sequence(answer(body=PRIVATE), answer(body=CLOSED)))
        clock = FakeClock()
        cache = Cache(MemoryStore(), ttl=0, clock=clock)  # for ever
        assert asking(clock, cache=cache).get(server.url("/")).ok
        clock.advance(2 * 24 * 3600)
        refused(asking(clock, cache=cache), server.url("/other"))
        assert asked(server) == 2

    def test_what_is_renewed_in_the_background_is_asked_about_too(self, server: Server) -> None:
        """With the same leave as the call that caused it."""
        clock = FakeClock()
        fields = {"Cache-Control": "max-age=10, stale-while-revalidate=1000000"}
        server.route("/page", answer(body="page", fields=fields))
        server.route("/robots.txt", sequence(answer(body=PRIVATE), answer(body=CLOSED)))
        session = asking(clock, cache=Cache(MemoryStore(), policy="rfc9111", clock=clock))
        session.get(server.url("/page"))
        clock.advance(24 * 3600)
        assert session.get(server.url("/page")).from_cache
        eventually(lambda: asked(server) == 2)
        session.close()
        assert len(server.requests_to("/page")) == 1
        assert session.get(server.url("/page"), robots=False).from_cache
        eventually(lambda: len(server.requests_to("/page")) == 2)
        session.close()

    def test_layers_of_ones_own_order(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: MyBot\nDisallow: /"))
        session = opened(layers=[Throttle(0.0), Robots()], headers={"User-Agent": "MyBot/1"})
        assert refused(session, server.url("/")).token == "MyBot"

    def test_it_does_not_go_beside_a_whole_stack(self) -> None:
        with pytest.raises(ValueError, match="robots"):
            opened(layers=[], robots=True)
        opened(layers=[], robots=False)


class TestDeadline:
    def test_waiting_for_the_file_counts(self, server: Server) -> None:
        server.route("/robots.txt", silent())
        with pytest.raises(kreuz_sync.DeadlineExceeded) as caught:
            asking().get(server.url("/"), deadline=0.3)
        assert caught.value.deadline == 0.3

    def test_so_does_its_turn(self) -> None:
        clock = FakeClock()
        throttle = Throttle(0.0, clock=clock)
        throttle.set_crawl_delay("a.test", 60)
        throttle.acquire("a.test")
        wire = ScriptedAdapter(404)
        session = asking(clock, throttle=throttle, adapter=wire)
        with pytest.raises(kreuz_sync.DeadlineExceeded):
            session.get("http://a.test/", deadline=5)
        assert wire.requests == []

    def test_the_answer_says_how_long_it_waited_for_both(self) -> None:
        clock = FakeClock()
        session = asking(clock, throttle=Throttle(2.0, clock=clock), adapter=ScriptedAdapter(404))
        session.get("http://a.test/1")
        response = session.get("http://a.test/2")
        assert (response.waited, response.attempts) == (2.0, 1)


class TestGuard:
    def test_a_robots_txt_does_not_lead_into_a_private_network(self, server: Server) -> None:
        """Every hop of it is looked at, as those of a page are."""
        from kreuz_sync import AddressGuard

        guard = AddressGuard(allow=["127.0.0.1"])
        server.route("/robots.txt", redirect(server.url("/inside", host="127.0.0.2")))
        error = refused(asking(deny_private=guard), server.url("/"))
        assert error.unreachable and server.requests_to("/inside") == []


class TestLog:
    def test_it_says_what_it_makes_of_an_answer(self, server: Server, caplog: pytest.LogCaptureFixture) -> None:
        server.route("/robots.txt", 503)
        with caplog.at_level(logging.INFO, "kreuz_sync.robots"):
            refused(asking(), server.url("/"))
        assert caplog.messages == [f"{server.url('/robots.txt')} is unreachable: it answered 503"]
