"""Lists of URLs: read line by line, and handed out host by host.

A list usually has all pages of one host together. Workers that took it in that order would
all stand in one host's queue while the others have nothing to do; so they are given one URL
of each host in turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from .urls import host_of

# URLs read ahead of the workers. The more, the better hosts are mixed; each costs about 150 bytes.
LOOK_AHEAD = 10_000

Item = tuple[int, str]  # the place of a URL in the list, from 1, and the URL


def urls_in(lines: Iterable[str]) -> Iterator[str]:
    """The URLs of a list: one a line; blank lines and lines that start with `#` are left out.

    >>> list(urls_in(["# pages", "", " http://example.com/a ", "http://example.com/b#c"]))
    ['http://example.com/a', 'http://example.com/b#c']
    """
    for line in lines:
        url = line.strip()
        if url and not url.startswith("#"):
            yield url


def host_key(url: str) -> str:
    """The host of `url`; "" for what is no URL, which is found out when it is fetched."""
    try:
        return host_of(url)
    except ValueError:
        return ""


class HostQueue:
    """URLs between the one who reads them and the workers, one of each host in turn.

    It holds `capacity` URLs at most; whoever puts more waits. `_changed` guards everything,
    and is let go while somebody waits.
    """

    def __init__(self, capacity: int = LOOK_AHEAD) -> None:
        self.capacity = capacity
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Item]] = {}
        self._hosts: deque[str] = deque()  # those in `_waiting`, the next one first
        self._held = 0
        self._complete = False
        self._abandoned = False

    def put(self, number: int, url: str) -> bool:
        """Add a URL, once there is room. False: the queue was abandoned, nobody wants more."""
        with self._changed:
            while self._held >= self.capacity and not self._abandoned:
                self._changed.wait()
            if self._abandoned:
                return False
            self._add(host_key(url), (number, url))
            self._changed.notify_all()
            return True

    def take(self) -> Item | None:
        """The first URL of the host whose turn it is, once there is one; None when no more will come."""
        with self._changed:
            while not self._hosts and not self._complete and not self._abandoned:
                self._changed.wait()
            if self._abandoned or not self._hosts:
                return None
            self._changed.notify_all()
            return self._remove()

    def complete(self) -> None:
        """Nothing more will be put. What is held is still handed out."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Forget what is held, and let everybody who waits go."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def _add(self, host: str, item: Item) -> None:
        if host not in self._waiting:
            self._waiting[host] = deque()
            self._hosts.append(host)
        self._waiting[host].append(item)
        self._held += 1

    def _remove(self) -> Item:
        host = self._hosts.popleft()
        items = self._waiting[host]
        item = items.popleft()
        if items:
            self._hosts.append(host)
        else:
            del self._waiting[host]
        self._held -= 1
        return item
