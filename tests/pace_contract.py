"""What every place that keeps a pace for several processes promises, step by step.

Delays are so long that the time which a test takes is none beside them; what would be later is written into the place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytest

from kreuz_sync.throttle.pace import PaceRules
from kreuz_sync.throttle.shared.plan import GO, TOO_LATE, WAIT
from kreuz_sync.throttle.shared.steps import NO_CLAIM, Claim, Known, State, Steps

HOST = "example.test"
DELAY_S = 100.0
NOTHING = Known(joins=False, is_fresh=False, backoff=0.0, floor=0.0, raised=0, paused=0.0, cut=False, since=None)
NOISE_S = 2.0
RULES = PaceRules(delay=DELAY_S, max_delay=1000.0)


def near(seconds: float) -> Any:
    return pytest.approx(seconds, abs=NOISE_S)


class Machine:
    """One who asks for leave, and remembers the slot that it has."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.claim = NO_CLAIM
        site.machines.append(self)

    def ask(self, *, patience: float | None = None, least: float = 0.0, known: Known = NOTHING) -> tuple[int, float]:
        leave, self.state = self.site.steps.take(HOST, RULES, known, self.claim, patience=patience, least=least)
        self.claim = leave.claim
        self.raised = self.state.raised
        return leave.code, leave.wait

    def told(self, how: str, raised: float | None = None) -> State:
        under = self.raised if raised is None else raised
        return self.site.steps.answer(HOST, RULES, NOTHING, how, under)


class Site(ABC):
    """A host as all have it, on which time passes when a test says so."""

    steps: Steps

    def __init__(self) -> None:
        self.machines: list[Machine] = []

    def pass_time(self, seconds: float) -> None:
        """All moments that anybody remembers are so much longer ago."""
        microseconds = round(seconds * 1e6)
        self.shift(microseconds)
        for machine in self.machines:
            if machine.claim != NO_CLAIM:
                machine.claim = Claim(machine.claim.slot - microseconds, machine.claim.epoch)

    @abstractmethod
    def shift(self, microseconds: int) -> None:
        """The same, of the moments that are kept."""

    @abstractmethod
    def lasts(self) -> float:
        """Seconds until the host is forgotten."""


class Slots:
    """A request for leave: one step, by the clock that all share."""

    def test_the_first_goes_at_once(self, site: Site) -> None:
        assert Machine(site).ask() == (GO, 0.0)

    def test_each_gets_a_slot_of_its_own(self, site: Site) -> None:
        """One delay apart, in the order in which they asked."""
        Machine(site).ask()
        slots = [Machine(site).ask() for _ in range(3)]
        assert slots == [(WAIT, near(DELAY_S)), (WAIT, near(2 * DELAY_S)), (WAIT, near(3 * DELAY_S))]

    def test_who_asks_too_early_keeps_the_slot(self, site: Site) -> None:
        one, other = Machine(site), Machine(site)
        one.ask()
        assert (one.ask(), other.ask(), one.ask()) == ((WAIT, near(100)), (WAIT, near(200)), (WAIT, near(100)))

    def test_at_its_slot_one_goes(self, site: Site) -> None:
        one, other = Machine(site), Machine(site)
        one.ask()
        other.ask()
        site.pass_time(DELAY_S)
        assert other.ask() == (GO, 0.0)

    def test_two_are_never_let_go_closer_than_the_delay(self, site: Site) -> None:
        """Who comes late to a slot puts off the next by as much."""
        one, late, next_one = Machine(site), Machine(site), Machine(site)
        one.ask()
        late.ask()
        next_one.ask()
        site.pass_time(DELAY_S + 30)
        assert late.ask() == (GO, 0.0)
        site.pass_time(70)
        assert next_one.ask() == (WAIT, near(30))
        site.pass_time(30)
        assert next_one.ask() == (GO, 0.0)

    def test_a_slot_that_nobody_uses_is_one_delay_lost(self, site: Site) -> None:
        """Whoever claimed it was killed."""
        Machine(site).ask()
        Machine(site).ask()
        third = Machine(site)
        third.ask()
        site.pass_time(2 * DELAY_S)
        assert third.ask() == (GO, 0.0)

    def test_who_comes_much_too_late_lines_up_behind_the_others(self, site: Site) -> None:
        one, late, other = Machine(site), Machine(site), Machine(site)
        one.ask()
        late.ask()
        other.ask()
        site.pass_time(DELAY_S + 60)
        assert late.ask() == (WAIT, near(140))

    def test_a_slot_beyond_ones_patience_is_not_taken(self, site: Site) -> None:
        Machine(site).ask()
        assert Machine(site).ask(patience=50) == (TOO_LATE, near(100))
        assert Machine(site).ask(patience=150) == (WAIT, near(100))

    def test_what_is_left_of_a_quota_may_ask_for_more(self, site: Site) -> None:
        Machine(site).ask()
        assert Machine(site).ask(least=250) == (WAIT, near(250))

    def test_the_key_goes_a_minute_after_the_host_needs_none(self, site: Site) -> None:
        Machine(site).ask()
        assert DELAY_S < site.lasts() <= DELAY_S + 60

    def test_a_backoff_is_kept_for_a_day(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        assert 24 * 3600 < site.lasts() < 25 * 3600

    def test_a_clock_that_is_put_back_stops_nobody(self, site: Site) -> None:
        """What was 100 seconds away is that still, and not an hour."""
        Machine(site).ask()
        site.pass_time(-3600)
        assert Machine(site).ask() == (WAIT, near(100))


class Answers:
    """What is learnt by one holds for all."""

    def test_429_doubles_the_delay(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        assert machine.told("many").backoff == 200
        assert Machine(site).ask() == (WAIT, near(200))

    def test_a_burst_is_one_step(self, site: Site) -> None:
        """All were sent before the increase."""
        machine = Machine(site)
        machine.ask()
        assert [machine.told("many").backoff for _ in range(5)] == [200] * 5

    def test_one_sent_since_is_another(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        assert machine.told("many", raised=1).backoff == 400

    def test_no_more_than_max_delay(self, site: Site) -> None:
        machine = Machine(site)
        assert [machine.told("many", raised=9).backoff for _ in range(5)] == [200, 400, 800, 1000, 1000]

    def test_slots_that_are_claimed_are_void_after_it(self, site: Site) -> None:
        one, other, third = Machine(site), Machine(site), Machine(site)
        one.ask()
        other.ask()
        third.ask()
        one.told("many")
        site.pass_time(DELAY_S)
        assert other.ask() == (WAIT, near(100))
        site.pass_time(DELAY_S)
        assert (other.ask(), third.ask()) == ((GO, 0.0), (WAIT, near(200)))

    def test_five_complete_answers_halve_it(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        assert [machine.told("good", raised=1).backoff for _ in range(5)] == [200, 200, 200, 200, 0]

    def test_answers_to_what_was_sent_before_the_increase_do_not(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        assert [machine.told("good").backoff for _ in range(5)][-1] == 200

    @pytest.mark.parametrize(("how", "backoff"), [("bad", 200), ("failed", 200), ("neutral", 0)])
    def test_an_error_breaks_the_run(self, site: Site, how: str, backoff: float) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        for _ in range(3):
            machine.told("good", raised=1)
        machine.told(how, raised=1)
        machine.told("good", raised=1)
        assert machine.told("good", raised=1).backoff == backoff

    def test_five_failed_connections_double_it(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        assert [machine.told("unreachable").backoff for _ in range(5)] == [0, 0, 0, 0, 200]

    def test_an_answer_in_between_begins_anew(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        for how in ("unreachable", "unreachable", "unreachable", "unreachable", "bad"):
            machine.told(how)
        assert machine.told("unreachable").unreached == 1

    def test_a_floor_holds_for_all(self, site: Site) -> None:
        Machine(site).ask()
        site.steps.floor(HOST, RULES, NOTHING, 150.0)
        assert Machine(site).ask() == (WAIT, near(150))

    def test_a_pause_holds_for_all(self, site: Site) -> None:
        site.steps.pause(HOST, RULES, NOTHING, 300.0, False, -1)
        assert Machine(site).ask() == (WAIT, near(300))

    def test_a_shorter_pause_changes_nothing(self, site: Site) -> None:
        site.steps.pause(HOST, RULES, NOTHING, 300.0, False, -1)
        assert site.steps.pause(HOST, RULES, NOTHING, 30.0, False, -1).paused == near(300)

    def test_but_that_of_one_who_knows_the_longer_one(self, site: Site) -> None:
        longer = site.steps.pause(HOST, RULES, NOTHING, 300.0, False, -1)
        assert site.steps.pause(HOST, RULES, NOTHING, 30.0, False, longer.paused_until).paused == near(30)

    def test_after_a_pause_that_was_cut_one_asks_for_all(self, site: Site) -> None:
        site.steps.pause(HOST, RULES, NOTHING, 300.0, True, -1)
        site.pass_time(301)
        probe = Machine(site)
        assert (probe.ask(), probe.state.cut, probe.state.paused) == ((GO, 0.0), True, near(5))

    def test_the_pause_of_a_bucket_is_told_to_all(self, site: Site) -> None:
        site.steps.bucket(HOST, RULES, NOTHING, "search", 300.0, True)
        machine = Machine(site)
        assert machine.ask() == (GO, 0.0)
        assert machine.state.buckets == (("search", near(300), True),)

    def test_as_long_as_it_lasts(self, site: Site) -> None:
        site.steps.bucket(HOST, RULES, NOTHING, "search", 0.0, False)
        machine = Machine(site)
        machine.ask()
        assert machine.state.buckets == ()


class Joining:
    """What a server does not know any more, or was not told."""

    def test_a_server_that_lost_all_is_told_what_the_asker_knows(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask(known=NOTHING._replace(backoff=400.0, floor=150.0, raised=2))
        assert machine.state[3:6] == (400, 150, 2)

    def test_who_was_there_a_moment_ago_knows_that_it_lost_something(self, site: Site) -> None:
        """Others may have sent a request just now, so this one waits."""
        assert Machine(site).ask(known=NOTHING._replace(is_fresh=True)) == (WAIT, near(100))

    def test_what_one_went_alone_counts(self, site: Site) -> None:
        Machine(site).ask()
        site.pass_time(500)
        assert Machine(site).ask(known=NOTHING._replace(joins=True, since=20.0)) == (WAIT, near(80))

    def test_the_larger_backoff_holds(self, site: Site) -> None:
        machine = Machine(site)
        machine.ask()
        machine.told("many")
        machine.ask(known=NOTHING._replace(joins=True, backoff=150.0, raised=7))
        assert (machine.state.backoff, machine.state.raised) == (200, 7)

    def test_a_pause_of_ones_own_holds(self, site: Site) -> None:
        assert Machine(site).ask(known=NOTHING._replace(joins=True, paused=300.0)) == (WAIT, near(300))
