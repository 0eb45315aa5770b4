"""What a throttle learnt outlives its process, in a small file."""

import json
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kreuz_sync
from kreuz_sync import Session, Throttle
from kreuz_sync.throttle import keeper
from kreuz_sync.throttle.saved import FORMAT, MOST_HOSTS

from .fakes import FakeClock, ScriptedAdapter, prepared
from .loopback import answer
from .test_throttle_buckets import left, used_up
from .waiting import GUARD_S, Worker, eventually

HOST = "example.test"
DAY = 24 * 3600.0
WALL = 1_800_000_000.0


class Runs:
    """Runs of one program, one after the other: each with a clock that begins anew, and a wall clock that goes on."""

    def __init__(self, folder):
        self.state = folder
        self.wall = WALL

    def begin(self, *, later=10.0, delay=1.0, **settings):
        """The next run, so many seconds after the last."""
        self.wall += later
        self.clock = FakeClock(monotonic=self.wall % 1000, wall=self.wall)
        return Throttle(delay, state=self.state, clock=self.clock, **settings)

    def end(self, throttle):
        throttle.save()
        self.wall = self.clock.wall()

    @property
    def file(self):
        return self.state / keeper.FILE

    @property
    def hosts(self):
        return json.loads(self.file.read_text())["hosts"]


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path / "state")


@pytest.fixture
def warnings_told(caplog):
    caplog.set_level(logging.WARNING, "kreuz_sync.throttle")
    return lambda: [record.getMessage() for record in caplog.records]


class TestTheNextRunGoesOn:
    def test_with_a_backoff(self, runs):
        first = runs.begin()
        for _ in range(3):
            first.record_response(HOST, 429)
        runs.end(first)
        second = runs.begin()
        assert second.delay_for(HOST) == 8.0
        for _ in range(15):
            second.record_response(HOST, 200)
        assert second.delay_for(HOST) == 1.0

    def test_with_what_is_left_of_a_pause(self, runs):
        first = runs.begin()
        first.turns.heed(HOST, used_up(bucket="", seconds=100, policy="hourly"))
        runs.end(first)
        second = runs.begin(later=30)
        report = second.snapshot()[HOST]
        assert (report.paused, report.pause_source) == (pytest.approx(70), "x-ratelimit-reset")
        assert (report.remaining, report.reset) == (0, pytest.approx(70))
        second.turns.heed(HOST, used_up(bucket="", seconds=5, policy="hourly"))
        assert second.wait_for(HOST) == pytest.approx(5)

    def test_an_order_is_one_there_too(self, runs):
        first = runs.begin()
        first.turns.answered(HOST, 503, pause=100)
        runs.end(first)
        second = runs.begin(later=30)
        second.turns.heed(HOST, used_up(bucket="", seconds=5))
        assert second.wait_for(HOST) == pytest.approx(70)

    def test_with_a_pause_that_is_over_by_then_as_if_there_had_been_none(self, runs):
        first = runs.begin()
        first.turns.answered(HOST, 503, pause=100)
        runs.end(first)
        assert runs.begin(later=101).wait_for(HOST) == 0.0

    @pytest.mark.parametrize("name", [HOST, f"{HOST}:8080", "::1", "[::1]:8080"])
    def test_with_a_crawl_delay(self, runs, name):
        first = runs.begin()
        first.set_crawl_delay(name, 7)
        runs.end(first)
        second = runs.begin()
        assert second.delay_for(name) == 7
        assert second.snapshot()[name].crawl_delay == 7
        assert second.host_of(f"http://{HOST}:8080/") == (name if name.startswith(f"{HOST}:") else HOST)

    def test_with_the_last_start_of_a_host_that_is_slowed_down(self, runs):
        first = runs.begin()
        first.set_crawl_delay(HOST, 60)
        first.acquire(HOST)
        runs.end(first)
        assert runs.begin(later=20).wait_for(HOST) == pytest.approx(40)

    def test_with_a_bucket_and_the_routes_to_it(self, runs):
        answers = (
            200,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "100", "X-RateLimit-Resource": "search"},
            b"",
        )
        first = runs.begin()
        first(ScriptedAdapter(answers)).send(prepared(f"http://{HOST}/search/code"))
        runs.end(first)
        second = runs.begin(later=40)
        wired = second(ScriptedAdapter(200))
        wired.send(prepared(f"http://{HOST}/repos/me"))
        assert runs.clock.waits == []
        wired.send(prepared(f"http://{HOST}/search/code?page=2"))
        assert sum(runs.clock.waits) == pytest.approx(60)

    def test_with_what_is_left_spread_out(self, runs):
        first = runs.begin(smooth=True, delay=0)
        first.turns.heed(HOST, left(10, 100, bucket=""))
        runs.end(first)
        assert runs.begin(smooth=True, delay=0).delay_for(HOST) == pytest.approx(9)
        assert runs.begin(later=0, smooth=False, delay=0).delay_for(HOST) == 0

    def test_of_hosts_that_taught_nothing_there_is_nothing_in_the_file(self, runs):
        first = runs.begin()
        for host in (HOST, "other.test"):
            first.acquire(host)
        first.record_response(HOST, 429)
        runs.end(first)
        assert list(runs.hosts) == [HOST]

    def test_a_backoff_that_came_to_its_end_is_not_there_in_the_next_run(self, runs):
        first = runs.begin()
        first.record_response(HOST, 429)
        runs.end(first)
        second = runs.begin()
        for _ in range(5):
            second.record_response(HOST, 200)
        runs.end(second)
        assert runs.hosts == {}

    def test_other_rules_hold_from_now_on(self, runs):
        first = runs.begin()
        for _ in range(9):
            first.record_response(HOST, 429)
        first.set_crawl_delay(HOST, 200)
        first.turns.answered(HOST, 503, pause=250)
        runs.end(first)
        second = runs.begin(max_delay=5, max_crawl_delay=20, max_retry_after=30)
        assert second.delay_for(HOST) == 20
        assert second.wait_for(HOST) == 30


class TestClocks:
    """Moments are Unix seconds, and that clock may be set."""

    def test_one_that_was_set_back_makes_no_pause_longer_than_the_ceiling(self, runs):
        first = runs.begin()
        first.turns.heed(HOST, used_up(bucket="", seconds=200))
        runs.end(first)
        second = runs.begin(later=-3600)
        assert second.wait_for(HOST) == 300
        second.acquire(HOST)
        assert second.wait_for(HOST) <= 5  # a single request asks whether it is over

    def test_one_that_was_set_forward_ends_it(self, runs):
        first = runs.begin()
        first.turns.answered(HOST, 503, pause=200)
        runs.end(first)
        assert runs.begin(later=3600).wait_for(HOST) == 0

    @pytest.mark.parametrize("later", [DAY + 20, -DAY - 20])
    def test_what_is_a_day_old_is_forgotten(self, runs, later):
        first = runs.begin()
        first.record_response(HOST, 429)
        runs.end(first)
        assert runs.begin(later=later).delay_for(HOST) == 1.0

    def test_to_read_of_a_host_is_not_to_hear_of_it(self, runs):
        """A program that runs every few hours, and has done with that host."""
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        delays = []
        for _ in range(4):
            throttle.record_response("other.test", 429)
            runs.end(throttle)
            throttle = runs.begin(later=DAY / 2.5)
            delays.append(throttle.delay_for(HOST))
        assert delays == [2, 2, 1, 1]

    def test_a_crawl_delay_is_kept_for_a_day_after_it_was_told_however_often_the_host_is_asked(self, runs):
        """A robots.txt is believed for a day."""
        throttle = runs.begin()
        throttle.set_crawl_delay(HOST, 7)
        delays = []
        for _ in range(4):
            throttle.record_response(HOST, 429)
            runs.end(throttle)
            throttle = runs.begin(later=DAY / 2.5)
            delays.append(throttle.snapshot()[HOST].crawl_delay)
        assert delays == [7, 7, 0, 0]


class TestWhenItIsWritten:
    def test_when_a_session_is_closed(self, runs):
        with Session(throttle=runs.begin(), adapter=ScriptedAdapter(429)) as session:
            session.get(f"http://{HOST}/")
        assert list(runs.hosts) == [HOST]

    def test_soon_after_a_change_by_a_thread_of_its_own(self, runs, monkeypatch):
        monkeypatch.setattr(keeper, "SAVE_S", 0.01)
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        eventually(runs.file.exists)
        throttle.record_response("other.test", 429)
        eventually(lambda: len(runs.hosts) == 2)
        eventually(lambda: "kreuz_sync-throttle-state" not in {thread.name for thread in threading.enumerate()})

    def test_many_changes_are_written_together(self, runs, monkeypatch):
        written = []
        monkeypatch.setattr(keeper.Keeper, "_replace", lambda self, text: written.append(text))
        throttle = runs.begin()
        for number in range(200):
            throttle.record_response(f"h{number}.test", 429)
        assert sum(thread.name == "kreuz_sync-throttle-state" for thread in threading.enumerate()) <= 1
        throttle.save()
        assert len(written) == 1
        assert len(json.loads(written[0])["hosts"]) == 200

    def test_without_a_change_nothing_is_written(self, runs):
        throttle = runs.begin()
        for _ in range(3):
            throttle.acquire(HOST)
            throttle.record_response(HOST, 200)
        throttle.save()
        assert not runs.state.exists()

    def test_nobody_waits_for_it(self, runs, monkeypatch):
        """While the file is being written, requests go on and learn."""
        hold, writing = threading.Event(), threading.Event()

        def slow(self, text):
            writing.set()
            assert hold.wait(GUARD_S)

        monkeypatch.setattr(keeper.Keeper, "_replace", slow)
        throttle = runs.begin(delay=0)
        throttle.record_response(HOST, 429)
        saving = Worker(throttle.save)
        assert writing.wait(GUARD_S)
        throttle.acquire(HOST)
        throttle.record_response(HOST, 429)
        throttle.set_crawl_delay("other.test", 5)
        assert set(throttle.snapshot()) == {HOST, "other.test"}
        hold.set()
        saving.outcome()

    def test_at_the_end_of_the_program(self, runs):
        run(f"Throttle(1, state={str(runs.state)!r}).record_response({HOST!r}, 429)")
        assert list(runs.hosts) == [HOST]

    def test_a_program_that_is_killed_loses_the_last_seconds_at_most(self, runs):
        program = f"""
keeper.SAVE_S = 0.01
throttle = Throttle(1, state={str(runs.state)!r})
throttle.turns.answered({HOST!r}, 503, pause=100)
while not os.path.exists({str(runs.file)!r}):
    time.sleep(0.001)
os.kill(os.getpid(), signal.SIGKILL)
"""
        assert run(program, check=False).returncode == -signal.SIGKILL
        assert 0 < Throttle(state=runs.state).wait_for(HOST) <= 100

    def test_killed_while_it_writes_it_leaves_a_whole_file(self, runs, warnings_told):
        program = f"""
throttle = Throttle(1, state={str(runs.state)!r})
for number in range(1000):
    throttle.turns.answered(f"h{{number}}.test", 503, pause=100)
throttle.save()
print("ready", flush=True)
while True:
    throttle.turns.answered({HOST!r}, 503, pause=200)
    throttle._keeper.changed()
    throttle.save()
"""
        command = [sys.executable, "-c", HEAD + program]
        for seconds in (0.01, 0.05, 0.13):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=WITH_PACKAGE) as process:
                assert process.stdout.readline() == "ready\n"
                threading.Event().wait(seconds)
                process.kill()
            assert len(Throttle(state=runs.state).snapshot()) >= 1000 - 1
        assert warnings_told() == []


WITH_PACKAGE = {**os.environ, "PYTHONPATH": str(Path(kreuz_sync.__file__).parent.parent)}
HEAD = "import os, signal, time\nfrom kreuz_sync import Throttle\nfrom kreuz_sync.throttle import keeper\n"


def run(program, *, check=True):
    """Run `program` in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", HEAD + program], check=check, timeout=60, env=WITH_PACKAGE)


class TestFilesThatAreNone:
    """Start fresh, say so once, and break nothing."""

    @pytest.mark.parametrize(
        "text",
        [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b'{"format": "kreuz_sync throttle 1"', b"null x"],
        ids=["empty", "cut", "binary", "nested", "half", "more"],
    )
    def test_a_damaged_one_is_put_aside(self, runs, warnings_told, text):
        runs.state.mkdir()
        runs.file.write_bytes(text)
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        runs.end(throttle)
        assert len(warnings_told()) == 1 and "is damaged" in warnings_told()[0]
        assert list(runs.hosts) == [HOST]
        assert runs.file.with_name(runs.file.name + ".damaged").read_bytes() == text

    @pytest.mark.parametrize("text", ['{"name": "my-package"}', "[1, 2]", "5", '{"format": "kreuz_sync throttle 2"}'])
    def test_one_that_is_something_else_is_left_alone(self, tmp_path, warnings_told, text):
        file = tmp_path / "package.json"
        file.write_text(text)
        throttle = Throttle(1, state=file, clock=FakeClock())
        for _ in range(2):
            throttle.record_response(HOST, 429)
            throttle.save()
        assert (file.read_text(), os.listdir(tmp_path)) == (text, ["package.json"])
        assert len(warnings_told()) == 1 and "is left alone" in warnings_told()[0]

    def test_a_huge_one_too(self, runs, warnings_told, monkeypatch):
        monkeypatch.setattr(keeper, "LARGEST", 100)
        runs.state.mkdir()
        runs.file.write_text(" " * 200)
        runs.begin().save()
        assert "it is too large" in warnings_told()[0]

    def test_a_place_where_nothing_can_be_written_is_told_of_once(self, tmp_path, warnings_told):
        (tmp_path / "file").write_text("in the way")
        throttle = Throttle(1, state=tmp_path / "file" / "state", clock=FakeClock())
        for _ in range(3):
            throttle.record_response(HOST, 429)
            throttle.save()
        assert throttle.delay_for(HOST) == 8.0
        assert len(warnings_told()) == 1 and "cannot be used" in warnings_told()[0]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
    def test_so_is_a_folder_without_leave_to_write(self, runs, warnings_told):
        runs.state.mkdir(mode=0o500)
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        runs.end(throttle)
        assert len(warnings_told()) == 1

    def test_a_file_system_that_is_full(self, runs, warnings_told, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(keeper.os, "fsync", full)
        throttle = runs.begin()
        for _ in range(3):
            throttle.record_response(HOST, 429)
            runs.end(throttle)
        assert not runs.file.exists()
        assert len(warnings_told()) == 1

    JSON = st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
    NUMBER = JSON | st.sampled_from([WALL, WALL + 60, WALL - 60, WALL + 1e9])
    GATE = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("until", "left", "reset"), NUMBER),
            **dict.fromkeys(("source", "policy", "by_quota", "field"), JSON),
        },
    )
    SAVED_HOST = st.builds(
        lambda gate, rest: {**gate, **rest},
        GATE,
        st.fixed_dictionaries(
            {"heard": NUMBER | st.just(WALL)},
            optional={
                **dict.fromkeys(("last", "backoff", "floor", "floor_at"), NUMBER),
                "buckets": st.dictionaries(st.text(max_size=5), GATE | JSON, max_size=3) | JSON,
                "routes": st.dictionaries(st.text(max_size=5) | st.just("7"), JSON, max_size=3) | JSON,
                "folders": st.dictionaries(st.text(max_size=5) | st.just("7"), JSON, max_size=3) | JSON,
            },
        ),
    )

    @settings(deadline=None)
    @given(st.dictionaries(st.text(max_size=8) | st.just(HOST), SAVED_HOST | JSON, max_size=3))
    def test_whatever_stands_in_one_nothing_is_raised_and_no_wait_is_longer_than_the_ceiling(
        self, tmp_path_factory, hosts
    ):
        file = tmp_path_factory.getbasetemp() / "any.json"
        file.write_text(json.dumps({"format": FORMAT, "hosts": hosts}))
        clock = FakeClock(wall=WALL)
        throttle = Throttle(0, state=file, clock=clock, smooth=True)
        for name in throttle.snapshot():
            assert throttle.turns.wait(name) <= 300
            assert throttle.turns.take(name, ask=prepared()).waited <= 300 + 60
        for name in throttle.snapshot():
            throttle.record_response(name, 429)
        throttle.save()
        Throttle(0, state=file, clock=clock)


class TestSeveralProcesses:
    """Throttles that do not know of each other, on one file."""

    def test_each_keeps_what_the_other_knows(self, runs):
        clock = FakeClock()
        one, other = (Throttle(1, state=runs.state, clock=clock) for _ in range(2))
        one.record_response("a.test", 429)
        one.save()
        other.record_response("b.test", 429)
        other.save()
        one.record_response("c.test", 429)
        one.save()
        assert set(runs.hosts) == {"a.test", "b.test", "c.test"}

    def test_of_one_host_the_later_word_counts_and_the_longer_pause(self, runs):
        clock = FakeClock()
        one, other = (Throttle(1, state=runs.state, clock=clock) for _ in range(2))
        one.turns.heed(HOST, used_up(bucket="", seconds=200))
        one.save()
        clock.advance(1)
        other.record_response(HOST, 429)
        other.turns.answered(HOST, 503, pause=50)
        other.save()
        third = Throttle(1, state=runs.state, clock=clock)
        assert (third.delay_for(HOST), third.wait_for(HOST)) == (2.0, pytest.approx(199))
        assert third.snapshot()[HOST].pause_source == "x-ratelimit-reset"

    def test_what_one_has_done_with_the_other_does_not_bring_back(self, runs):
        clock = FakeClock()
        one, other = (Throttle(1, state=runs.state, clock=clock) for _ in range(2))
        one.record_response(HOST, 429)
        one.save()
        other.record_response("b.test", 429)
        other.save()
        for _ in range(5):
            one.record_response(HOST, 200)
        one.save()
        other.record_response("b.test", 429)
        other.save()
        assert set(runs.hosts) == {"b.test"}

    def test_eight_that_write_at_once_lose_nothing(self, runs):
        clock = FakeClock()
        throttles = [Throttle(1, state=runs.state, clock=clock) for _ in range(8)]
        barrier = threading.Barrier(8)

        def work(number):
            barrier.wait(10)
            for step in range(5):
                throttles[number].record_response(f"h{number}-{step}.test", 429)
                throttles[number].save()

        for worker in [Worker(work, number) for number in range(8)]:
            worker.outcome()
        for throttle in throttles:  # as closing does: one that could not have the file in time tries again
            throttle.save()
        assert len(runs.hosts) == 40

    @pytest.mark.skipif(keeper.fcntl is None, reason="needs locks on files")
    def test_one_that_does_not_let_go_is_not_waited_for_long(self, runs, warnings_told, monkeypatch):
        monkeypatch.setattr(keeper, "LOCK_S", 0.05)
        runs.state.mkdir()
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        with open(runs.file.with_name(runs.file.name + ".lock"), "a") as held:
            keeper.fcntl.flock(held, keeper.fcntl.LOCK_EX)
            throttle.save()
        assert "does not let go" in warnings_told()[0]
        throttle.record_response(HOST, 429)
        throttle.save()
        assert list(runs.hosts) == [HOST]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
    def test_a_child_goes_on_with_what_the_parent_knew_and_writes_as_well(self, runs):
        throttle = runs.begin()
        throttle.record_response(HOST, 429)

        def task():
            throttle.record_response("child.test", 429)
            throttle.save()

        child = multiprocessing.get_context("fork").Process(target=task, daemon=True)
        child.start()
        child.join(GUARD_S)
        assert child.exitcode == 0
        assert set(runs.hosts) == {HOST, "child.test"}
        runs.end(throttle)
        assert set(runs.hosts) == {HOST, "child.test"}


class TestTheFile:
    def test_no_secrets_are_in_it(self, runs):
        fields = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "100", "X-RateLimit-Bucket": "webhooks"}
        throttle = runs.begin()
        wire = ScriptedAdapter((429, fields, b""))
        with Session(throttle=throttle, adapter=wire) as session:
            session.get(
                f"http://user:s3cret@{HOST}/webhooks/1/s3cret-token?key=s3cret",
                headers={"Authorization": "s3cret", "X-Token": "s3cret"},
                cookies={"session": "s3cret"},
            )
        text = runs.file.read_text()
        assert HOST in text and "webhooks" in text
        assert "s3cret" not in text and "token" not in text and "user" not in text

    @pytest.mark.skipif(os.name != "posix", reason="has other rights")
    def test_it_is_for_its_owner_alone(self, runs):
        throttle = runs.begin()
        throttle.record_response(HOST, 429)
        runs.end(throttle)
        assert runs.file.stat().st_mode & 0o777 == 0o600

    def test_it_holds_a_thousand_hosts_the_last_heard_of(self, runs):
        throttle = runs.begin()
        for number in range(MOST_HOSTS + 5):
            throttle.record_response(f"h{number}.test", 429)
            runs.clock.advance(1)
        runs.end(throttle)
        assert len(runs.hosts) == MOST_HOSTS
        assert "h4.test" not in runs.hosts and f"h{MOST_HOSTS + 4}.test" in runs.hosts

    def test_a_name_that_ends_in_json_is_the_file_itself(self, tmp_path):
        throttle = Throttle(1, state=tmp_path / "pace.json", clock=FakeClock())
        throttle.record_response(HOST, 429)
        throttle.save()
        assert (tmp_path / "pace.json").is_file()

    def test_it_may_live_in_the_folder_of_a_cache(self, server, tmp_path):
        folder = tmp_path / "pages"
        url = server.route("/", answer(429, fields={"Retry-After": "100"}))
        page = server.route("/page", answer(body="page", fields={"Cache-Control": "max-age=60"}), host="127.0.0.2")
        with Session(cache=folder, throttle=Throttle(0, state=folder)) as session:
            session.get(url)
            session.get(page)
        with Session(cache=folder, throttle=Throttle(0, state=folder)) as session:
            assert session.get(page).from_cache
            assert 0 < session.throttle.wait_for("127.0.0.1") <= 100
            session.cache.clear()
            assert not session.get(page).from_cache
        assert (folder / keeper.FILE).is_file()

    def test_a_pickle_takes_the_place_along(self, runs):
        throttle = Throttle(1, state=runs.state)
        throttle.record_response(HOST, 429)
        throttle.save()
        assert pickle.loads(pickle.dumps(throttle)).delay_for(HOST) == 2.0

    @pytest.mark.parametrize(
        ("value", "error"), [("", ValueError), (5, TypeError), (b"folder", TypeError), (True, TypeError)]
    )
    def test_a_place_that_is_none_is_named(self, value, error):
        with pytest.raises(error, match="state"):
            Throttle(state=value)

    def test_without_one_nothing_is_kept_and_its_rooms_are_not_even_loaded(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        program = (
            "import os, sys, kreuz_sync\n"
            "throttle = kreuz_sync.Throttle(1)\n"
            "throttle.record_response('a.test', 429)\n"
            "throttle.save()\n"
            "rooms = {name.rpartition('.')[2] for name in sys.modules if name.startswith('kreuz_sync.throttle.')}\n"
            "assert not rooms & {'buckets', 'keeper', 'routes', 'saved', 'verdict'}, rooms\n"
            "assert os.listdir() == []\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=WITH_PACKAGE)
