"""One account: what it allows, what has been spent of it, and what is left.

Pure arithmetic. Moments are seconds of one monotonic clock and come in as arguments.
"""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Requests on the wire, bytes of their bodies, seconds since the first. None is no limit."""

    requests: int | None = None
    bytes: int | None = None
    seconds: float | None = None


class Spending(NamedTuple):
    """Requests, bytes and seconds: what was used, or what is left.

    None is what has no limit and so is never used up. Of what was used, only `bytes` may be None: they are
    not counted where no limit is one of bytes.
    """

    requests: int | None
    bytes: int | None
    seconds: float | None


class Over(NamedTuple):
    """A limit that is used up. what: "requests", "bytes" or "seconds". host: whose; None for the session's."""

    what: str
    limit: float
    used: float
    host: str | None

    def __str__(self) -> str:
        return _TEXTS[self.what].format(limit=self.limit, used=self.used)


_TEXTS = {
    "requests": "no request is left of the budget of {limit}",
    "bytes": "of the budget of {limit} bytes, {used} have been received",
    "seconds": "the budget of {limit:g} s is over, {used:.3g} s after the first request",
}


class Account:
    """What one host, or the whole session, may spend and has spent.

    host: None for the session. requests, bytes: so far. started: when the first request was
    entered, None before.
    """

    __slots__ = ("bytes", "host", "limits", "requests", "started")

    def __init__(self, limits: Limits, host: str | None = None) -> None:
        self.limits = limits
        self.host = host
        self.requests = 0
        self.bytes = 0
        self.started: float | None = None

    def refusal(self, now: float) -> Over | None:
        """Why no further request may be entered; None if one may."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return Over("requests", limits.requests, self.requests, self.host)
        if limits.bytes is not None and self.bytes >= limits.bytes:
            return self.received()
        if limits.seconds is not None and self.elapsed(now) >= limits.seconds:
            return self.late(now)
        return None

    def late(self, now: float) -> Over:
        """That its time is over."""
        return Over("seconds", self.limits.seconds or 0.0, self.elapsed(now), self.host)

    def enter(self, now: float) -> None:
        """Count a request."""
        self.requests += 1
        if self.started is None:
            self.started = now

    def correct(self, requests: int) -> None:
        """Count so many requests more, or less: one that was never sent is none."""
        self.requests += requests
        if self.requests <= 0:
            self.started = None

    def receive(self, size: int) -> Over | None:
        """Count bytes; says so if these are more than were left."""
        self.bytes += size
        return self.received() if self.limits.bytes is not None and self.bytes > self.limits.bytes else None

    def received(self) -> Over:
        """What has been received of the bytes that it may have."""
        return Over("bytes", self.limits.bytes or 0, self.bytes, self.host)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more are allowed."""
        return self.limits.bytes is None or self.bytes + size <= self.limits.bytes

    def elapsed(self, now: float) -> float:
        """Seconds since the first request; 0 before it."""
        return 0.0 if self.started is None else now - self.started

    def time_left(self, now: float) -> float | None:
        """Seconds, negative when they are over; None for no limit."""
        return None if self.limits.seconds is None else self.limits.seconds - self.elapsed(now)

    def used(self, now: float) -> Spending:
        return Spending(self.requests, self.bytes, self.elapsed(now))

    def left(self, now: float) -> Spending:
        requests, size = self.limits.requests, self.limits.bytes
        seconds = self.time_left(now)
        return Spending(
            requests=None if requests is None else max(0, requests - self.requests),
            bytes=None if size is None else max(0, size - self.bytes),
            seconds=None if seconds is None else max(0.0, seconds),
        )
