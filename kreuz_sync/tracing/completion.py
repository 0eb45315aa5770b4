"""The log's line about an attempt that is over."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from .attributes import ERROR, METHOD, RESENT, RESPONSE_SIZE, STATUS, URL

_log = logging.getLogger("kreuz_sync.tracing")


def tell(
    before: dict[str, Any],
    came: dict[str, Any],
    seconds: float,
    *,
    whole: bool,
    within: Callable[[], contextlib.AbstractContextManager[object]],
) -> None:
    """Log, at INFO, how an attempt ended.

    before, came: the attributes of its span. whole: its body came to its end. within: makes its span the
    current one, by which handlers tell whose record it is. Never raises: a handler's trouble is not the caller's.
    """
    if not _log.isEnabledFor(logging.INFO):
        return
    size, outcome = came.get(RESPONSE_SIZE), came.get(STATUS) or came.get(ERROR)
    with contextlib.suppress(Exception), within():
        _log.info(
            "%s %s: %s, %s bytes in %.3f s",
            *(before[METHOD], before[URL], outcome, "?" if size is None else size, seconds),
            extra={
                "event": "attempt_complete" if whole else "attempt_ended",
                "method": before[METHOD],
                "url": before[URL],
                "status": came.get(STATUS),
                "body_size": size,
                "duration": seconds,
                "resend_count": before.get(RESENT, 0),
                "error_type": came.get(ERROR),
            },
        )
