"""Records, stores and archives that anybody may have made: a miss, a warning, a ValueError, and nothing else."""

from __future__ import annotations

import io
import json
import logging
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync import Cache, MemoryStore, Session
from kreuz_sync.cache import Record
from kreuz_sync.cache.stored import FORMAT, Stored, decode, encode
from kreuz_sync.cache.variants import others_of

from .cache_sessions import FRESH, WatchedStore
from .cache_values import NOW, stored
from .loopback import Answer, Server

INFINITE, NAN = float("inf"), float("nan")
_FIELDS: list[Any] = [None, 5, ("a",), (("a", "b", "c"),), (("a", 1),), ((None, "b"),)]
_EXTRAS: list[Any] = [None, [], "x", {"asked": []}, {"asked": {"accept": 5}}]
UNSOUND: list[dict[str, Any]] = [
    {"method": None},
    {"url": 5},
    {"url": "http://a/\ud800"},
    *({"status": value} for value in ("200", None, True, -1, 99, 1000, 200.0)),
    *({"version": value} for value in (None, -1, 1e9)),
    {"reason": 5},
    *({"request_time": value} for value in ("1", None, NAN, INFINITE, -INFINITE, 1e300, 10**400)),
    *({"response_time": value} for value in ("1", None, NAN, INFINITE, -INFINITE, 1e300, -1e12)),
    *({"elapsed": value} for value in ("1", None, NAN, INFINITE, 1e300, -1.0)),
    *({"kept_for": value} for value in ("1", NAN, INFINITE, -1.0, True)),
    *({"size": value} for value in (None, "1", -1, 1.0)),
    *({"extra": value} for value in _EXTRAS),
    *({"vary": value} for value in (None, 5, (1, 2))),
    {"variant": 5},
    *({"fields": value} for value in _FIELDS),
    *({"fields": (("ETag", tag),)} for tag in ('"\u20ac"', '"a"\r\nX-Evil: 1', "a\nb", "a\0b")),
]


class TestDecode:
    """What can be decoded, and be no answer all the same."""

    @pytest.mark.parametrize("values", UNSOUND, ids=repr)
    def test_a_value_that_no_answer_has_makes_it_nothing(self, values: dict[str, Any]) -> None:
        assert decode(encode(_with(values))) is None

    @pytest.mark.parametrize("nested", [b"[" * 100_000, b'{"a":' * 100_000])
    def test_so_does_what_is_nested_too_deep(self, nested: bytes) -> None:
        assert decode(FORMAT + nested) is None

    def test_an_answer_is_what_it_was(self) -> None:
        one = stored(("X", "caf\xe9"), extra={"asked": {"accept": None}, "others": []})
        assert decode(encode(one)) == one

    @pytest.mark.parametrize(
        "other",
        [
            ["key", ["accept"], "v", '"\u20ac"', None, NOW],
            ["key", ["accept"], "v", '"a"\r\nX: y', None, NOW],
            ["key", ["accept"], "v", 5, None, NOW],
            ["key", ["accept"], "v", None, ["x"], NOW],
            ["key", ["accept"], "v", None, None, "1e999"],
            ["key", ["accept"], "v", None, None, NAN],
            ["\ud800", ["accept"], "v", None, None, NOW],
            [5, ["accept"], "v", None, None, NOW],
            ["key", [5], "v", None, None, NOW],
            ["key"],
            None,
        ],
    )
    def test_a_damaged_reference_to_a_variant_is_left_out(self, other: Any) -> None:
        good = ["key", ["accept"], "v", '"tag"', None, NOW]
        assert [one.etag for one in others_of(stored(extra={"others": [other, good]}))] == ['"tag"']


def _with(values: dict[str, Any]) -> Stored:
    return stored()._replace(**{"size": 1, **values})


class Given(WatchedStore):
    """A store with methods of a user's own."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        super().__init__()
        for name, method in methods.items():
            setattr(self, name, method)


class Broken(io.BytesIO):
    """A body that cannot be read."""

    def read(self, *_: Any) -> bytes:
        raise RuntimeError("a fault of its own")


def head(**values: Any) -> bytes:
    now = time.time()
    return encode(stored(*FRESH.items(), request_time=now, response_time=now, kept_for=3600.0, **values))


RUBBISH: dict[str, Callable[[], Any]] = {
    "a text": lambda: "rubbish",
    "a tuple": lambda: (b"head", b"body"),
    "no head": lambda: Record(None, b""),  # type: ignore[arg-type]
    "a bytearray for a head": lambda: Record(bytearray(head()), b"x" * 100),  # type: ignore[arg-type]
    "no body": lambda: Record(head(), None),  # type: ignore[arg-type]
    "a text for a body": lambda: Record(head(), "x"),  # type: ignore[arg-type]
    "a body that cannot be read": lambda: Record(head(), Broken()),
    "a body of text": lambda: Record(head(), io.StringIO("x" * 100)),  # type: ignore[arg-type]
}


class TestStoresOfAUsersOwn:
    """Whatever they give out, a request gets its answer, and somebody is told once."""

    @pytest.mark.parametrize("given", RUBBISH.values(), ids=RUBBISH)
    def test_a_record_that_is_none_is_a_miss(
        self, server: Server, caplog: pytest.LogCaptureFixture, given: Callable[[], Any]
    ) -> None:
        url = server.route("/page", Answer(body="fresh"))
        with Session(cache=Cache(Given(read=lambda key: given())), throttle=None) as session:
            assert [session.get(url).text for _ in range(3)] == ["fresh"] * 3
        warnings = [record.levelno for record in caplog.records]
        # The last two are records, as far as anybody knows before their bodies are read: each is told of.
        assert warnings == [logging.WARNING] * (
            3 if isinstance(given(), Record) and hasattr(given().body, "read") else 1
        )

    @pytest.mark.parametrize("secret", [b"short", b"x" * 65, "x" * 32, None])
    def test_without_a_secret_there_is_no_cache(
        self, server: Server, caplog: pytest.LogCaptureFixture, secret: Any
    ) -> None:
        url = server.route("/page", Answer(body="fresh"))
        with Session(cache=Cache(Given(secret=lambda: secret)), throttle=None) as session:
            assert [session.get(url).cache_status for _ in range(2)] == ["kreuz; fwd=bypass"] * 2
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "x" * 32 not in caplog.text

    @pytest.mark.parametrize("spool", [None, "x"])
    def test_without_a_file_a_large_body_is_not_stored(self, server: Server, spool: Any) -> None:
        url = server.route("/page", Answer(body="x" * 300_000))
        with Session(cache=Cache(Given(spool=lambda: spool)), throttle=None) as session:
            for _ in range(2):
                with session.get(url, stream=True) as response:
                    assert len(response.content) == 300_000

    @pytest.mark.parametrize("values", UNSOUND[:12] + UNSOUND[-4:], ids=repr)
    @pytest.mark.parametrize("policy", ["ttl", "rfc9111"])
    def test_an_unsound_record_is_a_miss_and_in_no_listing(
        self, server: Server, policy: str, values: dict[str, Any]
    ) -> None:
        url = server.route("/page", Answer(body="fresh"))
        record = Record(encode(_with(values)), b"x")
        store = Given(read=lambda key: record, keys=lambda: iter(["key"]))
        with Session(cache=Cache(store, policy=policy), throttle=None) as session:
            assert session.get(url).text == "fresh"
            assert list(session.cache or ()) == []

    def test_a_url_that_nobody_can_ask_for_is_in_no_listing(self) -> None:
        store = MemoryStore()
        store.write("key", encode(stored(url="http://[", size=1)), b"x")
        assert list(Cache(store)) == []


def archive(path: Path, body: bytes = b"body", text: str | None = None, **values: Any) -> Path:
    now = time.time()
    found = {
        "method": "GET",
        "url": "http://example.com/",
        "status": 200,
        "reason": "OK",
        "version": 11,
        "fields": [["Content-Type", "text/plain"]],
        "asked": {},
        "request_time": now,
        "response_time": now,
        "elapsed": 0.1,
        "kept_for": 3600,
        **values,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("cache.json", '{"format": "kreuz-sync cache", "version": 1}')
        file.writestr("1.json", json.dumps(found) if text is None else text)
        file.writestr("1.body", body)
    return path


class TestArchives:
    """`Cache.load` of a file that somebody else made."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "answers.zip"

    @pytest.mark.parametrize(
        "values",
        [
            {"text": '{"a":' + "[" * 200_000},
            {"text": "[]"},
            {"url": "http://["},
            {"url": 5},
            {"status": -1},
            {"status": "200"},
            {"elapsed": 1e300},
            {"response_time": 1e308},
            {"request_time": NAN},
            {"kept_for": -5},
            {"reason": None},
            {"fields": [["ETag", '"\u20ac"']]},
            {"fields": [["ETag", '"a"\r\nX: y']]},
            {"fields": [["a"]]},
            {"fields": 5},
            {"asked": {"Accept": "a\nb"}},
            {"asked": []},
            {"fields": [["Content-Length", "5"]]},
        ],
        ids=lambda values: repr(values)[:40],
    )
    def test_what_is_no_answer_is_a_value_error(self, file: Path, values: dict[str, Any]) -> None:
        cache = Cache(MemoryStore())
        with pytest.raises(ValueError):
            cache.load(archive(file, **values))
        assert len(cache) == 0

    @pytest.mark.parametrize("place", ["1.json", "1.body"])
    @pytest.mark.parametrize(("offset", "value"), [(10, 77), (10, 14), (8, 1), (16, 7)])
    def test_so_is_a_damaged_file(self, file: Path, place: str, offset: int, value: int) -> None:
        """Another compression method, a password, a wrong sum."""
        content = bytearray(archive(file, body=b"body" * 100).read_bytes())
        at = content.rindex(place.encode()) - 46  # its entry in the directory at the end
        content[at + offset] ^= value
        file.write_bytes(content)
        with pytest.raises(ValueError):
            Cache(MemoryStore()).load(file)

    def test_an_answer_from_the_future_came_now(self, file: Path) -> None:
        cache = Cache(MemoryStore())
        assert cache.load(archive(file, response_time=time.time() + 1e6, request_time=time.time() + 1e6)) == 1
        (entry,) = cache
        assert 3500 < entry.ttl <= 3600
        assert entry.stored_at <= time.time()

    @pytest.mark.parametrize(
        "values",
        [
            {"fields": [["Cache-Control", "no-store"]]},
            {"status": 500},
            {"fields": [["Vary", "*"]]},
            {"fields": [["Vary", "Authorization"]], "asked": {"authorization": "Basic x"}},
        ],
    )
    def test_what_would_not_have_been_stored_is_left_out(self, file: Path, values: dict[str, Any]) -> None:
        assert Cache(MemoryStore()).load(archive(file, **values)) == 0

    @pytest.mark.parametrize("size", [4, 400_000])
    def test_store_if_has_its_word(self, file: Path, size: int) -> None:
        seen: list[tuple[str | None, int]] = []

        def wanted(request: Any, response: Any) -> bool:
            seen.append((request.url, len(response.content)))
            return len(seen) > 1

        cache = Cache(MemoryStore(), store_if=wanted)
        archive(file, body=b"x" * size)
        assert [cache.load(file), cache.load(file)] == [0, 1]
        assert seen == [("http://example.com/", size)] * 2
        response = cache.get("http://example.com/")
        assert response is not None
        assert len(response.content) == size

    def test_fields_for_one_connection_are_left_out(self, file: Path) -> None:
        cache = Cache(MemoryStore())
        cache.load(archive(file, fields=[["Connection", "X-Own"], ["X-Own", "1"], ["Transfer-Encoding", "chunked"]]))
        response = cache.get("http://example.com/")
        assert response is not None
        assert set(response.headers) == {"Date", "Age"}

    def test_an_export_is_for_its_owner_s_eyes(self, file: Path) -> None:
        Cache(MemoryStore()).export(file)
        assert file.stat().st_mode & 0o077 == 0
