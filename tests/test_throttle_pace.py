"""The arithmetic of one host's pace, by tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.throttle.pace import CATCH_UP, FORGET_S, Pace, PaceRules

NOW = 1000.0


def pace(delay=0.1, **rules):
    return Pace(PaceRules(delay=delay, **rules), NOW)


def after(subject, *statuses, raised=math.inf):
    """The delay after each of `statuses`."""
    seen = []
    for status in statuses:
        subject.answered(status, now=NOW, raised=raised)
        seen.append(pytest.approx(subject.delay))
    return seen


class TestTurns:
    """A turn is a moment: a delay after the last start, or the end of a pause."""

    def test_the_first_request_goes_at_once(self):
        assert pace().is_due(NOW)

    def test_the_next_turn_is_a_delay_after_the_last_start(self):
        subject = pace(delay=0.5)
        subject.start(NOW)
        assert subject.next_turn() == NOW + 0.5
        assert not subject.is_due(NOW + 0.499)
        assert subject.is_due(NOW + 0.5)

    def test_a_turn_that_nobody_used_is_lost(self):
        subject = pace(delay=0.5)
        subject.start(NOW)
        subject.start(NOW + 10)
        assert subject.next_turn() == NOW + 10.5

    @pytest.mark.parametrize(("late", "put_off"), [(0.0, 0.0), (0.02, 0.0), (0.04, 0.0), (0.1, 0.06), (30.0, 29.96)])
    def test_lateness_is_made_good_up_to_a_tenth_of_the_delay(self, late, put_off):
        """None of it, and late wake-ups would add up; all of it, and a stalled process would send a burst."""
        subject = pace(delay=0.4)
        subject.start(NOW)
        subject.start_late(NOW + 0.4 + late)
        assert subject.next_turn() == pytest.approx(NOW + 0.8 + put_off)

    def test_with_long_delays_it_is_50_ms(self):
        subject = pace(delay=60.0)
        subject.start(NOW)
        subject.start_late(NOW + 61)
        assert subject.next_turn() == pytest.approx(NOW + 60 + 60 + 0.95)

    @given(
        delay=st.floats(0.001, 100),
        lateness=st.lists(st.floats(0, 5), min_size=1, max_size=30),
    )
    def test_starts_are_never_early_and_never_bunched(self, delay, lateness):
        """Whatever the wake-ups: n starts take n - 1 delays, and two are 0.9 of a delay apart."""
        subject = pace(delay=delay)
        subject.start(NOW)
        starts = [NOW]
        for number, late in enumerate(lateness, 1):
            starts.append(subject.next_turn() + late)
            subject.start_late(starts[-1])
            assert starts[-1] >= NOW + number * delay - 1e-6
            assert starts[-1] - starts[-2] >= (1 - CATCH_UP) * delay - 1e-6


class TestBackoff:
    """429 doubles the delay; five successes in a row halve it."""

    def test_each_429_doubles_the_delay(self):
        assert after(pace(), 429, 429, 429) == [0.2, 0.4, 0.8]

    def test_from_no_delay_the_first_429_makes_one_second(self):
        assert after(pace(delay=0.0), 429, 429) == [1.0, 2.0]

    def test_the_first_step_from_no_delay_is_a_setting(self):
        assert after(pace(delay=0.0, first_backoff=0.25), 429, 429) == [0.25, 0.5]

    def test_it_stops_at_sixty_seconds(self):
        assert after(pace(delay=20.0), 429, 429, 429) == [40, 60, 60]

    def test_the_cap_is_a_setting(self):
        assert after(pace(delay=1.0, max_delay=3.0), 429, 429) == [2, 3]

    def test_a_configured_delay_above_the_cap_stays(self):
        assert after(pace(delay=90.0), 429, 200) == [90, 90]

    def test_five_successes_in_a_row_halve_it(self):
        subject = pace()
        after(subject, 429, 429)
        assert after(subject, *[200] * 10) == [0.4] * 4 + [0.2] * 5 + [0.1]

    def test_it_never_falls_below_the_configured_delay(self):
        subject = pace()
        after(subject, 429, *[200] * 50)
        assert subject.delay == 0.1
        assert subject.backoff == 0.0

    def test_above_no_delay_halving_comes_to_an_end(self):
        subject = pace(delay=0.0)
        after(subject, 429)
        assert after(subject, *[200] * 5)[-1] == 0.5
        after(subject, *[200] * 30)
        assert subject.delay == 0.0

    @pytest.mark.parametrize("status", [200, 204, 206, 301, 304, 399])
    def test_everything_below_400_is_a_success(self, status):
        subject = pace()
        after(subject, 429)
        assert after(subject, *[status] * 5)[-1] == 0.1

    @pytest.mark.parametrize("status", [400, 401, 403, 408, 418, 500, 502, 503, 504])
    def test_an_error_breaks_the_run_and_does_not_slow_down(self, status):
        subject = pace()
        after(subject, 429, 200, 200, 200, 200)
        assert after(subject, status, 200, 200, 200, 200, 200) == [0.2] * 5 + [0.1]

    @pytest.mark.parametrize("status", [404, 410])
    def test_a_missing_page_neither_counts_nor_breaks_the_run(self, status):
        subject = pace()
        after(subject, 429, 200, 200, 200, 200)
        assert after(subject, status, 200) == [0.2, 0.1]

    def test_no_answer_breaks_the_run(self):
        subject = pace()
        after(subject, 429, 200, 200, 200, 200)
        subject.failed()
        assert after(subject, 200) == [0.2]

    def test_quick_errors_after_a_429_do_not_speed_up(self):
        assert after(pace(), 429, *[503] * 5, *[200] * 5) == [0.2] * 10 + [0.1]


class TestBursts:
    """Answers to requests that were sent before the last increase say nothing of the pace since."""

    def test_429s_for_requests_sent_together_are_one_step(self):
        subject = pace()
        sent_under = subject.raised
        assert after(subject, *[429] * 16, raised=sent_under) == [0.2] * 16
        assert (subject.limited, subject.raised) == (16, 1)

    def test_a_429_for_a_request_sent_since_is_a_step(self):
        subject = pace()
        after(subject, 429, 429, raised=0)
        assert after(subject, 429, raised=subject.raised) == [0.4]

    def test_successes_of_requests_sent_before_do_not_count(self):
        subject = pace()
        after(subject, 429, raised=0)
        assert after(subject, *[200] * 20, raised=0)[-1] == 0.2


class TestFloor:
    """What the host asks for itself holds in every state."""

    def test_the_largest_delay_holds(self):
        subject = pace(delay=0.2)
        subject.set_floor(0.5, now=NOW)
        assert subject.delay == 0.5
        subject.set_floor(0.1, now=NOW)
        assert subject.delay == 0.2

    def test_429_doubles_from_the_floor(self):
        subject = pace(delay=0.0)
        subject.set_floor(0.5, now=NOW)
        assert after(subject, 429) == [1.0]

    def test_halving_stops_at_the_floor(self):
        subject = pace(delay=0.0)
        subject.set_floor(0.5, now=NOW)
        assert min(delay.expected for delay in after(subject, 429, *[200] * 20)) == 0.5

    def test_a_floor_above_the_cap_wins(self):
        subject = pace()
        subject.set_floor(90.0, now=NOW)
        assert after(subject, 429, 200) == [90, 90]

    def test_setting_it_again_leaves_the_backoff(self):
        subject = pace()
        after(subject, 429, 429, 429)
        subject.set_floor(0.5, now=NOW)
        assert subject.delay == pytest.approx(0.8)

    def test_it_is_cut_to_its_ceiling(self):
        subject = pace()
        subject.set_floor(1e9, now=NOW)
        assert subject.delay == 300.0


class TestPauses:
    def test_no_turn_comes_before_its_end(self):
        subject = pace()
        subject.pause(30, now=NOW)
        assert subject.next_turn() == NOW + 30

    def test_a_shorter_one_does_not_shorten_it(self):
        subject = pace()
        subject.pause(30, now=NOW)
        subject.pause(5, now=NOW)
        assert subject.next_turn() == NOW + 30

    def test_it_is_cut_to_its_ceiling(self):
        subject = pace(max_retry_after=60.0)
        subject.pause(1e15, now=NOW)
        assert subject.next_turn() == NOW + 60


class TestForgetting:
    def test_a_host_between_two_turns_is_remembered(self):
        subject = pace(delay=0.3)
        subject.start(NOW)
        assert not subject.is_forgettable(NOW + 0.2)
        assert subject.is_forgettable(NOW + 0.3)

    def test_a_pause_is_remembered(self):
        subject = pace()
        subject.pause(30, now=NOW)
        assert not subject.is_forgettable(NOW + 29)
        assert subject.is_forgettable(NOW + 30)

    @pytest.mark.parametrize("learn", [lambda it: after(it, 429), lambda it: it.set_floor(2.0, now=NOW)])
    def test_a_backoff_and_a_floor_are_remembered_for_a_day(self, learn):
        subject = pace()
        learn(subject)
        assert not subject.is_forgettable(NOW + FORGET_S)
        assert subject.is_forgettable(NOW + FORGET_S + 1)

    def test_use_renews_the_day(self):
        subject = pace()
        after(subject, 429)
        subject.start(NOW + FORGET_S)
        assert not subject.is_forgettable(NOW + FORGET_S + 1)


@given(st.lists(st.sampled_from([200, 404, 429, 500, 503, "floor", "pause"]), max_size=60), st.floats(0, 100))
def test_whatever_comes_the_delay_stays_within_its_bounds(events, delay):
    subject = pace(delay=delay)
    for event in events:
        if event == "floor":
            subject.set_floor(delay * 1.5, now=NOW)
        elif event == "pause":
            subject.pause(5.0, now=NOW)
        else:
            subject.answered(event, now=NOW)
        least = max(delay, subject.floor)
        assert least <= subject.delay <= max(60.0, least)
