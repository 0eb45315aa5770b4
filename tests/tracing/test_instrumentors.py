"""Beside OpenTelemetry's own instrumentations of requests and urllib3: one span an attempt, and it is ours."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import requests

import kreuz_sync
from kreuz_sync import Retry, Session

from ..loopback import answer, redirect, sequence
from ..loopback.answers import Answer
from .recorder import parent_of, traceparent


def instrumentor(name):
    """The instrumentor of a package; skips where it is not installed."""
    module = pytest.importorskip(f"opentelemetry.instrumentation.{name}")
    return module.RequestsInstrumentor() if name == "requests" else module.URLLib3Instrumentor()


@contextlib.contextmanager
def instrumented(recorder, *names):
    """A block in which these packages are instrumented, in this order."""
    made = [instrumentor(name) for name in names]
    for one in made:
        one.instrument(tracer_provider=recorder.tracers, meter_provider=recorder.meters)
    try:
        yield
    finally:
        for one in made:
            one.uninstrument()


NAMES = ("requests", "urllib3")
ORDERS = [order for count in (1, 2) for order in itertools.permutations(NAMES, count)]


def scopes(spans):
    return {span.instrumentation_scope.name for span in spans}


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("first", ["session", "instrumentors"])
class TestOneSpanAnAttempt:
    """Whichever comes first, and whatever the call goes through."""

    @contextlib.contextmanager
    def session(self, recorder, order, first, **settings):
        made = recorder.session(**settings) if first == "session" else None
        with instrumented(recorder, *order):
            yield made or recorder.session(**settings)

    def test_with_a_retry_and_a_redirect(self, recorder, server, order, first):
        url = server.route("/a", sequence(503, redirect("/")))
        with self.session(recorder, order, first, retry=Retry(1, base=0.001)) as session:
            session.get(url)
        statuses = [span.attributes["http.response.status_code"] for span in recorder.attempts]
        assert (statuses, scopes(recorder.spans)) == ([503, 302, 200], {"kreuz_sync"})
        assert [request.fields["traceparent"] for request in server.requests] == [*map(traceparent, recorder.attempts)]

    def test_measured_once(self, recorder, server, order, first):
        with self.session(recorder, order, first) as session:
            session.get(server.url("/"))
        assert [point.count for point in recorder.points("http.client.request.duration")] == [1]
        assert recorder.points("http.client.duration") == []

    def test_with_a_stream(self, recorder, server, order, first):
        url = server.route("/page", Answer(chunks=[b"ab", b"cd"]))
        with self.session(recorder, order, first) as session:
            assert session.get(url, stream=True).content == b"abcd"
        assert len(recorder.attempts) == 1

    def test_with_an_error(self, recorder, order, first):
        with self.session(recorder, order, first) as session, pytest.raises(requests.ConnectionError):
            session.get("http://127.0.0.1:1/")
        assert (len(recorder.attempts), scopes(recorder.spans)) == (1, {"kreuz_sync"})

    def test_with_robots(self, recorder, server, order, first):
        server.route("/robots.txt", answer(body=""))
        with self.session(recorder, order, first, robots=True) as session:
            session.get(server.url("/"))
        assert (len(recorder.attempts), scopes(recorder.spans)) == (2, {"kreuz_sync"})


class TestOthersAreLeftAlone:
    """What does not come through our layers is theirs to trace."""

    def test_a_request_of_another_session(self, recorder, server):
        with instrumented(recorder, "requests"), requests.Session() as plain:
            recorder.session()
            plain.get(server.url("/"))
        assert scopes(recorder.attempts) == {"opentelemetry.instrumentation.requests"}

    def test_a_request_that_a_hook_makes(self, recorder, server):
        """Its span is a child of the call's."""

        def ask_elsewhere(response, **options):
            with requests.Session() as plain:
                plain.get(server.url("/echo"))

        with instrumented(recorder, "requests"):
            recorder.session().get(server.url("/"), hooks={"response": ask_elsewhere})
        ours, theirs = recorder.attempts
        assert [scopes([ours]), scopes([theirs])] == [{"kreuz_sync"}, {"opentelemetry.instrumentation.requests"}]
        assert parent_of(theirs, recorder.spans) is recorder.call

    def test_an_adapter_that_is_mounted_raw(self, recorder, server):
        with instrumented(recorder, "requests"):
            session = recorder.session()
            session.mount_raw("http://", requests.adapters.HTTPAdapter())
            session.get(server.url("/"))
        assert scopes(recorder.attempts) == {"opentelemetry.instrumentation.requests"}
        assert parent_of(recorder.attempt, recorder.spans) is recorder.call

    def test_a_session_that_does_not_trace(self, recorder, server):
        with instrumented(recorder, "requests"), Session(throttle=None) as session:
            session.get(server.url("/"))
        assert scopes(recorder.attempts) == {"opentelemetry.instrumentation.requests"}

    def test_our_layers_under_a_session_that_is_instrumented(self, recorder, server):
        """It has made its span for the whole request."""
        layers = kreuz_sync.polite_order(tracing=recorder.tracing())
        with instrumented(recorder, "requests"), requests.Session() as plain:
            plain.mount("http://", kreuz_sync.Stack(layers, requests.adapters.HTTPAdapter()))
            plain.get(server.url("/"))
        assert len(recorder.attempts) == 1

    def test_a_program_that_wants_no_spans_gets_none(self, recorder, server):
        """As exporters do, which must not trace themselves."""
        utils = pytest.importorskip("opentelemetry.instrumentation.utils")
        session = recorder.session()
        for suppressed in (utils.suppress_instrumentation, utils.suppress_http_instrumentation):
            with suppressed():
                session.get(server.url("/"))
        assert (recorder.spans, recorder.points("http.client.request.duration")) == ([], [])
        assert "traceparent" not in server.last.fields
