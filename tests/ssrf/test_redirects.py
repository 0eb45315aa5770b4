"""Every hop is checked; and the guard that looks at redirects alone."""

import threading

import pytest
import requests

from kreuz_sync import AddressBlocked, AddressGuard, Retry, Stack
from kreuz_sync.transport import Transport
from kreuz_sync.wire import WireAdapter

from ..fakes import FakeClock
from ..loopback import DigestAuth, answer, redirect, sequence
from .resolving import PRIVATE, PUBLIC, Resolver, outcome_of, with_literals


class TestRedirects:
    """Every hop is checked."""

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize("target", [PRIVATE, "inside.test", "10.0.0.1", "0177.0.0.2", "[::ffff:127.0.0.2]"])
    def test_none_leads_inside(self, open_session, server, status, target):
        session = open_session(with_literals(Resolver(inside_test=[PRIVATE])))
        server.route("/from", redirect(f"http://{target}:{server.port}/to", status))
        with pytest.raises(AddressBlocked):
            session.get(server.url("/from"))
        assert [one.path for one in server.requests] == ["/from"]

    def test_one_to_a_public_host_is_followed(self, open_session, server):
        server.route("/from", redirect(f"http://other.test:{server.port}/"))
        response = open_session(Resolver(other_test=[PUBLIC])).get(server.url("/from"))
        assert (response.text, len(response.history)) == ("ok", 1)

    @pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://site.test/", "gopher://127.0.0.1/", "data:,x"])
    def test_there_is_nothing_but_http(self, open_session, server, target):
        server.route("/from", redirect(target))
        with pytest.raises(requests.exceptions.InvalidSchema):
            open_session(Resolver()).get(server.url("/from"))

    def test_the_error_counts_what_was_sent(self, open_session, server):
        server.route("/from", redirect(f"http://{PRIVATE}:{server.port}/"))
        with pytest.raises(AddressBlocked) as caught:
            open_session(Resolver(), retry=3).get(server.url("/from"))
        assert caught.value.attempts == 0  # of the hop that was refused
        assert caught.value.request.url == f"http://{PRIVATE}:{server.port}/"


class TestRedirectsOnly:
    """What the caller asks for is fine; what a redirect from a public host leads to has to be public."""

    @pytest.fixture
    def session(self, open_session):
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE], moving_test=[PUBLIC, PRIVATE])
        return open_session(names, redirects_only=True)

    @pytest.fixture
    def hop(self, server):
        """A redirect from one host to another; its URL."""

        def make(start, end, path="/hop", to="/"):
            server.route(path, redirect(server.url(to, host=end)))
            return server.url(path, host=start)

        return make

    def test_a_private_address_may_be_asked_for(self, session, server):
        assert session.get(server.url(host=PRIVATE)).text == "ok"
        assert session.get(server.url(host="private.test")).text == "ok"

    @pytest.mark.parametrize("start", ["public.test", PUBLIC])
    @pytest.mark.parametrize("end", ["private.test", PRIVATE])
    def test_a_public_page_does_not_lead_inside(self, session, server, hop, start, end):
        url = hop(start, end)
        with pytest.raises(AddressBlocked):
            session.get(url)
        assert [one.path for one in server.requests] == ["/hop"]

    def test_a_connection_that_is_there_already_does_not_help(self, session, server, hop):
        """The caller's own request left it in the pool."""
        session.get(server.url(host="private.test"))
        with pytest.raises(AddressBlocked):
            session.get(hop("public.test", "private.test"))
        assert [one.path for one in server.requests] == ["/", "/hop"]
        assert session.get(server.url(host="private.test")).text == "ok"

    @pytest.mark.parametrize(("start", "end"), [("private.test", PRIVATE), ("private.test", "public.test")])
    def test_a_private_page_may_lead_anywhere(self, session, hop, start, end):
        assert session.get(hop(start, end)).text == "ok"

    def test_also_over_connections_that_are_there_already(self, session, hop):
        for _ in range(2):
            assert session.get(hop("private.test", PRIVATE)).text == "ok"

    def test_not_even_from_inside_by_way_of_a_public_one(self, session, server, hop):
        hop("public.test", "private.test", "/second")
        with pytest.raises(AddressBlocked):
            session.get(hop("private.test", "public.test", "/first", to="/second"))
        assert [one.path for one in server.requests] == ["/first", "/second"]

    def test_public_redirects_are_followed(self, session, hop):
        assert session.get(hop("public.test", PUBLIC)).text == "ok"

    def test_a_host_that_moves_inside_while_it_redirects_to_itself(self, session, server):
        server.route("/hop", answer(302, fields={"Location": "/"}, close=True))
        with pytest.raises(AddressBlocked):
            session.get(server.url("/hop", host="moving.test"))
        assert [one.path for one in server.requests] == ["/hop"]

    def test_retries_of_what_the_caller_asked_for(self, open_session, server):
        server.route("/", sequence(503, 503, 200))
        session = open_session(Resolver(), redirects_only=True, retry=Retry(2, clock=FakeClock()))
        assert session.get(server.url(host=PRIVATE)).attempts == 3

    def test_one_call_says_nothing_of_the_next(self, session, server, hop):
        with pytest.raises(AddressBlocked):
            session.get(hop("public.test", "private.test"))
        assert session.get(server.url(host=PRIVATE)).text == "ok"
        with pytest.raises(AddressBlocked):
            session.get(hop("public.test", PRIVATE))

    def test_a_redirect_that_comes_from_a_cache(self, open_session, server, hop, tmp_path):
        """Where it came from once is not known any more, so it is not trusted."""
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE])
        session = open_session(names, redirects_only=True, cache=tmp_path / "cache")
        server.route("/hop", redirect(server.url(host="private.test"), 301))
        for _ in range(2):
            with pytest.raises(AddressBlocked):
                session.get(server.url("/hop", host="public.test"))
        assert [one.path for one in server.requests] == ["/hop"]

    def test_nor_one_in_the_middle_that_comes_from_a_cache(self, open_session, server, hop, tmp_path):
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE])
        session = open_session(names, redirects_only=True, cache=tmp_path / "cache")
        server.route("/second", redirect(server.url(host="private.test"), 301))
        with pytest.raises(AddressBlocked):
            session.get(server.url("/second", host="public.test"))
        with pytest.raises(AddressBlocked):
            session.get(hop("private.test", "public.test", to="/second"))
        assert [one.path for one in server.requests] == ["/second", "/hop"]

    def test_digest_at_a_private_address(self, session, server):
        server.route("/", DigestAuth("me", "pw"))
        response = session.get(server.url(host="private.test"), auth=requests.auth.HTTPDigestAuth("me", "pw"))
        assert (response.status_code, len(response.history)) == (200, 1)

    def test_redirects_that_the_caller_follows_himself_are_his(self, session, hop):
        first = session.get(hop("public.test", "private.test"), allow_redirects=False)
        assert session.get(first.headers["Location"]).text == "ok"

    def test_in_a_session_of_requests_all_is_a_redirect(self, server):
        guard = AddressGuard(private=[PRIVATE], redirects_only=True)
        with requests.Session() as plain:
            plain.mount("http://", Stack([guard], Transport(WireAdapter())))
            assert plain.get(server.url()).text == "ok"
            with pytest.raises(AddressBlocked):
                plain.get(server.url(host=PRIVATE))

    def test_threads_do_not_mix_their_calls(self, session, server, hop):
        url, outcomes = hop("public.test", "private.test"), []
        barrier = threading.Barrier(8)

        def work(number):
            barrier.wait(10)
            for _ in range(5):
                outcomes.append(outcome_of(session, server.url(host=PRIVATE) if number % 2 else url))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(outcomes) == ["blocked"] * 20 + ["ok"] * 20
