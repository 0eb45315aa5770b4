"""The allow list: names of hosts, patterns for all names under one, addresses and networks. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_network
from typing import Any

from kreuz_sync import checks
from kreuz_sync.urls import canonical_host

from .networks import Address, Networks, destination

_NOT_IN_A_NAME = frozenset("/?#@\\:[]%*")  # characters that a URL has around its host, and those of addresses


class Allowed:
    """What may be connected to although it is private. Raises ValueError, naming `allow`."""

    def __init__(self, entries: Iterable[str]) -> None:
        networks: list[str] = []
        self._hosts: set[str] = set()
        self._under: list[str] = []
        for entry in entries:
            if (network := _network("allow", entry)) is not None:
                networks.append(network)
            elif entry.startswith("*."):
                self._under.append(f".{_name(entry, entry[2:])}")
            else:
                self._hosts.add(_name(entry, entry))
        self._networks = Networks(networks)

    def host(self, name: str) -> bool:
        """Whether the host `name` may be connected to, whatever its addresses."""
        if not self._hosts and not self._under:
            return False
        name = canonical_host(name)
        return name in self._hosts or name.endswith(tuple(self._under))

    def address(self, address: Address) -> bool:
        """Whether `address` may be connected to, whatever the name that led to it."""
        found = self._networks.find(address) or self._networks.find(destination(address))
        return found is not None


def as_networks(name: str, value: Any) -> tuple[str, ...]:
    """Networks and addresses as text. Raises TypeError or ValueError, naming the argument."""
    # The list of `networks.py` is a mapping, and checks.texts refuses mappings for good reasons.
    texts = checks.texts(name, list(value) if hasattr(value, "keys") else value)
    found = [_network(name, text) for text in texts]
    for text, network in zip(texts, found, strict=True):
        if network is None:
            raise ValueError(f"{name}: {text!r} is no network, such as '10.0.0.0/8' or 'fc00::/7'")
    return tuple(network for network in found if network is not None)


def _network(name: str, text: str) -> str | None:
    """`text` as a network; None where it is no address at all."""
    try:
        return str(ip_network(text.strip("[]")))
    except ValueError as error:
        if "/" in text:  # it was meant to be one
            raise ValueError(f"{name}: {text!r} is no network: {error}") from None
        return None


def _name(entry: str, name: str) -> str:
    canonical = canonical_host(name)
    labels = canonical.split(".")
    if not _NOT_IN_A_NAME.isdisjoint(name) or name.split() != [name] or not all(labels):
        raise ValueError(
            f"allow: {entry!r}: a host's name alone is wanted, '*.' and a name, or a network such as '10.1.0.0/16'"
        )
    # Such a "name" is an address to the system (0x7f.1, 2130706433), and would be compared as text here.
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        raise ValueError(f"allow: {entry!r}: write an address in its usual form, such as '127.0.0.1'")
    return canonical
