"""Which job goes next, by a clock that is a number."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.fetch_all.schedule import EARLY_S, PATIENCE_S, Job, Schedule


class Paces:
    """A delay for each host, kept as a throttle keeps it: `turn` takes the next one."""

    def __init__(self, delay: float = 1.0, places: int | None = None, **delays: float) -> None:
        self.delay, self.delays, self.most = delay, delays, places
        self.next: dict[str, float] = {}

    def wait(self, name: str, now: float) -> float:
        return self.next.get(name, now) - now

    def places(self, name: str) -> int | None:
        return self.most

    def handed_out(self, name: str, now: float) -> bool:
        return self.delays.get(name, self.delay) > 0

    def turn(self, name: str, now: float) -> None:
        self.next[name] = max(now, self.next.get(name, now)) + self.delays.get(name, self.delay)


def filled(paces: Paces | None, *names: str) -> Schedule:
    """A job for each name; the first letter is its host."""
    schedule = Schedule(paces)
    for index, name in enumerate(names):
        schedule.put(Job(index, name), name[0], 0.0)
    return schedule


def taken(schedule: Schedule, now: float = 0.0) -> list[str]:
    """All that is handed out at this moment."""
    found = []
    while (job := schedule.take(now)) is not None:
        found.append(job.source)
    return found


class TestWithoutPace:
    """Hosts take turns, and nothing is waited for."""

    @pytest.mark.parametrize(
        ("names", "order"),
        [
            ("", ""),
            ("a1 a2 a3", "a1 a2 a3"),
            ("a1 a2 b1 b2", "a1 b1 a2 b2"),
            ("a1 a2 a3 b1 c1 c2", "a1 b1 c1 a2 c2 a3"),
        ],
    )
    def test_hosts_take_turns(self, names: str, order: str) -> None:
        assert taken(filled(None, *names.split())) == order.split()

    def test_what_has_no_host_waits_for_nobody(self) -> None:
        paces = Paces(100.0)
        schedule = Schedule(paces)
        for index in range(3):
            schedule.put(Job(index, str(index)), "", 0.0)
        assert taken(schedule) == ["0", "1", "2"]


class TestPace:
    """A job is handed out when its host is due."""

    def test_one_job_of_a_host_is_on_its_way_at_a_time(self) -> None:
        assert taken(filled(Paces(), "a1", "a2", "b1")) == ["a1", "b1"]

    def test_the_next_is_due_when_the_one_before_has_had_its_turn(self) -> None:
        paces = Paces(1.0)
        schedule = filled(paces, "a1", "a2")
        first = schedule.take(0.0)
        assert first is not None
        paces.turn("a", 0.5)
        schedule.had_turn(first, 0.5)
        assert schedule.seconds(0.5) == pytest.approx(1.0 - EARLY_S)
        assert schedule.take(1.4) is None
        assert schedule.take(1.5 - EARLY_S / 2) is not None

    def test_one_that_ends_without_a_turn_makes_way_at_once(self) -> None:
        """As what a cache answers does."""
        schedule = filled(Paces(1.0), "a1", "a2")
        first = schedule.take(0.0)
        assert first is not None
        schedule.finish(first, 0.1)
        assert taken(schedule, 0.1) == ["a2"]

    def test_one_that_is_held_up_before_its_turn_is_not_waited_for_for_ever(self) -> None:
        schedule = filled(Paces(1.0), "a1", "a2", "a3")
        assert taken(schedule) == ["a1"]
        assert schedule.seconds(0.0) == PATIENCE_S
        assert taken(schedule, PATIENCE_S) == ["a2"]

    def test_a_pause_is_heeded_although_the_host_was_ready(self) -> None:
        """The pace may change between two looks."""
        paces = Paces(1.0)
        schedule = filled(paces, "a1", "b1")
        paces.next["a"] = 60.0
        assert taken(schedule) == ["b1"]
        assert schedule.seconds(0.0) == pytest.approx(60.0 - EARLY_S)

    def test_a_backoff_that_is_over_sooner_is_noticed(self) -> None:
        paces = Paces(1.0)
        schedule = filled(paces, "a1", "a2")
        first = schedule.take(0.0)
        assert first is not None
        paces.next["a"] = 60.0
        schedule.had_turn(first, 0.0)
        paces.next["a"] = 30.0
        schedule.finish(first, 1.0)
        assert schedule.seconds(1.0) == pytest.approx(29.0 - EARLY_S)

    def test_a_host_without_delay_is_not_held_back(self) -> None:
        assert taken(filled(Paces(0.0), "a1", "a2", "a3")) == ["a1", "a2", "a3"]

    def test_a_hosts_places_are_not_exceeded(self) -> None:
        schedule = filled(Paces(0.0, places=2), "a1", "a2", "a3", "b1")
        jobs = [schedule.take(0.0) for _ in range(4)]
        assert [job and job.source for job in jobs] == ["a1", "b1", "a2", None]
        assert schedule.seconds(0.0) is None
        assert jobs[0] is not None
        schedule.finish(jobs[0], 1.0)
        assert taken(schedule, 1.0) == ["a3"]

    def test_hosts_that_are_done_leave_nothing_behind(self) -> None:
        schedule = filled(Paces(1.0), *(f"{letter}1" for letter in "abcdefg"))
        for job in [schedule.take(0.0) for _ in range(7)]:
            assert job is not None
            schedule.finish(job, 0.0)
        assert (schedule.lines, schedule.queued, schedule.seconds(9.0)) == ({}, 0, None)


class TestPriority:
    """The larger number goes first; equal ones in the order of the list."""

    def put(self, schedule: Schedule, *jobs: tuple[str, float]) -> None:
        for index, (name, priority) in enumerate(jobs):
            schedule.put(Job(index, name, key=name, priority=priority), name[0], 0.0)

    def test_within_a_host(self) -> None:
        schedule = Schedule(None)
        self.put(schedule, ("a1", 0), ("a2", 5), ("a3", -1), ("a4", 5))
        assert taken(schedule) == ["a2", "a4", "a1", "a3"]

    def test_between_hosts(self) -> None:
        schedule = Schedule(Paces(1.0))
        self.put(schedule, ("a1", 0), ("b1", 3), ("c1", 1))
        assert taken(schedule) == ["b1", "c1", "a1"]

    def test_an_equal_one_that_is_more_urgent_hurries_the_first(self) -> None:
        schedule = Schedule(None)
        self.put(schedule, ("a1", 0), ("a2", 0), ("a2", 7))
        first = schedule.take(0.0)
        assert first is not None
        assert (first.source, [index for index, _ in first.inputs]) == ("a2", [1, 2])
        assert taken(schedule) == ["a1"]
        assert schedule.queued == 0


class TestEquals:
    """Equal requests that wait or are under way are one."""

    def test_one_that_waits_is_joined(self) -> None:
        schedule = Schedule(None)
        assert schedule.put(Job(0, "x", key="k"), "a", 0.0)
        assert not schedule.put(Job(1, "y", key="k"), "a", 0.0)
        job = schedule.take(0.0)
        assert job is not None
        assert job.inputs == [(0, "x"), (1, "y")]
        assert schedule.take(0.0) is None

    def test_one_that_is_under_way_is_joined_until_it_ends(self) -> None:
        schedule = Schedule(None)
        schedule.put(Job(0, "x", key="k"), "a", 0.0)
        job = schedule.take(0.0)
        assert job is not None
        assert not schedule.put(Job(1, "y", key="k"), "a", 0.0)
        schedule.finish(job, 0.0)
        assert schedule.put(Job(2, "z", key="k"), "a", 0.0)
        assert [index for index, _ in job.inputs] == [0, 1]


class TestOnly:
    """One job that all others wait for."""

    def test_it_goes_before_its_turn_in_line(self) -> None:
        schedule = Schedule(None)
        jobs = [Job(index, f"a{index}", priority=index) for index in range(3)]
        for job in jobs:
            schedule.put(job, "a", 0.0)
        assert schedule.take(0.0, only=jobs[0]) is jobs[0]
        assert taken(schedule) == ["a2", "a1"]
        assert schedule.queued == 0

    def test_its_host_has_to_be_due(self) -> None:
        paces = Paces(1.0)
        paces.next["a"] = 5.0
        schedule = Schedule(paces)
        job = Job(0, "a1")
        schedule.put(job, "a", 0.0)
        assert schedule.take(0.0, only=job) is None
        assert schedule.seconds(0.0, only=job) == pytest.approx(5.0 - EARLY_S)
        assert schedule.take(5.0, only=job) is job


def simulated(
    names: list[str], paces: Paces, *, workers: int, latency: float, ahead: int = 10_000
) -> tuple[float, dict[str, list[float]]]:
    """Fetch all with so many workers, by events; the moment of the end, and each host's starts.

    A worker that waits for its host's turn does not count, as in a crew.
    """
    schedule, now, busy, given = Schedule(paces), 0.0, 0, 0
    starts: dict[str, list[float]] = {}
    events: list[tuple[float, int, str, Job]] = []  # of jobs that wait for their turn, and of those under way
    while True:
        while given < len(names) and schedule.queued < ahead:
            schedule.put(Job(given, names[given]), names[given], now)
            given += 1
        starting = [schedule.take(now)] if busy < workers else []
        while events and events[0][0] <= now:
            _, _, what, job = heapq.heappop(events)
            if what == "start":
                starting.append(job)
            else:
                busy -= 1
                schedule.finish(job, now)
        for one in starting:
            if one is None or one.line is None:
                continue
            turn = paces.next.get(one.source, now)
            if turn > now + 1e-9:
                heapq.heappush(events, (turn, one.index, "start", one))
                continue
            busy += 1
            paces.turn(one.source, now)
            starts.setdefault(one.source, []).append(now)
            schedule.had_turn(one, now)
            heapq.heappush(events, (now + latency, one.index, "end", one))
        pause = schedule.seconds(now) if busy < workers else None
        moments = ([events[0][0]] if events else []) + ([now + pause] if pause is not None else [])
        if not moments:
            return now, starts
        now = max(now, min(moments))


class TestSimulation:
    """Whole runs."""

    def test_twenty_hosts_in_any_order_keep_their_pace(self) -> None:
        names = [f"h{number % 20}" for number in range(2000)]
        random.Random(4).shuffle(names)
        end, _ = simulated(names, Paces(0.2), workers=16, latency=0.05)
        assert end <= 1.01 * 99 * 0.2

    def test_one_slow_host_in_front_does_not_slow_the_others(self) -> None:
        names = ["slow"] * 1000 + [f"h{number % 19}" for number in range(1900)]
        _, starts = simulated(names, Paces(0.2, slow=2.0), workers=16, latency=0.05)
        assert max(moments[-1] for name, moments in starts.items() if name != "slow") <= 1.01 * 99 * 0.2

    def test_two_thousand_hosts_at_once(self) -> None:
        """As many requests a second as 16 workers make, none of them waiting."""
        names = [f"h{number % 2000}" for number in range(10_000)]
        random.Random(4).shuffle(names)
        end, _ = simulated(names, Paces(1.0), workers=16, latency=0.05)
        assert end == pytest.approx(10_000 * 0.05 / 16, rel=0.05)

    @given(
        names=st.lists(st.sampled_from("abcde"), max_size=60),
        delay=st.floats(0.0, 3.0),
        latency=st.floats(0.0, 3.0),
        workers=st.integers(1, 8),
        ahead=st.integers(1, 20),
        places=st.one_of(st.none(), st.integers(1, 3)),
    )
    def test_every_job_starts_once_and_none_before_its_turn(
        self, names: list[str], delay: float, latency: float, workers: int, ahead: int, places: int | None
    ) -> None:
        _, starts = simulated(names, Paces(delay, places), workers=workers, latency=latency, ahead=ahead)
        assert sum(map(len, starts.values())) == len(names)
        for moments in starts.values():
            gaps = [later - sooner for sooner, later in itertools.pairwise(moments)]
            assert all(gap >= delay - 1e-6 for gap in gaps)
