"""The span of one call: current while that lasts, with all its attempts inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kreuz_sync.errors import RobotsDisallowed, SessionClosed

from . import attributes
from .attributes import ERROR, SERVER, STATUS
from .meters import RESULT, VENDOR

if TYPE_CHECKING:
    import requests

    from kreuz_sync.calls import Call

    from .tools import Tools

NAME = "kreuz_sync.request"
WAIT_EVENT = "kreuz_sync.wait"


class CallSpan:
    """The INTERNAL span of a call, which its layers report to while they work. A context manager.

    context: that of OpenTelemetry with this span in it. Only the thread that makes the call uses it.
    """

    __slots__ = (
        *("_answer", "_muted", "_outer", "_recording", "_token", "_waits"),
        *("call", "context", "span", "tools", "url"),
    )

    def __init__(
        self,
        tools: Tools,
        call: Call,
        request: requests.PreparedRequest,
        *,
        outer: Any = None,
        links: Sequence[Any] = (),
        **said: Any,
    ) -> None:
        api = tools.api
        self.tools = tools
        self.call = call
        self.url = request.url or ""
        self._outer = api.current_context() if outer is None else outer
        self.span = tools.tracer.start_span(NAME, self._outer, api.internal, links=links)
        self._recording = self.span.is_recording()
        if self._recording:
            self.span.set_attributes({**tools.reader.request(request), **said})
        self.context = api.with_span(self.span, self._outer)
        self._waits: dict[str, float] = {}
        self._answer: Any = None
        self._muted: Any = None

    def __enter__(self) -> CallSpan:
        self.call.trace = self
        self._token = self.tools.api.attach(self.context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(error)
        finally:
            self.tools.api.detach(self._token)
            self.call.trace = None

    # --- what happens to the call -----------------------------------------------------------

    def under_requests(self, send: Callable[..., Any], request: Any, options: dict[str, Any]) -> Any:
        """`send(request, **options)` of requests, which another instrumentation may have wrapped, without its span.

        That makes its span where it is entered, around all attempts. Below, the layers speak again.
        """
        api, outer = self.tools.api, self._muted
        self._muted = api.attach(api.muted(self.context))
        try:
            return send(request, **options)
        finally:
            self.speak()
            self._muted = outer

    def speak(self) -> None:
        """A layer of ours is reached: what other code does from here on may have spans of its own."""
        token, self._muted = self._muted, None
        if token is not None:
            self.tools.api.detach(token)

    def waited(self, kind: str, seconds: float) -> None:
        """It has waited. kind: for what, one of `meters.WAITS`."""
        if seconds <= 0:
            return
        self._waits[kind] = self._waits.get(kind, 0.0) + seconds
        if self._recording:
            self.span.add_event(WAIT_EVENT, {f"{WAIT_EVENT}.kind": kind, f"{WAIT_EVENT}.seconds": seconds})
        if self.tools.measures and (histogram := self.tools.meters.waits.get(kind)) is not None:
            histogram.record(seconds, self._measured())

    def answered(self, response: Any) -> None:
        """All layers are through with a request of the call; a redirect is followed by another."""
        self._answer = response
        result = attributes.cache_result(response)
        if result is not None and self.tools.measures:
            self.tools.meters.cache.add(1, self._measured(**{RESULT: result}))

    def behind(self, work: Callable[[], Any], call: Call, request: requests.PreparedRequest) -> Callable[[], Any]:
        """`work`, which another thread does for `call` since this one made it necessary, with a span of its own.

        Its parent is this call's own parent, and it links to this call, which may have ended by then.
        """
        tools, outer = self.tools, self._outer
        links = (tools.api.link(self.span.get_span_context()),)

        def run() -> Any:
            with CallSpan(tools, call, request, outer=outer, links=links, **{"kreuz_sync.cache.refresh": True}):
                return work()

        return run

    # --- its end ------------------------------------------------------------------------------

    def _end(self, error: BaseException | None) -> None:
        tools = self.tools
        if tools.measures:
            tools.meters.attempts.record(self.call.attempts, self._measured())
            if isinstance(error, RobotsDisallowed):
                tools.meters.refused.add(1, self._measured())
        if self._recording:
            self._say_what_came(error)
        self.span.end()
        tools.ended.settle()

    def _say_what_came(self, error: BaseException | None) -> None:
        span, call, answer = self.span, self.call, self._answer
        said: dict[str, Any] = {"kreuz_sync.attempts": call.attempts, "kreuz_sync.waited": call.waited}
        said.update((f"kreuz_sync.{kind}.wait", seconds) for kind, seconds in self._waits.items())
        trouble = attributes.trouble_of(answer) if error is None else attributes.name_of(error)
        if isinstance(error, SessionClosed):  # somebody wanted it to end
            trouble = None
        if trouble is not None:
            said[ERROR] = trouble
            span.set_status(self.tools.api.error, error and self.tools.reader.description(error))
        if error is None and answer is not None:
            said.update(_of_answer(answer))
        span.set_attributes(said)

    def _measured(self, **said: Any) -> dict[str, Any]:
        meters = self.tools.meters
        return meters.of(attributes.server_of(self.url)[SERVER], **said) if meters.with_hosts else said


def _of_answer(answer: Any) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if isinstance(status := getattr(answer, "status_code", None), int):
        said[STATUS] = status
    if (result := attributes.cache_result(answer)) is not None:
        said[RESULT] = result
        said["kreuz_sync.cache.status"] = attributes.cache_status(answer)
    if (waf := getattr(answer, "waf", None)) is not None:
        said[VENDOR] = waf.vendor
    if (limited := getattr(answer, "limited_by", None)) is not None:
        said["kreuz_sync.ratelimit.policy"] = limited.name
    return said
