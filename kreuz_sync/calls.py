"""One call: what a caller asked for once, with its redirect hops and its attempts.

The layers of a stack, all on the caller's thread, find the call they work for here. It is
kept in a context variable, not on the request: one PreparedRequest may be sent by many
threads at once, and a redirect is a new request of the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from .clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from .response import Response
    from .watchdog import Exchange


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

    seconds: for the whole call, counted from now; 0.0 where there is no deadline. deadline: the
    moment, on `clock`, at which they are over, None for no deadline. begun: its first request has
    been sent, so the next is a redirect's. attempts: sends put on the wire, over all hops. waited:
    seconds spent waiting, for a host's turn or before a retry. user_agent: the one that rotation
    chose for all its hops, None if it was not asked yet. exchange: what is on the wire for it at this
    moment, if there is a deadline. heeds_retry_after: whether the host is paused when an answer
    has a Retry-After. credential_fields: the names of fields that hold credentials, besides
    Authorization, in any of its requests. heard: what a layer wants done with each answer when its
    header section has come and its body has not been read; only the transport can do that.
    """

    __slots__ = (
        *("_clock", "attempts", "begun", "credential_fields", "deadline", "exchange", "heard"),
        *("heeds_retry_after", "seconds", "user_agent", "waited"),
    )

    def __init__(self, seconds: float | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.seconds = seconds or 0.0
        self.deadline = None if seconds is None else clock.monotonic() + seconds
        self.begun = False
        self.attempts = 0
        self.waited = 0.0
        self.user_agent: str | None = None
        self.heeds_retry_after = True
        self.credential_fields: tuple[str, ...] = ()
        self.exchange: Exchange | None = None
        self.heard: Callable[[Response], object] | None = None
        self._clock = clock

    def left(self) -> float | None:
        """Seconds until the deadline, negative after it; None if there is none."""
        return None if self.deadline is None else self.deadline - self._clock.monotonic()


# The call that this thread is inside a stack for.
current: ContextVar[Call | None] = ContextVar("kreuz_sync_call", default=None)

# The call that the next Session.send works for: set by Session.request once the request is
# prepared, and while a redirect is followed, and only then. So an auth or a hook that makes a
# call of its own is not taken for part of this one.
next_send: ContextVar[Call | None] = ContextVar("kreuz_sync_next_send", default=None)


def current_call() -> Call:
    """The call this thread works for; a new one where a layer is used outside a stack."""
    return current.get() or Call()
