"""What a proxy hides, and how that is said."""

import logging

import pytest
from requests.adapters import HTTPAdapter

from kreuz_sync import AddressBlocked, AddressGuard

from ..loopback import redirect
from .resolving import PRIVATE, Resolver


class TestProxies:
    """Behind a proxy only what the URL itself says can be checked."""

    @pytest.fixture
    def through(self, proxy, server):
        proxy.names["site.test"] = server.address
        return {"http": proxy.url(), "https": proxy.url()}

    def test_it_is_said_once_for_a_session(self, open_session, server, through, caplog):
        caplog.set_level(logging.WARNING, "kreuz_sync")
        guard = AddressGuard()
        for _ in range(2):
            session = open_session(deny_private=guard)
            session.mount("http://site.test/", HTTPAdapter())
            for path in ("/", "/echo"):
                assert session.get(server.url(path, host="site.test"), proxies=through).ok
        told = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert [one.name for one in told] == ["kreuz_sync.ssrf"] * 2
        assert "proxy" in told[0].getMessage() and "site.test" in told[0].getMessage()

    def test_credentials_of_the_proxy_are_not(self, open_session, server, through, caplog):
        proxies = {"http": through["http"].replace("://", "://me:s3cret@")}
        open_session(deny_private=True).get(server.url(host="site.test"), proxies=proxies)
        assert "s3cret" not in caplog.text and "proxy" in caplog.text

    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "localhost", "a.localhost.", "[::1]", "%31%32%37.0.0.1"]
    )
    @pytest.mark.parametrize("proxies", ["warn", "allow"])
    def test_addresses_in_urls_are_refused_all_the_same(self, open_session, proxy, through, host, proxies):
        session = open_session(proxies=proxies)
        for scheme in ("http", "https"):
            with pytest.raises(AddressBlocked):
                session.get(f"{scheme}://{host}:9/", proxies=through)
        assert (proxy.accepted, proxy.requests) == (0, [])

    def test_the_zone_of_an_address_changes_nothing(self, open_session, through):
        with pytest.raises(AddressBlocked):
            open_session().get("http://[fe80::1%25eth0]/", proxies=through)

    def test_they_may_be_allowed_and_public(self, open_session, server, through):
        assert open_session(allow=["127.0.0.1"]).get(server.url(), proxies=through).text == "ok"
        assert open_session(private=[PRIVATE]).get(server.url(), proxies=through).text == "ok"

    def test_nothing_is_looked_up_here(self, open_session, server, through):
        """The look-up is the proxy's; some use one to keep theirs to themselves."""
        resolver = Resolver(**{"127_0_0_1": ["127.0.0.1"]})
        open_session(private=[PRIVATE], lookup=resolver).get(server.url(host="site.test"), proxies=through)
        assert "site.test" not in resolver.asked

    def test_a_tunnel(self, open_session, tls_server, proxy, through, authority):
        proxy.names["www.example.test"] = tls_server.address
        session = open_session(deny_private=True)
        url = tls_server.url(host="www.example.test")
        assert session.get(url, proxies=through, verify=authority.bundle).text == "ok"

    def test_refuse_sends_nothing_through_one(self, open_session, server, proxy, through, caplog):
        session = open_session(Resolver(), proxies="refuse")
        with pytest.raises(AddressBlocked, match="proxy") as caught:
            session.get(server.url(host="site.test"), proxies=through)
        assert (caught.value.host, caught.value.address, caught.value.kind) == ("site.test", "", "behind a proxy")
        assert (proxy.accepted, caplog.text) == (0, "")
        assert session.get(server.url()).text == "ok"  # not by a proxy

    def test_allow_says_nothing(self, open_session, server, through, caplog):
        open_session(proxies="allow").get(server.url(host="site.test"), proxies=through)
        assert caplog.text == ""

    def test_those_of_the_environment_are_seen(self, open_session, server, proxy, through, monkeypatch):
        monkeypatch.setenv("http_proxy", through["http"])
        with pytest.raises(AddressBlocked):
            open_session(proxies="refuse").get(server.url(host="site.test"))

    def test_a_redirect_from_behind_one_to_an_address(self, open_session, server, proxy, through):
        server.route("/from", redirect("http://169.254.169.254/"))
        for settings in ({}, {"redirects_only": True}):
            with pytest.raises(AddressBlocked):
                open_session(**settings).get(server.url("/from", host="site.test"), proxies=through)
        assert [one.path for one in server.requests] == ["/from"] * 2

    def test_redirects_only_lets_the_callers_own_address_pass(self, open_session, server, through):
        session = open_session(redirects_only=True)
        server.route("/from", redirect("/"))
        assert session.get(server.url("/from"), proxies=through).text == "ok"
