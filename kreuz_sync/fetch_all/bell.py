"""What one thread waits by, and any other wakes it with."""

from __future__ import annotations

import threading


class Bell:
    """A wait that `ring` ends: the one under way, or else the next."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake who waits. Needs no lock, and may be called in a finalizer or a signal handler."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # rung already

    def wait(self, seconds: float | None) -> bool:
        """Wait to be rung, `seconds` at most (None: no bound). True if it was. To be called with no lock held."""
        if seconds is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=min(max(seconds, 0.0), threading.TIMEOUT_MAX))
