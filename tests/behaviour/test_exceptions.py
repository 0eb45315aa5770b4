"""Errors: requests' exception for each event, with its request, and a session that goes on."""

from __future__ import annotations

import pytest
import requests
import urllib3
from requests import exceptions as theirs

from ..loopback import Ending, Raw, Server, answer, cut_chunked, garbage, hang_up, redirect, reset, silent


@pytest.fixture
def gone():
    """The URL of a server that has stopped."""
    with Server() as closed:
        pass
    return closed.url()


class TestEvents:
    @pytest.mark.parametrize(
        ("what", "error"),
        [
            (hang_up(), requests.ConnectionError),
            (reset(), requests.ConnectionError),
            (garbage(), requests.ConnectionError),
            (garbage(b"HTTP/1.1 abc\r\n\r\n"), requests.ConnectionError),
            (garbage(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), requests.ConnectionError),
            (garbage(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n\r\n"), requests.ConnectionError),
            (silent(), requests.ReadTimeout),
            (cut_chunked(b"abc"), theirs.ChunkedEncodingError),
            (garbage(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), theirs.ChunkedEncodingError),
            (answer(body=b"not gzip", fields={"Content-Encoding": "gzip"}), theirs.ContentDecodingError),
            (redirect("/it"), requests.TooManyRedirects),
            (redirect("ftp://a.test/"), theirs.InvalidSchema),
        ],
        ids=lambda value: None,
    )
    def test_each_has_its_exception(self, session, server, what, error):
        url = server.route("/it", what)
        with pytest.raises(error) as caught:
            session.get(url, timeout=0.2)
        assert isinstance(caught.value, requests.RequestException)
        assert isinstance(caught.value, OSError)
        assert str(caught.value)
        assert session.get(server.url()).text == "ok"

    def test_nobody_there(self, session, gone):
        with pytest.raises(requests.ConnectionError) as caught:
            session.get(gone)
        assert caught.value.request.url == gone
        assert caught.value.response is None
        assert not isinstance(caught.value, requests.Timeout)

    def test_ours_says_it_in_words_and_keeps_the_cause(self, session, gone, ours):
        """Where ours differs: `args` hold a text without credentials, in place of urllib3's error."""
        with pytest.raises(requests.ConnectionError) as caught:
            session.get(gone)
        (said,) = caught.value.args
        assert isinstance(said, str if ours else urllib3.exceptions.MaxRetryError)
        assert isinstance(caught.value.__cause__, ConnectionRefusedError) is ours

    def test_ours_hides_credentials_in_its_text(self, session, server, ours):
        with pytest.raises(requests.HTTPError) as caught:
            session.get(server.route("/it", 404), params={"token": "s3cret"}).raise_for_status()
        assert ("s3cret" in str(caught.value)) is not ours

    def test_cookies_of_a_broken_answer(self, session, server, ours):
        """Where ours differs: a broken body fails the attempt before anything of it is kept."""
        with pytest.raises(theirs.ChunkedEncodingError):
            session.get(server.route("/it", cut_chunked(b"abc", fields={"Set-Cookie": "a=1"})))
        assert session.cookies.get_dict() == ({} if ours else {"a": "1"})

    def test_a_name_without_address(self, session):
        with pytest.raises(requests.ConnectionError):
            session.get("http://nowhere.invalid/")

    def test_a_connection_that_was_closed_while_idle_is_replaced(self, session, server):
        url = server.route("/it", Raw([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", Ending.CLOSE]))
        for _ in range(3):
            assert session.get(url).text == "x"
            server.wait_until_idle()

    @pytest.mark.parametrize(
        "headers",
        [
            {"X-A": "a\r\nb"},
            {"X-A": "a\nInjected: yes"},
            {"X-A": 1},
            {"X-A": ["v"]},
            {" X-A": "v"},
            {"X\nA": "v"},
            {"X-A": " v"},
        ],
    )
    def test_impossible_fields_are_refused(self, session, server, headers):
        with pytest.raises(theirs.InvalidHeader):
            session.get(server.url(), headers=headers)
        assert server.requests == []


class TestStatusErrors:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 410, 418, 429, 451, 499, 500, 501, 502, 503, 599])
    def test_they_come_when_asked_for(self, session, server, status):
        response = session.get(server.route("/it", answer(status, reason="Some Reason")))
        assert response.status_code == status
        with pytest.raises(requests.HTTPError) as caught:
            response.raise_for_status()
        side = "Client" if status < 500 else "Server"
        assert str(caught.value) == f"{status} {side} Error: Some Reason for url: {server.url('/it')}"
        assert caught.value.response is response
        assert caught.value.request is response.request

    @pytest.mark.parametrize("status", [200, 204, 206, 304, 399, 600, 999])
    def test_other_answers_are_none(self, session, server, status):
        response = session.get(server.route("/it", status))
        assert response.raise_for_status() is None
        assert response.ok

    @pytest.mark.parametrize("reason", ["\u00fc", "\u00fc".encode().decode("latin-1"), ""])
    def test_any_reason_can_be_shown(self, session, server, reason):
        response = session.get(server.route("/it", answer(404, reason=reason)))
        with pytest.raises(requests.HTTPError, match="404 Client Error: "):
            response.raise_for_status()

    @pytest.mark.parametrize("raw", ["\u00fc".encode(), b"\xfc"])
    def test_a_reason_may_be_bytes(self, session, server, raw):
        response = session.get(server.route("/it", 404))
        response.reason = raw
        with pytest.raises(requests.HTTPError, match="404 Client Error: \u00fc for url"):
            response.raise_for_status()

    def test_a_response_is_true_if_it_is_ok(self, session, server):
        assert session.get(server.url())
        assert not session.get(server.route("/it", 404))


class TestTheFamily:
    def test_one_except_catches_all(self, session, server, gone):
        for url in (gone, server.route("/a", hang_up()), server.route("/b", silent()), "nonsense", "x://y"):
            with pytest.raises(requests.RequestException):
                session.get(url, timeout=0.1)

    def test_old_names_still_catch(self, session, gone):
        with pytest.raises(requests.exceptions.ConnectionError):
            session.get(gone)
        with pytest.raises(IOError):
            session.get(gone)
