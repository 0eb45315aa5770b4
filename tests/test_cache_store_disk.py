"""The store on disk: what it promises beyond every store's promises, as long as nothing goes wrong."""

from __future__ import annotations

import gc
import itertools
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.folder import statements
from kreuz_sync.cache.folder.shelf import INLINE
from kreuz_sync.cache.folder.uses import MOST, Uses
from kreuz_sync.cache.store import CacheStore

from .store_contract import LARGE, MIDDLE, SMALL, MakeStore, StoreContract, content, fill, in_threads

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(folder: Path) -> Iterator[DiskStore]:
    with closing(DiskStore(folder)) as store:
        yield store


def run_python(code: str, *arguments: object) -> str:
    """What `code` prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def body_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.val"))


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the files that Linux lists in /proc")


class TestDiskStore(StoreContract):
    """All that every store promises."""

    # Small enough that both an answer from memory and one from disk are met.
    memory = 2**20

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        folders = itertools.count()

        def make(**limits: Any) -> CacheStore:
            return DiskStore(tmp_path / f"cache {next(folders)}", memory=self.memory, lock_wait=10, **limits)

        return make


class TestDiskStoreWithoutMemory(TestDiskStore):
    """The same, every record from the disk."""

    memory = 0

    def test_the_same_record_is_given_again(self, store: CacheStore) -> None:
        """Without memory nobody can remember what was noted on a record."""
        store.write("key", b"head", SMALL)
        assert store.read("key") is not store.read("key")


class TestFolder:
    """What lies in the folder, and who may look at it."""

    def test_it_is_the_owners_alone(self, folder: Path, store: DiskStore) -> None:
        fill(store, "a")
        store.write("b", b"head", MIDDLE)
        store.secret()
        with store.spool() as file:
            file.write(MIDDLE)
            found = [folder, *folder.rglob("*")]
            assert len(found) > 8
            modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found}
        assert modes == {(True, 0o700), (False, 0o600)}

    def test_it_is_made_with_all_above_it(self, tmp_path: Path) -> None:
        with closing(DiskStore(tmp_path / "a" / "b" / "c")) as store:
            fill(store, "key")
        assert (tmp_path / "a" / "b" / "c" / "cache.db").exists()

    def test_it_is_not_made_before_it_is_used(self, folder: Path) -> None:
        DiskStore(folder)
        assert not folder.exists()

    def test_a_home_and_a_variable_in_its_path_are_replaced(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEPT_IN", "kept")
        with closing(DiskStore("~/$KEPT_IN")) as store:
            fill(store, "key")
        assert (home / "kept" / "cache.db").exists()

    def test_it_stays_the_same_when_the_current_one_changes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        store = DiskStore("here")
        monkeypatch.chdir("/")
        assert store.folder == str(tmp_path / "here")

    def test_small_bodies_need_no_file_of_their_own(self, folder: Path, store: DiskStore) -> None:
        store.write("small", b"head", b"x" * (INLINE - 4))
        assert body_files(folder) == []
        store.write("large", b"head", b"x" * (INLINE - 3))
        assert len(body_files(folder)) == 1

    def test_the_files_of_what_is_gone_are_gone(self, folder: Path) -> None:
        """Replaced, deleted, evicted or cleared."""
        with closing(DiskStore(folder, max_entries=3)) as store:
            for name in ("a", "a", "b", "c", "d", "e"):
                store.write(name, b"head", MIDDLE)
            assert len(body_files(folder)) == 3
            store.delete("e")
            store.write("d", b"head", SMALL)
            assert len(body_files(folder)) == 1
            store.clear()
            assert body_files(folder) == []

    def test_a_spool_that_is_not_written_leaves_nothing(self, folder: Path, store: DiskStore) -> None:
        with store.spool() as file:
            file.write(LARGE)
        assert [path for path in folder.rglob("*") if path.stat().st_size > 10**6] == []

    def test_a_spool_is_not_copied(self, folder: Path, store: DiskStore) -> None:
        """A large body is written to the disk once."""
        with store.spool() as file:
            file.write(LARGE)
            (spooled,) = (path.stat().st_ino for path in (folder / "cache.db-incoming").iterdir())
            file.seek(0)
            store.write("key", b"head", file)
        assert body_files(folder)[0].stat().st_ino == spooled

    def test_a_new_head_leaves_a_large_body_alone(self, folder: Path, store: DiskStore) -> None:
        store.write("key", b"head", LARGE)
        (before,) = body_files(folder)
        written = before.stat().st_mtime_ns
        store.rewrite_head("key", b"new head")
        assert [(path, path.stat().st_mtime_ns) for path in body_files(folder)] == [(before, written)]

    def test_clearing_gives_the_space_back(self, folder: Path, store: DiskStore) -> None:
        fill(store, *map(str, range(500)), size=5000)
        store.clear()
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 300_000

    def test_records_outlive_the_store(self, folder: Path) -> None:
        with closing(DiskStore(folder)) as store:
            store.write("small", b"head", SMALL)
            store.write("large", b"head", LARGE)
        with closing(DiskStore(folder)) as store:
            assert (content(store.read("small")), content(store.read("large"))) == (SMALL, LARGE)

    def test_a_record_of_another_format_is_absent(self, folder: Path, store: DiskStore) -> None:
        fill(store, "key")
        with closing(sqlite3.connect(folder / "cache.db")) as database:
            database.execute("UPDATE Cache SET value = 'KZ9' || value")
            database.commit()
        assert store.read("key") is None

    def test_a_lower_limit_is_reached_with_the_next_write(self, folder: Path) -> None:
        with closing(DiskStore(folder)) as store:
            fill(store, *map(str, range(400)))
        with closing(DiskStore(folder, max_entries=10)) as store:
            fill(store, "new")
            assert len(store) == 10


class TestDiskcache:
    """The folder is one of diskcache's, and nothing that it does by itself gets in the way."""

    def test_diskcache_finds_it_in_order(self, folder: Path, store: DiskStore) -> None:
        import diskcache

        fill(store, "a", "b")
        store.write("c", b"head", MIDDLE)
        store.write("c", b"head", LARGE)
        store.rewrite_head("c", b"new")
        store.delete("b")
        store.secret()
        content(store.read("c"))
        with warnings.catch_warnings(), diskcache.Cache(str(folder)) as cache:
            warnings.simplefilter("ignore", diskcache.EmptyDirWarning)
            found = [str(one.message) for one in cache.check() if one.category is not diskcache.EmptyDirWarning]
            assert (found, len(cache)) == ([], 2)

    def test_opening_it_with_diskcache_changes_nothing(self, folder: Path, store: DiskStore) -> None:
        import diskcache

        fill(store, "a")
        with closing(sqlite3.connect(folder / "cache.db")) as database:
            before = database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
            diskcache.Cache(str(folder)).close()
            assert database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == before

    def test_its_limit_of_a_gibibyte_and_its_eviction_are_off(self, folder: Path, store: DiskStore) -> None:
        """In the folder itself, so that they are off for whoever opens it."""
        import diskcache

        fill(store, "a")
        with diskcache.Cache(str(folder)) as cache:
            assert (cache.eviction_policy, cache.cull_limit, cache.size_limit) == ("none", 0, 2**62)

    def test_its_table_gets_our_settings_again(self, folder: Path, store: DiskStore) -> None:
        import diskcache

        fill(store, "a")
        store.close()
        with diskcache.Cache(str(folder), size_limit=1, cull_limit=10, sqlite_mmap_size=2**26, statistics=1):
            pass
        assert len(store) == 1
        with diskcache.Cache(str(folder)) as cache:
            assert (cache.cull_limit, cache.size_limit, cache.statistics) == (0, 2**62, 0)

    def test_a_folder_of_diskcache_can_be_taken_over(self, folder: Path) -> None:
        """Its rows count as absent, and are the first to go."""
        import diskcache

        with diskcache.Cache(str(folder)) as cache:
            cache["theirs"] = b"value"
            cache["a file of theirs"] = b"v" * 100_000
        with closing(DiskStore(folder)) as store:
            assert store.read("theirs") is None
            fill(store, "theirs")
            assert content(store.read("theirs")) == b"x" * 10
            store.clear()
        assert list(folder.rglob("*.val")) == []


class Counted:
    """Counts the SQL statements of a store. The memory tier and everything else is as always."""

    def __init__(self, store: DiskStore) -> None:
        self.statements: list[str] = []
        shelf = store._checked()
        shelf._readers.rows(statements.COUNT)
        (reader,) = shelf._readers._idle
        for connection in (reader, shelf._writer._connection):
            connection.set_trace_callback(self._note)

    def _note(self, statement: str) -> None:
        # One that starts triggers is told of once more for each step of theirs.
        if self.statements[-1:] != [statement]:
            self.statements.append(statement)

    def during(self, work: Callable[[], object]) -> list[str]:
        self.statements.clear()
        work()
        return [statement.split()[0] for statement in self.statements]


class TestCost:
    """Counted in statements, and in how SQLite means to find the rows: seconds say more about the machine."""

    def test_a_read_is_one_statement_and_the_next_none(self, store: DiskStore) -> None:
        fill(store, "key")
        counted = Counted(store)
        assert counted.during(lambda: store.read("key")) == ["SELECT"]
        assert counted.during(lambda: store.read("key")) == []

    def test_a_read_writes_nothing(self, folder: Path) -> None:
        """No page of the database changes, nor of its log."""
        with closing(DiskStore(folder, memory=0)) as store:
            names = [str(number) for number in range(100)]
            fill(store, *names)
            files = [folder / "cache.db", folder / "cache.db-wal"]
            before = [path.read_bytes() for path in files]
            for name in names * 3:
                store.read(name)
            assert [path.read_bytes() for path in files] == before

    def test_thousands_of_reads_write_nothing_to_the_database_either(self, folder: Path) -> None:
        """Uses are put down elsewhere."""
        with closing(DiskStore(folder, memory=0)) as store:
            names = [str(number) for number in range(2 * MOST)]
            fill(store, *names)
            counted = Counted(store)
            assert set(counted.during(lambda: [store.read(name) for name in names])) == {"SELECT"}

    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("body", [SMALL, MIDDLE])
    @pytest.mark.slow
    def test_a_write_takes_as_many_statements_however_much_is_there(
        self, tmp_path: Path, full: bool, body: bytes
    ) -> None:
        counts = []
        for entries in (10, 1000):
            with closing(DiskStore(tmp_path / str(entries), max_entries=entries if full else 0)) as store:
                fill(store, *(f"{number}" for number in range(entries)))
                counted = Counted(store)
                counts.append(counted.during(lambda: store.write("new", b"head", body)))
        assert counts[0] == counts[1]
        assert len(counts[0]) <= 8

    @pytest.mark.parametrize(
        "name", [name for name, value in sorted(vars(statements).items()) if name.isupper() and isinstance(value, str)]
    )
    def test_every_statement_finds_its_rows_by_an_index(self, folder: Path, store: DiskStore, name: str) -> None:
        """A pass over all rows, or a sort, would be slower the more there are."""
        if name == "RECOUNT":
            pytest.skip("it counts all rows, when there are next to none")
        fill(store, "key")
        statement = getattr(statements, name)
        with closing(sqlite3.connect(folder / "cache.db")) as database:
            values = (1,) * statement.count("?")
            plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        for step in plan:
            assert "TEMP B-TREE" not in step
            if step.startswith("SCAN"):
                # In the order of an index, or of the rows, up to the LIMIT.
                assert "USING INDEX" in step or "USING COVERING INDEX" in step or "LIMIT" in statement, step

    def test_the_folder_is_not_listed_when_it_is_used(self, store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not by reads and writes; a large cache has a hundred thousand files."""
        store.write("a", b"head", MIDDLE)
        for name in ("listdir", "scandir"):
            monkeypatch.setattr(os, name, None)
        store.write("b", b"head", MIDDLE)
        store.read("a")
        store.delete("a")

    @needs_proc
    def test_a_stream_of_any_length_takes_little_memory(self, store: DiskStore) -> None:
        """On its way in through a spool, and out."""
        chunk, count = os.urandom(2**16), 800
        store.write("warm", b"head", SMALL)
        tracemalloc.start()
        try:
            with store.spool() as file:
                for _ in range(count):
                    file.write(chunk)
                file.seek(0)
                store.write("key", b"head", file)
            record = store.read("key")
            assert record is not None and not isinstance(record.body, bytes)
            with record.body as body:
                length = 0
                while piece := body.read(2**16):
                    length += len(piece)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert length == len(chunk) * count
        assert peak < 2 * 2**20

    def test_nothing_is_imported_before_it_is_used(self) -> None:
        code = """
import sys
from kreuz_sync.cache.disk import DiskStore
DiskStore("somewhere")
print(sorted({"diskcache", "sqlite3"} & set(sys.modules)))
"""
        assert run_python(code).strip() == "[]"


class TestUses:
    """What was used longest ago goes first, though reading writes nothing to the database."""

    @pytest.fixture
    def uses(self, tmp_path: Path) -> Iterator[Uses]:
        with closing(Uses(str(tmp_path / "uses"))) as uses:
            yield uses

    def test_later_uses_have_higher_numbers(self, uses: Uses) -> None:
        for row in (5, 3, 5, 9):
            uses.note(row, 0.0)
        uses.put_down()
        assert 0 < uses.last(3) < uses.last(5) < uses.last(9) < 1
        assert uses.last(4) == 0.0

    def test_all_uses_after_a_write_come_after_it(self, uses: Uses) -> None:
        uses.note(1, 0.0)
        uses.put_down()
        uses.written(7.0)
        uses.note(2, 0.0)
        uses.note(1, 0.0)
        uses.put_down()
        assert 7 < uses.last(2) < uses.last(1) < 8

    def test_they_are_put_down_when_there_are_many_or_a_second_has_passed(self, uses: Uses) -> None:
        for _ in range(3):
            uses.note(1, 100.0)
        uses.note(2, 100.9)
        assert uses.last(1) == 0.0
        uses.note(2, 101.0)
        assert uses.last(1) > 0.0
        for row in range(10, 10 + MOST):
            uses.note(row, 200.0)
        assert uses.last(10) > 0.0

    def test_other_processes_know_of_them(self, tmp_path: Path, uses: Uses) -> None:
        uses.written(7.0)
        uses.note(1, 0.0)
        uses.put_down()
        with closing(Uses(str(tmp_path / "uses"))) as other:
            assert other.last_write() == 7.0
            assert other.last(1) == uses.last(1)

    def test_however_many_there_are_between_two_writes(self, uses: Uses) -> None:
        """They are never taken for uses after the next one."""
        uses._fractions = itertools.count(2**22 - 2)
        for row in range(5):
            uses.note(row, 0.0)
        uses.put_down()
        assert uses.last(4) < 1

    def test_the_file_is_bounded(self, tmp_path: Path, uses: Uses) -> None:
        """Row numbers may grow for ever; the file has mostly holes."""
        for row in (1, 2**40):
            uses.note(row, 0.0)
        uses.put_down()
        found = (tmp_path / "uses").stat()
        assert found.st_size <= 8 * 2**20 and found.st_blocks * 512 <= 20_000

    @pytest.mark.parametrize("reads", [[], ["a"], ["b", "a"], ["a", "b", "c"], ["c", "a", "b", "a"]])
    def test_reads_before_a_write_count_at_that_write(self, folder: Path, reads: list[str]) -> None:
        """Those by the process that writes, and those that others have put down."""
        for one_process in (True, False):
            with closing(DiskStore(folder / str(one_process), max_entries=3)) as store:
                fill(store, "a", "b", "c")
                for key in reads:
                    store.read(key)
                if not one_process:
                    store.close()
                fill(store, "d")
                order = list(dict.fromkeys(reversed([*"abc", *reads])))
                assert set(store.keys()) == {"d", *order[:2]}

    def test_more_reads_than_a_write_looks_at_are_looked_at_in_part(self, folder: Path) -> None:
        """A write after ten thousand reads must not take ten thousand times as long."""
        with closing(DiskStore(folder, max_entries=200)) as store:
            names = [str(number) for number in range(200)]
            fill(store, *names)
            for name in reversed(names):
                store.read(name)
            counted = Counted(store)
            verbs = counted.during(lambda: fill(store, "new"))
            assert verbs.count("UPDATE") < 50
            # Of the first 33 in the order of writing it was used longest ago.
            assert set(names) - set(store.keys()) == {"32"}

    def test_a_number_is_never_given_twice(self, folder: Path, store: DiskStore) -> None:
        """Not after the row that had the highest is gone, either: a read since then would seem later than a write."""
        fill(store, "a", "b")
        store.delete("b")
        store.read("a")
        fill(store, "c")
        assert list(store.keys()) == ["a", "c"]

    def test_no_clock_decides_who_goes(self, folder: Path, store: DiskStore) -> None:
        """The order is a number that grows with each write, so a clock that jumps changes nothing."""
        fill(store, "a", "b", "c")
        store.read("a")
        fill(store, "d")
        with closing(sqlite3.connect(folder / "cache.db")) as database:
            numbers = dict(database.execute("SELECT key, access_time FROM Cache"))
        assert numbers == {"a": 1, "b": 2, "c": 3, "d": 4}
        assert list(store.keys()) == ["b", "c", "a", "d"]


class TestMemoryTier:
    """Records that were read before come from memory, unless somebody has changed them."""

    @pytest.fixture
    def other(self, folder: Path) -> Iterator[DiskStore]:
        """As another process has it: nothing of the first store's memory is shared."""
        with closing(DiskStore(folder)) as other:
            yield other

    @pytest.mark.parametrize("body", [SMALL, MIDDLE])
    def test_it_gives_the_record_itself(self, store: DiskStore, body: bytes) -> None:
        store.write("key", b"head", body)
        assert store.read("key") is store.read("key")

    def test_it_does_not_need_the_disk(self, folder: Path, store: DiskStore) -> None:
        store.write("key", b"head", MIDDLE)
        store.read("key")
        body_files(folder)[0].unlink()
        assert content(store.read("key")) == MIDDLE

    @pytest.mark.parametrize(
        "change",
        [
            lambda other: other.write("key", b"new", SMALL),
            lambda other: other.rewrite_head("key", b"new"),
            lambda other: other.delete("key"),
            lambda other: other.delete_under("k"),
            lambda other: other.clear(),
        ],
        ids=["write", "head", "delete", "delete under", "clear"],
    )
    def test_a_change_by_another_process_is_seen_at_once(
        self, store: DiskStore, other: DiskStore, change: Callable[[DiskStore], None]
    ) -> None:
        for _ in range(20):
            store.write("key", b"old", SMALL)
            for _ in range(2):
                record = store.read("key")
                assert record is not None and record.head == b"old"
            change(other)
            record = store.read("key")
            assert record is None or record.head == b"new"

    @pytest.mark.slow
    def test_that_there_is_none_is_remembered_until_somebody_writes_one(
        self, store: DiskStore, other: DiskStore
    ) -> None:
        """Whoever asks for what may not be stored asks in vain every time."""
        for writer in (other, store):
            for number in range(20):
                store.delete("key")
                counted = Counted(store)
                assert store.read("key") is None
                assert counted.during(lambda: store.read("key")) == []
                writer.write("key", b"head", b"%d" % number)
                assert content(store.read("key")) == b"%d" % number

    def test_how_many_are_remembered_is_bounded(self, store: DiskStore) -> None:
        for number in range(5000):
            store.read(str(number))
        tier = store._checked()._reading._tier
        assert tier is not None and len(tier._absent) <= 4096

    def test_what_another_process_evicted_is_gone(self, folder: Path) -> None:
        with closing(DiskStore(folder)) as store, closing(DiskStore(folder, max_entries=1)) as other:
            fill(store, "a")
            store.read("a")
            fill(other, "b")
            assert store.read("a") is None

    def test_other_records_stay_in_memory(self, store: DiskStore, other: DiskStore) -> None:
        """One in 512 shares the mark of the one that was changed."""
        names = [str(number) for number in range(100)]
        fill(store, *names)
        before = [store.read(name) for name in names]
        fill(other, "another")
        after = [store.read(name) for name in names]
        assert sum(one is two for one, two in zip(before, after, strict=True)) >= 95

    def test_it_is_bounded(self, folder: Path) -> None:
        with closing(DiskStore(folder, memory=100_000)) as store:
            names = [str(number) for number in range(100)]
            fill(store, *names, size=3000)
            for name in names:
                store.read(name)
            tier = store._checked()._reading._tier
            assert tier is not None and tier._records.volume <= 100_000
            assert content(store.read("0")) == b"x" * 3000

    def test_a_record_that_would_push_out_most_others_is_left_out(self, folder: Path) -> None:
        with closing(DiskStore(folder, memory=100_000)) as store:
            store.write("key", b"head", b"x" * 50_000)
            assert store.read("key") is not store.read("key")

    def test_a_reader_never_goes_back_in_time(self, folder: Path) -> None:
        """Two stores write one key as fast as they can; in each the numbers that are read only grow."""
        stores = [DiskStore(folder, lock_wait=20) for _ in range(2)]
        stores[0].write("key", b"0", b"0")
        numbers, lock = itertools.count(1), threading.Lock()

        def work(number: int) -> None:
            mine, last = stores[number % 2], 0
            for _ in range(150):
                if number < 2:
                    with lock:
                        value = b"%d" % next(numbers)
                        mine.write("key", value, value)
                record = mine.read("key")
                assert record is not None and record.head == content(record)
                assert int(record.head) >= last
                last = int(record.head)

        in_threads(6, work)
        assert {content(one.read("key")) for one in stores} == {b"300"}
        for one in stores:
            one.close()


class TestHandles:
    """Threads come and go; files do not stay open for them."""

    @needs_proc
    @pytest.mark.slow
    def test_threads_that_ended_leave_nothing_open(self, folder: Path) -> None:
        before = open_files()
        store = DiskStore(folder)
        fill(store, "key")

        def work() -> None:
            store.read("key")
            store.write(threading.current_thread().name, b"head", MIDDLE)

        for _ in range(200):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert open_files() - before < 15
        store.close()
        assert open_files() == before

    @needs_proc
    @pytest.mark.slow
    def test_many_threads_at_once_leave_nothing_open_either(self, folder: Path) -> None:
        before = open_files()
        store = DiskStore(folder, memory=0, lock_wait=20)
        fill(store, "key")
        in_threads(100, lambda number: [store.read("key") for _ in range(20)])
        assert open_files() - before < 25
        store.close()
        assert open_files() == before

    @needs_proc
    def test_a_store_that_is_forgotten_closes_itself(self, folder: Path) -> None:
        before = open_files()
        store = DiskStore(folder)
        fill(store, "key")
        store.read("key")
        del store
        assert open_files() == before

    def test_closing_removes_the_log(self, folder: Path, store: DiskStore) -> None:
        """SQLite puts it into the database when the last connection goes."""
        fill(store, "key")
        assert (folder / "cache.db-wal").exists()
        store.close()
        assert not (folder / "cache.db-wal").exists()

    def test_closing_while_others_work_is_trouble_at_worst(self, folder: Path) -> None:
        """No other exception, and all that was reported written is there."""
        from kreuz_sync.cache.store import StoreTrouble

        store = DiskStore(folder, lock_wait=20)
        written: list[str] = []

        def work(number: int) -> None:
            for step in range(40):
                try:
                    if number == 0:
                        store.close()
                        continue
                    fill(store, f"{number}.{step}")
                    written.append(f"{number}.{step}")
                    store.read(f"{number}.{step}")
                except StoreTrouble:
                    pass

        in_threads(6, work)
        assert [key for key in written if store.read(key) is None] == []
        store.close()


class TestSettings:
    """What the constructor takes."""

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("memory", -1, ValueError),
            ("memory", "16 MiB", TypeError),
            ("lock_wait", -0.5, ValueError),
            ("lock_wait", float("inf"), ValueError),
            ("strict", 1, TypeError),
        ],
    )
    def test_an_impossible_value_is_refused(self, name: str, value: object, kind: type[Exception]) -> None:
        with pytest.raises(kind, match=name):
            DiskStore("folder", **{name: value})  # type: ignore[arg-type]

    @pytest.mark.parametrize("folder", [None, 5, b"bytes", ["a"]])
    def test_a_folder_is_a_path(self, folder: object) -> None:
        with pytest.raises(TypeError, match="folder="):
            DiskStore(folder)  # type: ignore[arg-type]

    def test_an_empty_folder_is_refused(self) -> None:
        """It would be the current one, which nobody means."""
        with pytest.raises(ValueError, match="folder=''"):
            DiskStore("")

    def test_it_shows_its_folder_and_limits(self, tmp_path: Path) -> None:
        store = DiskStore(tmp_path, max_entries=5)
        assert repr(store) == f"DiskStore({str(tmp_path)!r}, max_entries=5, max_bytes=None)"

    def test_ten_thousand_records_by_default_and_any_size(self, folder: Path) -> None:
        store = DiskStore(folder)
        assert (store.max_entries, store.max_bytes) == (10_000, None)
