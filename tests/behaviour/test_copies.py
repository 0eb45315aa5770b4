"""Pickling and copying sessions, responses, prepared requests and errors."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth

from ..loopback import answer, gzipped, redirect, set_cookies

WAYS = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.fixture(params=list(WAYS))
def copied(request):
    """One way to make a copy."""
    return WAYS[request.param]


class TestSession:
    def test_it_works_on(self, session, server, copied):
        with copied(session) as other:
            assert other.get(server.url()).text == "ok"

    def test_it_keeps_its_attributes(self, session, copied):
        session.headers["X-A"] = "1"
        session.auth = HTTPBasicAuth("me", "pw")
        session.params = {"a": "1"}
        session.proxies = {"http": "http://p"}
        session.verify, session.cert, session.stream, session.trust_env = False, "c", True, False
        session.max_redirects = 7
        session.cookies.set("a", "1")
        with copied(session) as other:
            assert type(other) is type(session)
            for name in ("headers", "auth", "params", "proxies", "verify", "cert", "stream", "trust_env"):
                assert getattr(other, name) == getattr(session, name)
            assert other.max_redirects == 7
            assert other.cookies.get_dict() == {"a": "1"}
            assert list(other.adapters) == list(session.adapters)

    @pytest.mark.parametrize("way", ["pickle", "deepcopy"])
    def test_it_shares_nothing(self, session, server, way):
        with WAYS[way](session) as other:
            other.headers["X-A"] = "1"
            other.cookies.set("a", "1")
            other.mount("http://", HTTPAdapter())
            session.get(server.url())
            assert "X-A" not in server.last.fields
            assert server.last.cookies == {}

    def test_its_hooks_come_along(self, session, server, copied):
        session.hooks["response"].append(_mark)
        with copied(session) as other:
            assert other.get(server.url()).headers["X-Marked"] == "1"

    def test_a_used_one_can_be_copied(self, session, server, copied):
        session.get(server.route("/set", set_cookies("a=1; Path=/")))
        with copied(session) as other:
            other.get(server.url())
        assert server.last.cookies == {"a": "1"}

    def test_its_adapters_keep_their_numbers(self, session, copied):
        session.mount("http://", HTTPAdapter(max_retries=3, pool_maxsize=5, pool_block=True))
        with copied(session) as other:
            adapter = other.get_adapter("http://a.test/")
            assert adapter.poolmanager.connection_pool_kw["maxsize"] == 5
            assert adapter.poolmanager.connection_pool_kw["block"] is True

    def test_a_subclass_stays_one(self, session, server, copied):
        kind = type(session)
        session.__class__ = _subclass(kind)
        with copied(session) as other:
            assert type(other) is session.__class__
            assert other.get(server.url()).text == "ok"

    def test_another_thread_may_be_inside_it(self, session, server, copied):
        gate = threading.Event()
        thread = threading.Thread(target=session.get, args=(server.route("/held", answer(delay=gate)),))
        thread.start()
        server.wait_for(1)
        with copied(session) as other:
            assert other.get(server.url()).text == "ok"
        gate.set()
        thread.join(10)


def _mark(response, **kwargs):
    response.headers["X-Marked"] = "1"


_SUBCLASSES: dict[type, type] = {}


def _subclass(kind: type) -> type:
    if kind not in _SUBCLASSES:
        name = f"Child{len(_SUBCLASSES)}"
        made = type(name, (kind,), {"__module__": __name__})
        globals()[name] = made
        _SUBCLASSES[kind] = made
    return _SUBCLASSES[kind]


class Loud(requests.Response):
    """A response with a method of its own."""

    def shout(self) -> str:
        return self.text.upper()


class Shouting(HTTPAdapter):
    """An adapter that answers with such."""

    def build_response(self, req, resp):
        response = super().build_response(req, resp)
        response.__class__ = Loud
        return response


class TestResponse:
    @pytest.mark.parametrize("way", ["pickle", "deepcopy"])
    def test_it_keeps_all_that_was_said(self, session, server, way):
        server.route("/it", gzipped("text", content_type="text/plain; charset=utf-8"))
        response = session.get(server.url("/it"))
        other = WAYS[way](response)
        for name in ("status_code", "content", "text", "url", "encoding", "reason", "elapsed", "ok"):
            assert getattr(other, name) == getattr(response, name)
        assert other.headers == response.headers
        assert other.request.url == response.request.url
        assert other.request.method == "GET"

    def test_its_history_and_cookies_come_along(self, session, server):
        server.route("/from", redirect("/to", 301))
        server.route("/to", set_cookies("a=1"))
        other = pickle.loads(pickle.dumps(session.get(server.url("/from"))))
        assert [one.status_code for one in other.history] == [301]
        assert other.cookies.get_dict() == {"a": "1"}

    def test_a_stream_is_read_for_it(self, session, server):
        response = session.get(server.route("/it", answer(body=b"body")), stream=True)
        assert pickle.loads(pickle.dumps(response)).content == b"body"
        assert response.content == b"body"

    def test_a_copy_is_pickled_again(self, session, server):
        once = pickle.loads(pickle.dumps(session.get(server.url())))
        assert pickle.loads(pickle.dumps(once)).text == "ok"

    @pytest.mark.parametrize("way", ["pickle", "deepcopy"])
    def test_a_class_of_an_adapters_own_is_kept(self, session, server, way):
        session.mount("http://", Shouting())
        other = WAYS[way](session.get(server.url()))
        assert isinstance(other, Loud)
        assert (other.shout(), other.status_code) == ("OK", 200)

    def test_an_error_answer_still_says_so(self, session, server):
        other = pickle.loads(pickle.dumps(session.get(server.route("/it", 404))))
        with pytest.raises(requests.HTTPError, match="404"):
            other.raise_for_status()

    def test_it_can_be_closed(self, session, server):
        pickle.loads(pickle.dumps(session.get(server.url()))).close()

    def test_ours_leaves_credentials_behind(self, session, server, ours):
        response = session.get(server.url(), auth=("me", "pw"))
        other = pickle.loads(pickle.dumps(response))
        assert ("Authorization" in other.request.headers) is not ours
        assert "Authorization" in response.request.headers


class TestPreparedRequest:
    def test_a_copy_is_sent_alike(self, session, server):
        prepared = session.prepare_request(requests.Request("POST", server.url("/echo"), data=b"x", headers={"X": "1"}))
        other = prepared.copy()
        other.headers["X"] = "2"
        assert session.send(prepared).json()["body"] == "x"
        assert session.send(other).json()["body"] == "x"
        assert [one.fields["X"] for one in server.requests] == ["1", "2"]

    @pytest.mark.parametrize("way", ["pickle", "deepcopy"])
    def test_it_can_be_carried_to_another_process(self, session, server, way):
        prepared = session.prepare_request(requests.Request("GET", server.url("/echo"), headers={"X": "1"}))
        assert session.send(WAYS[way](prepared)).json()["target"] == "/echo"


class TestErrors:
    def test_a_status_error_keeps_its_text(self, session, server):
        with pytest.raises(requests.HTTPError) as caught:
            session.get(server.route("/it", 404)).raise_for_status()
        other = pickle.loads(pickle.dumps(caught.value))
        assert str(other) == str(caught.value)

    def test_a_wire_error_keeps_its_kind(self, session, server):
        url = server.url()
        server.close()
        with pytest.raises(requests.ConnectionError) as caught:
            session.get(url)
        assert type(copy.copy(caught.value)) is type(caught.value)
