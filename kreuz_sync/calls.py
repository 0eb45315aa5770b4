"""One call: what a caller asked for once, with its redirect hops and its attempts.

The layers of a stack, all on the caller's thread, find the call they work for here. It is
kept in a context variable, not on the request: one PreparedRequest may be sent by many
threads at once, and a redirect is a new request of the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .response import Response


class Attempt(NamedTuple):
    """An attempt that was repeated: what it came to.

    tag: the word for it, as in `kreuz_sync.errors`. status: of the answer, None if none came.
    wait: seconds from then to the next attempt, its host's turn not counted.
    """

    tag: str
    status: int | None
    wait: float


class Call:
    """What one call has done so far. Only the thread that makes the call writes to it.

    attempts: sends put on the wire, over all hops. waited: seconds spent waiting, for a
    host's turn or before a retry. user_agent: the one that rotation chose for all its hops,
    None if it was not asked yet. heard: what a layer wants done with each answer when its
    header section has come and its body has not been read; only the transport can do that.
    """

    __slots__ = ("attempts", "heard", "user_agent", "waited")

    def __init__(self) -> None:
        self.attempts = 0
        self.waited = 0.0
        self.user_agent: str | None = None
        self.heard: Callable[[Response], object] | None = None


# The call that this thread is inside a stack for.
current: ContextVar[Call | None] = ContextVar("kreuz_sync_call", default=None)

# The call that the next Session.send goes on with: set while a redirect is followed, and
# only then, so that a hook that makes a call of its own is not taken for a hop.
next_hop: ContextVar[Call | None] = ContextVar("kreuz_sync_next_hop", default=None)


def current_call() -> Call:
    """The call this thread works for; a new one where a layer is used outside a stack."""
    return current.get() or Call()
