"""Layer 4: the HTTP cache. Answers are kept in a folder or in memory, and given out again as long as they may be."""

from .counters import Statistics
from .disk import DiskStore
from .listing import CacheEntry
from .memory import MemoryStore
from .policy import Policy
from .setting import Cache
from .store import CacheStore, Record, StoreTrouble

__all__ = [
    "Cache",
    "CacheEntry",
    "CacheStore",
    "DiskStore",
    "MemoryStore",
    "Policy",
    "Record",
    "Statistics",
    "StoreTrouble",
]
