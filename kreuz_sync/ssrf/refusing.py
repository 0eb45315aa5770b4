"""From what ends a connection on its way up through urllib3 to the error that says so."""

from __future__ import annotations

import weakref
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from kreuz_sync.errors import AddressBlocked
from kreuz_sync.urls import canonical_host, redact

from .blocked import Blocked


def refusal(blocked: Blocked, request: requests.PreparedRequest) -> AddressBlocked:
    """The typed error for `blocked`."""
    host = canonical_host(blocked.host)
    why = blocked.why or f"is at {blocked.address} ({blocked.kind}, {blocked.network})"
    return AddressBlocked(
        f"{request.method} {redact(request.url or '')}: {host} {why}, and deny_private refuses to connect",
        host=host,
        address=blocked.address,
        network=blocked.network,
        kind=blocked.kind,
        request=request,
    )


class TypedSend:
    """In place of a guarded adapter's `send`: its errors are typed for whoever uses the adapter.

    A session without a guard may have the same adapter, and then no layer of this package is above it.
    """

    def __init__(self, adapter: HTTPAdapter) -> None:
        self._adapter = weakref.ref(adapter)  # the adapter knows this, and no cycle may keep its sockets

    def __call__(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        adapter = self._adapter()
        assert adapter is not None, "it is called as an attribute of the adapter"
        try:
            return type(adapter).send(adapter, request, *args, **options)
        except Blocked as blocked:
            raise refusal(blocked, request) from None


def type_refusals(adapter: Any) -> None:
    """Have `adapter` raise AddressBlocked wherever it is used."""
    if not isinstance(vars(adapter).get("send"), TypedSend):
        adapter.send = TypedSend(adapter)
