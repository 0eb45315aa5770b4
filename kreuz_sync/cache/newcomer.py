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
from .keeping import with_asked
from .kept import Kept
from .replay import replay
from .stored import EARLIEST, FieldLines, Stored, encode, is_sound
from .storing import refusal, to_store

if TYPE_CHECKING:
    from .setting import Cache
    from .workings import Tools

_log = logging.getLogger("kreuz_sync.cache")
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
        many = f"{int(self)} {'answer' if self == 1 else 'answers'} stored"
        return f"{many}; skipped: {left}" if left else many


class Newcomer(NamedTuple):
    """A stored answer as another cache has it.

    asked: fields of its request. body: bytes on the wire, as `fields` describe them. response_time: Unix seconds.
    elapsed: seconds. sent: the body of its request.
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
    sent: bytes = b""


def admit_all(cache: Cache, source: str | os.PathLike[str], items: Iterable[Newcomer | str]) -> Migrated:
    """Store what may be stored; for what could not be read there is the reason in place of it.

    Raises TypeError if `cache` is none.
    """
    if not hasattr(cache, "is_cache"):
        raise TypeError(f"cache={cache!r}: a Cache is wanted, as Cache('answers', ttl=3600), or session.cache")
    tools, stored, skipped = cache._tools(), set[str](), Counter[str]()
    for item in items:
        key, reason = ("", item) if isinstance(item, str) else _admit(cache, tools, item)
        if reason is None:
            stored.add(key)
        elif key not in stored:  # one source may have an answer twice: alone, and behind a redirect
            skipped[reason] += 1
    done = Migrated(len(stored), dict(skipped))
    if skipped:
        told = {"event": "migration_skipped", "source": os.fspath(source), "stored": len(stored)}
        _log.info("%s: %s", os.fspath(source), done, extra={**told, "skipped": dict(skipped)})
    return done


def _admit(cache: Cache, tools: Tools, item: Newcomer) -> tuple[str, str | None]:
    """Put `item` into the store: what it is under there, and why it is not stored, None if it is."""
    ask = Ask(item.method, item.url, item.asked)
    try:
        request = requests.Request(item.method, item.url, headers=item.asked, data=item.sent).prepare()
    except ValueError:  # a URL, or a field, that cannot be sent
        return "", UNREADABLE
    text = None if cache.key is None else cache.text_for(request)
    if cache.key is not None and text is None:
        return "", "not for this cache (key)"
    is_post = item.method == "POST" and cache.post
    key = tools.keys.posted(ask, item.sent, text) if is_post else tools.keys.primary(ask, text)
    # Which credentials they were may not be told any more, and whose they are now even less.
    if key is None or "." in key or _REDACTED in item.url:
        return "", "asked for with credentials"
    received = min(item.response_time, cache.clock.wall())
    if not received >= EARLIEST:
        return "", UNREADABLE
    refused = refusal(ask, item.status, item.fields, cache.policy, tools.keys, received=received, posts=cache.post)
    if refused is not None or (ask.has_body and not is_post):
        return "", f"not to be stored ({refused or 'method'})"
    if is_post and not _is_what_was_sent(ask, item.sent):
        return "", "not to be stored (a body that was changed, or is never the same)"
    if cache.max_entry_size is not None and len(item.body) > cache.max_entry_size:
        return "", "too large"
    stored = to_store(
        *(ask, item.status, item.reason, item.version, item.fields, cache.policy, tools.keys),
        request_time=received - item.elapsed,
        response_time=received,
        elapsed=item.elapsed,
    )
    stored = with_asked(stored._replace(size=len(item.body)), ask)
    if not is_sound(stored):
        return "", UNREADABLE
    place = tools.keeper.key_for(key, stored)
    if tools.keeper.has_newer(place, stored):
        return place, "not newer than what is stored"
    if not _is_wanted(cache, request, stored, item.body):
        return place, "not wanted (store_if)"
    written = tools.keeper.put(key, stored, item.body)
    return written or place, None if written is not None else "not written (store)"


def _is_what_was_sent(ask: Ask, sent: bytes) -> bool:
    """Whether a program will send the same body again.

    Other caches change what they write down (a secret is left out); and between the parts of a form with files stands
    a boundary, which is another one in every request.
    """
    length = ask.get("content-length")
    kind = (ask.get("content-type") or "").lower()
    return length in (None, str(len(sent))) and _REDACTED.encode() not in sent and not kind.startswith("multipart/")


def _is_wanted(cache: Cache, request: requests.PreparedRequest, stored: Stored, body: bytes) -> bool:
    if cache.store_if is None:
        return True
    kept = Kept(encode(stored), stored, cache.policy, request.url or stored.url)
    if kept.entry is None:
        return False
    response = replay(request, Hit(kept.entry, 0.0, stored.status), kept, body, stream=False)
    return cache.workings.rule.allows(request, response)
