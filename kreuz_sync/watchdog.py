"""Ending an exchange at a moment, whatever its server does.

A time-out bounds the silence between two bytes, so a server that sends one byte within each
keeps a caller for ever. The watchdog, one thread for the whole process, shuts the socket of
such an exchange down at its moment: the caller, who waits in a read, sees the end of the
connection. The thread starts with the first exchange that has a moment.
"""

from __future__ import annotations

import heapq
import itertools
import os
import socket
import stat
import threading
from typing import Any

import urllib3

from . import fork
from .clock import SYSTEM_CLOCK, Clock

SWEEP_LEAST = 64  # exchanges in the heap before those that are over are looked for


class Exchange:
    """One exchange on the wire, from connecting to the end of the body, that ends in `left` seconds at the latest.

    seconds: the deadline of its call, for the error.

    It has a handle of its own (a duplicated descriptor) on its socket: so it can never shut
    down another one that has taken the number of its own. The caller's thread finishes it and
    the watchdog ends it; which of the two came first is decided by who takes the one item out
    of a list. No lock is needed, and `finish` may be called in a finalizer.
    """

    __slots__ = ("_finished", "_handles", "_undecided", "moment", "seconds", "watched")

    def __init__(self, left: float, seconds: float) -> None:
        self.moment = SYSTEM_CLOCK.monotonic() + left
        self.seconds = seconds
        self.watched = False
        self._undecided = [None]
        self._finished = False
        self._handles: list[socket.socket] = []

    @property
    def decided(self) -> bool:
        """Finished or ended: the watchdog has nothing to do with it any more."""
        return not self._undecided

    @property
    def ended(self) -> bool:
        """Whether the watchdog came first."""
        return not self._undecided and not self._finished

    @property
    def late(self) -> bool:
        """Whether its moment has come. The watchdog may be a little later than that."""
        return self.ended or SYSTEM_CLOCK.monotonic() >= self.moment

    def hold(self, thing: Any) -> None:
        """Watch the socket `thing`, or that of a response's `raw`, in place of the one before.

        Does nothing where there is no socket, as with test doubles.
        """
        handle = _handle_on(thing)
        if handle is None:
            return
        self._each_handle(shut=False)
        self._handles.append(handle)
        if self.ended:
            self._each_handle(shut=True)
        elif not self.watched:
            self.watched = True
            WATCHDOG.watch(self)

    def finish(self) -> bool:
        """The exchange is over, and its connection goes its own way. False if the watchdog has ended it."""
        if self._decide():
            self._finished = True
            self._each_handle(shut=False)
        return self._finished

    def end(self) -> None:
        """Shut its socket down, unless it is finished. For the watchdog."""
        if self._decide():
            self._each_handle(shut=True)

    def _decide(self) -> bool:
        try:
            self._undecided.pop()
        except IndexError:
            return False
        return True

    def _each_handle(self, *, shut: bool) -> None:
        """Let go of all handles, each once whoever else does so too."""
        while self._handles:
            try:
                handle = self._handles.pop()
            except IndexError:
                return
            try:
                if shut:
                    handle.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the connection has gone by itself
            finally:
                handle.close()


class Watchdog:
    """Ends exchanges at their moments.

    `_changed` guards the heap; exchanges are ended with the lock let go. Those that finished
    stay in the heap until their moment, or until they are half of it.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._number = itertools.count()  # of two equal moments, so that exchanges are not compared
        self._heap: list[tuple[float, int, Exchange]] = []
        self._renew()
        fork.renew_in_child(self)

    def watch(self, exchange: Exchange) -> None:
        """End `exchange` at its moment, unless it is finished by then."""
        entry = (exchange.moment, next(self._number), exchange)
        with self._changed:
            if len(self._heap) >= self._sweep_at:
                self._sweep()
            heapq.heappush(self._heap, entry)
            if self._thread is None:
                self._start()
            elif self._heap[0] is entry:
                self._changed.notify()

    def after_fork(self) -> None:
        """In the child: no thread, and nothing to end. A shutdown would be the parent's too."""
        for _, _, exchange in self._heap:
            exchange.finish()
        self._renew()

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._heap = []
        self._sweep_at = SWEEP_LEAST
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="kreuz_sync-watchdog", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread to be had, or the interpreter is going: time-outs alone bound the call
            return
        self._thread = thread

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if not entry[2].decided]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_LEAST, 2 * len(self._heap))

    def _run(self) -> None:
        while True:
            for exchange in self._wait_for_due():
                exchange.end()

    def _wait_for_due(self) -> list[Exchange]:
        due: list[Exchange] = []
        with self._changed:
            while not due:
                now = self._clock.monotonic()
                while self._heap and (self._heap[0][0] <= now or self._heap[0][2].decided):
                    due.append(heapq.heappop(self._heap)[2])
                if not due:
                    seconds = min(self._heap[0][0] - now, threading.TIMEOUT_MAX) if self._heap else None
                    self._clock.wait(self._changed, seconds)
        return due


WATCHDOG = Watchdog()


def _handle_on(thing: Any) -> socket.socket | None:
    # TLS inside TLS, and pyOpenSSL, wrap the socket in something that is none.
    for sock in (thing, getattr(thing, "socket", None)):
        if isinstance(sock, socket.socket):
            return _duplicate(sock.fileno())
    if not isinstance(thing, urllib3.HTTPResponse):
        return None
    try:
        number = thing.fileno()
    except (OSError, ValueError, AttributeError):
        return None  # it is read from memory, or to its end already
    return _duplicate(number)


def _duplicate(number: int) -> socket.socket | None:
    """A handle on the socket of this descriptor; None if it is none, or there is no descriptor left."""
    try:
        # A recorded answer may give any number for its descriptor: 0 is the standard input.
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return None
        return socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)  # any family can be shut down
    except (OSError, ValueError):
        return None
