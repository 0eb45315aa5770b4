"""The setting: which addresses a session may connect to."""

from __future__ import annotations

import copy
import socket
from collections.abc import Callable, Iterable
from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import checks
from kreuz_sync.calls import Call
from kreuz_sync.settings import Setting

from .allowing import Allowed, as_networks
from .blocked import Blocked
from .layer import GuardAdapter, written_address
from .networks import PRIVATE_NETWORKS, Address, Networks, address_of, destination, kind_of

Lookup = Callable[[str, int, int, int], Iterable[tuple[Any, ...]]]


def system_lookup(host: str, port: int, family: int, kind: int) -> Iterable[tuple[Any, ...]]:
    """What `socket.getaddrinfo` says now."""
    return socket.getaddrinfo(host, port, family, kind)


class AddressGuard(Setting):
    """Refuses connections to private addresses: a guard against SSRF. `Session(deny_private=...)` takes it.

    At every hop of a redirect too: a name is looked up once, all its addresses have to pass, and the connection is
    made to one of them, without another look-up; before anything is sent on it, its peer is looked at once more.
    What is refused raises `AddressBlocked`.

    allow: hosts (`"wiki.example.com"`), patterns for all names under one (`"*.corp.example.com"`), addresses and
    networks (`"10.1.0.0/16"`) that may be connected to all the same. A host is allowed wherever its name leads; a
    network, whatever name leads there. private: the networks that count as private, `PRIVATE_NETWORKS` unless you
    say otherwise; `[*PRIVATE_NETWORKS, "203.0.113.0/24"]` adds one. An IPv4 address counts as what it is in its IPv6
    forms too (mapped, NAT64).

    redirects_only: refuse only what redirects lead to. A private address that the caller asks for is fine, and so
    are redirects between private addresses; from a public one none leads into them. Only a `kreuz_sync.Session`
    follows redirects in a way that can be known here; in another session every request counts as a redirect's.

    proxies: a proxy looks names up by itself, so behind one only addresses in URLs, and `localhost`, can be checked.
    "warn" says so once, with a warning to the logger `kreuz_sync`; "refuse" raises AddressBlocked for whatever would
    go through a proxy; "allow" is for a proxy that does the checking. The proxy itself may have any address.

    lookup: in place of `socket.getaddrinfo`, whose first four arguments it is given and whose rows it returns.

    Raises TypeError or ValueError, naming the argument.
    """

    fields = ("allow", "private", "redirects_only", "proxies", "lookup")
    is_guard = True  # how a session finds it among its layers without loading this

    allow: tuple[str, ...]
    private: tuple[str, ...]
    redirects_only: bool
    proxies: str
    lookup: Lookup
    _allowed: Allowed
    _private: Networks
    _untold: list[None]

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        private: Iterable[str] = PRIVATE_NETWORKS,
        redirects_only: bool = False,
        proxies: str = "warn",
        lookup: Lookup = system_lookup,
    ) -> None:
        self._fix(
            allow=checks.texts("allow", allow),
            private=as_networks("private", private),
            redirects_only=checks.flag("redirects_only", redirects_only),
            proxies=checks.one_of("proxies", proxies, ("warn", "refuse", "allow")),
            lookup=checks.function("lookup", lookup),
        )
        self._make_ready()

    def _make_ready(self) -> None:
        self._fix(_allowed=Allowed(self.allow), _private=Networks(self.private), _untold=[None])

    def __call__(self, inner: BaseAdapter) -> GuardAdapter:
        return GuardAdapter(self, inner)

    def copy(self) -> AddressGuard:
        """An equal one, which has not warned of a proxy yet. Each session has its own."""
        return copy.copy(self)

    # --- what the layer and the connections ask -------------------------------------------------

    def admit(self, host: str, text: str, call: Call | None) -> bool:
        """Let a connection be made to the address `text`, which `host` led to. Whether it is private.

        call: whose connection it is, None if that is not known. Raises Blocked.
        """
        try:
            address = address_of(text)
        except (ValueError, AttributeError):
            raise Blocked(host, "is at what is no IP address", address=str(text), kind="unknown") from None
        network = self._private_network(host, address)
        if network is None:
            return False
        if not self.redirects_only or call is None or not (call.by_caller or call.at_private):
            raise Blocked(host, "", address=text, network=network, kind=kind_of(network))
        return True

    def is_private(self, url: str) -> bool:
        """Whether the host of `url` is written as a private address. Names are not looked up."""
        found = written_address(url)
        try:
            return found is not None and self._private_network(found[0], address_of(found[1])) is not None
        except ValueError:
            return False

    def _private_network(self, host: str, address: Address) -> str | None:
        if self._allowed.host(host) or self._allowed.address(address):
            return None
        return self._private.find(destination(address))

    def first_proxy(self) -> bool:
        """True the first time, for one caller of any number of threads."""
        try:
            self._untold.pop()
        except IndexError:
            return False
        return True

    # --- copies ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._fix(**state)
        self._make_ready()

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in ("allow", "redirects_only", "proxies")]
        if self.private != tuple(PRIVATE_NETWORKS):
            shown.append(f"private={self.private!r}")
        return f"AddressGuard({', '.join(shown)})"
