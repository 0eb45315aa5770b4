"""Age and freshness lifetime, RFC 9111, section 4.2."""

from __future__ import annotations

import calendar
import time
from email.utils import formatdate

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kreuz_sync.cache.decisions import Hit
from kreuz_sync.cache.freshness import (
    age_value,
    current_age,
    date_value,
    explicit_lifetime,
    heuristic_lifetime,
    initial_age,
    may_guess,
)
from kreuz_sync.cache.reuse import decide

from .cache_values import NOW, ask, cached, date, entry

DAY = 86_400


class TestAgeField:
    """Section 5.1."""

    @pytest.mark.parametrize(
        ("lines", "seconds"),
        [
            ([], 0),
            (["7200"], 7200),
            ([" 7200\t"], 7200),
            (["0, 7200"], 0),
            (["7200", "0"], 7200),
            (["0", "7200"], 0),
            (["-7200"], 0),
            (["7200.0"], 0),
            (["7200;foo=bar"], 0),
            (["2147483648"], 2147483648),
            (["9" * 5000], 2147483648),
            ([""], 0),
            (["old, 5"], 0),
        ],
    )
    def test_the_first_member_counts_if_it_is_plain_digits(self, lines, seconds):
        assert age_value(lines) == seconds


class TestDateField:
    """RFC 9110, section 6.6.1."""

    @pytest.mark.parametrize(
        ("lines", "moment"), [([date(-30)], NOW - 30), ([], NOW), (["foo"], NOW), ([date(-1), date(-2)], NOW - 1)]
    )
    def test_without_a_usable_date_it_is_that_of_receipt(self, lines, moment):
        assert date_value(lines, received=NOW) == moment


class TestInitialAge:
    """Section 4.2.3."""

    @pytest.mark.parametrize(
        ("age", "made", "sent", "received", "seconds"),
        [
            (0, 100, 100, 100, 0),
            (30, 100, 100, 100, 30),
            (30, 100, 98, 100, 32),
            (0, 40, 100, 100, 60),
            (30, 40, 98, 100, 60),
            (0, 160, 100, 100, 0),
            (5, 160, 98, 100, 7),
            (5, 100, 103, 100, 5),
        ],
    )
    def test_it_is_the_larger_of_what_date_and_age_say(self, age, made, sent, received, seconds):
        """A Date ahead of the clock, or a clock that stepped back, makes nothing younger."""
        assert initial_age(age=age, date=made, request_time=sent, response_time=received) == seconds

    @pytest.mark.parametrize(("now", "seconds"), [(100, 7), (130, 37), (40, 7)])
    def test_time_in_the_store_counts_and_a_clock_that_steps_back_does_not(self, now, seconds):
        assert current_age(7.0, received=100.0, now=now) == seconds


class TestExplicitLifetime:
    """Sections 4.2.1 and 5.3."""

    @pytest.mark.parametrize(
        ("directives", "expires", "seconds"),
        [
            ({}, [], None),
            ({"max-age": "60"}, [], 60),
            ({"max-age": "0"}, [date(3600)], 0),
            ({"max-age": "60"}, [date(-60)], 60),
            ({"max-age": "60"}, ["0"], 60),
            ({"max-age": "abc"}, [date(3600)], 0),
            ({"max-age": None}, [], 0),
            ({"max-age": "99999999999"}, [], 2147483648),
            ({"s-maxage": "60"}, [], None),
            ({}, [date(60)], 60),
            ({}, [date(0)], 0),
            ({}, [date(-60)], 0),
            ({}, ["0"], 0),
            ({}, ["-1"], 0),
            ({}, [""], 0),
            ({}, ["Thu, 99 Foo"], 0),
            ({}, [date(60), date(60)], 0),
            ({}, ["Fri, 31 Dec 9999 23:59:59 GMT"], 2147483648),
        ],
    )
    def test_max_age_then_expires_and_what_is_unreadable_is_stale(self, directives, expires, seconds):
        assert explicit_lifetime(directives, expires, NOW) == seconds


class TestHeuristicLifetime:
    """Section 4.2.2."""

    @pytest.mark.parametrize(
        ("changed", "seconds"),
        [([date(-1000)], 100), ([], 0), (["foo"], 0), ([date(60)], 0), ([date(-100 * DAY)], DAY)],
    )
    def test_a_tenth_of_the_time_since_the_last_change_and_at_most_a_day(self, changed, seconds):
        assert heuristic_lifetime(changed, NOW, fraction=0.1, cap=DAY) == seconds

    def test_only_some_statuses_or_public_may_be_guessed_about(self):
        allowed = {status for status in range(200, 600) if may_guess(status, {})}
        assert allowed == {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}
        assert may_guess(599, {"public": None})


class TestBoundary:
    def test_a_response_is_fresh_while_its_age_is_below_its_lifetime(self):
        """At its lifetime it is stale: section 4.2 says greater, not equal."""
        held = cached("max-age=60", ("Date", date()))
        assert isinstance(decide(ask(), held, "key", now=NOW + 59.9), Hit)
        assert not isinstance(decide(ask(), held, "key", now=NOW + 60), Hit)

    def test_a_date_one_day_ahead_does_not_lengthen_the_life(self):
        held = cached("max-age=60", ("Date", date(DAY)))
        assert isinstance(decide(ask(), held, "key", now=NOW + 59), Hit)
        assert not isinstance(decide(ask(), held, "key", now=NOW + 61), Hit)


# --- an oracle that knows nothing of the code: section 4.2 of the RFC, once more, for plain values ---

_WRONG = ["0", "-1", "", "soon", "Thu, 99 Foo"]
_OFFSET = st.integers(-200_000, 200_000)
_MAX_AGE = st.one_of(st.none(), st.integers(0, 10_000), st.sampled_from(["-5", "x", "1.5", "'60'"]))
_AGE = st.one_of(st.none(), st.integers(0, 10_000), st.sampled_from(["-5", "x", "7.5"]))
_WHEN = st.one_of(st.none(), _OFFSET, st.sampled_from(_WRONG))


def _expected_to_be_fresh(status, max_age, expires, made, changed, age, delay, elapsed):
    received = int(NOW)
    origin = received + made if isinstance(made, int) else received
    if max_age is not None:
        life = max_age if isinstance(max_age, int) else 0
    elif expires is not None:
        life = received + expires - origin if isinstance(expires, int) else 0
    elif status in (200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501) and isinstance(changed, int):
        life = min(0.1 * (origin - received - changed), DAY)
    else:
        life = 0
    apparent = max(0, received - origin)
    corrected = (age if isinstance(age, int) else 0) + delay
    return life > max(apparent, corrected) + max(0, elapsed)


def _text(value):
    return formatdate(NOW + value, usegmt=True) if isinstance(value, int) else value


class TestAgainstTheRfc:
    @given(
        st.sampled_from([200, 203, 302, 404, 500]),
        _MAX_AGE,
        _WHEN,
        _WHEN,
        _WHEN,
        _AGE,
        st.integers(0, 100),
        st.integers(-100, 20_000),
    )
    @example(200, None, 60, None, None, None, 0, 59)
    @example(200, None, None, 0, -1000, None, 0, 99)
    @example(302, None, None, 0, -1000, None, 0, 0)
    @settings(max_examples=500)
    def test_a_response_is_reused_exactly_while_it_is_fresh(
        self, status, max_age, expires, made, changed, age, delay, elapsed
    ):
        values = {
            "Cache-Control": None if max_age is None else f"max-age={max_age}",
            "Expires": _text(expires),
            "Date": _text(made),
            "Last-Modified": _text(changed),
            "Age": None if age is None else str(age),
        }
        fields = [(name, value) for name, value in values.items() if value is not None]
        held = entry(*fields, status=status, request_time=NOW - delay)
        expected = _expected_to_be_fresh(status, max_age, expires, made, changed, age, delay, elapsed)
        assert isinstance(decide(ask(), held, "key", now=NOW + elapsed), Hit) == expected

    def test_the_oracle_itself_reads_dates_as_the_calendar_does(self):
        assert calendar.timegm(time.strptime(_text(0), "%a, %d %b %Y %H:%M:%S GMT")) == NOW
