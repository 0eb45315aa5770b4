"""Hooks: who is called, in which order, with what, and what they may do."""

from __future__ import annotations

import pytest
import requests

from ..loopback import redirect


def noting(log: list, name: str):
    def hook(response, *args, **kwargs):
        log.append((name, response.status_code))

    return hook


class TestWhoIsCalled:
    def test_the_sessions(self, session, server):
        log: list = []
        session.hooks["response"].append(noting(log, "session"))
        session.get(server.url())
        session.get(server.url())
        assert log == [("session", 200)] * 2

    @pytest.mark.parametrize("shape", ["one", "list"])
    def test_the_calls(self, session, server, shape):
        log: list = []
        hook = noting(log, "call")
        session.get(server.url(), hooks={"response": hook if shape == "one" else [hook, hook]})
        session.get(server.url())
        assert len(log) == (1 if shape == "one" else 2)

    def test_the_calls_take_the_sessions_place(self, session, server):
        log: list = []
        session.hooks = {"response": [noting(log, "session")]}
        session.get(server.url(), hooks={"response": [noting(log, "call")]})
        assert [name for name, _ in log] == ["call"]

    def test_the_sessions_may_be_one_function(self, session, server):
        log: list = []
        session.hooks = {"response": noting(log, "session")}
        session.get(server.url())
        assert len(log) == 1

    def test_those_of_a_prepared_request(self, session, server):
        log: list = []
        prepared = session.prepare_request(requests.Request("GET", server.url()))
        hook = noting(log, "prepared")
        prepared.register_hook("response", hook)
        session.send(prepared)
        assert prepared.deregister_hook("response", hook)
        session.send(prepared)
        assert len(log) == 1

    def test_an_unknown_event_is_refused(self, session, server):
        with pytest.raises(ValueError):
            requests.Request("GET", server.url(), hooks={"nonsense": print}).register_hook("nonsense", print)

    def test_error_answers_too(self, session, server):
        log: list = []
        session.get(server.route("/it", 404), hooks={"response": noting(log, "call")})
        assert log == [("call", 404)]

    def test_every_hop_of_a_redirect(self, session, server):
        log: list = []
        session.get(server.route("/from", redirect("/", 301)), hooks={"response": noting(log, "call")})
        assert sorted(status for _, status in log) == [200, 301]

    def test_the_first_answer_before_its_redirect_is_followed(self, session, server):
        seen: list[int] = []
        hook = {"response": lambda response, **_: seen.append(len(server.requests))}
        session.get(server.route("/from", redirect("/")), hooks=hook)
        assert seen == [1, 2]


class TestWhatTheyGet:
    def test_the_options_of_the_call(self, session, server):
        options: dict = {}
        session.get(
            server.url(), timeout=7, stream=True, hooks={"response": lambda response, **kwargs: options.update(kwargs)}
        ).close()
        assert (options["timeout"], options["stream"], options["verify"], options["cert"]) == (7, True, True, None)
        assert dict(options["proxies"]) == {}

    def test_a_body_that_ours_has_read_already(self, session, server, ours):
        """Where ours differs: a body that is not streamed is part of the attempt, and read before the hooks run."""
        seen: list = []
        response = session.get(server.url(), hooks={"response": lambda response, **_: seen.append(response.raw.read())})
        assert seen == ([b""] if ours else [b"ok"])
        assert response.content == (b"ok" if ours else b"")

    def test_an_answer_with_its_request_and_time(self, session, server):
        seen: list = []
        session.get(server.url("/echo"), hooks={"response": lambda response, **_: seen.append(response)})
        (response,) = seen
        assert response.request.url == server.url("/echo")
        assert response.elapsed.total_seconds() > 0
        assert response.connection is not None
        assert response.json()["method"] == "GET"


class TestWhatTheyMayDo:
    def test_give_another_answer(self, session, server):
        other = requests.Response()
        other.status_code = 299
        other._content = b"mine"
        other.url = "other"
        response = session.get(server.url(), hooks={"response": lambda *_, **__: other})
        assert (response.status_code, response.content) == (299, b"mine")

    def test_the_next_hook_gets_that_one(self, session, server):
        other = requests.Response()
        other.status_code = 299
        log: list = []
        session.get(server.url(), hooks={"response": [lambda *_, **__: other, noting(log, "second")]})
        assert log == [("second", 299)]

    def test_give_nothing(self, session, server):
        response = session.get(server.url(), hooks={"response": lambda *_, **__: None})
        assert response.text == "ok"

    def test_give_something_else(self, session, server):
        class Double:
            status_code = 200
            history: list = []
            is_redirect = False
            headers: dict = {}
            raw = None
            content = b""

        double = Double()
        try:
            result = session.get(server.url(), allow_redirects=False, hooks={"response": lambda *_, **__: double})
        except AttributeError:
            pytest.fail("an answer of a user's own class must come through")
        assert result is double

    def test_raise(self, session, server):
        def check(response, **_):
            response.raise_for_status()

        session.hooks["response"] = [check]
        with pytest.raises(requests.HTTPError):
            session.get(server.route("/it", 404))
        assert session.get(server.url()).text == "ok"

    def test_make_a_call_of_their_own(self, session, server):
        def again(response, **kwargs):
            if response.request.path_url == "/":
                return session.get(server.url("/echo"))
            return None

        response = session.get(server.url(), hooks={"response": again})
        assert response.json()["target"] == "/echo"
        assert len(server.requests) == 2

    def test_make_a_call_in_the_middle_of_a_redirect(self, session, server):
        def look_elsewhere(response, **kwargs):
            session.get(server.url("/aside"))

        response = session.get(server.route("/from", redirect("/")), hooks={"response": look_elsewhere})
        assert response.text == "ok"
        assert [one.path for one in server.requests] == ["/from", "/aside", "/", "/aside"]

    def test_send_the_request_again_through_its_connection(self, session, server):
        """What requests' own digest authentication does."""

        def again(response, **kwargs):
            if "X-Again" in response.request.headers:
                return None
            response.content  # noqa: B018
            response.close()
            prepared = response.request.copy()
            prepared.headers["X-Again"] = "1"
            second = response.connection.send(prepared, **kwargs)
            second.history.append(response)
            second.request = prepared
            return second

        response = session.get(server.url("/echo"), hooks={"response": again})
        assert response.request.headers["X-Again"] == "1"
        assert len(response.history) == 1
        assert len(server.requests) == 2

    def test_change_the_encoding(self, session, server):
        def latin(response, **_):
            response.encoding = "latin-1"

        session.hooks["response"] = [latin]
        assert session.get(server.url()).encoding == "latin-1"
