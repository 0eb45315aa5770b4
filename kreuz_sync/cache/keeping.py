"""What changes in the store after an answer came: it is kept, freshened, or made invalid."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from . import validation, variants
from .archive import asked
from .ask import Ask
from .exchange import Exchange, Times
from .finding import Finder, close
from .generations import Generations
from .kept import Kept
from .parts import PARTIAL
from .policy import Policy
from .selecting import matches
from .store import Body, Record
from .stored import FieldLines, Stored, decode, encode, is_sound
from .validation import Nominee

_TRIES = 3  # at a list of variants that others change at the same moment
_MOST_PENDING = 10_000


class Keeper:
    """Writes to the store that `finder` reads, unless what is to be written is outdated by now.

    The order of steps makes up for the lock that is not held: an invalidation is noted first and
    carried out then; whoever writes looks for one before the write and after it. What other processes
    and machines made invalid, the store knows.
    """

    def __init__(self, finder: Finder, generations: Generations) -> None:
        self._finder = finder
        self.store = finder.store
        self.keys = finder.keys
        self.policy: Policy = finder.policy
        self._generations = generations
        # Invalidations that the store could not carry out. Each step on a dict is atomic.
        self._pending: dict[str, object] = {}
        # What is being stored now, by whom: the URI, and when it was asked for.
        self._writing: dict[object, tuple[str, int]] = {}

    def uri(self, exchange: Exchange) -> str:
        """What the keys of all that is kept for the URI of `exchange` begin with."""
        return self.keys.target(exchange.ask, exchange.text)

    def keep(self, exchange: Exchange, stored: Stored, body: Body) -> bool:
        """Store an answer to `exchange`; whether it was stored."""
        uri, token = self.uri(exchange), object()
        self._writing[token] = (uri, exchange.began)  # before the look at what is outdated
        try:
            if self._generations.is_outdated(uri, exchange.began) or not self.settle(uri):
                return False
            key = self.put(exchange.key, stored, body, exchange.sent)
            if key is not None and self._generations.is_outdated(uri, exchange.began):
                if not self.store.delete(key):
                    self._put_off(uri)
                return False
            if key is not None:
                self._finder.note(exchange.key)
            return key is not None
        finally:
            del self._writing[token]

    def put(self, primary: str, stored: Stored, body: Body, sent: float | None = None) -> str | None:
        """Store an answer whose primary key is `primary`; the key that it is under now, None if it was not written.

        sent: when it was asked for, by `perf_counter`; None if nothing can have made it invalid since then.
        """
        before = self.store.read(primary) if stored.vary else None
        place = variants.place(stored, self._usable(before), primary, self.keys)
        close(before)
        if not is_sound(place.stored):  # nobody could read it
            return None
        if not self._write(place.key, encode(place.stored), body, sent):
            return None
        if place.primary is not None and not self._list(primary, stored, before):
            self.store.delete(place.key)  # nothing leads to it
            return None
        return place.key

    def _write(self, key: str, head: bytes, body: Body, sent: float | None) -> bool:
        if sent is None:
            return self.store.write(key, head, body)
        return self.store.write_if_current(key, head, body, perf_counter() - sent)

    def key_for(self, primary: str, stored: Stored) -> str:
        """The key that `put` would store `stored` under."""
        if not stored.vary:
            return primary
        before = self.store.read(primary)
        close(before)
        return variants.place(stored, self._usable(before), primary, self.keys).key

    def has_newer(self, place: str, stored: Stored) -> bool:
        """Whether what is under `place`, where `stored` would go, came no earlier."""
        record = self.store.read(place)
        close(record)
        there = _stored(record)
        if there is None:
            return False
        # Without Vary it would go in the place of all variants.
        others = () if stored.vary else variants.others_of(there)
        return max([there.response_time, *(other.date for other in others)]) >= stored.response_time

    def _usable(self, record: Record | None) -> Stored | None:
        """What is in a primary record; None for a part if this policy knows none, and would not look behind it."""
        stored = _stored(record)
        is_strange = stored is not None and stored.status == PARTIAL and not self.policy.store_parts
        return None if is_strange else stored

    def _list(self, primary: str, stored: Stored, before: Record | None) -> bool:
        """Put `stored`, which is a further variant, on the list of the primary record."""
        for _ in range(_TRIES):
            place = variants.place(stored, _stored(before), primary, self.keys)
            if before is None or place.primary is None:
                return False
            if self.store.rewrite_head(primary, encode(place.primary), before.head):
                return True
            before = self.store.read(primary)
            close(before)
        return False

    def freshen(
        self, exchange: Exchange, nominee: Nominee, record: Record, kept: Kept, fields: FieldLines, times: Times
    ) -> Kept:
        """`kept`, which is in `record`, after a 304 with `fields`; written back if it may still be stored."""
        ask, url = exchange.ask, kept.url
        stored = validation.freshen(
            *(kept.stored, fields, ask, self.policy, self.keys),
            request_time=times.request,
            response_time=times.response,
        )
        if stored.vary != kept.stored.vary:
            stored = with_asked(stored, ask)
        fresh = Kept(encode(stored), stored, self.policy, url)
        if not validation.keepable(stored, self.policy, url):
            self.store.delete(nominee.key)
        elif not self._generations.is_outdated(self.uri(exchange), exchange.began):
            self.store.rewrite_head(nominee.key, fresh.head, record.head)
            if stored.vary:
                self._answers_also(exchange.key, nominee.key, stored, ask)
        return fresh

    def _answers_also(self, primary: str, key: str, confirmed: Stored, ask: Ask) -> None:
        for _ in range(_TRIES):
            record = self.store.read(primary)
            close(record)
            before = _stored(record)
            if record is None or before is None:
                return
            head = encode(variants.answers_also(before, key, confirmed, ask, self.keys))
            if head == record.head or self.store.rewrite_head(primary, head, record.head):
                return

    def after_head(self, exchange: Exchange, key: str, status: int, fields: FieldLines, times: Times) -> None:
        """Learn from an answer to HEAD what it says about the GET that is stored under `key`."""
        record = self.store.read(key)
        close(record)
        before = _stored(record)
        if record is None or before is None or not matches(before, exchange.ask, self.keys.secret):
            return
        after = validation.after_head(
            *(before, status, fields, exchange.ask, self.policy, self.keys),
            request_time=times.request,
            response_time=times.response,
        )
        if after is not None and not self._generations.is_outdated(self.uri(exchange), exchange.began):
            self.store.rewrite_head(key, encode(after), record.head)

    def invalidate(self, uris: Iterable[str]) -> None:
        """Drop all that is kept for `uris`, whoever asked for it, and what is under way."""
        for uri in uris:
            self._generations.change(uri)
            if not self.store.delete_under(uri) or self._is_being_outdated(uri):
                self._put_off(uri)

    def _put_off(self, uri: str) -> None:
        """Nothing under `uri` counts until it has been dropped."""
        if len(self._pending) >= _MOST_PENDING:
            self._pending.pop(next(iter(self._pending)), None)
        self._pending[uri] = object()

    def _is_being_outdated(self, uri: str) -> bool:
        """Whether an answer under `uri` is being stored that is outdated: it may come after what drops it."""
        writing = list(self._writing.values())
        return any(other == uri and self._generations.is_outdated(uri, began) for other, began in writing)

    def settle(self, uri: str) -> bool:
        """Whether nothing that was made invalid is left under `uri`: what could not be dropped is dropped now."""
        mark = self._pending.get(uri)
        if mark is None:
            return True
        if self._is_being_outdated(uri) or not self.store.delete_under(uri):
            return False
        if self._pending.get(uri) is mark:  # or it was made invalid anew
            self._pending.pop(uri, None)
        return True

    @property
    def has_pending(self) -> bool:
        """Whether `settle` may have work to do."""
        return bool(self._pending)


def with_asked(stored: Stored, ask: Ask) -> Stored:
    """`stored`, the answer to `ask`, with a note of what selected it, unless that may be a secret."""
    extra = {name: value for name, value in stored.extra.items() if name != "asked"}
    values = asked(stored.vary, ask) if stored.vary else None
    return stored._replace(extra=extra if values is None else {**extra, "asked": values})


def _stored(record: Record | None) -> Stored | None:
    return None if record is None else decode(record.head)
