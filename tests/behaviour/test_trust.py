"""TLS: whose certificate is trusted, by which of several settings, and the client's own certificate."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import requests
import urllib3

from ..loopback import Server

ONE_POOL = pytest.mark.skipif(
    tuple(map(int, requests.__version__.split(".")[:2])) < (2, 32),
    reason="earlier releases go on with a connection that was not verified (CVE-2024-35195)",
)


@pytest.fixture
def distrusted(authority):
    """A server whose certificate is for another name."""
    with Server(tls=authority.server_context("elsewhere.test")) as running:
        yield running


class TestVerify:
    def test_an_unknown_authority_is_not_trusted(self, session, tls_server):
        with pytest.raises(requests.exceptions.SSLError) as caught:
            session.get(tls_server.url())
        assert isinstance(caught.value, requests.ConnectionError)
        assert caught.value.request.url == tls_server.url()
        assert tls_server.requests == []

    def test_a_bundle_is_trusted(self, session, tls_server, authority):
        assert session.get(tls_server.url(), verify=authority.bundle).text == "ok"

    def test_another_name_is_not(self, session, distrusted, authority):
        with pytest.raises(requests.exceptions.SSLError):
            session.get(distrusted.url(), verify=authority.bundle)

    def test_the_session_may_have_a_bundle(self, session, tls_server, authority):
        session.verify = authority.bundle
        assert session.get(tls_server.url()).text == "ok"

    @pytest.mark.parametrize("where", ["call", "session"])
    def test_it_may_be_left_out_with_a_warning(self, session, tls_server, where):
        how = {"verify": False} if where == "call" else {}
        session.verify = where == "call"
        with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
            assert session.get(tls_server.url(), **how).text == "ok"

    def test_a_call_counts_more_than_its_session(self, session, tls_server, authority, unverified):
        session.verify = False
        assert session.get(tls_server.url(), verify=authority.bundle).text == "ok"
        session.verify = authority.bundle
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert session.get(tls_server.url()).text == "ok"

    @ONE_POOL
    def test_leaving_it_out_once_trusts_nothing_later(self, session, tls_server, unverified):
        session.get(tls_server.url(), verify=False)
        with pytest.raises(requests.exceptions.SSLError):
            session.get(tls_server.url())

    def test_a_bundle_that_is_not_there_is_an_error(self, session, tls_server):
        with pytest.raises(OSError, match="nowhere"):
            session.get(tls_server.url(), verify="/nowhere/bundle.pem")

    def test_plain_http_asks_for_nothing(self, session, server):
        assert session.get(server.url(), verify="/nowhere/bundle.pem").text == "ok"


class TestTheEnvironment:
    @pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
    def test_it_may_name_a_bundle(self, session, tls_server, authority, monkeypatch, name):
        monkeypatch.setenv(name, authority.bundle)
        assert session.get(tls_server.url()).text == "ok"

    def test_requests_own_counts_more_than_curls(self, session, tls_server, authority, monkeypatch):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
        monkeypatch.setenv("CURL_CA_BUNDLE", "/nowhere.pem")
        assert session.get(tls_server.url()).text == "ok"

    def test_it_counts_more_than_the_session(self, session, tls_server, authority, monkeypatch):
        """Known of requests, and kept: even `session.verify = False` verifies then."""
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
        session.verify = False
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert session.get(tls_server.url()).text == "ok"

    def test_a_calls_false_counts_more(self, session, tls_server, monkeypatch, unverified):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
        assert session.get(tls_server.url(), verify=False).text == "ok"

    def test_a_session_may_distrust_it(self, session, tls_server, authority, monkeypatch):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
        session.trust_env = False
        with pytest.raises(requests.exceptions.SSLError):
            session.get(tls_server.url())

    @ONE_POOL
    def test_a_change_is_seen_at_the_next_call(self, session, tls_server, authority, monkeypatch):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
        session.get(tls_server.url())
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        with pytest.raises(requests.exceptions.SSLError):
            session.get(tls_server.url())

    def test_settings_can_be_asked_for(self, session, server, authority, monkeypatch):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
        monkeypatch.setenv("http_proxy", "http://p.test")
        session.cert = "c"
        settings = session.merge_environment_settings(server.url(), {}, None, None, None)
        assert settings["verify"] == authority.bundle
        assert (settings["stream"], settings["cert"]) == (False, "c")
        assert dict(settings["proxies"]) == {"http": "http://p.test"}

    def test_they_can_be_asked_for_without_proxies(self, session, server):
        settings = session.merge_environment_settings(server.url(), None, True, False, None)
        assert (settings["stream"], settings["verify"], settings["cert"]) == (True, False, None)
        assert not settings["proxies"]


class TestClientCertificates:
    @pytest.fixture
    def strict(self, authority):
        with Server(tls=authority.server_context(wants_client=True)) as running:
            yield running

    @pytest.mark.parametrize("where", ["call", "session"])
    def test_one_may_be_shown(self, session, strict, authority, where):
        files = authority.client_files()
        if where == "session":
            session.cert = files
        session.get(strict.url(), verify=authority.bundle, cert=files if where == "call" else None)
        assert strict.last.certificate

    def test_one_file_may_hold_both(self, session, strict, authority, tmp_path):
        both = tmp_path / "both.pem"
        certificate, key = authority.client_files()
        both.write_text(Path(key).read_text() + Path(certificate).read_text())
        session.get(strict.url(), verify=authority.bundle, cert=str(both))
        assert strict.last.certificate

    def test_without_one_the_server_refuses(self, session, strict, authority):
        with pytest.raises(requests.ConnectionError):
            session.get(strict.url(), verify=authority.bundle)

    @pytest.mark.parametrize("cert", ["/nowhere.pem", ("/nowhere.pem", "/nowhere.key")])
    def test_a_file_that_is_not_there_is_an_error(self, session, strict, authority, cert):
        with pytest.raises(OSError, match="nowhere"):
            session.get(strict.url(), verify=authority.bundle, cert=cert)
