"""Our session in the place of requests': the situations that broke programs when they changed sessions.

requests' own behaviour, area by area, is in `behaviour/`. Here is what ours adds to it.
"""

from __future__ import annotations

import base64
import copy
import pickle
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync import Bearer, Retry, Session, Throttle

from .fakes import FakeClock, ScriptedAdapter
from .loopback import answer, echo, redirect, silent

URL = "http://example.test/"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class TestErrorAnswersAreAnswers:
    """Code that looks at `status_code` itself is not surprised by an exception."""

    @pytest.mark.parametrize(
        ("status", "tag", "error"),
        [
            (401, "unauthorized", kreuz_sync.Unauthorized),
            (404, "not_found", kreuz_sync.NotFound),
            (418, "client_error", kreuz_sync.ClientError),
            (429, "rate_limited", kreuz_sync.RateLimited),
            (500, "server_error", kreuz_sync.ServerError),
            (502, "bad_gateway", kreuz_sync.BadGateway),
        ],
    )
    def test_nothing_is_raised_until_asked_for(self, server, status, tag, error):
        with Session(throttle=None) as session:
            response = session.get(server.route("/it", answer(status, body="sorry")))
        assert (response.status_code, response.text) == (status, "sorry")
        assert response.tag == tag == kreuz_sync.classify(response)
        with pytest.raises(error) as caught:
            response.raise_for_status()
        assert isinstance(caught.value, requests.HTTPError)
        assert caught.value.response is response

    def test_an_answer_that_is_no_error_has_no_tag(self, server):
        with Session(throttle=None) as session:
            assert session.get(server.url()).tag is None


class TestExplicitCredentialsBeatTheNetrcFile:
    @pytest.fixture(autouse=True)
    def netrc(self, home):
        (home / ".netrc").write_text("machine 127.0.0.1 login file password f\n")

    def sent(self, server, *, auth=None, host=None, **how):
        with Session(throttle=None, auth=auth) as session:
            session.get(server.url(host=host), **how)
        return server.last.fields.get("Authorization")

    def test_the_sessions_do(self, server):
        assert self.sent(server, auth=Bearer("t")) == "Bearer t"

    def test_those_of_the_origin_do(self, server):
        assert self.sent(server, auth={server.url("").rstrip("/"): Bearer("t")}) == "Bearer t"

    def test_the_calls_do(self, server):
        assert self.sent(server, headers={"Authorization": "Token z"}) == "Token z"
        with Session(throttle=None) as session:
            session.get(server.url(), auth=("call", "c"))
        assert server.last.fields["Authorization"] == basic("call", "c")

    def test_the_urls_do(self, server):
        assert self.sent(server, host="url:u@127.0.0.1") == basic("url", "u")

    def test_the_calls_beat_all_others(self, server):
        sent = self.sent(server, auth=Bearer("t"), host="url:u@127.0.0.1", headers={"Authorization": "Token z"})
        assert sent == "Token z"

    def test_the_sessions_beat_the_urls(self, server):
        assert self.sent(server, auth=Bearer("t"), host="url:u@127.0.0.1") == "Bearer t"

    def test_without_others_the_file_is_used(self, server):
        assert self.sent(server) == basic("file", "f")
        assert self.sent(server, auth={"http://other.test": Bearer("t")}) == basic("file", "f")

    def test_without_trust_it_is_not(self, server):
        with Session(throttle=None) as session:
            session.trust_env = False
            session.get(server.url())
        assert "Authorization" not in server.last.fields


class TestEveryCallHasATimeout:
    def test_the_sessions_ends_a_call(self, server):
        url = server.route("/it", silent())
        with Session(throttle=None, timeout=0.05) as session:
            with pytest.raises(kreuz_sync.ReadTimeout):
                session.get(url)
            with pytest.raises(kreuz_sync.ReadTimeout):
                session.send(session.prepare_request(requests.Request("GET", url)))

    def test_a_calls_own_counts_more(self, server):
        with Session(throttle=None, timeout=60) as session, pytest.raises(kreuz_sync.ReadTimeout):
            session.get(server.route("/it", silent()), timeout=0.05)

    def test_none_waits_longer_than_the_sessions(self, server):
        """The answer comes after several of the session's time-outs have passed."""
        with Session(throttle=None, timeout=0.05) as session:
            assert session.get(server.route("/it", answer(delay=0.3)), timeout=None).status_code == 200

    def test_a_pair_is_to_connect_and_to_read(self, server):
        with Session(throttle=None, timeout=(5, 0.05)) as session, pytest.raises(kreuz_sync.ReadTimeout):
            session.get(server.route("/it", silent()))

    def test_it_is_for_the_hops_of_a_redirect_too(self, server):
        server.route("/from", redirect("/it"))
        server.route("/it", silent())
        with Session(throttle=None, timeout=0.05) as session, pytest.raises(kreuz_sync.ReadTimeout):
            session.get(server.url("/from"))

    def test_the_default_is_thirty_seconds(self):
        wire = ScriptedAdapter()
        Session(throttle=None, adapter=wire).get(URL)
        assert wire.options[0]["timeout"] == 30

    def test_waiting_for_a_turn_is_not_part_of_it(self, server):
        with Session(throttle=Throttle(100, clock=FakeClock()), timeout=5) as session:
            assert [session.get(server.url()).status_code for _ in range(3)] == [200] * 3


class TestCopies:
    """Custom attributes are not lost, locks and connections are made anew."""

    @pytest.fixture
    def session(self):
        with Session(
            throttle=Throttle(0.001),
            retry=Retry(1, base=0.001),
            user_agents=["mine/1"],
            auth=("me", "pw"),
            timeout=7,
            max_body=1000,
            raise_for_status=True,
            headers={"X-A": "1"},
        ) as made:
            yield made

    @pytest.fixture(params=["pickle", "deepcopy", "copy"])
    def copied(self, request, session, server):
        session.get(server.url())  # a used one has connections and a pace
        ways = {"pickle": lambda: pickle.loads(pickle.dumps(session)), "deepcopy": lambda: copy.deepcopy(session)}
        with ways.get(request.param, lambda: copy.copy(session))() as made:
            yield made

    def test_settings_are_kept(self, session, copied):
        assert copied.throttle.delay == 0.001
        assert copied.retry == session.retry
        assert (copied.timeout, copied.raise_for_status, copied.auth) == (7, True, ("me", "pw"))
        assert repr(copied) == repr(session)

    def test_fields_are_sent(self, copied, server):
        copied.get(server.url())
        fields = server.last.fields
        assert (fields["User-Agent"], fields["X-A"], fields["Authorization"]) == ("mine/1", "1", basic("me", "pw"))

    def test_retries_work(self, copied, server):
        with pytest.raises(kreuz_sync.ServerError) as caught:
            copied.get(server.route("/it", 503))
        assert caught.value.attempts == 2

    def test_limits_work(self, copied, server):
        with pytest.raises(kreuz_sync.BodyTooLarge):
            copied.get(server.route("/it", answer(body=b"x" * 2000)))

    def test_both_go_on(self, session, copied, server):
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(one.get, server.url()) for one in (session, copied) * 5]
            assert [call.result(10).status_code for call in calls] == [200] * 10


class TestAnAdapterOfOnesOwn:
    """It is wrapped and asked for everything; no private method of requests is overridden."""

    class Trusting(HTTPAdapter):
        """Has a TLS context of its own, in the way that every release of requests takes."""

        def __init__(self, context: ssl.SSLContext) -> None:
            self.context = context
            super().__init__()

        def init_poolmanager(self, *args, **kwargs):
            super().init_poolmanager(*args, ssl_context=self.context, **kwargs)

    @pytest.mark.skipif(
        requests.__version__ in ("2.32.0", "2.32.1", "2.32.2"), reason="they put a context of their own in its place"
    )
    @pytest.mark.parametrize("how", ["constructor", "mount"])
    def test_its_tls_context_makes_the_handshake(self, tls_server, authority, how):
        """Nothing else trusts that server."""
        adapter = self.Trusting(ssl.create_default_context(cafile=authority.bundle))
        with Session(throttle=None, adapter=adapter if how == "constructor" else None) as session:
            if how == "mount":
                session.mount("https://", adapter)
            assert session.get(tls_server.url(host="localhost")).text == "ok"

    def test_any_scheme_can_be_served(self):
        with Session(throttle=None) as session:
            session.mount("http+unix://", ScriptedAdapter((200, {}, b"through a socket file")))
            assert session.get("http+unix://socket/info").text == "through a socket file"

    def test_nothing_private_of_requests_is_overridden(self):
        for kind, base in ((Session, requests.Session), (kreuz_sync.Stack, requests.adapters.BaseAdapter)):
            private = {name for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
            assert not private & set(dir(base)), f"{kind.__name__} overrides {private & set(dir(base))}"

    def test_it_may_answer_with_less_than_requests_does(self):
        class Plain(requests.adapters.BaseAdapter):
            def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
                response = requests.Response()
                response.status_code = 200
                response.url = request.url
                response._content = b"plain"
                return response

            def close(self):
                pass

        with Session(throttle=None, adapter=Plain()) as session:
            response = session.get(URL)
        assert (response.text, response.attempts) == ("plain", 1)


class TestTheEnvironmentStillCounts:
    """Wrapping the transport does not cut off proxies and certificates."""

    def test_a_proxy_of_the_environment_sees_all_traffic(self, server, proxy, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        with Session(throttle=None, retry=Retry(1, base=0.001)) as session:
            session.get(server.route("/from", redirect("/to")))
            session.get(server.route("/busy", 503))
        assert [one.path for one in proxy.requests] == ["/from", "/to", "/busy", "/busy"]

    def test_the_sessions_proxy_does_too(self, server, proxy):
        with Session(throttle=None) as session:
            session.proxies = {"http": proxy.url()}
            session.get(server.url())
        assert len(proxy.requests) == 1

    def test_no_proxy_is_obeyed(self, server, proxy, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with Session(throttle=None) as session:
            session.get(server.url())
        assert proxy.requests == []

    def test_the_pace_is_the_targets_and_not_the_proxys(self, server, proxy):
        proxy.names.update({"a.test": server.address, "b.test": server.address})
        with Session(throttle=Throttle(1, clock=(clock := FakeClock()))) as session:
            session.proxies = {"http": proxy.url()}
            session.get("http://a.test/")
            session.get("http://b.test/")
            assert clock.waits == []
            session.get("http://a.test/")
        assert clock.waits == [1]

    def test_verify_false_is_honoured(self, tls_server):
        with Session(throttle=None) as session, pytest.warns(urllib3.exceptions.InsecureRequestWarning):
            assert session.get(tls_server.url(), verify=False).text == "ok"

    def test_a_bundle_of_the_environment_is_used(self, tls_server, authority, monkeypatch):
        with Session(throttle=None) as session:
            with pytest.raises(kreuz_sync.SslError):
                session.get(tls_server.url())
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
            assert session.get(tls_server.url()).text == "ok"

    def test_the_five_options_reach_the_wire_unchanged(self):
        wire = ScriptedAdapter()
        options = {"stream": True, "timeout": (1, 2), "verify": "bundle", "cert": ("c", "k")}
        with Session(throttle=0, retry=1, user_agents=["a/1"], auth={URL: Bearer("t")}, adapter=wire) as session:
            session.get(URL, proxies={"http": "http://p.test"}, **options)
        assert wire.options == [{**options, "proxies": {"http": "http://p.test"}}]


class TestThreads:
    def test_one_session_serves_a_pool(self, server):
        """Cookies, redirects and keep-alive at once, and every answer to its own question."""
        server.route("/n/*", echo)
        server.route("/r/*", lambda request: redirect(request.path.replace("/r/", "/n/")))
        start = threading.Barrier(8)
        with Session(throttle=None) as session, ThreadPoolExecutor(8) as pool:

            def fetch(worker: int) -> list[bool]:
                start.wait(10)
                found = []
                for number in range(10):
                    name = f"{worker}-{number}"
                    got = session.get(server.url(f"/r/{name}"), params={"q": name}, headers={"X-Name": name}).json()
                    found.append(got["target"] == f"/n/{name}" and ["X-Name", name] in got["fields"])
                return found

            assert list(pool.map(fetch, range(8))) == [[True] * 10] * 8
        assert len(server.requests) == 160
        assert server.accepted <= 8
