"""Windows that outlive a process, a reboot, and a clock that is set."""

from __future__ import annotations

import pytest

from kreuz_sync.ratelimit.spans import Now, Span, as_of, begin, time_left

NOW = Now("monday", 1000.0, 1_800_000_000.0)


def began(length: float, now: Now = NOW) -> Span:
    span = begin(length, now)
    assert span is not None
    return span


class TestBegin:
    """A window begins now."""

    def test_it_ends_a_length_later_by_both_clocks(self) -> None:
        assert began(60) == ("monday", 1060.0, 1_800_000_060.0, 60)

    @pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf"), 1e-20])
    def test_what_a_clock_cannot_count_is_none(self, length: float) -> None:
        assert begin(length, NOW) is None

    @pytest.mark.parametrize("monotonic", [0.1, 0.3, 1000.1, 123_456.789, 9e8])
    @pytest.mark.parametrize("length", [0.1, 0.3, 0.7, 59.9])
    def test_no_more_time_is_left_than_it_has(self, monotonic: float, length: float) -> None:
        """Though the sum of the two may be rounded up."""
        now = NOW._replace(monotonic=monotonic)
        span = began(length, now)
        assert 0 < time_left(span, now) <= length
        assert as_of(span, now) is span


class TestAsOf:
    """The monotonic clock decides while the machine runs, the wall clock after it was started anew."""

    @pytest.mark.parametrize("wall", [-1e9, -3600.0, 0.0, 3600.0, 1e9])
    def test_a_wall_clock_that_is_set_changes_nothing(self, wall: float) -> None:
        """Forward or back, by an hour or by years."""
        later = Now("monday", 1010.0, NOW.wall + 10 + wall)
        span = began(60)
        assert as_of(span, later) is span
        assert time_left(span, later) == 50

    @pytest.mark.parametrize("passed", [0.0, 60.0, 59.0, 1e6])
    def test_without_a_restart_a_span_is_itself(self, passed: float) -> None:
        later = Now("monday", NOW.monotonic + passed, NOW.wall)
        assert as_of(began(60), later) is began(60) or as_of(began(60), later) == began(60)
        assert time_left(began(60), later) == 60 - passed

    @pytest.mark.parametrize("monotonic", [5.0, 990.0, 1010.0, 1e6])
    def test_after_a_restart_the_wall_clock_tells_what_is_left(self, monotonic: float) -> None:
        """Whatever the new monotonic clock says."""
        later = Now("tuesday", monotonic, NOW.wall + 20)
        span = as_of(began(60), later)
        assert span == ("tuesday", monotonic + 40, NOW.wall + 60, 60)
        assert as_of(span, later) is span

    def test_a_window_may_have_ended_while_the_machine_was_off(self) -> None:
        later = Now("tuesday", 5.0, NOW.wall + 60)
        assert time_left(as_of(began(60), later), later) <= 0

    def test_a_wall_clock_that_was_set_back_too_freezes_nothing(self) -> None:
        """At most the whole window is left, and it runs from there on."""
        later = Now("tuesday", 5.0, NOW.wall - 1e8)
        span = as_of(began(60), later)
        assert time_left(span, later) == 60
        assert time_left(as_of(span, later._replace(monotonic=65.0)), later._replace(monotonic=65.0)) == 0

    def test_a_restart_without_a_name_shows_by_a_window_in_the_future(self) -> None:
        """Where starts of the machine have no names, the clock says so itself: it is before the window's beginning."""
        before = Now("", 1e6, NOW.wall)
        later = Now("", 30.0, NOW.wall + 20)
        assert time_left(as_of(began(60, before), later), later) == 40

    def test_such_a_window_ends_within_its_length_though_nothing_shows(self) -> None:
        before = Now("", 1000.0, NOW.wall)
        later = Now("", 1030.0, NOW.wall + 1e6)
        assert 0 < time_left(as_of(began(60, before), later), later) <= 60
