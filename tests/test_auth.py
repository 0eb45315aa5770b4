"""Credentials: the three forms, the origins they belong to, and whose go first."""

import base64
import copy
import pickle
import threading

import pytest
import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth

from kreuz_sync import errors
from kreuz_sync.auth import Basic, Bearer, HeaderAuth, OriginAuth, credential_fields
from kreuz_sync.retry import Retry
from kreuz_sync.sessions import Session
from kreuz_sync.stack import LayerAdapter, Stack
from kreuz_sync.transport import Transport

from .fakes import ScriptedAdapter, prepared
from .loopback import DigestAuth, answer, redirect

A, B = "http://a.test", "http://b.test"


def basic(user, password, encoding="latin-1"):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode(encoding)).decode()


def signed(auth, **parts):
    """The header section of a request prepared with `auth`."""
    return prepared(auth=auth, **parts).headers


class TestForms:
    """Basic, Bearer and HeaderAuth, where requests takes an auth."""

    def test_basic(self):
        assert signed(Basic("me", "pw"))["Authorization"] == basic("me", "pw")

    def test_basic_encodes_as_requests_does(self):
        assert signed(Basic("jürgen", "straße"))["Authorization"] == signed(("jürgen", "straße"))["Authorization"]

    def test_basic_takes_bytes_of_another_encoding(self):
        field = signed(Basic("jürgen".encode(), "☃".encode()))["Authorization"]
        assert field == basic("jürgen", "☃", "utf-8")

    def test_bearer(self):
        assert signed(Bearer("abc.def"))["Authorization"] == "Bearer abc.def"

    def test_header(self):
        headers = signed(HeaderAuth("X-Api-Key", "k"))
        assert headers["X-Api-Key"] == "k" and "Authorization" not in headers

    @pytest.mark.parametrize("auth", [Basic("me", "s3cret"), Bearer("s3cret"), HeaderAuth("X-Api-Key", "s3cret")])
    def test_none_shows_its_secret(self, auth):
        assert "s3cret" not in repr(auth) and "s3cret" not in str(auth) and type(auth).__name__ in repr(auth)

    @pytest.mark.parametrize("auth", [Basic("me", "pw"), Bearer("t"), HeaderAuth("X-Api-Key", "k")])
    def test_all_are_an_auth_of_requests_that_pickles_and_compares(self, auth):
        assert isinstance(auth, AuthBase)
        for other in (pickle.loads(pickle.dumps(auth)), copy.deepcopy(auth)):
            assert other == auth and hash(other) == hash(auth)

    def test_different_credentials_are_not_equal(self):
        assert Bearer("a") != Bearer("b") and Basic("a", "b") != ("a", "b")

    def test_they_are_fixed(self):
        with pytest.raises(AttributeError):
            Bearer("t").token = "u"


class TestBadForms:
    """Errors name the argument, and never show its value."""

    @pytest.mark.parametrize(
        ("make", "kind", "words"),
        [
            (lambda: Basic("", "pw"), ValueError, "user=''"),
            (lambda: Basic("me", ""), ValueError, "password=''"),
            (lambda: Basic(None, "pw"), TypeError, "user="),
            (lambda: Basic("me", 5), TypeError, "password="),
            (lambda: Basic("a:b", "pw"), ValueError, "colon"),
            (lambda: Basic("me", "s3cret\n"), ValueError, "line end"),
            (lambda: Basic("me", "s3cret☃"), ValueError, r"password\.encode"),
            (lambda: Bearer(""), ValueError, "token="),
            (lambda: Bearer(None), TypeError, "token="),
            (lambda: Bearer("s3cret\n"), ValueError, "line ends"),
            (lambda: Bearer("Bearer s3cret"), ValueError, "without the word Bearer"),
            (lambda: HeaderAuth("", "s3cret"), ValueError, "name="),
            (lambda: HeaderAuth("X Key", "s3cret"), ValueError, "name='X Key'"),
            (lambda: HeaderAuth("X-Key:", "s3cret"), ValueError, "name="),
            (lambda: HeaderAuth(7, "s3cret"), TypeError, "name=7"),
            (lambda: HeaderAuth("Content-Length", "s3cret"), ValueError, "name='Content-Length'"),
            (lambda: HeaderAuth("host", "s3cret"), ValueError, "name='host'"),
            (lambda: HeaderAuth("X-Key", ""), ValueError, "value="),
            (lambda: HeaderAuth("X-Key", b"s3cret"), TypeError, "value="),
            (lambda: HeaderAuth("X-Key", "s3cret\r\nX-Evil: 1"), ValueError, "value="),
            (lambda: HeaderAuth("X-Key", " s3cret"), ValueError, "value="),
        ],
    )
    def test_they_are_refused_at_construction(self, make, kind, words):
        with pytest.raises(kind, match=words) as caught:
            make()
        assert "s3cret" not in str(caught.value)


class TestCredentialFields:
    """The fields besides Authorization that hold secrets."""

    def test_a_header_auth_names_its_field(self):
        assert credential_fields(HeaderAuth("X-Api-Key", "k")) == ("X-Api-Key",)

    @pytest.mark.parametrize("auth", [None, ("me", "pw"), Basic("me", "pw"), Bearer("t"), lambda request: request])
    def test_others_name_none(self, auth):
        assert credential_fields(auth) == ()

    def test_an_auth_of_a_users_own_may_name_its_fields(self):
        class Signature(AuthBase):
            credential_fields = ("X-Signature", "X-Date")

        assert credential_fields(Signature()) == ("X-Signature", "X-Date")


class TestOrigins:
    """Scheme, host and port (RFC 9110, section 4.3.1)."""

    @pytest.mark.parametrize(
        ("key", "url"),
        [
            ("https://api.example.com", "https://api.example.com/v1?q=1"),
            ("https://API.Example.com:443/", "https://api.example.com"),
            ("http://127.0.0.1:8001", "http://127.0.0.1:8001/x"),
            ("http://[::1]:8001", "http://[::1]:8001/"),
            ("https://bücher.example", "https://xn--bcher-kva.example/"),
            ("https://api.example.com.", "https://api.example.com/"),
        ],
    )
    def test_the_same_origin_is_covered_however_it_is_written(self, key, url):
        assert OriginAuth({key: Bearer("t")}).covers(url)

    @pytest.mark.parametrize(
        "url",
        [
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "https://example.com/",
            "https://x.api.example.com/",
            "https://api.example.com.evil.test/",
            "https://api.example.com@evil.test/",
            "https://api.example.com:99999999/",
            "//api.example.com/",
            "",
        ],
    )
    def test_another_is_not(self, url):
        assert not OriginAuth({"https://api.example.com": Bearer("t")}).covers(url)

    @pytest.mark.parametrize(
        ("key", "kind", "words"),
        [
            ("api.example.com", ValueError, "with its scheme"),
            ("api.example.com:443", ValueError, "with its scheme"),
            ("//api.example.com", ValueError, "with its scheme"),
            ("https://", ValueError, "with its scheme"),
            ("", ValueError, "with its scheme"),
            ("https://api.example.com/v1", ValueError, "without path"),
            ("https://api.example.com?key=s3cret", ValueError, "without path"),
            ("https://api.example.com#x", ValueError, "without path"),
            ("https://me:s3cret@api.example.com", ValueError, "without a user"),
            ("https://*.example.com", ValueError, "without wildcards"),
            ("https://a b.example.com", ValueError, "without wildcards or spaces"),
            ("https://api.example.com:x", ValueError, "cannot be read"),
            (7, TypeError, "an origin is wanted"),
        ],
    )
    def test_a_key_that_is_no_origin_is_refused(self, key, kind, words):
        with pytest.raises(kind, match=words) as caught:
            OriginAuth({key: Bearer("t")})
        assert "s3cret" not in str(caught.value)

    def test_one_origin_written_twice_is_refused(self):
        with pytest.raises(ValueError, match="twice"):
            OriginAuth({"https://a.test": Bearer("t"), "https://a.test:443": Bearer("u")})

    @pytest.mark.parametrize("value", [None, "s3cret", ["me", "s3cret"], ("me",), ("", "s3cret"), ("me", 5), Bearer])
    def test_a_value_that_is_no_auth_is_refused(self, value):
        with pytest.raises(TypeError, match="pair or a callable auth") as caught:
            OriginAuth({A: value})
        assert "s3cret" not in str(caught.value)

    def test_something_else_than_a_mapping_is_refused(self):
        with pytest.raises(TypeError, match="a mapping of origins"):
            OriginAuth([(A, Bearer("t"))])

    def test_it_shows_origins_and_no_secrets(self):
        assert repr(OriginAuth({A: ("me", "s3cret")})) == "OriginAuth(origins=('http://a.test:80',))"

    def test_it_pickles_copies_and_compares(self):
        auth = OriginAuth({A: Bearer("t")})
        assert pickle.loads(pickle.dumps(auth)) == auth == copy.deepcopy(auth)
        assert auth != OriginAuth({A: Bearer("u")})

    def test_it_is_no_auth_itself(self):
        with pytest.raises(TypeError, match=r"Session\(auth=\.\.\.\)"):
            prepared(auth=OriginAuth({A: Bearer("t")}))


class TestLayer:
    """What goes down to the layers below."""

    def sent(self, mapping, request):
        wire = ScriptedAdapter(200)
        Stack([OriginAuth(mapping)], wire).send(request)
        return wire.requests[0]

    @pytest.mark.parametrize(
        ("auth", "name", "value"),
        [
            (Basic("me", "pw"), "Authorization", basic("me", "pw")),
            (("me", "pw"), "Authorization", basic("me", "pw")),
            (HTTPBasicAuth("me", "pw"), "Authorization", basic("me", "pw")),
            (Bearer("t"), "Authorization", "Bearer t"),
            (HeaderAuth("X-Api-Key", "k"), "X-Api-Key", "k"),
        ],
    )
    def test_the_mapped_origin_gets_its_credentials(self, auth, name, value):
        assert self.sent({A: auth}, prepared(f"{A}/x")).headers[name] == value

    def test_others_get_the_request_as_it_came(self):
        request = prepared(f"{B}/x")
        assert self.sent({A: Bearer("t")}, request) is request

    def test_the_request_that_came_in_is_not_changed(self):
        request = prepared(A)
        sent = self.sent({A: HTTPDigestAuth("me", "pw"), B: Bearer("t")}, request)
        assert sent is not request
        assert "Authorization" not in request.headers and request.hooks == {"response": []}
        assert not hasattr(request, "credential_fields")

    def test_a_field_that_the_call_brings_stays(self):
        request = prepared(A, headers={"Authorization": "Token z"})
        assert self.sent({A: Bearer("t")}, request).headers["Authorization"] == "Token z"

    def test_so_does_the_calls_own_api_key_and_it_is_known_as_a_secret(self):
        request = prepared(A, headers={"x-api-key": "mine"})
        sent = self.sent({A: HeaderAuth("X-Api-Key", "k")}, request)
        assert sent.headers["X-Api-Key"] == "mine" and sent.credential_fields == ("X-Api-Key",)

    def test_an_api_key_goes_beside_the_calls_authorization(self):
        """Some services want both."""
        request = prepared(A, headers={"Authorization": "Token z"})
        assert self.sent({A: HeaderAuth("X-Api-Key", "k")}, request).headers["X-Api-Key"] == "k"

    def test_a_call_with_a_header_auth_of_its_own_gets_no_other(self):
        request = prepared(A, auth=HeaderAuth("X-Mine", "m"))
        request.credential_fields = ("X-Mine",)  # as a session writes it
        assert "Authorization" not in self.sent({A: Bearer("t")}, request).headers

    def test_all_that_an_unknown_auth_writes_counts_as_secret(self):
        def sign(request):
            request.headers["X-Signature"] = "s3cret"
            return request

        assert self.sent({A: sign}, prepared(A)).credential_fields == ("X-Signature",)

    def test_an_auth_that_signs_a_changed_body_gets_its_length_right(self):
        def wrap(request):
            request.body = b"[" + request.body + b"]"
            return request

        sent = self.sent({A: wrap}, prepared(A, "POST", data=b"abc"))
        assert (sent.body, sent.headers["Content-Length"]) == (b"[abc]", "5")

    def test_options_pass_through(self):
        wire = ScriptedAdapter(200)
        Stack([OriginAuth({A: Bearer("t")})], wire).send(prepared(A), stream=True, timeout=7, verify=False)
        assert (wire.options[0]["stream"], wire.options[0]["timeout"], wire.options[0]["verify"]) == (True, 7, False)


@pytest.fixture
def two(server, second_server):
    """Two origins on one address: the first redirects to the second, which redirects back."""
    there = second_server.route("/there", redirect(server.url("/back")))
    server.route("/back", answer(body="done"))
    return server, second_server, server.route("/start", redirect(there))


def fields(one, name):
    return [request.fields.get(name) for request in one.requests]


class TestRedirects:
    """Another port is another origin, and gets nothing."""

    @pytest.mark.parametrize(
        ("auth", "name", "value"),
        [
            (Basic("me", "pw"), "Authorization", basic("me", "pw")),
            (Bearer("t"), "Authorization", "Bearer t"),
            (("me", "pw"), "Authorization", basic("me", "pw")),
            (HeaderAuth("X-Api-Key", "k"), "X-Api-Key", "k"),
        ],
    )
    @pytest.mark.parametrize("per_call", [False, True])
    def test_credentials_of_a_session_or_a_call_stay_behind(self, two, auth, name, value, per_call):
        first, second, start = two
        with Session(throttle=None, auth=None if per_call else auth) as session:
            session.get(start, **({"auth": auth} if per_call else {}))
        assert fields(first, name) == [value, None]
        assert fields(second, name) == [None]

    @pytest.mark.parametrize("auth", [Bearer("t"), HeaderAuth("X-Api-Key", "k")])
    def test_within_their_origin_they_follow(self, server, auth):
        server.route("/b", redirect("/c"))
        server.route("/c", 200)
        with Session(throttle=None, auth=auth) as session:
            session.get(server.route("/a", redirect("/b")))
        name = "X-Api-Key" if isinstance(auth, HeaderAuth) else "Authorization"
        assert len(set(fields(server, name))) == 1 and None not in fields(server, name)

    @pytest.mark.parametrize("auth", [Bearer("t"), HeaderAuth("X-Api-Key", "k")])
    def test_two_hops_on_they_still_stay_behind(self, server, second_server, auth):
        server.route("/b", redirect(second_server.url("/")))
        with Session(throttle=None, auth=auth) as session:
            session.get(server.route("/a", redirect("/b")))
        assert fields(second_server, "X-Api-Key") == fields(second_server, "Authorization") == [None]

    @pytest.mark.parametrize(("auth", "name"), [(Bearer("t"), "Authorization"), (HeaderAuth("X-Key", "t"), "X-Key")])
    def test_mapped_ones_come_back_with_their_origin(self, two, auth, name):
        first, second, start = two
        with Session(throttle=None, auth={first.url("").rstrip("/"): auth}) as session:
            session.get(start)
        assert None not in fields(first, name) and len(fields(first, name)) == 2
        assert fields(second, name) == [None]

    def test_each_mapped_origin_gets_its_own(self, two):
        first, second, start = two
        mapping = {first.url("").rstrip("/"): Bearer("one"), second.url("").rstrip("/"): HeaderAuth("X-Key", "two")}
        with Session(throttle=None, auth=mapping) as session:
            session.get(start)
        assert (fields(first, "Authorization"), fields(first, "X-Key")) == (["Bearer one"] * 2, [None] * 2)
        assert (fields(second, "Authorization"), fields(second, "X-Key")) == ([None], ["two"])

    def test_the_callers_own_value_of_a_mapped_field_stays_behind_too(self, two):
        first, second, start = two
        with Session(throttle=None, auth={first.url("").rstrip("/"): HeaderAuth("X-Key", "k")}) as session:
            session.get(start, headers={"X-Key": "mine"})
        assert fields(first, "X-Key")[0] == "mine" and fields(second, "X-Key") == [None]


class TestWhatAnAuthPutsThere:
    """Whatever an auth writes is a credential, though it does not say so."""

    @pytest.fixture
    def elsewhere(self, server, second_server):
        """Where a redirect to another origin ends."""
        server.route("/out", redirect(second_server.url("/in")))
        server.route("/round", redirect("/there"))
        return second_server

    @staticmethod
    def own_field(request):
        request.headers["X-Token"] = "s3cret"
        return request

    @pytest.mark.parametrize("where", ["session", "call"])
    def test_a_callables_own_field_stays_at_its_origin(self, server, elsewhere, where):
        session = Session(throttle=None, auth=self.own_field if where == "session" else None)
        call = {} if where == "session" else {"auth": self.own_field}
        with session:
            session.get(server.url("/out"), **call)
            session.get(server.url("/round"), **call)
        assert "X-Token" not in elsewhere.last.fields
        assert [request.fields.get("X-Token") for request in server.requests] == ["s3cret"] * 3

    def test_a_mapped_key_survives_a_redirect_within_its_origin(self, server, elsewhere):
        with Session(throttle=None, auth={server.url("").rstrip("/"): HeaderAuth("X-Api-Key", "k")}) as session:
            session.get(server.url("/round"))
            session.get(server.url("/out"))
        assert [request.fields.get("X-Api-Key") for request in server.requests] == ["k"] * 3
        assert "X-Api-Key" not in elsewhere.last.fields

    def test_digest_does_not_answer_another_origins_challenge(self, server, elsewhere):
        """Neither the user's name nor a hash of the password goes there."""
        elsewhere.route("/in", DigestAuth("user", "s3cret"))
        with Session(throttle=None) as session:
            response = session.get(server.url("/out"), auth=HTTPDigestAuth("user", "s3cret"))
        assert response.status_code == 401
        assert all("Authorization" not in request.fields for request in elsewhere.requests)

    @pytest.mark.parametrize("how", ["adapter copies", "hook sends again", "caller copies", "requests prepares"])
    def test_a_copy_of_the_request_keeps_them_at_their_origin(self, server, elsewhere, how):
        class Copying(HTTPAdapter):
            def send(self, request, **options):
                return super().send(request.copy(), **options)

        def again(response, **options):
            if response.url.endswith("/out") and response.request.headers.get("X-Again") is None:
                request = response.request.copy()
                request.headers["X-Again"] = "1"
                return response.connection.send(request, **options)
            return None

        key = HeaderAuth("X-Api-Key", "s3cret")
        with Session(throttle=None, auth=None if how == "requests prepares" else key) as session:
            url = server.url("/out")
            if how == "adapter copies":
                session.mount("http://", Copying())
                response = session.get(url)
            elif how == "hook sends again":
                response = session.get(url, hooks={"response": again})
            elif how == "caller copies":
                response = session.send(session.prepare_request(requests.Request("GET", url)).copy())
            else:
                response = session.send(requests.Request("GET", url, auth=key).prepare())
        assert server.requests[0].fields["X-Api-Key"] == "s3cret"
        assert "X-Api-Key" not in elsewhere.last.fields
        assert b"s3cret" not in pickle.dumps(response)

    def test_a_hook_of_the_callers_own_follows_all_the_same(self, server, elsewhere):
        seen = []
        with Session(throttle=None) as session:
            session.get(
                server.url("/out"),
                auth=HTTPDigestAuth("user", "s3cret"),
                hooks={"response": lambda response, **_: seen.append(response.status_code)},
            )
        assert len(seen) == 2


class TestWhoseGoFirst:
    """The call's, then the session's or the mapping's, then the URL's, then the netrc file's."""

    @pytest.fixture
    def netrc(self, home):
        (home / ".netrc").write_text("machine 127.0.0.1 login net password rc\n")
        (home / ".netrc").chmod(0o600)

    def got(self, server, session, url=None, **call):
        with session:
            session.get(url or server.url("/"), **call)
        return server.requests[-1].fields.get("Authorization")

    @pytest.fixture
    def mapping(self, server):
        return {server.url("").rstrip("/"): Bearer("mapped")}

    def with_user_info(self, server):
        return server.url("/").replace("://", "://url:pw@")

    def test_alone_the_netrc_file_is_used(self, server, netrc):
        assert self.got(server, Session(throttle=None)) == basic("net", "rc")

    def test_the_url_goes_before_it(self, server, netrc):
        assert self.got(server, Session(throttle=None), self.with_user_info(server)) == basic("url", "pw")

    def test_the_sessions_go_before_both(self, server, netrc):
        session = Session(throttle=None, auth=Bearer("t"))
        assert self.got(server, session, self.with_user_info(server)) == "Bearer t"

    def test_so_do_mapped_ones(self, server, netrc, mapping):
        assert self.got(server, Session(throttle=None, auth=mapping)) == "Bearer mapped"

    def test_mapped_ones_go_before_those_of_the_url(self, server, netrc, mapping):
        session = Session(throttle=None, auth=mapping)
        assert self.got(server, session, self.with_user_info(server)) == "Bearer mapped"

    def test_a_mapping_among_the_layers_goes_before_the_netrc_file_too(self, server, netrc, mapping):
        assert self.got(server, Session(layers=[OriginAuth(mapping)])) == "Bearer mapped"

    def test_the_calls_auth_goes_before_all(self, server, netrc, mapping):
        session = Session(throttle=None, auth=mapping)
        assert self.got(server, session, auth=Bearer("call")) == "Bearer call"

    def test_so_does_its_field(self, server, netrc, mapping):
        session = Session(throttle=None, auth=mapping)
        assert self.got(server, session, headers={"Authorization": "Token z"}) == "Token z"

    def test_its_field_goes_before_the_sessions_auth(self, server, netrc):
        session = Session(throttle=None, auth=Bearer("t"))
        assert self.got(server, session, headers={"authorization": "Token z"}) == "Token z"

    def test_an_environment_that_is_not_trusted_has_no_netrc_file(self, server, netrc):
        session = Session(throttle=None)
        session.trust_env = False
        assert self.got(server, session) is None

    def test_a_redirect_to_a_mapped_origin_does_not_take_it_from_the_netrc_file(self, server, second_server, netrc):
        mapping = {second_server.url("").rstrip("/"): Bearer("mapped")}
        there = server.route("/there", redirect(second_server.url("/")))
        with Session(throttle=None, auth=mapping) as session:
            session.get(there)
        assert fields(second_server, "Authorization") == ["Bearer mapped"]

    def test_the_sessions_key_in_a_field_of_its_own_goes_along_with_the_calls_authorization(self):
        """The call's own Authorization stays, whatever else the session's auth sets."""
        wire = ScriptedAdapter()
        session = Session(throttle=None, adapter=wire, auth=HeaderAuth("X-Api-Key", "k"))
        session.get("http://a.test/", headers={"Authorization": "Token z"})
        sent = wire.requests[0].headers
        assert (sent["Authorization"], sent["X-Api-Key"]) == ("Token z", "k")


class TestDigest:
    """RFC 7616: a challenge is answered with a second request."""

    @pytest.fixture
    def page(self, server):
        return server.route("/page", DigestAuth("me", "pw"))

    def origin(self, server):
        return server.url("").rstrip("/")

    def test_a_mapped_one_answers_the_challenge(self, server, page):
        with Session(throttle=None, auth={self.origin(server): HTTPDigestAuth("me", "pw")}) as session:
            response = session.get(page)
        assert (response.status_code, [one.status_code for one in response.history]) == (200, [401])
        assert response.attempts == len(server.requests) == 2

    def test_later_calls_need_no_challenge(self, server, page):
        with Session(throttle=None, auth={self.origin(server): HTTPDigestAuth("me", "pw")}) as session:
            assert [session.get(page).status_code for _ in range(3)] == [200] * 3
        assert len(server.requests) == 4

    def test_it_answers_to_its_own_origin_only(self, server, second_server):
        second_server.route("/page", DigestAuth("me", "pw"))
        there = server.route("/there", redirect(second_server.url("/page")))
        with Session(throttle=None, auth={self.origin(server): HTTPDigestAuth("me", "pw")}) as session:
            assert session.get(there).status_code == 401
        assert len(second_server.requests) == 1

    def test_wrong_credentials_end_with_the_401(self, server, page):
        with Session(throttle=None, auth={self.origin(server): HTTPDigestAuth("me", "wrong")}) as session:
            assert session.get(page).status_code == 401
        assert len(server.requests) == 2

    def test_both_requests_pass_the_layers_below(self):
        passed = []

        class Counting(LayerAdapter):
            def send(self, request, **options):
                passed.append(request.headers.get("Authorization", "")[:6])
                return super().send(request, **options)

        challenge = (401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}, b"")
        stack = Stack([OriginAuth({A: HTTPDigestAuth("me", "pw")}), Counting], ScriptedAdapter(challenge, 200))
        assert stack.send(prepared(A)).status_code == 200
        assert passed == ["", "Digest"]

    def test_options_go_with_the_second_request(self):
        challenge = (401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}, b"")
        wire = ScriptedAdapter(challenge, 200)
        Stack([OriginAuth({A: HTTPDigestAuth("me", "pw")})], wire).send(prepared(A), timeout=7, verify=False)
        assert wire.options[0] == wire.options[1] and wire.options[1]["timeout"] == 7

    @pytest.mark.parametrize("how", ["session", "call"])
    def test_requests_own_way_goes_on_working(self, server, page, how):
        auth = HTTPDigestAuth("me", "pw")
        with Session(throttle=None, auth=auth if how == "session" else None) as session:
            assert session.get(page, **({} if how == "session" else {"auth": auth})).status_code == 200

    def test_the_second_request_is_repeated_like_any_other(self):
        challenge = (401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}, b"")
        layers = [OriginAuth({A: HTTPDigestAuth("me", "pw")}), Retry(1, base=0)]
        response = Stack(layers, Transport(ScriptedAdapter(challenge, 503, 200))).send(prepared(A))
        assert (response.status_code, response.attempts, response.earlier[0].status) == (200, 3, 503)

    def test_an_upload_is_sent_again_from_its_beginning(self, server, page, tmp_path):
        file = tmp_path / "upload"
        file.write_bytes(b"0123456789")
        mapping = {self.origin(server): HTTPDigestAuth("me", "pw")}
        with Session(throttle=None, auth=mapping) as session, file.open("rb") as body:
            assert session.put(page, data=body).status_code == 200
        assert [request.body for request in server.requests] == [b"0123456789"] * 2

    def test_threads_share_one(self, server, page):
        mapping = {self.origin(server): HTTPDigestAuth("me", "pw")}
        statuses, ready = [], threading.Barrier(8)
        with Session(throttle=None, auth=mapping) as session:

            def work():
                ready.wait(10)
                statuses.extend(session.get(page).status_code for _ in range(5))

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
        assert statuses == [200] * 40


class TestSecrets:
    """What leaves the session has no credentials in it."""

    @pytest.mark.parametrize("auth", [Basic("me", "s3cret"), Bearer("s3cret"), HeaderAuth("X-Api-Key", "s3cret")])
    def test_a_pickled_answer_has_none(self, server, auth):
        for given in (auth, {server.url("").rstrip("/"): auth}):
            with Session(throttle=None, auth=given) as session:
                data = pickle.dumps(session.get(server.url("/")))
            assert b"s3cret" not in data and b"bWU6czNjcmV0" not in data  # the second is base64

    def test_a_pickled_error_has_none(self, server):
        with Session(throttle=None, auth={server.url("").rstrip("/"): HeaderAuth("X-Api-Key", "s3cret")}) as session:
            error = session.get(server.url("/nothing")).error
        assert isinstance(error, errors.NotFound) and b"s3cret" not in pickle.dumps(error)

    def test_the_session_itself_shows_none(self):
        with Session(auth={A: ("me", "s3cret")}) as session:
            assert "s3cret" not in repr(session)

    def test_a_pickled_session_keeps_them(self, server):
        mapping = {server.url("").rstrip("/"): Bearer("t")}
        with Session(throttle=None, auth=mapping) as session, pickle.loads(pickle.dumps(session)) as again:
            again.get(server.url("/"))
        assert fields(server, "Authorization") == ["Bearer t"]


def test_a_session_of_requests_takes_the_forms_too(server):
    with requests.Session() as session:
        session.get(server.url("/"), auth=Bearer("t"))
    assert fields(server, "Authorization") == ["Bearer t"]
