"""Where spans go: to the providers of the moment, or nowhere."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import requests

import kreuz_sync
from kreuz_sync import Session, Stack, Tracing
from kreuz_sync.transport import Transport

from ..fakes import ScriptedAdapter
from ..test_package import run_python
from .recorder import Recorder, parent_of

# A program's own providers can be set once in a process, so these tests run in processes of their own.
SERVED = f"""
import sys
sys.path.append({str(Path(__file__).parents[2])!r})
from opentelemetry import context, trace, metrics
from tests.fakes import ScriptedAdapter
from kreuz_sync import Session, Tracing
wire = ScriptedAdapter()
"""
SDK = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
def record():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter
"""
GET = "session.get('http://example.test/')\n"


@pytest.fixture(autouse=True)
def api():
    pytest.importorskip("opentelemetry")


class TestTheProgramsOwn:
    @pytest.mark.parametrize("given", ["True", "Tracing(tracer_provider=trace.get_tracer_provider())"])
    def test_one_that_is_set_after_the_session_was_made_is_used(self, given):
        pytest.importorskip("opentelemetry.sdk")
        code = f"session = Session(throttle=None, adapter=wire, tracing={given})\n{GET}exporter = record()\n{GET}"
        printed = run_python(f"{SERVED}{SDK}{code}print([one.name for one in exporter.get_finished_spans()])")
        assert printed.strip() == "['GET', 'kreuz_sync.request']"

    def test_without_an_sdk_a_trace_is_passed_on(self):
        """What came in from elsewhere goes out again; and nothing else does."""
        code = f"""
session = Session(throttle=None, adapter=wire, tracing=True)
{GET}
there = trace.SpanContext(0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331, True, trace.TraceFlags(1))
token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(there)))
{GET}
print([request.headers.get("traceparent") for request in wire.requests])
"""
        assert run_python(SERVED + code).strip() == "[None, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01']"

    def test_without_an_sdk_nothing_is_made(self):
        """No span, no attribute, no context; the call is as one without tracing."""
        session = Session(throttle=None, adapter=ScriptedAdapter(), tracing=Tracing(**no_op()))
        assert session.get("http://example.test/").status_code == 200


def no_op():
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.trace import NoOpTracerProvider

    return {"tracer_provider": NoOpTracerProvider(), "meter_provider": NoOpMeterProvider()}


class TestSampling:
    def test_what_is_sampled_out_is_still_measured_and_passed_on(self, server):
        sampling = pytest.importorskip("opentelemetry.sdk.trace.sampling")
        recorder = Recorder(sampler=sampling.ALWAYS_OFF)
        recorder.session().get(server.url("/"))
        assert recorder.spans == []
        assert [point.count for point in recorder.points("http.client.request.duration")] == [1]
        flags = server.last.fields["traceparent"].rpartition("-")[2]
        assert int(flags, 16) & 1 == 0
        recorder.close()

    def test_a_sampler_is_told_what_it_may_decide_by(self, server):
        sampling = pytest.importorskip("opentelemetry.sdk.trace.sampling")
        told = []

        class Noting(sampling.Sampler):
            def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, *more):
                told.append((name, dict(attributes or {})))
                return sampling.SamplingResult(sampling.Decision.DROP)

            def get_description(self):
                return "notes"

        recorder = Recorder(sampler=Noting())
        recorder.session().get(server.url("/"))
        assert told[1] == (
            "GET",
            {
                "http.request.method": "GET",
                "url.full": server.url("/"),
                "server.address": "127.0.0.1",
                "server.port": server.port,
            },
        )
        recorder.close()

    def test_measurements_without_spans(self, server):
        """A program may have a meter provider alone."""
        pytest.importorskip("opentelemetry.sdk")
        recorder = Recorder()
        settings = {**no_op(), "meter_provider": recorder.meters}
        with Session(throttle=None, tracing=Tracing(**settings)) as session:
            session.get(server.url("/"))
        assert [point.count for point in recorder.points("http.client.request.duration")] == [1]
        recorder.close()


class TestOtherStacks:
    def test_layers_of_ones_own_are_traced_too(self, recorder, server):
        with Session(layers=[kreuz_sync.Throttle(0.0)], tracing=recorder.tracing()) as session:
            session.get(server.url("/"))
        assert parent_of(recorder.attempt, recorder.spans) is recorder.call

    def test_on_a_session_that_is_not_ours_every_request_is_a_call(self, recorder):
        wire = ScriptedAdapter((302, {"Location": "/b"}, b""), 200)
        with requests.Session() as plain:
            layers = kreuz_sync.polite_order(tracing=recorder.tracing())
            plain.mount("http://", Stack(layers, Transport(wire)))
            plain.get("http://example.test/a")
        assert [parent_of(span, recorder.spans) for span in recorder.attempts] == recorder.calls
        assert [span.attributes["http.response.status_code"] for span in recorder.calls] == [302, 200]


class TestCopies:
    def test_a_session_that_traces_pickles_without_its_providers(self, recorder):
        session = recorder.session(redacted=["ticket"])
        there = pickle.loads(pickle.dumps(session))
        assert (there._tracing.redacted, there._tracing.tracer_provider) == (("ticket",), None)
        outermost, *_, wire = there.layers
        assert outermost is wire.tracing is there._tracing
        there.mount("http://", ScriptedAdapter())
        assert there.get("http://example.test/").status_code == 200
        assert recorder.spans == []

    def test_a_copy_is_the_same_one(self):
        tracing = Tracing()
        assert copy.copy(tracing) is copy.deepcopy(tracing) is tracing


class TestWrongValues:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"tracer_provider": 1}, "tracer_provider=1: a provider"),
            ({"meter_provider": "x"}, "meter_provider='x': a provider"),
            ({"redacted": "token"}, "redacted='token': a list"),
            ({"request_fields": [1]}, "request_fields"),
            ({"response_fields": "*"}, "response_fields='\\*': a list"),
            ({"template": "/a"}, "template='/a': a function"),
            ({"hosts_in_metrics": 1}, "hosts_in_metrics=1: True or False"),
            ({"propagate": None}, "propagate=None: True or False"),
        ],
    )
    def test_they_are_named(self, settings, words):
        with pytest.raises((TypeError, ValueError), match=words):
            Tracing(**settings)

    @pytest.mark.parametrize("value", [1, "yes", Tracing])
    def test_of_the_session_too(self, value):
        with pytest.raises(TypeError, match="tracing="):
            Session(tracing=value)

    def test_false_and_none_are_off(self):
        for value in (False, None):
            with Session(tracing=value) as session:
                assert session._tracing is None


class TestWithoutTheApi:
    def test_it_says_what_to_install(self):
        code = """
import sys
sys.modules["opentelemetry"] = None
import kreuz_sync
for make in (lambda: kreuz_sync.Session(tracing=True), lambda: kreuz_sync.Tracing()):
    try:
        make()
    except ImportError as error:
        print(error)
"""
        sentence = "tracing needs the package opentelemetry-api: pip install 'kreuz-sync[tracing]'"
        assert run_python(code).splitlines() == [sentence] * 2

    def test_a_session_that_does_not_trace_loads_nothing_of_it(self):
        code = """
import sys, kreuz_sync
kreuz_sync.Session(tracing=False)
print([name for name in sys.modules if "opentelemetry" in name or "kreuz_sync.tracing" in name])
"""
        assert run_python(code).strip() == "[]"
