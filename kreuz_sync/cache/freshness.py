"""How old a stored response is and how long it is fresh: RFC 9111, section 4.2, as arithmetic.

Pure: every function takes field lines and times and gives numbers. All times are Unix seconds
of the wall clock, all durations seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dates import http_date
from .directives import LONGEST, delta_seconds
from .lines import Grouped

# Statuses that may be kept without any word about freshness (RFC 9110, section 15.1).
HEURISTICALLY_CACHEABLE = frozenset({200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501})


def age_value(lines: Sequence[str]) -> int:
    """Seconds in an Age field, given its lines; 0 if it is absent or invalid.

    The first member of a list counts, and one that is not plain digits makes the field void.
    RFC 9111, section 5.1.
    """
    if not lines:
        return 0
    return delta_seconds(lines[0].split(",", 1)[0].strip(" \t")) or 0


def date_value(lines: Sequence[str], *, received: float) -> float:
    """The moment in the Date field, given its lines; that of receipt if it is absent or invalid.

    RFC 9110, section 6.6.1.
    """
    if lines:
        date = http_date(lines[0].strip(" \t"), near=received)
        if date is not None:
            return date
    return received


def initial_age(*, age: int, date: float, request_time: float, response_time: float) -> float:
    """How old a response was when it came, in seconds. RFC 9111, section 4.2.3.

    The careful form: also a response without an Age is as old as its Date says. A clock that
    stepped back during the exchange adds nothing.
    """
    apparent_age = max(0.0, response_time - date)
    response_delay = max(0.0, response_time - request_time)
    return max(apparent_age, age + response_delay)


def current_age(initial: float, *, received: float, now: float) -> float:
    """How old a response is now, in seconds: `initial` and the time since it was received.

    A clock that stepped back since then adds nothing. RFC 9111, section 4.2.3.
    """
    return initial + (now - received if now > received else 0.0)


def explicit_lifetime(directives: Mapping[str, str | None], expires: Sequence[str], date: float) -> float | None:
    """Seconds for which the origin says a response is fresh; None if it says nothing.

    max-age counts even where Expires says otherwise (RFC 9111, section 5.3), and s-maxage is for
    shared caches. What is unreadable is stale: 0 (section 4.2.1). So are several Expires lines,
    since they may contradict each other.
    """
    if "max-age" in directives:
        return float(delta_seconds(directives["max-age"]) or 0)
    if not expires:
        return None
    end = http_date(expires[0].strip(" \t"), near=date) if len(expires) == 1 else None
    return 0.0 if end is None else min(max(0.0, end - date), float(LONGEST))


def heuristic_lifetime(last_modified: Sequence[str], date: float, *, fraction: float, cap: float) -> float:
    """Seconds for which a response may be taken for fresh though the origin says nothing about it.

    A `fraction` of the time it had not changed for, at most `cap` seconds; 0 without a usable
    Last-Modified, or one after its Date. RFC 9111, section 4.2.2.
    """
    changed = http_date(last_modified[0].strip(" \t"), near=date) if last_modified else None
    if changed is None:
        return 0.0
    return min(max(0.0, fraction * (date - changed)), cap)


def may_guess(status: int, directives: Mapping[str, str | None]) -> bool:
    """Whether `heuristic_lifetime` may be used for a response at all. RFC 9111, section 4.2.2."""
    return status in HEURISTICALLY_CACHEABLE or "public" in directives


def lifetime(
    status: int,
    directives: Mapping[str, str | None],
    fields: Grouped,
    date: float,
    *,
    fraction: float,
    cap: float,
) -> float:
    """Seconds after its origination for which a response is fresh. RFC 9111, section 4.2.1.

    fields: its field lines by name; those of Expires and Last-Modified matter.
    """
    explicit = explicit_lifetime(directives, fields.get("expires", ()), date)
    if explicit is not None:
        return explicit
    if not may_guess(status, directives):
        return 0.0
    return heuristic_lifetime(fields.get("last-modified", ()), date, fraction=fraction, cap=cap)
