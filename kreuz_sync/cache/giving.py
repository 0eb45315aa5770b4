"""A stored response handed to the caller, within the limits that the session has for bodies."""

from __future__ import annotations

from typing import Any

from requests.adapters import BaseAdapter

from kreuz_sync import body as bodies
from kreuz_sync.errors import BodyTooLarge
from kreuz_sync.stack import LayerAdapter

from . import status
from .decisions import Hit
from .exchange import Exchange
from .kept import Kept
from .replay import Replayed, replay
from .store import Body, StoreTrouble
from .trouble import READING, GuardedStore


class Giver:
    """Makes answers of what is stored. inner: the layers below, one of which knows how large a body may be."""

    def __init__(self, store: GuardedStore, inner: BaseAdapter) -> None:
        self._store = store
        self._max_body = _max_body(inner)

    def give(self, exchange: Exchange, hit: Hit, kept: Kept, body: Body, told: str) -> Replayed | None:
        """The answer that `hit` decided on; None if the body cannot be read. told: its `cache_status`.

        Raises BodyTooLarge where the session wants no body of that size.
        """
        stream = exchange.stream
        try:
            response = replay(exchange.request, hit, kept, body, stream=stream)
            if self._max_body is not None:
                response.limits = bodies.Limits(max_body=self._max_body)
                bodies.refuse_by_length(response)
            if not stream and (response._content is False or self._max_body is not None):
                bodies.read(response)
        except BodyTooLarge:
            raise
        except (StoreTrouble, OSError) as error:  # requests' own errors are OSErrors too
            self._store.failed(READING, error)
            return None
        response.cache_status = status.appended(kept.told, told)
        return response


def _max_body(inner: BaseAdapter) -> int | None:
    adapter: Any = inner
    while isinstance(adapter, LayerAdapter):
        limits = getattr(adapter, "limits", None)
        if isinstance(limits, bodies.Limits):
            return limits.max_body
        adapter = adapter.inner
    return None
