"""Layer 4: the HTTP cache. Answers are kept in a folder, Redis or memory, and given out again while they may be."""

from .counters import Statistics
from .disk import DiskStore
from .listing import CacheEntry
from .memory import MemoryStore
from .policy import Policy
from .redis import RedisCacheStore
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
    "RedisCacheStore",
    "Statistics",
    "StoreTrouble",
]
