"""HTTP-dates as a cache reads them, RFC 9110, section 5.6.7."""

import calendar
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.dates import http_date, imf_fixdate

NEAR = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
AUGUST = 2_544_400_878.0  # Thu, 18 Aug 2050 02:01:18 GMT


class TestForms:
    @pytest.mark.parametrize(
        "text",
        [
            "Thu, 18 Aug 2050 02:01:18 GMT",
            "Thursday, 18-Aug-50 02:01:18 GMT",
            "Thu Aug 18 02:01:18 2050",
            "Thu, 18 AUG 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 gMT",
        ],
    )
    def test_all_three_in_any_case(self, text):
        assert http_date(text, near=NEAR) == AUGUST

    def test_a_single_digit_in_the_oldest_form_has_a_space_before_it(self):
        assert http_date("Sun Nov  6 08:49:37 1994", near=NEAR) == 784111777.0

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "0",
            "-1",
            "Thu, 99 Foo",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 2050 02:01:18 +0000",
            "Thu, 18 Aug 2050 02:01:18",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 31 Feb 2050 02:01:18 GMT",
            "Thu, 18 Foo 2050 02:01:18 GMT",
            "Thu, 18 Aug 0000 02:01:18 GMT",
            "Thu, 18 Aug 2050 25:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:61 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
            "Thu, ١٨ Aug 2050 02:01:18 GMT",
        ],
    )
    def test_nearly_a_date_is_none(self, text):
        assert http_date(text, near=NEAR) is None

    def test_a_leap_second_is_the_one_before_it(self):
        assert http_date("Sat, 31 Dec 2016 23:59:60 GMT", near=NEAR) == 1483228799.0

    def test_a_date_far_ahead_is_one(self):
        assert http_date("Sun, 21 Nov 2286 04:46:39 GMT", near=NEAR) == calendar.timegm((2286, 11, 21, 4, 46, 39))


class TestTwoDigits:
    @pytest.mark.parametrize(
        ("digits", "near", "year"),
        [("77", 2027, 2077), ("78", 2027, 1978), ("94", 2027, 1994), ("00", 2027, 2000), ("10", 2080, 2110)],
    )
    def test_a_year_is_at_most_fifty_years_ahead(self, digits, near, year):
        around = http_date(f"Fri, 01 Jan {near} 00:00:00 GMT", near=0.0)
        found = http_date(f"Sunday, 06-Nov-{digits} 08:49:37 GMT", near=around)
        assert found == http_date(f"Sun, 06 Nov {year} 08:49:37 GMT", near=0.0)

    def test_a_leap_day_is_one_only_in_a_leap_year(self):
        assert http_date("Tuesday, 29-Feb-00 00:00:00 GMT", near=NEAR) == 951782400.0
        assert http_date("Thursday, 29-Feb-01 00:00:00 GMT", near=NEAR) is None

    def test_a_clock_that_is_out_of_its_mind_raises_nothing(self):
        assert http_date("Sunday, 06-Nov-94 08:49:37 GMT", near=1e30) is None


class TestAnything:
    @given(st.text(max_size=40), st.floats(allow_nan=False, allow_infinity=False))
    def test_no_text_raises(self, text, near):
        http_date(text, near=near)

    @given(st.integers(-62_000_000_000, 253_000_000_000))
    def test_what_is_written_is_read(self, seconds):
        assert http_date(imf_fixdate(seconds), near=NEAR) == seconds

    @pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone cannot be changed here")
    def test_the_zone_of_the_machine_does_not_matter(self, monkeypatch):
        monkeypatch.setitem(os.environ, "TZ", "Pacific/Kiritimati")
        time.tzset()
        try:
            assert http_date("Sun Nov  6 08:49:38 1994", near=NEAR) == 784111778.0
            assert http_date("Sunday, 06-Nov-94 08:49:38 GMT", near=NEAR) == 784111778.0
        finally:
            monkeypatch.undo()
            time.tzset()
