"""What a throttle tells of one host."""

from __future__ import annotations

from typing import NamedTuple


class BucketReport(NamedTuple):
    """A part of a host that has a quota of its own, as the throttle knows it.

    name: in the server's words. paused: seconds that are left of its pause. pause_source: the header field
    that asked for it, in lower case, "" for none. remaining: requests left of its quota, None if unknown. reset:
    seconds until more are granted, None if unknown. waiting: requests in its line now.
    """

    name: str
    paused: float
    pause_source: str
    remaining: float | None
    reset: float | None
    waiting: int


class HostReport(NamedTuple):
    """One host as the throttle knows it.

    delay: seconds between two requests now. crawl_delay: seconds the host asks for itself.
    starts: requests started. limited: 429s and challenge pages received. backoffs: how often
    these raised the delay. waited: seconds that requests have waited, all together. paused:
    seconds that are left of a pause. waiting: requests in line now, those of its buckets too.
    pause_source: the header field that asked for the pause, in lower case, "" for none. remaining: requests
    left of the host's quota, None if unknown. reset: seconds until more are granted, None if
    unknown. buckets: parts of the host with quotas of their own, for which `paused`, `remaining`
    and `reset` of the host as a whole say nothing.
    """

    delay: float
    crawl_delay: float
    starts: int
    limited: int
    backoffs: int
    waited: float
    paused: float
    waiting: int
    pause_source: str = ""
    remaining: float | None = None
    reset: float | None = None
    buckets: tuple[BucketReport, ...] = ()
