"""When a quota is granted anew: a moment, a duration, and which of them a text means. Pure.

Servers write "reset" in five ways under the same names, and seldom say which.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Final

from kreuz_sync.fields import http_date

# How to read a plain number; GUESS goes by its size, which no two of these share in practice.
GUESS: Final = "guess"
DELTA: Final = "delta"  # seconds from now
EPOCH: Final = "epoch"  # Unix seconds
EPOCH_MS: Final = "epoch-ms"  # Unix milliseconds

LEAST_EPOCH = 1e9  # in the year 2001; as a delta, 32 years
LEAST_EPOCH_MS = 1e12
# Some servers' moments come up to a second early, and moments of whole seconds are cut off.
GRACE_S = 1.0

# With bounds, as int() and float() have none; and ASCII digits only.
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|s|m|h|d)){1,5}")
_PART = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2})"
    r"(?::(?P<second>[0-5][0-9])(?P<fraction>[.,][0-9]{1,9})?)?"
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3]):?(?P<minutes>[0-5][0-9]))?"
)


def seconds_until(value: str, *, server_now: float, kind: str = GUESS) -> float | None:
    """Seconds until the reset that `value` names, 0 or more; None if it names none.

    server_now: the moment of the answer by the server's own clock, Unix seconds. kind: how a plain
    number is to be read.

    >>> seconds_until("30", server_now=1_800_000_000.0), seconds_until("1m0.5s", server_now=1_800_000_000.0)
    (30.0, 60.5)
    >>> seconds_until("1800000030", server_now=1_800_000_000.0)
    31.0
    """
    if (read := number(value)) is not None:
        return _of_number(read, server_now, kind)
    if _DURATION.fullmatch(value):
        return sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(value))
    moment = rfc_3339(value)
    if moment is None:
        moment = http_date(value, near=server_now) if ":" in value else None
    return None if moment is None else _until(moment, server_now)


def number(value: str) -> float | None:
    """A number as servers write it, 0 or more and below 10**15; None for anything else.

    >>> number("598.0"), number("76;w=21600"), number("-1"), number("soon")
    (598.0, 76.0, None, None)
    """
    plain = value.partition(";")[0].strip(" \t")  # parameters may follow, such as the window
    return float(plain) if _NUMBER.fullmatch(plain) else None


def rfc_3339(value: str) -> float | None:
    """Unix seconds of a date such as 2026-05-23T10:00:00Z; UTC if it has no zone, and None if it is no date.

    >>> rfc_3339("1970-01-01T01:00+01:00")
    0.0
    """
    found = _RFC_3339.fullmatch(value)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found['date']}T{found['time']}:{found['second'] or '00'}")
        moment -= _offset(found)
        return moment.replace(tzinfo=timezone.utc).timestamp() + float(f"0.{(found['fraction'] or '.0')[1:]}")
    except (ValueError, OverflowError):
        return None


def _offset(found: re.Match[str]) -> timedelta:
    if not found["sign"]:
        return timedelta(0)
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return -offset if found["sign"] == "-" else offset


def _of_number(read: float, server_now: float, kind: str) -> float:
    if kind == EPOCH_MS or (kind == GUESS and read >= LEAST_EPOCH_MS):
        return _until(read / 1000, server_now)
    if kind == EPOCH or (kind == GUESS and read >= LEAST_EPOCH):
        return _until(read, server_now)
    return read


def _until(moment: float, server_now: float) -> float:
    return max(0.0, moment - server_now) + GRACE_S
