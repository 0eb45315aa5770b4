"""The span of one attempt on the wire, from just before it is sent to the end of its body."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from functools import partial
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

import requests

from kreuz_sync import body
from kreuz_sync.response import Response
from kreuz_sync.stack import copy_request

from . import attributes
from .attributes import ERROR, METHOD, OTHER_METHOD, PORT, RESENT, RESPONSE_SIZE, SERVER, STATUS, TEMPLATE, VERSION
from .completion import tell
from .meters import VENDOR
from .size import ChunkCount, count_chunks, peer_of, wire_size

if TYPE_CHECKING:
    from .call import CallSpan

COMPLETE_EVENT = "kreuz_sync.complete"
# Of the attributes, those that measurements have too.
_MEASURED = (METHOD, SERVER, PORT, STATUS, VERSION, ERROR)
# Of one context, and of no use without each other (W3C Trace Context, section 3.3).
_PARENT, _STATE = "traceparent", "tracestate"

Template = Callable[[str], "str | None"]


class AttemptSpan:
    """The CLIENT span of one attempt, and the measurement of its duration.

    It ends with the body: when that has been read, broke off, or was given up. context: that of
    OpenTelemetry with this span in it. outer: whom else to tell of the answer's header section.
    """

    __slots__ = (
        *("_api", "_before", "_chunks", "_came", "_recording", "_secret", "_started", "_tools"),
        *("context", "outer", "span"),
    )

    def __init__(self, trace: CallSpan, request: requests.PreparedRequest, template: Template | None) -> None:
        tools, call = trace.tools, trace.call
        api = tools.api
        before = tools.reader.request(request)
        if call.attempts:
            before[RESENT] = call.attempts
        here = api.current_context()
        self.span = tools.tracer.start_span(_name(before, request, template), here, api.client, before)
        self.context = api.with_span(self.span, here)
        self.outer: Callable[[Response], object] | None = None
        self._tools, self._api = tools, api
        self._before = before
        self._came: dict[str, Any] = {}
        self._secret = (*getattr(request, "credential_fields", ()), *call.credential_fields)
        self._chunks: ChunkCount | None = None
        self._recording = self.span.is_recording()
        if self._recording:
            self.span.set_attributes(tools.reader.sent(request, self._secret))
        self._started = perf_counter()

    # --- what comes of it ---------------------------------------------------------------------

    def hear(self, response: Response) -> None:
        """The header section of the answer has come, and nothing of its body has been read."""
        if self._recording:
            self._chunks = count_chunks(response)
            self._came.update(peer_of(response))
        if self.outer is not None:
            self.outer(response)

    def failed(self, error: BaseException) -> None:
        """No answer came, or none whose body could be read."""
        self._note(getattr(error, "response", None))
        self._came[ERROR] = attributes.name_of(error)
        self._end(description=self._tools.reader.description(error) if self._recording else None)

    def answered(self, response: Any) -> None:
        """The answer has come; its body too, unless the caller reads it as a stream."""
        self._note(response)
        if not isinstance(response, Response) or body.is_over(response):
            self._end(whole=not getattr(response, "_closed_early", False))
            return
        alive = weakref.ref(response)  # the callback must not keep alive the response that it waits for
        response.when_released(lambda: self._released(alive()))

    def _released(self, response: Response | None) -> None:
        if response is None:  # in a finalizer
            self._tools.ended.leave(partial(self._end, at=(perf_counter(), time_ns())))
            return
        self._note(response)
        broke = response._broke
        if broke is not None:
            self._came[ERROR] = attributes.class_name(broke)
        whole = broke is None and body.is_complete(response)
        if whole and not response.reads_itself:  # from `raw`, which has not counted the last piece yet
            self._came.pop(RESPONSE_SIZE, None)
            if (size := body.expected_length(response)) is not None:
                self._came[RESPONSE_SIZE] = size
        self._end(whole=whole)

    def _note(self, response: Any) -> None:
        """Keep what an answer says; of a stream once more when it has been read."""
        if not isinstance(response, requests.Response):
            return
        came = self._came
        came.update(self._tools.reader.answer(response, self._secret))
        size = wire_size(response, self._chunks)
        if size is not None:
            came[RESPONSE_SIZE] = size
        trouble = attributes.trouble_of(response)
        if trouble is not None:
            came[ERROR] = trouble
        if (waf := getattr(response, "waf", None)) is not None:
            came[VENDOR] = waf.vendor

    # --- its end ------------------------------------------------------------------------------

    def _end(self, *, whole: bool = False, description: str | None = None, at: tuple[float, int] | None = None) -> None:
        """whole: the body came to its end. at: the moment, by the clocks of this process, if it is not this one."""
        done, now = at or (perf_counter(), time_ns())
        came, seconds = self._came, done - self._started
        if self._tools.measures:
            self._measure(seconds)
        if self._recording:
            self.span.set_attributes(came)
            if ERROR in came:
                self.span.set_status(self._api.error, description)
            if whole:
                said = {name: came[name] for name in (STATUS, RESPONSE_SIZE) if name in came}
                self.span.add_event(COMPLETE_EVENT, said, now)
        self.span.end(now)
        tell(self._before, came, seconds, whole=whole, within=partial(self._api.within, self.context))

    def _measure(self, seconds: float) -> None:
        said, meters = {**self._before, **self._came}, self._tools.meters
        meters.duration.record(seconds, {name: said[name] for name in _MEASURED if name in said}, self.context)
        if VENDOR in said:
            meters.blocked.add(1, meters.of(said[SERVER], **{VENDOR: said[VENDOR]}))


def with_trace(request: requests.PreparedRequest, fields: dict[str, str]) -> requests.PreparedRequest:
    """A copy of `request` with the propagator's `fields`; `request` itself where it has them all, or there are none.

    What the caller wrote stays.
    """
    headers = request.headers
    if _PARENT in headers:
        fields = {name: value for name, value in fields.items() if name not in (_PARENT, _STATE)}
    added = {name: value for name, value in fields.items() if name not in headers}
    if not added:
        return request
    copy = copy_request(request)
    copy.headers.update(added)
    return copy


def _name(said: dict[str, Any], request: requests.PreparedRequest, template: Template | None) -> str:
    """The name of the span: the method, with the URL's template if there is one. Notes that among what is said."""
    method = "HTTP" if said[METHOD] == OTHER_METHOD else said[METHOD]
    found = None
    if template is not None:
        with contextlib.suppress(Exception):  # a name that cannot be had is no reason not to send
            found = template(request.url or "")
    if not found:
        return str(method)
    said[TEMPLATE] = found
    return f"{method} {found}"
