"""What may be repeated, how long to wait first, and what a host's budget of retries holds.

Arithmetic and a table: the moment, the random draw and the outcome come in as arguments.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from requests import exceptions as theirs

from kreuz_sync.errors import (
    ConnectionFailed,
    ConnectionRefused,
    ConnectTimeout,
    DataLoss,
    DnsError,
    KreuzError,
    ReadTimeout,
    SslError,
    UndecodableBody,
    UploadFailed,
)

# RFC 9110, section 9.2.2: repeating these has the effect of sending them once.
IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})

# "Not now" in its usual forms. 501 and 505 say "never".
RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})

_MOST_DOUBLINGS = 1023  # 2.0 ** 1024 is no float


class Repeat(Enum):
    """Whether a request may be sent again after an outcome."""

    NEVER = "it would end the same way, or somebody decided against it"
    IF_IDEMPOTENT = "the server may have acted on it"
    ALWAYS = "nothing of it was sent"


# The most particular class of an error that stands here decides. Those of ours that do not
# are policy (a limit, a closed session), and certificates do not change within a minute.
_AFTER_ERROR: dict[type[BaseException], Repeat] = {
    KreuzError: Repeat.NEVER,
    ConnectionFailed: Repeat.IF_IDEMPOTENT,
    ConnectionRefused: Repeat.ALWAYS,
    ConnectTimeout: Repeat.ALWAYS,
    DnsError: Repeat.ALWAYS,
    SslError: Repeat.NEVER,
    UploadFailed: Repeat.NEVER,
    ReadTimeout: Repeat.IF_IDEMPOTENT,
    DataLoss: Repeat.IF_IDEMPOTENT,
    UndecodableBody: Repeat.NEVER,
    # From adapters that raise errors of their own, under which these classes lie.
    theirs.RequestException: Repeat.NEVER,
    theirs.ConnectionError: Repeat.IF_IDEMPOTENT,
    theirs.ConnectTimeout: Repeat.ALWAYS,
    theirs.SSLError: Repeat.NEVER,
    theirs.Timeout: Repeat.IF_IDEMPOTENT,
    theirs.ChunkedEncodingError: Repeat.IF_IDEMPOTENT,
}


def after_error(error: BaseException) -> Repeat:
    """Whether a request may be repeated after `error`.

    >>> after_error(ConnectionRefused())
    <Repeat.ALWAYS: 'nothing of it was sent'>
    """
    return next((_AFTER_ERROR[kind] for kind in type(error).__mro__ if kind in _AFTER_ERROR), Repeat.NEVER)


def delay(retry: int, *, base: float, cap: float, draw: float = 1.0) -> float:
    """Seconds to wait before a retry: `base` doubled `retry` times, at most `cap`, times `draw`.

    retry: counted from 0. draw: 1 for the exact delay, a random number of 0 to 1 for full
    jitter.

    >>> [delay(retry, base=0.5, cap=3.0) for retry in range(5)]
    [0.5, 1.0, 2.0, 3.0, 3.0]
    """
    # Full jitter scales the capped delay. Jitter added before the cap is cut off by it, and
    # then every client comes back in the same second.
    return draw * min(cap, base * 2.0 ** min(retry, _MOST_DOUBLINGS))


class Bucket(NamedTuple):
    """What one host's budget holds: `tokens`, each good for one retry, at monotonic second `at`."""

    tokens: float
    at: float


def refill(bucket: Bucket, *, now: float, per_second: float, most: float, earned: float = 0.0) -> Bucket:
    """`bucket` at `now`: with what time and `earned` added, at most `most`."""
    since = max(0.0, now - bucket.at)
    return Bucket(min(most, bucket.tokens + earned + since * per_second), now)
