"""Layer 5: send again what may be sent again.

`Retry` is the setting; the adapter it makes sends a request, looks at what came of it, and
waits and repeats as `backoff.py` says. Every attempt goes through the layers below, so it
waits its host's turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from random import random
from typing import Any

import requests
import urllib3
from requests.adapters import BaseAdapter
from requests.utils import rewind_body

from kreuz_sync import checks, fork
from kreuz_sync.clock import SYSTEM_CLOCK, Clock, Pause
from kreuz_sync.errors import SessionClosed, classify
from kreuz_sync.fields import retry_after
from kreuz_sync.settings import Setting
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.urls import host_of

from .backoff import IDEMPOTENT_METHODS, RETRY_STATUSES, Repeat, after_error, delay
from .budget import RetryBudget
from .discard import discard
from .run import Outcome, Run

_log = logging.getLogger("kreuz_sync.retry")


def draw() -> float:
    """A random number of 0 to 1."""
    return random()  # a function of this module pickles; the generator's method takes its state along


class Retry(Setting):
    """What to send again, and how long to wait first. Called with an adapter, it makes the layer.

    attempts: sends after the first. base, cap: before retry n, counted from 0, the wait is
    `base` * 2**n seconds, at most `cap`. jitter: None for exactly that, "full" for a random
    share of it, so that callers that failed together do not come back together.

    statuses: the answers that are repeated, and no others, whatever fields they have. methods:
    the requests that may be: a server may have acted on one before it failed, so by default
    the idempotent ones (RFC 9110, section 9.2.2); add "POST" where twice does no harm. A request
    of which nothing was sent (no address, no connection) is repeated whatever its method.

    Also repeated are time-outs, broken connections and bodies that broke off, as long as the
    body was not handed over as a stream. Never repeated are challenge pages, untrusted
    certificates, this session's own refusals, and requests whose body cannot be rewound.

    respect_retry_after: wait at least as long as the answer's Retry-After says. max_retry_after:
    seconds; for an answer that asks for more there is no retry at all; None for no limit. budget:
    retries per call that a host gets in the long run, on top of a generous start (0.2: one for
    every five calls), or a `RetryBudget`; None for no budget. clock, draw: where time and random
    numbers of 0 to 1 come from.

    When the retries are used up the last answer is returned, or the last error raised, with
    `attempts` and `earlier`; `retry_skipped` says why one that could have been repeated was not.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = (
        *("attempts", "base", "cap", "jitter", "statuses", "methods"),
        *("max_retry_after", "respect_retry_after", "budget"),
    )
    attempts: int
    base: float
    cap: float
    jitter: str | None
    statuses: frozenset[int]
    methods: frozenset[str]
    max_retry_after: float | None
    respect_retry_after: bool
    budget: RetryBudget | None
    clock: Clock
    draw: Callable[[], float]

    def __init__(
        self,
        attempts: int = 3,
        *,
        base: float = 0.1,
        cap: float = 60.0,
        jitter: str | None = None,
        statuses: Iterable[int] = RETRY_STATUSES,
        methods: Iterable[str] = IDEMPOTENT_METHODS,
        max_retry_after: float | None = 60.0,
        respect_retry_after: bool = True,
        budget: float | RetryBudget | None = 0.2,
        clock: Clock = SYSTEM_CLOCK,
        draw: Callable[[], float] = draw,
    ) -> None:
        self._fix(
            attempts=checks.count("attempts", attempts),
            base=checks.seconds("base", base),
            cap=checks.seconds("cap", cap),
            jitter=checks.one_of("jitter", jitter, (None, "full")),
            statuses=checks.statuses("statuses", statuses),
            methods=frozenset(checks.token("methods", name).upper() for name in checks.texts("methods", methods)),
            max_retry_after=None if max_retry_after is None else checks.seconds("max_retry_after", max_retry_after),
            respect_retry_after=checks.flag("respect_retry_after", respect_retry_after),
            budget=_budget(budget, clock),
            clock=checks.clock("clock", clock),
            draw=checks.function("draw", draw),
        )

    def __call__(self, inner: BaseAdapter) -> RetryAdapter:
        return RetryAdapter(self, inner)

    def delay(self, retry: int) -> float:
        """Seconds before retry number `retry`, counted from 0, where the server asks for nothing."""
        return delay(retry, base=self.base, cap=self.cap, draw=self.draw() if self.jitter else 1.0)

    def asked(self, outcome: Outcome) -> float:
        """Seconds that the answer's Retry-After asks for; 0 if nothing does."""
        if not self.respect_retry_after or not isinstance(outcome, requests.Response):
            return 0.0
        return retry_after(outcome.headers, now=self.clock.wall()) or 0.0


class RetryAdapter(LayerAdapter):
    """Send a request until it succeeds, may not be repeated, or was repeated often enough."""

    def __init__(self, retry: Retry, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.retry = retry
        self._pause = Pause(retry.clock)
        fork.renew_in_child(self)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        run = Run(request)
        run.call.heeds_retry_after = self.retry.respect_retry_after
        if self.retry.budget is not None:
            self.retry.budget.earn(request.url or "")
        while True:
            try:
                response = self.inner.send(request, **options)
            except requests.RequestException as error:
                why = run.refused(error)
                if why is not None:
                    return self._given_back(run, error, why)
                if not self._goes_on(run, error):
                    raise
            else:
                why = run.refused(response)
                if why is not None:
                    return self._given_back(run, response, why)
                # A double that only looks like a response passes as it is.
                if not isinstance(response, requests.Response) or not self._goes_on(run, response):
                    return response
            # Only now: the answer has been let go, its connection serves others meanwhile.
            self._wait(run)

    def close(self) -> None:
        """Wake whoever waits for a retry, with SessionClosed, and close the layers below."""
        self._pause.wake()
        super().close()

    def after_fork(self) -> None:
        """In a child the parent's lock may be held by a thread that is not there."""
        self._pause = Pause(self.retry.clock)

    def _goes_on(self, run: Run, outcome: Outcome) -> bool:
        """Whether another attempt follows. If so `outcome` is let go; if not it says what came before."""
        repeat = self._repeat(outcome)
        if repeat is Repeat.NEVER or len(run.earlier) >= self.retry.attempts:
            run.mark(outcome)
            return False
        asked = self.retry.asked(outcome)
        wait = max(self.retry.delay(len(run.earlier)), asked)
        objection = self._objection(run, outcome, repeat, asked, wait)
        if objection is not None:
            run.mark(outcome, objection)
            if _log.isEnabledFor(logging.DEBUG):
                tag = classify(outcome)
                _log.debug("%s: %s; not repeated: %s", run, tag, objection, extra=run.told("retry_skipped", tag=tag))
            return False
        run.wait = wait
        run.keep(outcome)
        if _log.isEnabledFor(logging.DEBUG):
            tag, retry = run.earlier[-1].tag, len(run.earlier)
            _log.debug(
                "%s: %s; retry %d of %d in %.3f s",
                *(run, tag, retry, self.retry.attempts, wait),
                extra=run.told("retry", tag=tag, retry=retry, seconds=wait),
            )
        answer = outcome if isinstance(outcome, requests.Response) else outcome.response
        if answer is not None:  # an answer of 400 or more is false
            discard(answer, self.retry.clock)
        return True

    def _given_back(self, run: Run, refusal: Outcome, why: str) -> requests.Response:
        """What was to be repeated, where a layer further in does not send the repeat. Raises it if it is an error."""
        if _log.isEnabledFor(logging.DEBUG):
            tag = run.earlier[-1].tag
            _log.debug("%s: %s; not repeated: %s", run, tag, why, extra=run.told("retry_skipped", tag=tag))
        last = run.give_back(refusal, why)
        if isinstance(last, requests.Response):
            return last
        try:
            raise last
        finally:
            del last, refusal  # else the error holds the frame that holds it

    def _repeat(self, outcome: Outcome) -> Repeat:
        if isinstance(outcome, requests.Response):
            if getattr(outcome, "from_rate_limit", False):  # no server's word: a window ends when it ends
                return Repeat.NEVER
            return Repeat.IF_IDEMPOTENT if outcome.status_code in self.retry.statuses else Repeat.NEVER
        return after_error(outcome)

    def _objection(self, run: Run, outcome: Outcome, repeat: Repeat, asked: float, wait: float) -> str | None:
        """Why what may be repeated as such is not; None if it is. Takes a token of the budget if so."""
        retry, request, left = self.retry, run.request, run.call.left_to_repeat()
        method, url = (request.method or "").upper(), request.url or ""
        if getattr(outcome, "waf", None) is not None:
            return "the answer is a challenge page"
        if repeat is Repeat.IF_IDEMPOTENT and method not in retry.methods:
            return f"the server may have acted on this {method}, which Retry(methods=...) does not name"
        if retry.max_retry_after is not None and asked > retry.max_retry_after:
            return f"Retry-After asks for {asked:.0f} s, more than max_retry_after={retry.max_retry_after:g}"
        if left is not None and wait >= left:
            own = run.call.left()
            end = "deadline" if own is not None and own <= left else "end of the budget's time"
            return f"the next attempt is {wait:.3g} s away, and the {end} {max(left, 0.0):.3g} s"
        if not _rewound(request):
            return "its body cannot be sent a second time"
        if retry.budget is not None and not retry.budget.spend(url):
            return f"the retry budget of {host_of(url)} is used up"
        return None

    def _wait(self, run: Run) -> None:
        started = self.retry.clock.monotonic()
        try:
            (run.call.helper or self._pause).sleep(run.wait)
        except SessionClosed as error:
            error.request = run.request
            run.mark(error)
            raise
        finally:
            run.call.has_waited("retry", self.retry.clock.monotonic() - started)


def _rewound(request: requests.PreparedRequest) -> bool:
    """Put the body back to where it began; False if it is gone with the first attempt."""
    body: Any = request.body
    if body is None or isinstance(body, (bytes, str)):
        return True
    try:
        rewind_body(request)
    except (requests.exceptions.UnrewindableBodyError, ValueError):  # a closed file
        return False
    return True


def _budget(value: Any, clock: Clock) -> RetryBudget | None:
    if value is None or isinstance(value, RetryBudget):
        return value
    return RetryBudget(checks.number("budget", value), clock=clock)


def without_own_retries(adapter: BaseAdapter) -> None:
    """Take from `adapter` the retries that urllib3 makes in it: one loop inside another multiplies.

    Does nothing to an adapter that makes none.
    """
    own = getattr(adapter, "max_retries", None)
    # total: None is no limit but the others, False is 0.
    if not isinstance(own, urllib3.Retry) or (own.total is not None and own.total <= 0):
        return
    adapter.max_retries = urllib3.Retry(0, read=False)  # type: ignore[attr-defined]  # requests' own default
    name = type(adapter).__name__
    _log.warning(
        "%s: its max_retries is set to 0, since the session's own retry takes its place",
        name,
        extra={"event": "own_retries_off", "adapter": name},
    )
