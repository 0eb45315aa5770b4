"""Prepared requests: made by a session or without one, sent once, again, or by many threads."""

from __future__ import annotations

import threading

import pytest
import requests

from ..loopback import redirect


class TestPreparing:
    def test_a_session_adds_what_it_has(self, session, server):
        session.headers["X-Session"] = "1"
        session.params = {"s": "1"}
        session.auth = ("me", "pw")
        session.cookies.set("a", "1")
        prepared = session.prepare_request(requests.Request("get", server.url("/it"), params={"c": "2"}))
        assert (prepared.method, prepared.url) == ("GET", server.url("/it?s=1&c=2"))
        assert prepared.headers["X-Session"] == "1"
        assert prepared.headers["Authorization"].startswith("Basic ")
        assert prepared.headers["Cookie"] == "a=1"

    def test_nothing_is_sent(self, session, server):
        session.prepare_request(requests.Request("GET", server.url()))
        assert server.requests == []

    def test_the_request_is_left_as_it_was(self, session, server):
        session.headers["X-Session"] = "1"
        request = requests.Request("GET", server.url(), headers={"X": "1"}, params={"a": "1"}, cookies={"c": "1"})
        session.prepare_request(request)
        assert (request.headers, request.params, request.cookies) == ({"X": "1"}, {"a": "1"}, {"c": "1"})
        assert (request.method, request.url) == ("GET", server.url())

    def test_one_request_can_be_prepared_twice(self, session, server):
        request = requests.Request("POST", server.url("/echo"), data={"a": "1"})
        bodies = [session.send(session.prepare_request(request)).json()["body"] for _ in range(2)]
        assert bodies == ["a=1", "a=1"]

    def test_it_can_be_changed_before_it_is_sent(self, session, server):
        prepared = session.prepare_request(requests.Request("POST", server.url("/echo"), data=b"a"))
        prepared.body = b"other"
        prepared.headers["Content-Length"] = "5"
        del prepared.headers["User-Agent"]
        session.send(prepared)
        assert server.last.body == b"other"

    def test_path_url_is_the_target(self, session, server):
        prepared = session.prepare_request(requests.Request("GET", server.url("/a b"), params={"q": "1"}))
        session.send(prepared)
        assert prepared.path_url == server.last.target == "/a%20b?q=1"

    @pytest.mark.parametrize("method", ["get", "Get", b"GET", "purge"])
    def test_methods_are_upper_case(self, session, server, method):
        session.request(method, server.url())
        assert server.last.method == (method.decode() if isinstance(method, bytes) else method).upper()

    def test_anything_with_the_attributes_of_a_request_is_prepared(self, session, server):
        class Mine(requests.Request):
            pass

        assert session.send(session.prepare_request(Mine("GET", server.url()))).text == "ok"


class TestSending:
    def test_one_that_no_session_made_has_nothing_of_it(self, session, server):
        session.headers["X-Session"] = "1"
        session.cookies.set("a", "1")
        session.auth = ("me", "pw")
        session.send(requests.Request("GET", server.url()).prepare())
        names = {name.lower() for name, _ in server.last.fields}
        assert not {"x-session", "cookie", "authorization"} & names

    def test_its_answers_cookies_are_kept(self, session, server):
        url = server.route("/set", redirect("/", fields={"Set-Cookie": "a=1; Path=/"}))
        session.send(requests.Request("GET", url).prepare())
        assert session.cookies.get_dict() == {"a": "1"}

    def test_it_takes_the_sessions_options(self, session, server):
        session.stream = True
        response = session.send(requests.Request("GET", server.url()).prepare())
        assert not response._content_consumed
        response.close()

    def test_it_takes_options_of_its_own(self, session, server):
        prepared = requests.Request("GET", server.route("/from", redirect("/"))).prepare()
        response = session.send(prepared, stream=True, timeout=5, allow_redirects=False, verify=False, cert=None)
        assert response.status_code == 302
        response.close()

    def test_the_answer_knows_it(self, session, server):
        prepared = requests.Request("GET", server.url()).prepare()
        assert session.send(prepared).request.url == prepared.url

    def test_it_may_be_sent_again(self, session, server):
        prepared = session.prepare_request(requests.Request("POST", server.url("/echo"), json={"a": 1}))
        assert [session.send(prepared).json()["body"] for _ in range(3)] == ['{"a": 1}'] * 3

    def test_it_is_left_as_it_was(self, session, server):
        prepared = session.prepare_request(requests.Request("POST", server.url("/echo"), data=b"x"))
        before = (prepared.method, prepared.url, dict(prepared.headers), prepared.body)
        session.send(prepared)
        assert (prepared.method, prepared.url, dict(prepared.headers), prepared.body) == before

    def test_many_threads_may_send_one(self, session, server):
        prepared = session.prepare_request(requests.Request("GET", server.url("/echo"), headers={"X": "1"}))
        start = threading.Barrier(8)
        targets: list[str] = []

        def fetch():
            start.wait(10)
            targets.extend(session.send(prepared).json()["target"] for _ in range(10))

        threads = [threading.Thread(target=fetch) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert targets == ["/echo"] * 80
        assert len(server.requests) == 80

    def test_what_is_not_prepared_is_refused(self, session, server):
        with pytest.raises(ValueError, match="PreparedRequest"):
            session.send(requests.Request("GET", server.url()))
