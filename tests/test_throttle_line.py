"""Waiting for a turn: order, changes on the way, ceilings, closing, interrupts. Nothing is really slept."""

import itertools
import signal
import threading
import time
from collections import Counter

import pytest

from kreuz_sync.clock import Clock
from kreuz_sync.errors import SessionClosed, ThrottleTimeout
from kreuz_sync.throttle import HostSettings, Throttle

from .fakes import FakeClock
from .waiting import HeldClock, Worker, eventually

HOST = "example.test"


class Line:
    """A throttle on a held clock, and threads that wait in line for its turns."""

    def __init__(self, **settings):
        self.clock = HeldClock()
        self.throttle = Throttle(**{"delay": 1.0, "clock": self.clock, **settings})
        self.turns = self.throttle.turns
        self.started = []  # (who, when), in order
        self._began = self.clock.monotonic()

    def waiting(self, host=HOST):
        report = self.throttle.snapshot().get(host)
        return report.waiting if report else 0

    def go(self, who=None, host=HOST, owner=None):
        """Take a turn on this thread, and note when."""
        turn = self.turns.take(host, owner)
        self.started.append((who, round(self.clock.monotonic() - self._began, 6)))
        return turn

    def queue(self, who, host=HOST, owner=None):
        """A thread that has joined the line, behind all others, when this returns."""
        before = self.waiting(host)
        worker = Worker(self.go, who, host, owner)
        eventually(lambda: self.waiting(host) == before + 1)
        return worker

    def advance(self, seconds, *, asleep=1):
        """Let time pass, once the first in each of `asleep` lines sleeps."""
        eventually(lambda: self.clock.asleep == asleep)
        self.clock.advance(seconds)


@pytest.fixture
def line():
    return Line()


class TestOrder:
    def test_threads_start_in_order_of_arrival_one_for_each_delay(self, line):
        line.go("first")
        workers = [line.queue(name) for name in "abcdef"]
        for number, worker in enumerate(workers, 1):
            line.advance(1.0)
            worker.outcome()
            assert len(line.started) == number + 1
        assert line.started == [("first", 0), ("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)]

    def test_the_first_requests_to_a_new_host_queue_as_well(self):
        """16 threads that all find an unknown host: one starts, fifteen get turns of their own."""
        clock = FakeClock()
        throttle = Throttle(0.5, clock=clock)
        barrier = threading.Barrier(16)

        def take():
            barrier.wait()
            return throttle.turns.take(HOST).waited

        workers = [Worker(take) for _ in range(16)]
        for worker in workers:
            worker.outcome()
        assert clock.monotonic() == pytest.approx(1000 + 15 * 0.5)
        assert throttle.snapshot()[HOST].starts == 16

    def test_who_came_when_the_host_was_due_waits_for_nobody(self, line):
        assert line.go().waited == 0.0
        line.clock.advance(5)
        assert line.go().waited == 0.0

    def test_a_turn_knows_how_long_it_was_waited_for(self, line):
        line.go()
        worker = line.queue("a")
        line.advance(1.0)
        assert worker.outcome().waited == 1.0
        assert line.throttle.snapshot()[HOST].waited == 1.0

    def test_a_late_wake_up_does_not_put_off_those_behind(self, line):
        line.go()
        workers = [line.queue("a"), line.queue("b")]
        line.advance(1.04)
        workers[0].outcome()
        line.advance(0.96)
        workers[1].outcome()
        assert line.started[1:] == [("a", 1.04), ("b", 2.0)]

    def test_after_a_stall_of_the_process_no_burst_follows(self, line):
        line.go()
        workers = [line.queue(name) for name in "abc"]
        line.advance(60)
        workers[0].outcome()
        eventually(lambda: line.clock.asleep == 1)
        assert line.waiting() == 2
        for worker in workers[1:]:
            line.advance(1.0)
            worker.outcome()


class Watched(Clock):
    """The machine's clock. `last.read`: what this thread read last."""

    def __init__(self):
        self.last = threading.local()

    def monotonic(self):
        self.last.read = super().monotonic()
        return self.last.read


class TestRealThreads:
    def test_twenty_threads_start_a_delay_apart(self):
        """On the real clock, however late the machine wakes them: less a tenth each, and nothing in all."""
        clock = Watched()
        throttle = Throttle(0.05, clock=clock)
        barrier = threading.Barrier(20)

        def start():
            barrier.wait(10)
            throttle.acquire(HOST)
            return clock.last.read

        starts = sorted(worker.outcome() for worker in [Worker(start) for _ in range(20)])
        for number, began in enumerate(starts):
            assert began >= starts[0] + number * 0.05 - 1e-6
        assert min(later - earlier for earlier, later in itertools.pairwise(starts)) >= 0.045 - 1e-6


class TestHosts:
    def test_waiting_for_one_host_holds_up_no_other(self, line):
        """Three wait for one host; a fourth takes its turn at another, and nobody lets go of anything."""
        line.go(host="slow.test")
        workers = [line.queue(name, host="slow.test") for name in "abc"]
        before = line.clock.monotonic()
        assert line.go(host="quick.test").waited == 0.0
        assert line.clock.monotonic() == before
        assert line.waiting("slow.test") == 3
        for worker in workers:
            line.advance(1.0)
            worker.outcome()

    def test_each_host_has_its_own_line(self, line):
        for host in ("a.test", "b.test"):
            line.go(host=host)
        workers = [line.queue("a", host="a.test"), line.queue("b", host="b.test")]
        line.advance(1.0, asleep=2)
        assert [worker.outcome().waited for worker in workers] == [1.0, 1.0]

    def test_each_host_has_its_own_delay(self):
        line = Line(hosts={"slow.test": 5.0})
        line.go(host="slow.test")
        worker = line.queue("a", host="slow.test")
        line.advance(5.0)
        assert worker.outcome().waited == 5.0


class TestChangesReachThoseThatWait:
    def test_a_backoff_puts_off_the_first_and_spreads_the_others(self, line):
        line.go()
        workers = [line.queue("a"), line.queue("b")]
        line.throttle.record_response(HOST, 429)
        line.advance(1.0)
        line.advance(1.0)
        workers[0].outcome()
        line.advance(2.0)
        workers[1].outcome()
        assert line.started[1:] == [("a", 2.0), ("b", 4.0)]

    def test_the_end_of_a_backoff_brings_turns_forward(self, line):
        line.throttle.record_response(HOST, 429)
        line.go()
        worker = line.queue("a")
        for _ in range(5):
            line.throttle.record_response(HOST, 200)
        line.advance(1.0)
        worker.outcome()
        assert line.started[-1] == ("a", 1.0)

    def test_a_pause_puts_off_all(self, line):
        line.go()
        worker = line.queue("a")
        line.turns.answered(HOST, 503, pause=30.0)
        line.advance(1.0)
        assert line.waiting() == 1
        line.advance(29.0)
        worker.outcome()
        assert line.started[-1] == ("a", 30.0)

    def test_a_crawl_delay_puts_off_all(self, line):
        line.go()
        worker = line.queue("a")
        line.throttle.set_crawl_delay(HOST, 7.0)
        line.advance(1.0)
        line.advance(6.0)
        worker.outcome()
        assert line.started[-1] == ("a", 7.0)


class TestMaxWait:
    def test_a_turn_too_far_away_is_refused_before_waiting(self):
        line = Line(delay=5.0, max_wait=1.0)
        line.go()
        with pytest.raises(ThrottleTimeout) as caught:
            line.go()
        assert caught.value.retry_after == 5.0
        assert caught.value.host == HOST
        assert line.clock.waits == []

    def test_a_refusal_takes_no_turn(self):
        line = Line(delay=5.0, max_wait=1.0)
        line.go()
        for _ in range(3):
            with pytest.raises(ThrottleTimeout):
                line.go()
        line.clock.advance(5)
        assert line.go().waited == 0.0

    def test_time_in_line_counts(self):
        """With one turn a second, the third in line would wait 3 s."""
        line = Line(max_wait=2.0)
        line.go()
        workers = [line.queue("a"), line.queue("b")]
        with pytest.raises(ThrottleTimeout) as caught:
            line.go("c")
        assert caught.value.retry_after == 3.0
        for worker in workers:
            line.advance(1.0)
            worker.outcome()

    def test_zero_means_now_or_not_at_all(self):
        line = Line(max_wait=0.0)
        line.go()
        with pytest.raises(ThrottleTimeout):
            line.go()

    def test_a_change_that_comes_later_refuses_those_whose_turn_moves_beyond_it(self):
        """After the doubling the two turns are at 2 and 4 s; the second has patience for 3 s."""
        line = Line(max_wait=3.0)
        line.go()
        workers = [line.queue("a"), line.queue("b")]
        line.throttle.record_response(HOST, 429)
        with pytest.raises(ThrottleTimeout) as caught:
            workers[1].outcome()
        assert caught.value.retry_after == 4.0
        line.advance(1.0)
        line.advance(1.0)
        workers[0].outcome()
        assert line.waiting() == 0

    def test_those_behind_a_refused_one_move_up(self):
        """Patience may differ: the first leaves, and the second takes its turn."""
        line = Line(max_wait=1.5)
        line.go()
        impatient = line.queue("a")
        line.advance(0.5)
        patient = line.queue("b")
        line.turns.answered(HOST, 503, pause=1.2)
        with pytest.raises(ThrottleTimeout):
            impatient.outcome()
        line.advance(1.2)
        assert patient.outcome().waited == pytest.approx(1.2)

    def test_a_pause_beyond_it_refuses_newcomers(self):
        line = Line(max_wait=1.0)
        line.turns.answered(HOST, 429, pause=60.0)
        with pytest.raises(ThrottleTimeout) as caught:
            line.go()
        assert caught.value.retry_after == 60.0

    def test_a_host_may_have_its_own(self):
        line = Line(max_wait=0.0, hosts={"patient.test": HostSettings(max_wait=10)})
        line.go(host="patient.test")
        worker = line.queue("a", host="patient.test")
        line.advance(1.0)
        worker.outcome()


class TestLeaving:
    def test_waking_an_owner_ends_its_waits_and_no_others(self, line):
        line.go()
        mine, theirs = object(), object()
        workers = [line.queue("a", owner=mine), line.queue("b", owner=theirs), line.queue("c", owner=mine)]
        line.turns.wake(mine)
        for worker in (workers[0], workers[2]):
            with pytest.raises(SessionClosed):
                worker.outcome()
        line.advance(1.0)
        workers[1].outcome()
        assert line.started[1:] == [("b", 1.0)]

    def test_after_that_the_host_is_at_its_normal_delay(self, line):
        """Places given up in line cost nobody anything."""
        line.go()
        owner = object()
        workers = [line.queue(name, owner=owner) for name in "abc"]
        line.turns.wake(owner)
        for worker in workers:
            with pytest.raises(SessionClosed):
                worker.outcome()
        assert line.throttle.wait_for(HOST) == 1.0
        newcomer = line.queue("d")
        line.advance(1.0)
        assert newcomer.outcome().waited == 1.0

    def test_later_waits_of_the_owner_are_not_affected(self, line):
        owner = object()
        line.go()
        line.turns.wake(owner)
        worker = line.queue("a", owner=owner)
        line.advance(1.0)
        worker.outcome()

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_an_exception_in_a_wait_gives_the_place_to_the_next(self, line, position):
        """Whichever in line it hits, the others start one for each delay."""
        line.go()
        hit = threading.Event()
        wait = line.clock.wait

        def failing(condition, seconds):
            wait(condition, seconds)
            if threading.current_thread() is workers[position] and hit.is_set():
                raise KeyboardInterrupt

        line.clock.wait = failing
        workers = [line.queue(name) for name in "abc"]
        eventually(lambda: line.clock.asleep == 1)
        hit.set()
        line.turns.roster.hosts[HOST].queue[position].ring()
        with pytest.raises(KeyboardInterrupt):
            workers[position].outcome()
        left = [worker for worker in workers if worker is not workers[position]]
        for worker in left:
            line.advance(1.0)
            worker.outcome()
        assert [when for _, when in line.started] == [0, 1, 2]
        assert not line.turns._waiting

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
    def test_ctrl_c_in_the_main_thread_is_heard_at_once(self):
        """A real signal in a real wait of a minute; afterwards the host is free as before."""
        throttle = Throttle(60.0)
        throttle.acquire(HOST)

        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                throttle.acquire(HOST)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert time.monotonic() - began < 10
        assert throttle.snapshot()[HOST].waiting == 0
        assert throttle.wait_for(HOST) <= 60.0


class TestConcurrency:
    def test_no_more_requests_are_under_way_than_allowed(self):
        line = Line(delay=0.0, concurrency=2)
        first = line.go()
        line.go()
        third = line.queue("third")
        assert line.waiting() == 1
        first.give_back()
        third.outcome()

    def test_places_are_given_in_order_of_arrival(self):
        line = Line(delay=0.0, concurrency=1)
        turn = line.go("first")
        workers = [line.queue(name) for name in "abc"]
        for worker in workers:
            turn.give_back()
            turn = worker.outcome()
        assert [who for who, _ in line.started] == ["first", "a", "b", "c"]

    def test_a_place_and_a_turn_are_both_needed(self):
        line = Line(delay=1.0, concurrency=1)
        turn = line.go()
        worker = line.queue("a")
        turn.give_back()
        assert line.waiting() == 1
        line.advance(1.0)
        worker.outcome()

    def test_giving_back_twice_frees_one_place(self):
        line = Line(delay=0.0, concurrency=1)
        turn = line.go()
        turn.give_back()
        turn.give_back()
        line.go()
        assert not line.turns.roster.hosts[HOST].has_place()

    def test_waiting_for_a_place_ends_at_max_wait(self):
        line = Line(delay=0.0, concurrency=1, max_wait=2.0)
        line.go()
        worker = line.queue("a")
        line.advance(2.0)
        with pytest.raises(ThrottleTimeout):
            worker.outcome()

    def test_so_does_waiting_behind_one_that_waits_for_a_place(self):
        line = Line(delay=0.0, concurrency=1, max_wait=2.0)
        line.go()
        workers = [line.queue("a"), line.queue("b")]
        line.advance(2.0, asleep=2)
        for worker in workers:
            with pytest.raises(ThrottleTimeout):
                worker.outcome()
        assert line.waiting() == 0

    def test_a_host_whose_requests_are_under_way_is_not_forgotten(self):
        line = Line(delay=0.0, concurrency=1)
        turn = line.go()
        host = line.turns.roster.hosts[HOST]
        assert not host.is_forgettable(line.clock.monotonic() + 1e9)
        turn.give_back()
        assert host.is_forgettable(line.clock.monotonic() + 1e9)

    def test_acquire_alone_holds_no_place(self):
        throttle = Throttle(0, concurrency=1)
        for _ in range(3):
            throttle.acquire(HOST)


class TestStress:
    def test_no_turn_is_lost_and_none_is_given_twice(self):
        """16 threads, 5 hosts, 429s in between, exact counts at the end."""
        clock = FakeClock()
        throttle = Throttle(0.01, clock=clock, max_delay=0.04)
        hosts = [f"h{number}.test" for number in range(5)]
        barrier = threading.Barrier(16)

        def work(number):
            barrier.wait()
            for step, host in zip(range(100), itertools.cycle(hosts[number % 5 :] + hosts), strict=False):
                turn = throttle.turns.take(host)
                status = 429 if (number + step) % 10 == 0 else 200
                throttle.turns.answered(host, status, raised=turn.raised)

        workers = [Worker(work, number) for number in range(16)]
        for worker in workers:
            worker.outcome()
        reports = throttle.snapshot().values()
        assert sum(report.starts for report in reports) == 16 * 100
        assert sum(report.limited for report in reports) == 16 * 10
        assert all(report.waiting == 0 for report in reports)
        assert not throttle.turns._waiting

    def test_waits_that_end_in_every_way_leave_an_empty_line(self):
        """A third of the waiters is woken by closing, a third refused; the rest get all their turns."""
        clock = FakeClock()
        throttle = Throttle(0.01, clock=clock, concurrency=3, hosts={"hasty.test": HostSettings(max_wait=0.02)})
        owners = [object(), object()]
        done = threading.Event()

        def close_now_and_then():
            while not done.wait(0.001):
                throttle.turns.wake(owners[0])

        def work(number):
            host, owner = ("hasty.test", "calm.test")[number % 2], owners[number % 4 // 2]
            return Counter(attempt(host, owner) for _ in range(60))

        def attempt(host, owner):
            try:
                throttle.turns.take(host, owner).give_back()
            except (SessionClosed, ThrottleTimeout) as error:
                return error.tag
            return "started"

        closer = Worker(close_now_and_then)
        outcomes = [worker.outcome() for worker in [Worker(work, number) for number in range(16)]]
        done.set()
        closer.outcome()
        counts = sum(outcomes, Counter())
        assert counts.total() == 16 * 60
        assert counts["started"] == sum(report.starts for report in throttle.snapshot().values())
        assert all(host.queue is None and not host.taken for host in throttle.turns.roster.hosts.values())
