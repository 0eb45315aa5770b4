"""A cache with nothing but the rules: a dictionary for a store, no threads, no wire, a clock that is set.

It shows that the decisions fit together, before and without the layer that uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from requests.structures import CaseInsensitiveDict

from kreuz_sync.cache import invalidation, storing, validation, variants
from kreuz_sync.cache.ask import Ask
from kreuz_sync.cache.decisions import AskAgain, Forward, Freshen, Hit, Refuse
from kreuz_sync.cache.entry import Entry, entry_of
from kreuz_sync.cache.keys import Keys
from kreuz_sync.cache.policy import NO_WISHES, Policy, Wishes
from kreuz_sync.cache.reuse import conclude, decide, scope, validated, without_answer
from kreuz_sync.cache.stored import Stored, decode, encode

KEYS = Keys(b"a secret of the tests")
NOW = 1_800_000_000.0


class Time:
    """Unix seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = NOW


class Answer(NamedTuple):
    """What came back. said: the decision behind it, None for an answer of the origin."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""
    said: object = None

    def __getitem__(self, name: object) -> object:
        if not isinstance(name, str):
            return tuple.__getitem__(self, name)
        return ", ".join(value for known, value in self.fields if known.lower() == name.lower())


class Disconnected(Exception):
    """The origin closed the connection without an answer."""


Origin = Callable[[str, str, Mapping[str, str], object], Answer]


class Simulation:
    """Requests in, answers out; `sent` counts what went to the origin, `store` is all that is kept."""

    def __init__(self, origin: Origin, policy: Policy, time: Time) -> None:
        self.origin, self.policy, self.time = origin, policy, time
        self.store: dict[str, tuple[bytes, bytes]] = {}
        self.sent: list[CaseInsensitiveDict[str]] = []
        self.background: list[str] = []

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        wishes: Wishes = NO_WISHES,
    ) -> Answer:
        fields = CaseInsensitiveDict(headers or {})
        if body:
            fields["Content-Length"] = "1"
        ask = Ask(method, url, fields)
        decision = scope(ask, wishes)
        key = KEYS.primary(ask)
        if decision is None and key is not None:
            decision, key = self._decided(ask, key, wishes)
        if decision is None:
            decision = Forward("bypass", keep=False)
        if isinstance(decision, Hit):
            return self._replayed(ask, key, decision, url)
        if isinstance(decision, Refuse):
            return Answer(504, (), b"", decision)
        return self._forwarded(ask, key, decision, body, wishes, fields)

    def _entry(self, key: str, url: str) -> Entry | None:
        record = self.store.get(key)
        stored = decode(record[0]) if record else None
        return entry_of(stored, self.policy, KEYS.canonical(url)) if stored else None

    def _decided(self, ask: Ask, key: str, wishes: Wishes) -> tuple[object, str]:
        primary = self._entry(key, ask.url)
        decision, chosen = self._decided_under(ask, key, primary, wishes)
        if isinstance(decision, Hit):
            return decision, chosen
        anybody = KEYS.anonymous(ask)
        entry = self._entry(anybody, ask.url) if anybody and anybody != key else None
        if entry is not None and entry.open_to_all:
            shared, at = self._decided_under(ask, anybody, entry, wishes)
            if isinstance(shared, Hit):
                return shared, at
        return decision, chosen

    def _decided_under(self, ask: Ask, key: str, primary: Entry | None, wishes: Wishes) -> tuple[object, str]:
        if primary is None:
            return decide(ask, None, key, wishes, now=self.time.now), key
        chosen = variants.choose(primary.stored, primary.others, key, ask, KEYS)
        if chosen is None:
            others = variants.nominees(primary.stored, primary.others, key)
            return decide(ask, None, key, wishes, now=self.time.now, others=others), key
        entry = primary if chosen == key else self._entry(chosen, ask.url)
        return decide(ask, entry, chosen, wishes, now=self.time.now), chosen

    def _replayed(self, ask: Ask, key: str, hit: Hit, url: str) -> Answer:
        if hit.refresh:
            self.background.append(url)
        body = b"" if ask.method == "HEAD" or hit.status == 304 else self.store[key][1]
        if hit.part is not None:
            body = body[hit.part.first : hit.part.last + 1]
        return Answer(hit.status, hit.fields, body, hit)

    def _send(self, ask: Ask, fields: Mapping[str, str], body: object) -> Answer:
        self.sent.append(CaseInsensitiveDict(fields))
        return self.origin(ask.method, ask.url, fields, body)

    def _forwarded(
        self, ask: Ask, key: str | None, forward: Forward, body: object, wishes: Wishes, fields: Mapping[str, str]
    ) -> Answer:
        sent_at = self.time.now
        try:
            answer = self._send(ask, {**fields, **forward.conditions}, body)
        except Disconnected:
            hit = without_answer(ask, forward, self.policy, wishes, now=self.time.now)
            if hit is None:
                raise
            return self._replayed(ask, key, hit, ask.url)
        for url in invalidation.invalidates(ask.method, ask.url, answer.status, answer.fields):
            self._invalidate(url)
        conclusion = conclude(ask, forward, answer.status, answer.fields, self.policy, wishes, now=self.time.now)
        if isinstance(conclusion, Hit):
            return self._replayed(ask, key, conclusion, ask.url)
        if isinstance(conclusion, Freshen):
            return self._freshened(ask, key, conclusion, answer, sent_at)
        if isinstance(conclusion, AskAgain):
            return self._forwarded(ask, key, conclusion.forward, body, wishes, fields)
        if key is not None:
            if ask.method == "HEAD":
                self._after_head(ask, key, answer, sent_at)
            if not (conclusion.keep and self._keep(ask, key, answer, sent_at)) and conclusion.supersedes:
                self.store.pop(forward.key, None)
        return answer

    def _invalidate(self, url: str) -> None:
        uri = KEYS.uri(KEYS.canonical(url))
        for key in [key for key in self.store if key.startswith(uri)]:
            del self.store[key]

    def _stored(self, key: str) -> Stored | None:
        return decode(self.store[key][0]) if key in self.store else None

    def _keep(self, ask: Ask, key: str, answer: Answer, sent_at: float) -> bool:
        if storing.refusal(ask, answer.status, answer.fields, self.policy, KEYS, received=self.time.now) is not None:
            return False
        stored = storing.to_store(
            ask,
            answer.status,
            "Reason",
            11,
            answer.fields,
            self.policy,
            KEYS,
            request_time=sent_at,
            response_time=self.time.now,
            elapsed=0.0,
        )
        at = variants.place(stored._replace(size=len(answer.body)), self._stored(key), key, KEYS)
        self.store[at.key] = (encode(at.stored), answer.body)
        if at.primary is not None:
            self.store[key] = (encode(at.primary), self.store[key][1])
        return True

    def _freshened(self, ask: Ask, key: str, conclusion: Freshen, answer: Answer, sent_at: float) -> Answer:
        at = conclusion.nominee.key
        head, body = self.store[at]
        stored = validation.freshen(
            decode(head), answer.fields, ask, self.policy, KEYS, request_time=sent_at, response_time=self.time.now
        )
        url = KEYS.canonical(ask.url)
        entry = Entry(stored, self.policy, url)
        self.store[at] = (encode(stored), body)
        if not validation.keepable(stored, self.policy, url):
            del self.store[at]
        elif (primary := self._stored(key)) is not None:
            primary = variants.answers_also(primary, at, stored, ask, KEYS)
            self.store[key] = (encode(primary), self.store[key][1])
        if conclusion.pass_on:
            return answer
        hit = validated(ask, entry, now=self.time.now)
        if ask.method == "HEAD" or hit.status == 304:
            body = b""
        if hit.part is not None:
            body = body[hit.part.first : hit.part.last + 1]
        return Answer(hit.status, hit.fields, body, hit)

    def _after_head(self, ask: Ask, key: str, answer: Answer, sent_at: float) -> None:
        stored = self._stored(key)
        if stored is None:
            return
        updated = validation.after_head(
            stored,
            answer.status,
            answer.fields,
            ask,
            self.policy,
            KEYS,
            request_time=sent_at,
            response_time=self.time.now,
        )
        if updated is not None:
            self.store[key] = (encode(updated), self.store[key][1])
