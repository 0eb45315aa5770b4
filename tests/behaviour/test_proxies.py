"""Proxies: a real one on loopback, chosen by argument, session or environment."""

from __future__ import annotations

import base64
import importlib.util

import pytest
import requests

from ..loopback import ForwardProxy, Server, redirect


@pytest.fixture
def second_proxy():
    with ForwardProxy() as running:
        yield running


class TestChoosing:
    def test_a_call_may_name_one(self, session, server, proxy):
        assert session.get(server.url(), proxies={"http": proxy.url()}).text == "ok"
        assert [one.target for one in proxy.requests] == [server.url()]
        session.get(server.url())
        assert len(proxy.requests) == 1

    def test_the_session_may_name_one(self, session, server, proxy):
        session.proxies = {"http": proxy.url()}
        session.get(server.url())
        session.proxies.update({"http": None})
        session.get(server.url())
        assert len(proxy.requests) == 1

    def test_the_calls_counts_more_than_the_sessions(self, session, server, proxy, second_proxy):
        session.proxies["http"] = proxy.url()
        session.get(server.url(), proxies={"http": second_proxy.url()})
        assert (len(proxy.requests), len(second_proxy.requests)) == (0, 1)

    @pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
    def test_the_environment_may_name_one(self, session, server, proxy, monkeypatch, name):
        monkeypatch.setenv(name, proxy.url())
        session.get(server.url())
        assert len(proxy.requests) == 1

    def test_the_environment_counts_more_than_the_session(self, session, server, proxy, second_proxy, monkeypatch):
        """Known of requests, and kept."""
        monkeypatch.setenv("http_proxy", proxy.url())
        session.proxies["http"] = second_proxy.url()
        session.get(server.url())
        assert (len(proxy.requests), len(second_proxy.requests)) == (1, 0)

    def test_a_calls_counts_more_than_the_environment(self, session, server, proxy, second_proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        session.get(server.url(), proxies={"http": second_proxy.url()})
        assert (len(proxy.requests), len(second_proxy.requests)) == (0, 1)

    def test_a_change_of_the_environment_is_seen_at_the_next_call(self, session, server, proxy, monkeypatch):
        session.get(server.url())
        monkeypatch.setenv("http_proxy", proxy.url())
        session.get(server.url())
        monkeypatch.delenv("http_proxy")
        session.get(server.url())
        assert len(proxy.requests) == 1

    def test_a_session_may_distrust_the_environment(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        session.trust_env = False
        session.get(server.url())
        assert proxy.requests == []

    def test_none_of_a_call_does_not_hide_all_proxy(self, session, server, proxy, monkeypatch):
        """requests drops the None before it looks for the proxy of all."""
        monkeypatch.setenv("all_proxy", proxy.url())
        session.get(server.url(), proxies={"http": None})
        assert len(proxy.requests) == 1

    def test_none_of_a_call_hides_the_sessions(self, session, server, proxy):
        session.proxies["http"] = proxy.url()
        session.get(server.url(), proxies={"http": None})
        assert proxy.requests == []

    def test_an_empty_one_is_none(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        session.get(server.url(), proxies={"http": ""})
        assert proxy.requests == []

    def test_one_host_may_have_its_own(self, session, server, proxy, second_proxy):
        proxies = {"http": proxy.url(), "http://127.0.0.2": second_proxy.url()}
        session.get(server.url(), proxies=proxies)
        session.get(server.url(host="127.0.0.2"), proxies=proxies)
        assert (len(proxy.requests), len(second_proxy.requests)) == (1, 1)

    @pytest.mark.parametrize("key", ["all", "all://127.0.0.1"])
    def test_one_may_be_for_all_schemes(self, session, server, proxy, key):
        session.get(server.url(), proxies={key: proxy.url()})
        assert len(proxy.requests) == 1

    def test_the_scheme_may_be_left_out(self, session, server, proxy):
        session.get(server.url(), proxies={"http": f"127.0.0.1:{proxy.port}"})
        assert len(proxy.requests) == 1

    def test_the_callers_dictionary_is_not_emptied(self, session, server, proxy):
        proxies = {"http": proxy.url()}
        session.get(server.url(), proxies=proxies)
        assert proxies["http"] == proxy.url()


class TestNoProxy:
    @pytest.mark.parametrize(
        ("no_proxy", "direct"),
        [
            ("127.0.0.1", True),
            ("127.0.0.0/8", True),
            ("*", True),
            ("localhost, 127.0.0.1", True),
            ("127.0.0.2", False),
            ("10.0.0.0/8", False),
            ("", False),
        ],
    )
    @pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
    def test_it_lists_hosts_that_are_asked_directly(self, session, server, proxy, monkeypatch, name, no_proxy, direct):
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv(name, no_proxy)
        session.get(server.url())
        assert (proxy.requests == []) is direct

    @pytest.mark.parametrize(
        ("no_proxy", "direct"),
        [("example.test", True), (".example.test", True), ("a.example.test", True), ("other.test", False)],
    )
    def test_it_covers_subdomains(self, session, server, proxy, second_proxy, monkeypatch, no_proxy, direct):
        """A name that is asked directly has no address here."""
        proxy.names["a.example.test"] = server.address
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("no_proxy", no_proxy)
        if direct:
            with pytest.raises(requests.ConnectionError):
                session.get("http://a.example.test/")
        else:
            assert session.get("http://a.example.test/").text == "ok"
        assert (proxy.requests == []) is direct

    def test_it_may_name_a_port(self, session, server, second_server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("no_proxy", f"localhost:{server.port}")
        session.get(server.url(host="localhost"))
        session.get(second_server.url(host="localhost"))
        assert [one.target for one in proxy.requests] == [second_server.url(host="localhost")]

    def test_a_call_may_list_them(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        session.get(server.url(), proxies={"no_proxy": "127.0.0.1"})
        assert proxy.requests == []

    def test_a_redirect_from_a_listed_host_finds_the_proxy(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("no_proxy", "127.0.0.2")
        session.get(server.route("/from", redirect(server.url("/")), host="127.0.0.2"))
        assert [one.target for one in proxy.requests] == [server.url("/")]

    def test_a_redirect_to_a_listed_host_keeps_the_proxy(self, session, server, proxy, monkeypatch):
        """Known of requests, and kept."""
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("no_proxy", "127.0.0.2")
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))))
        assert len(proxy.requests) == 2


class TestTunnels:
    def test_https_goes_through_connect(self, session, tls_server, proxy, authority):
        response = session.get(tls_server.url(), proxies={"https": proxy.url()}, verify=authority.bundle)
        assert response.text == "ok"
        assert proxy.tunnels == [f"127.0.0.1:{tls_server.port}"]
        assert tls_server.last.target == "/"

    def test_the_certificate_is_checked_inside(self, session, tls_server, proxy):
        with pytest.raises(requests.exceptions.SSLError):
            session.get(tls_server.url(), proxies={"https": proxy.url()})

    def test_a_tunnel_is_kept(self, session, tls_server, proxy, authority):
        session.verify = authority.bundle
        session.proxies = {"https": proxy.url()}
        session.get(tls_server.url())
        session.get(tls_server.url("/echo"))
        assert len(proxy.tunnels) == 1

    def test_the_environment_may_name_it(self, session, tls_server, proxy, authority, monkeypatch):
        monkeypatch.setenv("https_proxy", proxy.url())
        session.get(tls_server.url(), verify=authority.bundle)
        assert len(proxy.tunnels) == 1

    def test_the_proxy_may_speak_tls_itself(self, session, tls_server, authority):
        with ForwardProxy(tls=authority.server_context()) as proxy:
            response = session.get(tls_server.url(), proxies={"https": proxy.url()}, verify=authority.bundle)
            assert response.text == "ok"
            assert len(proxy.tunnels) == 1


class TestCredentials:
    WANTED = "Basic " + base64.b64encode(b"me:p@w").decode()

    @pytest.fixture
    def proxy(self):
        with ForwardProxy(credentials=("me", "p@w")) as running:
            yield running

    def test_they_are_in_the_proxys_url(self, session, server, proxy):
        url = proxy.url(host="me:p%40w@127.0.0.1")
        assert session.get(server.url(), proxies={"http": url}).text == "ok"
        assert proxy.last.fields["Proxy-Authorization"] == self.WANTED

    def test_they_open_tunnels(self, session, tls_server, proxy, authority):
        url = proxy.url(host="me:p%40w@127.0.0.1")
        assert session.get(tls_server.url(), proxies={"https": url}, verify=authority.bundle).text == "ok"
        assert proxy.last.fields["Proxy-Authorization"] == self.WANTED
        assert "Proxy-Authorization" not in tls_server.last.fields

    def test_the_environment_may_hold_them(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url(host="me:p%40w@127.0.0.1"))
        assert session.get(server.url()).status_code == 200

    def test_without_them_an_answer_says_so(self, session, server, proxy):
        assert session.get(server.url(), proxies={"http": proxy.url()}).status_code == 407

    def test_without_them_no_tunnel_is_opened(self, session, tls_server, proxy):
        with pytest.raises(requests.exceptions.ProxyError):
            session.get(tls_server.url(), proxies={"https": proxy.url()})

    def test_redirects_send_them_again(self, session, server, proxy):
        url = proxy.url(host="me:p%40w@127.0.0.1")
        response = session.get(server.route("/from", redirect("/")), proxies={"http": url})
        assert response.text == "ok"
        assert [one.fields["Proxy-Authorization"] for one in proxy.requests] == [self.WANTED] * 2


class TestFailures:
    @pytest.fixture
    def gone(self):
        with Server() as closed:
            pass
        return closed.url()

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_a_proxy_that_is_not_there(self, session, gone, scheme):
        with pytest.raises(requests.exceptions.ProxyError) as caught:
            session.get(f"{scheme}://example.test/", proxies={scheme: gone})
        assert caught.value.request.url == f"{scheme}://example.test/"

    def test_an_origin_that_is_not_there_is_the_proxys_answer(self, session, proxy, gone):
        assert session.get(gone, proxies={"http": proxy.url()}).status_code == 502

    def test_a_proxy_url_without_a_host(self, session, server):
        with pytest.raises(requests.exceptions.InvalidProxyURL):
            session.get(server.url(), proxies={"http": "http:///nowhere"})

    def test_socks_without_its_package(self, session, server):
        if importlib.util.find_spec("socks") is not None:
            pytest.skip("PySocks is installed")
        with pytest.raises(requests.exceptions.InvalidSchema, match="SOCKS"):
            session.get(server.url(), proxies={"http": "socks5://127.0.0.1:1"})


class TestPreparedRequests:
    def test_send_looks_the_environment_up_itself(self, session, server, proxy, monkeypatch):
        monkeypatch.setenv("http_proxy", proxy.url())
        session.send(requests.Request("GET", server.url()).prepare())
        assert len(proxy.requests) == 1

    def test_send_takes_the_sessions(self, session, server, proxy):
        session.proxies = {"http": proxy.url()}
        session.send(requests.Request("GET", server.url()).prepare())
        assert len(proxy.requests) == 1

    def test_send_takes_its_own(self, session, server, proxy):
        session.send(requests.Request("GET", server.url()).prepare(), proxies={"http": proxy.url()})
        assert len(proxy.requests) == 1


class TestOnTheWire:
    def test_the_origin_sees_the_request_as_it_was(self, session, server, proxy):
        session.post(server.url("/echo?q=1"), data=b"x", headers={"X-A": "b"}, proxies={"http": proxy.url()})
        assert (server.last.method, server.last.target, server.last.body) == ("POST", "/echo?q=1", b"x")
        assert (server.last.fields["X-A"], server.last.host) == ("b", f"127.0.0.1:{server.port}")

    def test_the_connection_to_the_proxy_is_kept(self, session, server, proxy):
        session.proxies = {"http": proxy.url()}
        session.get(server.url())
        session.get(server.url(host="127.0.0.2"))
        assert proxy.accepted == 1

    def test_cookies_work_as_without(self, session, server, proxy):
        session.proxies = {"http": proxy.url()}
        server.route("/set", redirect("/", fields={"Set-Cookie": "a=1; Path=/"}))
        session.get(server.url("/set"))
        assert server.last.cookies == {"a": "1"}
