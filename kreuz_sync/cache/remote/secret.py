"""The secret of a namespace: on the server, so that all machines make the same keys; or the user's own."""

from __future__ import annotations

import os

from . import scripts
from .wire import Server, Step

LENGTH = 32  # bytes


class Secret:
    """One for all who use the namespace. Whoever asks first makes it, and of several at once one.

    ttl: as in `Limits`. own: one that the server need not keep. ours: what we make keys with, empty as
    long as nobody asked, or if it is `own`. renewals: how often the server had another one than that.
    """

    def __init__(self, server: Server, name: bytes, ttl: bytes, own: bytes | None) -> None:
        self.ours = b""
        self.renewals = 0
        self._server = server
        self._name = name
        self._ttl = ttl
        self._own = own

    def get(self) -> bytes:
        """See `CacheStore.secret`."""
        if self._own is not None:
            return self._own
        if not self.ours:
            self.ours = self._ask()
        return self.ours

    def renew(self) -> None:
        """Take the server's: it lost ours, and somebody was faster than we with another."""
        if self.ours:
            known, self.ours = self.ours, self._ask()
            self.renewals += self.ours != known

    def watching(self) -> Step:
        """Asks for what the server has."""
        return Step(b"GET", (self._name,))

    def is_other(self, answer: bytes | None) -> bool:
        """Whether it is another one than ours. If it has none, it is given ours soon."""
        return bool(self.ours) and answer is not None and answer != self.ours

    def _ask(self) -> bytes:
        made: bytes = self._server.run(
            Step(scripts.SECRET, (self._name,), (os.urandom(LENGTH), b"%d" % LENGTH, self._ttl))
        )[0]
        return made
