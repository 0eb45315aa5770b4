"""What changes in the store after an answer came: it is kept, freshened, or made invalid."""

from __future__ import annotations

from collections.abc import Iterable

from . import validation, variants
from .archive import asked
from .ask import Ask
from .exchange import Exchange, Times
from .finding import Finder, close
from .generations import Generations
from .kept import Kept
from .policy import Policy
from .store import Body, Record
from .stored import FieldLines, Stored, decode, encode
from .validation import Nominee

_TRIES = 3  # at a list of variants that others change at the same moment
_MOST_PENDING = 10_000


class Keeper:
    """Writes to the store that `finder` reads, unless what is to be written is outdated by now.

    The order of steps makes up for the lock that is not held: an invalidation is noted first and
    carried out then; whoever writes looks for one before the write and after it.
    """

    def __init__(self, finder: Finder, generations: Generations) -> None:
        self.store = finder.store
        self.keys = finder.keys
        self.policy: Policy = finder.policy
        self._generations = generations
        # Invalidations that the store could not carry out. Each step on a dict is atomic.
        self._pending: dict[str, None] = {}

    def uri(self, exchange: Exchange) -> str:
        """What the keys of all that is kept for the URI of `exchange` begin with."""
        text = exchange.text
        return self.keys.uri(self.keys.canonical(exchange.ask.url) if text is None else text)

    def keep(self, exchange: Exchange, stored: Stored, body: Body) -> bool:
        """Store an answer to `exchange`; whether it was stored."""
        uri = self.uri(exchange)
        if self._generations.is_outdated(uri, exchange.began) or not self.settle(uri):
            return False
        key = self.put(exchange.key, stored, body)
        if key is not None and self._generations.is_outdated(uri, exchange.began):
            self.store.delete(key)
            return False
        return key is not None

    def put(self, primary: str, stored: Stored, body: Body) -> str | None:
        """Store an answer whose primary key is `primary`; the key that it is under now, None if it was not written."""
        before = self.store.read(primary) if stored.vary else None
        place = variants.place(stored, _stored(before), primary, self.keys)
        close(before)
        if not self.store.write(place.key, encode(place.stored), body):
            return None
        if place.primary is not None and not self._list(primary, stored, before):
            self.store.delete(place.key)  # nothing leads to it
            return None
        return place.key

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
        if record is None or before is None:
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
            if not self.store.delete_under(uri):
                if len(self._pending) >= _MOST_PENDING:
                    self._pending.pop(next(iter(self._pending)), None)
                self._pending[uri] = None

    def settle(self, uri: str) -> bool:
        """Whether nothing that was made invalid is left under `uri`: what could not be dropped is dropped now."""
        if uri not in self._pending:
            return True
        if not self.store.delete_under(uri):
            return False
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
