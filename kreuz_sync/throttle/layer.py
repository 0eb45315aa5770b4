"""The layer adapters: an attempt waits its host's turn, and the limiter learns how it went."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import body
from kreuz_sync.calls import current_call
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.deadline import require_time
from kreuz_sync.errors import ConnectionFailed, DeadlineExceeded, KreuzError
from kreuz_sync.fields import retry_after
from kreuz_sync.response import Response, adopt
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.urls import host_of

from .pace import PRESSED, TOO_MANY

if TYPE_CHECKING:
    from .limiter import RateLimiter
    from .local import Throttle
    from .turns import Turn


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
            self.limiter.acquire(host)
            call.waited += SYSTEM_CLOCK.monotonic() - came
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
        turn: Turn | None = None
        try:
            turn = self._take(host, request)
            response = self._attempt(turn, request, options)
            self._learn(turn, response)
        except BaseException:
            if turn is not None:
                turn.give_back()
            raise
        return response

    def close(self) -> None:
        self.turns.wake(self)
        super().close()

    def _take(self, host: str, request: requests.PreparedRequest) -> Turn:
        call = current_call()
        seconds = None if call.deadline is None else require_time(call, request)
        try:
            turn = self.turns.take(host, owner=self, seconds=seconds)
        except DeadlineExceeded as error:
            error.request, error.deadline = request, call.seconds
            raise
        except KreuzError as error:
            error.request = request
            raise
        call.waited += turn.waited
        return turn

    def _attempt(self, turn: Turn, request: requests.PreparedRequest, options: dict[str, Any]) -> Response:
        try:
            return adopt(self.inner.send(request, **options))
        except BaseException as error:
            turn.give_back()  # before the lock that the next line may wait for
            self.turns.failed(turn.name, unreachable=isinstance(error, ConnectionFailed), raised=turn.raised)
            raise

    def _learn(self, turn: Turn, response: Response) -> None:
        """Pass on an error at once, and a success when its body is complete: it may still break off."""
        if not isinstance(response, Response):  # a double that only looks like one
            turn.give_back()
            return
        status = _status(response)
        read = body.is_over(response)
        if read or status >= 400:
            self._tell(turn, status, response)
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
            self._tell(turn, status, response)

    def _tell(self, turn: Turn, status: int, response: Response) -> None:
        pause = None
        if status in PRESSED and current_call().heeds_retry_after:
            pause = retry_after(response.headers, now=self.throttle.clock.wall())
        self.turns.answered(turn.name, status, raised=turn.raised, pause=pause or 0.0)


def _status(response: Response) -> int:
    """The status as a limiter is told it: a challenge page is no answer, and asks for less haste."""
    return TOO_MANY if response.waf is not None else response.status_code
