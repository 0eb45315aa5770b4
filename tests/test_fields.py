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
            ("1.2000000000000002", 1.2000000000000002),
            ("2.0000000000", 2.0),
            ("0.1" + "0" * 5000, 0.1),
            ("00000000000000000005", 5.0),
            ("0" * 5000 + "7.25", 7.25),
            ("000", 0.0),
            ("00.5", 0.5),
            ("999999999999999", 999999999999999.0),
            ("1000000000000000", ENDLESS_S),
            ("1000000000000000.5", ENDLESS_S),
            ("9" * 5000, ENDLESS_S),
            (".5", None),
            ("5.", None),
            ("0" * 60_000 + "x", None),
            (".", None),
            ("0x5", None),
            ("1.5.5", None),
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
        assert http_date(value, near=NOW) is None

    @pytest.mark.parametrize(
        ("digits", "year"),
        [
            ("26", 2026),
            ("27", 2027),
            ("70", 2070),
            ("75", 2075),
            ("76", 2076),
            ("77", 1977),
            ("94", 1994),
            ("00", 2000),
        ],
    )
    def test_a_year_of_two_digits_is_at_most_50_years_ahead(self, digits, year):
        """RFC 9110, section 5.6.7; seen from the last of November 2026."""
        near = http_date("Mon, 30 Nov 2026 12:00:00 GMT", near=0.0)
        found = http_date(f"Friday, 06-Nov-{digits} 08:49:37 GMT", near=near)
        assert found == http_date(f"Fri, 06 Nov {year} 08:49:37 GMT", near=near)

    def test_the_50_years_are_counted_to_the_second(self):
        near = http_date("Mon, 30 Nov 2026 12:00:00 GMT", near=0.0)
        last, next_one = (f"Monday, 30-Nov-76 12:00:0{second} GMT" for second in (0, 1))
        assert http_date(last, near=near) == http_date("Mon, 30 Nov 2076 12:00:00 GMT", near=near)
        assert http_date(next_one, near=near) == http_date("Tue, 30 Nov 1976 12:00:01 GMT", near=near)

    @pytest.mark.parametrize("day", ["Tue, 29 Feb 2028", "Fri, 31 Dec 2027", "Sat, 01 Jan 2000"])
    def test_so_it_is_on_every_day(self, day):
        near = http_date(f"{day} 00:00:00 GMT", near=0.0)
        seconds = [http_date(f"Friday, 06-Nov-{year:02} 08:49:37 GMT", near=near) for year in range(100)]
        assert max(seconds) - near <= 50 * 366 * 86400
        assert min(seconds) - near >= -51 * 366 * 86400

    def test_a_day_that_its_century_does_not_have_is_none(self):
        assert http_date("Thursday, 29-Feb-01 00:00:00 GMT", near=NOW) is None
        assert http_date("Tuesday, 29-Feb-00 00:00:00 GMT", near=NOW) == 951782400.0
        assert http_date("Sunday, 06-Nov-94 08:49:37 GMT", near=1e30) is None

    def test_a_retry_after_of_that_form_lies_ahead(self):
        """Where another reading would say that it has passed."""
        near = http_date("Thu, 31 Dec 2068 23:59:58 GMT", near=0.0)
        assert retry_after({"Retry-After": "Tuesday, 01-Jan-69 00:00:08 GMT"}, now=near) == 10.0

    @given(st.text(max_size=80), st.text(max_size=80))
    def test_no_value_raises(self, after, date):
        """A server may send anything."""
        seconds = retry_after({"Retry-After": after, "Date": date}, now=NOW)
        assert seconds is None or seconds >= 0
