"""The setting: what is told to OpenTelemetry, and what is never told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.calls import Call
from kreuz_sync.settings import Setting, Single

from . import otel
from .attempt import with_trace
from .attributes import Reader, known_methods
from .call import CallSpan
from .layer import AttemptAdapter, TracingAdapter
from .tools import Ended, Tools


class Tracing(Single, Setting):
    """Spans and measurements of every call and every attempt, for OpenTelemetry.

    tracer_provider, meter_provider: where they go; None for the program's own, also one that it
    sets later. redacted: names of query parameters whose values are never shown, besides the usual
    ones (`kreuz_sync.urls.SECRET_QUERY_NAMES`); any case. request_fields, response_fields: names of
    header fields to record, "*" for all; those with credentials or cookies are never among them.
    template: a function from a URL to its template (`/users/{id}`), or None, which spans are then named by.
    hosts_in_metrics: whether the measurements of names that begin with `kreuz_sync.` name the
    host: that is a time series for each. propagate: whether requests carry the trace to the server
    (`traceparent`, or what the program has configured).

    One may serve several sessions. A copy is the same one; a pickle takes along neither providers
    nor spans, and goes by the providers of the other process.

    Raises ImportError without the package opentelemetry-api, TypeError or ValueError for what cannot work.
    """

    is_tracing = True  # a session finds it among its layers by this, without loading these rooms

    fields = (
        *("tracer_provider", "meter_provider", "redacted", "request_fields", "response_fields"),
        *("template", "hosts_in_metrics", "propagate"),
    )
    secret_fields = frozenset({"tracer_provider", "meter_provider"})  # no secrets, but nothing to read either
    tracer_provider: Any
    meter_provider: Any
    redacted: tuple[str, ...]
    request_fields: tuple[str, ...]
    response_fields: tuple[str, ...]
    template: Callable[[str], str | None] | None
    hosts_in_metrics: bool
    propagate: bool
    _api: otel.Otel
    _reader: Reader
    _ended: Ended  # state, as the next one
    _tools: list[Tools]

    def __init__(
        self,
        *,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        redacted: Iterable[str] = (),
        request_fields: Iterable[str] = (),
        response_fields: Iterable[str] = (),
        template: Callable[[str], str | None] | None = None,
        hosts_in_metrics: bool = False,
        propagate: bool = True,
    ) -> None:
        self._fix(
            tracer_provider=_provider("tracer_provider", tracer_provider, "get_tracer"),
            meter_provider=_provider("meter_provider", meter_provider, "get_meter"),
            redacted=checks.texts("redacted", redacted),
            request_fields=checks.texts("request_fields", request_fields),
            response_fields=checks.texts("response_fields", response_fields),
            template=None if template is None else checks.function("template", template),
            hosts_in_metrics=checks.flag("hosts_in_metrics", hosts_in_metrics),
            propagate=checks.flag("propagate", propagate),
        )
        self._begin()

    def _begin(self) -> None:
        self._fix(
            _api=otel.load(),
            _reader=Reader(
                known_methods(), _lowered(self.redacted), _lowered(self.request_fields), _lowered(self.response_fields)
            ),
            _ended=Ended(),
            _tools=[],
        )

    # --- the layers -------------------------------------------------------------------------

    def __call__(self, inner: BaseAdapter) -> TracingAdapter:
        """The outermost layer."""
        return TracingAdapter(self, inner)

    @property
    def wire(self) -> WireLayer:
        """The innermost layer, right above the transport: the spans of the attempts."""
        return WireLayer(self)

    # --- what they need ---------------------------------------------------------------------

    def send(
        self,
        send: Callable[..., Any],
        call: Call,
        request: requests.PreparedRequest,
        options: dict[str, Any],
    ) -> Any:
        """`send(request, **options)` of requests, as the whole call `call` or as a redirect's hop of it."""
        if call.trace is not None:
            return self._send(call.trace, send, request, options)
        trace = self.begin(call, request)
        if trace is None:
            return send(request, **options)
        with trace:
            return self._send(trace, send, request, options)

    def _send(self, trace: CallSpan, send: Callable[..., Any], request: Any, options: dict[str, Any]) -> Any:
        if self._stands_before(request, trace.call):
            return trace.under_requests(send, request, options)
        return send(request, **options)  # whatever spans are made of it, they are not ours

    def _stands_before(self, request: requests.PreparedRequest, call: Call) -> bool:
        """Whether `request` comes to our layers: something else may be mounted, or put there by a test double."""
        if call.session is None:
            return False
        try:
            adapter = call.session.get_adapter(request.url or "")
        except requests.RequestException:  # which `send` will raise too
            return False
        return self in getattr(adapter, "layers", ())

    def begin(self, call: Call, request: requests.PreparedRequest) -> CallSpan | None:
        """The span of `call`, to be entered; None where nobody records, or somebody wants no spans here."""
        tools = self._current_tools()
        if not tools.records or tools.api.is_muted():
            return None
        return CallSpan(tools, call, request)

    def trace_fields(self, context: Any) -> dict[str, str]:
        """What is added to a request that is sent in `context`, for the server to go on with its trace."""
        carrier: dict[str, str] = {}
        if self.propagate:
            self._api.inject(carrier, context)
        return carrier

    def passed_on(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """`request`, which gets no span of ours, with the trace it is made in, unless somebody else sees to that."""
        here = self._api.current_context()
        if not here or self._api.is_muted():  # nearly always there is no trace to go on with
            return request
        return with_trace(request, self.trace_fields(here))

    def settle(self) -> None:
        """End the spans of answers that were forgotten unread."""
        self._ended.settle()

    def _current_tools(self) -> Tools:
        """Those for the providers of this moment: a program may set its own after it has made a session."""
        api = self._api
        tracers = self.tracer_provider or api.tracers()
        meters = self.meter_provider or api.meters()
        for tools in self._tools:
            if tools.providers[0] is tracers and tools.providers[1] is meters:
                return tools
        tools = Tools(api, self._reader, self._ended, tracers, meters, with_hosts=self.hosts_in_metrics)
        self._tools[:] = [tools]
        return tools

    # --- copies -----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        mine = {name: getattr(self, name) for name in self.fields}
        return {**mine, "tracer_provider": None, "meter_provider": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._begin()


class WireLayer(Setting):
    """The second layer that a `Tracing` makes."""

    fields = ("tracing",)
    tracing: Tracing

    def __init__(self, tracing: Tracing) -> None:
        self._fix(tracing=tracing)

    def __call__(self, inner: BaseAdapter) -> AttemptAdapter:
        return AttemptAdapter(self.tracing, inner)

    def __repr__(self) -> str:
        return "Tracing.wire"


def _provider(name: str, value: Any, method: str) -> Any:
    """A provider; None for one that stands for the program's own, whichever that will be."""
    if value is None or callable(getattr(value, method, None)):
        return None if otel.load().stands_for_another(value) else value
    raise TypeError(f"{name}={value!r}: a provider of OpenTelemetry is wanted, or None for the program's own")


def _lowered(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
