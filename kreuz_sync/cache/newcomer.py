"""An answer that another cache stored, on its way into this one, by the rules for one that just came."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import requests

from .ask import Ask
from .decisions import Hit
from .finding import close
from .keeping import with_asked
from .kept import Kept
from .replay import replay
from .stored import FieldLines, Stored, decode, encode
from .storing import refusal, to_store

if TYPE_CHECKING:
    from .setting import Cache
    from .workings import Tools

_log = logging.getLogger(__name__)
_REDACTED = "REDACTED"
UNREADABLE = "unreadable"  # the reason for what is damaged, or in a form that is not known


class Migrated(int):
    """How many answers were stored. skipped: how many were not, by the reason in a few words."""

    skipped: dict[str, int]

    def __new__(cls, count: int, skipped: dict[str, int] | None = None) -> Migrated:
        made = super().__new__(cls, count)
        made.skipped = skipped or {}
        return made

    def __str__(self) -> str:
        """A sentence for people."""
        left = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
        return f"{int(self)} answers stored" + (f"; skipped: {left}" if left else "")


class Newcomer(NamedTuple):
    """A stored answer as another cache has it.

    asked: fields of its request. body: bytes on the wire, as `fields` describe them. response_time: Unix seconds.
    elapsed: seconds.
    """

    method: str
    url: str
    asked: dict[str, str]
    status: int
    reason: str
    version: int
    fields: FieldLines
    body: bytes
    response_time: float
    elapsed: float


def admit_all(cache: Cache, source: str | os.PathLike[str], items: Iterable[Newcomer | str]) -> Migrated:
    """Store what may be stored; for what could not be read there is the reason in place of it."""
    tools, count, skipped = cache._tools(), 0, Counter[str]()
    for item in items:
        reason = item if isinstance(item, str) else _admit(cache, tools, item)
        if reason is None:
            count += 1
        else:
            skipped[reason] += 1
    done = Migrated(count, dict(skipped))
    if skipped:
        _log.warning("%s: %s", os.fspath(source), done)
    return done


def _admit(cache: Cache, tools: Tools, item: Newcomer) -> str | None:
    """Put `item` into the store; why not, or None."""
    ask = Ask(item.method, item.url, item.asked)
    try:
        request = requests.Request(item.method, item.url, headers=item.asked).prepare()
    except ValueError:  # a URL, or a field, that cannot be sent
        return UNREADABLE
    text = None if cache.key is None else cache.key(request)
    if cache.key is not None and text is None:
        return "not for this cache (key)"
    key = tools.keys.primary(ask, text)
    # Which credentials they were may not be told any more, and whose they are now even less.
    if key is None or "." in key or _REDACTED in item.url:
        return "asked for with credentials"
    received = min(item.response_time, cache.clock.wall())
    refused = refusal(ask, item.status, item.fields, cache.policy, tools.keys, received=received)
    if refused is not None or ask.has_body:
        return f"not to be stored ({refused or 'method'})"
    if cache.max_entry_size is not None and len(item.body) > cache.max_entry_size:
        return "too large"
    stored = to_store(
        *(ask, item.status, item.reason, item.version, item.fields, cache.policy, tools.keys),
        request_time=received - item.elapsed,
        response_time=received,
        elapsed=item.elapsed,
    )
    stored = with_asked(stored._replace(size=len(item.body)), ask)
    if _is_known(tools, key, stored):
        return "not newer than what is stored"
    if cache.store_if is not None and not _wanted(cache, request, stored, item.body):
        return "not wanted (store_if)"
    return None if tools.keeper.put(key, stored, item.body) is not None else "not written (store)"


def _is_known(tools: Tools, key: str, stored: Stored) -> bool:
    record = tools.keeper.store.read(key)
    close(record)
    there = None if record is None else decode(record.head)
    return there is not None and there.variant == stored.variant and there.response_time >= stored.response_time


def _wanted(cache: Cache, request: requests.PreparedRequest, stored: Stored, body: bytes) -> bool:
    kept = Kept(encode(stored), stored, cache.policy, request.url or stored.url)
    if kept.entry is None or cache.store_if is None:
        return False
    response = replay(request, Hit(kept.entry, 0.0, stored.status), kept, body, stream=False)
    return bool(cache.store_if(request, response))
