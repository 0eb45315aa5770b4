"""What comes out of the store is a response like any other."""

from __future__ import annotations

import copy
import csv
import io
import pickle
import shutil
from datetime import timedelta

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from kreuz_sync import BodyTooLarge, Cache, DiskStore, MemoryStore, Response

from .cache_sessions import FRESH, caching, rfc
from .fakes import ScriptedAdapter
from .loopback import answer, chunked, deflated, gzipped, redirect, set_cookies

ROWS = "a,b\r\n1,2\r\n3,4\r\n"


@pytest.fixture(params=["memory", "folder", "folder without memory"])
def session(request, tmp_path):
    """One whose answers come out of each kind of store."""
    stores = {
        "memory": MemoryStore,
        "folder": lambda: DiskStore(tmp_path / "pages"),
        "folder without memory": lambda: DiskStore(tmp_path / "pages", memory=0),
    }
    with caching(rfc(store=stores[request.param]())) as session:
        yield session


def twice(session, url, **options):
    """The answer over the wire, read, and the one out of the store."""
    first = session.get(url, **options)
    first.content  # noqa: B018
    second = session.get(url, **options)
    assert (first.from_cache, second.from_cache) == (False, True)
    return first, second


class TestLikeAFreshOne:
    def test_every_attribute_says_the_same(self, session, server):
        url = server.route(
            "/page", answer(body="é", fields=FRESH, content_type="text/plain; charset=utf-8", reason="Fine")
        )
        first, second = twice(session, url)
        for name in ("status_code", "reason", "url", "encoding", "content", "text", "ok", "elapsed", "is_redirect"):
            assert getattr(second, name) == getattr(first, name)
        assert (second.history, type(second.headers)) == ([], CaseInsensitiveDict)
        assert {**second.headers, "Date": "", "Age": ""} == {**first.headers, "Date": "", "Age": ""}
        assert isinstance(second, Response)
        assert second.elapsed > timedelta(0)

    def test_its_url_is_the_one_that_was_asked_for(self, session, server):
        url = server.route("/page", answer(fields=FRESH))
        session.get(url)
        again = session.get(f"{url}#part")
        assert (again.from_cache, again.url) == (True, f"{url}#part")

    def test_several_lines_of_a_field_are_joined_as_requests_does(self, session, server):
        url = server.route(
            "/page", answer(fields=[*FRESH.items(), ("X-A", "1"), ("x-a", "2"), ("X-B", "ÿ"), ("X-E", "")])
        )
        first, second = twice(session, url)
        assert (second.headers["x-a"], second.headers["X-B"], second.headers["X-E"]) == ("1, 2", "ÿ", "")
        assert second.raw.headers.getlist("X-A") == first.raw.headers.getlist("X-A") == ["1", "2"]

    def test_fields_of_one_connection_are_left_out(self, session, server):
        url = server.route(
            "/page", answer(fields={**FRESH, "Keep-Alive": "timeout=5", "X-Hop": "1", "Connection": "X-Hop"})
        )
        _, second = twice(session, url)
        assert not {"Keep-Alive", "X-Hop", "Connection"} & set(second.headers)

    def test_hooks_run(self, session, server):
        url = server.route("/page", answer(fields=FRESH))
        seen = []
        twice(session, url, hooks={"response": lambda response, **_: seen.append(response.from_cache)})
        assert seen == [False, True]

    def test_links_and_json_are_read(self, session, server):
        url = server.route("/page", answer(body='{"a": 1}', fields={**FRESH, "Link": '</b>; rel="next"'}))
        _, second = twice(session, url)
        assert (second.json(), second.links["next"]["url"]) == ({"a": 1}, "/b")

    def test_an_answer_without_a_body_is_one(self, session, server):
        url = server.route("/page", answer(204, fields=FRESH))
        _, second = twice(session, url)
        assert (second.status_code, second.content, second.raw.read()) == (204, b"", b"")

    def test_a_session_closed_and_used_again_goes_on(self, server, tmp_path):
        url = server.route("/page", answer(fields=FRESH))
        session = caching(Cache(tmp_path / "pages", policy="rfc9111"))
        session.get(url)
        session.close()
        assert session.get(url).from_cache
        session.close()


class TestRaw:
    """`raw` is what urllib3 would have given."""

    def test_a_reader_of_rows_reads_both(self, session, server):
        url = server.route("/rows", answer(body=ROWS, fields=FRESH, content_type="text/csv"))

        def read():
            raw = session.get(url, stream=True).raw
            raw.auto_close = False  # as urllib3 wants it for a TextIOWrapper
            return list(csv.reader(io.TextIOWrapper(raw)))

        rows = [read() for _ in range(3)]
        assert rows == [[["a", "b"], ["1", "2"], ["3", "4"]]] * 3
        assert len(server.requests) == 1

    def test_it_is_iterable_and_seen_as_a_file(self, session, server):
        url = server.route("/rows", answer(body=b"1\n2\n", fields=FRESH))
        _, second = twice(session, url, stream=True)
        raw = second.raw
        assert isinstance(raw, urllib3.HTTPResponse)
        assert (raw.status, raw.reason, raw.version, raw.readable(), raw.tell()) == (200, "OK", 11, True, 0)
        assert list(raw) == [b"1\n", b"2\n"]
        assert raw.read() == b""

    @pytest.mark.parametrize("size", [0, 1, 100, 2**20 + 1])
    def test_it_streams(self, session, server, size):
        body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        url = server.route("/page", answer(body=body, fields=FRESH))
        for _ in range(3):
            with session.get(url, stream=True) as response:
                assert b"".join(response.raw.stream(1000, decode_content=True)) == body
        target = io.BytesIO()
        shutil.copyfileobj(session.get(url, stream=True).raw, target)
        assert target.getvalue() == body
        assert len(server.requests) == 1

    def test_it_may_be_closed_before_it_was_looked_at(self, session, server):
        url = server.route("/page", answer(body=b"x" * 2**21, fields=FRESH))
        twice(session, url, stream=True)
        response = session.get(url, stream=True)
        response.close()
        assert (response.raw.closed, response.raw.read(), response.content) == (True, b"", b"")

    def test_what_it_does_not_have_is_an_attribute_error(self, session, server):
        url = server.route("/page", answer(fields=FRESH))
        _, second = twice(session, url)
        assert not hasattr(second.raw, "no_such_thing")
        assert second.raw.read() == b""


class TestIndependent:
    def test_two_of_one_are_read_each_by_itself(self, session, server):
        url = server.route("/page", answer(body="page", fields=FRESH))
        session.get(url)
        one, two = session.get(url, stream=True), session.get(url, stream=True)
        assert (one.raw.read(2), two.raw.read(), one.raw.read()) == (b"pa", b"page", b"ge")

    def test_what_is_done_to_one_changes_no_other(self, session, server):
        url = server.route("/page", answer(body="page", fields=[*FRESH.items(), ("Set-Cookie", "a=1")]))
        session.get(url)
        session.cookies.clear()
        one = session.get(url)
        one.headers["X-Mine"] = "1"
        del one.headers["Cache-Control"]
        one.history.append(one)
        one.cookies.clear()
        one.raw.headers.add("X-Mine", "1")
        one._content = b""
        two = session.get(url)
        assert "X-Mine" not in two.headers and "X-Mine" not in two.raw.headers
        assert (two.headers["Cache-Control"], two.history, two.text, dict(two.cookies)) == (
            "max-age=60",
            [],
            "page",
            {"a": "1"},
        )

    def test_it_pickles_and_copies(self, session, server):
        url = server.route("/page", answer(body="page", fields=[*FRESH.items(), ("Set-Cookie", "a=1")]))
        session.get(url)
        session.cookies.clear()
        for made in (pickle.loads(pickle.dumps(session.get(url))), copy.deepcopy(session.get(url))):
            assert (made.text, made.from_cache, made.cache_status) == ("page", True, "kreuz; hit; ttl=59")
            assert dict(made.cookies) == {"a": "1"}


class TestCodings:
    """A body is stored as it was on the wire, and decoded for whoever wants it so."""

    TEXT = b"a body that is coded " * 50

    @pytest.mark.parametrize("make", [gzipped, deflated])
    def test_its_bytes_are_kept_and_its_text_is_given(self, session, server, make):
        coded = make(self.TEXT, content_type="text/plain")
        coded.fields.extend(FRESH.items())
        url = server.route("/page", coded)
        first, second = twice(session, url)
        assert first.content == second.content == self.TEXT
        assert second.headers["Content-Encoding"] == first.headers["Content-Encoding"]
        assert second.headers["Content-Length"] == str(len(coded.body))
        assert session.get(url, stream=True).raw.read() == coded.body
        assert b"".join(session.get(url, stream=True).iter_content(7)) == self.TEXT

    @pytest.mark.parametrize("stream", [True, False])
    def test_so_it_is_whoever_read_it_first(self, session, server, stream):
        coded = gzipped(self.TEXT)
        coded.fields.extend(FRESH.items())
        url = server.route("/page", coded)
        twice(session, url, stream=stream)
        assert session.get(url, stream=True).raw.read() == coded.body
        assert session.get(url).content == self.TEXT

    def test_chunks_are_framing_and_no_part_of_it(self, session, server):
        url = server.route("/page", chunked(b"one ", b"two", fields=FRESH))
        first, second = twice(session, url)
        assert (second.text, "Transfer-Encoding" in second.headers) == (first.text, False)


class TestCookies:
    def test_they_are_shown_and_not_put_into_the_session(self, session, server):
        url = server.route(
            "/page", answer(body="page", fields=[*FRESH.items(), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        )
        session.get(url)
        session.cookies.clear()
        second = session.get(url)
        assert second.from_cache
        assert dict(second.cookies) == {"a": "1", "b": "2"}
        assert dict(session.cookies) == {}

    def test_nor_are_those_of_a_stored_redirect(self, session, server):
        server.route("/a", redirect("/b", 301, fields=[*FRESH.items(), ("Set-Cookie", "a=1")]))
        server.route("/b", lambda request: answer(body=request.fields.get("Cookie") or "none"))
        session.get(server.url("/a"))
        session.cookies.clear()
        assert session.get(server.url("/a")).text == "none"
        assert dict(session.cookies) == {}

    def test_a_response_over_the_wire_sets_them(self, session, server):
        session.get(server.route("/page", set_cookies("a=1")))
        assert dict(session.cookies) == {"a": "1"}


class TestLimits:
    """A session's limit holds for what another one stored."""

    def test_a_stored_body_may_be_too_large(self, server):
        url = server.route("/page", answer(body=b"x" * 1000, fields=FRESH))
        bomb = gzipped(b"x" * 100_000)
        bomb.fields.extend(FRESH.items())
        packed = server.route("/packed", bomb)
        cache = rfc()
        with caching(cache) as free, caching(cache, max_body=500) as limited:
            free.get(url), free.get(packed)
            for target in (url, packed):
                for stream in (False, True):
                    with pytest.raises(BodyTooLarge):
                        assert limited.get(target, stream=stream).content
        assert len(server.requests) == 2


class TestDamage:
    """A body that is not what it was is fetched anew, or, for one who reads it already, broke off."""

    BODY = b"0123456789abcdef" * 2**20  # 16 MiB: longer than what is checked before it is given out

    def damage(self, tmp_path):
        (file,) = (path for path in (tmp_path / "pages").rglob("*.val"))
        with open(file, "r+b") as opened:
            opened.seek(-1000, io.SEEK_END)
            opened.write(b"X")

    @pytest.fixture
    def stored(self, server, tmp_path):
        url = server.route("/page", answer(body=self.BODY, fields=FRESH))
        with caching(rfc(store=DiskStore(tmp_path / "pages"))) as session:
            session.get(url)
        self.damage(tmp_path)
        return url

    def test_a_call_gets_the_real_one(self, stored, tmp_path, caplog):
        with caching(rfc(store=DiskStore(tmp_path / "pages"))) as session:
            response = session.get(stored)
            assert (response.from_cache, response.content == self.BODY) == (False, True)

    def test_a_reader_is_told(self, stored, tmp_path, caplog):
        with caching(rfc(store=DiskStore(tmp_path / "pages"))) as session:
            response = session.get(stored, stream=True)
            assert response.from_cache
            with pytest.raises(Exception, match="broke off") as told:
                response.content  # noqa: B018
            assert told.value.tag == "data_loss"
            assert not session.get(stored).from_cache


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).filter(lambda name: name.lower() not in RESERVED)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30)
RESERVED = {
    *("age", "cache-control", "cache-status", "connection", "content-encoding", "content-length", "content-range"),
    *("content-type", "date", "expires", "keep-alive", "location", "pragma", "set-cookie", "te", "transfer-encoding"),
    *("upgrade", "vary", "trailer", "server"),
}


class TestAnything:
    """Whatever fields and body an answer has, the stored one has them too."""

    @given(
        st.lists(st.tuples(NAMES, VALUES), max_size=8), st.binary(max_size=200), st.sampled_from([200, 203, 404, 410])
    )
    def test_it_comes_back_as_it_was(self, lines, body, status):
        fields = [("Cache-Control", "max-age=60"), *((name, value.strip()) for name, value in lines)]
        adapter = ScriptedAdapter((status, fields, body))
        with caching(rfc(), adapter=adapter, waf=None) as session:
            first, second = (session.get("http://example.test/") for _ in range(2))
            assert second.from_cache
            assert (second.status_code, second.content) == (first.status_code, first.content)
            assert [*second.raw.headers.iteritems()][: len(fields)] == [*first.raw.headers.iteritems()]
            hidden = {"Age", "Date"}
            shown = {name: value for name, value in second.headers.items() if name not in hidden}
            assert shown == dict(first.headers)
            assert session.get("http://example.test/", stream=True).raw.read() == body
