"""What a user does with a cache by hand: list, get, delete, keep for longer, take along."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import requests

from kreuz_sync import checks

from .ask import Ask
from .counters import Statistics
from .decisions import Hit
from .finding import close
from .kept import Kept, kept_in
from .listing import CacheEntry, Wanted, cache_entry, kept_for_listing, uri_of
from .policy import Policy
from .store import CacheStore, Record, StoreTrouble
from .stored import decode, encode
from .variants import others_of

if TYPE_CHECKING:
    from kreuz_sync.clock import Clock
    from kreuz_sync.response import Response

    from .workings import Tools, Workings


class Handling:
    """The part of a `Cache` that is for its user.

    Raises StoreTrouble where the store cannot do its work now, unlike requests, which then go on
    without it. A listing goes through the store in pieces, least recently used first, while others
    use it.
    """

    store: CacheStore
    policy: Policy
    clock: Clock
    workings: Workings

    # --- looking ----------------------------------------------------------------------------

    def entries(self, **wanted: Any) -> Iterator[CacheEntry]:
        """What is stored: all of it, or what fits.

        url: a pattern as for `ttl_by_url`. host: one host. status: an HTTP status. older_than,
        younger_than: seconds of age. stale: True for what is not fresh any more, False for what is.
        """
        which = Wanted(**wanted)
        return (entry for entry, _ in self._each() if entry in which)

    def __iter__(self) -> Iterator[CacheEntry]:
        return self.entries()

    def __len__(self) -> int:
        """How many answers are stored."""
        return len(self.store)

    def __bool__(self) -> bool:
        """An empty cache is one too."""
        return True

    def __contains__(self, url: object) -> bool:
        """Whether an answer to a plain GET of `url` is stored, fresh or not."""
        return isinstance(url, str) and self.get(url) is not None

    def get(self, what: str | CacheEntry) -> Response | None:
        """The stored answer to a plain GET of a URL, or that of an entry; None if there is none.

        Fresh or not, and without a word to the origin.
        """
        from .replay import replay

        tools = self._tools()
        if isinstance(what, CacheEntry):
            key, url = what.key, what.url
        else:
            key, url = self._key_of(tools, what), what
        record = self.store.read(key)
        if record is None:
            return None
        kept = kept_in(record, self.policy, tools.keys.canonical(url))
        if kept is None or kept.entry is None:
            close(record)
            return None
        hit = Hit(kept.entry, kept.entry.age(self.clock.wall()), kept.stored.status)
        request = requests.Request("GET", url).prepare()
        response = replay(request, hit, kept, record.body, stream=False)
        response.content  # noqa: B018  # decodes it
        return response

    def volume(self) -> int:
        """Bytes of all that is stored."""
        return self.store.volume()

    @property
    def statistics(self) -> Statistics:
        """What happened since this cache was made, in this process."""
        return self.workings.counters.snapshot()

    def reset_statistics(self) -> None:
        """Begin the counts anew."""
        self.workings.counters.reset()

    # --- changing ---------------------------------------------------------------------------

    def delete(self, what: str | CacheEntry | None = None, **wanted: Any) -> int:
        """Drop answers; how many there were. An answer under way is not stored any more.

        what: a URL, with all its variants, whoever asked for it; or one entry. wanted: instead of
        that, what `entries` takes.
        """
        if (what is None) is not bool(wanted):
            raise TypeError("delete: either a URL or an entry is wanted, or what fits some of entries()'s arguments")
        tools = self._tools()
        if isinstance(what, str):
            uri = uri_of(self._key_of(tools, what))
            self.workings.generations.change(uri)
            return self.store.delete_under(uri)
        if what is not None:
            return self._delete(what)
        return sum(self._delete(entry) for entry in self.entries(**wanted))

    def _delete(self, entry: CacheEntry) -> int:
        self.workings.generations.change(uri_of(entry.key))
        record = self.store.read(entry.key)
        close(record)
        stored = None if record is None else decode(record.head)
        # Nothing would lead to its other variants any more.
        keys = [entry.key, *(other.key for other in others_of(stored))] if stored is not None else [entry.key]
        return sum(map(self.store.delete, keys))

    def update_ttl(self, seconds: float, **wanted: Any) -> int:
        """Keep answers for `seconds` from now (0: for ever), whatever they were stored for; how many.

        wanted: what `entries` takes. Raises ValueError under "rfc9111", where the origin decides.
        """
        if not self.policy.keeps_time:
            raise ValueError('update_ttl: under policy="rfc9111" the origin says how long an answer is fresh')
        seconds, which, count = checks.seconds("seconds", seconds), Wanted(**wanted), 0
        for entry, (record, kept) in self._each():
            if entry in which:
                stored = kept.stored
                # It counts from when the answer came.
                kept_for = seconds and seconds + max(0.0, self.clock.wall() - stored.response_time)
                extra = {name: value for name, value in stored.extra.items() if name != "outdated"}
                changed = stored._replace(kept_for=kept_for, extra={**extra, "pinned": True})
                count += self.store.rewrite_head(entry.key, encode(changed), record.head)
        return count

    def clear(self) -> int:
        """Drop all answers; how many there were."""
        self.workings.generations.clear()
        return self.store.clear()

    # --- taking along -----------------------------------------------------------------------

    def export(self, path: str | os.PathLike[str], **wanted: Any) -> int:
        """Write answers into a file that another cache can import; how many. See `archive.py` for its form.

        wanted: what `entries` takes. Answers that were asked for with credentials stay here, and so
        do those whose request cannot be told any more.
        """
        from .archive import is_portable, write

        which, tools = Wanted(**wanted), self._tools()
        pieces = (
            (kept.stored, record.body)
            for entry, (record, kept) in self._each()
            if entry in which and is_portable(entry.key, kept.stored, tools.keys)
        )
        return write(path, pieces)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the answers of a file that `export` wrote; how many. What is stored already is replaced.

        Raises ValueError for a file of another form, OSError for one that cannot be read.
        """
        from .archive import admit, read

        tools = self._tools()
        most = getattr(self, "max_entry_size", None)
        return sum(admit(tools, item, getattr(self, "key", None), most) for item in read(path))

    # --- what the others share --------------------------------------------------------------

    def _tools(self) -> Tools:
        tools = self.workings.tools()
        if tools is None:
            self.store.secret()  # raises what is wrong
            raise StoreTrouble("the store cannot be used now")
        return tools

    def _key_of(self, tools: Tools, url: str) -> str:
        """The key of a plain GET of `url`."""
        request = requests.Request("GET", checks.text("url", url)).prepare()
        function = getattr(self, "key", None)
        text = None if function is None else function(request)
        return tools.keys.primary(Ask("GET", request.url or url, {}), text) or ""

    def _each(self) -> Iterator[tuple[CacheEntry, tuple[Record, Kept]]]:
        """All entries. The record of each is closed when the next one is asked for."""
        now = self.clock.wall()
        for key in self.store.keys():
            record = self.store.read(key)
            if record is None:
                continue
            try:
                kept = kept_for_listing(record, self.policy)
                if kept is not None:
                    yield cache_entry(key, kept, now), (record, kept)
            finally:
                close(record)
