"""Counters in a folder: what they promise beyond every store's promises."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync.ratelimit import StoreUnavailable
from kreuz_sync.ratelimit.counters import Counters, boot
from kreuz_sync.ratelimit.disk import DiskStore
from tests.fakes import FakeClock

from .contract import ClockedContract, MakeStore, SharedContract, finish, hits, in_threads, start, wait_ready

posix = pytest.mark.skipif(os.name != "posix", reason="of a system with fork and SIGKILL")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "limits"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(folder: Path, clock: FakeClock) -> Iterator[DiskStore]:
    with closing(DiskStore(folder, clock=clock)) as store:
        yield store


@pytest.fixture
def database(folder: Path, store: DiskStore) -> Iterator[sqlite3.Connection]:
    """The store's, opened as a stranger would."""
    hits(store, 1, "policy:before")
    with closing(sqlite3.connect(folder / "counters" / "cache.db", isolation_level=None)) as connection:
        yield connection


@contextmanager
def fails(detail: str) -> Iterator[None]:
    with pytest.raises(StoreUnavailable) as raised:
        yield
    assert (raised.value.code, raised.value.detail) == ("disk_store_error", detail)
    assert "policy" not in str(raised.value)


def rows(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM Cache").fetchone()[0])


class TestDiskStore(ClockedContract):
    """All that every store promises."""

    @pytest.fixture
    def make_store(self, folder: Path, clock: FakeClock) -> MakeStore:
        return lambda: DiskStore(folder, clock=clock, timeout=10)


class TestDiskStoreOfProcesses(SharedContract):
    """All that a shared one promises, by the clock of the machine."""

    short = 0.1

    @pytest.fixture
    def make_store(self, folder: Path) -> MakeStore:
        return lambda: DiskStore(folder, timeout=10)

    @pytest.fixture
    def let_pass(self) -> Callable[[float], None]:
        return time.sleep

    @pytest.fixture
    def program(self, folder: Path) -> str:
        return f"""
from kreuz_sync.ratelimit.disk import DiskStore
store = DiskStore({str(folder)!r}, timeout=10)
"""


class TestFolder:
    """What lies there."""

    def test_it_is_made_when_it_is_needed(self, folder: Path, store: DiskStore) -> None:
        assert not folder.exists()
        hits(store, 1)
        assert (folder / "counters" / "cache.db").exists()

    def test_it_is_the_owners_alone(self, folder: Path, store: DiskStore) -> None:
        hits(store, 2)
        found = [folder, *folder.rglob("*")]
        assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found} == {(True, 0o700), (False, 0o600)}

    def test_a_home_and_a_variable_in_its_path_are_replaced(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEPT_IN", "kept")
        with closing(DiskStore("~/$KEPT_IN")) as store:
            hits(store, 1)
        assert (home / "kept" / "counters").exists()

    def test_it_may_be_that_of_a_cache(self, folder: Path, store: DiskStore) -> None:
        """Whose limit is on its own records, and which may be cleared."""
        from kreuz_sync.cache import DiskStore as Cache

        with closing(Cache(folder, max_entries=2)) as cache:
            for number in range(5):
                cache.write(str(number), b"head", b"body")
                hits(store, 1, f"policy:{number}")
            assert len(cache) == 2
            cache.clear()
            assert [hits(store, 1, f"policy:{number}") for number in range(5)] == [[2]] * 5

    def test_diskcache_opens_it_too(self, folder: Path, store: DiskStore) -> None:
        import diskcache

        hits(store, 3)
        with closing(diskcache.Cache(str(folder / "counters"))) as cache:
            assert cache["policy:key"] == 3
            assert cache.check() == []

    def test_all_that_lies_there_is_numbers_and_text(self, store: DiskStore, database: sqlite3.Connection) -> None:
        hits(store, 2)
        hits(store, 2, "ключ")
        kinds = "SELECT DISTINCT mode, raw, typeof(key), typeof(value), typeof(tag) FROM Cache"
        assert database.execute(kinds).fetchall() == [(1, 1, "text", "integer", "text")]

    def test_a_pickle_that_somebody_lays_there_is_not_loaded(
        self, store: DiskStore, database: sqlite3.Connection, tmp_path: Path
    ) -> None:
        """It counts for nothing."""
        proof = tmp_path / "proof"
        trap = pickle.dumps(Trap(str(proof)), 0)
        hits(store, 5)
        database.execute("UPDATE Cache SET mode = 4, value = ?", (trap,))
        assert hits(store, 2) == [1, 2]
        assert not proof.exists()

    @pytest.mark.parametrize("column", ["value", "tag", "access_time", "expire_time", "store_time"])
    @pytest.mark.parametrize("value", [None, "text", b"\0bytes", -5, 1e300])
    @pytest.mark.slow
    def test_whatever_is_in_a_row_a_window_ends(
        self, store: DiskStore, clock: FakeClock, database: sqlite3.Connection, column: str, value: object
    ) -> None:
        hits(store, 5)
        database.execute(f"UPDATE Cache SET {column} = ?", (value,))
        usage = store.increment("policy:key", 60)
        assert usage.used in (1, 6) and 0 < usage.reset_after <= 60
        clock.advance(usage.reset_after)
        assert hits(store, 1) == [1]


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, proof: str) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.proof, "w")


class TestClocks:
    """A wall clock that is set, and a machine that is started anew."""

    @pytest.mark.parametrize("jump", [-1e8, -3600.0, 3600.0, 1e8])
    def test_a_wall_clock_that_is_set_neither_frees_nor_freezes(
        self, store: DiskStore, clock: FakeClock, jump: float
    ) -> None:
        hits(store, 3)
        clock._wall += jump
        hits(store, 1, "policy:other")  # and looks for rows that are over
        clock.advance(20)
        usage = store.increment("policy:key", 60)
        assert usage == (4, 40)
        clock.advance(40)
        assert hits(store, 1) == [1]

    @pytest.mark.parametrize("monotonic", [3.0, 990.0, 5000.0])
    def test_a_window_goes_on_after_a_restart_of_the_machine(
        self, folder: Path, store: DiskStore, clock: FakeClock, monotonic: float
    ) -> None:
        """Its hits too, and for no longer than by the wall clock."""
        hits(store, 3)
        restart(store, clock, monotonic, off=20)
        usage = store.increment("policy:key", 60)
        assert usage.used == 4 and usage.reset_after == pytest.approx(40)
        clock._wall -= 1e8  # no matter any more
        clock.advance(39)
        assert hits(store, 1) == [5]
        clock.advance(1.001)
        assert hits(store, 1) == [1]

    def test_one_that_ended_meanwhile_is_over(self, store: DiskStore, clock: FakeClock) -> None:
        hits(store, 3)
        restart(store, clock, 3.0, off=60)
        assert hits(store, 1) == [1]

    def test_a_wall_clock_in_the_past_freezes_nothing(self, store: DiskStore, clock: FakeClock) -> None:
        hits(store, 3)
        restart(store, clock, 3.0, off=-1e8)
        assert store.increment("policy:key", 60) == (4, 60)
        clock.advance(60)
        assert hits(store, 1) == [1]

    @pytest.mark.skipif(not Path("/proc/sys/kernel/random/boot_id").exists(), reason="of Linux")
    def test_starts_of_the_machine_have_names(self) -> None:
        assert len(boot()) == 36 and boot() == boot()


def restart(store: DiskStore, clock: FakeClock, monotonic: float, off: float) -> None:
    """Start the machine anew; it was off for some seconds."""
    hits(store, 1, "policy:open")
    assert store._counters is not None
    store._counters._boot = "another"
    clock._monotonic = monotonic
    clock._wall += off


class TestDropping:
    """Rows of windows that are over go in small steps."""

    def test_they_go_as_others_begin(self, store: DiskStore, clock: FakeClock, database: sqlite3.Connection) -> None:
        for number in range(300):
            hits(store, 1, f"policy:{number}", 10)
        clock.advance(11)
        for number in range(300, 450):
            hits(store, 1, f"policy:{number}", 10)
        assert rows(database) <= 155

    def test_their_number_is_bounded_by_windows_under_way(
        self, store: DiskStore, clock: FakeClock, database: sqlite3.Connection
    ) -> None:
        """However many keys come, each once."""
        most = 0
        for number in range(1000):
            hits(store, 1, f"policy:{number}", 10)
            clock.advance(0.1)
            most = max(most, rows(database))
        assert most <= 105

    def test_those_of_an_earlier_start_of_the_machine_too(
        self, store: DiskStore, clock: FakeClock, database: sqlite3.Connection
    ) -> None:
        """Whose ends by the monotonic clock of that time are far ahead of this one."""
        for number in range(200):
            hits(store, 1, f"policy:{number}", 10)
        restart(store, clock, 3.0, off=3600)
        for number in range(200, 300):
            hits(store, 1, f"policy:{number}", 10)
        assert rows(database) <= 105

    @pytest.mark.parametrize("jump", [-1e8, 1e8])
    def test_none_goes_before_its_time(
        self, store: DiskStore, clock: FakeClock, database: sqlite3.Connection, jump: float
    ) -> None:
        for number in range(50):
            hits(store, 1, f"policy:{number}", 1000)
        clock._wall += jump
        for number in range(50, 100):
            hits(store, 1, f"policy:{number}", 1000)
        assert rows(database) == 101
        assert [hits(store, 1, f"policy:{number}")[0] for number in range(100)] == [2] * 100


class TestTrouble:
    """A folder that cannot be used is StoreUnavailable, for as long as it cannot."""

    def test_a_folder_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with closing(DiskStore(tmp_path / "file" / "limits")) as store:
            for _ in range(2):
                with fails("failed"):
                    store.increment("policy:key", 60)

    def test_one_that_is_made_later_is_used_then(self, tmp_path: Path) -> None:
        blocked = tmp_path / "limits"
        blocked.write_text("")
        with closing(DiskStore(blocked)) as store:
            with fails("failed"):
                store.increment("policy:key", 60)
            blocked.unlink()
            assert hits(store, 2) == [1, 2]

    @pytest.mark.parametrize("suffix", ["", "-wal"])
    def test_what_is_no_database_any_more(self, folder: Path, suffix: str) -> None:
        """It is not set aside by us: all would be free at once. Whoever removes it ends the trouble."""
        database = folder / "counters" / "cache.db"
        with closing(DiskStore(folder)) as store:
            hits(store, 300)
            store.close()
            database.write_bytes(os.urandom(100_000))
            for _ in range(2):
                with fails("failed"):
                    store.increment("policy:key", 60)
            database.unlink()
            assert hits(store, 1) == [1]

    def test_a_folder_that_is_taken_away_is_made_anew(self, folder: Path, store: DiskStore) -> None:
        """Or this process would go on counting for itself in files that nobody else sees."""
        hits(store, 3)
        folder.rename(folder.with_name("elsewhere"))
        assert hits(store, 1) == [1]
        with closing(DiskStore(folder, clock=store.clock)) as other:
            assert hits(other, 1) == [2]

    def test_a_lock_is_waited_for(self, folder: Path, clock: FakeClock, database: sqlite3.Connection) -> None:
        database.execute("BEGIN IMMEDIATE")
        counted: list[int] = []
        with closing(DiskStore(folder, timeout=20, clock=clock)) as store:
            thread = threading.Thread(target=lambda: counted.extend(hits(store, 1)))
            thread.start()
            thread.join(0.1)
            assert counted == []
            database.execute("COMMIT")
            thread.join(20)
            assert counted == [1]

    def test_but_not_for_ever(self, folder: Path, clock: FakeClock, database: sqlite3.Connection) -> None:
        """A hit that fails is not counted."""
        with closing(DiskStore(folder, timeout=0.05, clock=clock)) as store:
            hits(store, 1)
            database.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            for _ in range(3):
                with fails("locked"):
                    store.increment("policy:key", 60)
            assert time.monotonic() - began < 10
            database.execute("ROLLBACK")
            assert hits(store, 1) == [2]

    def test_a_folder_that_is_locked_when_it_is_opened(
        self, folder: Path, clock: FakeClock, database: sqlite3.Connection
    ) -> None:
        database.execute("BEGIN EXCLUSIVE")
        with closing(DiskStore(folder, timeout=0.05, clock=clock)) as store:
            with fails("locked"):
                store.increment("policy:key", 60)
            database.execute("ROLLBACK")
            assert hits(store, 1) == [1]

    def test_a_full_disk(self, store: DiskStore) -> None:
        """No hit is half counted."""
        hits(store, 3)
        counters = store._counters
        assert counters is not None
        pages = counters._do("PRAGMA page_count").fetchone()[0]
        counters._do(f"PRAGMA max_page_count = {pages}")
        with fails("failed"):
            for number in range(200):
                store.increment(f"policy:{'k' * 2000}{number}", 60)
        assert hits(store, 1) == [4]

    @posix
    @pytest.mark.slow
    def test_a_folder_that_may_not_be_written_to(self) -> None:
        """Root may write everywhere, so that another user tries."""
        code = """
import os, sys
from kreuz_sync.ratelimit import StoreUnavailable
from kreuz_sync.ratelimit.disk import DiskStore
os.umask(0)
store = DiskStore(sys.argv[1] + "/first")
store.increment("policy:key", 60)  # what it imports may be out of another user's reach
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.mkdir(sys.argv[1] + "/closed", 0o500)
for store in (store, DiskStore(sys.argv[1] + "/closed"), DiskStore(sys.argv[1] + "/closed/deeper")):
    store.close()
    for _ in range(2):
        try:
            store.increment("policy:key", 60)
        except StoreUnavailable as failure:
            print(failure.detail)
"""
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)
            (Path(place) / "first").mkdir(0o755)
            assert finish(start(code, place)).split() == ["failed"] * (6 if os.getuid() == 0 else 4)


@posix
class TestProcesses:
    """Those that are killed, and those that fork. In processes of their own: a test's process has threads."""

    @pytest.mark.slow
    def test_one_that_is_killed_in_the_middle_of_a_hit_holds_no_lock(self, folder: Path) -> None:
        """And that hit is not counted."""
        code = """
import os, signal, sys
from kreuz_sync.ratelimit.disk import DiskStore
store = DiskStore(sys.argv[1])
store.increment("policy:key", 60)
with store._counters._transaction():
    store._counters._do("UPDATE Cache SET value = 50")
    os.kill(os.getpid(), signal.SIGKILL)
"""
        process = start(code, folder)
        process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL
        with closing(DiskStore(folder)) as store:
            assert hits(store, 2) == [2, 3]

    @pytest.mark.slow
    def test_one_that_stops_in_the_middle_of_a_hit_delays_others_and_no_more(self, folder: Path) -> None:
        code = """
import sys
from kreuz_sync.ratelimit.disk import DiskStore
store = DiskStore(sys.argv[1])
store.increment("policy:key", 60)
with store._counters._transaction():
    print("ready", flush=True)
    sys.stdin.readline()
store.close()
"""
        process = start(code, folder)
        wait_ready(process)
        with closing(DiskStore(folder, timeout=0.05)) as store:
            with fails("locked"):
                store.increment("policy:key", 60)
            finish(process)
            assert hits(store, 1) == [2]

    @pytest.mark.slow
    def test_parent_and_children_go_on_side_by_side(self, folder: Path) -> None:
        """Though threads are at work when the children are made."""
        code = """
import os, sys, threading, warnings
from kreuz_sync.ratelimit.disk import DiskStore
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
store = DiskStore(sys.argv[1], timeout=30)
stop = threading.Event()
def work():
    while not stop.is_set():
        store.increment("policy:busy", 600)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(6):
    child = os.fork()
    if not child:
        try:
            for _ in range(20):
                store.increment("policy:key", 600)
            store.close()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
for _ in range(20):
    store.increment("policy:key", 600)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
stop.set()
for thread in threads:
    thread.join()
print(store.increment("policy:key", 600).used)
store.close()
"""
        assert finish(start(code, folder)).strip() == "141"

    @pytest.mark.slow
    def test_a_child_that_ends_as_usual_harms_nothing(self, folder: Path) -> None:
        """At its end the interpreter clears away what it inherited."""
        code = """
import os, sys
from kreuz_sync.ratelimit.disk import DiskStore
store = DiskStore(sys.argv[1])
store.increment("policy:key", 60)
child = os.fork()
if not child:
    store.increment("policy:key", 60)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(store.increment("policy:key", 60).used)
store.close()
"""
        assert finish(start(code, folder)).strip() == "3"

    def test_a_child_of_a_fork_in_the_middle_of_a_hit_has_no_store(self, folder: Path) -> None:
        """What it inherited of SQLite can neither be used nor given up. The parent goes on."""
        code = """
import os, sys, threading, warnings
from kreuz_sync.ratelimit import StoreUnavailable, disk
warnings.simplefilter("ignore", DeprecationWarning)
disk._FORK_WAIT_S = 0.1
store = disk.DiskStore(sys.argv[1])
store.increment("policy:key", 60)
begun, end = threading.Event(), threading.Event()
def work():
    with store._lock, store._counters._transaction():
        begun.set()
        end.wait(30)
thread = threading.Thread(target=work)
thread.start()
begun.wait(30)
child = os.fork()
if not child:
    try:
        store.increment("policy:key", 60)
    except StoreUnavailable as failure:
        os._exit(0 if failure.detail == "forked" else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
end.set()
thread.join()
print(store.increment("policy:key", 60).used)
store.close()
"""
        assert finish(start(code, folder)).strip() == "2"


class TestThreads:
    """One connection serves all of them, one after the other."""

    def test_one_that_waits_too_long_for_another_says_so(self, folder: Path) -> None:
        with closing(DiskStore(folder, timeout=0.05)) as store:
            hits(store, 1)
            with store._lock:
                outcomes: list[str] = []

                def work(_: int) -> None:
                    with fails("locked"):
                        store.increment("policy:key", 60)
                    outcomes.append("locked")

                in_threads(3, work)
            assert outcomes == ["locked"] * 3
            assert hits(store, 1) == [2]

    def test_the_wait_for_threads_and_that_for_processes_are_one(self, folder: Path) -> None:
        """Whoever waited for the first has what is left for the second: here nothing."""
        with closing(Counters(str(folder), FakeClock(), 30.0)) as counters:
            with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                began = time.monotonic()
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    counters.hit("policy:key", 60, until=began)
                assert time.monotonic() - began < 10
                other.execute("ROLLBACK")
            assert counters.hit("policy:key", 60, until=began).used == 1  # the first try is always made

    def test_closing_while_others_count_loses_nothing(self, folder: Path) -> None:
        with closing(DiskStore(folder, timeout=20)) as store:

            def work(number: int) -> None:
                for _ in range(30):
                    if number == 0:
                        store.close()
                    else:
                        store.increment("policy:key", 600)

            in_threads(5, work)
            assert hits(store, 1) == [121]

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the files that Linux lists in /proc")
    def test_a_store_that_is_forgotten_closes_itself(self, folder: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))
        store = DiskStore(folder)
        hits(store, 1)
        assert len(os.listdir("/proc/self/fd")) > before
        del store
        assert len(os.listdir("/proc/self/fd")) == before


class TestSettings:
    """What the constructor takes, and what becomes of it in copies."""

    @pytest.mark.parametrize("folder", [None, 5, b"bytes", ["a"]])
    def test_a_folder_is_a_path(self, folder: object) -> None:
        with pytest.raises(TypeError, match="folder="):
            DiskStore(folder)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("folder", "", ValueError),
            ("timeout", -1, ValueError),
            ("timeout", None, TypeError),
            ("clock", 5, TypeError),
        ],
    )
    def test_an_impossible_value_is_refused(self, name: str, value: object, kind: type[Exception]) -> None:
        with pytest.raises(kind, match=name):
            DiskStore(**{"folder": "limits", name: value})  # type: ignore[arg-type]

    def test_it_shows_its_settings(self, tmp_path: Path) -> None:
        assert repr(DiskStore(tmp_path)) == f"DiskStore({str(tmp_path)!r}, timeout=0.5)"

    def test_a_pickle_uses_the_same_folder(self, folder: Path) -> None:
        with closing(DiskStore(folder, timeout=3)) as store:
            hits(store, 2)
            with closing(pickle.loads(pickle.dumps(store))) as again:
                assert (again.folder, again.timeout) == (str(folder), 3)
                assert hits(again, 1) == [3]

    def test_a_path_stays_the_same_when_the_current_folder_changes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with closing(DiskStore("limits")) as store:
            hits(store, 1)
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir(tmp_path / "elsewhere")
            store.close()
            assert hits(store, 1) == [2]
