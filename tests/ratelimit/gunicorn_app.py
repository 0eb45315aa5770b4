"""What the tests' gunicorn serves: which worker answers, behind limits that all workers share.

REDIS_URL and NAMESPACE in the environment say where they count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import redis

from kreuz_sync.ratelimit import RateLimit
from kreuz_sync.ratelimit.redis import RedisStore
from kreuz_sync.ratelimit.wsgi import RateLimitMiddleware, TrustedProxies


def worker(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The process that answers."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


# Made once, before the workers are forked (--preload), or in each of them.
_client = redis.Redis.from_url(os.environ["REDIS_URL"])
_store = RedisStore(_client, namespace=os.environ["NAMESPACE"], timeout=5.0)
app = RateLimitMiddleware(
    worker,
    RateLimit("shared", limit=20, window=600, key=TrustedProxies(["127.0.0.0/8"]), store=_store),
    exempt_paths=["/worker"],
)
