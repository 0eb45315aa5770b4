"""The throttle as a thing: its arguments, what it tells, its copies, its memory, its life in a fork."""

import contextlib
import copy
import gc
import itertools
import math
import multiprocessing
import os
import pickle
import threading
import tracemalloc

import pytest

from kreuz_sync.errors import ThrottleTimeout
from kreuz_sync.throttle import HostReport, HostSettings, RateLimiter, Throttle, as_throttle
from kreuz_sync.throttle.pace import FORGET_S
from kreuz_sync.throttle.roster import KEPT

from .fakes import FakeClock, ScriptedAdapter, prepared
from .waiting import Worker

HOST = "example.test"


@pytest.fixture
def clock():
    return FakeClock()


class TestArguments:
    def test_the_defaults_are_the_references(self):
        throttle = Throttle()
        assert (throttle.delay, throttle.max_delay, throttle.max_crawl_delay) == (0.2, 60.0, 300.0)
        assert (throttle.max_wait, throttle.concurrency) == (None, None)

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("delay", -0.1, ValueError),
            ("delay", math.nan, ValueError),
            ("delay", math.inf, ValueError),
            ("delay", "0.2", TypeError),
            ("delay", None, TypeError),
            ("delay", True, TypeError),
            ("max_delay", 0, ValueError),
            ("max_delay", "60", TypeError),
            ("max_wait", -1, ValueError),
            ("max_wait", "1", TypeError),
            ("concurrency", 0, ValueError),
            ("concurrency", 2.0, TypeError),
            ("key", "host", TypeError),
            ("max_crawl_delay", math.inf, ValueError),
            ("max_retry_after", -1, ValueError),
            ("first_backoff", 0, ValueError),
            ("clock", 5, TypeError),
        ],
    )
    def test_a_wrong_one_is_named(self, name, value, error):
        with pytest.raises(error, match=name):
            Throttle(**{name: value})

    def test_an_unknown_one_is_an_error(self):
        with pytest.raises(TypeError, match="burst"):
            Throttle(burst=3)

    def test_only_the_delay_has_a_position(self):
        with pytest.raises(TypeError):
            Throttle(0.2, {})

    def test_they_are_fixed(self):
        with pytest.raises(AttributeError, match="fixed"):
            Throttle().delay = 0

    def test_the_repr_shows_them(self):
        assert "delay=0.5" in repr(Throttle(0.5))
        assert "HostSettings(delay=1.0" in repr(Throttle(hosts={"a.test": HostSettings(delay=1)}))

    @pytest.mark.parametrize("host", [None, 1, b"example.test", ""])
    @pytest.mark.parametrize(
        "ask",
        [
            lambda throttle, host: throttle.acquire(host),
            lambda throttle, host: throttle.record_response(host, 200),
            lambda throttle, host: throttle.set_crawl_delay(host, 1),
            lambda throttle, host: throttle.delay_for(host),
            lambda throttle, host: throttle.wait_for(host),
        ],
    )
    def test_a_host_is_a_string_that_is_not_empty(self, ask, host):
        with pytest.raises((TypeError, ValueError), match="host"):
            ask(Throttle(), host)

    @pytest.mark.parametrize("status", ["200", None, -1, 2.5])
    def test_a_status_is_a_number(self, status):
        with pytest.raises((TypeError, ValueError), match="status"):
            Throttle().record_response(HOST, status)


class TestAsThrottle:
    @pytest.mark.parametrize("seconds", [0, 1, 0.25])
    def test_seconds_make_a_throttle(self, seconds):
        assert as_throttle(seconds).delay == seconds

    def test_none_is_no_throttle(self):
        assert as_throttle(None) is None

    def test_a_limiter_is_itself(self):
        throttle = Throttle()
        assert as_throttle(throttle) is throttle
        assert isinstance(throttle, RateLimiter)

    @pytest.mark.parametrize(
        ("value", "error"), [("0.2", TypeError), (True, TypeError), ([1], TypeError), (-1, ValueError)]
    )
    def test_anything_else_is_named(self, value, error):
        with pytest.raises(error, match="throttle="):
            as_throttle(value)


class TestTheThreeMethods:
    """The interface of the reference, called by hand."""

    def test_acquire_waits_for_the_hosts_turn(self, clock):
        throttle = Throttle(0.2, clock=clock)
        for _ in range(3):
            throttle.acquire(HOST)
        assert clock.waits == pytest.approx([0.2, 0.2])

    def test_each_recorded_429_is_a_step(self, clock):
        throttle = Throttle(0.2, clock=clock)
        for _ in range(3):
            throttle.record_response(HOST, 429)
        assert throttle.delay_for(HOST) == pytest.approx(1.6)

    def test_a_host_has_one_name_in_all_spellings(self, clock):
        throttle = Throttle(0.2, clock=clock)
        throttle.record_response("EXAMPLE.test.", 429)
        assert throttle.delay_for("example.TEST") == pytest.approx(0.4)
        assert list(throttle.snapshot()) == [HOST]

    def test_a_crawl_delay_is_a_floor_in_every_state(self, clock):
        throttle = Throttle(0, clock=clock)
        throttle.set_crawl_delay(HOST, 0.5)
        throttle.acquire(HOST)
        throttle.acquire(HOST)
        assert clock.waits == [0.5]
        throttle.record_response(HOST, 429)
        assert throttle.delay_for(HOST) == 1.0
        for _ in range(20):
            throttle.record_response(HOST, 200)
            assert throttle.delay_for(HOST) >= 0.5
        throttle.set_crawl_delay(HOST, 90)
        throttle.record_response(HOST, 429)
        assert throttle.delay_for(HOST) == 90
        assert throttle.snapshot()[HOST].crawl_delay == 90

    def test_a_crawl_delay_below_the_configured_one_does_not_speed_up(self, clock):
        throttle = Throttle(0.2, clock=clock)
        throttle.set_crawl_delay(HOST, 0.01)
        assert throttle.delay_for(HOST) == 0.2

    @pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1])
    def test_a_crawl_delay_that_is_none_changes_nothing(self, clock, seconds):
        throttle = Throttle(0.2, clock=clock)
        throttle.set_crawl_delay(HOST, 5)
        throttle.set_crawl_delay(HOST, seconds)
        assert throttle.delay_for(HOST) == 5

    @pytest.mark.parametrize("seconds", ["5", None, True])
    def test_a_crawl_delay_that_is_no_number_is_an_error(self, seconds):
        with pytest.raises(TypeError, match="seconds"):
            Throttle().set_crawl_delay(HOST, seconds)


class TestWhatItTells:
    def test_the_delay_of_a_host_never_heard_of_is_the_configured_one(self):
        throttle = Throttle(0.2, hosts={"*.slow.test": 3})
        assert throttle.delay_for("www.slow.test") == 3
        assert throttle.delay_for(HOST) == 0.2
        assert throttle.snapshot() == {}

    def test_the_wait_for_a_turn_takes_none(self, clock):
        throttle = Throttle(5, clock=clock)
        assert throttle.wait_for(HOST) == 0.0
        throttle.acquire(HOST)
        assert throttle.wait_for(HOST) == throttle.wait_for(HOST) == 5.0
        clock.advance(2)
        assert throttle.wait_for(HOST) == 3.0
        clock.advance(10)
        assert throttle.wait_for(HOST) == 0.0

    def test_a_snapshot_has_every_host(self, clock):
        throttle = Throttle(1, clock=clock)
        throttle.acquire(HOST)
        throttle.acquire(HOST)
        throttle.turns.answered(HOST, 429, pause=30)
        throttle.acquire("other.test")
        assert throttle.snapshot() == {
            HOST: HostReport(delay=2, crawl_delay=0, starts=2, limited=1, backoffs=1, waited=1, paused=30, waiting=0),
            "other.test": HostReport(
                delay=1, crawl_delay=0, starts=1, limited=0, backoffs=0, waited=0, paused=0, waiting=0
            ),
        }


class TestIdleHosts:
    """What a host's state costs, and when it goes."""

    def test_the_pace_holds_between_requests_one_at_a_time(self, clock):
        """No state is dropped before the host's next turn."""
        throttle = Throttle(0.3, clock=clock)
        starts = []
        for _ in range(3):
            throttle.acquire(HOST)
            starts.append(clock.monotonic())
            clock.advance(0.05)
        assert starts == pytest.approx([1000, 1000.3, 1000.6])

    def test_a_backoff_outlives_idleness_and_the_sweep(self, clock):
        throttle = Throttle(0.3, clock=clock)
        throttle.record_response(HOST, 429)
        clock.advance(5)
        visit(throttle, 5 * KEPT)
        clock.advance(5)
        visit(throttle, 5 * KEPT)
        assert throttle.delay_for(HOST) == pytest.approx(0.6)

    def test_a_day_later_it_is_forgotten(self, clock):
        throttle = Throttle(0.3, clock=clock)
        throttle.record_response(HOST, 429)
        clock.advance(FORGET_S + 1)
        visit(throttle, 5 * KEPT)
        assert throttle.delay_for(HOST) == pytest.approx(0.3)

    def test_a_small_job_forgets_nobody(self, clock):
        throttle = Throttle(0.3, clock=clock)
        for _ in range(3):
            visit(throttle, KEPT)
            clock.advance(1000)
        assert len(throttle.snapshot()) == KEPT

    def test_hosts_in_use_are_all_kept(self, clock):
        throttle = Throttle(0.3, clock=clock)
        visit(throttle, 5 * KEPT)
        assert len(throttle.snapshot()) == 5 * KEPT

    def test_those_that_wait_are_kept(self, clock):
        """Somebody waits for a place while a thousand others come and go."""
        throttle = Throttle(0, clock=clock, concurrency=1)
        turn = throttle.turns.take(HOST)
        waiting = Worker(throttle.turns.take, HOST)
        visit(throttle, 3 * KEPT)
        turn.give_back()
        waiting.outcome()
        assert throttle.snapshot()[HOST].starts == 2

    def test_idle_hosts_are_dropped_a_few_at_a_time(self, clock):
        throttle = Throttle(0.3, clock=clock)
        visit(throttle, 20 * KEPT)
        clock.advance(10)
        sizes = []
        for _ in range(100):
            throttle.acquire("last.test")
            sizes.append(len(throttle.turns.roster.hosts))
        assert sizes[-1] <= KEPT + 1
        assert max(before - after for before, after in itertools.pairwise(sizes)) <= 250

    @pytest.mark.slow
    def test_the_memory_comes_back(self, clock):
        """100,000 hosts seen and idle leave what a thousand cost: the rule is the same for a million."""
        throttle = Throttle(0.3, clock=clock)
        with traced() as used:
            visit(throttle, 100_000)
            full = used()
            clock.advance(10)
            for _ in range(500):
                throttle.acquire("last.test")
            assert full > 10_000_000
            assert used() < 750_000  # 580,000 with Python 3.11; the dicts of 3.10 are larger

    @pytest.mark.slow
    def test_memory_does_not_grow_while_hosts_come_and_go(self, clock):
        throttle = Throttle(0.0, clock=clock)
        with traced() as used:
            visit(throttle, 30_000)
            assert used() < 600_000

    @pytest.mark.slow
    def test_the_state_of_an_active_host_is_under_500_bytes(self, clock):
        """Everything it can have: its name, a backoff, a floor, a pause, counters."""
        throttle = Throttle(0.3, clock=clock)
        with traced() as used:
            for number in range(20_000):
                name = f"host-{number:06}.example.test"
                clock.advance(0.001)
                throttle.acquire(name)
                throttle.turns.answered(name, 429, pause=100.0 + number)
                throttle.set_crawl_delay(name, 0.5 + number / 1e6)
            assert len(throttle.turns.roster.hosts) == 20_000
            assert used() / 20_000 < 500


def visit(throttle, count):
    """One request to each of `count` hosts."""
    for number in range(count):
        throttle.turns.take(f"host-{number:06}.example.test")


class traced:
    """Gives a function that tells the bytes allocated since."""

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        return lambda: tracemalloc.get_traced_memory()[0] - before

    def __exit__(self, *_):
        tracemalloc.stop()


class TestCopies:
    def test_a_copy_is_the_same_throttle(self):
        throttle = Throttle()
        assert copy.copy(throttle) is throttle
        assert copy.deepcopy([throttle])[0] is throttle

    def test_two_of_equal_settings_are_two(self):
        assert Throttle(1) != Throttle(1)
        assert len({Throttle(1), Throttle(1)}) == 2

    def test_a_pickle_carries_the_settings_and_not_the_state(self, clock):
        throttle = Throttle(
            0.5, hosts={"*.a.test": 1.0, "b.test": HostSettings(concurrency=2)}, max_wait=3, concurrency=4, clock=clock
        )
        throttle.record_response(HOST, 429)
        twin = pickle.loads(pickle.dumps(throttle))
        assert repr(twin) == repr(throttle)
        assert twin.delay_for("www.a.test") == 1.0
        assert twin.snapshot() == {}
        twin.acquire(HOST)

    def test_those_who_share_one_share_it_in_the_pickle(self):
        throttle = Throttle()
        first, second = pickle.loads(pickle.dumps((throttle, throttle)))
        assert first is second

    def test_a_subclass_may_change_the_arguments(self):
        throttle = pickle.loads(pickle.dumps(Gentle()))
        assert type(throttle) is Gentle
        assert throttle.delay == 9


class Gentle(Throttle):
    def __init__(self):
        super().__init__(9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
class TestFork:
    def run(self, task):
        """What `task` returned in a forked child."""
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=lambda: there.send(task()), daemon=True)
        child.start()
        assert here.poll(20), "the child hangs"
        result = here.recv()
        child.join(10)
        return result

    def test_a_lock_held_by_another_thread_does_not_stop_the_child(self):
        throttle = Throttle(0)
        held, done = threading.Event(), threading.Event()

        def hold():
            with throttle.turns._lock:
                held.set()
                done.wait(30)

        holder = Worker(hold)
        held.wait(10)
        try:
            assert self.run(lambda: throttle.acquire(HOST)) is None
        finally:
            done.set()
            holder.outcome()

    def test_threads_that_wait_are_not_in_the_childs_lines(self):
        """Nor do the places of requests under way count there."""
        throttle = Throttle(0, concurrency=1)
        turn = throttle.turns.take(HOST)
        waiting = Worker(throttle.turns.take, HOST)
        while throttle.snapshot()[HOST].waiting == 0:
            pass

        def task():
            first = throttle.turns.take(HOST)
            turn.give_back()  # the child's copy of the parent's: not one of the child's places
            first.give_back()
            throttle.turns.take(HOST).give_back()
            return throttle.snapshot()[HOST].waiting

        assert self.run(task) == 0
        turn.give_back()
        waiting.outcome()

    def test_the_child_keeps_what_was_learnt(self):
        throttle = Throttle(0.3)
        throttle.record_response(HOST, 429)
        assert self.run(lambda: throttle.delay_for(HOST)) == pytest.approx(0.6)


def test_one_throttle_serves_many_stacks(clock):
    """Sessions that share one have one schedule."""
    throttle = Throttle(0.2, clock=clock)
    for _ in range(5):
        throttle(ScriptedAdapter()).send(prepared())
    assert clock.waits == pytest.approx([0.2] * 4)


class TestLocks:
    """A lock a host, and never two for one host, while hosts come and are dropped."""

    @pytest.mark.slow
    def test_of_many_threads_one_gets_each_turn(self):
        """Sixteen threads want 3,000 hosts, three times as many as are kept idle; time stands still."""
        clock = FakeClock()
        throttle = Throttle(1, max_wait=0, clock=clock)
        names = [f"h{number}.test" for number in range(3000)]
        barrier, taken = threading.Barrier(16), []

        def work(shift):
            barrier.wait(10)
            for name in names[shift:] + names[:shift]:
                with contextlib.suppress(ThrottleTimeout):
                    throttle.acquire(name)
                    taken.append(name)

        for round_number in (1, 2):
            threads = [threading.Thread(target=work, args=(shift * 180,)) for shift in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert sorted(taken) == sorted(names * round_number)
            clock.advance(1)
