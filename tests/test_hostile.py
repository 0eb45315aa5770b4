"""Servers that mean harm or are broken: a typed error, bounded time and memory, and the session goes on."""

import gzip
import itertools
import tracemalloc

import pytest
import requests

from kreuz_sync import KreuzError, Session
from kreuz_sync.errors import BodyTooLarge, DataLoss, ProtocolViolation

from .loopback import Ending, Raw, answer, chunked, redirect

MIB = 1024 * 1024


@pytest.fixture
def session():
    with Session(throttle=None, timeout=2, max_body=MIB) as one:
        yield one


@pytest.fixture(autouse=True)
def usable_afterwards(session, server):
    """Whatever a test's server did, the next request is served."""
    yield
    assert session.get(server.route("/fine", answer(body=b"fine"))).content == b"fine"


def endless(start, piece):
    """`start`, then `piece` again and again, until the client goes; bounded."""
    return Raw(itertools.chain([start], itertools.repeat(piece, 20_000)))


HEAD = b"HTTP/1.1 200 OK\r\n"


class TestHeaderSection:
    def test_endless_fields_are_refused(self, session, server):
        with pytest.raises(ProtocolViolation):
            session.get(server.route("/", endless(HEAD, b"X-Filler: value\r\n" * 50)))

    def test_an_endless_line_is_refused(self, session, server):
        with pytest.raises(ProtocolViolation):
            session.get(server.route("/", endless(HEAD + b"X-Filler: ", b"x" * 8192)))

    def test_an_endless_status_line_is_refused(self, session, server):
        with pytest.raises(ProtocolViolation):
            session.get(server.route("/", endless(b"HTTP/1.1 200 ", b"O" * 8192)))

    @pytest.mark.parametrize(
        "line",
        [
            b"\x00\x01\x02\r\n\r\n",
            b"HTTP/1.1 OK\r\n\r\n",
            b"HTTP/1.1 20\r\n\r\n",
            b"HTTP/1.1 99999 OK\r\n\r\n",
            b"HTTP/9.9 \r\n\r\n",
            b"ICY 200 OK\r\n\r\n",
            b"<html>hello</html>\r\n\r\n",
        ],
    )
    def test_a_status_line_that_is_none_is_refused(self, session, server, line):
        with pytest.raises(KreuzError) as caught:
            session.get(server.route("/", Raw([line])))
        assert caught.value.tag in ("protocol", "connection")

    @pytest.mark.parametrize("length", [b"-1", b"abc", b"1, 2", b"99999999999999999999999999", b"0x10", b""])
    def test_a_length_that_is_none_raises_a_typed_error_or_is_ignored(self, session, server, length):
        try:
            response = session.get(
                server.route("/", Raw([HEAD + b"Content-Length: " + length + b"\r\n\r\nabc", Ending.CLOSE]))
            )
        except KreuzError as error:
            assert error.tag in ("protocol", "data_loss", "body_too_large")
        else:
            assert response.content == b"abc"

    def test_fields_in_any_bytes_are_read(self, session, server):
        response = session.get(server.route("/", Raw([HEAD + b"X: \xff\xfe\r\nContent-Length: 0\r\n\r\n"])))
        assert response.status_code == 200


class TestBody:
    def test_an_endless_body_stops_at_the_limit(self, session, server):
        with pytest.raises(BodyTooLarge):
            session.get(server.route("/", endless(HEAD + b"Connection: close\r\n\r\n", b"x" * 65536)))

    def test_an_endless_chunked_body_stops_at_the_limit(self, session, server):
        start = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        with pytest.raises(BodyTooLarge):
            session.get(server.route("/", endless(start, b"4000\r\n" + b"x" * 0x4000 + b"\r\n")))

    @pytest.mark.parametrize("chunk", [b"zz\r\nabc\r\n", b"-5\r\nabc\r\n", b"\r\n\r\n", b"5\r\nab"])
    def test_broken_chunks_are_data_loss(self, session, server, chunk):
        """Those with a size that is none are a violation of the protocol too."""
        with pytest.raises(DataLoss) as caught:
            session.get(server.route("/", Raw([HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk, Ending.CLOSE])))
        assert isinstance(caught.value, ProtocolViolation) == (chunk != b"5\r\nab")

    @pytest.mark.parametrize("times", [1, 2, 3, 4])
    @pytest.mark.slow
    def test_a_bomb_is_defused_however_often_it_is_wrapped(self, session, server, times):
        bomb = b"\0" * 100 * MIB
        for _ in range(times):
            bomb = gzip.compress(bomb)
        fields = {"Content-Encoding": ", ".join(["gzip"] * times), "Content-Type": "text/html"}
        url = server.route("/", answer(body=bomb, fields=fields))
        tracemalloc.start()
        try:
            with pytest.raises((BodyTooLarge, DataLoss)):
                session.get(url)
            assert tracemalloc.get_traced_memory()[1] < 64 * MIB
        finally:
            tracemalloc.stop()

    def test_more_codings_than_anybody_needs_are_undecodable(self, session, server):
        fields = {"Content-Encoding": ", ".join(["gzip"] * 500)}
        with pytest.raises(KreuzError):
            session.get(server.route("/", answer(body=b"x" * 100, fields=fields)))

    def test_a_body_where_none_belongs_does_not_reach_the_next_answer(self, session, server):
        """204 with a body, then another request on the same session: its answer is its own."""
        url = server.route("/", Raw([b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHTTP/"]))
        assert session.get(url).content == b""
        assert session.get(server.route("/next", chunked(b"mine"))).content == b"mine"


class TestRedirects:
    def test_ten_thousand_of_them_end_at_the_limit(self, session, server):
        for number in range(40):
            server.route(f"/{number}", redirect(f"/{number + 1}"))
        with pytest.raises(requests.TooManyRedirects) as caught:
            session.get(server.url("/0"))
        assert len(server.requests) == session.max_redirects + 1 == caught.value.attempts
        assert caught.value.response is not None and caught.value.tag == "too_many_redirects"

    def test_a_redirect_to_itself_ends_too(self, session, server):
        url = server.route("/", redirect("/"))
        with pytest.raises(requests.TooManyRedirects):
            session.get(url)

    @pytest.mark.parametrize(
        "location", ["http://[::1", "http://", "foo://x/", "http://\x00/", "//", "http://a b/", "javascript:alert(1)"]
    )
    def test_a_target_that_is_none_is_an_error_of_requests(self, session, server, location):
        url = server.route("/", redirect(location))
        with pytest.raises(requests.RequestException):
            session.get(url)

    def test_a_redirect_with_a_huge_body_is_bounded(self, session, server):
        url = server.route("/", answer(302, fields={"Location": "/b"}, body=b"x" * 5 * MIB))
        server.route("/b", 200)
        with pytest.raises(BodyTooLarge):
            session.get(url)
