"""One request on its way through the retry layer: what its attempts came to."""

from __future__ import annotations

from typing import Any

import requests

from kreuz_sync.calls import Attempt, current_call
from kreuz_sync.errors import classify
from kreuz_sync.response import adopt
from kreuz_sync.urls import redact

Outcome = requests.Response | requests.RequestException


class Run:
    """One request on its way through the layer. earlier: the attempts so far, all failed."""

    __slots__ = ("_before", "call", "earlier", "request", "wait")

    def __init__(self, request: requests.PreparedRequest) -> None:
        self.request = request
        self.call = current_call()
        self.earlier: tuple[Attempt, ...] = ()
        self.wait = 0.0
        self._before = self.call.attempts

    def keep(self, outcome: Outcome) -> None:
        """Note what is going to be repeated."""
        status = outcome.status_code if isinstance(outcome, requests.Response) else None
        self.earlier = (*self.earlier, Attempt(classify(outcome) or str(status), status, self.wait))

    def mark(self, outcome: Outcome, skipped: str | None = None) -> None:
        """Write onto the last outcome what came before it, and why it is the last."""
        if isinstance(outcome, requests.Response):
            if not self.earlier and skipped is None:  # as nearly always
                return
            last: Any = adopt(outcome)
        else:
            last = outcome
            last.attempts = self.call.attempts - self._before
        last.earlier, last.retry_skipped = self.earlier, skipped

    def __str__(self) -> str:
        return f"{self.request.method} {redact(self.request.url or '')}"
