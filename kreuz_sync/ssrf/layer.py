"""The layer adapter: sees that the connections of the adapter below are guarded, and what a proxy hides."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.utils import select_proxy

from kreuz_sync.calls import Call, current_call
from kreuz_sync.errors import AddressBlocked
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.urls import canonical_host, redact
from kreuz_sync.wire import WireAdapter

from .blocked import Blocked
from .connecting import guard_pools
from .refusing import TypedSend, refusal, type_refusals

if TYPE_CHECKING:
    from .guard import AddressGuard

# What decides which connections an adapter uses. One that overrides any of these may use others.
_SENDING = ("send", "get_connection", "get_connection_with_tls_context", "_get_connection")

_TYPED = TypedSend.__new__(TypedSend)  # the one thing of those names that an adapter itself may have

_log = logging.getLogger("kreuz_sync.ssrf")


class GuardAdapter(LayerAdapter):
    """The innermost layer, right above the transport. The checks themselves are made by the connections."""

    def __init__(self, guard: AddressGuard, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.guard = guard
        self._wire = _wire_of(inner)
        self._make_sure()

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        if self._wire.poolmanager is not self._manager:  # it has made new ones: after a fork, for one
            self._make_sure()
        proxies = options.get("proxies")
        proxy = select_proxy(request.url or "", proxies) if proxies else None
        call = current_call()
        attempts = call.attempts
        try:
            if proxy:
                self._look_past(proxy, request, call)
            response = self.inner.send(request, **options)
        except Blocked as blocked:
            raise refusal(blocked, request) from None
        except AddressBlocked:
            call.attempts = attempts  # nothing was put on the wire
            raise
        call.by_caller = False  # whatever is sent after an answer, that answer may have led to
        response.at_private = call.at_private  # type: ignore[attr-defined]  # for redirects that are followed later
        return response

    def _make_sure(self) -> None:
        self._manager = self._wire.poolmanager
        guard_pools(self._manager, self.guard)
        type_refusals(self._wire)

    def _look_past(self, proxy: str, request: requests.PreparedRequest, call: Call) -> None:
        """What can be told of a request's target although a proxy makes the connection. Raises Blocked."""
        url = request.url or ""
        hosts = _hosts_in(url)
        if self.guard.proxies == "refuse":
            why = "would be connected to by a proxy, where its address cannot be checked"
            raise Blocked(hosts[0], why, kind="behind a proxy")
        if self.guard.proxies == "warn" and self.guard.first_proxy():
            _log.warning(
                "%s is asked for through the proxy %s, which looks names up by itself: deny_private can check nothing"
                " there but addresses in URLs (AddressGuard(proxies='refuse') sends nothing through a proxy)",
                *(host := canonical_host(hosts[0]), shown := redact(proxy)),
                extra={"event": "proxy_unguarded", "host": host, "proxy": shown},
            )
        private = False
        for host in hosts:
            if (address := _written_address(host)) is not None:
                private = self.guard.admit(host, address, call) or private
        call.at_private = private


def _wire_of(inner: BaseAdapter) -> Any:
    """The adapter that opens the connections. Raises TypeError if what it connects to can't be checked."""
    adapter: Any = inner
    while isinstance(adapter, LayerAdapter):
        adapter = adapter.inner
    kind = type(adapter)
    if isinstance(adapter, WireAdapter):
        return adapter
    if isinstance(adapter, HTTPAdapter) and all(
        getattr(kind, name, None) is getattr(HTTPAdapter, name, None)
        and isinstance(vars(adapter).get(name, _TYPED), TypedSend)
        for name in _SENDING
    ):
        return adapter
    raise TypeError(
        f"{kind.__name__}: deny_private cannot check what this adapter connects to, and so does not let it be mounted;"
        " an HTTPAdapter can be, and what is derived from kreuz_sync.wire.WireAdapter"
    )


def written_address(url: str) -> tuple[str, str] | None:
    """The host of `url`, and the address that it is in any written form; None where it is a name, or in doubt."""
    found = {(host, _written_address(host)) for host in _hosts_in(url)}
    host, address = found.pop()
    return None if found or address is None else (host, address)


def _hosts_in(url: str) -> list[str]:
    """The host of `url` as those read it who may: they differ about URLs that nobody should write."""
    found = [urlsplit(url).hostname or ""]
    try:
        found.append(urllib3.util.parse_url(url).host or "")
    except urllib3.exceptions.LocationParseError:
        pass
    return [host.strip("[]") for host in found]


def _written_address(host: str) -> str | None:
    """The address that `host` is in any of its written forms; None where it is a name."""
    name = canonical_host(unquote(host))
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, section 6.3
        return "127.0.0.1"
    try:
        return socket.inet_ntoa(socket.inet_aton(name))  # octal, decimal, hexadecimal, short
    except (OSError, ValueError):
        pass
    return name.partition("%")[0] if ":" in name else None
