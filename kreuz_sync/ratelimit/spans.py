"""When a window ends that outlives a process, a reboot, and a clock that is set. Pure: `now` is an argument.

The monotonic clock runs from the start of the machine, for all its processes alike, and nobody
can set it; so it decides, as long as the machine runs. After a restart it begins anew and says
nothing of a window that began before: there the wall clock decides, and may be wrong. It is
believed to the length of the window at most.
"""

from __future__ import annotations

from math import nextafter
from typing import NamedTuple

from .usage import time_until


class Now(NamedTuple):
    """A moment. boot: which start of the machine; the same text for all its processes. The rest: seconds."""

    boot: str
    monotonic: float
    wall: float


class Span(NamedTuple):
    """A window: how long it is, and its end, in seconds of the start `boot` and in Unix seconds."""

    boot: str
    end: float
    wall_end: float
    length: float


def begin(length: float, now: Now) -> Span | None:
    """A window of `length` seconds from `now` on; None if this clock cannot count it."""
    span = _span(length, length, now)
    return span if now.monotonic < span.end < float("inf") else None


def as_of(span: Span, now: Now) -> Span:
    """`span` by the monotonic clock as it runs now: itself, unless the machine was started anew since.

    Whoever gets another must put it in the place of the old one: the wall clock is asked once.
    """
    if span.boot == now.boot and span.end - now.monotonic <= span.length:
        return span
    # Either the name of the start has changed; or it is not known here, and the window begins in the future.
    return _span(min(span.wall_end - now.wall, span.length), span.length, now)


def time_left(span: Span, now: Now) -> float:
    """Seconds until a span as of `now` ends, see `time_until`; 0 or less if it is over, as it is at its very end."""
    return time_until(span.end, now.monotonic)


def _span(left: float, length: float, now: Now) -> Span:
    end = now.monotonic + left
    if end - now.monotonic > length:  # rounded up: the time left must not be more than the window
        end = nextafter(end, now.monotonic)
    return Span(now.boot, end, now.wall + left, length)
