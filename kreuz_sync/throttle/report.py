"""What a throttle tells of one host."""

from __future__ import annotations

from typing import NamedTuple


class HostReport(NamedTuple):
    """One host as the throttle knows it.

    delay: seconds between two requests now. crawl_delay: seconds the host asks for itself.
    starts: requests started. limited: 429s and challenge pages received. backoffs: how often
    these raised the delay. waited: seconds that requests have waited, all together. paused:
    seconds that are left of a pause. waiting: requests in line now.
    """

    delay: float
    crawl_delay: float
    starts: int
    limited: int
    backoffs: int
    waited: float
    paused: float
    waiting: int
