"""Credentials: where they are taken from, which of several counts, and how a challenge is answered."""

from __future__ import annotations

import base64
import io
import os
import threading

import pytest
import requests
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth, HTTPProxyAuth

from ..loopback import BasicAuth, DigestAuth, echo, redirect, sequence, set_cookies


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Stamp(AuthBase):
    """An auth of a user's own, that also looks at the request."""

    def __call__(self, request):
        request.headers["X-Stamp"] = f"{request.method} {request.url} {request.headers.get('X-Call')}"
        return request


class TestBasic:
    @pytest.mark.parametrize("auth", [("me", "pw"), HTTPBasicAuth("me", "pw")])
    def test_a_calls_credentials_are_sent_at_once(self, session, server, auth):
        assert session.get(server.route("/", BasicAuth("me", "pw")), auth=auth).status_code == 200
        assert len(server.requests) == 1

    def test_the_sessions_are_sent_with_every_call(self, session, server):
        session.auth = ("me", "pw")
        session.get(server.url())
        session.get(server.url())
        assert [one.fields["Authorization"] for one in server.requests] == [basic("me", "pw")] * 2

    def test_a_calls_own_are_not_kept(self, session, server):
        session.get(server.url(), auth=("me", "pw"))
        session.get(server.url())
        assert "Authorization" not in server.last.fields

    def test_they_may_be_in_the_url(self, session, server):
        response = session.get(server.url("/echo", host="me:p%40w@127.0.0.1"))
        assert server.last.fields["Authorization"] == basic("me", "p@w")
        assert server.last.host == f"127.0.0.1:{server.port}"
        assert response.status_code == 200

    @pytest.mark.parametrize(
        ("user", "password", "sent"),
        [
            ("m\u00fc", "pw", "m\u00fc:pw".encode("latin-1")),
            ("m\u00fc".encode(), b"pw", "m\u00fc:pw".encode()),
            ("", "", b":"),
            ("me", "p:w", b"me:p:w"),
        ],
    )
    def test_any_text_is_encoded(self, session, server, user, password, sent):
        session.get(server.url(), auth=(user, password))
        assert base64.b64decode(server.last.fields["Authorization"].split()[1]) == sent

    def test_wrong_ones_are_a_401_once(self, session, server):
        assert session.get(server.route("/", BasicAuth("me", "pw")), auth=("me", "no")).status_code == 401
        assert len(server.requests) == 1


class TestWhichCounts:
    def test_the_calls_beat_the_sessions(self, session, server):
        session.auth = ("session", "s")
        session.get(server.url(), auth=("call", "c"))
        assert server.last.fields["Authorization"] == basic("call", "c")

    def test_the_sessions_beat_the_urls(self, session, server):
        session.auth = ("session", "s")
        session.get(server.url(host="url:u@127.0.0.1"))
        assert server.last.fields["Authorization"] == basic("session", "s")

    def test_the_calls_beat_a_field_by_hand(self, session, server):
        session.get(server.url(), auth=("call", "c"), headers={"Authorization": "Token t"})
        assert server.last.fields.all("Authorization") == [basic("call", "c")]

    def test_a_field_by_hand_is_sent_as_it_is(self, session, server):
        session.get(server.url(), headers={"Authorization": "Token t"})
        assert server.last.fields.all("Authorization") == ["Token t"]

    def test_a_field_of_the_session_is_sent_as_it_is(self, session, server):
        session.headers["Authorization"] = "Token t"
        session.get(server.url())
        assert server.last.fields.all("Authorization") == ["Token t"]

    def test_the_calls_field_beats_the_sessions_field(self, session, server):
        session.headers["Authorization"] = "Token session"
        session.get(server.url(), headers={"authorization": "Token call"})
        assert server.last.fields.all("Authorization") == ["Token call"]

    def test_a_field_that_is_none_is_no_credential(self, session, server):
        session.auth = ("session", "s")
        session.headers["Authorization"] = "Token session"
        session.get(server.url(), headers={"Authorization": None})
        assert server.last.fields["Authorization"] == basic("session", "s")

    def test_a_field_by_hand_beats_the_sessions_auth_in_ours(self, session, server, ours):
        """requests lets the session's auth win over what the call itself says."""
        session.auth = ("session", "s")
        session.get(server.url(), headers={"Authorization": "Token call"})
        assert server.last.fields["Authorization"] == ("Token call" if ours else basic("session", "s"))


class TestCallables:
    def test_any_callable_may_change_the_request(self, session, server):
        def add_field(request):
            request.headers["X-Key"] = "k"
            return request

        session.get(server.url(), auth=add_field)
        assert server.last.fields["X-Key"] == "k"

    def test_it_sees_the_finished_request(self, session, server):
        session.get(server.url("/a"), params={"q": "1"}, headers={"X-Call": "c"}, auth=Stamp())
        assert server.last.fields["X-Stamp"] == f"GET {server.url('/a?q=1')} c"

    def test_it_may_be_the_sessions(self, session, server):
        session.auth = Stamp()
        session.post(server.url("/a"))
        assert server.last.fields["X-Stamp"].startswith("POST ")

    def test_it_may_change_the_body(self, session, server):
        def sign(request):
            request.body = request.body + b"&signed=1"
            return request

        session.post(server.url("/echo"), data=b"a=1", auth=sign)
        assert server.last.body == b"a=1&signed=1"
        assert server.last.fields["Content-Length"] == "12"

    def test_it_may_give_another_request(self, session, server):
        def replace(request):
            other = request.copy()
            other.headers["X-Other"] = "1"
            return other

        session.get(server.url(), auth=replace)
        assert server.last.fields["X-Other"] == "1"

    def test_it_may_register_a_hook(self, session, server):
        seen = []

        def watch(request):
            request.register_hook("response", lambda response, **_: seen.append(response.status_code))
            return request

        session.get(server.url(), auth=watch)
        assert seen == [200]

    def test_what_it_raises_comes_through(self, session, server):
        def refuse(request):
            raise KeyError("no token")

        with pytest.raises(KeyError, match="no token"):
            session.get(server.url(), auth=refuse)
        assert server.requests == []

    def test_it_may_fetch_a_token_with_the_same_session(self, session, server):
        server.route("/token", lambda request: echo(request))

        def fetch(request):
            request.headers["Authorization"] = (
                "Token " + session.get(server.url("/token"), auth=Stamp()).json()["method"]
            )
            return request

        session.get(server.url("/page"), auth=fetch)
        assert [one.path for one in server.requests] == ["/token", "/page"]
        assert server.last.fields["Authorization"] == "Token GET"


class TestDigest:
    @pytest.mark.parametrize("algorithm", ["MD5", "SHA", "SHA-256", "SHA-512"])
    def test_the_challenge_is_answered(self, session, server, algorithm):
        url = server.route("/it?", DigestAuth("me", "pw", algorithm=algorithm)).rstrip("?")
        server.route("/it", DigestAuth("me", "pw", algorithm=algorithm))
        response = session.get(url, auth=HTTPDigestAuth("me", "pw"))
        assert (response.status_code, [one.status_code for one in response.history]) == (200, [401])
        assert len(server.requests) == 2

    def test_the_nonce_is_used_again_with_a_higher_count(self, session, server):
        wants = DigestAuth("me", "pw")
        url = server.route("/it", wants)
        auth = HTTPDigestAuth("me", "pw")
        assert [session.get(url, auth=auth).status_code for _ in range(3)] == [200, 200, 200]
        assert list(wants.counts.values()) == [[1, 2, 3]]
        assert len(server.requests) == 4

    def test_a_stale_nonce_is_replaced(self, session, server):
        wants = DigestAuth("me", "pw", uses=1)
        url = server.route("/it", wants)
        auth = HTTPDigestAuth("me", "pw")
        assert [session.get(url, auth=auth).status_code for _ in range(2)] == [200, 200]
        assert list(wants.counts.values()) == [[1], [1]]

    def test_it_may_be_the_sessions(self, session, server):
        session.auth = HTTPDigestAuth("me", "pw")
        assert session.get(server.route("/it", DigestAuth("me", "pw"))).status_code == 200
        assert session.get(server.url("/it")).status_code == 200
        assert len(server.requests) == 3

    def test_both_requests_share_a_connection(self, session, server):
        session.get(server.route("/it", DigestAuth("me", "pw")), auth=HTTPDigestAuth("me", "pw"))
        assert server.accepted == 1

    def test_a_wrong_password_is_a_401_after_one_attempt(self, session, server):
        response = session.get(server.route("/it", DigestAuth("me", "pw")), auth=HTTPDigestAuth("me", "no"))
        assert response.status_code == 401
        assert len(server.requests) == 2

    @pytest.mark.parametrize("body", [lambda: b"body", lambda: "body", lambda: io.BytesIO(b"body")])
    def test_the_body_is_sent_again(self, session, server, body):
        url = server.route("/it", DigestAuth("me", "pw"))
        response = session.post(url, data=body(), auth=HTTPDigestAuth("me", "pw"))
        assert response.json()["body"] == "body"
        assert [one.body for one in server.requests] == [b"body", b"body"]

    def test_cookies_of_the_challenge_are_sent_and_kept(self, session, server):
        wants = DigestAuth("me", "pw")

        def challenge(request):
            found = wants(request)
            found.fields.append(("Set-Cookie", "c=1; Path=/"))
            return found

        session.get(server.route("/it", challenge), auth=HTTPDigestAuth("me", "pw"))
        assert server.last.cookies == {"c": "1"}
        assert session.cookies.get_dict() == {"c": "1"}

    def test_a_streamed_answer_is_still_a_stream(self, session, server):
        url = server.route("/it", DigestAuth("me", "pw"))
        with session.get(url, auth=HTTPDigestAuth("me", "pw"), stream=True) as response:
            assert not response._content_consumed
            assert response.json()["method"] == "GET"

    def test_the_query_is_part_of_the_answer(self, session, server):
        url = server.route("/it", DigestAuth("me", "pw"))
        assert session.get(url, params={"q": "a b"}, auth=HTTPDigestAuth("me", "pw")).status_code == 200

    def test_a_redirect_on_the_same_host_is_answered_again(self, session, server):
        server.route("/from", redirect("/it"))
        server.route("/it", DigestAuth("me", "pw"))
        response = session.get(server.url("/from"), auth=HTTPDigestAuth("me", "pw"))
        assert response.status_code == 200

    def test_threads_may_share_one(self, session, server):
        url = server.route("/it", DigestAuth("me", "pw"))
        auth = HTTPDigestAuth("me", "pw")
        statuses: list[int] = []

        def fetch():
            statuses.extend(session.get(url, auth=auth).status_code for _ in range(5))

        threads = [threading.Thread(target=fetch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert statuses == [200] * 20

    def test_another_401_is_left_alone(self, session, server):
        response = session.get(server.route("/it", BasicAuth("me", "pw")), auth=HTTPDigestAuth("me", "pw"))
        assert (response.status_code, len(server.requests)) == (401, 1)


class TestNetrc:
    @pytest.fixture(autouse=True)
    def netrc(self, home):
        file = home / ".netrc"
        file.write_text("machine 127.0.0.1 login file password f\nmachine example.test login named password n\n")
        file.chmod(0o600)
        os.utime(file, (1, 1))
        return file

    def test_it_is_used_where_nothing_else_is_given(self, session, server):
        session.get(server.url())
        assert server.last.fields["Authorization"] == basic("file", "f")

    def test_other_hosts_get_nothing(self, session, server):
        session.get(server.url(host="127.0.0.2"))
        assert "Authorization" not in server.last.fields

    def test_a_default_entry_is_for_all_others(self, session, server, netrc):
        netrc.write_text("default login any password a\n")
        session.get(server.url(host="127.0.0.2"))
        assert server.last.fields["Authorization"] == basic("any", "a")

    def test_the_variable_names_another_file(self, session, server, home, monkeypatch):
        (home / "other").write_text("machine 127.0.0.1 login other password o\n")
        monkeypatch.setenv("NETRC", str(home / "other"))
        session.get(server.url())
        assert server.last.fields["Authorization"] == basic("other", "o")

    def test_a_session_that_does_not_trust_the_environment_leaves_it(self, session, server):
        session.trust_env = False
        session.get(server.url())
        assert "Authorization" not in server.last.fields

    @pytest.mark.parametrize("how", ["call", "session"])
    def test_auth_beats_it(self, session, server, how):
        if how == "session":
            session.auth = ("mine", "m")
        session.get(server.url(), auth=("mine", "m") if how == "call" else None)
        assert server.last.fields["Authorization"] == basic("mine", "m")

    def test_a_change_is_seen_at_the_next_call(self, session, server, netrc):
        session.get(server.url())
        netrc.write_text("machine 127.0.0.1 login new password n\n")
        session.get(server.url())
        assert server.last.fields["Authorization"] == basic("new", "n")
        netrc.unlink()
        session.get(server.url())
        assert "Authorization" not in server.last.fields

    def test_a_redirect_takes_the_new_hosts(self, session, server, netrc):
        netrc.write_text("machine 127.0.0.2 login second password s\n")
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))))
        assert server.last.fields["Authorization"] == basic("second", "s")
        assert "Authorization" not in server.requests[0].fields

    def test_a_redirect_leaves_the_old_hosts_behind(self, session, server):
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))))
        assert "Authorization" in server.requests[0].fields
        assert "Authorization" not in server.last.fields

    @pytest.mark.parametrize("text", ["", "machine", "\x00\x01", "machine 127.0.0.1 login"])
    def test_a_broken_file_is_no_obstacle(self, session, server, netrc, text):
        netrc.write_text(text)
        assert session.get(server.url()).status_code == 200

    def test_explicit_credentials_beat_it_in_ours(self, session, server, ours):
        """requests lets the file win over an Authorization field and over the URL."""
        session.get(server.url(), headers={"Authorization": "Token t"})
        assert server.last.fields["Authorization"] == ("Token t" if ours else basic("file", "f"))
        session.get(server.url(host="url:u@127.0.0.1"))  # some releases of requests look for a host `url`
        assert server.last.fields["Authorization"] == basic("url", "u") or not ours
        session.headers["Authorization"] = "Token s"
        session.get(server.url())
        assert server.last.fields["Authorization"] == ("Token s" if ours else basic("file", "f"))


class TestProxyAuth:
    def test_it_sets_its_own_field(self, session, server):
        session.get(server.url(), auth=HTTPProxyAuth("me", "pw"))
        assert server.last.fields["Proxy-Authorization"] == basic("me", "pw")
        assert "Authorization" not in server.last.fields


class TestRetriesOfTheServer:
    def test_a_challenge_behind_a_cookie_wall(self, session, server):
        wants = DigestAuth("me", "pw")
        url = server.route("/it", sequence(set_cookies("seen=1; Path=/", status=401), wants))
        assert session.get(url, auth=HTTPDigestAuth("me", "pw")).status_code == 401
        assert session.get(url, auth=HTTPDigestAuth("me", "pw")).status_code == 200
        assert isinstance(session.cookies, requests.cookies.RequestsCookieJar)
