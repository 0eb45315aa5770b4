"""`raw` of an answer out of the store: read in any way it gives what the wire gives, and ends where that ends."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import xml.etree.ElementTree as ElementTree

import pytest
import requests
import urllib3

from kreuz_sync import DiskStore, RateLimit
from kreuz_sync.cache.raw import BodyFile

from .cache_sessions import FRESH, caching, rfc
from .loopback import answer, chunked, gzipped
from .waiting import Worker

ROWS = b"a,b\n1,2\n3,4\n"
LARGE = b"0123456789abcde\n" * 2**14  # 256 KiB: a file of its own, in a folder


@pytest.fixture
def session():
    with caching(rfc()) as session:
        yield session


@pytest.fixture
def from_file(tmp_path):
    """A session whose answers come out of a folder."""
    with caching(rfc(store=DiskStore(tmp_path / "pages", memory=0))) as session:
        yield session


def in_time(read, *given):
    """What `read` gives. It must come to an end: some of these once went on for ever."""
    return Worker(read, *given).outcome()


def into_pieces(raw):
    pieces = []
    while piece := raw.read(5):
        pieces.append(piece)
    return pieces, raw.read(5), raw.read()


def into_a_buffer(raw):
    buffer, found = bytearray(7), b""
    while count := raw.readinto(buffer):
        found += buffer[:count]
    return found


def as_text(raw):
    raw.auto_close = False  # as urllib3 wants it for a TextIOWrapper
    return list(csv.reader(io.TextIOWrapper(raw)))


def copied(raw):
    target = io.BytesIO()
    shutil.copyfileobj(raw, target)
    return target.getvalue()


READERS = {
    "iter_content(None)": lambda response: b"".join(response.iter_content(chunk_size=None)),
    "iter_content(1)": lambda response: list(response.iter_content()),
    "iter_lines(None)": lambda response: list(response.iter_lines(chunk_size=None)),
    "iter_lines": lambda response: list(response.iter_lines()),
    "stream(None)": lambda response: b"".join(response.raw.stream(None)),
    "stream(4)": lambda response: list(response.raw.stream(4)),
    "stream decoded": lambda response: b"".join(response.raw.stream(None, decode_content=True)),
    "read": lambda response: (response.raw.read(), response.raw.read(), response.raw.read(1)),
    "read decoded": lambda response: response.raw.read(decode_content=True),
    "read in pieces": lambda response: into_pieces(response.raw),
    "read sizes": lambda response: [response.raw.read(size) for size in (1, 0, 5, None, 2)],
    "readinto": lambda response: into_a_buffer(response.raw),
    "readline": lambda response: [response.raw.readline() for _ in range(3)],
    "readlines": lambda response: response.raw.readlines(),
    "lines": lambda response: list(response.raw),
    "BufferedReader": lambda response: io.BufferedReader(response.raw, 4).readline(),
    "TextIOWrapper": lambda response: as_text(response.raw),
    "copyfileobj": lambda response: copied(response.raw),
    "tell": lambda response: (response.raw.read(3), response.raw.tell(), response.raw.read(), response.raw.tell()),
    "closed": lambda response: (response.raw.read(), response.raw.closed, response.raw.isclosed()),
    "open until then": lambda response: (response.raw.read(3), response.raw.closed, response.raw.isclosed()),
    "close": lambda response: (response.close(), response.raw.closed, response.raw.read(), response.raw.closed),
    "data": lambda response: (response.raw.data, response.raw.data),
    "content after some": lambda response: (response.raw.read(3), response.content),
    "content, then raw": lambda response: (response.content, response.raw.read(), response.raw.closed),
    "all of it again": lambda response: (response.content, b"".join(response.iter_content(4)), response.text),
    "drain": lambda response: (response.raw.drain_conn(), response.raw.read()),
    "as a file": lambda response: (response.raw.readable(), response.raw.writable(), response.raw.seekable()),
}
if hasattr(urllib3.HTTPResponse, "read1"):  # urllib3 2
    READERS["where from"] = lambda response: response.raw.geturl()
    READERS["read1"] = lambda response: [response.raw.read1(5) for _ in range(4)]
    READERS["read1 of all"] = lambda response: b"".join(iter(response.raw.read1, b""))
# Those that do not take a step for every byte.
FAST = sorted(READERS.keys() - {"iter_content(1)", "stream(4)", "read in pieces", "readinto", "read1"})


class TestLikeTheWire:
    """What a reader gets from the store is what requests gives for the answer that was not stored yet."""

    @pytest.mark.parametrize("how", READERS)
    def test_a_hit_reads_as_an_answer_of_the_origin(self, session, server, how):
        url = server.route("/page", answer(body=ROWS, fields=FRESH, content_type="text/csv"))
        session.get(url)
        with requests.Session() as plain:
            expected = READERS[how](plain.get(url, stream=True))
        hit = session.get(url, stream=True)
        assert hit.from_cache
        assert in_time(READERS[how], hit) == expected

    @pytest.mark.parametrize("how", READERS)
    def test_so_does_one_of_no_bytes(self, session, server, how):
        url = server.route("/page", answer(fields=FRESH))
        session.get(url)
        with requests.Session() as plain:
            expected = READERS[how](plain.get(url, stream=True))
        assert in_time(READERS[how], session.get(url, stream=True)) == expected

    @pytest.mark.parametrize("size", ["small", "large"])
    def test_so_does_one_in_a_folder(self, from_file, server, size):
        body = ROWS if size == "small" else LARGE
        url = server.route("/page", answer(body=body, fields=FRESH, content_type="text/csv"))
        from_file.get(url)
        with requests.Session() as plain:
            for how in READERS if size == "small" else FAST:
                expected = READERS[how](plain.get(url, stream=True))
                hit = from_file.get(url, stream=True)
                assert (how, hit.from_cache, in_time(READERS[how], hit) == expected) == (how, True, True)

    @pytest.mark.parametrize("how", ["iter_content(None)", "stream(None)", "stream decoded", "iter_lines(None)"])
    def test_so_does_a_compressed_one(self, session, server, how):
        coded = gzipped(ROWS * 50, content_type="text/csv")
        coded.fields.extend(FRESH.items())
        url = server.route("/page", coded)
        session.get(url)
        expected = coded.body if how == "stream(None)" else ROWS * 50
        found = in_time(READERS[how], session.get(url, stream=True))
        assert found == (expected.splitlines() if how == "iter_lines(None)" else expected)

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    @pytest.mark.parametrize("how", ["iter_content(None)", "stream(None)", "read", "copyfileobj"])
    def test_an_answer_without_a_body_ends_at_once(self, session, server, method, how):
        """To HEAD, and a 304 to the caller's own condition."""
        url = server.route("/page", answer(body=ROWS, fields={**FRESH, "ETag": '"a"'}))
        session.get(url)
        fields = {"If-None-Match": '"a"'} if method == "GET" else {}
        hit = session.request(method, url, headers=fields, stream=True)
        assert (hit.from_cache, hit.status_code) == (True, 304 if method == "GET" else 200)
        assert in_time(READERS[how], hit) in (b"", (b"", b"", b""))

    def test_a_range_from_a_whole_ends_with_its_last_byte(self, session, server):
        url = server.route("/page", answer(body=ROWS, fields=FRESH))
        session.get(url)
        for how in ("iter_content(None)", "stream(None)"):
            hit = session.get(url, headers={"Range": "bytes=2-4"}, stream=True)
            assert (hit.from_cache, in_time(READERS[how], hit)) == (True, ROWS[2:5])

    def test_the_504_of_a_call_that_wants_only_what_is_stored_is_over(self, session):
        refused = session.get("http://nowhere.example/", headers={"Cache-Control": "only-if-cached"}, stream=True)
        assert in_time(lambda: list(refused.raw.stream(None))) == []
        assert (refused.raw.read(), refused.raw.closed) == (b"", True)

    def test_so_is_the_429_of_a_rate_limit(self):
        with caching(rfc(), rate_limits=[RateLimit("none", limit=0, window=60)]) as session:
            limited = session.get("http://nowhere.example/", stream=True)
        assert in_time(lambda: list(limited.raw.stream(None))) == []


class TestAfterTheBody:
    """An answer that was not streamed has its body already: `raw` has nothing left, as in requests."""

    @pytest.mark.parametrize("body", [ROWS, b""])
    def test_nothing_is_left_to_be_read(self, session, server, body):
        url = server.route("/page", answer(body=body, fields=FRESH))
        session.get(url)
        with requests.Session() as plain:
            wire, hit = plain.get(url), session.get(url)
        for one in (wire, hit):
            assert (one.content, one.raw.read(), one.raw.closed, one.raw.tell()) == (body, b"", True, len(body))
            assert list(one.raw.stream(None)) == []

    def test_nor_is_it_of_a_compressed_one(self, session, server):
        coded = gzipped(ROWS)
        coded.fields.extend(FRESH.items())
        url = server.route("/page", coded)
        session.get(url)
        hit = session.get(url)
        assert (hit.content, hit.raw.read(), hit.raw.closed, hit.raw.tell()) == (ROWS, b"", True, len(coded.body))


class TestChunks:
    """A body that came in chunks can be read as one that does, though its framing is not stored."""

    @pytest.mark.parametrize("size", [None, 5])
    def test_it_is_read_by_chunks(self, session, server, size):
        url = server.route("/page", chunked(b"one ", b"two ", b"three", fields=FRESH))
        session.get(url)
        with requests.Session() as plain:
            wire = b"".join(plain.get(url, stream=True).raw.read_chunked(size))
        hit = session.get(url, stream=True)
        assert (hit.from_cache, b"".join(in_time(lambda: list(hit.raw.read_chunked(size))))) == (True, wire)

    def test_it_is_decoded_for_whoever_wants_it(self, session, server):
        packed = gzip.compress(ROWS)
        url = server.route("/page", chunked(packed[:20], packed[20:], fields={**FRESH, "Content-Encoding": "gzip"}))
        session.get(url)
        assert b"".join(session.get(url, stream=True).raw.read_chunked(decode_content=True)) == ROWS
        assert b"".join(session.get(url, stream=True).raw.read_chunked()) == packed

    def test_one_that_did_not_has_none(self, session, server):
        url = server.route("/page", answer(body=ROWS, fields=FRESH))
        session.get(url)
        with pytest.raises(urllib3.exceptions.ResponseNotChunked):
            list(session.get(url, stream=True).raw.read_chunked())


class TestParsers:
    def test_xml_is_parsed_from_it(self, session, server):
        url = server.route("/page", answer(body=b"<a><b/></a>", fields=FRESH))
        for _ in range(2):
            assert ElementTree.parse(session.get(url, stream=True).raw).getroot().tag == "a"
        assert len(server.requests) == 1


class TestBodyFile:
    def test_a_file_that_ends_too_soon_is_an_error_of_the_system(self):
        file = BodyFile(io.BytesIO(b"12"), 0, 5)
        with pytest.raises(OSError, match="shorter"):
            file.read()

    def test_it_ends_where_its_part_ends(self):
        file = BodyFile(io.BytesIO(b"0123456789"), 3, 4)
        assert (file.read(2), file.read(), file.read(1), file.closed) == (b"34", b"56", b"", True)

    def test_reading_no_bytes_ends_nothing(self):
        file = BodyFile(io.BytesIO(b"12"), 0, 2)
        assert (file.read(0), file.closed, file.read(), file.closed) == (b"", False, b"12", True)
