"""Cookies: what is kept, what is sent where, and what stays out of the session."""

from __future__ import annotations

import http.cookiejar

import pytest
import requests
from requests.cookies import RequestsCookieJar, create_cookie

from ..loopback import answer, set_cookies


class TestTheJar:
    def test_a_session_sends_back_what_it_got(self, session, server):
        session.get(server.route("/set", set_cookies("a=1; Path=/", "b=2; Path=/")))
        session.get(server.url("/echo"))
        assert server.last.cookies == {"a": "1", "b": "2"}

    def test_sessions_do_not_share(self, make_session, server):
        one, other = make_session(), make_session()
        one.get(server.route("/set", set_cookies("a=1; Path=/")))
        other.get(server.url("/echo"))
        assert server.last.cookies == {}

    def test_a_response_shows_its_own(self, session, server):
        first = session.get(server.route("/a", set_cookies("a=1")))
        second = session.get(server.route("/b", set_cookies("b=2")))
        assert (first.cookies.get_dict(), second.cookies.get_dict()) == ({"a": "1"}, {"b": "2"})

    def test_it_is_a_mapping(self, session):
        session.cookies["a"] = "1"
        session.cookies.update({"b": "2"})
        assert (session.cookies["a"], dict(session.cookies)) == ("1", {"a": "1", "b": "2"})
        del session.cookies["a"]
        assert "a" not in session.cookies

    def test_it_may_be_filled_by_hand(self, session, server):
        session.cookies.set("a", "1", domain="127.0.0.1", path="/")
        session.cookies.set_cookie(create_cookie("b", "2"))
        session.get(server.url("/echo"))
        assert server.last.cookies == {"a": "1", "b": "2"}

    @pytest.mark.parametrize(
        "jar", [lambda: RequestsCookieJar(), lambda: http.cookiejar.CookieJar()], ids=["requests", "plain"]
    )
    def test_it_may_be_another_jar(self, session, server, jar):
        session.cookies = jar()
        session.get(server.route("/set", set_cookies("a=1; Path=/")))
        session.get(server.url("/echo"))
        assert server.last.cookies == {"a": "1"}

    def test_clearing_it_is_seen(self, session, server):
        session.cookies.set("a", "1")
        session.cookies.clear()
        session.get(server.url())
        assert "Cookie" not in server.last.fields

    def test_a_policy_that_accepts_nothing_keeps_nothing(self, session, server):
        session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        session.get(server.route("/set", set_cookies("a=1; Path=/")))
        assert session.cookies.get_dict() == {}

    def test_one_name_at_two_paths_is_a_conflict_to_ask_for(self, session):
        session.cookies.set("a", "1", path="/x")
        session.cookies.set("a", "2", path="/y")
        with pytest.raises(requests.cookies.CookieConflictError):
            session.cookies["a"]


class TestRules:
    def test_the_path_counts(self, session, server):
        session.get(server.route("/deep/set", set_cookies("a=1; Path=/deep", "b=2; Path=/")))
        session.get(server.url("/deep/x"))
        assert server.last.cookies == {"a": "1", "b": "2"}
        session.get(server.url("/x"))
        assert server.last.cookies == {"b": "2"}

    def test_the_host_counts_and_the_port_does_not(self, session, server, second_server):
        session.get(server.route("/set", set_cookies("a=1; Path=/")))
        session.get(server.url(host="127.0.0.2"))
        assert server.last.cookies == {}
        session.get(second_server.url())
        assert second_server.last.cookies == {"a": "1"}

    @pytest.mark.parametrize("ending", ["Max-Age=0", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"])
    def test_an_ended_one_is_removed(self, session, server, ending):
        session.get(server.route("/set", set_cookies("a=1; Path=/")))
        session.get(server.route("/end", set_cookies(f"a=; Path=/; {ending}")))
        session.get(server.url())
        assert server.last.cookies == {}

    def test_a_secure_one_is_not_sent_in_the_clear(self, session, server):
        session.cookies.set("a", "1", secure=True, domain="127.0.0.1")
        session.cookies.set("b", "2", domain="127.0.0.1")
        session.get(server.url(host="127.0.0.1"))
        assert server.last.cookies["b"] == "2"

    def test_subdomains_share_what_is_set_for_all(self, session, server, proxy):
        for name in ("a.example.test", "b.example.test", "other.test"):
            proxy.names[name] = server.address
        session.proxies = {"http": proxy.url()}
        server.route("/set", set_cookies("all=1; Domain=example.test; Path=/", "one=2; Path=/"))
        session.get("http://a.example.test/set")
        for host, sent in (("a.example.test", {"all", "one"}), ("b.example.test", {"all"}), ("other.test", set())):
            session.get(f"http://{host}/")
            assert set(server.last.cookies) == sent

    def test_another_site_cannot_set_them(self, session, server, proxy):
        proxy.names["evil.test"] = server.address
        session.proxies = {"http": proxy.url()}
        server.route("/set", set_cookies("a=1; Domain=example.test; Path=/"))
        assert session.get("http://evil.test/set").status_code == 200
        assert session.cookies.get_dict() == {}

    @pytest.mark.parametrize("value", ['"quoted"', "a=b", "with%20percent", "", "x" * 3000])
    def test_values_come_back_as_they_were(self, session, server, value):
        session.get(server.route("/set", set_cookies(f"a={value}; Path=/")))
        session.get(server.url())
        assert server.last.cookies == {"a": value}


class TestOneCall:
    def test_its_cookies_are_sent_and_not_kept(self, session, server):
        session.get(server.url(), cookies={"own": "1"})
        assert server.last.cookies == {"own": "1"}
        session.get(server.url())
        assert server.last.cookies == {}

    def test_they_join_the_sessions(self, session, server):
        session.cookies.set("a", "1")
        session.get(server.url(), cookies={"b": "2"})
        assert server.last.cookies == {"a": "1", "b": "2"}

    def test_they_replace_the_sessions_for_once(self, session, server):
        session.cookies.set("a", "1")
        session.get(server.url(), cookies={"a": "9"})
        assert server.last.cookies == {"a": "9"}
        assert session.cookies.get_dict() == {"a": "1"}

    def test_they_may_be_a_jar(self, session, server):
        jar = RequestsCookieJar()
        jar.set("a", "1", domain="127.0.0.1", path="/echo")
        jar.set("b", "2", domain="127.0.0.1", path="/elsewhere")
        session.get(server.url("/echo"), cookies=jar)
        assert server.last.cookies == {"a": "1"}
        assert len(jar) == 2

    def test_what_the_answer_sets_is_kept_all_the_same(self, session, server):
        session.get(server.route("/set", set_cookies("a=1; Path=/")), cookies={"own": "1"})
        assert session.cookies.get_dict() == {"a": "1"}

    def test_a_cookie_field_by_hand_counts_alone(self, session, server):
        session.cookies.set("a", "1")
        session.get(server.url(), headers={"Cookie": "raw=yes"})
        assert server.last.fields.all("Cookie") == ["raw=yes"]

    def test_they_are_on_the_prepared_request(self, session, server):
        session.cookies.set("a", "1")
        prepared = session.prepare_request(requests.Request("GET", server.url(), cookies={"b": "2"}))
        assert prepared.headers["Cookie"] in ("a=1; b=2", "b=2; a=1")


class TestErrorAnswers:
    @pytest.mark.parametrize("status", [400, 404, 410])
    def test_their_cookies_count_too(self, session, server, status):
        session.get(server.route("/set", answer(status, fields={"Set-Cookie": "a=1; Path=/"})))
        assert session.cookies.get_dict() == {"a": "1"}

    def test_a_streamed_answer_sets_them_at_once(self, session, server):
        with session.get(server.route("/set", set_cookies("a=1; Path=/", body="x")), stream=True):
            assert session.cookies.get_dict() == {"a": "1"}
