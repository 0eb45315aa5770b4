"""A session's budget: so many requests, bytes and seconds, for all of it and for each host.

(How often a request may be *repeated* is another budget: `kreuz_sync.retry.RetryBudget`.)

`layer.py` asks before each attempt; `meter.py` counts the bytes of a body as they are read;
`ledger.py` keeps the accounts and their lock, `account.py` has the arithmetic of one.
"""

from .account import Spending
from .layer import BudgetAdapter
from .setting import Budget, HostBudget

__all__ = ["Budget", "BudgetAdapter", "HostBudget", "Spending"]
