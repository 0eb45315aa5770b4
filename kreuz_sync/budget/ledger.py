"""The accounts of a session and its hosts, and the one lock that guards them."""

from __future__ import annotations

import threading

from kreuz_sync import fork
from kreuz_sync.clock import Clock
from kreuz_sync.errors import BudgetExceeded
from kreuz_sync.throttle.hosts import HostTable

from .account import Account, Limits, Over, Spending

Accounts = tuple[Account, ...]
UNLIMITED = Limits()


class Ledger:
    """What a budget has spent in this process.

    by_host: whether any host has limits of its own. timed: whether any limit is one of time.
    weighs: whether any is one of bytes. watches: whether any is one of these two, which take more
    than a count of requests. A host's account is kept as long as the budget is: one that was
    dropped would start anew. `_lock` guards all accounts; it is held for arithmetic alone, and
    taken in no finalizer.
    """

    def __init__(self, limits: Limits, hosts: HostTable[Limits], clock: Clock) -> None:
        self.limits = limits
        self.table = hosts
        everybodys = (limits, hosts.default, *hosts.written())
        self.by_host = any(one != UNLIMITED for one in everybodys[1:])
        self.timed = any(one.seconds is not None for one in everybodys)
        self.weighs = any(one.bytes is not None for one in everybodys)
        self.watches = self.timed or self.weighs
        self.clock = clock
        self._lock = threading.Lock()
        self.reset()
        fork.renew_in_child(self)

    def enter(self, host: str) -> Accounts:
        """Count a request to `host` ("" for none that has limits), and say which accounts it was charged to.

        Raises BudgetExceeded, and then counts nothing.
        """
        with self._lock:
            now = self.clock.monotonic()
            accounts = self._accounts(host) if host else self._alone
            for account in accounts:
                refusal = account.refusal(now)
                if refusal is not None:
                    break
            else:
                for account in accounts:
                    account.enter(now)
                if len(accounts) > 1:
                    self._hosts[host] = accounts[-1]
                return accounts
        raise exceeded(refusal)

    def correct(self, accounts: Accounts, requests: int) -> None:
        """Count so many requests more, or less."""
        with self._lock:
            for account in accounts:
                account.correct(requests)

    def receive(self, accounts: Accounts, size: int) -> Over | None:
        """Count bytes of a body; says so if these are more than were left."""
        first: Over | None = None
        with self._lock:
            for account in accounts:
                over = account.receive(size)
                first = first or over
        return first

    def reserve(self, accounts: Accounts, size: int) -> Over | None:
        """Count bytes that are about to come; if these are more than are left, say so and count none."""
        with self._lock:
            for account in accounts:
                if not account.has_room(size):
                    return account.received()
            for account in accounts:
                account.receive(size)
        return None

    def time_left(self, accounts: Accounts) -> tuple[float, Account] | None:
        """The seconds that are left of the time that is over first, and whose it is; None for no limit."""
        now = self.clock.monotonic()
        limited = [(left, account) for account in accounts if (left := account.time_left(now)) is not None]
        return min(limited, key=lambda one: one[0], default=None)

    def late(self, account: Account) -> Over:
        """That the time of `account` is over."""
        return account.late(self.clock.monotonic())

    def used(self, host: str) -> Spending:
        """What was used by the session ("" for `host`), or for a host that has limits of its own."""
        with self._lock:
            return self._told(self._look(host))

    def left(self, host: str) -> Spending:
        """What is left of the same."""
        with self._lock:
            return self._look(host).left(self.clock.monotonic())

    def report(self) -> dict[str, Spending]:
        """What was used of each host that has limits of its own and was asked."""
        with self._lock:
            return {name: self._told(account) for name, account in self._hosts.items()}

    def reset(self) -> None:
        """Nothing has been spent. What is under way is charged to the accounts that were."""
        with self._lock:
            self._session = Account(self.limits)
            self._alone: Accounts = (self._session,)
            self._hosts: dict[str, Account] = {}

    def after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread that is not here may hold the parent's

    def _accounts(self, host: str) -> Accounts:
        account = self._hosts.get(host)
        if account is None:
            limits = self.table.find(host)
            if limits == UNLIMITED:
                return self._alone
            account = Account(limits, host)  # kept if the request is entered
        return self._session, account

    def _told(self, account: Account) -> Spending:
        used = account.used(self.clock.monotonic())
        return used if self.weighs else used._replace(bytes=None)

    def _look(self, host: str) -> Account:
        if not host:
            return self._session
        return self._hosts.get(host) or Account(self.table.find(host), host)


def exceeded(over: Over, more: str = "") -> BudgetExceeded:
    """The error that says so."""
    whose = f"{over.host}: " if over.host is not None else ""
    return BudgetExceeded(f"{whose}{over}{more}", what=over.what, limit=over.limit, used=over.used, host=over.host)
