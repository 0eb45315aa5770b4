"""What the log tells of a rate limit's failures: of a store's outage once, of its return once, of a mistake once.

Each record carries, as `extra`, its event, policy_name, failure_mode and error_code, that of a failing store
the finer error_detail and error_type as well, and never a key or the text of an error, which may hold one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .failures import StoreUnavailable

if TYPE_CHECKING:
    from .setting import RateLimit

_log = logging.getLogger("kreuz_sync.ratelimit")
_OUT = "out"


class Outage:
    """What the log was told of one rate limit's store."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        # One step of a dict decides which of several threads is the first, without a lock that a
        # fork would have to make anew.
        self._told: dict[str, object] = {}

    def failed(self, limit: RateLimit, failure: StoreUnavailable) -> None:
        """Tell of a failure: at the limit's log level, but at DEBUG what follows in the same outage."""
        error_type = "" if failure.__cause__ is None else type(failure.__cause__).__name__
        told = {"error_detail": failure.detail, "error_type": error_type}
        _log.log(
            limit.log_level if self.is_new(_OUT) else logging.DEBUG,
            "rate limit %r: its store failed (%s); requests are treated by on_store_failure=%r",
            *(limit.name, ", ".join(filter(None, (failure.code, *told.values()))), limit.on_store_failure),
            extra={**_extra("store_failure", limit, failure.code), **told},
        )

    def is_new(self, what: str) -> bool:
        """Whether nobody was told of `what` before."""
        ours = object()
        return self._told.setdefault(what, ours) is ours

    @property
    def was_told(self) -> bool:
        """Whether an outage was told of, and its end not yet."""
        return _OUT in self._told

    def over(self, limit: RateLimit) -> None:
        """Tell that the store is back, unless another thread just did."""
        if self._told.pop(_OUT, None) is not None:
            _log.info("rate limit %r: its store is back", limit.name, extra=_extra("store_recovery", limit, ""))


def broken_function(limit: RateLimit, code: str, what: str) -> None:
    """Tell of a mistake in a user's function: it raised what it does not mean to raise, or gave what it may not give.

    What happens again is told at DEBUG: a stranger's request may bring it about, and must not fill the log.
    """
    _log.log(
        logging.ERROR if limit.outage.is_new(f"{code}: {what}") else logging.DEBUG,
        "rate limit %r: %s: %s; the request was refused",
        *(limit.name, code, what),
        extra=_extra("function_failure", limit, code),
    )


def place_of(error: BaseException) -> str:
    """Where `error` was raised, to go behind its name."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" in {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"


def _extra(event: str, limit: RateLimit, code: str) -> dict[str, str]:
    return {
        "event": event,
        "policy_name": limit.name,
        "failure_mode": limit.on_store_failure,
        "error_code": code,
    }
