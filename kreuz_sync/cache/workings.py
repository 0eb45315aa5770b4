"""What the sessions and mounts of one `Cache` share, apart from its settings: all that changes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple

from kreuz_sync import fork
from kreuz_sync.clock import Clock

from .collapse import Flights
from .counters import Counters
from .finding import Finder
from .generations import Generations
from .keeping import Keeper
from .keys import Keys
from .policy import Policy
from .processes import Processes
from .rule import Rule, StoreIf
from .store import CacheStore
from .trouble import GuardedStore


class Tools(NamedTuple):
    """What is made with the store's secret, once that could be had."""

    keys: Keys
    finder: Finder
    keeper: Keeper


class Workings:
    """One object for all who use a `Cache`, in one process.

    make_keys: gives the keys for a secret.
    """

    def __init__(
        self,
        store: CacheStore,
        policy: Policy,
        make_keys: Callable[[bytes], Keys],
        clock: Clock,
        store_if: StoreIf | None = None,
    ) -> None:
        self.counters = Counters()
        self.rule = Rule(store_if)
        self.store = GuardedStore(store, self.counters, clock)
        self.flights = Flights(clock)
        self.processes = Processes(self.store, self.flights, clock)
        self.generations = Generations()
        self._policy = policy
        self._make_keys = make_keys
        self._tools: Tools | None = None
        self._renewals = 0  # of the store's secret, that _tools knows of
        self._lock = threading.Lock()  # guards _users
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        fork.renew_in_child(self)

    def tools(self) -> Tools | None:
        """None as long as the store cannot be opened."""
        renewals = self.store.store.renewals
        if self._tools is None or self._renewals != renewals:
            secret = self.store.secret()
            if secret is None:
                return None
            # Of two threads that come here at once the second one's stays; they are alike.
            keys = self._make_keys(secret)
            finder = Finder(self.store, self._policy, keys)
            self._tools = Tools(keys, finder, Keeper(finder, self.generations))
            self._renewals = renewals
        return self._tools

    def attach(self, user: object) -> None:
        """Somebody uses the store from now on."""
        with self._lock:
            self._users.add(user)

    def detach(self, user: object) -> None:
        """`user` is done; the last one closes the store, which opens again when it is used."""
        with self._lock:
            self._users.discard(user)
            is_last = not len(self._users)
        if is_last:
            self.store.close()

    def after_fork(self) -> None:
        """In a child: threads that are gone may hold the locks, and lead the flights."""
        self._lock = threading.Lock()
        self.counters.after_fork()
        self.flights.after_fork()
        self.generations.after_fork()
