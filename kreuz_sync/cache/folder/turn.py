"""Whose turn it is, where an interrupt (Ctrl-C) may come between any two steps."""

from __future__ import annotations

import threading


class Turn:
    """A lock that knows who has it.

    An interrupt can strike after a lock was taken and before that is noted anywhere: then nobody
    knows whether to release it, and it is taken for ever. Here whoever wants it brings an object
    of its own, and gives it back if it is that one's, from any thread:

        token = object()
        try:
            if turn.take(token, seconds): ...
        finally:
            if turn.holder is token:
                turn.holder = None
            turn.tell()

    This is written out, since an interrupt can strike as a function begins, but not between two
    statements without a call.
    """

    def __init__(self) -> None:
        self.holder: object | None = None
        self._lock = threading.Lock()  # guards taking it; never held for longer than a look
        self._freed = threading.Condition(self._lock)

    def take(self, token: object, seconds: float) -> bool:
        """Wait, at most so long, until it is free; whether it is `token`'s now."""
        with self._lock:  # not the condition: its `with` is Python, and can be interrupted in the middle
            if self.holder is not None and not self._freed.wait_for(self._is_free, seconds):
                return False
            self.holder = token
        return True

    def tell(self) -> None:
        """Let somebody who waits look whether it is free. Without this he looks when his time is over."""
        with self._lock:
            self._freed.notify()

    def _is_free(self) -> bool:
        return self.holder is None
