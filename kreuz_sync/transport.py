"""The innermost layer, the wire: one attempt, with everything that can go wrong named.

`Transport` wraps the adapter that really sends (requests' HTTPAdapter, or whatever a user
mounts): it counts the attempt, types its errors, reads a body that is not streamed so that a
cut one is a failed attempt, and looks for challenge pages. It does not touch redirects.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any

import requests
import urllib3
from requests.adapters import BaseAdapter

from . import body, fork
from .calls import Call, current_call
from .deadline import in_time, require_time
from .errors import DataLoss
from .response import Response, adopt
from .retry import without_own_retries
from .stack import LayerAdapter
from .urls import host_of, redact
from .waf import Waf, WafMatch
from .wire_errors import require_possible_host, translate

HOSTS_TOLD = 4096  # whose challenge pages have been logged

_log = logging.getLogger("kreuz_sync.waf")


class Transport(LayerAdapter):
    """One attempt on the wire.

    max_body: decoded bytes, None for no limit. length_tolerance: bytes that may be missing of
    a Content-Length (the reference pipeline allows 100). waf: the rules that tell a challenge
    page, None to look for none. retries_above: the session retries, so the adapter must not: two
    loops, one inside the other, would multiply.
    """

    def __init__(
        self,
        inner: BaseAdapter,
        *,
        max_body: int | None = None,
        length_tolerance: int = 0,
        waf: Waf | None = None,
        retries_above: bool = False,
    ) -> None:
        super().__init__(inner)
        self.retries_above = retries_above
        if retries_above:
            without_own_retries(inner)
        self.waf = waf
        self.limits = body.Limits(max_body=max_body, length_tolerance=length_tolerance)
        self._told: set[str] = set()
        fork.renew_in_child(self)

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        call = current_call()
        if call.wire_left is not None:
            return self._send_in_what_is_left(call.wire_left, call, request, options)
        if "%" in (request.url or ""):
            require_possible_host(request)
        bounded = call.deadline is not None
        if call.helper is not None:
            call.helper.require_going_on()
        if bounded:
            require_time(call, request)
        call.attempts += 1
        if self.retries_above:  # also where they were given to the adapter after it was mounted
            without_own_retries(self.inner)
        started = perf_counter()
        try:
            if bounded:
                response = in_time(lambda **clipped: adopt(self.inner.send(request, **clipped)), call, request, options)
            else:
                response = adopt(self.inner.send(request, **options))
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            typed = translate(error, request)
            if typed is None:
                raise
            try:
                raise typed
            finally:
                # The error knows this frame by its traceback: a frame that knows the error too
                # would keep the socket of a broken answer until the next garbage collection.
                del typed
        if not isinstance(response, Response):  # a double that only looks like one
            return response
        response.arrived = arrived = perf_counter()
        response.took(arrived - started)
        response.limits = self.limits
        body.drop_absent_chunks(response)
        body.refuse_by_length(response)
        if call.heard is not None:
            call.heard(response)
        if options.get("stream"):
            self._watch_stream(response)
        else:
            self._read(response)
            if self.waf is not None:
                self._look(response, response._content or b"")
        return response

    def _send_in_what_is_left(
        self, left: float, call: Call, request: requests.PreparedRequest, options: dict[str, Any]
    ) -> Response:
        """`send`, by a deadline of its own, which the answer's body has too. Raises DeadlineExceeded."""
        seconds, deadline, until = call.seconds, call.deadline, call.left()
        if until is None or left < until:
            call.end_within(left)
        call.wire_left, began = None, perf_counter()
        try:
            return self.send(request, **options)
        finally:
            call.seconds, call.deadline = seconds, deadline
            call.wire_left = max(0.0, left - (perf_counter() - began))

    def _read(self, response: Response) -> None:
        try:
            body.read(response)
        except DataLoss as error:
            # requests follows a redirect whatever became of its body.
            if not response.is_redirect:
                raise
            response._content, response._content_consumed = error.partial, True
            response._closed_early = True

    def _watch_stream(self, response: Response) -> None:
        """The header section decides at once; a small page is looked at once more when it has been read."""
        if isinstance(response.raw, urllib3.HTTPResponse):
            # It knows no tolerance; and 1.26 does not check unless asked to.
            response.raw.enforce_content_length = not self.limits.length_tolerance
        if self.waf is None:
            return
        self._look(response, None)
        if response.waf is None and self.waf.reads(response.status_code, response.headers):
            response.limits = self.limits._replace(watch=self._look, watched=self.waf.body_limit)

    def _look(self, response: Response, content: bytes | None) -> None:
        assert self.waf is not None
        found = self.waf.look(response.status_code, response.headers, content, response.reason)
        if found is not None:
            response.waf = found
            self._tell(found, response.url or "")

    def _tell(self, found: WafMatch, url: str) -> None:
        """Once for each host: a challenge page is seldom alone."""
        host = host_of(url)
        if host in self._told:
            return
        if len(self._told) >= HOSTS_TOLD:
            self._told.clear()
        self._told.add(host)
        shown = redact(url)
        _log.warning(
            "%s: a %s page of %s in place of %s",
            *(host, found.kind, found.vendor, shown),
            extra={"event": "waf_blocked", "host": host, "url": shown, "vendor": found.vendor, "kind": found.kind},
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        """Let go of the parent's sockets: two processes on one connection read each other's answers."""
        inner: Any = self.inner
        if hasattr(inner, "__setstate__"):
            try:
                inner.__setstate__(inner.__getstate__())  # requests' adapters make new pools when unpickled
            except Exception:  # one that does not pickle
                inner.close()


def counts_attempts(adapter: BaseAdapter) -> bool:
    """Whether what is sent through `adapter` comes to a `Transport`, which counts it as an attempt of its call."""
    while isinstance(adapter, LayerAdapter):
        if isinstance(adapter, Transport):
            return True
        adapter = adapter.inner
    return False
