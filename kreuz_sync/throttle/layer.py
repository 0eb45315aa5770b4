"""The layer adapters: an attempt waits its host's turn, and the limiter learns how it went."""

from __future__ import annotations

import weakref
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import body
from kreuz_sync.calls import current_call
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.deadline import require_time
from kreuz_sync.errors import ConnectionFailed, DeadlineExceeded, KreuzError, UploadFailed
from kreuz_sync.response import Response, adopt
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.urls import host_of

from .declared import declared, is_silent
from .pace import TOO_MANY

if TYPE_CHECKING:
    from .limiter import RateLimiter
    from .local import Throttle
    from .turn import Turn
    from .verdict import Declared


class LimiterAdapter(LayerAdapter):
    """The layer of any `RateLimiter`: calls its three documented methods, and nothing else."""

    def __init__(self, inner: BaseAdapter, limiter: RateLimiter) -> None:
        super().__init__(inner)
        self.limiter = limiter

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        host = host_of(request.url or "")
        if host:
            call = current_call()
            if call.deadline is not None:
                require_time(call, request)
            came = SYSTEM_CLOCK.monotonic()
            if call.helper is None:
                self.limiter.acquire(host)
            else:
                call.helper.wait(partial(self.limiter.acquire, host))
                call.helper.had_turn()
            call.has_waited("throttle", SYSTEM_CLOCK.monotonic() - came)
        response = adopt(self.inner.send(request, **options))
        if host and isinstance(response, Response):  # and no double that only looks like one
            self.limiter.record_response(host, _status(response))
        return response


class ThrottleAdapter(LayerAdapter):
    """The layer of a `Throttle`."""

    def __init__(self, inner: BaseAdapter, throttle: Throttle) -> None:
        super().__init__(inner)
        self.throttle = throttle
        self.turns = throttle.turns

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        host = self.throttle.host_of(request.url or "")
        if not host:  # of a file: or data: URL there is nobody to spare
            return adopt(self.inner.send(request, **options))
        ask = self.throttle.ask_of(request)
        turn: Turn | None = None
        try:
            turn = self._take(host, request, ask)
            response = self._attempt(turn, request, options, ask)
            self._learn(turn, response, ask)
        except BaseException:
            if turn is not None:
                turn.give_back()
            raise
        return response

    def close(self) -> None:
        self.turns.wake(self)
        self.throttle.save()
        super().close()

    def _take(self, host: str, request: requests.PreparedRequest, ask: Any) -> Turn:
        call = current_call()
        seconds = None if call.deadline is None else require_time(call, request)
        not_before, call.not_before = call.not_before, -inf
        try:
            turn = self.turns.take(host, self, seconds, ask, not_before, call.helper)
        except DeadlineExceeded as error:
            error.request, error.deadline = request, call.seconds
            raise
        except KreuzError as error:
            error.request = request
            raise
        if call.helper is not None:
            call.helper.had_turn()
        call.has_waited("throttle", turn.waited)
        return turn

    def _attempt(self, turn: Turn, request: requests.PreparedRequest, options: dict[str, Any], ask: Any) -> Response:
        try:
            return adopt(self.inner.send(request, **options))
        except BaseException as error:
            turn.give_back()  # before the lock that the next line may wait for
            if not isinstance(error, UploadFailed):
                self.turns.failed(turn.name, unreachable=isinstance(error, ConnectionFailed), raised=turn.raised)
            broken = getattr(error, "response", None)
            if isinstance(broken, Response):  # what its header section says holds, whatever became of the body
                self._heed(turn, broken, ask)
            elif turn.is_probe:
                self.turns.heed(turn.name, None, turn, ask, answered=False)
            raise

    def _learn(self, turn: Turn, response: Response, ask: Any) -> None:
        """Pass on an error at once, and a success when its body is complete: it may still break off.

        What the header section declares holds at once.
        """
        if not isinstance(response, Response):  # a double that only looks like one
            turn.give_back()
            return
        self._heed(turn, response, ask)
        status = _status(response)
        read = body.is_over(response)
        if read or status >= 400:
            self._tell(turn, status)
        if read:
            turn.give_back()
            return
        # The callback must not keep alive the response that it waits for.
        alive = weakref.ref(response)
        response.when_released(lambda: self._released(turn, alive(), status))

    def _released(self, turn: Turn, response: Response | None, told: int) -> None:
        """A stream has been read or given up. In a finalizer the response is gone, and no lock is taken."""
        turn.give_back()
        if response is None or not body.is_complete(response):
            return
        status = _status(response)
        if status != told or told < 400:  # a body can give a challenge page away
            self._tell(turn, status)

    def _tell(self, turn: Turn, status: int) -> None:
        self.turns.answered(turn.name, status, raised=turn.raised)

    def _heed(self, turn: Turn, response: Response, ask: Any) -> None:
        """Pass on what the answer declares of its host's pace."""
        if is_silent(response.headers) and not turn.is_probe:
            return  # nearly every answer
        said = declared(response.headers, _status(response), now=self.throttle.clock.wall(), host=turn.name)
        if said is not None and not _speaks_for_its_host(said, response):
            said = None
        if said is not None and said.is_order and said.pause > 0 and response.is_redirect:
            # Whoever is redirected is asked to wait, wherever to (RFC 9110, section 10.2.3). A quota is its host's.
            seconds = min(said.pause, self.throttle.max_retry_after)
            current_call().not_before = self.throttle.clock.monotonic() + seconds
        if said is not None or turn.is_probe:
            self.turns.heed(turn.name, said, turn, ask)


def _speaks_for_its_host(said: Declared, response: Response) -> bool:
    """Whether what an answer declares is to be heeded."""
    if not current_call().heeds_retry_after or response.from_cache or response.from_rate_limit:
        return False
    # The fields beside a challenge page are those of the firewall, or of an answer that was not given.
    return response.waf is None or said.is_order


def _status(response: Response) -> int:
    """The status as a limiter is told it: a challenge page is no answer, and asks for less haste."""
    return TOO_MANY if response.waf is not None else response.status_code
