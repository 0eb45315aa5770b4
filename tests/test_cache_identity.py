"""Whose answer it is: what a store has for one asker, site or connection is not for another."""

from __future__ import annotations

import warnings

import pytest

from kreuz_sync import Cache, HeaderAuth, MemoryStore, Session
from kreuz_sync.auth import OriginAuth

from .cache_sessions import FRESH, caching, rfc, ttl
from .loopback import answer, hang_up, sequence


def told(name):
    """Answers with what the request has in a field."""
    return lambda request: answer(body=str(request.fields.get(name)), fields=FRESH)


def forbidden(*_args, **_options):
    raise AssertionError("nobody should ask for it")


def asking(cache, **settings):
    return Session(cache=cache, throttle=None, timeout=10, **settings)


def text_of(cache, url, **settings):
    """What a session of its own gets."""
    with asking(cache, **settings) as session:
        return session.get(url).text


@pytest.fixture(params=["ttl", "rfc9111"])
def cache(request):
    return Cache(MemoryStore(), policy=request.param)


class TestCredentials:
    """A field that an auth wrote is a credential, whatever its name."""

    def test_a_field_of_the_service_s_own_tells_users_apart(self, server, cache):
        url = server.route("/me", told("X-Customer"))
        asked = [text_of(cache, url, auth=HeaderAuth("X-Customer", name)) for name in ("a", "b", "a")]
        assert [*asked, text_of(cache, url)] == ["a", "b", "a", "None"]
        assert len(server.requests) == 3

    def test_also_where_it_belongs_to_an_origin(self, server, cache):
        url = server.route("/me", told("X-Customer"))
        origin = server.url("/")
        assert [text_of(cache, url, auth={origin: HeaderAuth("X-Customer", name)}) for name in ("a", "b")] == ["a", "b"]

    def test_and_where_a_layer_below_the_cache_adds_it(self, server, cache):
        url = server.route("/me", told("X-Customer"))
        for name in ("a", "b"):
            auth = OriginAuth({server.url("/"): HeaderAuth("X-Customer", name)})
            with Session(layers=[cache, auth], timeout=10) as session:
                assert session.get(url).text == name

    @pytest.mark.parametrize("name", ["X-JWT", "X-Assertion", "X-Macaroon", "X-WSSE"])
    def test_so_are_fields_whose_names_say_so(self, server, cache, name):
        url = server.route("/me", told(name))
        with asking(cache) as session:
            assert [session.get(url, headers={name: value}).text for value in ("a", "b")] == ["a", "b"]


class TestSites:
    """A Host field that the caller writes names the site."""

    def test_two_sites_at_one_address_are_two(self, server, cache):
        url = server.route("/page", told("Host"))
        with asking(cache) as session:
            pages = [session.get(url, headers={"Host": host}).text for host in ("a.example", "b.example", "A.example")]
        assert pages == ["a.example", "b.example", "a.example"]

    def test_a_change_to_one_leaves_the_other(self, server, cache):
        url = server.route("/page", told("Host"))
        with asking(cache) as session:
            for host in ("a.example", "b.example"):
                session.get(url, headers={"Host": host})
            session.post(url, headers={"Host": "a.example"})
            found = [session.get(url, headers={"Host": host}).from_cache for host in ("a.example", "b.example")]
        assert found == [False, True]


class TestConnections:
    """What came over a connection that nobody verified is for those who do not mind."""

    def test_it_is_not_for_those_who_verify(self, tls_server, authority, cache):
        url = tls_server.route("/page", answer(body="x", fields=FRESH))
        with warnings.catch_warnings(), asking(cache) as session:
            warnings.simplefilter("ignore")
            session.get(url, verify=False)
            assert session.get(url, verify=False).from_cache
            assert not session.get(url, verify=str(authority.bundle)).from_cache
            assert session.get(url, verify=False).from_cache  # what was verified is for all


class TestVariants:
    def test_a_head_of_one_says_nothing_about_another(self, server):
        def one(request):
            kind = request.fields.get("Accept")
            return answer(body=kind, fields={**FRESH, "Vary": "Accept", "Content-Type": kind})

        url = server.route("/page", one)
        json, text = {"Accept": "application/json"}, {"Accept": "text/plain"}
        with caching(rfc()) as session:
            session.get(url, headers=json)
            session.head(url, headers=text)
            again = session.get(url, headers=json)
        assert (again.from_cache, again.headers["Content-Type"], again.text) == (True, *2 * ("application/json",))


class TestChallenges:
    def test_one_in_place_of_a_validation_leaves_what_is_stored(self, server):
        challenge = answer(body="<html>", fields={"cf-mitigated": "challenge", "Server": "cloudflare"})
        good = answer(body="good", fields={"ETag": '"1"'})
        url = server.route("/page", sequence(good, challenge, hang_up()))
        with caching(ttl(3600)) as session:
            session.get(url)
            assert session.get(url, headers={"Cache-Control": "no-cache"}).waf is not None
            assert url in session.cache


class TestIgnoredParameters:
    def test_an_answer_that_leads_back_to_one_is_not_for_the_next_caller(self, server):
        def one(request):
            return answer(301, fields={"Location": "/end?" + request.target.partition("?")[2]})

        start = server.route("/start", one)
        server.route("/end", answer(body="end"))
        with caching(ttl(3600, ignored_parameters=["sid"])) as session:
            ends = [session.get(f"{start}?sid={sid}").url.partition("?")[2] for sid in ("one", "two")]
        assert ends == ["sid=one", "sid=two"]


class TestMembership:
    """`url in session.cache`"""

    def test_it_reads_no_body(self, server, tmp_path, monkeypatch):
        url = server.route("/big", answer(body="x" * 200_000))
        with caching(Cache(tmp_path / "pages")) as session:
            session.get(url)
            monkeypatch.setattr("kreuz_sync.cache.replay.replay", forbidden)
            assert url in session.cache

    @pytest.mark.parametrize("what", ["", "no URL", "http://", 7, None])
    def test_what_is_no_url_is_not_in_it(self, what):
        with caching(ttl(60)) as session:
            assert what not in session.cache
