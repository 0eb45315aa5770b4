"""The layer adapter: an attempt is entered in the accounts before it waits for anything, and its body is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync.calls import Call, current
from kreuz_sync.errors import BudgetExceeded, DeadlineExceeded
from kreuz_sync.stack import LayerAdapter
from kreuz_sync.transport import counts_attempts

from .account import Account
from .attempt import Attempt
from .ledger import Accounts, exceeded

if TYPE_CHECKING:
    from .setting import Budget


class BudgetAdapter(LayerAdapter):
    """The layer of a `Budget`."""

    def __init__(self, budget: Budget, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.budget = budget
        self.ledger = budget.ledger
        self._counted = counts_attempts(inner)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        call = current.get()
        if call is None:  # used without a `Stack`
            token = current.set(Call())
            try:
                return self.send(request, **options)
            finally:
                current.reset(token)
        accounts = self._enter(request)
        before = call.attempts
        try:
            if not self.ledger.watches:  # a number of requests, and nothing else
                return self.inner.send(request, **options)
            return self._watched(call, accounts, request, options)
        finally:
            made = call.attempts - before
            if made != 1 and self._counted:  # refused below, or repeated there
                self.ledger.correct(accounts, made - 1)

    def _enter(self, request: requests.PreparedRequest) -> Accounts:
        try:
            return self.ledger.enter(self.budget.host_of(request.url or "") if self.ledger.by_host else "")
        except BudgetExceeded as error:
            error.request = request
            raise

    def _watched(
        self, call: Call, accounts: Accounts, request: requests.PreparedRequest, options: dict[str, Any]
    ) -> requests.Response:
        timed = self._timed(call, accounts) if self.ledger.timed else None
        attempt = Attempt(self.ledger, accounts, timed and timed[1], whole=not options.get("stream"))
        attempt.outer, call.heard = call.heard, attempt.hear
        try:
            if timed is None:
                return self.inner.send(request, **options)
            return self._in_time(call, *timed, request, options)
        finally:
            call.heard = attempt.outer
            attempt.settle()

    def _timed(self, call: Call, accounts: Accounts) -> tuple[float, Account] | None:
        """The seconds that are left, and whose; None for no limit, or where the call's own deadline comes first."""
        timed, own = self.ledger.time_left(accounts), call.left()
        return None if timed is None or (own is not None and own <= timed[0]) else timed

    def _in_time(
        self, call: Call, left: float, account: Account, request: requests.PreparedRequest, options: dict[str, Any]
    ) -> requests.Response:
        """Send with the end of the budget's time for a deadline: waits are cut short by it, and so is the exchange."""
        seconds, deadline = call.seconds, call.deadline
        try:
            call.end_within(left)
            call.spent_at = call.deadline  # whoever would repeat it is to know
            return self.inner.send(request, **options)
        except DeadlineExceeded as error:
            typed = exceeded(self.ledger.late(account))
            typed.request, typed.response = request, error.response
            raise typed from error
        finally:
            call.seconds, call.deadline = seconds, deadline
