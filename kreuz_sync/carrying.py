"""Taking a thread's context along to another thread: its tracing spans above all.

Threads of a pool begin with an empty context, so what they do would belong to nobody's trace.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from .calls import current, helper, next_send

Given = TypeVar("Given")


def carried(work: Callable[..., Given]) -> Callable[..., Given]:
    """`work`, to be called on other threads in the context of this one, any number of times and at once.

    The span that is current here is the parent of those made there. Calls of a session made there
    are calls of their own. What `work` changes in its context stays there.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor() as pool:
    ...     list(pool.map(carried(abs), [-1, 2]))
    [1, 2]
    """
    here = copy_context()
    here.run(_leave_call)

    def run(*args: object, **options: object) -> Given:
        # A context can be entered once at a time, so each call has a copy; that costs next to nothing.
        return here.copy().run(work, *args, **options)

    return run


def _leave_call() -> None:
    """A call under way, in a hook say, is not what the other thread is inside of."""
    current.set(None)
    next_send.set(None)
    helper.set(None)
