"""Flask and Django applications behind the middleware."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync.ratelimit import RateLimit
from kreuz_sync.ratelimit.wsgi import CONTEXT, RateLimitMiddleware

from .wsgi_calls import call, checked

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class TestFlask:
    """An application, and its own test client."""

    @pytest.fixture
    def app(self) -> Any:
        flask = pytest.importorskip("flask")
        app = flask.Flask("example")
        app.closed = []

        @app.route("/", methods=["GET", "POST"])
        def hello() -> Any:
            context = flask.request.environ[CONTEXT]
            return flask.jsonify(
                [policy.remaining for policy in context.policies], flask.request.get_data(as_text=True)
            )

        @app.get("/stream")
        def stream() -> Any:
            answer = flask.Response(iter([b"one, ", b"two"]), mimetype="text/plain")
            answer.call_on_close(lambda: app.closed.append("stream"))
            return answer

        @app.get("/broken")
        def broken() -> Any:
            raise ZeroDivisionError

        return app

    def test_one_line_limits_it(self, app: Any) -> None:
        app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=2, window=60)
        client = app.test_client()
        answers = [client.get("/") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert [answer.json for answer in answers[:2]] == [[[1], ""], [[0], ""]]
        assert answers[1].headers["RateLimit"] == '"default-policy";r=0;t=60'
        assert answers[2].headers["Retry-After"] == "60"
        assert answers[2].data == b""

    def test_a_posted_body_reaches_it(self, app: Any) -> None:
        app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=2)
        assert app.test_client().post("/", data="a=1").json == [[1], "a=1"]

    def test_a_stream_comes_whole_and_is_closed(self, app: Any) -> None:
        app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=2)
        with app.test_client() as client:
            answer = client.get("/stream")
            assert answer.data == b"one, two"
            answer.close()
        assert app.closed == ["stream"]

    def test_pages_of_errors_have_the_fields_too(self, app: Any) -> None:
        app.logger.disabled = True
        app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=9)
        client = app.test_client()
        for path, status in (("/broken", 500), ("/missing", 404), ("/stream", 200)):
            answer = client.get(path)
            assert (answer.status_code, len(answer.headers.getlist("RateLimit"))) == (status, 1)

    def test_an_answer_may_be_one_of_flask(self, app: Any) -> None:
        flask = pytest.importorskip("flask")

        def response(environ: Any, reason: Any) -> Any:
            return flask.Response('{"error": "slow down"}', 429, mimetype="application/json")

        app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limit=0, response=response)
        answer = app.test_client().get("/")
        assert (answer.status_code, answer.json) == (429, {"error": "slow down"})
        assert answer.headers["Retry-After"] == "60"

    def test_a_function_may_see_the_request_as_flask_does(self, app: Any) -> None:
        flask = pytest.importorskip("flask")
        app.wsgi_app = RateLimitMiddleware(
            app.wsgi_app, limit=1, key=lambda environ: flask.Request(environ).args.get("user", "")
        )
        client = app.test_client()
        assert [client.get(f"/?user={user}").status_code for user in "aba"] == [200, 200, 429]

    def test_a_checker_finds_nothing(self, app: Any) -> None:
        limited = checked(RateLimitMiddleware(checked(app.wsgi_app), limit=1))
        assert [call(limited).code for _ in range(2)] == [200, 429]

    def test_cors_around_it_reaches_refusals_as_well(self, app: Any) -> None:
        """In this order, outermost first: CORS, limit, application."""

        def cors(inner: Any) -> Any:
            def outer(environ: Any, start_response: Any) -> Any:
                def start(status: str, headers: Any, exc_info: Any = None) -> Any:
                    return start_response(status, [*headers, ("Access-Control-Allow-Origin", "*")], exc_info)

                return inner(environ, start)

            return outer

        app.wsgi_app = cors(RateLimitMiddleware(app.wsgi_app, limit=0, exempt_methods=["OPTIONS"]))
        client = app.test_client()
        for answer, status in ((client.get("/"), 429), (client.options("/"), 200)):
            assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (status, "*")


class TestDjango:
    """A site, called as a server calls it."""

    @pytest.fixture
    def site(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        pytest.importorskip("django")
        monkeypatch.syspath_prepend(EXAMPLES)
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "mysite.settings")
        from django.core.wsgi import get_wsgi_application

        monkeypatch.setattr(logging.getLogger("django"), "disabled", True)
        monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)
        return get_wsgi_application()

    @pytest.mark.slow
    def test_one_line_limits_it(self, site: Any) -> None:
        limited = checked(RateLimitMiddleware(site, limit=2, window=60))
        answers = [call(limited) for _ in range(3)]
        assert [answer.code for answer in answers] == [200, 200, 429]
        assert answers[0].body == b"met 1"
        assert answers[1].value("RateLimit") == '"default-policy";r=0;t=60'
        assert answers[2].value("Retry-After") == "60"

    def test_a_posted_body_reaches_it(self, site: Any, tmp_path: Path) -> None:
        (tmp_path / "body").write_bytes(b"a=1")
        with (tmp_path / "body").open("rb") as body:
            request = {"wsgi.input": body, "CONTENT_LENGTH": "3", "CONTENT_TYPE": "text/plain"}
            answer = call(RateLimitMiddleware(site, limit=2), method="POST", path="/", **request)
        assert answer.value("X-Seen") == "POST a=1"

    def test_a_stream_comes_whole_and_is_closed(self, site: Any) -> None:
        from mysite import urls

        assert call(RateLimitMiddleware(site, limit=2), path="/stream").body == b"one, two"
        assert urls.closed.pop() == "/stream"

    def test_pages_of_errors_have_the_fields_too(self, site: Any) -> None:
        limited = RateLimitMiddleware(site, RateLimit("a", limit=9), RateLimit("b", limit=9))
        for path, status in (("/broken", 500), ("/missing", 404)):
            answer = call(limited, path=path)
            assert (answer.code, len(answer.values("RateLimit"))) == (status, 2)

    def test_what_is_exempt_is_not_counted(self, site: Any) -> None:
        limited = RateLimitMiddleware(site, limit=1, exempt_paths=["/health"])
        assert [call(limited, path="/health").body for _ in range(3)] == [b"met 0"] * 3
