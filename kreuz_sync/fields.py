"""Header fields that tell a client when to come back, read into seconds.

Pure: the moment of receipt is an argument. RFC 9110, sections 5.6.7 and 10.2.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

# ASCII digits only: str.isdigit and int() take far more. Decimals exist in the wild, as many as a float prints.
_DELAY = re.compile(r"([0-9]+)(\.[0-9]+)?")
_MOST_DIGITS = 15  # before the point; more than any clock has: a wait without end, kept finite
_DECIMALS = 20  # with the point; more than a float can tell apart
ENDLESS_S = 1e15
_DATE = re.compile(r"[A-Za-z0-9 ,:+\-]{1,64}")
_RFC_850 = re.compile(r"[A-Za-z]+, *[0-9]{1,2}-[A-Za-z]{3}-[0-9]{2} .*")  # its year has two digits
_CENTURY = 50  # years ahead of which such a year is taken to be one that has passed


def text(fields: Mapping[str, Any], name: str) -> str:
    """The value of the field `name` as text, "" if it is absent.

    On the wire it is text always; adapters and test doubles also put in numbers, bytes and None.
    """
    value = fields.get(name)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def retry_after(fields: Mapping[str, str], *, now: float) -> float | None:
    """Seconds until the time in Retry-After; None if the field is absent or malformed.

    `now` is the wall clock at receipt, Unix seconds. A date is compared with the answer's own
    Date field where there is one, so that a wrong local clock does not matter. A date that
    has passed gives 0.

    >>> retry_after({"Retry-After": "120"}, now=0.0)
    120.0
    >>> dates = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:39 GMT"}
    >>> retry_after(dates, now=0.0)
    2.0
    """
    value = text(fields, "Retry-After").strip(" \t")
    delay = _DELAY.fullmatch(value)
    if delay is not None:
        whole, decimals = delay[1].lstrip("0"), (delay[2] or "")[:_DECIMALS]
        return ENDLESS_S if len(whole) > _MOST_DIGITS else float(f"{whole or 0}{decimals}")
    when = http_date(value, near=now)
    if when is None:
        return None
    reference = http_date(text(fields, "Date"), near=now)
    if reference is None:
        reference = now
    return max(0.0, when - reference)


def http_date(value: str, *, near: float) -> float | None:
    """Unix seconds of an HTTP-date in any of its three forms; None if it is none of them.

    near: about now, Unix seconds. A year of two digits is the last one with these digits that lies no
    more than 50 years after it.
    """
    found = _parsed(value) if _DATE.fullmatch(value) else None
    return _in_century(found, near) if isinstance(found, datetime) else found


# All answers of a second have the same Date, and to read one takes 10 us.
@lru_cache(maxsize=64)
def _parsed(value: str) -> float | datetime | None:
    """The seconds; a moment in any century where the date does not say which."""
    try:
        when = parsedate_to_datetime(value)
        if when.tzinfo is None:  # asctime says no zone, and means UTC (RFC 9110, section 5.6.7)
            when = when.replace(tzinfo=timezone.utc)
        return when if _RFC_850.fullmatch(value) else when.timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _in_century(found: datetime, near: float) -> float | None:
    try:
        latest = _years_later(datetime.fromtimestamp(near, timezone.utc), _CENTURY)
        moved = found.replace(year=latest.year - (latest.year - found.year) % 100)
        return (moved if moved <= latest else moved.replace(year=moved.year - 100)).timestamp()
    except (ValueError, OverflowError, OSError):  # a year that no calendar has, or one without that day
        return None


def _years_later(moment: datetime, years: int) -> datetime:
    day = 28 if (moment.month, moment.day) == (2, 29) else moment.day
    return moment.replace(year=moment.year + years, day=day)
