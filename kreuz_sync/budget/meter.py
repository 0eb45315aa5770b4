"""Counting the bytes of a body as they come off the wire, by whatever way they are read.

urllib3 decodes a body while it is read. Two of its methods hand over bytes whose framing is gone
and whose Content-Encoding is not: those are watched. What a budget must not let pass is raised
there too, and is met by who reads `raw` itself as the cause of urllib3's ProtocolError; by who
reads the response, as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import requests
import urllib3

from kreuz_sync.errors import BudgetExceeded, DeadlineExceeded

from .account import Account, Over
from .ledger import Accounts, Ledger, exceeded

if TYPE_CHECKING:
    from kreuz_sync.response import Response


class Meter:
    """Counts one body into `accounts`.

    clocked: the account whose time bounds the exchange in place of the call's deadline, None for none.
    """

    __slots__ = ("_accounts", "_ledger", "_over", "_reads_wire", "clocked")

    def __init__(self, ledger: Ledger, accounts: Accounts, clocked: Account | None = None) -> None:
        self.clocked = clocked
        self._ledger = ledger
        self._accounts = accounts
        self._over: Over | None = None
        self._reads_wire = False

    def attach(self, response: Response) -> None:
        """Count what is read of `response` from now on: on the wire if that can be seen, decoded if not."""
        raw: Any = response.raw
        response.meter = self
        if isinstance(raw, urllib3.HTTPResponse):
            raw.__class__ = _metered(type(raw))
            raw._meter = self  # type: ignore[attr-defined]
            self._reads_wire = True

    def count(self, size: int) -> None:
        """Count `size` bytes. Raises BudgetExceeded if these are more than were left."""
        over = self._ledger.receive(self._accounts, size)
        if over is not None:
            self._over = over
            raise exceeded(over)

    def watch(self, response: Response, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Hand on `chunks`, and raise BudgetExceeded in place of what it became on its way up through urllib3."""
        try:
            for chunk in chunks:
                if not self._reads_wire:
                    self.count(len(chunk))
                yield chunk
        except requests.RequestException as error:
            over = self._over
            if over is None and self.clocked is not None and isinstance(error, DeadlineExceeded):
                over = self._ledger.late(self.clocked)
            if over is None:
                raise
            response._broke = BudgetExceeded
            response.close()
            typed = exceeded(over, ", in the middle of a body")
        else:
            return
        typed.request, typed.response = response.request, response
        raise typed


class _Metered:
    """The methods that count; the class that is made of this and urllib3's comes from `_metered`."""

    _meter: Meter

    def _fp_read(self, amt: int | None = None, **how: Any) -> bytes:
        data: bytes = super()._fp_read(amt, **how)  # type: ignore[misc]
        if data:
            self._meter.count(len(data))
        return data

    def _handle_chunk(self, amt: int | None) -> bytes:
        chunk: bytes = super()._handle_chunk(amt)  # type: ignore[misc]
        self._meter.count(len(chunk))
        return chunk


@lru_cache(maxsize=16)
def _metered(kind: type[urllib3.HTTPResponse]) -> type[urllib3.HTTPResponse]:
    if issubclass(kind, _Metered):
        return kind
    return type(kind.__name__, (_Metered, kind), {})
