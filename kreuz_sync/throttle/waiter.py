"""One thread that waits, and the line that it waits in.

A line is guarded by its host's lock, except where it says otherwise.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from .gate import ROUNDING_S

if TYPE_CHECKING:
    from .line import Host

_NO_SLOTS: tuple[str, ...] = ()  # by this name mypy does not take them for all that there are
_arrivals = itertools.count(1)  # `next` on it is one step


class Waiter:
    """One thread that waits for a turn of the host `name`.

    owner: the adapter it waits for, so that closing that wakes it. came: when. number: its place in the
    order of arrival. ask: what tells the bucket that its request belongs to (see `Buckets.find`).
    not_before: the moment before which it does not want a turn. host: whose turn it waits for, None for
    none any more. line: the one that it is in, the host's or a bucket's; None if it waits by itself. is_probe: it
    has passed its bucket's gate as a probe. give_up: the moment after which it would rather fail, None for
    never. deadline: that of its call, None for none; `give_up` is no later. refused: seconds to
    its turn, once that has moved beyond `give_up`. closed: its adapter was closed.
    """

    __slots__ = (
        *("_bell", "ask", "came", "closed", "deadline", "give_up", "host"),
        *("is_probe", "line", "name", "not_before", "number", "owner", "refused"),
    )

    def __init__(self, name: str, owner: object, came: float, ask: Any = None, not_before: float = -inf) -> None:
        self.name = name
        self.owner = owner
        self.came = came
        self.ask = ask
        self.not_before = not_before
        self.number = next(_arrivals)
        self.host: Host | None = None
        self.line: Line | None = None
        self.is_probe = False
        self.give_up: float | None = None
        self.deadline: float | None = None
        self.refused: float | None = None
        self.closed = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def is_too_late(self, turn: float) -> bool:
        return self.give_up is not None and turn > self.give_up + ROUNDING_S

    def ring(self) -> None:
        """End its wait, the present one or else the next. Needs no lock, and may be called in a finalizer."""
        # A Condition or an Event has a lock of its own, and the very thread that the garbage
        # collector interrupts with a finalizer may be holding it.
        try:
            self._bell.release()
        except RuntimeError:
            pass  # rung already

    def wait(self, seconds: float | None) -> bool:
        """Wait to be rung, `seconds` at most. True if it was. To be called with no lock held."""
        return self._bell.acquire(timeout=-1 if seconds is None else seconds)


class Line:
    """Who waits, in order of arrival. `queue`: the next first; None for nobody.

    Each change is one step, so that an interrupt leaves it as it was, or as it will be.
    """

    __slots__ = _NO_SLOTS
    queue: deque[Waiter] | None

    def line_up(self, waiter: Waiter) -> None:
        """Put `waiter` behind all who came before it, and before all who came later."""
        waiter.line = self
        if self.queue is None:
            self.queue = deque()
        queue = self.queue
        if not queue or queue[-1].number < waiter.number:
            queue.append(waiter)
        elif waiter not in queue:
            queue.insert(sum(one.number < waiter.number for one in queue), waiter)

    def is_first(self, waiter: Waiter) -> bool:
        return self.queue is not None and self.queue[0] is waiter

    def remove(self, waiter: Waiter) -> None:
        """Take `waiter` out, if it is there, and have the first one look."""
        if self.queue is not None:
            if waiter in self.queue:
                self.queue.remove(waiter)
            if not self.queue:
                self.queue = None
        self.ring_first()

    def ring_first(self) -> None:
        """Have the first in line look again. Needs no lock."""
        queue = self.queue
        if queue:
            try:
                queue[0].ring()
            except IndexError:
                pass  # the last one left in between

    def refuse_late(self, turn_of: Callable[[int], float], now: float) -> None:
        """Refuse those whose turn comes too late; `turn_of` tells that of each place in line."""
        if self.queue is None:
            return
        staying: deque[Waiter] = deque()
        for waiter in self.queue:
            turn = turn_of(len(staying))
            if waiter.is_too_late(turn):
                waiter.refused = turn - now
                waiter.ring()
            else:
                staying.append(waiter)
        self.queue = staying or None
