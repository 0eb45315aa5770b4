"""The measurements, and the buckets that they are counted in."""

from __future__ import annotations

from typing import Any

from .attributes import SERVER

# What the semantic conventions advise for `http.client.request.duration`, in seconds.
DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
# A host may be asked for once in five minutes, and a server may ask to be left alone for longer.
WAIT_BUCKETS = (*DURATION_BUCKETS, 30, 60, 120, 300, 600)
ATTEMPT_BUCKETS = (0, 1, 2, 3, 4, 5, 7, 10, 20)

VENDOR, RESULT = "kreuz_sync.waf.vendor", "kreuz_sync.cache.result"
# What a call waits for, and how that is told.
WAITS = {
    "throttle": "for its host's turn",
    "ratelimit": "for the next window of a rate limit",
    "retry": "before it is repeated",
    "robots": "for robots.txt",
}


class Meters:
    """The instruments of one meter. with_hosts: whether our own measurements name the host; that can be many."""

    __slots__ = ("attempts", "blocked", "cache", "duration", "refused", "waits", "with_hosts")

    def __init__(self, meter: Any, *, with_hosts: bool) -> None:
        self.with_hosts = with_hosts
        self.duration = _histogram(
            meter, "http.client.request.duration", "s", "Duration of HTTP client requests.", DURATION_BUCKETS
        )
        self.waits = {
            kind: _histogram(meter, f"kreuz_sync.{kind}.wait", "s", f"Time that a request waits {what}.", WAIT_BUCKETS)
            for kind, what in WAITS.items()
        }
        self.attempts = _histogram(
            meter, "kreuz_sync.attempts", "{attempt}", "Attempts on the wire that a call takes.", ATTEMPT_BUCKETS
        )
        self.cache = meter.create_counter("kreuz_sync.cache.requests", "{request}", "What the cache did for a request.")
        self.refused = meter.create_counter(
            "kreuz_sync.robots.refused", "{request}", "Requests not allowed by robots.txt."
        )
        self.blocked = meter.create_counter("kreuz_sync.waf.blocked", "{response}", "Challenge pages of firewalls.")

    def of(self, host: str, **said: Any) -> dict[str, Any]:
        """The attributes of a measurement of ours."""
        return {**said, SERVER: host} if self.with_hosts else said


def _histogram(meter: Any, name: str, unit: str, description: str, buckets: tuple[float, ...]) -> Any:
    try:
        return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=list(buckets))
    except TypeError:  # before opentelemetry-api 1.30: the program configures the buckets, in a view
        return meter.create_histogram(name, unit, description)
