"""What holds for a cache in this context alone: in a `with` block, on this thread or in this task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from .policy import Wishes

# By the identity of the cache; None for one that is switched off here.
_here: ContextVar[Mapping[int, Wishes | None] | None] = ContextVar("kreuz_sync_cache", default=None)


def wishes_here(cache: object, otherwise: Wishes) -> Wishes | None:
    """What is wanted of `cache` in this context; None if it is to be left alone."""
    here = _here.get()
    return otherwise if here is None else here.get(id(cache), otherwise)


@contextmanager
def holding(cache: object, wishes: Wishes | None) -> Iterator[None]:
    """Want `wishes` of `cache` in this context for a while."""
    token = _here.set({**(_here.get() or {}), id(cache): wishes})
    try:
        yield
    finally:
        _here.reset(token)
