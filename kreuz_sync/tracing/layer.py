"""The two adapters: the outermost layer, and the one next to the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync.calls import current, current_call
from kreuz_sync.stack import LayerAdapter

from .attempt import AttemptSpan, with_trace

if TYPE_CHECKING:
    from .call import CallSpan
    from .setting import Tracing


class TracingAdapter(LayerAdapter):
    """Tells the call's span of each request of the call; begins one for a call that no session of ours makes."""

    def __init__(self, tracing: Tracing, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.tracing = tracing

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        call = current_call()
        if call.trace is not None:
            return self._traced(call.trace, request, options)
        trace = self.tracing.begin(call, request)
        if trace is None:
            return self.inner.send(request, **options)
        with trace:
            return self._traced(trace, request, options)

    def close(self) -> None:
        super().close()
        self.tracing.settle()

    def _traced(self, trace: CallSpan, request: requests.PreparedRequest, options: dict[str, Any]) -> requests.Response:
        trace.speak()
        trace.url = request.url or ""
        response = self.inner.send(request, **options)
        trace.answered(response)
        return response


class AttemptAdapter(LayerAdapter):
    """A span around each attempt. It stands next to the wire: below all that waits, around all that is sent and read.

    What is refused before it is sent, by a guard of addresses or for lack of time, is no attempt: its span never ends.
    """

    def __init__(self, tracing: Tracing, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.tracing = tracing

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        call = current.get()
        trace = None if call is None else call.trace
        if call is None or trace is None:
            return self.inner.send(self.tracing.passed_on(request), **options)
        api = trace.tools.api
        attempts = call.attempts
        span = AttemptSpan(trace, request, self.tracing.template)
        sent = with_trace(request, self.tracing.trace_fields(span.context))
        span.outer, call.heard = call.heard, span.hear
        token = api.attach(api.muted(span.context))
        try:
            response = self.inner.send(sent, **options)
        except BaseException as error:
            if getattr(error, "request", None) is sent:
                error.request = request  # type: ignore[attr-defined]
            if call.attempts != attempts:  # else nothing was sent: it is refused, and no attempt
                span.failed(error)
            raise
        finally:
            api.detach(token)
            call.heard = span.outer
        # What follows from this request (a redirect, a second one with credentials) has a span of its own.
        if sent is not request and getattr(response, "request", None) is sent:
            response.request = request
        span.answered(response)
        return response
