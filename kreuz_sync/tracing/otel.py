"""opentelemetry-api: imported when somebody traces, and the few things of it that are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from kreuz_sync.version import __version__

SCOPE = "kreuz_sync"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
# Where the API's own providers come from, which record nothing; an SDK's come from elsewhere.
_OF_THE_API = ("opentelemetry.trace", "opentelemetry.metrics")
# An older way to say the same, which other instrumentations still heed.
_PLAIN_KEY = "suppress_instrumentation"


class Otel:
    """What is used of the API. Raises ImportError, saying what to install, where there is none."""

    def __init__(self) -> None:
        try:
            from opentelemetry import context, metrics, propagate, trace
        except ImportError as error:
            raise ImportError(
                "tracing needs the package opentelemetry-api: pip install 'kreuz-sync[tracing]'"
            ) from error
        self.attach: Any = context.attach
        self.detach: Any = context.detach
        self.current_context: Any = context.get_current
        self.set_value: Any = context.set_value
        self.inject: Any = propagate.inject
        self.with_span: Any = trace.set_span_in_context
        self.tracers: Any = trace.get_tracer_provider
        self.meters: Any = metrics.get_meter_provider
        self._no_op = (trace.NoOpTracerProvider, metrics.NoOpMeterProvider)
        self.link: Any = trace.Link
        self.internal: Any = trace.SpanKind.INTERNAL
        self.client: Any = trace.SpanKind.CLIENT
        self.error: Any = trace.StatusCode.ERROR
        # Underscored, but the keys that all instrumentations of HTTP clients agree on.
        self._mute_http: str = getattr(context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", "suppress_http_instrumentation")
        mute_all: str = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", _PLAIN_KEY)
        self._mute_keys = (mute_all, _PLAIN_KEY, self._mute_http)

    def is_muted(self) -> bool:
        """Whether somebody wants no spans of HTTP requests here: another instrumentation that has made its own."""
        here = self.current_context()
        return any(here.get(key) for key in self._mute_keys)

    def muted(self, context: Any) -> Any:
        """`context`, in which other instrumentations make no spans of HTTP requests."""
        return self.set_value(self._mute_http, True, context)

    @contextmanager
    def within(self, context: Any) -> Iterator[None]:
        """A block in which `context` is the current one."""
        token = self.attach(context)
        try:
            yield
        finally:
            self.detach(token)

    def stands_for_another(self, provider: Any) -> bool:
        """Whether `provider` is what a program is given before it has set its own."""
        return provider is not None and is_silent(provider) and not isinstance(provider, self._no_op)


@lru_cache(maxsize=1)
def load() -> Otel:
    """The API, imported once. Raises ImportError where there is none."""
    return Otel()


def is_silent(provider: Any) -> bool:
    """Whether nothing that is made with `provider` is recorded anywhere: it is the API's own, and no SDK's."""
    return type(provider).__module__.startswith(_OF_THE_API)


def tracer_of(provider: Any) -> Any:
    """Our tracer among those of `provider`."""
    return provider.get_tracer(SCOPE, __version__, SCHEMA_URL)


def meter_of(provider: Any) -> Any:
    """Our meter among those of `provider`."""
    return provider.get_meter(SCOPE, __version__, SCHEMA_URL)
