"""One call: what a caller asked for once, with its redirect hops and its attempts.

The layers of a stack, all on the caller's thread, find the call they work for here. It is
kept in a context variable, not on the request: one PreparedRequest may be sent by many
threads at once, and a redirect is a new request of the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from .clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    import requests

    from .response import Response
    from .stack import Stack
    from .tracing.call import CallSpan
    from .watchdog import Exchange


Given = TypeVar("Given")


class Helper(Protocol):
    """Who makes a call for somebody else, as one of many: layers tell it when the call waits, and it can end that.

    What waits raises SessionClosed once nobody wants the answer any more.
    """

    def wait(self, take: Callable[[], Given], line: Any = None) -> Given:
        """`take()`, which waits for a host's turn. `line.wake(self)` ends that wait; None where nothing does."""

    def had_turn(self) -> None:
        """The call has a turn at a host, and is about to send."""

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""

    def require_going_on(self) -> None:
        """Do nothing, as long as the answer is wanted."""

    def connected(self, connection: Any) -> None:
        """The request is about to go out on this connection."""

    def aside(self) -> Helper:
        """Who makes another request that a layer needs for this call."""


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
    moment, if there is a deadline. wire_left: seconds that its attempts may still take altogether, each
    until its answer has come, and the last one until its body has; waits are not counted; None for no bound.
    heeds_retry_after: whether the host is paused when an answer
    has a Retry-After. credential_fields: the names of fields that hold credentials, besides
    Authorization, in any of its requests. heard: what a layer wants done with each answer when its
    header section has come and its body has not been read; only the transport can do that. stack:
    the `Stack` that it is in, so that a layer can send a request of its own through all of it.
    session: the one that makes it, None for one that is not ours. obeys_robots: False for a call
    that robots.txt files say nothing to. anonymous: no layer adds credentials to it. by_caller: the
    request under way is what the caller asked for, or what a private address redirected to, and may go
    to private addresses. at_private: it has, as far as a guard has seen it. led_by_private: whether what
    redirects to the request that is sent next is at a private address; None for what no redirect leads to.
    not_before: the moment, on a throttle's clock, for which a redirect asks the request that follows it to wait.
    spent_at: the moment, on
    `clock`, at which the time of the budget is over that the latest attempt was charged to. trace: its span, to
    be told of what happens; None where nobody traces. helper: who makes it for somebody else, None where its
    caller does.
    """

    __slots__ = (
        *("at_private", "by_caller", "led_by_private"),
        *("_clock", "anonymous", "attempts", "begun", "credential_fields", "deadline", "exchange", "heard", "helper"),
        *("obeys_robots", "session", "stack", "trace"),
        *("heeds_retry_after", "not_before", "seconds", "spent_at", "user_agent", "waited", "wire_left"),
    )

    def __init__(self, seconds: float | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.seconds = seconds or 0.0
        self.deadline = None if seconds is None else clock.monotonic() + seconds
        self.begun = False
        self.attempts = 0
        self.waited = 0.0
        self.user_agent: str | None = None
        self.heeds_retry_after = True
        self.not_before = -inf
        self.spent_at: float | None = None
        self.credential_fields: tuple[str, ...] = ()
        self.exchange: Exchange | None = None
        self.wire_left: float | None = None
        self.heard: Callable[[Response], object] | None = None
        self.helper: Helper | None = None
        self.stack: Stack | None = None
        self.session: requests.Session | None = None
        self.obeys_robots = True
        self.anonymous = False
        self.by_caller = False  # until a session says so: a guard must not take it for granted
        self.at_private = False
        self.led_by_private: bool | None = None
        self.trace: CallSpan | None = None
        self._clock = clock

    def left(self) -> float | None:
        """Seconds until the deadline, negative after it; None if there is none."""
        return None if self.deadline is None else self.deadline - self._clock.monotonic()

    def left_to_repeat(self) -> float | None:
        """Seconds in which another attempt for the same host may begin: until the deadline, or the budget's end."""
        left = self.left()
        if self.spent_at is None:
            return left
        of_budget = self.spent_at - self._clock.monotonic()
        return of_budget if left is None else min(left, of_budget)

    def has_waited(self, kind: str, seconds: float) -> None:
        """Count a wait. kind: for what: "throttle" (its host's turn), "ratelimit", "retry" or "robots"."""
        self.waited += seconds
        if self.trace is not None:
            self.trace.waited(kind, seconds)

    def end_within(self, seconds: float) -> None:
        """Make the moment `seconds` from now its deadline. Who does so puts `seconds` and `deadline` back."""
        self.seconds = seconds
        self.deadline = self._clock.monotonic() + seconds

    def apart(self) -> Call:
        """A call of its own in the same session and stack, without a deadline."""
        other = Call(clock=self._clock)
        other.stack, other.session, other.obeys_robots = self.stack, self.session, self.obeys_robots
        return other

    def errand(self) -> Call:
        """Another call that a layer makes for this one, by the same deadline: counted by itself, without credentials.

        What it waited is for the layer to add to `waited`.
        """
        errand = self.apart()
        errand.seconds, errand.deadline = self.seconds, self.deadline
        errand.anonymous, errand.obeys_robots = True, False
        errand.helper = None if self.helper is None else self.helper.aside()
        errand.by_caller, errand.at_private = self.by_caller, self.at_private
        return errand


# The call that this thread is inside a stack for.
current: ContextVar[Call | None] = ContextVar("kreuz_sync_call", default=None)

# The call that the next Session.send works for: set by Session.request once the request is
# prepared, and while a redirect is followed, and only then. So an auth or a hook that makes a
# call of its own is not taken for part of this one.
next_send: ContextVar[Call | None] = ContextVar("kreuz_sync_next_send", default=None)


# Who makes the calls of this thread for somebody else.
helper: ContextVar[Helper | None] = ContextVar("kreuz_sync_helper", default=None)


def current_call() -> Call:
    """The call this thread works for; a new one where a layer is used outside a stack."""
    return current.get() or Call()
