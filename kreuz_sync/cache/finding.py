"""What is stored for a request: the record under its key, or another variant, and what is decided about it."""

from __future__ import annotations

from typing import NamedTuple

from . import variants
from .ask import Ask
from .decisions import Decision, Forward, Hit
from .entry import Entry
from .kept import Kept, kept_in
from .keys import Keys
from .policy import Policy, Wishes
from .reuse import decide
from .store import Record
from .trouble import GuardedStore


class Found(NamedTuple):
    """A decision, and for a hit the record under `key` with what was made of it."""

    decision: Decision
    key: str
    record: Record | None = None
    kept: Kept | None = None


class Finder:
    """Looks into a store, on behalf of one policy."""

    def __init__(self, store: GuardedStore, policy: Policy, keys: Keys) -> None:
        self.store = store
        self.policy = policy
        self.keys = keys

    def find(self, ask: Ask, key: str, text: str | None, wishes: Wishes, now: float) -> Found:
        """What to do with `ask`, whose answers are under `key`. text: of the user's key function. now: Unix seconds."""
        found = self._under(ask, key, wishes, now)
        if "cookie" not in ask.fields or type(found.decision) is Hit:
            return found
        anybody = self.keys.anonymous(ask, text)
        if anybody is None or anybody == key:
            return found
        shared = self._under(ask, anybody, wishes, now)
        decision = shared.decision
        if isinstance(decision, (Hit, Forward)) and decision.entry is not None and _may_have(ask, decision.entry):
            if isinstance(decision, Hit) or (isinstance(found.decision, Forward) and found.decision.entry is None):
                return shared
        close(shared.record)
        return found

    def kept(self, key: str, url: str) -> tuple[Record, Kept] | None:
        """The record under `key`, decoded for requests to `url` (canonical); whoever asks for it closes it."""
        record = self.store.read(key)
        kept = None if record is None else kept_in(record, self.policy, url)
        if record is None or kept is None:
            close(record)
            return None
        return record, kept

    def _under(self, ask: Ask, key: str, wishes: Wishes, now: float) -> Found:
        record = self.store.read(key)
        if record is None:
            return Found(decide(ask, None, key, wishes, now=now), key)
        url = self.keys.canonical(ask.url)
        kept = kept_in(record, self.policy, url)
        if kept is None or kept.entry is None:
            close(record)
            return Found(decide(ask, None, key, wishes, now=now), key)
        entry = kept.entry
        chosen = variants.choose(entry.stored, entry.others, key, ask, self.keys)
        if chosen is None:
            close(record)
            others = variants.nominees(entry.stored, entry.others, key)
            return Found(decide(ask, None, key, wishes, now=now, others=others), key)
        if chosen != key:
            close(record)
            other = self.kept(chosen, url)
            if other is None or other[1].entry is None:
                close(None if other is None else other[0])
                return Found(decide(ask, None, key, wishes, now=now), key)
            record, kept = other
        decision = decide(ask, kept.entry, chosen, wishes, now=now)
        if type(decision) is Hit:
            return Found(decision, chosen, record, kept)
        close(record)
        return Found(decision, chosen)


def _may_have(ask: Ask, entry: Entry) -> bool:
    """Whether what is stored for nobody in particular may be used for `ask`, which has cookies."""
    if entry.open_to_all:
        return True
    cookies = (ask.get("cookie") or "").split(";")
    return bool(entry.gave) and all(cookie.strip(" \t") in entry.gave for cookie in cookies)


def close(record: Record | None) -> None:
    """Let go of a record that will not be read."""
    if record is not None and not isinstance(record.body, bytes):
        record.body.close()
