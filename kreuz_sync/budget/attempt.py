"""One attempt on its way through the layer: the accounts that it is charged to, and the bytes of its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import urllib3

from kreuz_sync.errors import BudgetExceeded

from .account import Account
from .ledger import Accounts, Ledger, exceeded
from .meter import Meter

if TYPE_CHECKING:
    from kreuz_sync.response import Response


class Attempt:
    """What a request has been charged to, and for what.

    clocked: the account whose time bounds it in place of its call's deadline, None for none. whole: its
    body is read at once, all of it. outer: whom else to tell of the answer.
    """

    __slots__ = ("_charged", "_raw", "accounts", "clocked", "ledger", "outer", "whole")

    def __init__(self, ledger: Ledger, accounts: Accounts, clocked: Account | None, whole: bool) -> None:
        self.ledger = ledger
        self.accounts = accounts
        self.clocked = clocked
        self.whole = whole
        self.outer: Callable[[Response], object] | None = None
        self._raw: Any = None  # what was charged for beforehand
        self._charged = 0

    def hear(self, response: Response) -> None:
        """The header section of an answer has come, and nothing of its body has been read.

        Raises BudgetExceeded for a body that says that it is longer than what is left.
        """
        if self._raw is not None:
            self.settle()  # somebody below has repeated the request
        try:
            self._charge(response)
        except BudgetExceeded as error:
            error.request, error.response = response.request, response
            response.close()
            raise
        if self.outer is not None:
            self.outer(response)

    def settle(self) -> None:
        """The body that was charged for beforehand has been read: correct that if it broke off."""
        raw, self._raw = self._raw, None
        if raw is not None and raw.tell() != self._charged:
            self.ledger.receive(self.accounts, raw.tell() - self._charged)

    def _charge(self, response: Response) -> None:
        if response._content is not False:  # a test double gave it whole
            over = self.ledger.receive(self.accounts, len(response._content or b""))
            if over is not None:
                raise exceeded(over)
            return
        # None if the answer does not say; 0 if there is no body.
        size = response.raw.length_remaining if isinstance(response.raw, urllib3.HTTPResponse) else None
        if size is None or not self.whole:
            Meter(self.ledger, self.accounts, self.clocked).attach(response)
            return
        # No look at every piece that comes: the wire brings no more than was announced. And of two
        # bodies that both fit in what is left, but not together, one is refused here.
        over = self.ledger.reserve(self.accounts, size)
        if over is not None:
            raise exceeded(over, f", and this body has {size}")
        self._raw, self._charged = response.raw, size
