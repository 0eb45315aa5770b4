"""The hosts that have state, and how those that need none any more are dropped.

There is no timer and no full scan: each request looks at a few hosts, the oldest first, and
puts back those that are still in use (a second chance, as in page replacement by "clock").
Guarded by the roster's lock in `Turns`; `hosts.get` needs none.
"""

from __future__ import annotations

from collections import deque

from .hosts import RuleTable
from .line import Host

KEPT = 1000  # idle hosts kept all the same, so that a small job's summary is whole
SWEPT = 250  # hosts looked at for one request at most: 0.2 ms
SPARED = 2  # hosts still in use after which a sweep ends
SPARSE = 16  # a table that has been so many times as full is made anew, since dicts do not shrink


class Roster:
    """Host by name."""

    def __init__(self, table: RuleTable, kind: type[Host] = Host) -> None:
        self.table = table
        self._kind = kind
        self.hosts: dict[str, Host] = {}
        self._order: deque[str] = deque()  # each key of `hosts` once, the next to be looked at first
        self._most = 0  # in `hosts` since it was made

    def admit(self, name: str, now: float) -> Host:
        """The host's state, new where there is none."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = self._kind(name, self.table.find(name), now)
            self._order.append(name)
        return host

    def shared_line(self, name: str) -> Host | None:
        """The line that `name`, a host's name with a port, has had a part in until now; None if there is none.

        Its numbers may be read without its lock: each is one step.
        """
        if name in self.hosts:
            return None
        host = self.table.host_in(name)
        return None if host is None else self.hosts.get(host)

    def sweep(self, now: float) -> None:
        """Drop some idle hosts. To be called while there are more than KEPT."""
        self._most = max(self._most, len(self.hosts))
        spared = 0
        for _ in range(min(SWEPT, len(self.hosts) - KEPT)):
            name = self._order.popleft()
            if self._drop(name, now):
                continue
            self._order.append(name)
            spared += 1
            if spared == SPARED:
                break
        if self._most > SPARSE * len(self.hosts):
            self.hosts = dict(self.hosts)
            self._most = len(self.hosts)

    def _drop(self, name: str, now: float) -> bool:
        """Drop the host if nobody needs it; one whose lock is held is needed."""
        host = self.hosts[name]
        if host.lock.locked():
            return False
        # `with`, not a try to acquire: an interrupt behind that would leave the lock held for
        # ever. Who took it in between holds it for arithmetic alone.
        with host.lock:
            host.dropped = host.is_forgettable(now)
            if host.dropped:
                del self.hosts[name]
            return host.dropped

    def forget_threads(self) -> None:
        """Forget the threads that the child does not have."""
        for host in self.hosts.values():
            host.forget_threads()
