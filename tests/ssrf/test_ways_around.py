"""Ways around the guard: pools of an adapter's own, the table of adapters, redirects that are followed by hand."""

import pickle

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from kreuz_sync import AddressBlocked, AddressGuard, Session
from kreuz_sync.wire import WireAdapter

from ..loopback import answer, redirect
from .resolving import PRIVATE, PUBLIC, Resolver, no_connection


def with_manager(**overridden):
    """An adapter with a PoolManager of its own kind."""
    kind = type("Manager", (urllib3.PoolManager,), overridden)

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args, **options):
            self.poolmanager = kind()

    return Adapter()


class TestManagers:
    """What gets its pools in a way of its own is not mounted."""

    @pytest.mark.parametrize(
        "name",
        ["_new_pool", "connection_from_host", "connection_from_pool_key", "connection_from_context", "urlopen"],
    )
    def test_one_that_overrides_how_is_refused(self, name):
        with pytest.raises(TypeError, match="a Manager"):
            Session(deny_private=True, adapter=with_manager(**{name: lambda self, *args, **options: None}))

    def test_one_that_is_changed_itself_is_refused(self):
        adapter = HTTPAdapter()
        adapter.poolmanager.connection_from_host = adapter.poolmanager.connection_from_url
        with pytest.raises(TypeError):
            Session(deny_private=True, adapter=adapter)

    def test_what_is_no_manager_at_all_is_refused(self):
        adapter = HTTPAdapter()
        adapter.poolmanager = object()
        with pytest.raises(TypeError):
            Session(deny_private=True, adapter=adapter)

    def test_one_that_adds_to_it_is_guarded(self, server):
        session = Session(throttle=None, deny_private=True, adapter=with_manager(more=1))
        with session, pytest.raises(AddressBlocked):
            session.get(server.url())
        no_connection(server)


class TestTable:
    """`session.adapters`, past `mount`."""

    def test_what_is_put_in_by_hand_is_not_used(self, strict, server):
        strict.adapters["http://"] = HTTPAdapter()
        with pytest.raises(AddressBlocked, match="HTTPAdapter"):
            strict.get(server.url())
        no_connection(server)

    def test_nor_in_a_copy_of_the_session(self, strict, server):
        with pickle.loads(pickle.dumps(Session(throttle=None, deny_private=True))) as session:
            session.adapters["http://"] = HTTPAdapter()
            with pytest.raises(AddressBlocked):
                session.get(server.url())
        no_connection(server)

    def test_nor_for_a_robots_file(self, open_session, server):
        session = open_session(Resolver(public_test=[PUBLIC]), robots=True)
        session.mount(server.url("/page", host="public.test"), HTTPAdapter())
        session.adapters["http://"] = HTTPAdapter()
        with pytest.raises(AddressBlocked):
            session.get(server.url("/page", host="public.test"))
        no_connection(server)

    def test_a_session_without_a_guard_takes_anything(self, server):
        with Session(throttle=None) as session:
            session.adapters["http://"] = HTTPAdapter()
            assert session.get(server.url()).text == "ok"


class TestSharedAdapters:
    """An adapter that is guarded is that for all who have it, and its error is typed for all."""

    @pytest.mark.parametrize("kind", [HTTPAdapter, WireAdapter])
    def test_another_session_gets_the_typed_error(self, server, kind):
        adapter = kind()
        guarded, other = Session(deny_private=True, adapter=adapter), Session(throttle=None, adapter=adapter)
        with guarded, other, pytest.raises(AddressBlocked) as caught:
            other.get(server.url())
        assert (caught.value.host, caught.value.kind) == ("127.0.0.1", "loopback")
        no_connection(server)

    def test_so_does_one_of_requests(self, server):
        adapter = HTTPAdapter()
        with Session(throttle=None, deny_private=True, adapter=adapter), requests.Session() as plain:
            plain.mount("http://", adapter)
            with pytest.raises(AddressBlocked):
                plain.get(server.url())
        no_connection(server)

    def test_it_may_be_mounted_again(self):
        adapter, guard = HTTPAdapter(), AddressGuard()
        with Session(deny_private=guard, adapter=adapter) as one, Session(deny_private=guard, adapter=adapter) as other:
            one.mount("http://here.test/", adapter)
            assert other.get_adapter("http://x.test").adapter is adapter


class TestRedirectsByHand:
    """With `redirects_only`, they are redirects all the same."""

    @pytest.fixture
    def session(self, open_session):
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE])
        return open_session(names, redirects_only=True)

    @pytest.fixture
    def follow(self, session, server):
        """What comes of a redirect from one host to another, followed by hand in either way."""

        def answers(start, end):
            server.route("/hop", redirect(server.url("/", host=end)))
            first = session.get(server.url("/hop", host=start), allow_redirects=False)
            yield lambda: session.send(first.next)
            yield lambda: session.send(first.next.copy())
            yield lambda: next(session.resolve_redirects(first, first.request))

        return answers

    def test_none_leads_inside(self, follow):
        for send in follow("public.test", "private.test"):
            with pytest.raises(AddressBlocked):
                send()

    @pytest.mark.parametrize("ends", [("private.test", PRIVATE), ("private.test", PUBLIC), (PUBLIC, "public.test")])
    def test_others_are_followed(self, follow, ends):
        assert [send().text for send in follow(*ends)] == ["ok"] * 3

    def test_two_of_them_in_a_row_do_not_lead_inside(self, session, server):
        server.route("/one", redirect(server.url("/two", host=PUBLIC)))
        server.route("/two", redirect(server.url("/", host=PRIVATE)))
        first = session.get(server.url("/one", host="public.test"), allow_redirects=False)
        second = session.send(first.next, allow_redirects=False)
        with pytest.raises(AddressBlocked):
            session.send(second.next)


class TestRedirectsFromACache:
    """With `redirects_only`, a stored redirect of a private address is one of a private address."""

    STORED = {"Cache-Control": "max-age=600"}

    @pytest.fixture
    def session(self, open_session, tmp_path):
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE])
        return open_session(names, redirects_only=True, cache=str(tmp_path))

    def test_it_leads_to_another_one(self, session, server):
        fresh = server.route("/fresh", answer(body="ok", fields={"Cache-Control": "no-store"}), host="private.test")
        url = server.route("/hop", redirect(fresh, 301, fields=self.STORED), host=PRIVATE)
        assert [session.get(url).text for _ in "ab"] == ["ok", "ok"]
        assert len(server.requests_to("/hop")) == 1

    def test_a_public_page_does_not_lead_there_by_way_of_it(self, session, server):
        inner = server.url("/hop", host=PRIVATE)
        fresh = server.route("/fresh", answer(body="ok", fields={"Cache-Control": "no-store"}), host="private.test")
        server.route("/hop", redirect(fresh, 301, fields=self.STORED))
        assert session.get(inner).text == "ok"
        server.route("/public", redirect(inner, 301))
        with pytest.raises(AddressBlocked):
            session.get(server.url("/public", host="public.test"))

    def test_that_of_a_name_is_a_public_one(self, session, server):
        """The name may lead elsewhere by now."""
        server.route("/hop", redirect(server.url("/new", host=PRIVATE), 301, fields=self.STORED))
        session.get(server.url("/hop", host="private.test"), allow_redirects=False)
        with pytest.raises(AddressBlocked):
            session.get(server.url("/hop", host="private.test"))


class KeepingAuth(Session):
    """As a recipe for some archives has it: credentials follow every redirect."""

    def rebuild_auth(self, prepared_request, response):
        pass


class TestSubclasses:
    def test_one_that_does_without_rebuild_auth_is_guarded_too(self, server):
        names = Resolver(public_test=[PUBLIC], private_test=[PRIVATE])
        guard = AddressGuard(private=[PRIVATE], lookup=names, redirects_only=True)
        server.route("/in", redirect(server.url("/out", host=PRIVATE)))
        server.route("/out", redirect(server.url("/hop", host="public.test")))
        server.route("/hop", redirect(server.url("/", host=PRIVATE)))
        with KeepingAuth(throttle=None, deny_private=guard) as session:
            first = session.get(server.url("/out", host="private.test"), allow_redirects=False)
            for send in (
                lambda: session.get(server.url("/in", host="private.test")),
                lambda: session.send(first.next),
                lambda: list(session.resolve_redirects(first, first.request)),
            ):
                with pytest.raises(AddressBlocked):
                    send()
