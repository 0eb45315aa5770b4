"""Streams: how a body is read piece by piece, and when its connection is given back."""

from __future__ import annotations

import io
import pickle
import shutil
import threading

import pytest
import requests
import urllib3

from ..loopback import answer, chunked, cut, cut_chunked, drip, gzipped

BODY = bytes(range(256)) * 40


class TestIterContent:
    @pytest.mark.parametrize("size", [1, 7, 1000, 10240, 99999])
    def test_pieces_have_the_size_asked_for(self, session, server, size):
        response = session.get(server.route("/it", answer(body=BODY)), stream=True)
        pieces = list(response.iter_content(size))
        assert b"".join(pieces) == BODY
        assert {len(piece) for piece in pieces[:-1]} <= {size}

    def test_none_means_as_it_comes(self, session, server):
        response = session.get(server.route("/it", answer(body=BODY)), stream=True)
        assert b"".join(response.iter_content(None)) == BODY

    def test_chunks_are_given_on_as_they_come(self, session, server):
        """The second is not sent before the first has been seen."""
        gate = threading.Event()
        response = session.get(server.route("/it", chunked(b"one", b"two", pause=gate)), stream=True)
        pieces = response.iter_content(None)
        assert next(pieces) == b"one"
        gate.set()
        assert list(pieces) == [b"two"]

    def test_a_body_that_was_read_is_cut_anew(self, session, server):
        response = session.get(server.route("/it", answer(body=b"abcde")))
        assert list(response.iter_content(2)) == [b"ab", b"cd", b"e"]
        assert list(response.iter_content(3)) == [b"abc", b"de"]

    def test_a_stream_is_read_once(self, session, server):
        response = session.get(server.route("/it", answer(body=b"abcde")), stream=True)
        list(response.iter_content(2))
        with pytest.raises(requests.exceptions.StreamConsumedError):
            response.iter_content(2)
        with pytest.raises(RuntimeError):
            response.content  # noqa: B018

    def test_content_after_a_beginning_is_an_error(self, session, server):
        response = session.get(server.route("/it", answer(body=b"abcde")), stream=True)
        next(response.iter_content(2))
        response.close()
        assert not response.raw.readable() or response.raw.closed

    @pytest.mark.parametrize("size", ["1", 1.5, b"1"])
    def test_the_size_is_a_whole_number(self, session, server, size):
        response = session.get(server.url(), stream=True)
        with pytest.raises(TypeError):
            response.iter_content(size)
        response.close()

    def test_it_decodes_the_coding(self, session, server):
        response = session.get(server.route("/it", gzipped(BODY)), stream=True)
        assert b"".join(response.iter_content(100)) == BODY

    def test_it_decodes_text_across_pieces(self, session, server):
        text = "\u00fc\u20ac" * 10
        server.route("/it", answer(body=text, content_type="text/plain; charset=utf-8"))
        response = session.get(server.url("/it"), stream=True)
        pieces = list(response.iter_content(1, decode_unicode=True))
        assert "".join(pieces) == text
        assert all(isinstance(piece, str) for piece in pieces)

    def test_text_of_unknown_charset_stays_bytes(self, session, server):
        response = session.get(server.route("/it", answer(body=b"abc")), stream=True)
        assert list(response.iter_content(2, decode_unicode=True)) == [b"ab", b"c"]

    def test_an_empty_body_gives_nothing(self, session, server):
        response = session.get(server.route("/it", 200), stream=True)
        assert list(response.iter_content(10)) == []

    def test_iterating_the_response_gives_128_bytes_at_a_time(self, session, server):
        response = session.get(server.route("/it", answer(body=b"x" * 300)), stream=True)
        assert [len(piece) for piece in response] == [128, 128, 44]


class TestIterLines:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("size", [1, 3, 512])
    def test_lines_come_whole(self, session, server, stream, size):
        response = session.get(server.route("/it", answer(body=b"one\ntwo\nthree")), stream=stream)
        assert list(response.iter_lines(chunk_size=size)) == [b"one", b"two", b"three"]

    def test_the_end_of_a_line_may_be_chosen(self, session, server):
        response = session.get(server.route("/it", answer(body=b"a;b;c")), stream=True)
        assert list(response.iter_lines(delimiter=b";")) == [b"a", b"b", b"c"]

    def test_they_may_be_text(self, session, server):
        server.route("/it", answer(body="\u00fc\n\u20ac", content_type="text/plain; charset=utf-8"))
        response = session.get(server.url("/it"), stream=True)
        assert list(response.iter_lines(decode_unicode=True)) == ["\u00fc", "\u20ac"]

    def test_a_line_is_given_before_the_next_is_sent(self, session, server):
        gate = threading.Event()
        response = session.get(server.route("/it", chunked(b"one\n", b"two\n", b"three", pause=gate)), stream=True)
        lines = response.iter_lines(chunk_size=1)
        assert next(lines) == b"one"
        gate.set()
        assert list(lines) == [b"two", b"three"]


class TestRaw:
    def test_it_gives_the_bytes_of_the_wire(self, session, server):
        what = gzipped(b"text")
        response = session.get(server.route("/it", what), stream=True)
        assert response.raw.read() == what.body

    def test_it_decodes_if_asked(self, session, server):
        response = session.get(server.route("/it", gzipped(b"text")), stream=True)
        assert response.raw.read(decode_content=True) == b"text"

    def test_it_reads_so_many_bytes(self, session, server):
        response = session.get(server.route("/it", answer(body=b"abcde")), stream=True)
        assert (response.raw.read(2), response.raw.read(2), response.raw.read(), response.raw.read()) == (
            b"ab",
            b"cd",
            b"e",
            b"",
        )

    def test_it_is_a_file(self, session, server):
        response = session.get(server.route("/it", answer(body=BODY)), stream=True)
        target = io.BytesIO()
        shutil.copyfileobj(response.raw, target)
        assert target.getvalue() == BODY

    def test_it_is_urllib3s(self, session, server):
        response = session.get(server.route("/it", answer(fields=[("X-A", "1"), ("X-A", "2")])), stream=True)
        assert isinstance(response.raw, urllib3.HTTPResponse)
        assert response.raw.headers.getlist("X-A") == ["1", "2"]
        assert (response.raw.status, response.raw.version) == (200, 11)
        response.close()

    def test_it_is_at_its_end_when_the_body_was_read(self, session, server):
        response = session.get(server.route("/it", answer(body=BODY)))
        assert response.raw.read() == b""

    def test_it_may_be_wrapped(self, session, server):
        response = session.get(server.route("/it", answer(body="eins\nzwei\n")), stream=True)
        response.raw.auto_close = False  # urllib3's, for wrappers that look once more after the end
        assert list(io.TextIOWrapper(response.raw)) == ["eins\n", "zwei\n"]


class TestContent:
    def test_a_stream_may_be_read_whole(self, session, server):
        response = session.get(server.route("/it", answer(body=BODY)), stream=True)
        assert not response._content_consumed
        assert response.content == BODY
        assert response.content == BODY

    def test_the_session_may_stream_always(self, session, server):
        session.stream = True
        response = session.get(server.route("/it", answer(body=BODY)))
        assert not response._content_consumed
        assert response.content == BODY

    def test_a_call_may_stream_less_than_its_session(self, session, server):
        session.stream = True
        assert session.get(server.url(), stream=False)._content_consumed

    def test_a_header_section_comes_before_the_body(self, session, server):
        gate = threading.Event()
        response = session.get(server.route("/it", drip(b"ab", pause=gate)), stream=True)
        assert response.status_code == 200
        gate.set()
        assert response.content == b"ab"


class TestClosedEarly:
    """Who closes a response wants no more of it: what is read after that is empty, and no error."""

    @pytest.fixture(params=["with a length", "compressed"])
    def url(self, request, server):
        return server.route("/it", answer(body=BODY) if request.param == "with a length" else gzipped(BODY))

    def test_content_is_empty(self, session, url):
        with session.get(url, stream=True) as response:
            pass
        assert (response.content, response.text) == (b"", "")

    def test_an_iteration_ends(self, session, url):
        """With what had been decoded already, if anything."""
        response = session.get(url, stream=True)
        pieces = response.iter_content(len(BODY) // 2)
        first = next(pieces)
        response.close()
        assert BODY.startswith(first + b"".join(pieces))

    def test_a_copy_is_empty(self, session, url):
        response = session.get(url, stream=True)
        response.close()
        assert pickle.loads(pickle.dumps(response)).content == b""

    def test_an_abandoned_iteration_closes_nothing(self, session, url):
        response = session.get(url, stream=True)
        pieces = response.iter_content(10)
        first = next(pieces)
        pieces.close()
        assert first + response.content == BODY


class TestConnections:
    def test_a_body_that_was_read_gives_its_connection_back(self, session, server):
        url = server.route("/it", answer(body=BODY))
        for read in (
            lambda response: response.content,
            lambda response: list(response.iter_content(100)),
            lambda response: response.raw.read(),
            lambda response: list(response.iter_lines()),
        ):
            read(session.get(url, stream=True))
        session.get(url)
        assert server.accepted == 1

    def test_a_stream_keeps_its_connection(self, session, server):
        url = server.route("/it", answer(body=BODY))
        first = session.get(url, stream=True)
        session.get(url)
        assert server.accepted == 2
        assert first.content == BODY

    def test_closing_early_gives_it_up(self, session, server):
        url = server.route("/it", answer(body=BODY * 100))
        response = session.get(url, stream=True)
        next(response.iter_content(10))
        response.close()
        assert session.get(url).status_code == 200

    def test_a_with_block_closes(self, session, server):
        with session.get(server.route("/it", answer(body=BODY * 100)), stream=True) as response:
            assert response.raw.read(3) == BODY[:3]
        assert response.raw.closed or response.raw.isclosed()
        session.close()
        server.wait_until_idle()

    def test_closing_twice_is_harmless(self, session, server):
        response = session.get(server.url(), stream=True)
        response.close()
        response.close()

    @pytest.mark.parametrize("method", ["HEAD", "GET"])
    def test_an_answer_without_body_gives_it_back_too(self, session, server, method):
        server.route("/it", 204 if method == "GET" else answer(body=BODY))
        for _ in range(3):
            session.request(method, server.url("/it"))
        assert server.accepted == 1

    def test_a_session_used_up_to_its_end_leaves_nothing_open(self, session, server):
        session.get(server.url(), stream=True)
        session.get(server.url())
        session.close()
        del session


class TestBrokenStreams:
    @pytest.mark.parametrize("stream", [False, True])
    def test_missing_chunks_are_an_error(self, session, server, stream):
        url = server.route("/it", cut_chunked(b"abc"))
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            session.get(url, stream=stream).content  # noqa: B018

    @pytest.mark.parametrize("stream", [False, True])
    def test_missing_bytes_are_an_error(self, session, server, stream, ours):
        """With urllib3 1.26 requests takes a cut body for a whole one."""
        url = server.route("/it", cut(b"abcdef", 3))
        if not ours and urllib3.__version__.startswith("1."):
            assert session.get(url, stream=stream).content == b"abc"
            return
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            session.get(url, stream=stream).content  # noqa: B018

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_wrong_coding_is_an_error(self, session, server, stream):
        url = server.route("/it", answer(body=b"not gzip", fields={"Content-Encoding": "gzip"}))
        with pytest.raises(requests.exceptions.ContentDecodingError):
            session.get(url, stream=stream).content  # noqa: B018

    def test_the_session_is_usable_afterwards(self, session, server):
        with pytest.raises(requests.RequestException):
            session.get(server.route("/it", cut_chunked(b"abc")))
        assert session.get(server.url()).text == "ok"

    def test_what_came_before_is_given_out(self, session, server):
        response = session.get(server.route("/it", cut_chunked(b"abc")), stream=True)
        pieces = response.iter_content(3)
        assert next(pieces) == b"abc"
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            next(pieces)
