"""Adapters: which of them is chosen, what may be put in, and what can be reached through a response."""

from __future__ import annotations

import ssl

import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from ..fakes import ScriptedAdapter
from ..loopback import Server, hang_up, sequence


def innermost(adapter):
    """What really sends: ours stands inside a stack."""
    return adapter.transport.inner if hasattr(adapter, "layers") else adapter


class TestChoosing:
    def test_the_longest_prefix_counts(self, session):
        short, long, longest = ScriptedAdapter(201), ScriptedAdapter(202), ScriptedAdapter(203)
        session.mount("http://a.test/b/", longest)
        session.mount("http://a", short)
        session.mount("http://a.test/", long)
        urls = ("http://a.other/", "http://a.test/", "http://a.test/b/c")
        assert [session.get(url).status_code for url in urls] == [201, 202, 203]

    def test_adapters_are_listed_longest_first(self, session):
        session.mount("http://a.test/", ScriptedAdapter())
        session.mount("http://a.test/b", ScriptedAdapter())
        session.mount("x://", ScriptedAdapter())
        assert list(session.adapters) == ["http://a.test/b", "http://a.test/", "https://", "http://", "x://"]

    def test_case_does_not_count(self, session):
        adapter = ScriptedAdapter(201)
        session.mount("http://Example.TEST/", adapter)
        assert session.get("HTTP://example.test/").status_code == 201

    def test_a_prefix_is_replaced(self, session):
        session.mount("http://", ScriptedAdapter(201))
        session.mount("http://", ScriptedAdapter(202))
        assert session.get("http://a.test/").status_code == 202
        assert list(session.adapters) == ["https://", "http://"]

    def test_get_adapter_finds_what_was_mounted(self, session):
        adapter = ScriptedAdapter()
        session.mount("http://a.test/", adapter)
        assert innermost(session.get_adapter("http://a.test/x")) is adapter
        assert isinstance(session.get_adapter("http://b.test/"), BaseAdapter)
        assert session.get_adapter("http://b.test/") is session.adapters["http://"]

    def test_ours_puts_it_inside_a_stack(self, session, ours):
        """Where ours differs: what is mounted keeps the session's layers around it."""
        adapter = ScriptedAdapter()
        session.mount("http://a.test/", adapter)
        assert (session.adapters["http://a.test/"] is adapter) is not ours

    def test_ours_has_one_stack_for_both_schemes(self, session, ours):
        assert (session.adapters["http://"] is session.adapters["https://"]) is ours
        assert isinstance(session.adapters["http://"], HTTPAdapter) is not ours

    def test_no_adapter_is_an_error(self, session):
        with pytest.raises(requests.exceptions.InvalidSchema, match="No connection adapters"):
            session.get("gopher://a.test/")
        with pytest.raises(requests.exceptions.InvalidSchema):
            session.get_adapter("gopher://a.test/")

    def test_any_scheme_may_have_one(self, session):
        session.mount("memory://", ScriptedAdapter((200, {}, b"from memory")))
        assert session.get("memory://anything").content == b"from memory"

    def test_removing_them_is_seen(self, session):
        session.adapters.clear()
        with pytest.raises(requests.exceptions.InvalidSchema):
            session.get("http://a.test/")


class TestOnesOwn:
    def test_it_gets_the_options_of_the_call(self, session):
        adapter = ScriptedAdapter()
        session.mount("http://", adapter)
        session.get("http://a.test/", timeout=3, verify=False, cert="c", stream=True, proxies={"http": "http://p"})
        (options,) = adapter.options
        assert options["timeout"] == 3
        assert (options["verify"], options["cert"], options["stream"]) == (False, "c", True)
        assert options["proxies"] == {"http": "http://p"}

    def test_it_may_know_the_five_options_only(self, session, server):
        class Strict(BaseAdapter):
            def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
                response = requests.Response()
                response.status_code = 299
                response.request = request
                response.url = request.url
                return response

            def close(self):
                pass

        session.mount("http://", Strict())
        assert session.get("http://a.test/").status_code == 299

    def test_its_answers_need_not_have_a_body(self, session):
        class Bare(BaseAdapter):
            def send(self, request, **options):
                response = requests.Response()
                response.status_code = 200
                return response

            def close(self):
                pass

        session.mount("http://", Bare())
        assert session.get("http://a.test/").content is None

    def test_its_response_class_is_kept(self, session):
        class Special(requests.Response):
            @property
            def shout(self):
                return self.text.upper()

        class Maker(HTTPAdapter):
            def build_response(self, req, resp):
                response = super().build_response(req, resp)
                response.__class__ = Special
                return response

        with Server() as server:
            session.mount("http://", Maker())
            response = session.get(server.url())
            assert isinstance(response, Special)
            assert response.shout == "OK"

    @pytest.mark.parametrize("error", [ValueError("mine"), requests.RequestException("mine"), OSError("mine")])
    def test_its_errors_come_through(self, session, error):
        session.mount("http://", ScriptedAdapter(error))
        with pytest.raises(type(error), match="mine"):
            session.get("http://a.test/")

    def test_send_of_an_httpadapter_may_be_overridden(self, session, server):
        class Counting(HTTPAdapter):
            sent = 0

            def send(self, request, *args, **kwargs):
                self.sent += 1
                kwargs["timeout"] = 5
                return super().send(request, *args, **kwargs)

        adapter = Counting()
        session.mount("http://", adapter)
        assert session.get(server.url()).text == "ok"
        assert adapter.sent == 1

    def test_add_headers_is_called(self, session, server):
        class Stamping(HTTPAdapter):
            def add_headers(self, request, **kwargs):
                request.headers["X-Stamp"] = "1"

        session.mount("http://", Stamping())
        session.get(server.url())
        assert server.last.fields["X-Stamp"] == "1"

    @pytest.mark.skipif(
        requests.__version__ in ("2.32.0", "2.32.1", "2.32.2"), reason="they put a context of their own in its place"
    )
    def test_a_tls_context_of_ones_own_is_used(self, session, tls_server, authority):
        class Trusting(HTTPAdapter):
            def init_poolmanager(self, *args, **kwargs):
                context = ssl.create_default_context(cafile=authority.bundle)
                super().init_poolmanager(*args, ssl_context=context, **kwargs)

        session.mount("https://", Trusting())
        assert session.get(tls_server.url(host="localhost")).text == "ok"

    def test_closing_the_session_closes_it(self, session):
        adapter, other = ScriptedAdapter(), ScriptedAdapter()
        session.mount("http://", adapter)
        session.mount("https://", other)
        session.close()
        assert (adapter.closed, other.closed) == (1, 1)


class TestHttpAdapter:
    def test_its_retries_reach_a_server_that_hung_up(self, make_session, server):
        session = make_session()
        session.mount("http://", HTTPAdapter(max_retries=2))
        url = server.route("/it", sequence(hang_up(), hang_up(), 200))
        assert session.get(url).status_code == 200
        assert len(server.requests) == 3

    def test_its_status_retries(self, session, server):
        retries = urllib3.Retry(total=2, status_forcelist=[503], backoff_factor=0)
        session.mount("http://", HTTPAdapter(max_retries=retries))
        assert session.get(server.route("/it", sequence(503, 503, 200))).status_code == 200

    def test_giving_up_is_an_error(self, session, server, kind):
        if kind == "everything on":
            pytest.skip("there the session's own retries take the adapter's place")
        retries = urllib3.Retry(total=1, status_forcelist=[503], backoff_factor=0)
        session.mount("http://", HTTPAdapter(max_retries=retries))
        with pytest.raises(requests.exceptions.RetryError):
            session.get(server.route("/it", 503))
        assert len(server.requests) == 2

    def test_what_it_has_can_be_reached(self, session, server):
        adapter = session.get_adapter(server.url())
        assert isinstance(adapter.poolmanager, urllib3.PoolManager)
        assert adapter.max_retries.total == 0
        assert adapter.config == {}
        assert adapter.proxy_manager_for("http://127.0.0.1:1/") is not None

    def test_what_it_has_can_be_set(self, session, server, kind):
        """Old code sets `session.adapters[...].max_retries` instead of mounting another adapter."""
        session.adapters["http://"].max_retries = urllib3.Retry(total=1, status_forcelist=[503], backoff_factor=0)
        assert session.get(server.route("/it", sequence(503, 200))).status_code == 200

    def test_its_pool_may_block(self, session, server):
        session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True))
        assert [session.get(server.url()).text for _ in range(3)] == ["ok"] * 3
        assert server.accepted == 1

    def test_each_scheme_has_one(self, session):
        assert list(session.adapters) == ["https://", "http://"]


class TestConnection:
    def test_a_response_can_send_through_it(self, session, server):
        response = session.get(server.url())
        again = response.connection.send(response.request)
        assert (again.status_code, again.content) == (200, b"ok")

    def test_it_takes_the_options(self, session, server):
        response = session.get(server.url())
        again = response.connection.send(response.request, stream=True, timeout=5, verify=True, cert=None, proxies={})
        assert again.content == b"ok"

    def test_it_can_be_closed(self, session, server):
        response = session.get(server.url())
        response.connection.close()
        assert session.get(server.url()).text == "ok"


class TestClosing:
    def test_connections_end(self, session, server):
        session.get(server.url())
        assert server.open_connections() == 1
        session.close()
        server.wait_until_idle()

    def test_a_closed_session_may_be_used_again(self, session, server):
        session.get(server.url())
        session.close()
        assert session.get(server.url()).text == "ok"

    def test_a_with_block_closes(self, make_session, server):
        with make_session() as session:
            session.get(server.url())
        server.wait_until_idle()
