"""What is said of a request and its answer, as tables."""

from __future__ import annotations

from json import JSONDecodeError

import pytest

from kreuz_sync.response import Response
from kreuz_sync.tracing.attributes import Reader, cache_result, known_methods, name_of, server_of

from ..fakes import ScriptedAdapter, prepared


class TestServer:
    @pytest.mark.parametrize(
        ("url", "host", "port"),
        [
            ("http://example.test/a", "example.test", 80),
            ("https://example.test/a", "example.test", 443),
            ("https://Example.Test:8443", "example.test", 8443),
            ("http://me:pw@example.test?a@b", "example.test", 80),
            ("http://[::1]:8080/", "::1", 8080),
            ("http://[::1]/", "::1", 80),
            ("http://example.test:/", "example.test", 80),
            ("http+unix://socket/a", "socket", None),
            ("http://example.test:port/", "", None),
        ],
    )
    def test_host_without_brackets_and_port_of_the_scheme(self, url, host, port):
        said = {"server.address": host} if port is None else {"server.address": host, "server.port": port}
        assert server_of(url) == said


class TestMethods:
    def test_one_that_is_not_known_is_not_named(self, recorder):
        recorder.session(adapter=ScriptedAdapter()).request("FOO", "http://example.test/")
        said = recorder.attempt.attributes
        assert recorder.attempt.name == "HTTP"
        assert (said["http.request.method"], said["http.request.method_original"]) == ("_OTHER", "FOO")

    def test_the_environment_may_name_others(self, monkeypatch):
        monkeypatch.setenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", "GET, FOO")
        assert known_methods() == {"GET", "FOO"}
        assert Reader(known_methods()).method(prepared(method="POST")) == "_OTHER"


class TestTemplates:
    def test_a_span_is_named_by_one(self, recorder):
        session = recorder.session(adapter=ScriptedAdapter(), template=lambda url: "/users/{id}")
        session.get("http://example.test/users/7")
        assert (recorder.attempt.name, recorder.attempt.attributes["url.template"]) == (
            "GET /users/{id}",
            "/users/{id}",
        )

    @pytest.mark.parametrize("template", [lambda url: None, lambda url: {}[url]], ids=["none", "broken"])
    def test_by_its_method_where_there_is_none(self, recorder, template):
        recorder.session(adapter=ScriptedAdapter(), template=template).get("http://example.test/users/7")
        assert recorder.attempt.name == "GET"


class TestCacheResult:
    @pytest.mark.parametrize(
        ("status", "from_cache", "result"),
        [
            (None, False, None),
            ("kreuz; hit; ttl=30", True, "hit"),
            ("other; fwd=miss, kreuz; hit; ttl=30", True, "hit"),
            ("kreuz; hit; ttl=-5; detail=stale-while-revalidate", True, "stale"),
            ("kreuz; fwd=stale; fwd-status=503; ttl=-5; detail=stale-if-error", True, "stale"),
            ("kreuz; fwd=stale; fwd-status=304; ttl=60", True, "revalidated"),
            ("kreuz; fwd=stale; fwd-status=304", False, "miss"),
            ("kreuz; fwd=uri-miss; ttl=60; collapsed", True, "collapsed"),
            ("kreuz; fwd=uri-miss; stored", False, "miss"),
            ("kreuz; fwd=bypass", False, "bypass"),
            ("kreuz; detail=only-if-cached", False, "refused"),
        ],
    )
    def test_one_word(self, status, from_cache, result):
        response = Response()
        response.cache_status, response.from_cache = status, from_cache
        assert cache_result(response) == result


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "name"), [(ValueError(), "ValueError"), (JSONDecodeError("", "", 0), "json.decoder.JSONDecodeError")]
    )
    def test_an_error_is_called_by_its_class(self, error, name):
        assert name_of(error) == name
