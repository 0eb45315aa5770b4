"""The setting: what it takes, and what it lets through."""

import pytest

from kreuz_sync import AddressBlocked, AddressGuard, Retry, Session, Throttle, reference_order
from kreuz_sync.ssrf import PRIVATE_NETWORKS

from .resolving import Resolver


class TestOff:
    """Without `deny_private` nothing changes, and nothing of this is loaded."""

    @pytest.mark.parametrize("value", [False, None])
    def test_private_addresses_are_connected_to(self, server, value):
        with Session(throttle=None, deny_private=value) as session:
            assert session.get(server.url()).text == "ok"
            assert session.layers == ()

    def test_connections_are_the_ordinary_ones(self):
        with Session(throttle=None) as session:
            pool = session.get_adapter("http://a.test").poolmanager.connection_from_url("http://a.test")
            assert type(pool).__module__ == "kreuz_sync.wire"


class TestArguments:
    @pytest.mark.parametrize("value", [1, "yes", [], {"allow": []}])
    def test_a_wrong_one_is_named(self, value):
        with pytest.raises(TypeError, match="deny_private"):
            Session(deny_private=value)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("allow", "a.test"),
            ("allow", [1]),
            ("allow", ["http://a.test/"]),
            ("private", ["a.test"]),
            ("private", "10.0.0.0/8"),
            ("redirects_only", 1),
            ("proxies", "never"),
            ("proxies", None),
            ("lookup", "8.8.8.8"),
        ],
    )
    def test_a_wrong_part_of_the_guard_is_named(self, name, value):
        with pytest.raises((TypeError, ValueError), match=name):
            AddressGuard(**{name: value})

    def test_guards_with_equal_settings_are_equal(self):
        assert AddressGuard() == AddressGuard(private=PRIVATE_NETWORKS)
        assert AddressGuard(allow=["a.test"]) != AddressGuard()
        assert hash(AddressGuard()) == hash(AddressGuard())

    def test_it_is_the_innermost_layer(self):
        guard = AddressGuard(allow=["a.test"])
        assert Session(retry=1, deny_private=guard).layers[-1] == guard

    def test_it_goes_with_a_stack_of_ones_own(self, server):
        layers = reference_order(throttle=Throttle(0), retry=Retry(1))
        with Session(layers=layers, deny_private=True) as session, pytest.raises(AddressBlocked):
            session.get(server.url())

    def test_it_may_stand_among_the_layers(self, server):
        with Session(layers=[AddressGuard()]) as session, pytest.raises(AddressBlocked):
            session.get(server.url())

    def test_its_repr_is_short(self):
        assert repr(AddressGuard(allow=["a.test"])) == (
            "AddressGuard(allow=('a.test',), redirects_only=False, proxies='warn')"
        )


class TestAllowed:
    """The allow list."""

    @pytest.mark.parametrize("entry", ["127.0.0.1", "127.0.0.0/8", "wiki.test", "wiki.test.", "WIKI.TEST"])
    def test_what_is_on_it_is_connected_to(self, open_session, server, entry):
        session = open_session(lookup=Resolver(wiki_test=["127.0.0.1"]), allow=[entry])
        assert session.get(server.url(host="wiki.test")).text == "ok"

    def test_all_names_under_one(self, open_session, server):
        session = open_session(
            lookup=Resolver(a_corp_test=["127.0.0.1"], corp_test=["127.0.0.1"]), allow=["*.corp.test"]
        )
        assert session.get(server.url(host="a.corp.test")).text == "ok"
        with pytest.raises(AddressBlocked):
            session.get(server.url(host="corp.test"))

    def test_another_host_at_the_same_address_is_not_meant(self, open_session, server):
        """Also not through a connection that the allowed one has left in the pool."""
        resolver = Resolver(wiki_test=["127.0.0.1"], evil_test=["127.0.0.1"])
        session = open_session(lookup=resolver, allow=["wiki.test"])
        session.get(server.url(host="wiki.test"))
        for host in ("evil.test", "127.0.0.1", "wiki.test.evil.test"):
            with pytest.raises(AddressBlocked):
                session.get(server.url(host=host))
        assert len(server.requests) == 1

    def test_a_host_field_does_not_make_a_host(self, open_session, server):
        session = open_session(allow=["wiki.test"])
        with pytest.raises(AddressBlocked):
            session.get(server.url(), headers={"Host": "wiki.test"})

    def test_the_private_networks_may_be_more(self, open_session, resolve):
        resolve(site_test=["8.8.8.8"])
        session = open_session(private=[*PRIVATE_NETWORKS, "8.8.8.0/24"])
        with pytest.raises(AddressBlocked) as caught:
            session.get("http://site.test/")
        assert (caught.value.network, caught.value.kind) == ("8.8.8.0/24", "private")
