"""One pace per host: least delay, backoff after 429, crawl delay, pauses that servers ask for.

The way of a request: `layer.py` takes its turn from `turns.py`, where it may wait in its host's
`line.py`; when that turn comes, and what the answer changes, is worked out in `pace.py`.
"""

from .hosts import HostSettings
from .limiter import RateLimiter
from .local import Throttle, as_throttle
from .report import HostReport

__all__ = ["HostReport", "HostSettings", "RateLimiter", "Throttle", "as_throttle"]
