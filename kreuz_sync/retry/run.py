"""One request on its way through the retry layer: what its attempts came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests

from kreuz_sync.calls import Attempt, current_call
from kreuz_sync.errors import BudgetExceeded, CircuitOpen, RateLimitExceeded, RateLimitUnavailable, classify
from kreuz_sync.response import adopt
from kreuz_sync.urls import redact

if TYPE_CHECKING:
    from kreuz_sync.ratelimit.usage import PolicyUsage

Outcome = requests.Response | requests.RequestException

# Errors by which a layer further in says that it does not send a request.
REFUSALS = (CircuitOpen, BudgetExceeded, RateLimitExceeded, RateLimitUnavailable)


class Run:
    """One request on its way through the layer. earlier: the attempts so far, all failed."""

    __slots__ = ("_before", "_last", "_sent", "call", "earlier", "request", "wait")

    def __init__(self, request: requests.PreparedRequest) -> None:
        self.request = request
        self.call = current_call()
        self.earlier: tuple[Attempt, ...] = ()
        self.wait = 0.0
        self.call.spent_at = None
        self._before = self._sent = self.call.attempts
        self._last: Outcome | None = None

    def keep(self, outcome: Outcome) -> None:
        """Note what is going to be repeated, and keep it: the repeat may be refused."""
        status = outcome.status_code if isinstance(outcome, requests.Response) else None
        self.earlier = (*self.earlier, Attempt(classify(outcome) or str(status), status, self.wait))
        self._last, self._sent = outcome, self.call.attempts

    def refused(self, outcome: Outcome) -> str | None:
        """Why the repeat was not sent, if `outcome` is this session's own refusal of it; None if it is not."""
        if self._last is None or self.call.attempts > self._sent:
            return None
        if isinstance(outcome, REFUSALS):
            return str(outcome)
        if not getattr(outcome, "from_rate_limit", False):
            return None
        limit: PolicyUsage | None = getattr(outcome, "limited_by", None)
        which = "a rate limit" if limit is None else f"the rate limit {limit.name!r}"
        return f"{which} has no room for another attempt"

    def give_back(self, refusal: Outcome, why: str) -> Outcome:
        """The outcome that was to be repeated. `refusal` where it was a stream, which has been let go."""
        last, self._last = self._last, None
        if last is None:
            return refusal
        if isinstance(last, requests.Response) and last._content is False:
            self.mark(refusal)
            if isinstance(refusal, requests.RequestException):
                refusal.response = last
            return refusal
        self.earlier = self.earlier[:-1]
        self.mark(last, why)
        return last

    def mark(self, outcome: Outcome, skipped: str | None = None) -> None:
        """Write onto the last outcome what came before it, and why it is the last."""
        self._last = None  # an error must not be held by the frame that it was raised in
        if isinstance(outcome, requests.Response):
            if not self.earlier and skipped is None:  # as nearly always
                return
            last: Any = adopt(outcome)
        else:
            last = outcome
            last.attempts = self.call.attempts - self._before
        last.earlier, last.retry_skipped = self.earlier, skipped

    def told(self, event: str, **more: Any) -> dict[str, Any]:
        """What a log record about it has besides its text."""
        return {"event": event, "method": self.request.method, "url": redact(self.request.url or ""), **more}

    def __str__(self) -> str:
        return f"{self.request.method} {redact(self.request.url or '')}"
