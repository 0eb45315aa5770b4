"""The store on disk when something is wrong: it gives a miss, or `StoreTrouble`, and nothing else."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pytest

from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.folder.outgoing import CHECKED_FIRST, IN_MEMORY
from kreuz_sync.cache.store import DamagedBody, StoreTrouble

from .store_contract import LARGE, MIDDLE, SMALL, content, fill
from .test_cache_store_disk import ROOT, body_files, needs_proc, run_python

posix = pytest.mark.skipif(os.name != "posix", reason="of a system with these limits")
HUGE = bytes(range(256)) * (CHECKED_FIRST // 256 + 1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(folder: Path) -> Iterator[DiskStore]:
    with closing(DiskStore(folder, memory=0, lock_wait=0.2)) as store:
        yield store


@pytest.fixture
def database(folder: Path, store: DiskStore) -> Iterator[sqlite3.Connection]:
    """The database, as somebody else may open it."""
    fill(store, "of the fixture")
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as database:
        yield database


class TestUnusableFolder:
    """Each use says what is wrong, and as soon as it is not, all goes well."""

    def test_a_folder_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        store = DiskStore(tmp_path / "file" / "cache")
        for use in (lambda: store.read("key"), lambda: fill(store, "key"), lambda: len(store), store.spool):
            with pytest.raises(StoreTrouble, match="file/cache"):
                use()
        (tmp_path / "file").unlink()
        fill(store, "key")
        assert content(store.read("key")) == b"x" * 10
        store.close()

    def test_a_folder_where_a_file_should_be(self, folder: Path) -> None:
        (folder / "cache.db").mkdir(parents=True)
        with pytest.raises(StoreTrouble):
            DiskStore(folder).read("key")

    def test_strict_says_so_at_once(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(StoreTrouble):
            DiskStore(tmp_path / "file", strict=True)

    def test_a_folder_that_is_taken_away_is_made_anew(self, folder: Path, store: DiskStore) -> None:
        """By a write at once, and by a read within a second."""
        fill(store, "a")
        shutil.rmtree(folder)
        fill(store, "b")
        assert (folder / "cache.db").exists()
        assert store.read("a") is None
        assert content(store.read("b")) == b"x" * 10
        shutil.rmtree(folder)
        store._look_at = 0.0
        assert store.read("b") is None

    def test_one_that_is_made_anew_has_another_secret_and_says_so(self, folder: Path, store: DiskStore) -> None:
        """Keys that were made with the last one lead nowhere now."""
        before = store.secret()
        fill(store, "a")
        assert store.renewals == 0
        shutil.rmtree(folder)
        store._look_at = 0.0
        assert store.renewals == 1
        assert store.secret() != before
        fill(store, "b")
        assert store.renewals == 1

    @posix
    @pytest.mark.parametrize("kind", ["pipe", "link", "short"])
    def test_what_somebody_laid_in_the_secret_s_place_is_replaced(self, folder: Path, kind: str) -> None:
        folder.mkdir()
        path = folder / "cache.db-secret"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            (folder / "elsewhere").write_bytes(b"x" * 32)
            path.symlink_to(folder / "elsewhere")
        else:
            path.write_bytes(b"x" * 5)
        with closing(DiskStore(folder)) as one, closing(DiskStore(folder)) as other:
            assert one.secret() == other.secret() == path.read_bytes() != b"x" * 32
        assert not path.is_symlink()

    @posix
    def test_a_folder_that_may_not_be_written_to(self) -> None:
        """Root may write everywhere, so that another user tries."""
        code = """
import os, sys
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.store import StoreTrouble
os.umask(0)
DiskStore(sys.argv[1] + "/first").read("key")  # what it imports may be out of another user's reach
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.mkdir(sys.argv[1] + "/closed", 0o500)
for folder in ("/closed", "/closed/deeper"):
    store = DiskStore(sys.argv[1] + folder)
    for use in (lambda: store.read("key"), lambda: store.write("key", b"head", b"body"), store.spool):
        try:
            use()
        except StoreTrouble as error:
            print("trouble")
# And one that was open when it was closed.
store = DiskStore(sys.argv[1] + "/open")
store.write("key", b"head", b"body")
os.chmod(sys.argv[1] + "/open", 0o500)
print(store.read("key").body)
try:
    store.write("large", b"head", b"x" * 100_000)
except StoreTrouble as error:
    print("trouble")
"""
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)
            assert run_python(code, place).split() == ["trouble"] * 6 + ["b'body'", "trouble"]

    @posix
    @needs_proc
    def test_no_more_files_may_be_opened(self, folder: Path) -> None:
        code = """
import os, resource, sys
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.store import StoreTrouble

def use(store):
    for work in (lambda: store.read("key"), lambda: store.write("key", b"head", b"x" * 100_000), lambda: len(store)):
        try:
            work()
        except StoreTrouble:
            print("trouble")

used, kept = DiskStore(sys.argv[1], memory=0), DiskStore(sys.argv[1] + "2")
kept.write("key", b"head", b"x" * 100_000)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for spare in range(12):
    used_now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used_now + spare, hard))
    use(used)
    use(kept)
    used.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
for store in (used, kept):
    store.write("key", b"head", b"x" * 100_000)
    print(len(store.read("key").body))
"""
        lines = run_python(code, folder).split()
        assert lines[-2:] == ["100000", "100000"]
        assert "trouble" in lines

    @posix
    @pytest.mark.slow
    def test_the_disk_is_full(self, folder: Path) -> None:
        """A file that may not grow further stands for it: a body, the database's log, the database."""
        code = """
import resource, sys
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.store import StoreTrouble

store = DiskStore(sys.argv[1], memory=0)
store.write("before", b"head", b"body")
store.write("large", b"head", b"x" * 300_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
for number in range(60):
    for key, size in ((f"small {number}", 3000), ("large", 300_000), ("before", 4)):
        try:
            store.write(key, b"head", b"y" * size)
        except StoreTrouble:
            print("trouble", size)
        try:
            found = store.read(key)
            assert found is None or found.body in (b"body", b"y" * size, b"x" * size)
        except StoreTrouble:
            print("trouble reading", size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.write("after", b"head", b"body")
print(store.read("after").body)
"""
        lines = run_python(code, folder).splitlines()
        assert lines[-1] == "b'body'"
        assert {"trouble 3000", "trouble 300000"} <= set(lines)
        assert list((folder / "cache.db-incoming").iterdir()) == []

    @posix
    @pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root mounts a disk")
    def test_a_disk_is_full(self, tmp_path: Path) -> None:
        """A real one, of 3 MB: the store goes on when there is room again."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True)
        if mounted.returncode:
            pytest.skip("mounting is not allowed here")
        try:
            with closing(DiskStore(disk / "cache", memory=0)) as store:
                fill(store, "first")
                ballast = disk / "ballast"
                with contextlib.suppress(OSError), ballast.open("wb") as file:
                    for _ in range(1000):
                        file.write(b"\0" * 10_000)
                        file.flush()
                for size in (10, 5000, 100_000, 5_000_000):
                    for number in range(40):
                        with contextlib.suppress(StoreTrouble):
                            store.write(f"{size}.{number}", b"head", b"y" * size)
                    with contextlib.suppress(StoreTrouble):
                        found = store.read(f"{size}.0")
                        assert found is None or content(found) == b"y" * size
                with pytest.raises(StoreTrouble):
                    store.write("large", b"head", b"y" * 1_000_000)
                with contextlib.suppress(StoreTrouble):
                    assert store.read("large") is None
                ballast.unlink()
                store.write("large", b"head", b"y" * 1_000_000)
                assert content(store.read("large")) == b"y" * 1_000_000
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


class TestLockedDatabase:
    """Somebody else has the database."""

    def test_a_write_is_trouble_after_a_bounded_wait(self, store: DiskStore, database: sqlite3.Connection) -> None:
        fill(store, "key")
        database.execute("BEGIN EXCLUSIVE")
        for use in (
            lambda: fill(store, "other"),
            lambda: store.write("large", b"head", MIDDLE),
            lambda: store.rewrite_head("key", b"head"),
            lambda: store.delete("key"),
            store.clear,
        ):
            with pytest.raises(StoreTrouble, match="locked"):
                use()
        database.execute("ROLLBACK")
        fill(store, "other")
        assert content(store.read("other")) == b"x" * 10

    def test_what_is_there_can_be_read_meanwhile(self, store: DiskStore, database: sqlite3.Connection) -> None:
        """Also where many reads would be put down: they are kept for later, without a wait."""
        names = [str(number) for number in range(2000)]
        fill(store, *names)
        database.execute("BEGIN EXCLUSIVE")
        assert all(store.read(name) is not None for name in names)
        assert store.read("absent") is None
        assert store.delete("absent") is False
        assert len(list(store.keys())) == 2001

    def test_the_file_of_a_body_that_was_not_written_is_removed(
        self, folder: Path, store: DiskStore, database: sqlite3.Connection
    ) -> None:
        database.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreTrouble):
            store.write("large", b"head", LARGE)
        assert body_files(folder) == []
        assert list((folder / "cache.db-incoming").iterdir()) == []

    def test_a_store_that_is_not_open_yet_says_so(self, folder: Path, database: sqlite3.Connection) -> None:
        database.execute("BEGIN EXCLUSIVE")
        store = DiskStore(folder, lock_wait=0.1)
        with pytest.raises(StoreTrouble, match="locked"):
            store.read("key")
        database.execute("ROLLBACK")
        assert store.read("of the fixture") is not None
        store.close()

    def test_uses_during_a_lock_are_put_down_after_it(self, folder: Path) -> None:
        with closing(DiskStore(folder, max_entries=3, lock_wait=0.1)) as store:
            fill(store, "a", "b", "c")
            with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as database:
                database.execute("BEGIN EXCLUSIVE")
                store.read("a")
                with pytest.raises(StoreTrouble):
                    fill(store, "d")
            fill(store, "d")
            assert sorted(store.keys()) == ["a", "c", "d"]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def flip_a_bit(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))


def put_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_a_link(path: Path) -> None:
    """To a file that has the very length."""
    other = path.with_suffix(".other")
    path.rename(other)
    flip_a_bit(other)
    path.symlink_to(other)


def put_a_pipe(path: Path) -> None:
    """Whoever opened it to read would wait for a writer."""
    path.unlink()
    os.mkfifo(path)


class TestDamagedBodies:
    """A body file that is not what was stored is a miss, and then it can be stored again."""

    @pytest.mark.parametrize("body", [MIDDLE, LARGE], ids=["as bytes", "as a file"])
    @pytest.mark.parametrize("damage", [cut, lengthen, flip_a_bit, Path.unlink, put_a_folder, put_a_link, put_a_pipe])
    def test_it_is_a_miss(
        self,
        folder: Path,
        store: DiskStore,
        body: bytes,
        damage: Callable[[Path], None],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """With one warning, however often it is met."""
        store.write("key", b"head", body)
        damage(body_files(folder)[0])
        for _ in range(3):
            with contextlib.suppress(StoreTrouble):
                assert store.read("key") is None
        assert len([one for one in caplog.records if one.levelno == logging.WARNING]) <= 1
        store.write("key", b"head", body)
        assert content(store.read("key")) == body

    def test_it_is_noticed_though_it_was_whole_before(self, folder: Path, store: DiskStore) -> None:
        store.write("key", b"head", MIDDLE)
        assert content(store.read("key")) == MIDDLE
        flip_a_bit(body_files(folder)[0])
        assert store.read("key") is None

    def test_a_very_large_one_is_checked_as_it_is_read(self, folder: Path, store: DiskStore) -> None:
        """Its start is given out before its end is known; the end is not, and then the record is gone."""
        store.write("key", b"head", HUGE)
        flip_a_bit(body_files(folder)[0])
        record = store.read("key")
        assert record is not None and not isinstance(record.body, bytes)
        with record.body as body:
            length = 0
            with pytest.raises(DamagedBody):
                while piece := body.read(2**20):
                    length += len(piece)
            assert length < len(HUGE)
        assert store.read("key") is None

    @pytest.mark.parametrize(
        "read", [lambda file: file.read(), lambda file: b"".join(iter(lambda: file.read(9999), b""))]
    )
    def test_a_very_large_one_that_is_whole_is_given_out_whole(
        self, store: DiskStore, read: Callable[[BinaryIO], bytes]
    ) -> None:
        store.write("key", b"head", HUGE)
        for _ in range(2):
            record = store.read("key")
            assert record is not None and not isinstance(record.body, bytes)
            with record.body as body:
                assert read(body) == HUGE

    def test_a_very_large_one_can_be_read_from_any_place(self, store: DiskStore) -> None:
        """For a range; nobody can check that."""
        store.write("key", b"head", HUGE)
        record = store.read("key")
        assert record is not None and not isinstance(record.body, bytes)
        with record.body as body:
            assert body.seek(1000) == body.tell() == 1000
            assert body.read(100) == HUGE[1000:1100]
            assert body.read() == HUGE[1100:]

    @pytest.mark.parametrize("size", [IN_MEMORY, IN_MEMORY + 1, CHECKED_FIRST, CHECKED_FIRST + 1])
    def test_the_bounds_between_the_ways_to_read(self, folder: Path, store: DiskStore, size: int) -> None:
        store.write("key", b"head", HUGE[:size])
        assert content(store.read("key")) == HUGE[:size]
        assert content(store.read("key")) == HUGE[:size]


class TestDamagedDatabase:
    """Other processes, disks and people do things to files."""

    @pytest.mark.parametrize("garbage", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_what_is_no_database_is_set_aside(
        self, folder: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder.mkdir()
        (folder / "cache.db").write_bytes(garbage)
        with closing(DiskStore(folder)) as store:
            fill(store, "key")
            assert content(store.read("key")) == b"x" * 10
        if garbage:
            assert (folder / "cache.db-damaged").read_bytes() == garbage
            assert "begins anew" in caplog.text

    def test_garbage_over_an_open_one(self, folder: Path, store: DiskStore) -> None:
        """Trouble at first, then the store begins anew."""
        names = [str(number) for number in range(2000)]
        fill(store, *names, size=1000)
        store.close()
        store.read("0")
        (folder / "cache.db").write_bytes(b"\xa5" * 3_000_000)
        for name in names[:50]:
            with contextlib.suppress(StoreTrouble):
                found = store.read(name)
                assert found is None or content(found) == b"x" * 1000
        for _ in range(3):
            with contextlib.suppress(StoreTrouble):
                fill(store, "key")
        fill(store, "key")
        assert content(store.read("key")) == b"x" * 10

    @pytest.mark.parametrize("seed", range(40))
    @pytest.mark.slow
    def test_a_record_is_whole_or_absent_whatever_was_overwritten(self, folder: Path, seed: int) -> None:
        """Some bytes anywhere in the database, or its end cut off."""
        draw = random.Random(seed)
        wanted = {f"key {number}": os.urandom(draw.choice([10, 2000, 20_000, 40_000])) for number in range(60)}
        with closing(DiskStore(folder)) as store:
            for key, body in wanted.items():
                store.write(key, b"head of " + key.encode(), body)
        database = folder / "cache.db"
        if seed % 4 == 0:
            os.truncate(database, draw.randrange(database.stat().st_size))
        else:
            with database.open("r+b") as file:
                for _ in range(draw.choice([1, 20, 300])):
                    file.seek(draw.randrange(database.stat().st_size))
                    file.write(os.urandom(draw.choice([1, 4, 100])))
        with closing(DiskStore(folder, memory=draw.choice([0, 10**6]))) as store:
            for key, body in wanted.items():
                with contextlib.suppress(StoreTrouble):
                    record = store.read(key)
                    if record is not None:
                        assert (record.head, content(record)) == (b"head of " + key.encode(), body)
            for use in (
                lambda: list(store.keys()),
                lambda: len(store),
                store.volume,
                lambda: store.delete("key 1"),
                lambda: store.rewrite_head("key 2", b"head"),
                lambda: store.delete_under("key 3"),
                store.clear,
            ):
                with contextlib.suppress(StoreTrouble):
                    use()
            for _ in range(3):
                with contextlib.suppress(StoreTrouble):
                    fill(store, "new")
            fill(store, "new")
            assert content(store.read("new")) == b"x" * 10

    def test_a_row_under_another_key_is_a_miss(self, store: DiskStore, database: sqlite3.Connection) -> None:
        """As a damaged index may give one key's row for another's."""
        fill(store, "a", "b")
        database.execute("DELETE FROM Cache WHERE key = 'b'")
        database.execute("UPDATE Cache SET key = 'b' WHERE key = 'a'")
        assert store.read("b") is None

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE Cache SET value = NULL",
            "UPDATE Cache SET value = 5",
            "UPDATE Cache SET value = CAST('text' AS TEXT)",
            "UPDATE Cache SET value = CAST(x'ff00fe' AS TEXT)",
            "UPDATE Cache SET value = x''",
            "UPDATE Cache SET value = substr(value, 1, 20)",
            "UPDATE Cache SET value = value || x'00'",
            "UPDATE Cache SET mode = 'x'",
            "UPDATE Cache SET mode = 2",
            "UPDATE Cache SET mode = NULL",
            "UPDATE Cache SET filename = 'ab/cd'",
            "UPDATE Cache SET mode = 2, filename = CAST(x'ff' AS TEXT)",
            "UPDATE Cache SET mode = 2, filename = x'00'",
            "UPDATE Cache SET mode = 2, filename = '00/" + "0" * 30 + ".val'",
            "UPDATE Cache SET raw = 0",
            "UPDATE Cache SET access_time = 'x', size = 'x'",
            "UPDATE Cache SET access_time = 1e308, size = -1e308",
            "UPDATE Cache SET access_time = NULL, size = NULL",
            "UPDATE Settings SET value = 'x'",
            "UPDATE Settings SET value = NULL",
            "DELETE FROM Settings",
            "UPDATE Cache SET key = x'ff00' WHERE key = 'a'",
            "UPDATE Cache SET key = CAST(x'ff00' AS TEXT) WHERE key = 'a'",
            "UPDATE Cache SET key = 12 WHERE key = 'a'",
        ],
    )
    def test_whatever_is_in_a_row_nothing_breaks(
        self, store: DiskStore, database: sqlite3.Connection, statement: str
    ) -> None:
        """Every method answers, and the store goes on."""
        fill(store, "a", "ab")
        database.execute(statement)
        for key in ("a", "ab"):
            record = store.read(key)
            assert record is None or content(record) == b"x" * 10
        assert store.rewrite_head("a", b"head") in (True, False)
        assert all(isinstance(key, str) for key in store.keys())
        assert len(store) >= 0
        assert store.volume() >= 0
        fill(store, "a", "new")
        assert content(store.read("new")) == b"x" * 10
        assert store.delete("a") is True
        assert store.delete_under("new") == 1
        store.clear()
        assert list(store.keys()) == []

    @pytest.mark.parametrize("column", ["count", "size"])
    @pytest.mark.parametrize("value", [-(10**6), 0, 10**6, "x", None])
    def test_counters_that_are_wrong_are_put_right(self, folder: Path, column: str, value: object) -> None:
        """At the latest by clearing; until then the store works, though it may keep more or less than it should."""
        with closing(DiskStore(folder, max_entries=20, max_bytes=10_000)) as store:
            fill(store, *map(str, range(30)), size=100)
            with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as database:
                database.execute("UPDATE Settings SET value = ? WHERE key = ?", (value, column))
                database.execute("UPDATE Cache SET size = 'x' WHERE rowid = 3")
            for number in range(30, 60):
                fill(store, str(number), size=100)
                assert content(store.read(str(number))) == b"x" * 100
                assert len(store) >= 0 and store.volume() >= 0
            store.clear()
            assert (len(store), store.volume()) == (0, 0)
            fill(store, *map(str, range(30)), size=100)
            assert len(store) == 20

    @pytest.mark.parametrize("name", ["cache.db-uses", "cache.db-changes"])
    @pytest.mark.parametrize("content_", [b"", b"\xff" * 5000, b"\x7f" * 5000, os.urandom(5000), b"\0" * 10])
    def test_the_order_of_use_is_damaged(self, folder: Path, name: str, content_: bytes) -> None:
        """Then something else goes, but the limit holds, and the order comes right again."""
        with closing(DiskStore(folder, max_entries=5)) as store:
            fill(store, *"abcde")
            for _ in range(2):
                (folder / name).write_bytes(content_)
                for key in "abcdefghijklmnop":
                    store.read(key)
                    fill(store, key)
                    assert content(store.read(key)) == b"x" * 10
                store.close()
            assert len(list(store.keys())) == len(store) == 5

    @pytest.mark.parametrize("damage", [cut, lengthen, flip_a_bit, Path.unlink, lambda path: os.truncate(path, 0)])
    def test_the_marks_are_damaged(self, folder: Path, damage: Callable[[Path], None]) -> None:
        """Then records come from the disk, and never an old one."""
        with closing(DiskStore(folder)) as store, closing(DiskStore(folder)) as other:
            names = [str(number) for number in range(50)]
            for turn in range(4):
                for name in names:
                    (other if turn % 2 else store).write(name, b"head", b"%d" % turn)
                for name in names * 2:
                    assert content(store.read(name)) == b"%d" % turn
                if turn == 0:
                    damage(folder / "cache.db-changes")
                    # A file of that name is looked for when the folder is opened.
                    store.close()
                    other.close()

    def test_the_secret_is_damaged(self, folder: Path, store: DiskStore) -> None:
        """Another one is made, and stays."""
        first = store.secret()
        (folder / "cache.db-secret").write_bytes(b"short")
        second = store.secret()
        assert (len(second), first == second) == (32, False)
        assert store.secret() == second


class Bomb:
    """Loading a pickle of it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return open, (str(self.path), "w")


class TestHostileFolder:
    """Somebody else could write to the folder."""

    @pytest.mark.parametrize("size", [0, 100_000], ids=["in the row", "in a file"])
    def test_a_pickle_is_never_loaded(
        self, tmp_path: Path, folder: Path, store: DiskStore, size: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is a miss, with one warning, and is replaced like any other record."""
        import diskcache

        fill(store, "other")
        with diskcache.Cache(str(folder)) as cache:
            cache["key"] = [Bomb(tmp_path / "loaded"), b"x" * size]
        for _ in range(2):
            assert store.read("key") is None
            assert store.rewrite_head("key", b"head") is False
        assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 1
        assert sorted(store.keys()) == ["key", "other"]
        store.write("key", b"head", SMALL)
        assert content(store.read("key")) == SMALL
        assert not (tmp_path / "loaded").exists()

    def test_a_pickle_is_not_loaded_as_a_key_either(self, tmp_path: Path, folder: Path, store: DiskStore) -> None:
        import diskcache

        fill(store, "other")
        with diskcache.Cache(str(folder)) as cache:
            cache[Bomb(tmp_path / "loaded")] = b"value"
            cache[b"bytes"] = b"value"
            cache[5] = b"value"
        assert list(store.keys()) == ["other"]
        assert store.clear() == 4
        assert not (tmp_path / "loaded").exists()

    def test_nor_where_the_memory_tier_reads(self, tmp_path: Path, folder: Path) -> None:
        import diskcache

        with closing(DiskStore(folder, max_entries=2)) as store:
            fill(store, "a")
            with diskcache.Cache(str(folder)) as cache:
                cache["key"] = Bomb(tmp_path / "loaded")
            assert store.read("key") is None
            fill(store, "b", "c", "d")
        assert not (tmp_path / "loaded").exists()

    @pytest.mark.parametrize("name", ["../precious", "{place}/precious", "ab/../../precious", "ab/cd.val"])
    def test_a_file_elsewhere_is_neither_read_nor_removed(
        self, tmp_path: Path, store: DiskStore, database: sqlite3.Connection, name: str
    ) -> None:
        precious = tmp_path / "precious"
        precious.write_bytes(MIDDLE)
        store.write("key", b"head", MIDDLE)
        database.execute("UPDATE Cache SET filename = ? WHERE key = 'key'", (name.format(place=tmp_path),))
        assert store.read("key") is None
        store.write("key", b"head", SMALL)
        store.clear()
        assert precious.exists()

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("disk_unknown", 1),
            ("disk_min_file_size", "x"),
            ("sqlite_journal_mode", "delete"),
            ("sqlite_writable_schema", 1),
            ("sqlite_x = 1; DROP TABLE Cache; --", 1),
            ("eviction_policy", "unheard of"),
            ("_con", 1),
            ("reset", 1),
            (b"bytes", 1),
            (None, 1),
            (7, 1),
        ],
    )
    def test_settings_that_lie_in_the_folder_are_not_obeyed(
        self, store: DiskStore, database: sqlite3.Connection, key: object, value: object
    ) -> None:
        with contextlib.suppress(sqlite3.IntegrityError):
            database.execute("INSERT OR REPLACE INTO Settings VALUES (?, ?)", (key, value))
        store.close()
        fill(store, "key")
        assert content(store.read("key")) == b"x" * 10
        assert database.execute("PRAGMA journal_mode").fetchall() == [("wal",)]

    def test_what_pickle_would_be_needed_for_is_refused(self, folder: Path, store: DiskStore) -> None:
        """By the very class that diskcache reads and writes values with."""
        fill(store, "key")
        disk = store._checked()._writer._cache.disk
        for use in (
            lambda: disk.put((1, 2)),
            lambda: disk.get(b"pickle", False),
            lambda: disk.store({}, False),
            lambda: disk.fetch(4, None, b"pickle", False),
        ):
            with pytest.raises(TypeError):
                use()


class TestLeftovers:
    """What killed processes leave is removed later, and what living ones are at work on is not."""

    def test_a_body_that_was_being_written_goes_when_the_folder_is_opened(self, folder: Path) -> None:
        code = """
import os, signal, sys
from kreuz_sync.cache.disk import DiskStore
file = DiskStore(sys.argv[1]).spool()
file.write(b"x" * 1_000_000)
os.kill(os.getpid(), signal.SIGKILL)
"""
        killed = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, timeout=60)
        assert killed.returncode == -9
        assert len(list((folder / "cache.db-incoming").iterdir())) == 1
        with closing(DiskStore(folder)) as store:
            fill(store, "key")
            assert list((folder / "cache.db-incoming").iterdir()) == []

    def test_a_body_that_is_being_written_stays(self, store: DiskStore, folder: Path) -> None:
        with store.spool() as file:
            file.write(LARGE)
            with closing(DiskStore(folder)) as other:
                fill(other, "key")
                other.clear()
            file.seek(0)
            store.write("key", b"head", file)
        assert content(store.read("key")) == LARGE

    def test_clearing_removes_files_that_no_row_has(self, store: DiskStore, folder: Path) -> None:
        """And leaves what is not ours."""
        store.write("key", b"head", LARGE)
        (file,) = body_files(folder)
        (folder / "ab").mkdir(exist_ok=True)
        orphan, foreign = folder / "ab" / f"{'0' * 30}.val", folder / "ab" / "notes.txt"
        for path in (orphan, foreign):
            path.write_bytes(b"left")
        store.clear()
        assert (file.exists(), orphan.exists(), foreign.exists()) == (False, False, True)

    def test_opening_removes_some_and_never_one_that_a_row_has(self, folder: Path) -> None:
        with closing(DiskStore(folder)) as store:
            for number in range(300):
                store.write(str(number), b"head", b"x" * 40_000)
        orphans = [folder / f"{part:02x}" / f"{'0' * 30}.val" for part in range(256)]
        for path in orphans:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"left")
        for turn in range(10):
            with closing(DiskStore(folder)) as store:
                assert content(store.read(str(turn))) == b"x" * 40_000
        assert sum(path.exists() for path in orphans) < 256
        assert len(body_files(folder)) >= 300
        with closing(DiskStore(folder)) as store:
            assert all(store.read(str(number)) is not None for number in range(300))
