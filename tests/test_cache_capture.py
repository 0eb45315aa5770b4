"""A body on its way to its reader and into the store: all of it, or nothing."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import weakref
import zlib
from io import BytesIO
from pathlib import Path

import pytest
import urllib3

from kreuz_sync import Cache, DataLoss, DiskStore, LayerAdapter, MemoryStore, Session
from kreuz_sync.cache.capture import IN_MEMORY
from kreuz_sync.cache.tap import CAN_TAP, tap

from .cache_sessions import FRESH, NO_STORE, WatchedStore, caching, locked, rfc, ttl
from .loopback import answer, chunked, cut, cut_chunked, drip, gzipped

LARGE = bytes(range(256)) * (2 * IN_MEMORY // 256 + 100)


def fresh(made):
    made.fields.extend(FRESH.items())
    return made


def with_iter_content(response):
    return b"".join(response.iter_content(1000))


def with_content(response):
    return response.content


def with_lines(response):
    return b"\n".join(response.iter_lines(1000))


def with_read(response):
    return response.raw.read(decode_content=True)


def with_reads(response):
    return b"".join(iter(lambda: response.raw.read(1000, decode_content=True), b""))


def with_raw_stream(response):
    return b"".join(response.raw.stream(1000, decode_content=True))


def with_copyfileobj(response):
    target = BytesIO()
    response.raw.decode_content = True
    shutil.copyfileobj(response.raw, target, 1000)
    return target.getvalue()


def with_readinto(response):
    response.raw.decode_content = True
    buffer, found = bytearray(1000), b""
    while count := response.raw.readinto(buffer):
        found += buffer[:count]
    return found


def with_data(response):
    response.raw.decode_content = True
    return response.raw.data


READERS = [
    *(with_iter_content, with_content, with_lines, with_read, with_reads),
    *(with_raw_stream, with_copyfileobj, with_readinto, with_data),
]


def in_sevens(data):
    return [data[at : at + 7] for at in range(0, len(data), 7)]


BODY = b"one line\n" * 1000
SHAPES = {
    "of a length": lambda: answer(body=BODY),
    "in chunks": lambda: chunked(BODY[:5000], BODY[5000:]),
    "coded": lambda: gzipped(BODY),
    "coded, in chunks": lambda: chunked(*in_sevens(gzipped(BODY).body), fields={"Content-Encoding": "gzip"}),
    "up to the end of the connection": lambda: answer(body=BODY, length=None),
    "large": lambda: answer(body=LARGE),
}


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "pages")


class TestWhole:
    """However a stream is read, what was on the wire is stored at its end, once."""

    @pytest.mark.parametrize("read", READERS)
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.slow
    def test_it_is_stored(self, server, store, read, shape):
        made = fresh(SHAPES[shape]())
        made.fields.append(("Content-Type", "application/octet-stream"))
        url = server.route("/page", made)
        with caching(rfc(store=store)) as session:
            wire = session.get(url, headers={"Cache-Control": "no-store"}, stream=True).raw.read(decode_content=False)
            response = session.get(url, stream=True)
            assert len(store) == 0
            plain = read(response)
            assert (len(store), response.cache_status) == (1, "kreuz; fwd=uri-miss; stored")
            again = session.get(url, stream=True)
            assert again.from_cache
            assert read(again) == plain
            assert session.get(url, stream=True).raw.read(decode_content=False) == wire
        assert len(server.requests) == 2

    def test_what_was_read_by_raw_alone_is_stored_though_the_response_is_forgotten(self, server, store):
        url = server.route("/page", answer(body=BODY, fields=FRESH, content_type="text/csv"))
        with caching(rfc(store=store)) as session:
            raw = session.get(url, stream=True).raw
            assert raw.read() == BODY
            assert session.get(url).from_cache

    def test_a_response_is_forgotten_at_once(self, server):
        """Its connection goes back without the garbage collector."""
        url = server.route("/page", answer(body=BODY, fields=FRESH))
        with caching(rfc()) as session:
            gc.collect()
            gc.disable()
            try:
                for stream in (True, False):
                    response = session.get(url, stream=stream)
                    body, gone = weakref.ref(response.raw), weakref.ref(response)
                    del response
                    assert (gone(), body()) == (None, None)
                    session.get(url, headers={"Cache-Control": "no-cache"})
            finally:
                gc.enable()

    def test_the_first_bytes_come_as_soon_as_without_a_cache(self, server):
        gate = threading.Event()
        url = server.route("/page", drip(b"x" * 20_000, piece=10_000, pause=gate, fields=FRESH))
        with caching(rfc()) as session:
            chunks = session.get(url, stream=True).iter_content(10_000)
            assert next(chunks) == b"x" * 10_000
            gate.set()
            assert next(chunks) == b"x" * 10_000

    def test_a_stored_error_page_that_streams_is_whole(self, server):
        url = server.route("/page", answer(404, body=BODY, fields=FRESH))
        with caching(rfc()) as session:
            assert session.get(url, stream=True).content == BODY
            assert session.get(url, stream=True).status_code == 404
        assert len(server.requests) == 1


class TestNotWhole:
    """A stream that was not read to its end, or whose end was not the body's, leaves nothing."""

    @pytest.mark.parametrize("shape", ["of a length", "in chunks", "coded", "large"])
    @pytest.mark.parametrize("way", ["closed", "forgotten", "left by a break", "left with a with"])
    @pytest.mark.slow
    def test_one_that_is_given_up(self, server, store, shape, way):
        url = server.route("/page", fresh(SHAPES[shape]()))
        with caching(rfc(store=store)) as session:
            response = session.get(url, stream=True)
            if way == "left with a with":
                with response:
                    response.raw.read(10)
            elif way == "left by a break":
                for _ in response.iter_content(10):
                    break
            else:
                response.raw.read(10)
            if way == "closed":
                response.close()
                response.raw.read()
            del response
            gc.collect()
            assert len(store) == 0
            assert session.get(url).ok

    @pytest.mark.parametrize("read", READERS)
    @pytest.mark.parametrize(
        "broken",
        [
            cut(b"x" * 20_000, 10_000, fields=FRESH),
            cut_chunked(b"x" * 10_000, b"x" * 10_000, fields=FRESH),
            cut(LARGE, IN_MEMORY + 1000, fields=FRESH),
        ],
    )
    def test_one_that_breaks_off(self, server, store, broken, read):
        url = server.route("/page", broken)
        with caching(rfc(store=store)) as session:
            try:
                read(session.get(url, stream=True))
            except (DataLoss, urllib3.exceptions.HTTPError):
                pass
            assert len(store) == 0

    def test_a_coded_one_that_ends_with_the_connection_and_too_soon(self, server, store):
        """Nothing but the coding itself says that something is missing."""
        coded = gzipped(b"text " * 1000).body
        url = server.route("/page", answer(body=coded[:-10], length=None, fields={**FRESH, "Content-Encoding": "gzip"}))
        with caching(rfc(store=store)) as session:
            with pytest.raises(DataLoss):
                with_content(session.get(url, stream=True))
            session.get(url, stream=True).raw.read()
            with pytest.raises(DataLoss):
                session.get(url)
            assert len(store) == 0

    def test_one_that_cannot_be_decoded(self, server, store):
        url = server.route("/page", answer(body=b"no gzip at all", fields={**FRESH, "Content-Encoding": "gzip"}))
        with caching(rfc(store=store)) as session:
            for stream in (True, False):
                with pytest.raises(DataLoss):
                    with_content(session.get(url, stream=stream))
            assert len(store) == 0

    @pytest.mark.parametrize("read", READERS)
    def test_one_that_turns_out_to_be_a_challenge(self, server, store, read):
        page = "<html><title>Just a moment...</title><body><script>window._cf_chl_opt={}</script></body></html>"
        url = server.route("/page", answer(body=page, fields=FRESH, content_type="text/html"))
        with caching(rfc(store=store)) as session:
            response = session.get(url, stream=True)
            read(response)
            assert response.waf is not None
            assert len(store) == 0

    def test_one_whose_reader_is_interrupted(self, server, store):
        url = server.route("/page", answer(body=LARGE, fields=FRESH))
        with caching(rfc(store=store)) as session:
            with pytest.raises(KeyboardInterrupt):
                for _ in session.get(url, stream=True).iter_content(1000):
                    raise KeyboardInterrupt
            gc.collect()
            assert len(store) == 0
            assert session.get(url).content == LARGE


class TestLarge:
    def test_what_is_too_large_by_its_length_passes_untouched(self, server):
        store = WatchedStore()
        url = server.route("/page", answer(body=LARGE, fields=FRESH))
        with caching(rfc(store=store, max_entry_size=len(LARGE) - 1)) as session:
            response = session.get(url, stream=True)
            assert not hasattr(response.raw, "_listener")
            assert response.content == LARGE
        assert "spool" not in store.calls and "write" not in store.calls

    def test_what_becomes_too_large_is_given_up_when_it_does(self, server, tmp_path):
        pieces = [LARGE[at : at + 2**16] for at in range(0, len(LARGE), 2**16)]
        url = server.route("/page", chunked(*pieces, fields=FRESH))
        with caching(Cache(tmp_path / "pages", policy="rfc9111", max_entry_size=len(LARGE) - 1)) as session:
            chunks = session.get(url, stream=True).iter_content(2**16)
            read = b"".join(next(chunks) for _ in range(len(pieces) - 1))
            assert spooled(tmp_path) == 1
            assert read + b"".join(chunks) == LARGE
            assert (spooled(tmp_path), len(session.cache)) == (0, 0)

    def test_what_may_not_be_stored_never_touches_the_disk(self, server, tmp_path):
        url = server.route("/page", answer(body=LARGE, fields=NO_STORE))
        kept = server.route("/kept", answer(body=LARGE, fields=FRESH))
        with caching(Cache(tmp_path / "pages", policy="rfc9111")) as session:
            for target, headers in ((url, {}), (kept, {"Cache-Control": "no-store"})):
                chunks = session.get(target, headers=headers, stream=True).iter_content(2**16)
                for _ in chunks:
                    assert spooled(tmp_path) == 0
                session.get(target, headers=headers)
        assert not [
            path for path in (tmp_path / "pages").rglob("*") if path.is_file() and LARGE[:1000] in path.read_bytes()
        ]

    def test_nothing_of_it_is_left_behind_when_it_is_given_up(self, server, tmp_path):
        url = server.route("/page", answer(body=LARGE * 4, fields=FRESH))
        with caching(Cache(tmp_path / "pages", policy="rfc9111")) as session:
            response = session.get(url, stream=True)
            response.raw.read(IN_MEMORY + 1)
            assert spooled(tmp_path) == 1
            response.close()
            assert spooled(tmp_path) == 0

    @pytest.mark.parametrize("failing", ["spool", "write"])
    def test_a_store_that_fails_spoils_no_stream(self, server, failing, caplog):
        store = WatchedStore(locked())
        store.failing = frozenset({failing})
        url = server.route("/page", answer(body=LARGE, fields=FRESH))
        with caching(rfc(store=store)) as session:
            assert session.get(url, stream=True).content == LARGE
        assert len(caplog.records) == 1

    def test_a_file_that_fails_spoils_no_stream(self, server, caplog):
        class Full(BytesIO):
            def write(self, data):
                raise OSError(28, "No space left on device")

        store = WatchedStore()
        store.spool = Full
        url = server.route("/page", answer(body=LARGE, fields=FRESH))
        with caching(rfc(store=store)) as session:
            assert session.get(url, stream=True).content == LARGE
            assert len(store) == 0

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the kernel's figures")
    def test_memory_stays_flat(self, server, tmp_path):
        """64 MiB, on the way in and on the way out, in a process of its own."""
        url = server.route("/page", answer(body=b"x" * 2**26, fields=FRESH))
        code = f"""
            import re, sys
            from pathlib import Path
            from kreuz_sync import Session
            def peak():
                return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
            with Session(cache={str(tmp_path / "pages")!r}, throttle=None) as session:
                session.get({server.url("/")!r}, stream=True).content
                before = peak()
                for _ in range(2):
                    with session.get({url!r}, stream=True) as response:
                        assert sum(map(len, response.iter_content(2**16))) == 2**26
                assert response.from_cache
                print(peak() - before)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 16


def spooled(tmp_path):
    """How many bodies are on their way into the folder."""
    folder = tmp_path / "pages" / "cache.db-incoming"
    return len(os.listdir(folder)) if folder.exists() else 0


class TestTap:
    def test_this_urllib3_can_be_tapped(self):
        assert CAN_TAP

    def test_what_is_not_urllib3s_is_left_alone(self):
        assert not tap(BytesIO(), None)
        assert not tap(None, None)

    def test_a_double_without_a_wire_is_not_stored_wrongly(self, server):
        """What was decoded already cannot be stored as it was on the wire."""

        class Double(LayerAdapter):
            def send(self, request, **options):
                response = self.inner.send(request, **options)
                response.raw = BytesIO(b"")
                return response

        url = server.route("/page", gzipped(b"text", content_type="text/plain"))
        with Session(layers=[ttl(), Double]) as session:
            assert [session.get(url).text for _ in range(2)] == ["text"] * 2

    @pytest.mark.parametrize("made", [answer(body=BODY, fields=FRESH), chunked(BODY, BODY, fields=FRESH)])
    def test_what_a_layer_below_has_begun_to_read_is_not_stored(self, server, made):
        class Peeking(LayerAdapter):
            def send(self, request, **options):
                response = self.inner.send(request, **options)
                next(response.raw.stream(10))
                return response

        url = server.route("/page", made)
        cache = rfc()
        with Session(layers=[cache, Peeking]) as session:
            session.get(url, stream=True).raw.read()
        assert len(cache) == 0

    def test_several_codings_are_kept_in_all_their_layers(self, server):
        packed = zlib.compress(gzipped(b"text" * 100).body)
        url = server.route("/page", answer(body=packed, fields={**FRESH, "Content-Encoding": "gzip, deflate"}))
        with caching(rfc()) as session:
            assert [session.get(url).content for _ in range(2)] == [b"text" * 100] * 2
            assert session.get(url, stream=True).raw.read() == packed
