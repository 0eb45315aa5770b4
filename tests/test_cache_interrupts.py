"""An interrupt (Ctrl-C) at any moment: the folder can be used and closed after it, by this process and others."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kreuz_sync.cache
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.folder.turn import Turn

from .store_contract import content, fill

pytestmark = pytest.mark.slow

CACHE = os.path.dirname(kreuz_sync.cache.__file__)
GUARD_S = 10.0


class Interrupt:
    """Raises KeyboardInterrupt where the interpreter looks for one: when a function has begun, or one in C has ended.

    At the place that comes as number `at`, of those in the cache and in diskcache, and once.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self.struck = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if self.struck or event not in ("call", "c_return") or not (is_ours(frame) or is_helper(frame)):
            return
        if event == "c_return" and argument.__name__ in ("__enter__", "__exit__"):  # `with` of a lock is one step
            return
        self.left -= 1
        if self.left < 0:
            self.struck = True
            raise KeyboardInterrupt


def is_ours(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(CACHE) or "diskcache" in name


def is_helper(frame: FrameType) -> bool:
    return frame.f_code.co_filename == contextlib.__file__ and frame.f_back is not None and is_ours(frame.f_back)


def interrupted(work: Callable[[], object], at: int) -> bool:
    """Whether `work` was interrupted at its place number `at`, and not over before."""
    interrupt = Interrupt(at)
    sys.setprofile(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return interrupt.struck


def in_time(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(GUARD_S)
    assert not thread.is_alive()


# What an interrupt makes a thread forget, the garbage collector closes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
class TestInterrupts:
    """At every place, one after the other, of what a store does."""

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_of_a_write(self, tmp_path: Path, size: int) -> None:
        store, other = (DiskStore(tmp_path / "cache", lock_wait=0.3) for _ in range(2))
        fill(store, "first")
        at = 0
        while interrupted(lambda: store.write("key", b"head", b"x" * size), at):
            other.write("of another process", b"head", str(at).encode())  # no transaction was left open
            store.write("key", b"head", str(at).encode())
            assert content(store.read("key")) == str(at).encode()
            at += 1
        assert at > 50
        in_time(store.close)
        in_time(other.close)

    def test_of_a_read(self, tmp_path: Path) -> None:
        with closing(DiskStore(tmp_path / "cache", lock_wait=0.3, memory=0)) as store:
            fill(store, "key")
            at = 0
            while interrupted(lambda: store.read("key"), at):
                assert content(store.read("key")) == b"x" * 10
                at += 1
            assert at > 10

    def test_of_opening_it(self, tmp_path: Path) -> None:
        fill(before := DiskStore(tmp_path / "cache"), "key")
        before.close()
        at = 0
        while True:
            with closing(DiskStore(tmp_path / "cache", lock_wait=0.3)) as store:
                if not interrupted(lambda: store.read("key"), at):
                    break
                assert content(store.read("key")) == b"x" * 10
                fill(store, "other")
            at += 7
        assert at > 50

    def test_a_transaction_that_one_left_open_is_rolled_back(self, tmp_path: Path) -> None:
        with closing(DiskStore(tmp_path / "cache", lock_wait=0.3)) as store:
            fill(store, "key")
            assert store._shelf is not None
            store._shelf._writer._connection.execute("BEGIN IMMEDIATE")
            fill(store, "other")
            with closing(sqlite3.connect(tmp_path / "cache" / "cache.db", timeout=0.1)) as database:
                database.execute("BEGIN IMMEDIATE")


class TestClosing:
    def test_it_waits_for_nobody_for_ever_and_who_writes_closes_it_then(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kreuz_sync.cache.folder.writer._CLOSE_WAIT_S", 0.05)
        store = DiskStore(tmp_path / "cache")
        fill(store, "key")
        assert store._shelf is not None
        writer = store._shelf._writer
        with writer.changing():
            in_time(store.close)
            assert not writer._is_closed
        assert writer._is_closed
        assert content(store.read("key")) == b"x" * 10
        store.close()


class TestTurn:
    def test_one_at_a_time(self) -> None:
        turn, one, other = Turn(), object(), object()
        assert turn.take(one, 0.0)
        assert not turn.take(other, 0.01)
        turn.holder = None
        assert turn.take(other, 0.0)

    def test_who_waits_is_told(self) -> None:
        turn, one = Turn(), object()
        turn.take(one, 0.0)
        got: list[bool] = []
        waiting = threading.Thread(target=lambda: got.append(turn.take(object(), GUARD_S)))
        waiting.start()
        turn.holder = None
        turn.tell()
        waiting.join(GUARD_S / 2)
        assert got == [True]
