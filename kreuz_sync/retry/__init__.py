"""Layer 5: sending again what may be sent again.

`layer.py` sends, looks at what came of it, waits and repeats. What may be repeated and after
how long is worked out in `backoff.py`; `budget.py` keeps retries from becoming a storm,
`run.py` notes what came before, `discard.py` lets go of answers that nobody will read.
"""

from .backoff import IDEMPOTENT_METHODS, RETRY_STATUSES
from .budget import RetryBudget
from .layer import Retry, RetryAdapter, draw, without_own_retries

__all__ = [
    "IDEMPOTENT_METHODS",
    "RETRY_STATUSES",
    "Retry",
    "RetryAdapter",
    "RetryBudget",
    "draw",
    "without_own_retries",
]
