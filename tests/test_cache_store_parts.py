"""The parts of the store on disk that can be looked at by themselves."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kreuz_sync.cache.folder.connect import connect
from kreuz_sync.cache.folder.incoming import BodyFile, TakenAway, remove_if_dead
from kreuz_sync.cache.folder.marks import SLOTS, Marks
from kreuz_sync.cache.folder.readers import Readers
from kreuz_sync.cache.folder.rows import Row, pack, unpack
from kreuz_sync.cache.folder.secret import read_secret
from kreuz_sync.cache.store import CacheStore, Record, StoreTrouble

from .store_contract import in_threads

BESIDE = Row(b"head", None, 10**12, 0xFFFFFFFF)
INSIDE = Row(b"head", b"body", 4, 0)


class TestRows:
    """The value of a row says itself whether it is whole, and whose it is."""

    @pytest.mark.parametrize(
        "row", [INSIDE, BESIDE, Row(b"", b"", 0, 0), Row(b"\0" * 5, None, 0, 0), Row(b"h" * 70_000, b"\xff", 1, 0)]
    )
    def test_what_is_packed_is_unpacked(self, row: Row) -> None:
        assert unpack("key", pack("key", row), has_file=row.body is None) == row

    def test_any_head_and_body(self) -> None:
        hypothesis = pytest.importorskip("hypothesis")
        draw = hypothesis.strategies

        @hypothesis.given(draw.text(), draw.binary(), draw.binary())
        @hypothesis.settings(deadline=None)
        def check(key: str, head: bytes, body: bytes) -> None:
            try:
                key.encode()
            except UnicodeEncodeError:
                return
            row = Row(head, body, len(body), 0)
            assert unpack(key, pack(key, row), has_file=False) == row

        check()

    @pytest.mark.parametrize("row", [INSIDE, BESIDE])
    def test_one_bit_that_is_wrong_anywhere_is_noticed(self, row: Row) -> None:
        value = pack("key", row)
        for place in range(len(value) * 8):
            damaged = bytearray(value)
            damaged[place // 8] ^= 1 << place % 8
            assert unpack("key", bytes(damaged), has_file=row.body is None) is None

    @pytest.mark.parametrize("row", [INSIDE, BESIDE])
    def test_a_part_of_it_is_nothing(self, row: Row) -> None:
        value = pack("key", row)
        for length in range(len(value)):
            assert unpack("key", value[:length], has_file=row.body is None) is None
        assert unpack("key", value + b"\0", has_file=row.body is None) is None

    def test_it_is_nothing_under_another_key(self) -> None:
        assert unpack("another key", pack("key", INSIDE), has_file=False) is None

    @pytest.mark.parametrize("row", [INSIDE, BESIDE])
    def test_it_is_nothing_where_the_body_should_be_elsewhere(self, row: Row) -> None:
        assert unpack("key", pack("key", row), has_file=row.body is not None) is None


class TestMarks:
    """A mark that is still, and the same as before, says that nothing has changed."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        return str(tmp_path / "marks")

    @pytest.fixture
    def marks(self, path: str) -> Iterator[Marks]:
        with closing(Marks(path)) as marks:
            yield marks

    def test_a_new_one_is_still(self, marks: Marks) -> None:
        assert all(marks.is_still(marks.read(slot)) for slot in range(SLOTS))

    def test_a_change_makes_it_busy_and_then_another(self, marks: Marks) -> None:
        before = marks.read(7)
        marks.set_busy({7})
        assert not marks.is_still(marks.read(7))
        marks.set_still({7})
        assert marks.is_still(marks.read(7)) and marks.read(7) != before
        assert marks.read(8) == before

    def test_no_mark_comes_twice(self, marks: Marks) -> None:
        seen = set()
        for _ in range(1000):
            marks.set_still({7})
            seen.add(marks.read(7))
        assert len(seen) == 1000

    def test_two_processes_give_different_marks(self, path: str, marks: Marks) -> None:
        """Else a change by one after a change by the other could look like none."""
        with closing(Marks(path)) as other:
            marks.set_still({7})
            mine = other.read(7)
            other.set_still({7})
            assert marks.read(7) != mine

    @pytest.mark.parametrize("slots", [range(SLOTS), range(100, 200)])
    def test_many_change_together(self, marks: Marks, slots: range) -> None:
        marks.set_busy(slots)
        assert not any(marks.is_still(marks.read(slot)) for slot in slots)

    def test_a_file_that_is_cut_short_has_no_still_marks(self, path: str, marks: Marks) -> None:
        os.truncate(path, 0)
        assert not marks.is_still(marks.read(0))

    def test_a_slot_depends_on_the_key_alone(self) -> None:
        """Processes must agree on it."""
        assert (Marks.slot("key"), Marks.slot("another")) == (425, 56)


@pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
class TestIncoming:
    """A file that nobody is at work on is dead."""

    def test_it_goes_when_it_is_closed(self, tmp_path: Path) -> None:
        with BodyFile(str(tmp_path)) as file:
            file.write(b"body")
        assert list(tmp_path.iterdir()) == []

    def test_it_stays_when_it_was_kept(self, tmp_path: Path) -> None:
        with BodyFile(str(tmp_path)) as file:
            file.write(b"body")
            file.move(str(tmp_path / "place" / "name"))
            file.kept = True
        assert (tmp_path / "place" / "name").read_bytes() == b"body"

    def test_it_is_not_dead_while_it_is_open(self, tmp_path: Path) -> None:
        with BodyFile(str(tmp_path)) as file:
            assert not remove_if_dead(file.path, lambda: False)
            assert os.path.exists(file.path)

    def test_it_is_dead_when_nobody_has_it_open(self, tmp_path: Path) -> None:
        path = tmp_path / "left"
        path.write_bytes(b"body")
        assert not remove_if_dead(str(path), lambda: True)
        assert remove_if_dead(str(path), lambda: False)
        assert not path.exists()

    def test_one_that_was_taken_for_dead_too_soon_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sweep comes between its making and its lock; whoever made it makes another."""

        def lock_late(self: BodyFile) -> bool:
            assert remove_if_dead(self.path, lambda: False)
            return lock(self)

        lock = BodyFile._lock
        monkeypatch.setattr(BodyFile, "_lock", lock_late)
        with pytest.raises(TakenAway):
            BodyFile(str(tmp_path))
        assert list(tmp_path.iterdir()) == []

    def test_it_measures_itself_as_it_is_written(self, tmp_path: Path) -> None:
        from zlib import crc32

        with BodyFile(str(tmp_path)) as file:
            for piece in (b"a" * 70_000, memoryview(b"b" * 10), b""):
                file.write(piece)
            assert file.measure() == (70_010, crc32(b"a" * 70_000 + b"b" * 10))
            file.seek(5)
            file.write(b"c")
            assert file.measure() == (70_010, crc32(b"a" * 5 + b"c" + b"a" * 69_994 + b"b" * 10))
            file.seek(0, os.SEEK_END)
            file.write(b"d")
            assert file.measure()[0] == 70_011


class TestReaders:
    """Threads share a few connections."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        path = str(tmp_path / "database")
        with closing(connect(path, 1.0)) as connection:
            connection.execute("CREATE TABLE Numbers (number INTEGER)")
            connection.execute("INSERT INTO Numbers VALUES (1), (2)")
        return path

    def test_no_more_than_a_few_are_opened(self, path: str) -> None:
        readers = Readers(path, 20.0)
        in_threads(60, lambda _: [readers.rows("SELECT number FROM Numbers") for _ in range(20)])
        assert 1 <= len(readers._idle) == len(readers._made) <= 8
        readers.close()

    def test_who_waits_too_long_is_told(self, path: str) -> None:
        readers = Readers(path, 0.05)
        taken = [readers.each("SELECT number FROM Numbers") for _ in range(8)]
        for rows in taken:
            next(rows)
        with pytest.raises(StoreTrouble, match="other threads"):
            readers.rows("SELECT number FROM Numbers")
        for rows in taken:
            assert list(rows) == [(2,)]
        assert readers.rows("SELECT number FROM Numbers") == [(1,), (2,)]
        readers.close()

    def test_one_that_failed_is_not_used_again(self, path: str) -> None:
        import sqlite3

        readers = Readers(path, 1.0)
        for _ in range(20):
            with pytest.raises(sqlite3.OperationalError):
                readers.rows("SELECT nothing FROM Nowhere")
        assert readers.rows("SELECT number FROM Numbers") == [(1,), (2,)]
        assert len(readers._made) == 1
        readers.close()

    def test_while_it_is_paused_nobody_reads(self, path: str) -> None:
        from kreuz_sync.clock import SYSTEM_CLOCK

        readers = Readers(path, 20.0)
        readers.rows("SELECT number FROM Numbers")
        assert readers.pause(SYSTEM_CLOCK.monotonic() + 5)
        done = threading.Event()

        def read() -> None:
            readers.rows("SELECT number FROM Numbers")
            done.set()

        thread = threading.Thread(target=read)
        thread.start()
        assert not done.wait(0.05)
        readers.resume()
        assert done.wait(10)
        thread.join()
        readers.close()

    def test_a_pause_that_takes_too_long_is_given_up(self, path: str) -> None:
        from kreuz_sync.clock import SYSTEM_CLOCK

        readers = Readers(path, 1.0)
        rows = readers.each("SELECT number FROM Numbers")
        next(rows)
        assert not readers.pause(SYSTEM_CLOCK.monotonic() + 0.05)
        assert readers.rows("SELECT number FROM Numbers") == [(1,), (2,)]
        rows.close()
        readers.close()


class TestSecret:
    """Made once, whoever asks."""

    def test_it_stays(self, tmp_path: Path) -> None:
        path = str(tmp_path / "secret")
        assert read_secret(path) == read_secret(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]

    def test_threads_that_ask_at_once_get_one(self, tmp_path: Path) -> None:
        found: list[bytes] = []
        in_threads(20, lambda _: found.append(read_secret(str(tmp_path / "secret"))))
        assert len(set(found)) == 1


class TestOwnStore:
    """A store of the user's own needs eight methods; the rest comes with the interface."""

    class Own(CacheStore):
        def __init__(self) -> None:
            self.kept: dict[str, tuple[bytes, bytes]] = {}

        def read(self, key: str) -> Record | None:
            return Record(*self.kept[key]) if key in self.kept else None

        def write(self, key, head, body):  # type: ignore[no-untyped-def]
            self.kept[key] = (head, body if isinstance(body, bytes) else body.read())

        def rewrite_head(self, key: str, head: bytes, expected: bytes | None = None) -> bool:
            return False

        def delete(self, key: str) -> bool:
            return self.kept.pop(key, None) is not None

        def keys(self) -> Iterator[str]:
            return iter(list(self.kept))

        def clear(self) -> int:
            return 0

        def __len__(self) -> int:
            return len(self.kept)

        def volume(self) -> int:
            return 0

    def test_it_drops_what_begins_alike(self) -> None:
        store = self.Own()
        for key in ("ab", "ab.1", "a"):
            store.write(key, b"", b"")
        assert store.delete_under("ab") == 2
        assert list(store.keys()) == ["a"]

    def test_it_has_a_secret_and_a_spool(self) -> None:
        store = self.Own()
        assert len(store.secret()) == 32 and store.secret() == store.secret()
        with store.spool() as file:
            file.write(b"body")
            file.seek(0)
            store.write("key", b"", file)
        assert store.kept["key"] == (b"", b"body")
        store.close()
