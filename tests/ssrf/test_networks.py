"""Which addresses are private, and what an allow list lets through: tables, and no wire."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.ssrf import PRIVATE_NETWORKS
from kreuz_sync.ssrf.allowing import Allowed, as_networks
from kreuz_sync.ssrf.networks import Networks, address_of, destination, kind_of

PRIVATE = Networks(PRIVATE_NETWORKS)


def network_of(text):
    return PRIVATE.find(destination(address_of(text)))


class TestPrivate:
    """Each network of the list, by its first and last address."""

    @pytest.mark.parametrize("network", PRIVATE_NETWORKS)
    def test_both_ends_of_a_network_are_in_it(self, network):
        block = ip_network(network)
        assert PRIVATE.find(block[0]) is not None and PRIVATE.find(block[-1]) is not None

    @pytest.mark.parametrize("network", PRIVATE_NETWORKS)
    def test_networks_are_written_as_ipaddress_writes_them(self, network):
        """So that one which a user writes in another way is found again."""
        assert str(ip_network(network)) == network

    @pytest.mark.parametrize(
        ("address", "network", "kind"),
        [
            ("127.0.0.1", "127.0.0.0/8", "loopback"),
            ("127.255.255.255", "127.0.0.0/8", "loopback"),
            ("0.0.0.0", "0.0.0.0/8", "this host"),
            ("10.0.0.1", "10.0.0.0/8", "private"),
            ("172.16.0.1", "172.16.0.0/12", "private"),
            ("172.31.255.255", "172.16.0.0/12", "private"),
            ("192.168.1.1", "192.168.0.0/16", "private"),
            ("169.254.169.254", "169.254.0.0/16", "link-local"),
            ("100.64.0.1", "100.64.0.0/10", "shared"),
            ("100.100.100.200", "100.64.0.0/10", "shared"),
            ("168.63.129.16", "168.63.129.16/32", "cloud platform"),
            ("192.0.0.192", "192.0.0.0/24", "protocol assignments"),
            ("198.18.0.1", "198.18.0.0/15", "benchmarking"),
            ("198.19.255.255", "198.18.0.0/15", "benchmarking"),
            ("224.0.0.1", "224.0.0.0/4", "multicast"),
            ("240.0.0.1", "240.0.0.0/4", "reserved"),
            ("255.255.255.255", "255.255.255.255/32", "broadcast"),
            ("::", "::/128", "this host"),
            ("::1", "::1/128", "loopback"),
            ("::7f00:1", "::/96", "IPv4-compatible"),
            ("::ffff:0:7f00:1", "::ffff:0:0:0/96", "IPv4-translated"),
            ("fe80::1%eth0", "fe80::/10", "link-local"),
            ("fec0::1", "fec0::/10", "site-local"),
            ("fc00::1", "fc00::/7", "private"),
            ("fd00:ec2::254", "fc00::/7", "private"),
            ("ff02::1%1", "ff00::/8", "multicast"),
            ("64:ff9b:1::a00:1", "64:ff9b:1::/48", "local NAT64"),
            ("2001:0:7f00:1::", "2001::/32", "Teredo"),
            ("2001:10::1", "2001::/23", "protocol assignments"),
            ("2001:db8::1", "2001:db8::/32", "documentation"),
            ("2002:7f00:1::1", "2002::/16", "6to4"),
            ("4000::1", "4000::/2", "not global"),
        ],
    )
    def test_an_address_is_named_by_its_smallest_network(self, address, network, kind):
        assert (network_of(address), kind_of(network)) == (network, kind)

    @pytest.mark.parametrize(
        ("address", "network"),
        [
            ("::ffff:127.0.0.1", "127.0.0.0/8"),
            ("::ffff:a9fe:a9fe", "169.254.0.0/16"),
            ("::ffff:10.0.0.1%eth0", "10.0.0.0/8"),
            ("64:ff9b::10.0.0.1", "10.0.0.0/8"),
            ("64:ff9b::7f00:1", "127.0.0.0/8"),
        ],
    )
    def test_an_ipv4_address_in_an_ipv6_one_counts_as_what_it_is(self, address, network):
        assert network_of(address) == network

    @pytest.mark.parametrize(
        "address",
        [
            *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "100.63.255.255"),
            *("100.128.0.0", "172.15.255.255", "172.32.0.0", "169.253.255.255", "169.255.0.0", "192.167.255.255"),
            *("192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.17"),
            *("2606:4700:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2a00::1", "3ffe::1"),
            *("::ffff:8.8.8.8", "64:ff9b::808:808"),
        ],
    )
    def test_public_ones_are_in_none(self, address):
        assert network_of(address) is None

    @given(st.ip_addresses(v=4))
    def test_nothing_that_python_calls_local_is_public_here(self, address):
        assert address.is_global or PRIVATE.find(address) is not None

    @given(st.ip_addresses(v=4))
    def test_mapped_and_translated_forms_are_judged_alike(self, address):
        plain = PRIVATE.find(address)
        for prefix in ("::ffff:0:0", "64:ff9b::"):
            inside = IPv6Address(int(IPv6Address(prefix)) | int(address))
            assert PRIVATE.find(destination(inside)) == plain

    @given(st.ip_addresses(v=6))
    def test_only_global_unicast_is_public(self, address):
        """RFC 4291, section 2.4: 2000::/3."""
        if isinstance(destination(address), IPv6Address) and PRIVATE.find(address) is None:
            assert address in ip_network("2000::/3")

    @pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.2.3.4.5", "/run/socket"])
    def test_what_is_no_address_of_a_socket_is_an_error(self, text):
        with pytest.raises(ValueError):
            address_of(text)


class TestAllowed:
    """Hosts, patterns and networks."""

    @pytest.mark.parametrize(
        ("entry", "host", "allowed"),
        [
            ("wiki.example.com", "wiki.example.com", True),
            ("wiki.example.com", "WIKI.example.com.", True),
            ("Wiki.Example.com.", "wiki.example.com", True),
            ("wiki.example.com", "a.wiki.example.com", False),
            ("wiki.example.com", "evilwiki.example.com", False),
            ("*.example.com", "a.example.com", True),
            ("*.example.com", "a.b.example.com", True),
            ("*.example.com", "example.com", False),
            ("*.example.com", "evilexample.com", False),
            ("*.example.com", "example.com.evil.test", False),
            ("bücher.example", "xn--bcher-kva.example", True),
            ("10.0.0.1", "10.0.0.1", False),
        ],
    )
    def test_hosts(self, entry, host, allowed):
        assert Allowed([entry]).host(host) is allowed

    @pytest.mark.parametrize(
        ("entry", "address", "allowed"),
        [
            ("10.1.0.0/16", "10.1.2.3", True),
            ("10.1.0.0/16", "10.2.0.0", False),
            ("127.0.0.1", "127.0.0.1", True),
            ("127.0.0.1", "127.0.0.2", False),
            ("10.1.0.0/16", "::ffff:10.1.2.3", True),
            ("64:ff9b::/96", "64:ff9b::a01:203", True),
            ("[::1]", "::1", True),
            ("fd00::/8", "fd12::1", True),
            ("fd00::/8", "fc12::1", False),
        ],
    )
    def test_networks(self, entry, address, allowed):
        assert Allowed([entry]).address(address_of(address)) is allowed

    @pytest.mark.parametrize(
        "entry",
        [
            *(
                "http://a.test",
                "a.test:80",
                "a.test/x",
                "me@a.test",
                "*",
                "*.",
                "a.*",
                "a.*.test",
                ".a.test",
                "a..test",
            ),
            *("10.0.0.1/8", "10.0.0.0/33", "::1/200", "a b", "127.1", "0177.0.0.1x.1", "2130706433", "0x7f.0x1", "%31"),
        ],
    )
    def test_what_could_never_match_is_refused(self, entry):
        with pytest.raises(ValueError, match="allow|network"):
            Allowed([entry])


class TestAsNetworks:
    def test_the_list_itself_and_more(self):
        found = as_networks("private", [*PRIVATE_NETWORKS, "8.8.8.8"])
        assert found == (*PRIVATE_NETWORKS, "8.8.8.8/32")
        assert as_networks("private", PRIVATE_NETWORKS) == tuple(PRIVATE_NETWORKS)

    @pytest.mark.parametrize("value", ["10.0.0.0/8", 5, None, [5], ["a.test"], ["10.0.0.1/8"], [""]])
    def test_what_is_none(self, value):
        with pytest.raises((TypeError, ValueError)):
            as_networks("private", value)

    def test_addresses_are_networks_of_one(self):
        assert Networks(as_networks("private", ["127.0.0.2"])).find(IPv4Address("127.0.0.2")) == "127.0.0.2/32"
