"""A robots.txt that does not end: it has a time of its own, and a failure is remembered."""

from __future__ import annotations

import pytest
import requests
import urllib3

from kreuz_sync import DeadlineExceeded
from kreuz_sync.robots.fetch import longest

from ..loopback import ForwardProxy, Server, answer, drip, redirect
from .sessions import asked, opened, refused

FILE = b"User-agent: *\nDisallow: /x\n" * 1000


@pytest.fixture
def page(server: Server) -> str:
    server.route("/robots.txt", drip(FILE, piece=1, pause=0.05))
    return server.route("/page", answer(body="the page"))


class TestTimeOfItsOwn:
    @pytest.mark.parametrize(
        ("timeout", "seconds"),
        [
            (30.0, 30.0),
            (2, 10.0),
            ((60.0, 1.0), 5.0),
            ((1.0, None), 30.0),
            (None, 30.0),
            ((), 30.0),
            (urllib3.Timeout(read=2), 10.0),
        ],
    )
    def test_it_follows_the_time_out(self, timeout: object, seconds: float) -> None:
        assert longest(timeout) == seconds

    def test_then_the_page_goes_on_if_only_the_pace_is_asked_for(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots="crawl-delay", timeout=0.1)
        assert [session.get(page, timeout=10).text if asked(server) else session.get(page).text for _ in "ab"] == [
            "the page",
            "the page",
        ]
        assert asked(server) == 1

    def test_then_the_origin_is_unreachable(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots=True, timeout=0.1)
        assert [refused(session, page).unreachable for _ in "ab"] == [True, True]
        assert asked(server) == 1

    def test_the_page_itself_has_as_long_as_ever(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /x"))
        slow = server.route("/slow", drip(b"x" * 30, piece=1, pause=0.03))
        assert len(opened(throttle=None, robots=True, timeout=0.1).get(slow).content) == 30

    def test_a_retry_is_within_it(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots=True, timeout=0.1, retry=3)
        assert refused(session, page).unreachable


class TestDeadlineInTheBody:
    """The call's deadline comes first."""

    def test_the_next_pages_do_not_ask_anew(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots="crawl-delay")
        assert [session.get(page, deadline=1.2).text for _ in "abc"] == ["the page"] * 3
        assert asked(server) == 1

    def test_nor_where_the_file_is_obeyed(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots=True)
        with pytest.raises(DeadlineExceeded):
            session.get(page, deadline=1.0)
        assert refused(session, page, deadline=1.0).unreachable
        assert asked(server) == 1

    def test_one_that_left_no_time_says_nothing_of_the_server(self, server: Server, page: str) -> None:
        session = opened(throttle=None, robots=True)
        for _ in "ab":
            with pytest.raises(DeadlineExceeded):
                session.get(page, deadline=0.1)
        assert asked(server) == 2


class TestImpossibleTargets:
    """Of redirects."""

    @pytest.mark.parametrize("target", ["http://a.test:99999/robots.txt", "http://a.test:port/robots.txt"])
    def test_an_impossible_port_is_no_http_url(self, server: Server, target: str) -> None:
        """So there is no file, and everything is allowed."""
        server.route("/robots.txt", redirect(target))
        page = server.route("/page", answer(body="the page"))
        assert opened(throttle=None, robots=True).get(page).text == "the page"

    def test_a_host_with_an_escaped_delimiter_is_unreachable(self, server: Server) -> None:
        with ForwardProxy() as proxy:
            proxy.names["site.test"] = server.address
            server.route("/robots.txt", redirect("http://a%2fb/robots.txt"))
            session = opened(throttle=None, robots=True)
            session.trust_env, session.proxies = False, {"http": proxy.url("/")}
            assert refused(session, f"http://site.test:{server.port}/").unreachable

    def test_a_page_there_is_no_url(self) -> None:
        for url in ("http://a%2fb/", "http://a%40b/", "http://a%3Fb:80/"):
            with pytest.raises(requests.exceptions.InvalidURL):
                opened(throttle=None).get(url)
