"""What OpenTelemetry was told, kept in memory for tests to look at."""

from __future__ import annotations

from typing import Any

from kreuz_sync import Session, Tracing


class Recorder:
    """A tracer provider and a meter provider of the SDK, and the sessions of one test.

    spans: all that have ended, in the order of their beginning.
    """

    def __init__(self, **settings: Any) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(**settings)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])
        self._sessions: list[Session] = []

    def tracing(self, **settings: Any) -> Tracing:
        return Tracing(tracer_provider=self.tracers, meter_provider=self.meters, **settings)

    def session(self, **settings: Any) -> Session:
        """A session without pace that traces. Settings of `Tracing` go to that."""
        own = {name: settings.pop(name) for name in list(settings) if name in Tracing.fields}
        settings.setdefault("throttle", None)
        settings.setdefault("timeout", 10.0)
        self._sessions.append(Session(tracing=self.tracing(**own), **settings))
        return self._sessions[-1]

    def span(self, name: str) -> Any:
        """A span of the program's own, for a `with` block."""
        return self.tracers.get_tracer("program").start_as_current_span(name)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self.tracers.shutdown()
        self.meters.shutdown()

    # --- spans --------------------------------------------------------------------------------

    @property
    def spans(self) -> list[Any]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time)

    @property
    def calls(self) -> list[Any]:
        return [span for span in self.spans if span.name == "kreuz_sync.request"]

    @property
    def attempts(self) -> list[Any]:
        return [span for span in self.spans if span.kind.name == "CLIENT"]

    @property
    def call(self) -> Any:
        (call,) = self.calls
        return call

    @property
    def attempt(self) -> Any:
        (attempt,) = self.attempts
        return attempt

    def forget(self) -> None:
        self._exporter.clear()

    # --- measurements -------------------------------------------------------------------------

    def points(self, name: str) -> list[Any]:
        """The data points of the measurement `name`."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics]
        metrics = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        return [point for metric in metrics for point in metric.data.data_points]


def parent_of(span: Any, spans: list[Any]) -> Any:
    """The span among `spans` that `span` is a child of; None for a root."""
    if span.parent is None:
        return None
    return next(one for one in spans if one.context.span_id == span.parent.span_id)


def events_of(span: Any, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in span.events if event.name == name]


def traceparent(span: Any) -> str:
    """What a request sent in `span` carries."""
    here = span.context
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"
