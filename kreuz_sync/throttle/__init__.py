"""One pace per host: least delay, backoff after 429, crawl delay, pauses that servers ask for.

The way of a request: `layer.py` takes its turn from `turns.py`, where it may wait in its host's
`line.py`; when that turn comes, and what the answer changes, is worked out in `pace.py`. What an
answer declares is read by `declared.py`, and holds at a `gate.py`, the host's or that of one of its `buckets.py`.
"""

from .hosts import HostSettings
from .limiter import RateLimiter
from .local import Throttle, as_throttle
from .report import BucketReport, HostReport

__all__ = ["BucketReport", "HostReport", "HostSettings", "RateLimiter", "Throttle", "as_throttle"]
