"""Retry-After and HTTP-dates, RFC 9110, sections 10.2.3 and 5.6.7."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.fields import ENDLESS_S, http_date, retry_after

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


class TestDelaySeconds:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("0", 0.0),
            ("120", 120.0),
            (" 7\t", 7.0),
            ("2.5", 2.5),
            ("9999999999", 9999999999.0),
            ("9" * 5000, ENDLESS_S),
            ("-5", None),
            ("+5", None),
            ("1_0", None),
            ("²", None),
            ("٣", None),
            ("nan", None),
            ("inf", None),
            ("1e3", None),
            ("soon", None),
            ("", None),
            ("5, 10", None),
        ],
    )
    def test_only_plain_decimal_numbers_count(self, value, seconds):
        """What int() or float() would take beyond ASCII digits is malformed, and ignored."""
        assert retry_after({"Retry-After": value}, now=NOW) == seconds

    def test_absent_is_none(self):
        assert retry_after({}, now=NOW) is None


class TestDate:
    @pytest.mark.parametrize(
        "value", ["Sun, 06 Nov 1994 08:49:47 GMT", "Sunday, 06-Nov-94 08:49:47 GMT", "Sun Nov  6 08:49:47 1994"]
    )
    def test_all_three_forms_are_read_as_utc(self, value):
        """Ten seconds from now, whatever the machine's time zone."""
        assert retry_after({"Retry-After": value}, now=NOW) == 10.0

    def test_the_answers_own_date_is_the_reference(self):
        """A local clock one hour behind does not lengthen the wait."""
        fields = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:39 GMT"}
        assert retry_after(fields, now=NOW - 3600) == 2.0

    def test_a_time_that_has_passed_is_no_wait(self):
        assert retry_after({"Retry-After": "Sun, 06 Nov 1994 08:49:36 GMT"}, now=NOW) == 0.0

    @pytest.mark.parametrize("value", ["Thu, 99 Foo", "Sun, 06 Nov 1994 99:99:99 GMT", "0", "\x00", "é" * 30])
    def test_what_is_no_date_is_none(self, value):
        assert http_date(value) is None

    @given(st.text(max_size=80), st.text(max_size=80))
    def test_no_value_raises(self, after, date):
        """A server may send anything."""
        seconds = retry_after({"Retry-After": after, "Date": date}, now=NOW)
        assert seconds is None or seconds >= 0
