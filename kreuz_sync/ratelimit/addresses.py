"""Whose request it is, by network address: the peer's own, or the one that trusted proxies name.

Two keys for a rate limit on the server. `PeerAddress` (the default) looks at the connection and at no
field, which anybody may write. `TrustedProxies` reads the fields, but only as far as proxies of yours
wrote them, counting from the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from kreuz_sync import checks
from kreuz_sync.settings import Setting

from .environ import Environ, field
from .failures import KeyUnavailable
from .forwarded import Address, address_with_or_without_port, addresses_in, is_list

Network = IPv4Network | IPv6Network

# The order in which tower-rate-limiter looks for a client. The first field that is there decides, so
# each of them must be one that your proxy writes, or drops when a client sends it.
REFERENCE_FIELDS = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP")

NO_PEER = "socket_ip_unavailable"  # the code of a connection without an address

# What a provider gives one customer, and often one device: 2**64 addresses (RFC 6177).
IPV6_PREFIX = 64
_REMEMBERED = 4096  # peers: reading an address takes longer than counting it
_ZONE = re.compile(r"%[^\]]*")


class PeerAddress(Setting):
    """The address that the connection comes from: REMOTE_ADDR. No header field is read.

    ipv6_prefix: IPv6 addresses with this many leading bits in common are one client, since
    anybody can choose among the 2**64 addresses of a /64. 128 tells every address apart. An IPv4
    address in IPv6 form (`::ffff:192.0.2.1`) is that IPv4 address, and every spelling of an
    address is one key.

    Behind a proxy this is the proxy's address, and all clients are one: use `TrustedProxies`.
    Raises KeyUnavailable (`socket_ip_unavailable`) where the connection has no address, as on a
    Unix socket.
    """

    fields = ("ipv6_prefix",)
    end_of_wire = "server"
    ipv6_prefix: int

    def __init__(self, *, ipv6_prefix: int = IPV6_PREFIX) -> None:
        self._fix(ipv6_prefix=checks.count("ipv6_prefix", ipv6_prefix, least=1, most=128))

    def __call__(self, environ: Environ) -> str:
        return key_of(_peer_or_failure(environ), self.ipv6_prefix)


class TrustedProxies(Setting):
    """The address that your own proxies say the request came from.

    Give one of the first two:

    - networks: where your proxies are, such as `["10.0.0.0/8", "2001:db8:1::/48"]`. Fields are read if
      the connection comes from there, and the client is the first address from the right that is not
      there (the leftmost one, if all are).
    - hops: how many proxies stand in front, each of which adds the address it was asked by. The client
      is the entry that the outermost of them added. Nobody else must be able to connect.

    The others:

    - field_names: which fields to read. The first that the request has decides, and a malformed one is a
      failure, not a reason to look at the next. Name only what your proxies write: a field that they
      pass on untouched is the client's to choose.
    - ipv6_prefix: as for `PeerAddress`.
    - unix_socket: True if the server listens on a Unix socket, to which only the proxy can connect:
      the connection then has no address, and is taken to be the proxy's.

    Of a field that holds one address (X-Real-IP, CF-Connecting-IP, True-Client-IP, Fly-Client-IP,
    CloudFront-Viewer-Address, ...) that address is the client, and `hops` does not count.
    A request with none of the fields has the address of its connection. Raises KeyUnavailable:
    `socket_ip_unavailable` if that is needed and there is none, `invalid_client_ip` for a field that is
    malformed or has fewer entries than there are proxies, `client_ip_unavailable` if the proxy behind
    the Unix socket names nobody.
    """

    end_of_wire = "server"
    fields = ("networks", "hops", "field_names", "ipv6_prefix", "unix_socket")
    networks: tuple[Network, ...]
    hops: int | None
    field_names: tuple[str, ...]
    ipv6_prefix: int
    unix_socket: bool

    def __init__(
        self,
        networks: Iterable[str | Network] = (),
        *,
        hops: int | None = None,
        field_names: Iterable[str] = ("X-Forwarded-For",),
        ipv6_prefix: int = IPV6_PREFIX,
        unix_socket: bool = False,
    ) -> None:
        self._fix(
            networks=_networks(networks),
            hops=None if hops is None else checks.count("hops", hops, least=1),
            field_names=tuple(checks.token("field_names", name) for name in checks.texts("field_names", field_names)),
            ipv6_prefix=checks.count("ipv6_prefix", ipv6_prefix, least=1, most=128),
            unix_socket=checks.flag("unix_socket", unix_socket),
        )
        if (self.hops is None) == (not self.networks):
            raise ValueError(
                f"networks={self.networks!r}, hops={hops!r}: one of the two is wanted, where the proxies are "
                "or how many they are"
            )
        if not self.field_names:
            raise ValueError("field_names=(): the fields that the proxies write are wanted")

    def __call__(self, environ: Environ) -> str:
        return key_of(self.client(environ), self.ipv6_prefix)

    def client(self, environ: Environ) -> Address:
        """The client's address as it stands. Raises KeyUnavailable."""
        peer = peer_of(environ) if self.unix_socket else _peer_or_failure(environ)
        if peer is not None and not self._trusts_peer(peer):
            return peer
        for name in self.field_names:
            value = field(environ, name)
            if value is not None:
                return self._outermost(name, addresses_in(name, value))
        if peer is None:
            raise KeyUnavailable("client_ip_unavailable", "the connection has no address, and the proxy names none")
        return peer

    def _trusts_peer(self, peer: Address) -> bool:
        return self.hops is not None or self._is_proxy(peer)

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self.networks)

    def _outermost(self, name: str, addresses: tuple[Address, ...]) -> Address:
        """The address that the first of the own proxies was asked by."""
        if not is_list(name):
            return addresses[0]
        if self.hops is None:
            return next((address for address in reversed(addresses) if not self._is_proxy(address)), addresses[0])
        if len(addresses) < self.hops:
            raise KeyUnavailable("invalid_client_ip", f"the field {name} has fewer entries than there are proxies")
        return addresses[-self.hops]


def peer_of(environ: Environ) -> Address | None:
    """The address in REMOTE_ADDR, None where there is none, as on a Unix socket.

    A port, brackets or a zone (`fe80::1%eth0`), which some servers leave there, are passed over.

    >>> peer_of({"REMOTE_ADDR": "[2001:db8::1]:50412"})
    IPv6Address('2001:db8::1')
    """
    text = environ.get("REMOTE_ADDR")
    return _parsed(text) if isinstance(text, str) else None


@lru_cache(maxsize=_REMEMBERED)
def _parsed(text: str) -> Address | None:
    try:
        return address_with_or_without_port(_ZONE.sub("", text))
    except ValueError:  # `localhost`, `unix:`: a server's word for a Unix socket
        return None


def _peer_or_failure(environ: Environ) -> Address:
    peer = peer_of(environ)
    if peer is None:
        raise KeyUnavailable(NO_PEER, "the connection has no address")
    return peer


def key_of(address: Address, ipv6_prefix: int) -> str:
    """The key of all clients that `address` stands for.

    >>> from ipaddress import ip_address
    >>> key_of(ip_address("2001:db8:1:2::a"), 64), key_of(ip_address("192.0.2.1"), 64)
    ('2001:db8:1:2::/64', '192.0.2.1')
    """
    if address.version == 4 or ipv6_prefix == 128:
        return str(address)
    rest = 128 - ipv6_prefix
    return f"{IPv6Address(int(address) >> rest << rest)}/{ipv6_prefix}"


def _networks(given: Iterable[str | Network]) -> tuple[Network, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"networks={given!r}: a list of networks is wanted, such as ['10.0.0.0/8', '::1/128']")
    return tuple(_network(f"networks[{index}]", network) for index, network in enumerate(given))


def _network(name: str, given: str | Network) -> Network:
    if not isinstance(given, (str, IPv4Network, IPv6Network)):
        raise TypeError(f"{name}={given!r}: a network is wanted, such as '10.0.0.0/8'")
    try:
        network = ip_network(given)
    except ValueError as error:
        raise ValueError(f"{name}={given!r}: a network is wanted, such as '10.0.0.0/8' ({error})") from None
    if network.version == 6 and network.network_address.ipv4_mapped is not None:
        raise ValueError(f"{name}={given!r}: IPv4 addresses are wanted in IPv4 form, such as '10.0.0.0/8'")
    return network
