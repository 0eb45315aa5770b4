"""session.robots"""

from __future__ import annotations

import pytest
import requests

from kreuz_sync import DeadlineExceeded, Session
from kreuz_sync.throttle import Throttle

from ..fakes import ScriptedAdapter
from ..loopback import Server, answer, silent
from .sessions import CLOSED, PRIVATE, asked, asking, opened

FILE = "Sitemap: http://a.test/sitemap.xml\nUser-agent: *\nDisallow: /private/\nCrawl-delay: 2"


class TestAnswers:
    @pytest.fixture
    def session(self) -> Session:
        def respond(request: requests.PreparedRequest) -> object:
            return (200, (), FILE.encode()) if request.url == "http://a.test/robots.txt" else 404

        return asking(adapter=ScriptedAdapter(respond))

    def test_what_is_allowed(self, session: Session) -> None:
        allowed = session.robots.allowed
        assert allowed("http://a.test/") and allowed("http://a.test") and allowed("http://a.test/robots.txt")
        assert not allowed("http://a.test/private/x") and not allowed("HTTP://A.test/private/ö#x")
        assert allowed("http://b.test/private/x")
        assert allowed("ftp://a.test/private/x")

    def test_the_delay_of_a_host_or_a_url(self, session: Session) -> None:
        delay = session.robots.crawl_delay
        assert (delay("http://a.test/x"), delay("a.test"), delay("a.test:80"), delay("b.test")) == (2.0, 2.0, 2.0, None)

    def test_sitemaps_and_text(self, session: Session) -> None:
        assert session.robots.sitemaps("http://a.test/x") == ("http://a.test/sitemap.xml",)
        assert session.robots.text("http://a.test/x") == FILE
        assert (session.robots.sitemaps("http://b.test/"), session.robots.text("http://b.test/")) == ((), "")

    @pytest.mark.parametrize("url", ["", "a.test/x", "http://", "http://*"])
    def test_what_is_no_url_is_as_in_requests(self, session: Session, url: str) -> None:
        with pytest.raises(requests.exceptions.InvalidURL if url.startswith("http") else ValueError):
            session.robots.allowed(url)

    def test_a_host_that_is_off_is_not_asked(self, server: Server) -> None:
        session = asking(hosts={"127.0.0.1": False})
        assert session.robots.allowed(server.url("/")) and asked(server) == 0


class TestUnreachable:
    def test_it_is_no_error(self, server: Server) -> None:
        server.route("/robots.txt", 503)
        robots = asking().robots
        url = server.url("/")
        assert (robots.allowed(url), robots.crawl_delay(url), robots.sitemaps(url), robots.text(url)) == (
            *(False, None, ()),
            None,
        )
        assert asked(server) == 1


class TestRequest:
    def test_it_is_the_sessions(self, server: Server, proxy) -> None:
        """With its proxies, its pace and its agent; and what it brings serves the session."""
        server.route("/robots.txt", answer(body=PRIVATE))
        session = asking(throttle=Throttle(0.0), headers={"User-Agent": "MyBot/1"})
        session.proxies = {"http": proxy.url()}
        assert not session.robots.allowed(server.url("/private/"))
        assert session.get(server.url("/")).ok
        assert asked(server) == 1 and server.requests[0].fields["User-Agent"] == "MyBot/1"
        assert len(proxy.requests) == 2 and session.throttle.snapshot()["127.0.0.1"].starts == 2

    def test_its_certificates_too(self, tls_server: Server, authority) -> None:
        tls_server.route("/robots.txt", answer(body=PRIVATE))
        session = asking()
        session.verify = authority.bundle
        assert not session.robots.allowed(tls_server.url("/private/", host="localhost"))

    def test_its_time_out_and_its_deadline(self, server: Server) -> None:
        server.route("/robots.txt", silent())
        assert not asking(timeout=0.2).robots.allowed(server.url("/"))
        with pytest.raises(DeadlineExceeded):
            asking(deadline=0.2).robots.allowed(server.url("/"))


class TestSessionWithoutRobots:
    def test_it_answers_and_does_not_act(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED + "\nCrawl-delay: 9"))
        session = opened(throttle=0.0)
        assert not session.robots.allowed(server.url("/")) and session.robots.crawl_delay(server.url("/")) == 9
        assert session.get(server.url("/")).ok and session.get(server.url("/")).waited == 0
        assert asked(server) == 1

    def test_it_speaks_as_the_session(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: MyBot\nDisallow: /"))
        assert not opened(throttle=None, headers={"User-Agent": "MyBot/1"}).robots.allowed(server.url("/"))
        assert opened(throttle=None).robots.allowed(server.url("/"))


class TestOldCode:
    """Subclasses may have used the name for something else."""

    def test_an_attribute_of_that_name_is_theirs(self, server: Server) -> None:
        class Crawler(Session):
            def __init__(self) -> None:
                super().__init__(robots=True, throttle=None)
                self.robots = {"a.test": "a parser"}  # type: ignore[assignment]

        server.route("/robots.txt", answer(body=PRIVATE))
        with Crawler() as crawler:
            assert crawler.get(server.url("/")).ok and crawler.robots == {"a.test": "a parser"}
            with pytest.raises(requests.RequestException):
                crawler.get(server.url("/private/"))

    def test_so_is_a_property_or_a_method(self, server: Server) -> None:
        class Crawler(Session):
            @property
            def robots(self) -> str:  # type: ignore[override]
                return "mine"

        with Crawler(throttle=None) as crawler:
            assert crawler.get(server.url("/")).ok and crawler.robots == "mine"
