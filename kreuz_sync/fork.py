"""What must be made anew in the child of a fork: locks that a vanished thread may hold, shared sockets.

And what must stand still while the fork is made, since its locks are a library's and cannot be made anew.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """What has something to make anew in a child."""

    def after_fork(self) -> None:
        """Called in the child, which has one thread."""


class Pausable(Protocol):
    """What must not be in the middle of something when a child is made."""

    def before_fork(self) -> None:
        """Called in the parent; other threads are at work. The fork waits for it to return."""

    def after_fork_in_parent(self) -> None:
        """Called in the parent when the fork is made."""


_renewables: weakref.WeakSet[Renewable] = weakref.WeakSet()

_pausables: weakref.WeakSet[Pausable] = weakref.WeakSet()


def renew_in_child(thing: Renewable) -> None:
    """Call `thing.after_fork()` in every child forked while `thing` lives."""
    _renewables.add(thing)


def pause_for_fork(thing: Pausable) -> None:
    """While `thing` lives, call its `before_fork()` before every fork and `after_fork_in_parent()` after it."""
    _pausables.add(thing)


def _before() -> None:
    for thing in list(_pausables):
        thing.before_fork()


def _in_parent() -> None:
    for thing in list(_pausables):
        thing.after_fork_in_parent()


def _in_child() -> None:
    for thing in list(_renewables):
        # What one of them cannot do must not keep the others' locks from being made anew.
        with contextlib.suppress(Exception):
            thing.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
