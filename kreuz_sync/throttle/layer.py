"""The layer adapters: an attempt waits its host's turn, and the limiter learns how it went."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync.calls import current_call
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.errors import KreuzError
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
            came = SYSTEM_CLOCK.monotonic()
            self.limiter.acquire(host)
            current_call().waited += SYSTEM_CLOCK.monotonic() - came
        response = adopt(self.inner.send(request, **options))
        if host:
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
        try:
            turn = self.turns.take(host, owner=self)
        except KreuzError as error:
            error.request = request
            raise
        if turn.waited:
            current_call().waited += turn.waited
        try:
            response = adopt(self.inner.send(request, **options))
        except BaseException:
            turn.give_back()
            self.turns.failed(host)
            raise
        self._learn(turn, response)
        return response

    def close(self) -> None:
        self.turns.wake(self)
        super().close()

    def _learn(self, turn: Turn, response: Response) -> None:
        """Pass on an error at once, and a success when its body is complete: it may still break off."""
        status = _status(response)
        read = _is_read(response)
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
        if response is None:
            return
        status = _status(response)
        if status != told or (told < 400 and _is_complete(response)):  # a body can give a challenge page away
            self._tell(turn, status, response)

    def _tell(self, turn: Turn, status: int, response: Response) -> None:
        pause = None
        if status in PRESSED:
            pause = retry_after(response.headers, now=self.throttle.clock.wall())
        self.turns.answered(turn.name, status, raised=turn.raised, pause=pause or 0.0)


def _status(response: Response) -> int:
    """The status as a limiter is told it: a challenge page is no answer, and asks for less haste."""
    return TOO_MANY if response.waf is not None else response.status_code


def _is_read(response: Any) -> bool:  # Any: requests declares neither attribute
    """True if the body has been read, or was never on the wire."""
    return response._content_consumed or response._content is not False


def _is_complete(response: Any) -> bool:
    """True if a stream was read to its end, and its end was that of the body."""
    return response._content_consumed and not getattr(response.raw, "length_remaining", None)
