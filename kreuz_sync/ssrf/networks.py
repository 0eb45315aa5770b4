"""Which addresses are private: a fixed list of networks, and what an address may hide. Pure.

The list is that of IANA's special-purpose registries for IPv4 and IPv6 (as of 2026), and a little
more. It is written out because `ipaddress.is_global` changes its mind between Python versions.

Nothing here reads the text of a URL. What is judged is the address that a connection is made to,
as the system gave it: `0177.1`, `2130706433` and `127.0.0.1.` are all 127.0.0.1 by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from types import MappingProxyType

Address = IPv4Address | IPv6Address

PRIVATE_NETWORKS: Mapping[str, str] = MappingProxyType(
    {
        "0.0.0.0/8": "this host",  # connecting to 0.0.0.0 reaches the machine itself
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared",  # RFC 6598; the metadata service of one cloud lives here
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "cloud platform",  # looks public: Azure's own services, seen from a machine there
        "169.254.0.0/16": "link-local",  # the metadata services of most clouds
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "protocol assignments",
        "192.0.2.0/24": "documentation",
        "192.88.99.0/24": "6to4 relay",  # RFC 7526
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "255.255.255.255/32": "broadcast",
        # Global unicast is 2000::/3, and nothing else (RFC 4291, section 2.4): the three after it are the rest.
        "::/3": "not global",
        "4000::/2": "not global",
        "8000::/1": "not global",
        "::/128": "this host",
        "::1/128": "loopback",
        "::/96": "IPv4-compatible",
        "::ffff:0:0:0/96": "IPv4-translated",
        "64:ff9b:1::/48": "local NAT64",  # RFC 8215: leads into whatever the network's owner chose
        "100::/64": "discard-only",
        "2001::/23": "protocol assignments",
        "2001::/32": "Teredo",
        "2001:2::/48": "benchmarking",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",  # ends at the IPv4 address inside; no server lives there any more (RFC 7526)
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }
)

# Prefixes whose last 32 bits are the IPv4 address that a connection really goes to. Through both, public
# servers are reached too: NAT64 is how a network without IPv4 reaches most of the world (RFC 6052).
_CARRIES_IPV4 = frozenset(int(IPv6Address(prefix)) >> 32 for prefix in ("::ffff:0:0", "64:ff9b::"))


def address_of(text: str) -> Address:
    """The address in a socket's address, without its zone. Raises ValueError.

    >>> address_of("fe80::1%eth0")
    IPv6Address('fe80::1')
    """
    return ip_address(text.partition("%")[0])


def destination(address: Address) -> Address:
    """The IPv4 address that `address` leads to, where it is one in another form; otherwise `address`.

    >>> destination(address_of("::ffff:10.0.0.1")), destination(address_of("64:ff9b::7f00:1"))
    (IPv4Address('10.0.0.1'), IPv4Address('127.0.0.1'))
    """
    if address.version == 6 and int(address) >> 32 in _CARRIES_IPV4:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


class Networks:
    """Some networks, and which of them an address lies in. Raises ValueError for what is no network."""

    def __init__(self, texts: Iterable[str]) -> None:
        found = [(ip_network(text), text) for text in texts]
        found.sort(key=lambda row: -row[0].prefixlen)  # the smaller one says more
        self._rows: dict[int, list[tuple[int, int, str]]] = {4: [], 6: []}
        for network, text in found:
            self._rows[network.version].append((int(network.netmask), int(network.network_address), text))

    def find(self, address: Address) -> str | None:
        """The smallest of them that `address` lies in, as it was written; None if it lies in none.

        >>> Networks(["10.0.0.0/8", "10.1.0.0/16"]).find(ip_address("10.1.2.3"))
        '10.1.0.0/16'
        """
        number = int(address)
        for mask, first, text in self._rows[address.version]:
            if number & mask == first:
                return text
        return None


def kind_of(network: str) -> str:
    """The word for a network of the list; "private" for one that somebody else named.

    >>> kind_of("169.254.0.0/16"), kind_of("198.51.100.7/32")
    ('link-local', 'private')
    """
    return PRIVATE_NETWORKS.get(network, "private")
