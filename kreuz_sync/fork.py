"""What must be made anew in the child of a fork: locks that a vanished thread may hold, shared sockets."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """What has something to make anew in a child."""

    def after_fork(self) -> None:
        """Called in the child, which has one thread."""


_renewables: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_in_child(thing: Renewable) -> None:
    """Call `thing.after_fork()` in every child forked while `thing` lives."""
    _renewables.add(thing)


def _in_child() -> None:
    for thing in list(_renewables):
        # What one of them cannot do must not keep the others' locks from being made anew.
        with contextlib.suppress(Exception):
            thing.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
