"""The store on disk, shared by processes: those that work, those that fork, and those that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kreuz_sync.cache.disk import DiskStore

from .store_contract import content, fill
from .test_cache_store_disk import ROOT, body_files, run_python

posix = pytest.mark.skipif(os.name != "posix", reason="of a system with fork and SIGKILL")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output


@pytest.fixture
def partner(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process with the folder open, which does what it is told, line by line, and says so."""
    code = """
import sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1])
for line in sys.stdin:
    eval(line)
    print("done", flush=True)
"""
    command = [sys.executable, "-c", code, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    yield process
    process.communicate(timeout=20)


def tell(partner: subprocess.Popen[str], line: str) -> None:
    assert partner.stdin is not None and partner.stdout is not None
    partner.stdin.write(line + "\n")
    partner.stdin.flush()
    assert partner.stdout.readline() == "done\n"


class TestSeveralProcesses:
    """They see each other's records, and no write of one is lost to another."""

    @pytest.mark.slow
    def test_all_may_open_a_new_folder_at_once(self, folder: Path) -> None:
        code = """
import sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], lock_wait=30)
for number in range(30):
    key = sys.argv[2] + "." + str(number)
    store.write(key, b"head", key.encode() * 300 * (number % 5))
    store.write("shared", sys.argv[2].encode(), sys.argv[2].encode() * 50_000)
    record = store.read("shared")
    body = record.body if isinstance(record.body, bytes) else record.body.read()
    assert body == record.head * 50_000
store.close()
"""
        for process in [start(code, folder, number) for number in range(6)]:
            finish(process)
        with closing(DiskStore(folder)) as store:
            assert len(store) == 6 * 30 + 1
            for number in range(6):
                assert content(store.read(f"{number}.29")) == f"{number}.29".encode() * 1200
            assert len(body_files(folder)) == 1

    def test_a_change_by_another_process_is_seen_at_once(self, folder: Path, partner: subprocess.Popen[str]) -> None:
        """Though the record was in memory."""
        with closing(DiskStore(folder)) as store:
            fill(store, "key")
            assert store.read("key") is store.read("key")
            tell(partner, "store.write('key', b'theirs', b'body')")
            record = store.read("key")
            assert record is not None and record.head == b"theirs"
            tell(partner, "store.delete('key')")
            assert store.read("key") is None

    def test_what_this_process_changes_another_sees(self, folder: Path, partner: subprocess.Popen[str]) -> None:
        with closing(DiskStore(folder)) as store:
            for number in range(5):
                fill(store, str(number))
                tell(partner, f"store.read('{number}').body == b'x' * 10 or 1 / 0")

    def test_a_limit_holds_for_all_together(self, folder: Path) -> None:
        code = """
import sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], max_entries=50, lock_wait=30)
for number in range(100):
    store.write(sys.argv[2] + "." + str(number), b"head", b"x" * (40_000 if number % 10 == 0 else 10))
store.close()
"""
        for process in [start(code, folder, number) for number in range(3)]:
            finish(process)
        with closing(DiskStore(folder)) as store:
            assert len(store) == len(list(store.keys())) == 50
            assert len(body_files(folder)) == len({key for key in store.keys() if key.endswith("0")})

    @pytest.mark.slow
    def test_they_have_one_secret(self, folder: Path) -> None:
        """Whoever asks first makes it, and of several at once one."""
        code = """
import sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], lock_wait=30)
print(store.secret().hex())
store.close()
"""
        assert len({finish(process) for process in [start(code, folder) for _ in range(5)]}) == 1


@posix
class TestFork:
    """A child opens the folder for itself. In processes of their own: a test's process has threads."""

    def test_parent_and_child_go_on_side_by_side(self, folder: Path) -> None:
        code = """
import os, sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], lock_wait=30)
store.write("before", b"head", b"body")
store.read("before")
children = []
for number in range(4):
    child = os.fork()
    if not child:
        assert store.read("before").body == b"body"
        for step in range(50):
            store.write(f"{number}.{step}", b"head", b"x" * 300 * step)
        store.close()
        os._exit(0)
    children.append(child)
for step in range(50):
    store.write(f"parent.{step}", b"head", b"body")
for child in children:
    assert os.waitpid(child, 0)[1] == 0
for number in range(4):
    for step in range(50):
        assert store.read(f"{number}.{step}").body == b"x" * 300 * step
print(len(store))
store.close()
"""
        assert run_python(code, folder).strip() == "251"

    def test_a_child_that_ends_as_usual_harms_nothing(self, folder: Path) -> None:
        """At its end the interpreter clears away what it inherited."""
        code = """
import os, sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1], lock_wait=30)
store.write("key", b"head", b"body")
spool = store.spool()
spool.write(b"x" * 100_000)
spool.flush()
child = os.fork()
if not child:
    store.write("child", b"head", b"body")
    spool.close()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
spool.seek(0)
store.write("spooled", b"head", spool)
spool.close()
print(store.read("key").body, store.read("child").body, len(store.read("spooled").body))
store.close()
"""
        assert run_python(code, folder).split() == ["b'body'", "b'body'", "100000"]

    def test_a_fork_while_threads_are_at_work(self, folder: Path) -> None:
        """A lock that a thread held is not held in the child, where that thread is not."""
        code = """
import os, sys, threading, warnings
from kreuz_sync.cache.disk import DiskStore
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of such a fork
store = DiskStore(sys.argv[1], lock_wait=30)
store.write("key", b"head", b"body")
stop = threading.Event()
def work():
    while not stop.is_set():
        store.write("busy", b"head", b"body")
        store.read("busy")
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(20):
    child = os.fork()
    if not child:
        store.write(str(number), b"head", b"body")
        os._exit(0 if store.read("key").body == b"body" else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(len(store))
store.close()
"""
        assert run_python(code, folder).strip() == "22"

    def test_a_fork_while_the_store_is_first_used_waits_for_what_is_imported(self, folder: Path) -> None:
        """A child has no thread that would end the import, and would wait for it."""
        code = """
import importlib.machinery, os, signal, sys, threading, time, warnings
from kreuz_sync.cache.disk import DiskStore
warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
store, begun, execute = DiskStore(sys.argv[1]), threading.Event(), importlib.machinery.SourceFileLoader.exec_module
def slowly(self, module):
    if module.__name__.endswith("folder.opening"):
        begun.set()
        time.sleep(0.3)
    return execute(self, module)
importlib.machinery.SourceFileLoader.exec_module = slowly
thread = threading.Thread(target=lambda: len(store))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(len(store))
print(os.waitpid(child, 0)[1])
thread.join()
store.close()
"""
        assert run_python(code, folder).strip() == "0"

    def test_a_child_of_a_fork_in_the_middle_of_a_change_has_no_cache(self, folder: Path) -> None:
        """What it inherited of SQLite cannot be used, nor given up. The parent goes on."""
        code = """
import os, sys, threading, warnings
from kreuz_sync.cache import disk
from kreuz_sync.cache.store import StoreTrouble
warnings.simplefilter("ignore", DeprecationWarning)
disk._FORK_WAIT_S = 0.1
store = disk.DiskStore(sys.argv[1])
store.write("key", b"head", b"body")
begun, end = threading.Event(), threading.Event()
def work():
    with store._checked()._writer.changing() as change:
        change.delete("key", None)
        begun.set()
        end.wait(30)
thread = threading.Thread(target=work)
thread.start()
begun.wait(30)
child = os.fork()
if not child:
    try:
        store.read("key")
    except StoreTrouble as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
end.set()
thread.join()
print(store.read("key"))
store.close()
"""
        assert run_python(code, folder).strip() == "None"


# Writes records of all sizes, in all ways, as fast as it can. A record's head is the checksum of its body.
WRITER = """
import os, random, sys, zlib
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.store import StoreTrouble
draw = random.Random(os.getpid())
store = DiskStore(sys.argv[1], max_entries=120, lock_wait=20)
len(store)
print("ready", flush=True)
while True:
    key = str(draw.randrange(200))
    body = os.urandom(draw.choice([10, 3000, 50_000, 400_000]))
    try:
        if draw.random() < 0.1:
            store.delete(key)
        elif draw.random() < 0.3:
            with store.spool() as file:
                file.write(body)
                file.seek(0)
                store.write(key, b"%d" % zlib.crc32(body), file)
        else:
            store.write(key, b"%d" % zlib.crc32(body), body)
        store.read(str(draw.randrange(200)))
    except StoreTrouble as error:
        print(error, flush=True)
"""


@posix
class TestKilled:
    """kill -9 at any moment loses at most the record that was being written."""

    @pytest.mark.slow
    def test_whatever_was_killed_every_record_is_whole_or_absent(self, folder: Path) -> None:
        """Seven times four writers, killed in the middle; the folder opens each time, and its counters are right."""
        draw = random.Random(1)
        for turn in range(7):
            writers = [start(WRITER, folder) for _ in range(4)]
            for writer in writers:
                assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
            time.sleep(0.2)
            for writer in writers:
                time.sleep(draw.random() * 0.05)
                writer.send_signal(signal.SIGKILL)
            for writer in writers:
                output, errors = writer.communicate(timeout=20)
                assert (output, errors) == ("", "")
            with closing(DiskStore(folder, max_entries=120)) as store:
                keys = list(store.keys())
                assert len(keys) == len(set(keys)) == len(store) <= 120
                absent = sum(self.is_absent(store, key) for key in keys)
                assert absent <= 8 * (turn + 1)
        assert len(keys) > 20
        self.check_that_nothing_is_left(folder)

    def is_absent(self, store: DiskStore, key: str) -> bool:
        """Whether it has a row but no file; a record that is there must be whole."""
        record = store.read(key)
        if record is None:
            return True
        assert int(record.head) == zlib.crc32(content(record))
        return False

    def check_that_nothing_is_left(self, folder: Path) -> None:
        """What was half written went with the next opening, and clearing leaves no file."""
        with closing(DiskStore(folder)) as store:
            fill(store, "key")
            assert list((folder / "cache.db-incoming").iterdir()) == []
            store.clear()
            assert (body_files(folder), len(store), store.volume()) == ([], 0, 0)

    def test_a_killed_writer_holds_no_lock(self, folder: Path) -> None:
        """Nor does it leave others waiting for its turn."""
        code = """
import os, signal, sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1])
store.write("key", b"head", b"body")
with store._checked()._writer.changing() as change:
    change.delete("key", None)
    os.kill(os.getpid(), signal.SIGKILL)
"""
        process = start(code, folder)
        process.communicate(timeout=30)
        assert process.returncode == -9
        with closing(DiskStore(folder)) as store:
            assert content(store.read("key")) == b"body"
            fill(store, "key")
            assert content(store.read("key")) == b"x" * 10

    def test_uses_that_were_not_put_down_are_lost_and_no_more(self, folder: Path) -> None:
        code = """
import os, signal, sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1])
for key in "abc":
    store.write(key, b"head", b"body")
store.read("a")
os.kill(os.getpid(), signal.SIGKILL)
"""
        start(code, folder).communicate(timeout=30)
        with closing(DiskStore(folder)) as store:
            assert list(store.keys()) == ["a", "b", "c"]


class TestThreadsDuringAClose:
    """Covered in one process, since what one thread closes another may be using."""

    def test_a_reader_of_a_large_body_is_not_disturbed(self, folder: Path) -> None:
        store = DiskStore(folder)
        store.write("key", b"head", b"x" * 3_000_000)
        record = store.read("key")
        closer = threading.Thread(target=store.close)
        closer.start()
        closer.join()
        assert content(record) == b"x" * 3_000_000
