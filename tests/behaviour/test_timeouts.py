"""Time-outs: to connect, between bytes, for a session and for a call."""

from __future__ import annotations

import socket
import threading

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from ..loopback import answer, drip, silent

SHORT = 0.05


@pytest.fixture
def dead_end():
    """The URL of a socket that takes no connection: its queue is full, and nobody empties it."""
    waiting = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
            waiting.append(client)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        for client in waiting:
            client.close()


class TestReading:
    @pytest.mark.parametrize("timeout", [SHORT, (5, SHORT), (None, SHORT), urllib3.Timeout(connect=5, read=SHORT)])
    def test_no_answer_in_time(self, session, server, timeout):
        with pytest.raises(requests.ReadTimeout) as caught:
            session.get(server.route("/it", silent()), timeout=timeout)
        assert caught.value.request.url == server.url("/it")
        assert caught.value.response is None
        assert isinstance(caught.value, requests.Timeout)
        assert not isinstance(caught.value, requests.ConnectionError)

    def test_a_body_that_stops_is_a_connection_error(self, session, server):
        """requests' word for it; its text tells of the time-out."""
        url = server.route("/it", drip(b"ab", pause=threading.Event()))
        with pytest.raises(requests.ConnectionError):
            session.get(url, timeout=SHORT)

    def test_the_same_in_a_stream(self, session, server):
        url = server.route("/it", drip(b"ab", pause=threading.Event()))
        response = session.get(url, timeout=SHORT, stream=True)
        pieces = response.iter_content(1)
        assert next(pieces) == b"a"
        with pytest.raises(requests.ConnectionError):
            next(pieces)

    def test_it_counts_between_bytes_and_not_for_the_whole(self, session, server):
        url = server.route("/it", drip(b"x" * 20, pause=0.02))
        assert session.get(url, timeout=0.3).content == b"x" * 20

    def test_a_slow_answer_within_it_is_fine(self, session, server):
        assert session.get(server.route("/it", answer(body="late", delay=0.05)), timeout=10).text == "late"

    def test_none_waits(self, session, server):
        url = server.route("/it", answer(body="late", delay=0.1))
        assert session.get(url, timeout=None).text == "late"

    def test_the_session_is_usable_afterwards(self, session, server):
        with pytest.raises(requests.ReadTimeout):
            session.get(server.route("/it", silent()), timeout=SHORT)
        assert session.get(server.url()).text == "ok"


class TestConnecting:
    @pytest.mark.parametrize("timeout", [SHORT, (SHORT, 5), (SHORT, None)])
    def test_nobody_takes_the_connection(self, session, dead_end, timeout):
        with pytest.raises(requests.ConnectTimeout) as caught:
            session.get(dead_end, timeout=timeout)
        assert isinstance(caught.value, requests.Timeout)
        assert isinstance(caught.value, requests.ConnectionError)
        assert caught.value.request.url == dead_end


class TestWrongOnes:
    @pytest.mark.parametrize("timeout", [(1, 2, 3), "soon", 0, -1, (1,)])
    def test_they_are_a_value_error(self, session, server, timeout):
        with pytest.raises(ValueError):
            session.get(server.url(), timeout=timeout)
        assert server.requests == []


class TestTheDefault:
    """Where ours differs: a call that names no time-out has one."""

    def seen(self, session, server, *args, **how):
        options: dict = {}
        session.hooks["response"] = [lambda response, **kwargs: options.update(kwargs)]
        session.request("GET", server.url(), *args, **how)
        return options["timeout"]

    def test_a_call_without_one(self, session, server, ours):
        assert self.seen(session, server) == (30.0 if ours else None)

    def test_none_is_none(self, session, server):
        assert self.seen(session, server, timeout=None) is None

    @pytest.mark.parametrize("timeout", [7, 0.5, (1, 2)])
    def test_a_calls_own(self, session, server, timeout):
        assert self.seen(session, server, timeout=timeout) == timeout

    def test_it_may_be_the_seventh_argument_after_the_url(self, session, server):
        assert self.seen(session, server, None, None, None, None, None, None, 7) == 7

    def test_an_adapter_with_a_default_of_its_own_is_given_the_sessions(self, session, server, ours):
        """A session whose adapters know better is made with `timeout=None`."""

        class Patient(HTTPAdapter):
            used: list = []

            def send(self, request, **options):
                if options.get("timeout") is None:
                    options["timeout"] = 5
                self.used.append(options["timeout"])
                return super().send(request, **options)

        session.mount("http://", Patient())
        session.get(server.url())
        if ours:
            session.timeout = None
            session.get(server.url())
        assert Patient.used == ([30.0, 5] if ours else [5])

    def test_a_prepared_request(self, session, server, ours):
        options: dict = {}
        prepared = requests.Request("GET", server.url()).prepare()
        prepared.register_hook("response", lambda response, **kwargs: options.update(kwargs))
        session.send(prepared)
        assert options.get("timeout") == (30.0 if ours else None)
        session.send(prepared, timeout=7)
        assert options["timeout"] == 7
