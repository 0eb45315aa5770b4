"""The user's own rule for what is stored (`store_if`), which may fail."""

from __future__ import annotations

import logging
from collections.abc import Callable

import requests

from kreuz_sync.response import Response

StoreIf = Callable[[requests.PreparedRequest, Response], object]

_log = logging.getLogger("kreuz_sync.cache")


class Rule:
    """What `store_if` says. None for it lets everything be stored.

    What it raises is never the call's trouble: the answer is not stored, and the log gets one
    warning, and no further one until it has worked again. It is not told of by its text, which may
    hold a secret.
    """

    def __init__(self, store_if: StoreIf | None) -> None:
        self._store_if = store_if
        self._is_failing = False

    def allows(self, request: requests.PreparedRequest, response: Response) -> bool:
        """Whether `response` may be stored. Closes it, and raises, where that cannot be said to be the rule's doing.

        That is an interrupt, or a body that broke off while the rule read it: its reader has to know.
        """
        if self._store_if is None:
            return True
        try:
            is_wanted = bool(self._store_if(request, response))
        except Exception as error:
            if response._broke is not None:
                response.close()
                raise
            self._failed(error)
            return False
        except BaseException:
            response.close()
            raise
        self._is_failing = False
        return is_wanted

    def _failed(self, error: Exception) -> None:
        is_new, self._is_failing = not self._is_failing, True
        if is_new:
            _log.warning(
                "store_if raised %s%s: what it is asked about is not stored",
                *(type(error).__name__, _place_of(error)),
                extra={"event": "function_failure", "error_type": type(error).__name__},
            )


def _place_of(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" in {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
