"""The session itself: its fields and other attributes, as they are at the next call."""

from __future__ import annotations

import inspect

import pytest
import requests

from ..fakes import ScriptedAdapter
from ..loopback import redirect


class TestFields:
    def test_the_usual_ones_are_sent(self, session, server, ours, kind):
        session.get(server.url())
        fields = server.last.fields
        assert (fields["Accept"], fields["Connection"]) == ("*/*", "keep-alive")
        agent = {"requests": "python-requests/", "everything on": "agent/1"}.get(kind, "kreuz-sync/")
        assert fields["User-Agent"].startswith(agent)
        assert [name for name, _ in fields] == ["Host", "User-Agent", "Accept-Encoding", "Accept", "Connection"]

    def test_those_of_the_session_are_sent_with_every_call(self, session, server):
        session.headers.update({"X-A": "1"})
        session.get(server.url())
        session.post(server.url())
        assert [one.fields["x-a"] for one in server.requests] == ["1", "1"]

    def test_a_change_is_seen_at_the_next_call(self, session, server):
        for value in ("1", "2"):
            session.headers["X-A"] = value
            session.get(server.url())
        del session.headers["X-A"]
        session.get(server.url())
        assert [one.fields.get("X-A") for one in server.requests] == ["1", "2", None]

    def test_a_calls_own_count_more_whatever_their_case(self, session, server):
        session.headers["X-Name"] = "session"
        session.get(server.url(), headers={"x-name": "call"})
        assert server.last.fields.all("X-Name") == ["call"]

    def test_a_calls_own_are_not_kept(self, session, server):
        session.get(server.url(), headers={"X-A": "1"})
        session.get(server.url())
        assert "X-A" not in server.last.fields

    @pytest.mark.parametrize("name", ["X-A", "Accept", "accept"])
    def test_none_removes_one_for_a_call(self, session, server, name):
        session.headers["X-A"] = "1"
        session.get(server.url(), headers={name: None})
        assert name not in server.last.fields

    def test_none_in_the_session_removes_it_for_all(self, session, server):
        session.headers["Accept"] = None
        session.get(server.url())
        assert "Accept" not in server.last.fields

    @pytest.mark.parametrize("agent", ["mine/1", b"mine/1"])
    @pytest.mark.parametrize("where", ["call", "session"])
    def test_a_user_agent_of_ones_own_is_sent(self, session, server, agent, where):
        if where == "session":
            session.headers["User-Agent"] = agent
        session.get(server.url(), headers={"User-Agent": agent} if where == "call" else None)
        assert server.last.fields.all("User-Agent") == ["mine/1"]

    def test_they_may_be_another_mapping(self, session, server):
        session.headers = {"X-A": "1"}
        session.get(server.url())
        assert server.last.fields["X-A"] == "1"
        assert "Accept" not in server.last.fields

    def test_the_session_has_no_case_either(self, session):
        session.headers["X-Name"] = "1"
        assert session.headers["x-name"] == "1"
        assert isinstance(session.headers, requests.structures.CaseInsensitiveDict)

    def test_order_is_the_sessions_then_the_calls(self, session, server):
        session.headers.clear()
        session.headers.update({"User-Agent": "a", "B": "1", "A": "2", "Accept-Encoding": "identity"})
        session.get(server.url(), headers={"D": "3", "C": "4"})
        assert [name for name, _ in server.last.fields if len(name) == 1] == ["B", "A", "D", "C"]

    @pytest.mark.parametrize("value", ["v", b"v", "", "a, b", "\t".join("ab")])
    def test_values_are_text_or_bytes(self, session, server, value):
        session.get(server.url(), headers={"X-A": value})
        assert server.last.fields["X-A"] == (value.decode() if isinstance(value, bytes) else value)

    def test_the_callers_mapping_is_not_changed(self, session, server):
        headers = {"X-A": "1", "X-B": None}
        session.get(server.url(), headers=headers)
        assert headers == {"X-A": "1", "X-B": None}

    def test_the_host_may_be_another(self, session, server):
        session.get(server.url(), headers={"Host": "example.test"})
        assert server.last.fields.all("Host") == ["example.test"]


class TestMethods:
    @pytest.mark.parametrize("method", ["get", "options", "head", "post", "put", "patch", "delete"])
    def test_each_has_a_function(self, session, server, method):
        response = getattr(session, method)(server.url())
        assert response.status_code == 200
        assert server.last.method == method.upper()

    def test_arguments_may_be_given_by_position(self, session, server):
        session.post(server.url("/echo"), b"data")
        assert server.last.body == b"data"
        session.post(server.url("/echo"), None, {"json": 1})
        assert server.last.json() == {"json": 1}
        session.request("PUT", server.url("/echo"), {"p": "1"}, b"data", {"X-A": "1"}, {"c": "1"})
        assert (server.last.query, server.last.body, server.last.fields["X-A"]) == ("p=1", b"data", "1")
        assert server.last.cookies == {"c": "1"}

    def test_all_arguments_by_position(self, session, server):
        hooks = {"response": []}
        everything = (None, None, None, None, None, None, 5, False, {}, hooks, True, True, None, {"j": 1})
        response = session.request("POST", server.route("/it", redirect("/")), *everything)
        assert response.status_code == 302
        assert server.last.json() == {"j": 1}
        response.close()

    def test_arguments_may_be_given_by_name(self, session, server):
        session.request(method="GET", url=server.url("/it"), params={"a": "1"})
        assert server.last.query == "a=1"

    @pytest.mark.parametrize("arguments", [{"nonsense": 1}, {"header": {}}, {"time_out": 3}])
    def test_unknown_arguments_are_refused(self, session, server, arguments):
        with pytest.raises(TypeError):
            session.get(server.url(), **arguments)
        assert server.requests == []

    def test_too_many_arguments_are_refused(self, session, server):
        with pytest.raises(TypeError):
            session.request("GET", server.url(), *[None] * 15)

    @pytest.mark.parametrize(
        "name", ["request", "get", "head", "options", "post", "put", "patch", "delete", "send", "mount", "close"]
    )
    def test_signatures_accept_the_names_that_requests_has(self, session, name):
        theirs = inspect.signature(getattr(requests.Session, name))
        found = inspect.signature(getattr(type(session), name))
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in found.parameters.values())
        missing = set(theirs.parameters) - set(found.parameters)
        assert not missing or takes_any


class TestAttributes:
    def test_those_of_requests_are_there(self, session):
        for name in requests.Session.__attrs__:
            assert hasattr(session, name)
        assert session.auth is None
        assert (dict(session.proxies), session.params, session.stream) == ({}, {}, False)
        assert (session.verify, session.cert, session.trust_env, session.max_redirects) == (True, None, True, 30)
        assert session.hooks == {"response": []}
        assert isinstance(session.cookies, requests.cookies.RequestsCookieJar)

    def test_it_is_a_requests_session(self, session):
        assert isinstance(session, requests.Session)

    def test_any_other_may_be_set(self, session):
        session.mine = 1
        assert session.mine == 1

    def test_hooks_may_be_replaced(self, session, server):
        seen: list = []
        session.hooks = {"response": [lambda response, **_: seen.append(1)]}
        session.get(server.url())
        session.hooks = requests.hooks.default_hooks()
        session.get(server.url())
        assert seen == [1]

    def test_auth_may_be_replaced(self, session, server):
        for auth in (("a", "b"), None):
            session.auth = auth
            session.get(server.url())
        assert ["Authorization" in one.fields for one in server.requests] == [True, False]


class TestSubclasses:
    """Code that overrides a method of the session meets the calls it met before."""

    def test_request_may_be_overridden(self, session, server):
        class Prefixed(type(session)):
            def request(self, method, url, *args, **kwargs):
                return super().request(method, server.url(url), *args, **kwargs)

        session.__class__ = Prefixed
        assert session.get("/echo").json()["target"] == "/echo"
        assert session.post("/echo", json={}).json()["method"] == "POST"

    def test_send_may_be_overridden(self, session, server):
        sent: list[str] = []

        class Noting(type(session)):
            def send(self, request, **kwargs):
                sent.append(request.path_url)
                return super().send(request, **kwargs)

        session.__class__ = Noting
        session.get(server.route("/from", redirect("/")))
        assert sent == ["/from", "/"]

    def test_prepare_request_may_be_overridden(self, session, server):
        class Signing(type(session)):
            def prepare_request(self, request):
                prepared = super().prepare_request(request)
                prepared.headers["X-Signed"] = prepared.method
                return prepared

        session.__class__ = Signing
        session.get(server.url())
        assert server.last.fields["X-Signed"] == "GET"

    def test_rebuild_auth_may_be_overridden(self, session, server):
        class Trusting(type(session)):
            def rebuild_auth(self, prepared_request, response):
                pass

        session.__class__ = Trusting
        session.get(server.route("/from", redirect(server.url("/", host="127.0.0.2"))), auth=("me", "pw"))
        assert "Authorization" in server.last.fields

    def test_should_strip_auth_may_be_overridden(self, session, server):
        class Trusting(type(session)):
            def should_strip_auth(self, old_url, new_url):
                return False

        session.__class__ = Trusting
        session.get(server.route("/from", redirect(server.url("/", host="127.0.0.2"))), auth=("me", "pw"))
        assert "Authorization" in server.last.fields

    def test_get_redirect_target_may_be_overridden(self, session, server):
        class Staying(type(session)):
            def get_redirect_target(self, resp):
                return None

        session.__class__ = Staying
        assert session.get(server.route("/from", redirect("/"))).status_code == 302

    def test_get_adapter_may_be_overridden(self, session):
        class Choosing(type(session)):
            def get_adapter(self, url):
                return ScriptedAdapter(299)

        session.__class__ = Choosing
        assert session.get("anything://at.all").status_code == 299

    def test_merge_environment_settings_may_be_overridden(self, session, server, proxy):
        class Proxied(type(session)):
            def merge_environment_settings(self, url, proxies, stream, verify, cert):
                settings = super().merge_environment_settings(url, proxies, stream, verify, cert)
                return {**settings, "proxies": {"http": proxy.url()}}

        session.__class__ = Proxied
        session.get(server.url())
        assert len(proxy.requests) == 1

    def test_rebuild_method_may_be_overridden(self, session, server):
        class Strict(type(session)):
            def rebuild_method(self, prepared_request, response):
                pass

        session.__class__ = Strict
        session.post(server.route("/from", redirect("/")))
        assert server.last.method == "POST"

    def test_resolve_redirects_may_be_overridden(self, session, server):
        class Noting(type(session)):
            hops = 0

            def resolve_redirects(self, *args, **kwargs):
                for hop in super().resolve_redirects(*args, **kwargs):
                    self.hops += 1
                    yield hop

        session.__class__ = Noting
        assert session.get(server.route("/from", redirect("/"))).text == "ok"
        assert session.hops == 1
