"""The session: its arguments, its mounts, its copies, its threads."""

import copy
import logging
import multiprocessing
import os
import pickle
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync import Bearer, Retry, Session, Throttle, UserAgents, Waf
from kreuz_sync.api import PROCESS_THROTTLE
from kreuz_sync.sessions import DEFAULT_TIMEOUT_S
from kreuz_sync.stack import Stack

from .fakes import FakeClock, ScriptedAdapter
from .loopback import answer, echo, redirect, silent

URL = "http://example.test/"


@pytest.fixture
def quick():
    """A session on a scripted adapter, without pace."""
    made = []

    def make(*answers, **settings):
        wire = ScriptedAdapter(*answers)
        session = Session(**{"throttle": None, "adapter": wire, **settings})
        made.append(session)
        return session, wire

    yield make
    for session in made:
        session.close()


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("throttle", "fast", TypeError),
            ("throttle", -1, ValueError),
            ("throttle", float("nan"), ValueError),
            ("throttle", True, TypeError),
            ("retry", -1, ValueError),
            ("retry", "3", TypeError),
            ("retry", 1.5, TypeError),
            ("retry", True, TypeError),
            ("headers", "Accept: x", TypeError),
            ("headers", {"A\n": "x"}, ValueError),
            ("headers", {"A": "x\ny"}, ValueError),
            ("headers", {"A": 1}, ValueError),
            ("user_agents", "mine/1", TypeError),
            ("user_agents", [1], TypeError),
            ("user_agents", ["a\nb"], ValueError),
            ("auth", {"example.test": ("a", "b")}, ValueError),
            ("auth", "token", TypeError),
            ("auth", ("a",), TypeError),
            ("raise_for_status", 1, TypeError),
            ("timeout", 0, ValueError),
            ("timeout", -1, ValueError),
            ("timeout", float("inf"), ValueError),
            ("timeout", "30", TypeError),
            ("timeout", (1,), ValueError),
            ("timeout", (1, "2"), TypeError),
            ("max_body", -1, ValueError),
            ("max_body", 1.5, TypeError),
            ("length_tolerance", -1, ValueError),
            ("waf", True, TypeError),
            ("adapter", "http", TypeError),
            ("pool_connections", 0, ValueError),
            ("pool_maxsize", 0, ValueError),
            ("layers", "throttle", TypeError),
            ("layers", [1], TypeError),
            ("layers", [lambda inner: None], TypeError),
            ("throttle", 10**400, ValueError),
            ("headers", {"Authorization": "s3cret\n"}, ValueError),
        ],
    )
    def test_a_wrong_one_fails_at_once_and_is_named(self, name, value, error):
        with pytest.raises((error, requests.exceptions.InvalidHeader)) as caught:
            Session(**{name: value})
        assert name in str(caught.value) and "s3cret" not in str(caught.value)

    def test_an_unknown_keyword_is_an_error(self):
        with pytest.raises(TypeError, match="delay"):
            Session(delay=1)

    def test_layers_are_the_whole_stack(self):
        with pytest.raises(ValueError, match="throttle"):
            Session(layers=[], throttle=1)

    def test_plain_values_and_settings_mean_the_same(self):
        """A number is short for a setting with that number."""
        assert Session(retry=2).retry == Session(retry=Retry(attempts=2)).retry
        assert Session(throttle=0.5).throttle.delay == Session(throttle=Throttle(0.5)).throttle.delay

    def test_without_arguments_there_is_pace_and_nothing_else(self):
        session = Session()
        assert [type(layer) for layer in session.layers] == [Throttle]
        assert session.throttle.delay == 0.2 and session.timeout == DEFAULT_TIMEOUT_S == 30

    def test_none_turns_the_pace_off(self):
        assert Session(throttle=None).layers == ()

    def test_every_setting_has_its_layer_in_order(self):
        session = Session(throttle=1, retry=1, user_agents=["a/1"], auth={"http://a.test": Bearer("t")})
        assert [type(layer).__name__ for layer in session.layers] == ["UserAgents", "OriginAuth", "Retry", "Throttle"]

    def test_repr_shows_no_secret(self):
        session = Session(auth={"http://a.test": Bearer("s3cret")}, headers={"Authorization": "s3cret"})
        assert "s3cret" not in repr(session) + repr(session.adapters)


class TestTimeout:
    def test_a_call_without_one_has_the_sessions(self, quick):
        session, wire = quick(timeout=7)
        session.get(URL)
        session.send(session.prepare_request(requests.Request("GET", URL)))
        assert [one["timeout"] for one in wire.options] == [7, 7]

    def test_a_calls_own_wins_and_none_is_one_of_them(self, quick):
        session, wire = quick(timeout=7)
        session.get(URL, timeout=1)
        session.get(URL, timeout=None)
        session.request("GET", URL, None, None, None, None, None, None, (2, None))
        session.send(session.prepare_request(requests.Request("GET", URL)), timeout=None)
        assert [one["timeout"] for one in wire.options] == [1, None, (2, None), None]

    def test_it_ends_a_silent_servers_call(self, server):
        with Session(throttle=None, timeout=0.1) as session, pytest.raises(requests.ReadTimeout):
            session.get(server.route("/", silent()))

    def test_a_redirects_hops_have_it_too(self, quick):
        session, wire = quick((302, {"Location": "/b"}, b""), 200, timeout=7)
        session.get(URL)
        assert [one["timeout"] for one in wire.options] == [7, 7]


class TestMount:
    def test_a_plain_adapter_gets_the_sessions_layers(self):
        session, wire = Session(throttle=Throttle(1, clock=(clock := FakeClock()))), ScriptedAdapter()
        session.mount("http://special.test/", wire)
        for _ in range(3):
            session.get("http://special.test/")
        assert len(wire.requests) == 3 and clock.waits == [1, 1]

    def test_options_that_only_an_adapter_knows_reach_it(self, quick):
        session, wire = quick()
        session.send(session.prepare_request(requests.Request("GET", URL)), colour=1)
        assert wire.options[0]["colour"] == 1

    def test_all_mounts_share_one_pace(self):
        session = Session(throttle=Throttle(1, clock=(clock := FakeClock())))
        for path in ("a", "b"):
            session.mount(f"http://special.test/{path}", ScriptedAdapter())
            session.get(f"http://special.test/{path}")
        assert clock.waits == [1]

    def test_a_stack_is_mounted_as_it_is(self):
        session, stack = Session(), Stack([], ScriptedAdapter())
        session.mount("http://", stack)
        assert session.get_adapter(URL) is stack

    def test_raw_means_without_layers(self):
        session, wire = Session(throttle=Throttle(1, clock=(clock := FakeClock()))), ScriptedAdapter()
        session.mount_raw("http://", wire)
        session.get(URL)
        assert session.get(URL).status_code == 200 and clock.waits == []
        assert session.get_adapter(URL) is wire

    def test_the_longest_prefix_wins_as_in_requests(self):
        session, long, short = Session(throttle=None), ScriptedAdapter(201), ScriptedAdapter(202)
        session.mount("http://a.test/x", long)
        session.mount("http://a.test", short)
        assert session.get("http://a.test/x/1").status_code == 201
        assert session.get("http://a.test/y").status_code == 202

    def test_closing_reaches_every_mount(self):
        session, wires = Session(), [ScriptedAdapter(), ScriptedAdapter()]
        session.mount("http://a.test", wires[0])
        session.mount_raw("http://b.test", wires[1])
        session.close()
        assert [wire.closed for wire in wires] == [1, 1]

    def test_an_adapter_given_to_the_constructor_sends(self, quick):
        session, wire = quick()
        session.get(URL)
        session.get("https://example.test/")
        assert len(wire.requests) == 2

    def test_an_adapters_own_retries_never_multiply_ours(self, server, caplog):
        """Two loops of two sends would make four; there are two, and one warning says why."""
        url = server.route("/", 503)
        adapter = HTTPAdapter(max_retries=urllib3.Retry(2, status_forcelist=[503]))
        with Session(throttle=None, retry=Retry(attempts=1, base=0)) as session:
            with caplog.at_level(logging.WARNING, "kreuz_sync"):
                session.mount("http://", adapter)
            assert session.get(url).status_code == 503
        assert len(server.requests) == 2
        assert len([one for one in caplog.records if one.name.startswith("kreuz_sync")]) == 1

    @pytest.mark.parametrize("through_the_session", [True, False])
    def test_nor_those_that_it_is_given_later(self, server, through_the_session):
        url = server.route("/", 503)
        adapter = HTTPAdapter()
        with Session(throttle=None, retry=Retry(attempts=1, base=0)) as session:
            session.mount("http://", adapter)
            later = session.get_adapter(url) if through_the_session else adapter
            later.max_retries = urllib3.Retry(2, status_forcelist=[503])
            assert session.get(url).status_code == 503
        assert len(server.requests) == 2

    @pytest.mark.parametrize("value", [None, object(), HTTPAdapter])
    def test_what_is_no_adapter_is_refused(self, value):
        with pytest.raises(TypeError, match="adapter"):
            Session().mount("http://", None if value is HTTPAdapter else value)
        with pytest.raises(TypeError, match="adapter"):
            Session().mount_raw("http://", object())

    def test_without_our_retry_an_adapters_own_is_left_alone(self, server):
        url = server.route("/", 503)
        with Session(throttle=None) as session:
            session.mount("http://", HTTPAdapter(max_retries=urllib3.Retry(2, status_forcelist=[503])))
            with pytest.raises(requests.exceptions.RetryError) as caught:
                session.get(url)
        assert type(caught.value) is kreuz_sync.RetriesExhausted and len(server.requests) == 3


class TestLayers:
    def test_any_order_can_be_given(self):
        throttle = Throttle(1, clock=(clock := FakeClock()))
        session = Session(layers=[throttle, Retry(attempts=2, base=0.5, clock=clock)], adapter=ScriptedAdapter(503))
        session.get(URL)
        assert clock.waits == pytest.approx([0.5, 1.0]), "inside the throttle, a retry does not wait its turn"
        assert session.throttle is throttle

    def test_the_references_order_is_ready_made(self):
        clock = FakeClock()
        parts = {"throttle": Throttle(1, clock=clock), "retry": Retry(attempts=1, base=0.1, clock=clock)}
        Session(layers=kreuz_sync.reference_order(**parts), adapter=ScriptedAdapter(503)).get(URL)
        assert clock.waits == pytest.approx([0.1])

    def test_our_own_order_waits_for_every_attempt(self):
        clock = FakeClock()
        session = Session(
            throttle=Throttle(1, clock=clock),
            retry=Retry(attempts=2, base=0.1, clock=clock),
            adapter=ScriptedAdapter(503),
        )
        response = session.get(URL)
        assert response.attempts == 3 and response.waited == pytest.approx(2.0)
        assert clock.monotonic() == pytest.approx(1002.0)


class TestSharing:
    def test_two_sessions_with_one_throttle_have_one_pace(self):
        throttle = Throttle(1, clock=(clock := FakeClock()))
        for _ in range(2):
            Session(throttle=throttle, adapter=ScriptedAdapter()).get(URL)
        assert clock.waits == [1]

    def test_two_sessions_without_one_do_not_wait_for_each_other(self):
        assert Session().throttle is not Session().throttle


class TestRaiseForStatus:
    def test_off_an_error_is_an_answer(self, quick):
        session, _ = quick(404)
        assert session.get(URL).status_code == 404

    def test_on_it_is_raised_after_the_redirects(self, quick):
        session, _ = quick((302, {"Location": "/b"}, b""), 404, raise_for_status=True)
        with pytest.raises(kreuz_sync.NotFound) as caught:
            session.get(URL)
        assert [one.status_code for one in caught.value.response.history] == [302]

    def test_on_a_challenge_page_is_raised_whatever_its_status(self, quick):
        session, _ = quick((200, {"cf-mitigated": "challenge"}, b""), raise_for_status=True)
        with pytest.raises(kreuz_sync.WafBlocked) as caught:
            session.get(URL)
        assert caught.value.vendor == "cloudflare"

    def test_it_can_be_switched_on_later(self, quick):
        session, _ = quick(500)
        session.raise_for_status = True
        with pytest.raises(kreuz_sync.ServerError):
            session.get(URL)


class TestSecretsInUrls:
    @pytest.mark.parametrize("url", ["foo://me:s3cret@h.test/", "http://me:s3cret@:80/", "me:s3cret@h.test"])
    def test_requests_own_url_errors_are_shown_without_them(self, quick, url):
        session, _ = quick()
        with pytest.raises((requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL, ValueError)) as caught:
            session.get(url)
        assert "s3cret" not in str(caught.value)

    def test_headers_may_be_none_as_in_requests(self, quick):
        session, wire = quick()
        session.headers = None
        session.get(URL, headers={"A": "1"})
        session.get(URL)
        assert wire.requests[0].headers["A"] == "1"

    def test_a_field_with_a_bad_value_is_not_quoted(self, quick):
        session, _ = quick()
        with pytest.raises(requests.exceptions.InvalidHeader) as caught:
            session.get(URL, headers={"Authorization": " s3cret\n"})
        assert "s3cret" not in str(caught.value)

    def test_what_such_an_error_pickles_has_none(self, quick):
        session, _ = quick()
        with pytest.raises(requests.exceptions.InvalidSchema) as caught:
            session.get("foo://h.test/", headers={"Authorization": "s3cret"})
        assert b"s3cret" not in pickle.dumps(caught.value)

    def test_a_users_own_subclass_of_such_an_error_passes_as_it_is(self, quick):
        class Theirs(requests.exceptions.InvalidURL):
            def __init__(self, url, code):
                super().__init__(url)
                self.code = code

        session, _ = quick(Theirs("x", 7))
        with pytest.raises(Theirs) as caught:
            session.get(URL)
        assert caught.value.code == 7

    @pytest.mark.parametrize("url", ["http://u:p@[::1", "http://u:x@[bad]/"])
    def test_a_url_that_cannot_be_read_is_requests_own_error(self, quick, url):
        session, _ = quick()
        with pytest.raises(requests.exceptions.InvalidURL):
            session.get(url)

    def test_prepared_requests_too(self, quick):
        session, _ = quick()
        request = requests.Request("GET", "http://h.test/").prepare()
        request.url = "foo://me:s3cret@h.test/"
        with pytest.raises(requests.exceptions.InvalidSchema) as caught:
            session.send(request)
        assert "s3cret" not in str(caught.value)


class TestHooks:
    def test_a_call_made_in_a_hook_is_a_call_of_its_own(self, quick):
        session, _ = quick()
        seen = []

        def hook(response, **_):
            if not seen:
                seen.append(None)
                seen.append(session.get(URL).attempts)

        assert session.get(URL, hooks={"response": hook}).attempts == 1
        assert seen[1] == 1

    def test_a_call_made_while_a_redirect_is_followed_raises_for_itself(self, quick):
        """A hop is told from a call made by a hop's hook."""
        session, _ = quick((302, {"Location": "/b"}, b""), 200, 404, raise_for_status=True)
        inner = []

        def hook(response, **_):
            if response.url.endswith("/b") and not inner:
                with pytest.raises(kreuz_sync.NotFound):
                    inner.append(1)
                    session.get(URL + "c")

        assert session.get(URL, hooks={"response": hook}).status_code == 200
        assert inner == [1]


def _fetch(session, url):
    response = session.get(url)
    return response.status_code, response.json()["headers"]["User-Agent"] if "headers" in response.json() else None


class TestCopies:
    def everything(self):
        return Session(
            throttle=0.01,
            retry=Retry(attempts=2, base=0),
            user_agents=["mine/1"],
            auth={"http://127.0.0.1:1": Bearer("t")},
            headers={"X-A": "1"},
            timeout=9,
            max_body=10_000,
        )

    @pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_a_copy_works_and_keeps_its_settings(self, server, make_copy):
        url = server.route("/", echo)
        with self.everything() as session, make_copy(session) as other:
            assert other.get(url).status_code == 200
            assert (other.timeout, other.headers["X-A"], other.retry) == (9, "1", session.retry)
            assert [type(one) for one in other.layers] == [type(one) for one in session.layers]
            assert all(stack.layers == other.layers for stack in other.adapters.values())
        assert server.requests[0].fields["User-Agent"] == "mine/1"

    def test_after_unpickling_all_mounts_still_share_one_pace(self):
        other = pickle.loads(pickle.dumps(self.everything()))
        stacks = list(other.adapters.values())
        assert all(stack.layers[-1] is other.throttle for stack in stacks)

    def test_a_subclass_in_old_code_may_use_our_names_itself(self, server):
        class Old(Session):
            def __init__(self):
                super().__init__(throttle=None)
                self.retry, self.throttle, self.layers = "three times", "gently", "of paint"

        with Old() as old, pickle.loads(pickle.dumps(Session(throttle=None))) as _:
            assert old.get(server.url("/")).status_code == 200
            old.mount("http://", HTTPAdapter())
            assert old.get(server.url("/")).status_code == 200

    def test_a_subclass_with_attributes_of_its_own_behaves_as_in_requests(self):
        assert pickle.loads(pickle.dumps(Session(max_body=5)))._transport_options["max_body"] == 5

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    @pytest.mark.parametrize("method", ["spawn", "fork"])
    def test_it_goes_to_worker_processes(self, server, method):
        if method not in multiprocessing.get_all_start_methods():
            pytest.skip("not on this system")
        url = server.route("/", echo)
        with self.everything() as session:
            session.get(url)
            with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
                results = [pool.submit(_fetch, session, url) for _ in range(4)]
                assert [one.result(60)[0] for one in results] == [200] * 4

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_a_fork_in_the_middle_of_traffic_leaves_the_child_usable(self, server):
        """Whatever lock another thread held at that moment, the child is not stuck on it."""
        url = server.route("/", echo)
        stop = threading.Event()
        with Session(throttle=0.001) as session:

            def busy():
                while not stop.is_set():
                    session.get(url)

            threads = [threading.Thread(target=busy) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for _ in range(10):
                    child = os.fork()
                    if child == 0:
                        ok = False
                        try:
                            ok = session.get(url).status_code == 200
                        finally:
                            os._exit(0 if ok else 1)
                    assert os.waitpid(child, 0)[1] == 0
            finally:
                stop.set()
                for thread in threads:
                    thread.join(30)


class TestPools:
    def test_fifty_threads_and_one_host_reuse_their_connections(self, server, caplog):
        """1,000 requests, at most 50 sockets, and no word about a full pool."""
        url = server.route("/", answer(body=b"ok"))
        with caplog.at_level(logging.WARNING), Session(throttle=0) as session, ThreadPoolExecutor(50) as pool:
            statuses = [one.status_code for one in pool.map(lambda _: session.get(url), range(1000))]
        assert statuses == [200] * 1000
        assert len({one.connection for one in server.requests}) <= 50
        assert caplog.records == []

    def test_a_hundred_hosts_keep_their_connections(self, server):
        """As many pools as hosts: none is thrown out for another."""
        server.route("/", answer(body=b"ok"))
        with Session(throttle=0) as session:
            urls = [f"http://127.0.0.1:{server.port}/"]
            manager = session.get_adapter(urls[0]).poolmanager
            for number in range(100):
                manager.connection_from_url(f"http://h{number}.test/")
            assert len(manager.pools) == 100

    def test_their_sizes_are_arguments(self):
        adapter = Session(pool_connections=3, pool_maxsize=2).get_adapter(URL).adapter
        assert (adapter._pool_connections, adapter._pool_maxsize) == (3, 2)

    def test_nothing_is_left_open(self, server):
        url = server.route("/", answer(body=b"ok"))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            session = Session(throttle=None)
            session.get(url)
            session.close()
            del session


class TestModule:
    """`kreuz_sync.get` and its kin."""

    def test_they_send_their_method(self, server):
        url = server.route("/", echo)
        for method in ("get", "post", "put", "patch", "delete", "options"):
            assert getattr(kreuz_sync, method)(url).json()["method"] == method.upper()
        assert kreuz_sync.head(url).status_code == 200
        assert kreuz_sync.request("PURGE", url).json()["method"] == "PURGE"

    def test_arguments_are_requests_own(self, server):
        url = server.route("/", echo)
        assert kreuz_sync.get(url, {"a": "1"}).json()["target"].endswith("?a=1")
        assert kreuz_sync.post(url, json={"a": 1}).json()["body"] == '{"a": 1}'
        assert kreuz_sync.post(url, {"a": "1"}).json()["body"] == "a=1"

    def test_head_follows_no_redirect_unless_asked(self, server):
        url = server.route("/a", redirect("/b"))
        server.route("/b", 200)
        assert kreuz_sync.head(url).status_code == 302
        assert kreuz_sync.head(url, allow_redirects=True).status_code == 200

    def test_they_share_one_pace(self, server):
        """Three calls, three sessions, one throttle, which has counted all three."""
        url = server.route("/", 200)

        def starts():
            report = PROCESS_THROTTLE.snapshot().get("127.0.0.1")
            return 0 if report is None else report.starts

        before = starts()
        for _ in range(3):
            kreuz_sync.get(url)
        assert starts() == before + 3 and PROCESS_THROTTLE.delay == 0.2

    def test_session_is_a_function_as_in_requests(self):
        assert type(kreuz_sync.session()) is Session

    def test_every_public_name_exists(self):
        assert all(hasattr(kreuz_sync, name) for name in kreuz_sync.__all__)

    def test_it_stands_in_for_requests(self):
        """`import kreuz_sync as requests`: the front page's names and its submodules' names are there."""
        front = [name for name in vars(requests) if not name.startswith("_") and name[0].isupper()]
        missing = {name for name in front if not hasattr(kreuz_sync, name)}
        assert missing <= {"FileModeWarning", "RequestsDependencyWarning", "NullHandler", "DependencyWarning"}
        assert {"HTTPBasicAuth", "HTTPDigestAuth", "HTTPProxyAuth", "AuthBase"} <= set(vars(kreuz_sync.auth))
        assert kreuz_sync.sessions.Session is Session and kreuz_sync.models.Response is requests.Response
        for name in (
            "adapters",
            "certs",
            "compat",
            "cookies",
            "exceptions",
            "hooks",
            "packages",
            "status_codes",
            "utils",
        ):
            assert getattr(kreuz_sync, name) is getattr(requests, name)

    def test_front_page_errors_catch_what_ever_raises_them(self, server):
        """Also where an adapter without layers, or another library, raises requests' own."""
        with Session(throttle=None) as session:
            url = server.route("/", silent())
            with pytest.raises(kreuz_sync.ReadTimeout):
                session.get(url, timeout=0.1)
            session.mount_raw("http://", HTTPAdapter())
            with pytest.raises(kreuz_sync.ReadTimeout):
                session.get(url, timeout=0.1)


def test_settings_can_be_combined_freely(quick):
    session, wire = quick(200, user_agents=UserAgents(["a/1"]), waf=Waf(), auth=Bearer("t"))
    session.get(URL)
    assert wire.requests[0].headers["User-Agent"] == "a/1" and wire.requests[0].headers["Authorization"] == "Bearer t"
