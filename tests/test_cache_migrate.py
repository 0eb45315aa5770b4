"""What other caches stored, taken along. Sample files are made here, in the form that was seen in files of theirs."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import logging
import pickle
import sqlite3
import struct
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync import Cache, MemoryStore
from kreuz_sync.cache.dates import imf_fixdate
from kreuz_sync.cache.migrate import from_cachecontrol, from_requests_cache
from kreuz_sync.cache.newcomer import Migrated
from kreuz_sync.cache.unpacking import NotPlain, plain_pickle, unpack

from .cache_sessions import caching, rfc, ttl
from .loopback import Server, answer

CREATED = "2027-01-15T07:59:00+00:00"  # a minute before the time of `ttl()` and `rfc()`
URL = "http://a.example/page"
CREDENTIALS = "asked for with credentials"


def row(url: str = URL, body: bytes = b"hello", **changed: Any) -> dict[str, Any]:
    """What a row of requests-cache holds."""
    made = {
        "_content": body,
        "cookies": {},
        "created_at": CREATED,
        "elapsed": 0.25,
        "encoding": "utf-8",
        "headers": {"Content-Length": str(len(body)), "Content-Type": "text/plain", "ETag": '"x"'},
        "reason": "OK",
        "request": {"headers": {"Accept": "*/*", "User-Agent": "python-requests"}, "method": "GET", "url": url},
        "status_code": 200,
        "url": url,
    }
    return {**made, **changed}


def asked_with(url: str = URL, **fields: str) -> dict[str, Any]:
    return {"headers": {name.replace("_", "-"): value for name, value in fields.items()}, "method": "GET", "url": url}


def in_json(found: dict[str, Any]) -> str:
    content = found.get("_content")
    return json.dumps({**found, "_content": base64.b64encode(content).decode()} if content is not None else found)


def database(path: Path, *values: str | bytes) -> Path:
    connection = sqlite3.connect(path)
    for table in ("responses", "redirects"):
        connection.execute(f"CREATE TABLE {table} (key TEXT PRIMARY KEY, value BLOB, expires INTEGER)")
    connection.executemany("INSERT INTO responses VALUES (?, ?, NULL)", [(str(n), v) for n, v in enumerate(values)])
    connection.commit()
    connection.close()
    return path


class Calls:
    """Unpickled, it calls what leaves a mark."""

    marks: list[str] = []

    def __reduce__(self) -> Any:
        return _mark, ()


def _mark() -> dict[str, Any]:
    Calls.marks.append("called")
    return row()


def _content(cache: Cache, url: str = URL) -> bytes | None:
    response = cache.get(url)
    return None if response is None else bytes(response.content)


class TestRequestsCache:
    """A SQLite file of requests-cache."""

    @pytest.mark.parametrize("form", [in_json, lambda found: pickle.dumps(found, 4)], ids=["json", "pickle"])
    def test_answers_in_either_form_are_taken(self, tmp_path: Path, form: Any) -> None:
        cache = ttl()
        assert from_requests_cache(database(tmp_path / "x.sqlite", form(row(body=b"\0hi"))), cache) == 1
        assert _content(cache) == b"\0hi"

    def test_their_time_is_kept(self, tmp_path: Path) -> None:
        cache = ttl(600)
        from_requests_cache(database(tmp_path / "x", in_json(row())), cache)
        (entry,) = cache
        assert entry.stored_at == datetime(2027, 1, 15, 7, 59, tzinfo=timezone.utc).timestamp()
        assert 0 < entry.ttl <= 600 - 60 + 1

    def test_a_decoded_body_is_not_decoded_again(self, tmp_path: Path) -> None:
        cache = ttl()
        coded = {"Content-Encoding": "gzip", "Content-Length": "29"}
        from_requests_cache(database(tmp_path / "x", in_json(row(headers=coded))), cache)
        assert _content(cache) == b"hello"

    def test_a_body_that_may_still_be_coded_is_left(self, tmp_path: Path) -> None:
        done = from_requests_cache(database(tmp_path / "x", in_json(row(headers={"Content-Encoding": "br"}))), ttl())
        assert done.skipped == {"in a Content-Encoding that may not have been undone": 1}

    @pytest.mark.parametrize(
        ("decoded", "body"), [("caf\xe9", b"caf\xc3\xa9"), ({"a": [1]}, b'{"a": [1]}')], ids=["text", "json"]
    )
    def test_a_body_kept_as_text_or_json_is_bytes_again(self, tmp_path: Path, decoded: Any, body: bytes) -> None:
        cache, found = ttl(), row(_decoded_content=decoded)
        del found["_content"]
        from_requests_cache(database(tmp_path / "x", json.dumps(found)), cache)
        assert _content(cache) == body

    def test_redirects_are_answers_of_their_own(self, tmp_path: Path) -> None:
        moved = row("http://a.example/old", status_code=301, headers={"Location": "/page", "Content-Length": "0"})
        moved["_content"] = None  # as JSON has an empty body
        cache, last = ttl(), row(_content=base64.b64encode(b"hello").decode(), history=[moved])
        assert from_requests_cache(database(tmp_path / "x", json.dumps(last)), cache) == 2
        found = cache.get("http://a.example/old")
        assert found is not None
        assert (found.status_code, found.headers["Location"]) == (301, "/page")

    @pytest.mark.parametrize(
        "found",
        [
            row(request=asked_with(Authorization="REDACTED")),
            row(request=asked_with(Cookie="sid=1")),
            row(request=asked_with(X_API_Key="REDACTED")),
            row(request=asked_with("http://me:pw@a.example/")),
            row(request=asked_with("http://a.example/?api_key=REDACTED")),
        ],
    )
    def test_what_was_asked_for_with_credentials_is_left(self, tmp_path: Path, found: dict[str, Any]) -> None:
        cache = ttl()
        done = from_requests_cache(database(tmp_path / "x", in_json(found)), cache)
        assert (done, done.skipped, len(cache)) == (0, {CREDENTIALS: 1}, 0)

    @pytest.mark.parametrize(
        ("found", "reason"),
        [
            (row(headers={"Cache-Control": "no-store"}), "not to be stored (no-store)"),
            (row(headers={"Vary": "*"}), "not to be stored (vary)"),
            (row(status_code=500), "not to be stored (status)"),
            (row(request={**asked_with(), "method": "POST"}), "not to be stored (method)"),
            (row(request=asked_with(Range="bytes=0-1")), "not to be stored (range)"),
            (row(body=b"x" * 100), "too large"),
            (row(headers={"ETag": "x\r\ny: z"}), "unreadable"),
            (row(request=asked_with("no URL")), "unreadable"),
            (row(created_at="then"), "unreadable"),
            (row(created_at="0001-01-01T00:00:00+14:00"), "unreadable"),
        ],
    )
    def test_what_may_not_be_stored_is_left(self, tmp_path: Path, found: dict[str, Any], reason: str) -> None:
        cache = ttl(max_entry_size=50)
        assert from_requests_cache(database(tmp_path / "x", in_json(found)), cache).skipped == {reason: 1}
        assert len(cache) == 0

    def test_the_user_s_own_rule_is_asked(self, tmp_path: Path) -> None:
        cache = ttl(store_if=lambda request, response: response.text != "hello")
        done = from_requests_cache(database(tmp_path / "x", in_json(row())), cache)
        assert done.skipped == {"not wanted (store_if)": 1}

    def test_what_selected_an_answer_is_kept(self, tmp_path: Path) -> None:
        cache = ttl()
        german = row(headers={"Vary": "Accept-Language"}, request=asked_with(Accept_Language="de"))
        from_requests_cache(database(tmp_path / "x", in_json(german)), cache)
        (entry,) = cache
        assert entry.vary == ("accept-language",)

    def test_several_cookies_in_one_field_are_told_apart(self, tmp_path: Path) -> None:
        cache = ttl()
        cookies = "a=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT, b=2"
        from_requests_cache(database(tmp_path / "x", in_json(row(headers={"Set-Cookie": cookies}))), cache)
        response = cache.get(URL)
        assert response is not None
        assert response.raw.headers.getlist("Set-Cookie") == ["a=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT", "b=2"]

    def test_a_newer_answer_stays(self, tmp_path: Path) -> None:
        cache, path = ttl(), database(tmp_path / "x", in_json(row()))
        from_requests_cache(path, cache)
        assert from_requests_cache(path, cache).skipped == {"not newer than what is stored": 1}

    def test_a_damaged_row_harms_no_other(self, tmp_path: Path) -> None:
        rows = (b"\x80\x04garbage", "{", b"", "[1]", b"\x80\x04N.", in_json(row()))
        assert from_requests_cache(database(tmp_path / "x", *rows), ttl()) == 1

    def test_what_was_skipped_is_told(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """It is what the call gives back, too: no trouble."""
        with caplog.at_level(logging.INFO, "kreuz_sync"):
            from_requests_cache(database(tmp_path / "x", "{"), ttl())
        (record,) = caplog.records
        assert (record.levelname, record.event) == ("INFO", "migration_skipped")
        assert "0 answers stored; skipped: 1 unreadable" in record.getMessage()

    def test_an_answer_that_is_there_twice_counts_once(self, tmp_path: Path) -> None:
        """requests-cache keeps what a redirect leads to by itself, and behind the redirect."""
        moved = row("http://a.example/old", status_code=301, headers={"Location": "/page"}, _content=b"")
        later = row(created_at="2027-01-15T07:59:30+00:00")
        rows = [row(), {**row(), "history": [moved]}, later]
        cache = ttl()
        done = from_requests_cache(database(tmp_path / "x", *(pickle.dumps(one) for one in rows)), cache)
        assert (done, len(cache), done.skipped) == (2, 2, {})
        (entry,) = cache.entries(url=URL)
        assert entry.ttl == 29.5

    def test_a_folder_or_a_name_without_its_ending_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError, match="is a folder: a SQLite file of requests-cache is wanted"):
            from_requests_cache(tmp_path, ttl())
        database(tmp_path / "x.sqlite")
        with pytest.raises(FileNotFoundError, match=r"x is not there, but .*x.sqlite is"):
            from_requests_cache(tmp_path / "x", ttl())

    @pytest.mark.parametrize("cache", ["answers", Path("answers"), None])
    def test_what_is_no_cache_is_an_error(self, tmp_path: Path, cache: Any) -> None:
        with pytest.raises(TypeError, match="cache=.*: a Cache is wanted"):
            from_requests_cache(database(tmp_path / "x", in_json(row())), cache)

    def test_a_file_of_another_kind_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"something else" * 100)
        with pytest.raises(ValueError, match="requests-cache"):
            from_requests_cache(tmp_path / "x", ttl())

    def test_a_missing_file_is_an_error_and_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            from_requests_cache(tmp_path / "x", ttl())
        assert not list(tmp_path.iterdir())


def posted(body: bytes | None, **fields: str) -> dict[str, Any]:
    """A row for the answer to a POST."""
    request = asked_with(Content_Length=str(len(body or b"")), **fields)
    return row(request={**request, "method": "POST", "body": body})


class TestPosts:
    """Answers to POST are taken by a cache that keeps them."""

    @pytest.mark.parametrize("body", [b'{"a": 1}', b"\0\xff", None])
    @pytest.mark.parametrize("form", ["pickle", "json"])
    def test_they_are_found_by_the_same_post(
        self, tmp_path: Path, server: Server, body: bytes | None, form: str
    ) -> None:
        url, found = server.url("/page"), posted(body, Content_Type="application/json")
        found["request"]["url"] = url
        if form == "json" and body is not None:
            found["request"]["body"] = base64.b64encode(body).decode()
        cache = ttl(600, post=True)
        path = database(tmp_path / "x", in_json(found) if form == "json" else pickle.dumps(found))
        assert from_requests_cache(path, cache) == 1
        with caching(cache) as session:
            fields = {"Content-Type": "application/json"}
            assert session.post(url, data=body, headers=fields).text == "hello"
            assert session.post(url, data=b"other", headers=fields).status_code == 404

    @pytest.mark.parametrize(
        "found",
        [
            posted(b'{"token": "REDACTED"}'),
            posted(b"--x--", Content_Type="multipart/form-data; boundary=x"),
            row(request={**asked_with(Content_Length="9"), "method": "POST", "body": b"a"}),
        ],
        ids=["a secret was left out", "files", "shorter"],
    )
    def test_one_that_no_program_sends_again_is_left(self, tmp_path: Path, found: dict[str, Any]) -> None:
        done = from_requests_cache(database(tmp_path / "x", pickle.dumps(found)), ttl(post=True))
        assert done.skipped == {"not to be stored (a body that was changed, or is never the same)": 1}

    def test_a_body_that_is_no_text_of_base64_is_unreadable(self, tmp_path: Path) -> None:
        found = posted(b"a")
        found["request"]["body"] = "?"
        assert from_requests_cache(database(tmp_path / "x", in_json(found)), ttl(post=True)).skipped == {
            "unreadable": 1
        }

    def test_one_with_credentials_is_left(self, tmp_path: Path) -> None:
        path = database(tmp_path / "x", pickle.dumps(posted(b"a", Authorization="REDACTED")))
        assert from_requests_cache(path, ttl(post=True)).skipped == {CREDENTIALS: 1}


class TestTrust:
    """Nothing in a pickle is run unless the user says so."""

    def test_a_pickle_that_calls_is_skipped(self, tmp_path: Path) -> None:
        Calls.marks.clear()
        done = from_requests_cache(database(tmp_path / "x", pickle.dumps(Calls())), ttl())
        assert (done, Calls.marks) == (0, [])
        assert "trust_pickle=True" in str(done)

    def test_a_trusted_one_is_unpickled(self, tmp_path: Path) -> None:
        when = row(created_at=datetime(2027, 1, 15, 7, 59, tzinfo=timezone.utc))
        path = database(tmp_path / "x", pickle.dumps(when))
        assert from_requests_cache(path, ttl()) == 0
        assert from_requests_cache(path, ttl(), trust_pickle=True) == 1

    def test_a_trusted_one_that_cannot_be_unpickled_is_skipped(self, tmp_path: Path) -> None:
        path = database(tmp_path / "x", b"\x80\x04cnosuchmodule\nnothing\n.")
        assert from_requests_cache(path, ttl(), trust_pickle=True).skipped == {"unreadable": 1}


def packed(value: Any) -> bytes:
    """MessagePack, as far as the samples need it."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return bytes([value]) if value < 128 else b"\xcd" + struct.pack(">H", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return b"\xc4" + bytes([len(value)]) + value
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value.encode())]) + value.encode()
    return bytes([0x80 + len(value)]) + b"".join(packed(one) for pair in value.items() for one in pair)


def control(folder: Path, url: str = URL, *, separate: bytes | None = None, vary: Any = None, **changed: Any) -> Path:
    """A folder of CacheControl with one answer."""
    name = hashlib.sha224(url.encode()).hexdigest()
    at = folder.joinpath(*name[:5])
    at.mkdir(parents=True)
    fields = {"Date": "Fri, 15 Jan 2027 07:59:00 GMT", "Cache-Control": "public, max-age=600"}
    answer = {"body": b"hello", "headers": fields, "status": 200, "version": 11, "reason": "OK"}
    found = {"response": {**answer, "decode_content": False, **changed}, "vary": vary or {}}
    (at / name).write_bytes(b"cc=4," + packed(found))
    (at / f"{name}.lock").touch()
    if separate is not None:
        (at / f"{name}.body").write_bytes(separate)
    return folder


class TestCacheControl:
    """A folder of CacheControl."""

    @pytest.mark.parametrize("cache", [ttl, rfc])
    def test_an_answer_is_taken_with_its_time(self, tmp_path: Path, cache: Any) -> None:
        into = cache()
        assert from_cachecontrol(control(tmp_path), into, urls=[URL + "#top"]) == 1
        (entry,) = into
        assert (entry.url, entry.age, _content(into)) == (URL, 60.5, b"hello")

    def test_a_body_in_a_file_of_its_own_is_taken(self, tmp_path: Path) -> None:
        cache = ttl()
        from_cachecontrol(control(tmp_path, body=b"", separate=b"apart"), cache, urls=[URL])
        assert _content(cache) == b"apart"

    def test_what_nobody_names_cannot_be_told(self, tmp_path: Path) -> None:
        done = from_cachecontrol(control(tmp_path), ttl(), urls=["http://a.example/other"])
        assert (done, done.skipped) == (0, {"of other URLs": 1})

    def test_what_may_be_somebody_s_is_left(self, tmp_path: Path) -> None:
        folder = control(tmp_path, headers={"Cache-Control": "max-age=600", "ETag": '"x"'})
        assert "anonymous=True" in str(from_cachecontrol(folder, ttl(), urls=[URL]))
        assert from_cachecontrol(folder, ttl(), urls=[URL], anonymous=True) == 1

    @pytest.mark.parametrize(
        "written",
        [
            {"cache-control": "public", "expires": "x", "Warning": "110 - Automatically cached for 1 day, 0:00:00."},
            {"cache-control": "public", "expires": "x", "Warning": '110 - "Response is Stale"'},
            {"Cache-Control": "public, max-age=9", "Warning": '113 - "Heuristic Expiration"'},
            {"cache-control": "public, max-age=9"},  # a heuristic without a Warning
            {"Cache-Control": "public, max-age=9", "Set-Cookie": "sid=1"},
            {"Cache-Control": "private, s-maxage=9"},
            {"Expires": "Fri, 15 Jan 2027 09:00:00 GMT"},
        ],
        ids=["ExpiresAfter", "OneDayCache", "113", "no Warning", "cookie", "private", "LastModified"],
    )
    def test_what_only_a_heuristic_calls_public_may_be_somebody_s(
        self, tmp_path: Path, written: dict[str, str]
    ) -> None:
        folder, cache = control(tmp_path, headers={"Date": "Fri, 15 Jan 2027 07:59:00 GMT", **written}), ttl()
        done = from_cachecontrol(folder, cache, urls=[URL])
        assert (done, list(done.skipped), len(cache)) == (
            *(0, ["perhaps asked for with credentials (anonymous=True if none was)"], 0),
        )
        assert from_cachecontrol(folder, cache, urls=[URL], anonymous=True) == 1

    @pytest.mark.parametrize("said", ["public, max-age=9", "s-maxage=9", "PUBLIC"])
    def test_what_the_origin_calls_public_is_everybody_s(self, tmp_path: Path, said: str) -> None:
        folder = control(tmp_path, headers={"Cache-Control": said})
        assert from_cachecontrol(folder, ttl(), urls=[URL]) == 1

    def test_what_a_heuristic_wrote_is_not_the_origin_s_word(self, tmp_path: Path) -> None:
        """By RFC 9111, nothing allows to store this."""
        written = {"cache-control": "public", "expires": "Fri, 22 Jan 2027 07:59:00 GMT", "Warning": "110 - x"}
        folder, cache = control(tmp_path, headers=written), rfc()
        done = from_cachecontrol(folder, cache, urls=[URL], anonymous=True)
        assert done.skipped == {"not to be stored (freshness)": 1}
        kept = ttl()
        from_cachecontrol(folder, kept, urls=[URL], anonymous=True)
        found = kept.get(URL)
        assert found is not None
        assert not {"Cache-Control", "Expires", "Warning"} & set(found.headers)

    def test_what_varied_by_a_cookie_is_left(self, tmp_path: Path) -> None:
        fields = {"Vary": "Cookie", "Cache-Control": "public, max-age=9"}
        folder = control(tmp_path, vary={"Cookie": "sid=1"}, headers=fields)
        assert from_cachecontrol(folder, ttl(), urls=[URL], anonymous=True).skipped == {CREDENTIALS: 1}

    def test_a_body_that_is_cut_short_is_left(self, tmp_path: Path) -> None:
        folder = control(tmp_path, headers={"Content-Length": "6"})
        assert from_cachecontrol(folder, ttl(), urls=[URL], anonymous=True).skipped == {"unreadable": 1}

    @pytest.mark.parametrize("status", [float("inf"), float("nan"), -1, 10**6])
    def test_a_status_that_is_none_is_unreadable(self, tmp_path: Path, status: float) -> None:
        folder = control(tmp_path, status=float(status))
        assert int(migrated := from_cachecontrol(folder, ttl(), urls=[URL])) == 0
        assert migrated.skipped

    @pytest.mark.parametrize("data", [b"cc=0,\x80\x04N.", b"cc=4,", b"cc=4,\x80", b"", b"cc=4,\x81\xa8response\xc0"])
    def test_a_damaged_file_is_skipped(self, tmp_path: Path, data: bytes) -> None:
        name = hashlib.sha224(URL.encode()).hexdigest()
        (tmp_path / name).write_bytes(data)
        assert from_cachecontrol(tmp_path, ttl(), urls=[URL]).skipped == {"unreadable": 1}

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(NotADirectoryError):
            from_cachecontrol(tmp_path / "none", ttl(), urls=[URL])

    def test_one_url_is_no_collection(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="urls="):
            from_cachecontrol(tmp_path, ttl(), urls=URL)


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class TestReading:
    """The two readers of plain values."""

    @given(value=plain_values, protocol=st.sampled_from([3, 4, 5]))
    def test_a_pickle_of_plain_values_is_read(self, value: Any, protocol: int) -> None:
        assert plain_pickle(pickle.dumps(value, protocol)) == value

    @given(data=st.binary(max_size=60))
    def test_whatever_bytes_give_a_value_or_say_that_they_are_none(self, data: bytes) -> None:
        for read in (plain_pickle, unpack):
            with contextlib.suppress(NotPlain):
                read(data)

    def test_a_pickle_cannot_grow_out_of_a_few_bytes(self) -> None:
        shared: list[Any] = []
        for _ in range(30):
            shared = [shared, shared]
        with pytest.raises(NotPlain, match="several places"):
            plain_pickle(pickle.dumps(shared))

    def test_messagepack_is_not_read_deeper_than_it_may_be(self) -> None:
        with pytest.raises(NotPlain, match="values in values"):
            unpack(b"\x91" * 5000 + b"\xc0")

    @given(value=plain_values)
    def test_messagepack_is_read_as_its_own_package_writes_it(self, value: Any) -> None:
        msgpack = pytest.importorskip("msgpack")
        try:
            data = msgpack.packb(value)
        except OverflowError:
            return
        assert unpack(data) == value

    def test_the_count_is_a_number_and_a_sentence(self) -> None:
        assert str(Migrated(2, {"unreadable": 1})) == "2 answers stored; skipped: 1 unreadable"
        assert Migrated(2) + 1 == 3


class TestFilesOfTheOthers:
    """Files that the other caches themselves have written."""

    @pytest.fixture
    def page(self, server: Server) -> str:
        # Without a Date, CacheControl keeps nothing.
        fields = {"Cache-Control": "max-age=600", "Date": imf_fixdate(time.time()), "Content-Encoding": "gzip"}
        return server.route("/page", answer(body=gzip.compress(b"hello " * 50), fields=fields))

    @pytest.mark.parametrize("serializer", ["pickle", "json"])
    def test_requests_cache(self, tmp_path: Path, page: str, serializer: str) -> None:
        theirs = pytest.importorskip("requests_cache")
        with theirs.CachedSession(str(tmp_path / "x"), backend="sqlite", serializer=serializer) as session:
            session.get(page)
            session.get(page + "?mine", headers={"Authorization": "Bearer x"})
        cache = Cache(MemoryStore())
        done = from_requests_cache(tmp_path / "x.sqlite", cache)
        assert (done, done.skipped) == (1, {CREDENTIALS: 1})
        assert _content(cache, page) == b"hello " * 50

    def test_what_requests_cache_keeps_of_a_post_is_found(self, tmp_path: Path, server: Server) -> None:
        theirs = pytest.importorskip("requests_cache")
        url = server.route("/read", answer(body="read"))
        with theirs.CachedSession(str(tmp_path / "x"), allowable_methods=["POST"]) as session:
            session.post(url, json={"a": 1, "b": [2]})
            session.post(url, data={"c": "3"})
        cache = Cache(MemoryStore(), post=True)
        assert from_requests_cache(tmp_path / "x.sqlite", cache) == 2
        with caching(cache) as new:
            assert new.post(url, json={"a": 1, "b": [2]}).from_cache
            assert new.post(url, data={"c": "3"}).from_cache

    @pytest.mark.parametrize("kind", ["FileCache", "SeparateBodyFileCache"])
    def test_cachecontrol(self, tmp_path: Path, page: str, kind: str) -> None:
        pytest.importorskip("filelock")
        theirs = pytest.importorskip("cachecontrol")
        caches = pytest.importorskip("cachecontrol.caches")
        with theirs.CacheControl(requests.Session(), cache=getattr(caches, kind)(str(tmp_path))) as session:
            session.get(page + "?b=2&a=%7e")
        cache = Cache(MemoryStore())
        assert from_cachecontrol(tmp_path, cache, urls=[page + "?b=2&a=%7e"], anonymous=True) == 1
        assert _content(cache, page + "?b=2&a=%7e") == b"hello " * 50

    @pytest.mark.parametrize("name", ["ExpiresAfter", "OneDayCache", "LastModified"])
    def test_no_heuristic_of_cachecontrol_makes_somebody_s_answer_everybody_s(
        self, tmp_path: Path, server: Server, name: str
    ) -> None:
        pytest.importorskip("filelock")
        theirs = pytest.importorskip("cachecontrol")
        caches, heuristics = pytest.importorskip("cachecontrol.caches"), pytest.importorskip("cachecontrol.heuristics")
        now = time.time()
        fields = {"Date": imf_fixdate(now), "Last-Modified": imf_fixdate(now - 1e6)}
        mine = server.route("/mine", answer(body="mine", fields=fields))
        heuristic = getattr(heuristics, name)(**({"days": 1} if name == "ExpiresAfter" else {}))
        with theirs.CacheControl(requests.Session(), caches.FileCache(str(tmp_path)), heuristic=heuristic) as session:
            session.get(mine, headers={"Authorization": "Bearer x"})
        cache = Cache(MemoryStore())
        done = from_cachecontrol(tmp_path, cache, urls=[mine])
        assert (done, sum(done.skipped.values()), len(cache)) == (0, 1, 0)
