"""The watch over a body: cut, too large, undecodable. Lengths on the wire, sizes when decoded."""

import gzip
import tracemalloc
import zlib

import pytest
import requests
import urllib3
from requests import exceptions as theirs

from kreuz_sync import Session, body
from kreuz_sync.errors import BodyTooLarge, DataLoss, UndecodableBody
from kreuz_sync.response import adopt

from .fakes import prepared, respond

TEXT = b"The quick brown fox jumps over the lazy dog. " * 40


def answer(content, fields=(), *, status=200, method="GET", **limits):
    response = adopt(respond(prepared(method=method), status, fields, content))
    response.limits = body.Limits(**limits)
    return response


class TestLength:
    """RFC 9112, section 6.3; RFC 9110, section 8.6."""

    @pytest.mark.parametrize(
        ("status", "method", "fields", "expected"),
        [
            (200, "GET", {"Content-Length": "20"}, 20),
            (200, "GET", {"Content-Length": "20, 20"}, 20),
            (200, "GET", {"Content-Length": "20, 21"}, None),
            (200, "GET", {"Content-Length": "+20"}, None),
            (200, "GET", {"Content-Length": "-1"}, None),
            (200, "GET", {"Content-Length": "٢"}, None),
            (200, "GET", {"Content-Length": "9" * 5000}, None),
            (200, "GET", {"Content-Length": "20", "Transfer-Encoding": "chunked"}, None),
            (200, "GET", {"Content-Length": "20", "Transfer-Encoding": "gzip, Chunked"}, None),
            (200, "GET", {"Content-Length": "20", "Transfer-Encoding": "identity"}, 20),
            (200, "GET", {}, None),
            (200, "HEAD", {"Content-Length": "20"}, None),
            (204, "GET", {"Content-Length": "20"}, None),
            (304, "GET", {"Content-Length": "20"}, None),
            (404, "GET", {"Content-Length": "20"}, 20),
        ],
    )
    def test_what_the_wire_owes(self, status, method, fields, expected):
        response = adopt(respond(prepared(method=method), status))
        response.headers.update(fields)
        assert body.expected_length(response) == expected

    def test_one_missing_byte_is_missing(self):
        response = answer(b"x" * 99, {"Content-Length": "100"})
        with pytest.raises(DataLoss, match="99 of 100 bytes") as caught:
            body.read(response)
        assert (caught.value.expected, caught.value.received, caught.value.partial) == (100, 99, b"x" * 99)
        assert caught.value.response is response

    def test_a_tolerance_allows_what_it_says_and_no_more(self):
        """The reference pipeline passes a body that is up to 100 bytes short."""
        body.read(passing := answer(b"x" * 900, {"Content-Length": "1000"}, length_tolerance=100))
        assert passing.content == b"x" * 900
        with pytest.raises(DataLoss):
            body.read(answer(b"x" * 899, {"Content-Length": "1000"}, length_tolerance=100))

    def test_a_compressed_body_is_measured_on_the_wire(self):
        packed = gzip.compress(TEXT)
        fields = {"Content-Length": str(len(packed)), "Content-Encoding": "gzip"}
        body.read(response := answer(packed, fields))
        assert response.content == TEXT
        with pytest.raises(DataLoss):
            body.read(answer(packed[:-1], fields))

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_a_compressed_body_without_length_must_come_to_its_own_end(self, coding):
        packed = gzip.compress(TEXT) if coding == "gzip" else zlib.compress(TEXT)
        body.read(response := answer(packed, {"Content-Encoding": coding}))
        assert response.content == TEXT
        with pytest.raises(DataLoss, match="compressed body broke off"):
            body.read(answer(packed[:-9], {"Content-Encoding": coding}))

    def test_two_gzip_members_are_one_body(self):
        body.read(response := answer(gzip.compress(b"a") + gzip.compress(b"b"), {"Content-Encoding": "gzip"}))
        assert response.content == b"ab"

    def test_a_body_without_length_ends_where_it_ends(self):
        body.read(response := answer(b"abc"))
        assert response.content == b"abc"

    def test_a_stream_is_checked_at_its_end(self):
        response = answer(b"x" * 99, {"Content-Length": "100"})
        chunks = response.iter_content(10)
        got = b""
        with pytest.raises(DataLoss):
            for chunk in chunks:
                got += chunk
        assert got == b"x" * len(got) and len(got) >= 90

    def test_what_is_kept_of_a_cut_body_is_bounded(self):
        with pytest.raises(DataLoss) as caught:
            body.read(answer(b"x" * 1_000_000, {"Content-Length": "1000001"}))
        assert len(caught.value.partial) == body.PARTIAL_KEPT


class TestSize:
    def test_a_body_at_the_limit_passes(self):
        body.read(response := answer(b"x" * 100, max_body=100))
        assert len(response.content) == 100

    def test_one_byte_more_does_not(self):
        with pytest.raises(BodyTooLarge, match="longer than 100 bytes") as caught:
            body.read(answer(b"x" * 101, max_body=100))
        assert caught.value.limit == 100

    def test_a_declared_length_is_refused_unread(self):
        response = answer(b"x" * 101, {"Content-Length": "101"}, max_body=100)
        with pytest.raises(BodyTooLarge):
            body.refuse_by_length(response)
        assert response.raw.tell() == 0

    @pytest.mark.parametrize("method", ["HEAD", "GET"])
    def test_a_declared_length_of_what_does_not_come_is_no_reason(self, method):
        """The length of an answer to HEAD, or of a compressed body, says nothing of the decoded size."""
        fields = {"Content-Length": "101"} | ({"Content-Encoding": "gzip"} if method == "GET" else {})
        body.refuse_by_length(answer(b"", fields, method=method, max_body=100))

    def test_a_decompression_bomb_stops_near_the_limit(self):
        """50 MiB of zeros in 50 KiB: far less than all of it is ever held."""
        bomb = gzip.compress(b"\0" * 50 * 1024 * 1024)
        response = answer(bomb, {"Content-Encoding": "gzip"}, max_body=1000)
        tracemalloc.start()
        try:
            with pytest.raises(BodyTooLarge):
                body.read(response)
            assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
        finally:
            tracemalloc.stop()

    def test_a_bomb_inside_a_bomb_stops_too(self):
        """Compressed twice, 50 MiB are 300 bytes."""
        bomb = gzip.compress(gzip.compress(b"\0" * 50 * 1024 * 1024))
        with pytest.raises(BodyTooLarge):
            body.read(answer(bomb, {"Content-Encoding": "gzip, gzip"}, max_body=1000))

    def test_a_stream_stops_at_the_limit_too(self):
        with pytest.raises(BodyTooLarge):
            for _ in answer(b"x" * 1001, max_body=1000).iter_content(100):
                pass

    def test_reading_all_at_once_is_counted_in_pieces(self):
        """`chunk_size=None` would otherwise decode all of a bomb before the first count."""
        bomb = gzip.compress(b"\0" * 5 * 1024 * 1024)
        response = answer(bomb, {"Content-Encoding": "gzip"}, max_body=1000)
        with pytest.raises(BodyTooLarge):
            list(response.iter_content(None))


class TestCoding:
    @pytest.mark.parametrize(
        "content", [b"not gzip at all", gzip.compress(TEXT)[:-8] + b"\xff" * 8], ids=["no gzip", "a wrong sum"]
    )
    def test_what_is_not_in_its_coding_is_undecodable(self, content):
        with pytest.raises(theirs.ContentDecodingError) as caught:
            body.read(answer(content, {"Content-Encoding": "gzip"}))
        assert type(caught.value) is UndecodableBody

    def test_text_is_decoded_as_it_comes(self):
        response = answer("äöü".encode(), {"Content-Type": "text/plain; charset=utf-8"})
        assert "".join(response.iter_content(1, decode_unicode=True)) == "äöü"

    def test_a_wrong_chunk_size_is_requests_own_error(self):
        with pytest.raises(TypeError):
            list(answer(b"x").iter_content("1"))

    def test_a_negative_chunk_size_is_what_requests_makes_of_it(self, server):
        """urllib3 2 takes it for all of the body, and 1.26 raises ValueError."""
        outcomes = []
        for session in (requests.Session(), Session(throttle=None)):
            with session, session.get(server.url(), stream=True) as response:
                try:
                    outcomes.append(list(response.iter_content(-2)))
                except Exception as error:
                    outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]

    def test_a_negative_chunk_size_does_not_get_around_the_limit(self):
        bomb = gzip.compress(b"\0" * 5 * 1024 * 1024)
        with pytest.raises(BodyTooLarge):
            list(answer(bomb, {"Content-Encoding": "gzip"}, max_body=1000).iter_content(-2))

    @pytest.mark.skipif(urllib3.__version__ < "2", reason="before 2, urllib3 never comes to the end of 0 bytes")
    def test_pieces_of_no_bytes_are_none(self):
        assert list(answer(b"x" * 9, {"Content-Length": "9"}).iter_content(0)) == []


class TestDoubles:
    """Fields as adapters and test doubles set them."""

    @pytest.mark.parametrize("length", [3, b"3", None])
    def test_a_length_that_is_no_text(self, length):
        response = answer(b"abc", max_body=10)
        response.headers["Content-Length"] = length
        response.headers["Content-Encoding"] = None
        body.refuse_by_length(response)
        body.read(response)
        assert response.content == b"abc"


class TestRelease:
    """What a layer holds until the body has been read comes back, once."""

    def held(self, content=b"abc"):
        response, given = answer(content), []
        response.when_released(lambda: given.append(1))
        return response, given

    def test_when_the_body_has_been_read(self):
        response, given = self.held()
        assert given == []
        assert response.content == b"abc"
        assert given == [1]

    def test_when_the_response_is_closed(self):
        response, given = self.held()
        response.close()
        response.close()
        assert given == [1]

    def test_when_the_response_is_forgotten(self):
        response, given = self.held()
        response.raw.close()
        del response
        assert given == [1]

    def test_not_when_an_iteration_is_abandoned_and_the_rest_may_be_read(self):
        response, given = self.held()
        for chunk in response.iter_content(1):
            assert chunk == b"a"
            break
        assert given == []
        assert b"".join(response.iter_content(1)) == b"bc"
        assert given == [1]

    @pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
    def test_at_once_where_no_body_can_come(self, method, status):
        response, given = answer(b"", method=method, status=status), []
        response.when_released(lambda: given.append(1))
        assert given == [1]

    def test_an_interrupt_leaves_it_to_the_second_time(self):
        response, given = answer(b"abc"), []

        def give_back():
            given.append(1)
            raise KeyboardInterrupt

        response.when_released(give_back)
        response.when_released(lambda: given.append(2))
        with pytest.raises(KeyboardInterrupt):
            response.release()
        response.release()
        assert given == [1, 2]

    def test_at_once_when_there_is_nothing_left_to_read(self):
        response = answer(b"abc")
        response.content  # noqa: B018
        given = []
        response.when_released(lambda: given.append(1))
        assert given == [1]

    def test_when_the_body_fails(self):
        response = answer(b"x", {"Content-Length": "2"})
        given = []
        response.when_released(lambda: given.append(1))
        with pytest.raises(DataLoss):
            body.read(response)
        assert given == [1]
