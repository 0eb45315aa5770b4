"""What a counter says, and what a policy makes of it."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.ratelimit import PolicyUsage, RateLimitContext
from kreuz_sync.ratelimit.usage import time_until, whole_seconds


def used(count, limit=10):
    return PolicyUsage("p", limit, 60.0, count, 30.0)


class TestPolicyUsage:
    """What follows from a count."""

    @pytest.mark.parametrize(("count", "left"), [(1, 9), (9, 1), (10, 0), (11, 0), (10**30, 0)])
    def test_what_remains_is_never_negative(self, count, left):
        assert used(count).remaining == left

    @pytest.mark.parametrize(("count", "limited"), [(1, False), (10, False), (11, True)])
    def test_the_limit_itself_is_still_room(self, count, limited):
        """The first `limit` requests pass, and the next is over."""
        assert used(count).is_rate_limited is limited

    def test_a_limit_of_0_has_no_room_for_the_first(self):
        assert used(1, limit=0).is_rate_limited

    def test_it_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            used(1).used = 0  # type: ignore[misc]


class TestContext:
    """The policies that an allowed request has met."""

    def test_it_is_empty_at_first(self):
        assert RateLimitContext().policies == ()

    def test_one_that_is_appended_stands_behind_the_others(self):
        """And the context that it was appended to stays as it was."""
        outer = RateLimitContext().appended(used(1))
        both = outer.appended(used(2))
        assert [policy.used for policy in both.policies] == [1, 2]
        assert [policy.used for policy in outer.policies] == [1]

    def test_it_pickles(self):
        context = RateLimitContext((used(1), used(2)))
        assert pickle.loads(pickle.dumps(context)) == context


class TestWholeSeconds:
    """Durations as Retry-After, `t` and `w` have them."""

    @pytest.mark.parametrize(
        ("seconds", "whole"),
        [(0.0, 1), (1e-9, 1), (1.0, 1), (1.0000001, 2), (1.6, 2), (2.0, 2), (59.2, 60), (60.0, 60)],
    )
    def test_they_are_rounded_up_and_at_least_1(self, seconds, whole):
        assert whole_seconds(seconds) == whole

    @given(st.floats(min_value=0, max_value=1e15))
    def test_no_whole_number_between_would_do(self, seconds):
        """The least whole number that is no less than the duration."""
        whole = whole_seconds(seconds)
        assert whole >= seconds
        assert whole == 1 or whole - 1 < seconds
        assert isinstance(whole, int)
        assert math.isfinite(whole)


class TestTimeUntil:
    """Seconds that are enough."""

    def test_a_difference_that_was_rounded_down_is_not(self):
        now, end = 0.4436, 10.4436 + 2.5
        assert now + time_until(end, now) >= end

    @given(st.floats(0, 1e9), st.floats(0, 1e9))
    def test_they_lead_to_the_end_and_are_no_more_than_a_trace_too_many(self, now, seconds):
        end = now + seconds
        left = time_until(end, now)
        assert now + left >= end
        assert left <= math.nextafter(math.nextafter(end - now, math.inf), math.inf)

    def test_what_has_passed_stays_so(self):
        assert time_until(1.0, 3.0) == -2.0
        assert time_until(3.0, 3.0) == 0.0
