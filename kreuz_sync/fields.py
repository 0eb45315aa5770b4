"""Header fields that tell a client when to come back, read into seconds.

Pure: the moment of receipt is an argument. RFC 9110, sections 5.6.7 and 10.2.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any

# ASCII digits only: str.isdigit and int() take far more. Decimals exist in the wild.
_DELAY = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
# More digits than any clock has: a wait without end, kept finite.
_ENDLESS = re.compile(r"[0-9]{16,}(?:\.[0-9]*)?")
ENDLESS_S = 1e15
_DATE = re.compile(r"[A-Za-z0-9 ,:+\-]{1,64}")


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
    if _DELAY.fullmatch(value):
        return float(value)
    if _ENDLESS.fullmatch(value):
        return ENDLESS_S
    when = http_date(value)
    if when is None:
        return None
    reference = http_date(text(fields, "Date"))
    if reference is None:
        reference = now
    return max(0.0, when - reference)


def http_date(value: str) -> float | None:
    """Unix seconds of an HTTP-date in any of its three forms; None if it is none of them."""
    if not _DATE.fullmatch(value):
        return None
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:  # asctime says no zone, and means UTC (RFC 9110, section 5.6.7)
        when = when.replace(tzinfo=timezone.utc)
    try:
        return when.timestamp()
    except (OverflowError, ValueError):
        return None
