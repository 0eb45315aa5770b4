"""The layer adapter: an attempt passes where its host's circuit is closed, and the circuit learns how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync.calls import current
from kreuz_sync.errors import CircuitOpen, classify
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.transport import counts_attempts

from .circuit import Sign, after_error
from .circuits import Probe

if TYPE_CHECKING:
    from .setting import Breaker


class BreakerAdapter(LayerAdapter):
    """The layer of a `Breaker`."""

    def __init__(self, breaker: Breaker, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.breaker = breaker
        self.circuits = breaker.circuits
        self._counted = counts_attempts(inner)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        call = current.get() if self._counted else None
        before = 0 if call is None else call.attempts
        name: str | None = None
        probe: Probe | None = None
        try:
            if self.circuits.hosts:  # else nobody has failed, and there is nothing to look up
                name = self.breaker.host_of(request.url or "")
                probe = self._admit(name, request)
            response = self.inner.send(request, **options)
        except BaseException as error:
            sign = after_error(error)
            if sign is not Sign.NONE or probe is not None:
                self._learn(name, request, probe, sign, error)
            raise
        if self.circuits.hosts or self.breaker.statuses:
            # What a layer below answers itself, such as a rate limit's 429, says nothing of the host.
            on_the_wire = call is None or call.attempts > before
            self._learn(name, request, probe, self._sign(response) if on_the_wire else Sign.NONE, response)
        return response

    def _admit(self, name: str, request: requests.PreparedRequest) -> Probe | None:
        try:
            return self.circuits.admit(name)
        except CircuitOpen as error:
            error.request = request
            raise

    def _sign(self, response: requests.Response) -> Sign:
        status = getattr(response, "status_code", None)  # a double that only looks like a response may have none
        return Sign.FAILED if status in self.breaker.statuses else Sign.ALIVE

    def _learn(
        self,
        name: str | None,
        request: requests.PreparedRequest,
        probe: Probe | None,
        sign: Sign,
        outcome: requests.Response | BaseException,
    ) -> None:
        """Tell the circuit. name: that of the request's host, None if it was not needed until now."""
        if sign is Sign.ALIVE and not self.circuits.hosts:
            return
        if name is None:
            name = self.breaker.host_of(request.url or "")
        if sign is Sign.ALIVE:
            self.circuits.answered(name)
        elif sign is Sign.FAILED and name:  # a file: or data: URL has no host that could fail
            self.circuits.failed(name, classify(outcome) or "other", probe)
        elif probe is not None:
            self.circuits.give_back(name, probe)
