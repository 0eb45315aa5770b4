"""What is stored for a request: the record under its key, or another variant, and what is decided about it."""

from __future__ import annotations

from typing import NamedTuple

from . import variants
from .ask import Ask
from .decisions import Decision, Forward, Hit
from .entry import Entry
from .kept import Kept, kept_in
from .keys import Keys
from .listing import uri_of
from .policy import Policy, Wishes
from .reuse import decide
from .store import Record
from .trouble import GuardedStore

_MOST_NOTED = 4096


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
        # For whom something was stored last, by URI. Each step on a dict is atomic.
        self._whose: dict[str, str] = {}

    def find(self, ask: Ask, key: str, text: str | None, wishes: Wishes, now: float) -> Found:
        """What to do with `ask`, whose answers are under `key`. text: of the user's key function. now: Unix seconds."""
        found = self._found(ask, key, text, wishes, now)
        forward = found.decision
        if type(forward) is not Forward or forward.reason != "uri-miss" or not self._is_for_another(key):
            return found
        # Who wonders why nothing is ever found again learns here what tells this request from others.
        detail = "credentials" if self.keys.anonymous(ask, text) is None else "cookies"
        return found._replace(decision=forward._replace(detail=detail))

    def note(self, key: str) -> None:
        """Something was stored under this primary key."""
        if len(self._whose) >= _MOST_NOTED:
            self._whose.pop(next(iter(self._whose)), None)
        self._whose[uri_of(key)] = _identity_in(key)

    def _is_for_another(self, key: str) -> bool:
        whose = self._whose.get(uri_of(key))
        return whose is not None and whose != _identity_in(key)

    def _found(self, ask: Ask, key: str, text: str | None, wishes: Wishes, now: float) -> Found:
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
        if _is_something(decision):
            self.note(anybody)
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
        if kept is None or kept.entry is None or not _is_trusted(ask, kept.entry):
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
            if other is None or other[1].entry is None or not _is_trusted(ask, other[1].entry):
                close(None if other is None else other[0])
                return Found(decide(ask, None, key, wishes, now=now), key)
            record, kept = other
        decision = decide(ask, kept.entry, chosen, wishes, now=now)
        if type(decision) is Hit:
            return Found(decision, chosen, record, kept)
        close(record)
        return Found(decision, chosen)


def _is_trusted(ask: Ask, entry: Entry) -> bool:
    """Whether it came from a server whose certificate was verified, if `ask` wants that."""
    return ask.trusting or "unverified" not in entry.stored.extra


def _identity_in(key: str) -> str:
    """What of a primary key says who asks, "" for nobody in particular."""
    return key[len(uri_of(key)) :].partition("+")[0]


def _is_something(decision: Decision) -> bool:
    """Whether something was found that `decision` is about."""
    return isinstance(decision, Hit) or (isinstance(decision, Forward) and decision.reason != "uri-miss")


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
