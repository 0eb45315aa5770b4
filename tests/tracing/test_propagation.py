"""What a request carries, so that its server can go on with the trace."""

from __future__ import annotations

import pytest
import requests

from kreuz_sync import Retry

from ..cache_sessions import FRESH, rfc
from ..loopback import answer, redirect, sequence
from .recorder import traceparent


def carried(server):
    """The traceparent of every request that came, None for one without."""
    return [request.fields.get("traceparent") for request in server.requests]


class TestTraceparent:
    def test_every_attempt_carries_its_own(self, recorder, server):
        url = server.route("/a", sequence(503, redirect("/")))
        recorder.session(retry=Retry(1, base=0.001)).get(url)
        assert carried(server) == [traceparent(span) for span in recorder.attempts]
        assert len(set(carried(server))) == 3

    def test_the_callers_request_does_not_show_it(self, recorder, server):
        request = requests.Request("GET", server.url("/"), headers={"X-Mine": "1"})
        session = recorder.session()
        prepared = session.prepare_request(request)
        before = dict(prepared.headers)
        response = session.send(prepared)
        assert carried(server) == [traceparent(recorder.attempt)]
        assert (dict(prepared.headers), request.headers) == (before, {"X-Mine": "1"})
        assert "traceparent" not in response.request.headers

    def test_nor_does_the_request_of_an_error(self, recorder):
        with pytest.raises(requests.ConnectionError) as caught:
            recorder.session().get("http://127.0.0.1:1/")
        assert "traceparent" not in caught.value.request.headers

    def test_one_that_the_caller_wrote_stays(self, recorder, server):
        mine = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        recorder.session().get(server.url("/"), headers={"traceparent": mine})
        assert carried(server) == [mine]
        assert "tracestate" not in server.last.fields

    def test_it_can_be_left_out(self, recorder, server):
        recorder.session(propagate=False).get(server.url("/"))
        assert carried(server) == [None]
        assert len(recorder.attempts) == 1

    def test_baggage_goes_with_it(self, recorder, server):
        from opentelemetry import baggage, context

        token = context.attach(baggage.set_baggage("job", "7"))
        try:
            recorder.session().get(server.url("/"))
        finally:
            context.detach(token)
        assert server.last.fields["baggage"] == "job=7"

    def test_a_cache_does_not_see_it(self, recorder, server):
        """Two calls with two traces are the same request; a page that varies by it is found all the same."""
        url = server.route("/page", answer(body="1", fields={**FRESH, "Vary": "traceparent"}))
        session = recorder.session(cache=rfc())
        assert [session.get(url).from_cache for _ in range(2)] == [False, True]
