"""An answer under way while another process makes its URL invalid is not stored over that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from kreuz_sync import Cache
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.folder.drops import _MOMENT, SLOTS, Drops

from .cache_sessions import FRESH, caching
from .loopback import Server, answer, sequence
from .store_contract import content
from .test_cache_store_disk import run_python
from .test_cache_store_processes import finish, start
from .waiting import Worker, eventually

URI = "0123456789abcdef" * 2
OTHER = "fedcba9876543210" * 2
LARGE = b"x" * 100_000  # a file of its own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def stores(folder: Path) -> Iterator[tuple[DiskStore, DiskStore]]:
    """Over one folder, as of two processes."""
    with closing(DiskStore(folder)) as one, closing(DiskStore(folder)) as two:
        yield one, two


Stores = tuple[DiskStore, DiskStore]

DROPS = {
    "its URI": lambda store: store.delete_under(URI),
    "a user's": lambda store: store.delete_under(f"{URI}.b"),
    "many": lambda store: store.delete_under("0"),
    "all": lambda store: store.clear(),
}


class TestStore:
    @pytest.mark.parametrize("body", [b"small", LARGE])
    @pytest.mark.parametrize("drop", DROPS.values(), ids=DROPS)
    def test_what_was_asked_for_before_a_drop_is_not_written(self, stores: Stores, drop: Any, body: bytes) -> None:
        """Though nothing was there when it was dropped."""
        one, two = stores
        began = perf_counter()
        drop(two)
        assert not one.write_if_current(f"{URI}.a", b"head", body, perf_counter() - began)
        assert one.read(f"{URI}.a") is two.read(f"{URI}.a") is None
        assert len(one) == 0

    @pytest.mark.parametrize("body", [b"small", LARGE])
    def test_what_is_there_stays_then(self, stores: Stores, body: bytes) -> None:
        one, two = stores
        two.delete_under(URI)
        assert two.write_if_current(URI, b"new", body, 0.0)
        assert not one.write_if_current(URI, b"old", b"old", 5.0)
        assert not one.write_if_current(URI, b"old", LARGE, 5.0)
        assert content(two.read(URI)) == body

    def test_what_was_asked_for_after_it_is_written(self, stores: Stores) -> None:
        one, two = stores
        two.delete_under(URI)
        began = perf_counter()
        assert one.write_if_current(URI, b"head", b"body", perf_counter() - began)

    def test_another_uri_is_written(self, stores: Stores) -> None:
        stores[1].delete_under(URI)
        assert stores[0].write_if_current(OTHER, b"head", b"body", 5.0)

    def test_dropping_one_record_counts(self, stores: Stores) -> None:
        one, two = stores
        one.write(f"{URI}.b", b"head", b"body")
        two.delete(f"{URI}.b")
        assert not one.write_if_current(f"{URI}.a", b"head", b"body", 5.0)

    def test_making_room_does_not(self, folder: Path) -> None:
        with closing(DiskStore(folder, max_entries=2)) as store:
            for number in range(5):
                store.write(f"{URI}.{number}", b"head", b"body")
            assert store.write_if_current(f"{URI}.a", b"head", b"body", 5.0)

    def test_a_plain_write_asks_nothing(self, stores: Stores) -> None:
        stores[1].delete_under(URI)
        stores[0].write(URI, b"head", b"body")
        assert content(stores[1].read(URI)) == b"body"

    def test_one_that_is_too_large_is_not_written(self, folder: Path) -> None:
        with closing(DiskStore(folder, max_bytes=1000)) as store:
            assert not store.write_if_current(URI, b"head", b"x" * 2000, 0.0)
            assert not store.write_if_current(URI, b"head", LARGE, 0.0)

    def test_it_is_remembered_over_a_new_beginning(self, folder: Path) -> None:
        began = perf_counter()
        run_python(
            "import sys; from kreuz_sync.cache.disk import DiskStore; DiskStore(sys.argv[1]).delete_under(sys.argv[2])",
            *(folder, URI),
        )
        with closing(DiskStore(folder)) as store:
            assert not store.write_if_current(URI, b"head", b"body", perf_counter() - began)

    def test_nothing_from_before_is_ever_seen_after_it(self, folder: Path) -> None:
        """Three processes store the version that they have read; a fourth changes it, and drops what is stored."""
        version = folder.parent / "version"
        version.write_bytes(b"0" * 8)
        opening = """
import os, sys
from time import perf_counter
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], lock_wait=30)
version = os.open(sys.argv[2], os.O_RDWR)
key = sys.argv[3]
"""
        storing = f"""{opening}
while (read := (began := perf_counter(), os.pread(version, 8, 0))[1]) != b"end     ":
    body = read * (20_000 if int(read) % 5 == 0 else 1)
    store.write_if_current(key, read, body, perf_counter() - began)
"""
        changing = f"""{opening}
try:
    for number in range(1, 300):
        os.pwrite(version, b"%08d" % number, 0)
        store.delete_under(key)
        for _ in range(3):
            record = store.read(key)
            assert record is None or int(record.head) >= number, (record.head, number)
        while number % 10 == 0 and store.read(key) is None:
            pass  # until one of them has stored the new one
finally:
    os.pwrite(version, b"end     ", 0)
"""
        for process in [start(code, folder, version, URI) for code in (storing, storing, storing, changing)]:
            finish(process)


class TestSessions:
    """A session here, and one in another process, over one folder."""

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("body", ["small", "x" * 300_000])
    @pytest.mark.parametrize("change", ["session.post(url)", "session.cache.delete(url)", "session.cache.clear()"])
    def test_what_is_under_way_meanwhile_is_not_stored(
        self, server: Server, folder: Path, change: str, body: str, stream: bool
    ) -> None:
        gate = threading.Event()
        url = server.route("/page", sequence(answer(body=body, fields=FRESH, delay=gate), answer(body="new")))
        cache = Cache(DiskStore(folder, lock_wait=20), ttl=60)
        with caching(cache) as session:
            worker = Worker(lambda: session.get(url, stream=stream).content)
            eventually(lambda: len(server.requests) == 1)
            in_another_process(folder, url, change)
            gate.set()
            assert worker.outcome() == body.encode()
            assert len(cache) == 0
            assert session.get(url).text == "new"
            assert session.get(url).from_cache

    def test_what_is_asked_for_after_it_is_stored(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=FRESH))
        with caching(Cache(DiskStore(folder, lock_wait=20), ttl=60)) as session:
            in_another_process(folder, url, "session.post(url)")
            session.get(url)
            session.post(url)
            session.get(url)
            assert session.get(url).from_cache

    def test_other_urls_are_stored(self, server: Server, folder: Path) -> None:
        gate = threading.Event()
        url = server.route("/page", answer(fields=FRESH, delay=gate))
        with caching(Cache(DiskStore(folder, lock_wait=20), ttl=60)) as session:
            worker = Worker(session.get, url)
            eventually(lambda: len(server.requests) == 1)
            in_another_process(folder, server.route("/other", answer()), "session.post(url)")
            gate.set()
            worker.outcome()
            assert session.get(url).from_cache

    def test_a_post_that_says_what_a_get_would_is_stored(self, server: Server, folder: Path) -> None:
        """It made invalid what was there before, and is itself from after that."""
        url = server.url("/page")
        server.route("/page", answer(body="page", fields={**FRESH, "Content-Location": url}))
        with caching(Cache(DiskStore(folder, lock_wait=20), policy="rfc9111")) as session:
            session.post(url)
            assert session.get(url).from_cache


def in_another_process(folder: Path, url: str, change: str) -> None:
    code = f"""
import sys
from kreuz_sync import Cache, DiskStore, Session
folder, url = sys.argv[1:3]
with Session(cache=Cache(DiskStore(folder, lock_wait=20), ttl=60), throttle=None) as session:
    {change}
"""
    run_python(code, folder, url)


class TestDrops:
    """The file of moments."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "drops"

    def test_before_the_first_nothing_is_outdated(self, path: Path) -> None:
        with closing(Drops(str(path))) as drops:
            assert not drops.is_outdated(URI, 0.0)
            assert not drops.is_outdated(URI, -(10.0**9))

    def test_what_came_before_is_outdated_and_what_came_after_is_not(self, path: Path) -> None:
        with closing(Drops(str(path))) as drops:
            before = perf_counter()
            drops.note(f"{URI}.a")
            after = perf_counter()
            assert drops.is_outdated(URI, before)
            assert drops.is_outdated(f"{URI}.b", before)
            assert not drops.is_outdated(URI, after)
            assert not drops.is_outdated(OTHER, before)

    def test_a_moment_still_to_come_is_from_before_the_machine_was_started(self, path: Path) -> None:
        path.write_bytes(_MOMENT.pack(perf_counter() + 10_000) * SLOTS)
        with closing(Drops(str(path))) as drops:
            assert not drops.is_outdated(URI, perf_counter())

    @pytest.mark.parametrize("found", [b"", b"x", b"\xff" * 8 * SLOTS, b"\0" * 100])
    def test_whatever_is_in_the_file_it_works(self, path: Path, found: bytes) -> None:
        path.write_bytes(found)
        with closing(Drops(str(path))) as drops:
            before = perf_counter()
            assert not drops.is_outdated(URI, before)
            drops.note(URI)
            assert drops.is_outdated(URI, before)

    def test_it_does_not_grow(self, path: Path) -> None:
        for _ in range(3):
            with closing(Drops(str(path))) as drops:
                drops.note_under("")
                for number in range(100):
                    drops.note(str(number))
        assert path.stat().st_size == 8 * SLOTS
