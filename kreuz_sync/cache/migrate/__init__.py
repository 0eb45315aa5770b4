"""Takes along what other caches stored: a SQLite file of requests-cache, or a folder of CacheControl.

What is stored goes by the rules of the cache that takes it, as if it had come just then, at the time when it came:
what may not be stored is not, and nor is what was asked for with credentials. Nothing is unpickled unless the user
says that the file can be trusted.
"""

from .cachecontrol import from_cachecontrol
from .requests_cache import from_requests_cache

__all__ = ["from_cachecontrol", "from_requests_cache"]
