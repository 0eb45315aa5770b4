"""The layer adapter: an attempt is counted, and sent only if there is room for it.

What is over a limit never reaches the wire, and what comes of it is no word of a server: an
answer of ours is marked `from_rate_limit`, so that the retry leaves it alone.
"""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import fork
from kreuz_sync.calls import current_call
from kreuz_sync.clock import Pause
from kreuz_sync.deadline import require_time
from kreuz_sync.errors import DeadlineExceeded, KreuzError, RateLimitExceeded, RateLimitUnavailable
from kreuz_sync.response import Response, adopt
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.urls import redact

from .answers import add_fields, note, too_many
from .flow import Decision, Outcome, decide
from .keys import by_host
from .setting import RateLimit
from .usage import PolicyUsage


class RateLimitAdapter(LayerAdapter):
    """The layer of a `RateLimit`."""

    def __init__(self, limit: RateLimit, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.limit = limit
        self._pause = Pause(limit.clock)
        fork.renew_in_child(self)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        decision = decide(self.limit, request, by_host)
        if decision.outcome is Outcome.LIMITED and self.limit.on_limit == "wait":
            decision = self._wait(decision, request)
        if not decision.passes:
            return self._refused(decision, request)
        try:
            response = adopt(self.inner.send(request, **options))
        except RateLimitExceeded as error:
            # A limit further in has no room. Where this one has no more either, both windows must have passed.
            if decision.policy is not None and not decision.policy.remaining:
                error.retry_after = max(error.retry_after or 0.0, decision.policy.reset_after)
            raise
        if decision.policy is not None and isinstance(response, Response):  # and no double that only looks like one
            note(response, decision.policy, self.limit.fields)
        return response

    def close(self) -> None:
        """Wake whoever waits for a window, with SessionClosed, and close the layers below."""
        self._pause.wake()
        super().close()

    def after_fork(self) -> None:
        """In a child the parent's lock may be held by a thread that is not there."""
        self._pause = Pause(self.limit.clock)

    # --- waiting ------------------------------------------------------------------------

    def _wait(self, decision: Decision, request: requests.PreparedRequest) -> Decision:
        """Sleep until the window is over and ask again, until something else than "over the limit" is said.

        Many may wait for one window, and each counts when it asks: those that find the next one
        full wait for that after it.
        """
        clock, call = self.limit.clock, current_call()
        came = clock.monotonic()
        try:
            while decision.outcome is Outcome.LIMITED and decision.policy is not None:
                self._check(decision.policy, request, waited=clock.monotonic() - came)
                (call.helper or self._pause).sleep(decision.policy.reset_after)
                decision = decide(self.limit, request, by_host)
        except KreuzError as error:
            error.request = request
            raise
        finally:
            call.has_waited("ratelimit", clock.monotonic() - came)
        return decision

    def _check(self, policy: PolicyUsage, request: requests.PreparedRequest, *, waited: float) -> None:
        """Raise before a wait that is in vain or too long."""
        call, wait, most = current_call(), policy.reset_after, self.limit.max_wait
        if policy.limit == 0:
            raise self._exceeded(policy, request, "it lets nothing through")
        if most is not None and waited + wait > most:
            raise self._exceeded(policy, request, f"its next window is {wait:.3g} s away, further than max_wait allows")
        if call.deadline is not None and wait >= require_time(call, request):
            raise DeadlineExceeded(
                f"rate limit {policy.name!r}: its next window is {wait:.3g} s away, beyond the call's deadline",
                deadline=call.seconds,
                retry_after=wait,
            )

    # --- refusing -----------------------------------------------------------------------

    def _refused(self, decision: Decision, request: requests.PreparedRequest) -> Response:
        policy, failure = decision.policy, decision.failure
        if policy is not None and self.limit.on_limit == "raise":
            raise self._exceeded(policy, request, f"its next window is {policy.reset_after:.3g} s away")
        if self.limit.response is not None:
            response = self._made(request, decision)
        elif policy is not None:
            response = too_many(request)
        else:
            raise RateLimitUnavailable(
                f"{_shown(request)}: rate limit {self.limit.name!r} cannot tell whether there is room: {failure}",
                policy=self.limit.name,
                code="" if failure is None else failure.code,
                request=request,
            ) from failure
        response.from_rate_limit = True
        if policy is not None:
            response.limited_by = policy
            add_fields(response, policy, self.limit.fields)
        return response

    def _made(self, request: requests.PreparedRequest, decision: Decision) -> Response:
        """What the user's own function answers."""
        assert self.limit.response is not None
        response = self.limit.response(request, decision.reason)
        if not isinstance(response, requests.Response):
            raise TypeError(f"response={self.limit.response!r} gave {response!r}: a requests.Response is wanted")
        if response.request is None:
            response.request = request
        if response.url is None:
            response.url = request.url or ""
        return adopt(response)

    def _exceeded(self, policy: PolicyUsage, request: requests.PreparedRequest, what: str) -> RateLimitExceeded:
        return RateLimitExceeded(
            f"{_shown(request)}: over the rate limit {policy.name!r} of {policy.limit} in {policy.window:g} s; {what}",
            policy=policy.name,
            limit=policy.limit,
            retry_after=policy.reset_after,
            as_of=self.limit.clock.wall(),
            request=request,
        )


def _shown(request: requests.PreparedRequest) -> str:
    return f"{request.method} {redact(request.url or '')}"
