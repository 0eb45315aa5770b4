"""The log's record of an attempt that is over."""

from __future__ import annotations

import logging

import pytest
import requests

from ..loopback import answer


class TestRecord:
    @pytest.fixture(autouse=True)
    def at_info(self, caplog):
        caplog.set_level(logging.INFO, "kreuz_sync.tracing")

    def test_a_complete_answer(self, recorder, server, caplog):
        recorder.session().get(server.url("/"))
        (record,) = caplog.records
        assert (record.levelname, record.event) == ("INFO", "attempt_complete")
        assert (record.method, record.url, record.status, record.body_size) == ("GET", server.url("/"), 200, 2)
        assert (record.resend_count, record.error_type, record.duration > 0) == (0, None, True)
        assert record.getMessage().startswith(f"GET {server.url('/')}: 200, 2 bytes in ")

    def test_a_stream_is_told_when_it_has_been_read(self, recorder, server, caplog):
        response = recorder.session().get(server.route("/page", answer(body=b"x" * 500_000)), stream=True)
        assert caplog.records == []
        response.content  # noqa: B018
        assert [record.body_size for record in caplog.records] == [500_000]

    def test_an_error(self, recorder, caplog):
        with pytest.raises(requests.ConnectionError):
            recorder.session().get("http://127.0.0.1:1/")
        (record,) = caplog.records
        assert (record.levelname, record.event) == ("INFO", "attempt_ended")
        assert (record.status, record.error_type) == (None, "kreuz_sync.errors.ConnectionRefused")

    def test_its_attempt_is_the_current_span(self, recorder, server):
        """By which handlers tell whose record it is."""
        from opentelemetry import trace

        seen = []

        class Noting(logging.Handler):
            def emit(self, record):
                seen.append(trace.get_current_span().get_span_context().span_id)

        handler = Noting()
        logging.getLogger("kreuz_sync.tracing").addHandler(handler)
        try:
            recorder.session().get(server.url("/"))
        finally:
            logging.getLogger("kreuz_sync.tracing").removeHandler(handler)
        assert seen == [recorder.attempt.context.span_id]

    def test_a_handler_that_breaks_is_not_the_callers_trouble(self, recorder, server):
        class Broken(logging.Handler):
            def emit(self, record):
                raise RuntimeError

        handler = Broken()
        logging.getLogger("kreuz_sync.tracing").addHandler(handler)
        try:
            assert recorder.session().get(server.url("/")).status_code == 200
        finally:
            logging.getLogger("kreuz_sync.tracing").removeHandler(handler)
