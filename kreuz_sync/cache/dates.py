"""HTTP-dates, read the way a cache must: exactly, and whatever the machine's time zone. Pure.

An Expires that is nearly a date is one that has passed (RFC 9111, section 5.3), so nothing is guessed
here; a Retry-After gets more leniency in `kreuz_sync.fields`. RFC 9110, section 5.6.7.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from email.utils import formatdate
from functools import lru_cache

_MONTHS = {
    name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)
}
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_MONTH = r"(?P<month>[a-z]{3})"
# Names of days, months and the zone in any case: that much is harmless, and common.
_IMF_FIXDATE = re.compile(rf"[a-z]{{3}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} gmt", re.I | re.A)
_RFC_850 = re.compile(rf"[a-z]{{6,9}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} gmt", re.I | re.A)
_ASCTIME = re.compile(rf"[a-z]{{3}} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})", re.I | re.A)


def http_date(text: str, *, near: float) -> float | None:
    """Unix seconds of an HTTP-date in any of its three forms; None if it is none of them.

    near: about now, Unix seconds. A year of two digits is the last one with these digits that
    is at most 50 years after it.
    """
    found = _parse(text)
    if isinstance(found, datetime):
        return _in_century(found, near)
    return found


@lru_cache(maxsize=512)
def _parse(text: str) -> float | datetime | None:
    """The seconds; a datetime in the fifth century where the century is still to be found."""
    full = _IMF_FIXDATE.fullmatch(text) or _ASCTIME.fullmatch(text)
    date = full or _RFC_850.fullmatch(text)
    month = _MONTHS.get(date["month"].lower()) if date else None
    if date is None or month is None:
        return None
    try:
        # 400 was a leap year: a 29 February 00 must wait until its century is known.
        year = int(date["year"]) if full else 400 + int(date["year"])
        second = min(int(date["second"]), 59) if date["second"] == "60" else int(date["second"])
        found = datetime(
            year, month, int(date["day"]), int(date["hour"]), int(date["minute"]), second, tzinfo=timezone.utc
        )
    except ValueError:
        return None
    return found.timestamp() if full else found


def _in_century(found: datetime, near: float) -> float | None:
    try:
        latest = datetime.fromtimestamp(near, timezone.utc).year + 50
        return found.replace(year=latest - (latest - found.year) % 100).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def imf_fixdate(seconds: float) -> str:
    """The Date of a moment, Unix seconds."""
    return formatdate(seconds, usegmt=True)
