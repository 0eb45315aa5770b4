"""One host's circuit: what counts as a failure, when it opens, and when it may be tried again.

Arithmetic and a table: moments are seconds of one monotonic clock and come in as arguments.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import NamedTuple

from requests import exceptions as theirs

from kreuz_sync.errors import (
    BodyTooLarge,
    ConnectionFailed,
    DataLoss,
    DeadlineExceeded,
    KreuzError,
    ReadTimeout,
    RetriesExhausted,
    StatusError,
    UploadFailed,
)

# A deadline may leave an attempt no time to speak of. Only a silence of so many seconds is the host's.
SILENCE_S = 1.0


class Sign(Enum):
    """What an outcome says of the host."""

    ALIVE = "it answered"
    FAILED = "it could not be reached, or did not answer"
    NONE = "nothing: the request never reached it, or somebody called it off"


# The most particular class of an error that stands here decides. Those of ours that do not are
# this session's own doing: a wait, a limit, an interrupt.
_AFTER_ERROR: dict[type[BaseException], Sign] = {
    KreuzError: Sign.NONE,
    ConnectionFailed: Sign.FAILED,
    UploadFailed: Sign.NONE,
    ReadTimeout: Sign.FAILED,
    DataLoss: Sign.ALIVE,
    BodyTooLarge: Sign.ALIVE,
    RetriesExhausted: Sign.ALIVE,  # requests' word for too many answers of the same bad status
    StatusError: Sign.ALIVE,
    # From adapters that raise errors of their own, under which these classes lie.
    theirs.ConnectionError: Sign.FAILED,
    theirs.Timeout: Sign.FAILED,
    theirs.ChunkedEncodingError: Sign.ALIVE,
    theirs.ContentDecodingError: Sign.ALIVE,
    theirs.HTTPError: Sign.ALIVE,
    theirs.RetryError: Sign.ALIVE,
}


def after_error(error: BaseException) -> Sign:
    """What `error` says of the host that was asked.

    >>> after_error(ReadTimeout()).name, after_error(DataLoss()).name, after_error(KeyboardInterrupt()).name
    ('FAILED', 'ALIVE', 'NONE')
    """
    if isinstance(error, DeadlineExceeded):
        return Sign.FAILED if error.unanswered >= SILENCE_S else Sign.NONE
    return next((_AFTER_ERROR[kind] for kind in type(error).__mro__ if kind in _AFTER_ERROR), Sign.NONE)


class Rules(NamedTuple):
    """failures: in a row that open a circuit. recovery, max_recovery: seconds that it stays open, first and at most."""

    failures: int
    recovery: float
    max_recovery: float


class Circuit(NamedTuple):
    """What is known of a host that failed, and has not answered since.

    failures: in a row. last: the tag of the latest. recovery: seconds that it stays open this
    time, 0.0 while it is closed. ready: the moment from which it may be tried again.
    """

    failures: int = 0
    last: str = ""
    recovery: float = 0.0
    ready: float = -inf

    @property
    def is_open(self) -> bool:
        return self.recovery > 0


def failed(circuit: Circuit, tag: str, rules: Rules, *, now: float, probe: bool = False) -> Circuit:
    """`circuit` after one more failure. probe: of the one request that was to try it.

    Other requests that fail while it is open were sent before it opened: that says nothing new.
    """
    if circuit.is_open and not probe:
        return circuit
    failures = circuit.failures + 1
    if failures < rules.failures:
        return Circuit(failures, tag)
    recovery = min(2 * circuit.recovery, rules.max_recovery) if circuit.is_open else rules.recovery
    return Circuit(failures, tag, recovery, now + recovery)
