"""Whose request it is, for a session's rate limits."""

from __future__ import annotations

import pickle

import pytest

from kreuz_sync import Session
from kreuz_sync.auth import Basic, HeaderAuth
from kreuz_sync.ratelimit import (
    PeerAddress,
    RateLimit,
    TrustedProxies,
    by_credential,
    by_header,
    by_host,
    by_origin,
    by_path,
    digest,
)
from tests.fakes import ScriptedAdapter, prepared
from tests.loopback import answer

from .counting import NotingStore

SECRET = "a secret of 16 letters"


class TestHost:
    """Lower case, IDNA, no port; every sub-domain is a host of its own."""

    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("http://Example.COM/a", "example.com"),
            ("https://example.com:8443/b?c", "example.com"),
            ("http://example.com./", "example.com"),
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://api.example.com/", "api.example.com"),
            ("http://[2001:db8::1]:80/", "2001:db8::1"),
        ],
    )
    def test_of_these(self, url, host):
        assert by_host(prepared(url)) == host


class TestOrigin:
    """Scheme, host and port."""

    def test_a_port_that_is_not_written_is_the_schemes(self):
        assert by_origin(prepared("https://Example.com/a")) == "https://example.com:443"

    def test_another_port_is_another_origin(self):
        assert by_origin(prepared("http://example.com:81/")) != by_origin(prepared("http://example.com/"))


class TestPath:
    """A template stands for all paths that fit it, at each host."""

    @pytest.mark.parametrize(
        ("path", "template"),
        [
            ("/users/7", "/users/{id}"),
            ("/users/a%2Fb", "/users/{id}"),
            ("/users/7?sort=name", "/users/{id}"),
            ("/users/7#top", "/users/{id}"),
            ("/users/7/posts/9", "/users/{id}/posts/{post}"),
            ("/files/report.pdf", "/files/{name}.pdf"),
            ("/search", "/search"),
            ("/users", ""),
            ("/users/", ""),
            ("/users/7/", ""),
            ("/Search", ""),
            ("/searching", ""),
            ("/files/reportXpdf", ""),
            ("", ""),
        ],
    )
    def test_of_these(self, path, template):
        key = by_path("/users/{id}", "/users/{id}/posts/{post}", "/search", "/files/{name}.pdf")
        assert key(prepared(f"http://example.com{path}")) == f"example.com {template}"

    def test_the_first_that_fits_counts(self):
        assert by_path("/{all}", "/a")(prepared("http://e.test/a")) == "e.test /{all}"

    def test_every_host_counts_apart(self):
        key = by_path("/a")
        assert key(prepared("http://one.test/a")) != key(prepared("http://two.test/a"))

    @pytest.mark.parametrize(
        ("template", "paths"),
        [
            ("/straße/{x}", ["/straße/1", "/stra%C3%9Fe/1", "/stra%c3%9fe/1"]),
            ("/stra%c3%9fe/{x}", ["/straße/1", "/stra%C3%9Fe/1"]),
            ("/a b/{x}", ["/a b/1", "/a%20b/1"]),
            ("/se%61rch", ["/search", "/%73earch"]),
            ("/a%2Fb/{x}", ["/a%2Fb/1", "/a%2fb/1"]),
            ("/{x}/ä.json", ["/1/ä.json"]),
            ("/50%", ["/50%25"]),
            ("/{x} ", ["/1%20"]),
            ("//{x}/", ["//1/"]),
        ],
    )
    def test_what_is_fixed_is_compared_as_it_is_sent(self, template, paths):
        """However a template or a URL writes it: on the wire there is one form."""
        assert [by_path(template)(prepared(f"http://e.test{path}")) for path in paths] == [f"e.test {template}"] * len(
            paths
        )

    @pytest.mark.parametrize("template", ["/search?q={q}", "/search#top", "/a/../{x}", "/./a", "/a/.."])
    def test_what_could_never_fit_is_refused(self, template):
        with pytest.raises(ValueError, match="templates: '/"):
            by_path(template)

    @pytest.mark.parametrize("templates", [(), ("users",), ("",), (5,), ("/{a",), ("/a}",), ("/{a/b}",), ("/{{a}}",)])
    def test_anything_else_is_refused(self, templates):
        with pytest.raises((TypeError, ValueError), match="templates|by_path"):
            by_path(*templates)

    def test_whose_it_is_besides_may_be_told_otherwise(self):
        key = pickle.loads(pickle.dumps(by_path("/a", key=by_origin)))
        assert key(prepared("http://e.test:81/a")) == "http://e.test:81 /a"
        assert repr(key).startswith("by_path('/a', key=<function by_origin")
        assert not key.is_of_this_process and by_path("/a", key=by_credential()).is_of_this_process

    @pytest.mark.parametrize(
        "theirs", [PeerAddress(), TrustedProxies(hops=1), by_header("X-Key"), by_path("/a", key=PeerAddress())]
    )
    def test_a_key_of_a_server_is_refused_at_once(self, theirs):
        with pytest.raises(TypeError, match="key=.*requests of a server; a session has by_host"):
            Session(rate_limits=RateLimit(key=theirs))

    def test_it_pickles_and_shows_itself(self):
        key = pickle.loads(pickle.dumps(by_path("/users/{id}", "/a")))
        assert repr(key) == "by_path('/users/{id}', '/a')"
        assert key == by_path("/users/{id}", "/a")
        assert key(prepared("http://e.test/users/7")) == "e.test /users/{id}"


class TestCredential:
    """A fingerprint of what is in Authorization and in the fields that are named."""

    def key(self, *names, secret=SECRET, **fields):
        return by_credential(*names, secret=secret)(prepared("http://e.test/", headers=fields))

    def test_equal_credentials_have_equal_keys(self):
        assert self.key(Authorization="Bearer tok9") == self.key(Authorization="Bearer tok9")

    def test_others_have_others(self):
        assert self.key(Authorization="Bearer tok9") != self.key(Authorization="Bearer tok8")

    def test_the_credential_is_not_in_it(self):
        assert "tok9" not in self.key(Authorization="Bearer tok9")

    def test_nobody_in_particular_has_one_key(self):
        assert self.key() == "e.test anonymous"

    def test_a_field_counts_only_if_it_is_named(self):
        assert self.key(**{"X-Api-Key": "k"}) == self.key()
        assert self.key("x-api-key", **{"X-Api-Key": "k"}) != self.key("x-api-key")

    def test_what_one_field_holds_is_not_taken_for_anothers(self):
        assert self.key("A", "B", A="1", B="2") != self.key("A", "B", A="2", B="1")

    def test_bytes_are_the_text_that_they_stand_for(self):
        assert self.key(Authorization=b"Basic \xe9") == self.key(Authorization="Basic é")

    def test_every_host_counts_apart(self):
        key = by_credential(secret=SECRET)
        fields = {"Authorization": "Bearer tok9"}
        assert key(prepared("http://a.test/", headers=fields)) != key(prepared("http://b.test/", headers=fields))

    def test_digest_authentication_is_its_user_s_whatever_changes(self):
        """Its field is another one for every request: a count, and answers to what the server asked."""
        lines = [
            'Digest username="me", realm="all", nonce="n1", uri="/a", response="r1", nc=00000001, cnonce="c1"',
            'digest nonce="n2", realm="all",username="me" , uri="/b", response="r2", nc=00000002, cnonce="c2"',
        ]
        others = [
            'Digest username="you", realm="all", nonce="n1", uri="/a", response="r1"',
            'Digest username="me", realm="other", nonce="n1", uri="/a", response="r1"',
            'Digest username="me\\", realm=\\"all", realm="x", nonce="n1", uri="/a", response="r1"',
            'Digest username*=UTF-8\'\'me, realm="all", nonce="n1", uri="/a", response="r1"',
        ]
        keys = {self.key(Authorization=line) for line in lines}
        assert len(keys) == 1
        assert len(keys | {self.key(Authorization=line) for line in others}) == 5

    def test_one_that_names_no_user_is_as_it_is_written(self):
        assert self.key(Authorization='Digest nonce="1"') != self.key(Authorization='Digest nonce="2"')

    def test_digest_authentication_of_requests_has_a_quota(self, server):
        """The request without credentials, which each server asks to repeat, is nobody's in particular."""
        from requests.auth import HTTPDigestAuth

        challenge = {"WWW-Authenticate": 'Digest realm="all", nonce="n", qop="auth", algorithm=MD5'}
        url = server.route(
            "/", lambda request: answer(200 if "Authorization" in request.fields else 401, fields=challenge)
        )
        store = NotingStore()
        with Session(throttle=None, rate_limits=RateLimit(limit=9, store=store, key=by_credential())) as session:
            session.auth = HTTPDigestAuth("me", "tok9")
            for _ in range(3):
                session.get(url)
        assert len({key for key, _ in store.asked}) == 2
        assert len(store.asked) == 4

    def test_the_field_of_a_sessions_own_auth_counts_by_itself(self):
        store = NotingStore()
        limit = RateLimit(store=store, key=by_credential(secret=SECRET), limit=100)
        with Session(rate_limits=limit, throttle=None, adapter=ScriptedAdapter(200)) as session:
            for value in ("tok9", "tok8"):
                session.get("http://e.test/", auth=HeaderAuth("X-Api-Key", value))
            session.get("http://e.test/", auth=Basic("me", "tok9"))
            session.get("http://e.test/")
        keys = [key for key, _ in store.asked]
        assert len(set(keys)) == 4
        assert not any("tok" in key for key in keys)

    def test_the_same_secret_gives_the_same_key_in_every_process(self):
        other = pickle.loads(pickle.dumps(by_credential(secret=SECRET)))
        assert other(prepared(headers={"Authorization": "Bearer tok9"})) == by_credential(secret=SECRET.encode())(
            prepared(headers={"Authorization": "Bearer tok9"})
        )

    def test_without_one_no_two_processes_agree(self):
        """So nobody can guess a credential and look for its key."""
        request = prepared(headers={"Authorization": "Bearer tok9"})
        assert by_credential()(request) != by_credential()(request)
        key = by_credential()
        assert key(request) == key(request)
        assert pickle.loads(pickle.dumps(key))(request) != key(request)

    @pytest.mark.parametrize("secret", ["short", b"", 5, ["s" * 16]])
    def test_a_secret_is_16_bytes_or_more_and_in_no_error(self, secret):
        with pytest.raises(ValueError, match=r"^secret=\.\.\.:"):
            by_credential(secret=secret)

    @pytest.mark.parametrize("name", ["", "X Api", 5])
    def test_a_field_has_a_name_that_fields_can_have(self, name):
        with pytest.raises((TypeError, ValueError), match="names="):
            by_credential(name)

    def test_it_shows_itself_without_the_secret(self):
        assert repr(by_credential("X-Api-Key", secret=SECRET)) == "by_credential('X-Api-Key', secret=...)"
        assert repr(by_credential()) == "by_credential()"


class TestDigest:
    """`digest` keeps keys out of what a store shows."""

    def keys(self, secret=SECRET, **settings):
        """What a store is given for three hosts."""
        store = NotingStore()
        with Session(
            rate_limits=RateLimit("search", limit=9, store=store, key_encoder=digest(secret), **settings),
            throttle=None,
            adapter=ScriptedAdapter(200),
        ) as session:
            for host in ("a.test", "b.test", "a.test"):
                session.get(f"http://{host}/")
        return [key for key, _ in store.asked]

    def test_a_store_sees_the_policy_and_no_key(self):
        first, second, third = self.keys()
        assert first == third != second
        assert first.startswith("search:")
        assert "test" not in first + second

    def test_the_same_secret_gives_the_same_key_in_every_process(self):
        assert self.keys() == self.keys(SECRET.encode()) != self.keys(SECRET + "!")
        encode = digest(SECRET)
        assert pickle.loads(pickle.dumps(encode)) == encode
        assert pickle.loads(pickle.dumps(encode))("a:b") == encode("a:b")

    def test_keys_of_bytes_and_long_ones_are_encoded_too(self):
        one, two = (self.keys(key=lambda request, key=key: key)[0] for key in (b"tok9", "tok9" * 100))
        assert one != two
        assert "tok9" not in one + two

    @pytest.mark.parametrize("secret", ["short", b"", 5, None])
    def test_a_secret_is_16_bytes_or_more_and_in_no_error(self, secret):
        with pytest.raises(ValueError, match="^secret="):
            digest(secret)

    def test_it_shows_no_secret(self):
        assert repr(digest(SECRET)) == "digest(...)"
