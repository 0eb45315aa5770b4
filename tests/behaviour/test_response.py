"""What a response says of itself."""

from __future__ import annotations

import datetime

import pytest
import requests

from ..loopback import Raw, answer, redirect


class TestItsAttributes:
    def test_all_of_them_are_there(self, session, server):
        response = session.get(server.route("/it", answer(203, body="text", reason="Fine", content_type="text/plain")))
        assert (response.status_code, response.reason, response.ok) == (203, "Fine", True)
        assert (response.url, response.encoding) == (server.url("/it"), "ISO-8859-1")
        assert (response.content, response.text) == (b"text", "text")
        assert response.headers["Content-Length"] == "4"
        assert (response.history, response.next, response.links) == ([], None, {})
        assert response.cookies.get_dict() == {}
        assert not response.is_redirect
        assert not response.is_permanent_redirect
        assert repr(response) == "<Response [203]>"

    def test_it_is_a_requests_response(self, session, server):
        assert isinstance(session.get(server.url()), requests.Response)

    def test_it_knows_its_request(self, session, server):
        response = session.post(server.url("/echo"), data=b"x", headers={"X": "1"})
        assert isinstance(response.request, requests.PreparedRequest)
        assert (response.request.method, response.request.url) == ("POST", server.url("/echo"))
        assert (response.request.body, response.request.headers["X"]) == (b"x", "1")

    def test_its_request_shows_what_was_sent(self, session, server):
        response = session.get(server.url(), auth=("me", "pw"))
        assert response.request.headers["Authorization"] == server.last.fields["Authorization"]
        assert response.request.headers["User-Agent"] == server.last.fields["User-Agent"]

    def test_elapsed_runs_to_the_header_section(self, session, server):
        response = session.get(server.route("/it", answer(delay=0.05)))
        assert isinstance(response.elapsed, datetime.timedelta)
        assert 0.05 <= response.elapsed.total_seconds() < 10

    def test_elapsed_does_not_count_a_stream(self, session, server):
        response = session.get(server.route("/it", answer(body=b"ab", piece=1, pause=0.2)), stream=True)
        assert response.elapsed.total_seconds() < 0.2
        assert response.content == b"ab"

    def test_elapsed_can_be_set(self, session, server):
        response = session.get(server.url())
        response.elapsed = datetime.timedelta(seconds=9)
        assert response.elapsed == datetime.timedelta(seconds=9)

    @pytest.mark.parametrize(
        ("status", "redirects", "permanently"),
        [(301, True, True), (302, True, False), (303, True, False), (307, True, False), (308, True, True)],
    )
    def test_it_knows_redirects(self, session, server, status, redirects, permanently):
        response = session.get(server.route("/it", redirect("/", status)), allow_redirects=False)
        assert (response.is_redirect, response.is_permanent_redirect) == (redirects, permanently)

    def test_its_attributes_can_be_set(self, session, server):
        response = session.get(server.url())
        response.status_code, response.url, response.reason = 299, "u", "r"
        response._content = b"other"
        response.mine = 1
        assert (response.status_code, response.url, response.content, response.mine) == (299, "u", b"other", 1)

    def test_status_words_can_be_compared(self, session, server):
        assert session.get(server.url()).status_code == requests.codes.ok

    def test_it_may_be_a_with_block(self, session, server):
        with session.get(server.url()) as response:
            assert response.text == "ok"


class TestStatuses:
    @pytest.mark.parametrize("status", [200, 201, 202, 203, 204, 205, 206, 226, 304, 400, 404, 418, 451, 500, 501, 507])
    def test_each_comes_as_it_is(self, session, server, status):
        response = session.get(server.route("/it", answer(status, body="" if status in (204, 205, 304) else "x")))
        assert response.status_code == status
        assert response.ok is (status < 400)

    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_those_that_a_retry_repeats_come_in_the_end(self, session, server, status, kind):
        response = session.get(server.route("/it", answer(status, body="busy")))
        assert (response.status_code, response.text) == (status, "busy")
        assert len(server.requests) == (3 if kind == "everything on" else 1)

    def test_an_early_100_is_passed_over(self, session, server):
        wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        assert session.get(server.route("/it", Raw([wire]))).text == "ok"

    def test_http_1_0_is_understood(self, session, server):
        response = session.get(server.route("/it", answer(body="old", version="HTTP/1.0", length=None)))
        assert (response.text, response.raw.version) == ("old", 10)
