"""Whose request it is: the peer's address, or what trusted proxies say."""

from __future__ import annotations

import pickle
from ipaddress import ip_network
from typing import Any

import pytest

from kreuz_sync.ratelimit.addresses import REFERENCE_FIELDS, PeerAddress, TrustedProxies
from kreuz_sync.ratelimit.failures import KeyUnavailable

PROXIES = ["10.0.0.0/8", "2001:db8:ffff::/48"]


def environ(peer: str | None = "198.51.100.1", **fields: str) -> dict[str, Any]:
    made: dict[str, Any] = {f"HTTP_{name.upper()}": value for name, value in fields.items()}
    return made if peer is None else {"REMOTE_ADDR": peer, **made}


def code(key: Any, given: dict[str, Any]) -> str:
    with pytest.raises(KeyUnavailable) as caught:
        key(given)
    return caught.value.code


class TestPeerAddress:
    """The connection, and nothing that a client writes."""

    def test_it_is_the_key(self) -> None:
        assert PeerAddress()(environ("198.51.100.1")) == "198.51.100.1"

    def test_no_field_is_read(self) -> None:
        fields = {"x_forwarded_for": "9.9.9.9", "forwarded": "for=9.9.9.9", "x_real_ip": "9.9.9.9"}
        assert PeerAddress()(environ("198.51.100.1", **fields)) == "198.51.100.1"

    @pytest.mark.parametrize("peer", [None, "", "localhost", "unix:", "1.2.3", b"1.2.3.4"])
    def test_without_one_there_is_no_key(self, peer: Any) -> None:
        assert code(PeerAddress(), environ(peer)) == "socket_ip_unavailable"

    def test_the_failure_does_not_name_what_was_there(self) -> None:
        with pytest.raises(KeyUnavailable) as caught:
            PeerAddress()(environ("secret-host"))
        assert "secret" not in repr(caught.value)

    @pytest.mark.parametrize(
        "spelling",
        [
            "2001:db8:1:2::a",
            "2001:DB8:1:2:0:0:0:A",
            "2001:db8:1:2::b",
            "[2001:db8:1:2::c]:4711",
            "2001:db8:1:2::d%eth0",
        ],
    )
    def test_ipv6_addresses_of_one_64_are_one_client(self, spelling: str) -> None:
        assert PeerAddress()(environ(spelling)) == "2001:db8:1:2::/64"

    def test_another_64_is_another_client(self) -> None:
        assert PeerAddress()(environ("2001:db8:1:3::a")) == "2001:db8:1:3::/64"

    @pytest.mark.parametrize(("prefix", "key"), [(48, "2001:db8:1::/48"), (128, "2001:db8:1:2::a"), (1, "::/1")])
    def test_the_prefix_can_be_chosen(self, prefix: int, key: str) -> None:
        assert PeerAddress(ipv6_prefix=prefix)(environ("2001:db8:1:2::a")) == key

    @pytest.mark.parametrize(
        "spelling", ["1.2.3.4", "1.2.3.4:50000", "::ffff:1.2.3.4", "::FFFF:102:304", "[::ffff:1.2.3.4]:80"]
    )
    def test_ipv4_has_one_spelling(self, spelling: str) -> None:
        assert PeerAddress()(environ(spelling)) == "1.2.3.4"


class TestWhoIsAsked:
    """Fields count only if the connection comes from a proxy."""

    def test_a_stranger_is_who_he_is_and_his_fields_are_not_read(self) -> None:
        key = TrustedProxies(PROXIES)
        assert key(environ("198.51.100.1", x_forwarded_for="9.9.9.9")) == "198.51.100.1"
        assert key(environ("198.51.100.1", x_forwarded_for="not, an, address")) == "198.51.100.1"

    @pytest.mark.parametrize("peer", ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8:ffff::1", "10.1.2.3:5000"])
    def test_a_proxy_is_believed(self, peer: str) -> None:
        assert TrustedProxies(PROXIES)(environ(peer, x_forwarded_for="9.9.9.9")) == "9.9.9.9"

    def test_a_request_without_fields_has_the_address_of_its_connection(self) -> None:
        assert TrustedProxies(PROXIES)(environ("10.1.2.3")) == "10.1.2.3"
        assert TrustedProxies(hops=2)(environ("10.1.2.3")) == "10.1.2.3"

    @pytest.mark.parametrize("key", [TrustedProxies(PROXIES), TrustedProxies(hops=1)])
    def test_without_a_peer_there_is_no_key_whatever_the_fields_say(self, key: TrustedProxies) -> None:
        assert code(key, environ("", x_forwarded_for="9.9.9.9")) == "socket_ip_unavailable"

    def test_behind_a_unix_socket_the_peer_is_the_proxy(self) -> None:
        key = TrustedProxies(hops=1, unix_socket=True)
        assert key(environ("", x_forwarded_for="9.9.9.9")) == "9.9.9.9"
        assert key(environ("localhost", x_forwarded_for="9.9.9.9")) == "9.9.9.9"
        assert code(key, environ("")) == "client_ip_unavailable"

    def test_the_environ_is_left_as_it_is(self) -> None:
        given = environ("10.1.2.3", x_forwarded_for="9.9.9.9")
        before = dict(given)
        TrustedProxies(PROXIES)(given)
        assert given == before


class TestNetworks:
    """From the right, up to the first address that is not the proxies'."""

    @pytest.mark.parametrize(
        ("value", "client"),
        [
            ("9.9.9.9", "9.9.9.9"),
            ("9.9.9.9, 5.5.5.5", "5.5.5.5"),
            ("9.9.9.9, 5.5.5.5, 10.0.0.7", "5.5.5.5"),
            ("9.9.9.9, 5.5.5.5, 10.0.0.7, 2001:db8:ffff::2, ::ffff:10.9.9.9", "5.5.5.5"),
            ("10.0.0.7", "10.0.0.7"),
            ("10.0.0.8, 10.0.0.7", "10.0.0.8"),
        ],
    )
    def test_the_client_is_the_first_stranger(self, value: str, client: str) -> None:
        assert TrustedProxies(PROXIES)(environ("10.1.2.3", x_forwarded_for=value)) == client

    def test_what_a_client_writes_to_the_left_changes_nothing(self) -> None:
        """Else every request with a new value would have a quota of its own."""
        key = TrustedProxies(PROXIES)
        keys = {key(environ("10.1.2.3", x_forwarded_for=f"9.9.9.{n}, 5.5.5.5")) for n in range(10)}
        assert keys == {"5.5.5.5"}


class TestHops:
    """The entry that the outermost of the proxies added."""

    def test_one_hop_is_the_rightmost_entry(self) -> None:
        assert TrustedProxies(hops=1)(environ(x_forwarded_for="9.9.9.9, 5.5.5.5")) == "5.5.5.5"

    def test_two_hops_are_the_one_before(self) -> None:
        assert TrustedProxies(hops=2)(environ(x_forwarded_for="9.9.9.9, 5.5.5.5, 7.7.7.7")) == "5.5.5.5"

    def test_too_few_entries_name_nobody(self) -> None:
        assert code(TrustedProxies(hops=2), environ(x_forwarded_for="9.9.9.9")) == "invalid_client_ip"

    def test_forwarded_is_counted_likewise(self) -> None:
        key = TrustedProxies(hops=2, field_names=["Forwarded"])
        assert key(environ(forwarded='for=9.9.9.9, for="[2001:db8::5]";proto=https, for=7.7.7.7')) == "2001:db8::/64"

    def test_a_field_with_one_address_is_not_counted(self) -> None:
        assert TrustedProxies(hops=3, field_names=["X-Real-IP"])(environ(x_real_ip="5.5.5.5")) == "5.5.5.5"


class TestWhichField:
    """The first that is there decides."""

    ALL = {
        "forwarded": "for=1.1.1.1",
        "x_forwarded_for": "2.2.2.2",
        "x_real_ip": "3.3.3.3",
        "cf_connecting_ip": "4.4.4.4",
    }

    @pytest.mark.parametrize(("absent", "client"), [(0, "1.1.1.1"), (1, "2.2.2.2"), (2, "3.3.3.3"), (3, "4.4.4.4")])
    def test_the_order_is_that_of_the_names(self, absent: int, client: str) -> None:
        fields = dict(list(self.ALL.items())[absent:])
        assert TrustedProxies(hops=1, field_names=REFERENCE_FIELDS)(environ(**fields)) == client

    @pytest.mark.parametrize("bad", ["", "unknown", "for=unknown"])
    def test_a_malformed_one_is_not_passed_over(self, bad: str) -> None:
        fields = {**self.ALL, "forwarded": bad}
        assert code(TrustedProxies(hops=1, field_names=REFERENCE_FIELDS), environ(**fields)) == "invalid_client_ip"

    def test_by_default_one_field_is_read(self) -> None:
        """A proxy that writes X-Forwarded-For passes on a Forwarded that the client made up."""
        assert TrustedProxies(hops=1)(environ(**self.ALL)) == "2.2.2.2"
        assert TrustedProxies(hops=1)(environ(x_real_ip="3.3.3.3")) == "198.51.100.1"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("Fly-Client-IP", "5.5.5.5"),
            ("True-Client-IP", "5.5.5.5"),
            ("X-Envoy-External-Address", "5.5.5.5"),
            ("CloudFront-Viewer-Address", "5.5.5.5:443"),
            ("DO-Connecting-IP", "5.5.5.5"),
        ],
    )
    def test_fields_of_vendors_are_read_when_they_are_named(self, name: str, value: str) -> None:
        given = environ("10.1.2.3", **{name.replace("-", "_"): value})
        assert TrustedProxies(PROXIES, field_names=[name])(given) == "5.5.5.5"
        assert TrustedProxies(PROXIES)(given) == "10.1.2.3"


class TestSetting:
    """Fixed, shown, pickled; and bad input."""

    def test_networks_may_be_objects(self) -> None:
        assert TrustedProxies([ip_network("10.0.0.0/8")]) == TrustedProxies(["10.0.0.0/8"])

    @pytest.mark.parametrize("key", [PeerAddress(ipv6_prefix=56), TrustedProxies(PROXIES), TrustedProxies(hops=2)])
    def test_it_pickles_and_compares(self, key: Any) -> None:
        assert pickle.loads(pickle.dumps(key)) == key
        assert hash(pickle.loads(pickle.dumps(key))) == hash(key)

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({}, ValueError),
            ({"networks": [], "hops": None}, ValueError),
            ({"networks": PROXIES, "hops": 1}, ValueError),
            ({"networks": "10.0.0.0/8"}, TypeError),
            ({"networks": 1}, TypeError),
            ({"networks": [1]}, TypeError),
            ({"networks": ["10.0.0.1/8"]}, ValueError),
            ({"networks": ["ten"]}, ValueError),
            ({"networks": ["::ffff:10.0.0.0/104"]}, ValueError),
            ({"hops": 0}, ValueError),
            ({"hops": True}, TypeError),
            ({"hops": "1"}, TypeError),
            ({"hops": 1, "field_names": "X-Real-IP"}, TypeError),
            ({"hops": 1, "field_names": []}, ValueError),
            ({"hops": 1, "field_names": ["X Real IP"]}, ValueError),
            ({"hops": 1, "ipv6_prefix": 0}, ValueError),
            ({"hops": 1, "ipv6_prefix": 129}, ValueError),
            ({"hops": 1, "unix_socket": 1}, TypeError),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, arguments: dict[str, Any], error: type[Exception]) -> None:
        name = list(arguments)[-1] if arguments else "networks"
        with pytest.raises(error, match=name):
            TrustedProxies(**arguments)

    @pytest.mark.parametrize("prefix", [0, 129, -1, True, 64.0, "64"])
    def test_a_prefix_is_1_to_128(self, prefix: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="ipv6_prefix"):
            PeerAddress(ipv6_prefix=prefix)
