"""The pace that several processes of one machine keep through a folder."""

from __future__ import annotations

import json
import logging
import os
import pickle
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync import FolderThrottle, Session
from kreuz_sync.errors import ThrottleTimeout
from kreuz_sync.throttle.folder import FILE, FolderSteps

from .loopback import Server, sequence
from .pace_contract import DELAY_S, HOST, Answers, Joining, Machine, Site, Slots, near
from .pace_processes import NOISE_S, ROUNDING_S, Crew, arrivals, gaps, let_go, reader
from .test_cache_store_processes import posix


class FolderSite(Site):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / FILE
        self.steps = FolderSteps(str(folder), 10.0)

    def query(self, text: str, *words: object) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(text, words).fetchall()

    def shift(self, microseconds: int) -> None:
        ((text, until),) = self.query("SELECT kept, until FROM pace")
        kept = json.loads(text)
        for field in ("started", "next", "paused", "at"):
            kept[field] -= microseconds
        self.query("UPDATE pace SET kept = ?, until = ?", json.dumps(kept), until)

    def lasts(self) -> float:
        ((text, until),) = self.query("SELECT kept, until FROM pace")
        return float(until - json.loads(text)["at"]) / 1e6


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FolderSite]:
    site = FolderSite(tmp_path)
    with closing(site.steps):
        yield site


class TestSlots(Slots):
    """In a folder."""


class TestAnswers(Answers):
    """In a folder."""


class TestJoining(Joining):
    """In a folder."""


class TestFolder:
    def test_two_throttles_keep_one_pace(self, tmp_path: Path) -> None:
        with closing(FolderThrottle(tmp_path, DELAY_S)) as one:
            one.acquire(HOST)
            with closing(FolderThrottle(tmp_path, DELAY_S, max_wait=1)) as other:
                with pytest.raises(ThrottleTimeout) as raised:
                    other.acquire(HOST)
        assert raised.value.retry_after == near(DELAY_S)

    def test_a_backoff_outlives_all_processes(self, tmp_path: Path) -> None:
        with closing(FolderThrottle(tmp_path, 0.01)) as one:
            one.acquire(HOST)
            one.record_response(HOST, 429)
        with closing(FolderThrottle(tmp_path, 0.01)) as later:
            later.acquire(HOST)
            assert later.delay_for(HOST) == 0.02

    def test_hosts_that_need_no_state_are_removed(self, site: FolderSite) -> None:
        Machine(site).ask()
        site.query("UPDATE pace SET until = 0")
        for _ in range(256):
            site.steps.send("learn", "other.test", (*[b"0"] * 10, b"-1", b"floor", b"0"))
        assert site.query("SELECT host FROM pace") == [("other.test",)]

    @posix
    def test_nobody_else_may_read_it(self, site: FolderSite) -> None:
        Machine(site).ask()
        assert stat.S_IMODE(os.stat(site.path).st_mode) == 0o600

    def test_it_pickles(self, tmp_path: Path) -> None:
        throttle = FolderThrottle(tmp_path, 0.3, max_wait=4)
        again = pickle.loads(pickle.dumps(Session(throttle=throttle))).throttle
        assert repr(again) == repr(throttle)

    def test_a_folder_that_is_none_costs_one_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").write_text("")
        throttle = FolderThrottle(tmp_path / "file", 0.01)
        for _ in range(3):
            throttle.acquire(HOST)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]

    def test_a_file_that_is_something_else_is_left_alone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / FILE).write_text("something else" * 100)
        throttle = FolderThrottle(tmp_path, 0.01)
        for _ in range(3):
            throttle.acquire(HOST)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert (tmp_path / FILE).read_text() == "something else" * 100

    def test_a_row_that_makes_no_sense_stops_nobody(self, site: FolderSite, tmp_path: Path) -> None:
        Machine(site).ask()
        site.query("UPDATE pace SET kept = '[]'")
        FolderThrottle(tmp_path, 0).acquire(HOST)

    def test_a_mistake_in_the_settings_is_told(self) -> None:
        with pytest.raises(TypeError, match="folder"):
            FolderThrottle(3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="timeout"):
            FolderThrottle("pace", timeout=0)


READER = reader("FolderThrottle(place, delay, first_backoff=0.4)")


@posix
class TestSeveralProcesses:
    def test_four_are_as_polite_as_one(self, tmp_path: Path, server: Server) -> None:
        crew = Crew(READER, 4, tmp_path, server.url("/"), 0.3, 3)
        crew.go()
        moments = crew.moments()
        assert len(moments) == len(arrivals(server)) == 12
        assert min(gaps(moments)) >= 0.3 - ROUNDING_S
        assert min(gaps(arrivals(server))) >= 0.3 - NOISE_S

    def test_a_429_slows_all_of_them(self, tmp_path: Path, server: Server) -> None:
        url = server.route("/refuses", sequence(*[200] * 6, 429, *[503] * 20))
        crew = Crew(READER, 4, tmp_path, url, 0.1, 4)
        crew.go()
        distances = gaps(crew.moments())
        assert min(distances) >= 0.1 - ROUNDING_S
        assert min(distances[-8:]) >= 0.2 - ROUNDING_S

    def test_one_that_is_killed_leaves_nothing_locked(self, tmp_path: Path, server: Server) -> None:
        crew = Crew(READER, 3, tmp_path, server.url("/"), 0.02, 30)
        crew.go()
        server.wait_for(3 + 10)
        said = crew.kill_one()
        others = crew.outputs()
        assert [len(output.split()) for output in others] == [30, 30]
        assert min(gaps(let_go(said, *others))) >= 0.02 - ROUNDING_S

    def test_the_child_of_a_fork_keeps_it_too(self, tmp_path: Path) -> None:
        """It opens the database anew, and its own end leaves the parent's as it is."""
        code = """
import os, sys
from kreuz_sync import FolderThrottle
throttle = FolderThrottle(sys.argv[1], 100, max_wait=1)
print("ready", flush=True)
sys.stdin.readline()
throttle.acquire("first.test")
child = os.fork()
if not child:
    try:
        throttle.acquire("second.test")
        throttle.close()
    finally:
        os._exit(0)
os.waitpid(child, 0)
try:
    throttle.acquire("second.test")
except Exception as error:
    print(type(error).__name__)
"""
        crew = Crew(code, 1, tmp_path)
        crew.go()
        assert crew.outputs() == ["ThrottleTimeout\n"]
