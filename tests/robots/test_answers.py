"""What the answer to /robots.txt means: RFC 9309, section 2.3.1."""

from __future__ import annotations

import pytest

from kreuz_sync import Retry, Robots
from kreuz_sync.robots.lines import LIMIT

from ..fakes import FakeClock
from ..loopback import (
    Answer,
    Raw,
    Server,
    answer,
    chunked,
    cut,
    garbage,
    gzipped,
    hang_up,
    redirect,
    reset,
    sequence,
    silent,
)
from .sessions import CLOSED, PRIVATE, asked, asking, opened, refused

CHALLENGE = answer(403, "<title>Just a moment...</title>", {"cf-mitigated": "challenge"}, content_type="text/html")
HIDDEN_CHALLENGE = answer(
    200, "<title>Just a moment...</title>", {"cf-mitigated": "challenge"}, content_type="text/html"
)


@pytest.fixture
def page(server: Server) -> str:
    return server.route("/page", answer(body="the page"))


class TestFile:
    """2xx: the file, whatever its Content-Type."""

    @pytest.mark.parametrize(
        "file",
        [
            answer(body=CLOSED),
            answer(body=CLOSED, content_type="text/html"),
            answer(203, CLOSED),
            chunked(CLOSED.encode()),
            gzipped(CLOSED),
            answer(body=b"\xef\xbb\xbf" + CLOSED.encode()),
        ],
    )
    def test_it_is_read(self, server: Server, page: str, file: Answer) -> None:
        server.route("/robots.txt", file)
        error = refused(asking(), page)
        assert (error.rule, error.unreachable, error.tag) == ("Disallow: /", False, "robots_disallowed")

    @pytest.mark.parametrize("file", [answer(204), answer(body=""), answer(body="<!DOCTYPE html><p>Welcome")])
    def test_one_without_rules_allows_everything(self, server: Server, page: str, file: Answer) -> None:
        server.route("/robots.txt", file)
        assert asking().get(page).text == "the page"

    def test_no_more_of_it_is_read_than_counts(self, server: Server, page: str) -> None:
        """Decoded: a small archive may be a large file."""
        lines = b"User-agent: *\nDisallow: /page\n" + b"#" * (LIMIT - 100) + b"\nDisallow: /" + b"x" * 50_000_000
        server.route("/robots.txt", gzipped(lines))
        session = asking()
        assert refused(session, page).rule == "Disallow: /page"
        assert session.robots.allowed(server.url("/xxx"))
        assert len(session.robots.text(page) or "") <= LIMIT + 1

    def test_a_limit_on_bodies_is_for_pages(self, server: Server, page: str) -> None:
        server.route("/robots.txt", chunked(b"User-agent: *\n", b"#" * 5000, b"\nDisallow: /page"))
        assert refused(asking(max_body=1000), page).rule == "Disallow: /page"


class TestUnavailable:
    """4xx: everything is allowed."""

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
    def test_a_client_error_allows_everything(self, server: Server, page: str, status: int) -> None:
        server.route("/robots.txt", answer(status, CLOSED))
        session = asking()
        assert [session.get(page).text for _ in range(3)] == ["the page"] * 3
        assert asked(server) == 1

    def test_also_if_its_page_breaks_off(self, server: Server, page: str) -> None:
        server.route("/robots.txt", answer(404, b"gone" * 100, cut=3))
        assert asking().get(page).ok


class TestUnreachable:
    """5xx, 429, and no answer at all: everything is disallowed."""

    @pytest.mark.parametrize(
        ("answered", "reason"),
        [
            (500, "it answered 500"),
            (503, "it answered 503"),
            (429, "it answered 429"),
            (hang_up(), "connection"),
            (reset(), "connection"),
            (garbage(), "protocol"),
            (cut(CLOSED.encode(), 3), "data_loss"),
            (answer(body=b"no gzip", fields={"Content-Encoding": "gzip"}), "data_loss"),
            (CHALLENGE, "a cloudflare challenge page in its place"),
            (HIDDEN_CHALLENGE, "a cloudflare challenge page in its place"),
        ],
    )
    def test_nothing_is_fetched(self, server: Server, page: str, answered: int | Answer | Raw, reason: str) -> None:
        server.route("/robots.txt", answered)
        session = asking(FakeClock())
        error = refused(session, page)
        assert (error.unreachable, error.rule, error.retry_after) == (True, "", 60.0)
        assert f"is unreachable ({reason})" in str(error)
        assert not session.robots.allowed(page)
        assert server.requests_to("/page") == []

    def test_a_server_that_says_nothing(self, server: Server, page: str) -> None:
        server.route("/robots.txt", silent())
        assert "(read_timeout)" in str(refused(asking(timeout=0.2), page))

    def test_nobody_who_listens(self) -> None:
        server = Server()
        url = server.url("/")
        server.close()
        assert "(connection_refused)" in str(refused(asking(), url))

    def test_a_certificate_that_is_not_trusted(self, tls_server: Server) -> None:
        assert "(ssl)" in str(refused(asking(), tls_server.url("/", host="localhost")))

    def test_unless_the_session_allows_it(self, server: Server, page: str) -> None:
        server.route("/robots.txt", 503)
        session = asking(on_unreachable="allow")
        assert session.get(page).ok and session.robots.allowed(page)

    def test_the_session_asks_again_as_it_would_for_a_page(self, server: Server, page: str) -> None:
        server.route("/robots.txt", sequence(503, answer(body=PRIVATE)))
        assert asking(retry=Retry(1, base=0.0)).get(page).ok
        assert asked(server) == 2


class TestRedirects:
    """3xx: followed to other hosts as well; the rules are those of the origin first asked."""

    def test_the_rules_are_for_the_first_origin(self, server: Server, second_server: Server, page: str) -> None:
        server.route("/robots.txt", redirect(second_server.url("/elsewhere")))
        second_server.route("/elsewhere", answer(body="User-agent: *\nDisallow: /page"))
        session = asking()
        assert refused(session, page).rule == "Disallow: /page"
        assert session.get(second_server.url("/page")).status_code == 404
        assert asked(second_server) == 1

    @pytest.mark.parametrize(("hops", "followed"), [(5, True), (6, False)])
    def test_five_in_a_row(self, server: Server, page: str, hops: int, followed: bool) -> None:
        """More are as no file at all."""
        server.route("/robots.txt", redirect("/1"))
        for hop in range(1, hops):
            server.route(f"/{hop}", redirect(f"/{hop + 1}"))
        server.route(f"/{hops}", answer(body=CLOSED))
        assert asking().robots.allowed(page) is not followed
        assert len(server.requests) == 6

    @pytest.mark.parametrize(
        "target", ["/robots.txt", "ftp://127.0.0.1/robots.txt", "http://", "http://[x", "file:///a"]
    )
    def test_one_that_leads_nowhere_is_no_file(self, server: Server, page: str, target: str) -> None:
        server.route("/robots.txt", redirect(target))
        assert asking().get(page).ok

    def test_one_to_a_server_that_is_not_there(self, server: Server, page: str) -> None:
        closed = Server()
        server.route("/robots.txt", redirect(closed.url("/robots.txt")))
        closed.close()
        assert refused(asking(), page).unreachable

    @pytest.mark.parametrize("status", [300, 304, 305])
    def test_one_without_a_target_is_no_file(self, server: Server, page: str, status: int) -> None:
        server.route("/robots.txt", status)
        assert asking().get(page).ok

    def test_their_bodies_do_not_cost_a_connection(self, server: Server, page: str) -> None:
        server.route("/robots.txt", redirect("/other", body=b"see there"))
        server.route("/other", answer(body=PRIVATE))
        asking().get(page)
        assert server.accepted == 1


class TestRequest:
    """What the server sees of the request for the file."""

    def test_it_is_the_session_without_its_credentials(self, server: Server, page: str) -> None:
        session = opened(
            robots=True,
            throttle=None,
            headers={"User-Agent": "MyBot/1.0", "Authorization": "secret", "X-Key": "secret"},
        )
        session.auth = ("user", "secret")
        session.cookies["id"] = "secret"
        url = page.replace("http://", "http://me:secret@")
        session.post(url, data="secret", headers={"X-Own": "secret"}, cookies={"own": "secret"})
        (request,) = server.requests_to("/robots.txt")
        assert (request.method, request.body, request.fields["User-Agent"]) == ("GET", b"", "MyBot/1.0")
        names = {name.lower() for name, _ in request.fields}
        assert names == {"host", "user-agent", "accept", "accept-encoding", "connection"}

    def test_credentials_of_an_origin_are_not_added(self, server: Server, page: str) -> None:
        session = opened(robots=True, throttle=None, auth={server.url("").rstrip("/"): ("user", "secret")})
        session.get(page)
        robots, fetched = server.requests
        assert "Authorization" not in robots.fields and "Authorization" in fetched.fields

    def test_neither_are_those_that_a_redirect_brings(self, server: Server, page: str) -> None:
        server.route("/robots.txt", redirect(server.url("/other", host="me:secret@127.0.0.2")))
        asking().get(page)
        assert "Authorization" not in server.requests_to("/other")[0].fields

    def test_its_cookies_do_not_get_into_the_jar(self, server: Server, page: str) -> None:
        server.route("/robots.txt", answer(body=PRIVATE, fields={"Set-Cookie": "a=1"}))
        session = asking()
        session.get(page)
        assert not session.cookies

    def test_it_has_the_agent_of_the_page(self, server: Server, page: str) -> None:
        """Also a rotated one; but the groups are those of the session's own."""
        server.route("/robots.txt", answer(body="User-agent: Mozilla\nDisallow: /"))
        session = asking(user_agents=["Mozilla/5.0 (x)"])
        assert session.get(page).ok
        assert [request.fields["User-Agent"] for request in server.requests] == ["Mozilla/5.0 (x)"] * 2

    def test_it_takes_the_sessions_certificates(self, tls_server: Server, authority) -> None:
        session = asking()
        session.verify = authority.bundle
        tls_server.route("/robots.txt", answer(body=PRIVATE))
        assert session.get(tls_server.url("/", host="localhost")).ok
        assert not session.robots.allowed(tls_server.url("/private/", host="localhost"))

    def test_it_takes_the_calls_certificates(self, tls_server: Server, authority) -> None:
        assert asking().get(tls_server.url("/", host="localhost"), verify=authority.bundle).ok

    def test_it_goes_through_the_proxy(self, server: Server, proxy, page: str, monkeypatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        server.route("/robots.txt", redirect(server.url("/other", host="127.0.0.2")))
        assert asking().get(page).ok
        other = server.url("/other", host="127.0.0.2")
        assert [request.target for request in proxy.requests] == [server.url("/robots.txt"), other, page]

    def test_a_redirect_may_need_a_proxy_that_the_page_does_not(self, server, proxy, page, monkeypatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        other = server.url("/other", host="127.0.0.2")
        server.route("/robots.txt", redirect(other))
        assert asking().get(page).ok
        assert [request.target for request in proxy.requests] == [other]

    def test_it_goes_through_the_adapter_that_is_mounted_for_it(self, server: Server, page: str) -> None:
        """Also where a redirect leads to another one."""
        sent = []

        from requests.adapters import HTTPAdapter

        class Noting(HTTPAdapter):
            def send(self, request, **options):
                sent.append(request.url)
                return super().send(request, **options)

        session = asking()
        session.mount("http://127.0.0.2", Noting())
        server.route("/robots.txt", redirect(server.url("/other", host="127.0.0.2")))
        session.get(page)
        assert sent == [server.url("/other", host="127.0.0.2")]

    def test_a_stack_on_a_session_of_requests_asks_too(self, server: Server, page: str) -> None:
        import requests

        from kreuz_sync import RobotsDisallowed, Stack
        from kreuz_sync.transport import Transport
        from kreuz_sync.wire import WireAdapter

        server.route("/robots.txt", answer(body=CLOSED))
        with requests.Session() as session:
            session.mount("http://", Stack([Robots()], Transport(WireAdapter())))
            with pytest.raises(RobotsDisallowed):
                session.get(page)
