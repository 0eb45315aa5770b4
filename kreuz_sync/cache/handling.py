"""What a user does with a cache by hand: list, get, delete, keep for longer, take along."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import requests

from kreuz_sync import checks

from . import status
from .ask import Ask
from .counters import Statistics
from .decisions import Hit
from .finding import close
from .kept import Kept, kept_in
from .listing import CacheEntry, Wanted, cache_entry, kept_for_listing, uri_of
from .patterns import Pattern
from .policy import Policy, Seconds, in_seconds
from .store import CacheStore, Record, StoreTrouble
from .stored import decode, encode
from .variants import others_of

if TYPE_CHECKING:
    from kreuz_sync.clock import Clock
    from kreuz_sync.response import Response

    from .setting import Cache
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

    def entries(self, url: Pattern | None = None, **wanted: Any) -> Iterator[CacheEntry]:
        """What is stored: all of it, or what fits.

        url: a pattern as for `ttl_by_url`. host: one host. status: an HTTP status. older_than,
        younger_than: seconds of age. stale: True for what is not fresh any more, False for what is.
        """
        which = Wanted(url=url, **wanted)
        return (entry for entry, _ in self._each(bodies=False) if entry in which)

    def __iter__(self) -> Iterator[CacheEntry]:
        return self.entries()

    def __len__(self) -> int:
        """How many answers are stored."""
        return len(self.store)

    def __bool__(self) -> bool:
        """An empty cache is one too."""
        return True

    def __contains__(self, url: object) -> bool:
        """Whether an answer to a plain GET of `url` is stored, fresh or not. Its body is not read."""
        if not isinstance(url, str):
            return False
        tools = self._tools()
        try:
            key = self._key_of(tools, url)
        except (requests.exceptions.RequestException, ValueError):  # what is no URL was never asked for
            return False
        found = self._whole(tools, key, url)
        if found is None:
            return False
        close(found[0])
        return True

    def get(self, what: str | CacheEntry) -> Response | None:
        """The stored answer to a plain GET of a URL, or that of an entry; None if there is none.

        Fresh or not, and without a word to the origin. A plain GET has no credentials, not even a
        session's own: what was asked for with them is found among the `entries`.
        """
        from .replay import replay

        tools = self._tools()
        if isinstance(what, CacheEntry):
            found, url = self._kept(tools, what.key, what.url), what.url
        else:
            found, url = self._whole(tools, self._key_of(tools, what), what), what
        if found is None:
            return None
        record, kept = found
        assert kept.entry is not None
        hit = Hit(kept.entry, kept.entry.age(self.clock.wall()), kept.stored.status)
        request = requests.Request("GET", url).prepare()
        response = replay(request, hit, kept, record.body, stream=False)
        response.content  # noqa: B018  # decodes it
        response.cache_status = status.appended(kept.told, status.hit(hit))
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
        if not isinstance(what, str | CacheEntry | None):
            raise TypeError(f"delete: {what!r}: the text of a URL is wanted, or an entry")
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

    def update_ttl(self, seconds: Seconds, url: Pattern | None = None, **wanted: Any) -> int:
        """Keep answers for `seconds` from now (0: for ever), whatever they were stored for; how many.

        url, wanted: what `entries` takes. Raises ValueError under "rfc9111", where the origin decides.
        """
        if not self.policy.keeps_time:
            raise ValueError('update_ttl: under policy="rfc9111" the origin says how long an answer is fresh')
        seconds, which, count = in_seconds("seconds", seconds), Wanted(url=url, **wanted), 0
        for entry, (record, kept) in self._each(bodies=False):
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

    def export(self, path: str | os.PathLike[str], url: Pattern | None = None, **wanted: Any) -> int:
        """Write answers into a file that another cache can import; how many. See `archive.py` for its form.

        url, wanted: what `entries` takes. Answers that were asked for with credentials stay here, and so
        do those whose request cannot be told any more.
        """
        from .archive import is_portable, write

        which, tools = Wanted(url=url, **wanted), self._tools()
        pieces = (
            (kept.stored, record.body)
            for entry, (record, kept) in self._each()
            if entry in which and is_portable(entry.key, kept.stored, tools.keys)
        )
        return write(path, pieces)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the answers of a file that `export` wrote; how many. None takes the place of one that came no earlier.

        Raises ValueError for a file of another form, OSError for one that cannot be read.
        """
        from .loading import admit, read

        tools, cache = self._tools(), cast("Cache", self)
        return sum(admit(cache, tools, item) for item in read(path))

    # --- what the others share --------------------------------------------------------------

    def _tools(self) -> Tools:
        tools = self.workings.tools()
        if tools is None:
            self.store.secret()  # raises what is wrong
            raise StoreTrouble("the store cannot be used now")
        return tools

    def _kept(self, tools: Tools, key: str, url: str) -> tuple[Record, Kept] | None:
        """What is stored under `key` and of use; whoever asks for it closes the record."""
        record = self.store.read(key)
        if record is None:
            return None
        kept = kept_in(record, self.policy, tools.keys.canonical(url))
        if kept is None or kept.entry is None:
            close(record)
            return None
        return record, kept

    def _whole(self, tools: Tools, key: str, url: str) -> tuple[Record, Kept] | None:
        """The same, unless it is a part of an answer."""
        found = self._kept(tools, key, url)
        if found is not None and found[1].entry is not None and found[1].entry.held is not None:
            close(found[0])
            return None
        return found

    def _key_of(self, tools: Tools, url: str) -> str:
        """The key of a plain GET of `url`."""
        request = requests.Request("GET", checks.text("url", url)).prepare()
        cache = cast("Cache", self)
        text = None if cache.key is None else cache.text_for(request)
        return tools.keys.primary(Ask("GET", request.url or url, {}), text) or ""

    def _each(self, *, bodies: bool = True) -> Iterator[tuple[CacheEntry, tuple[Record, Kept]]]:
        """All entries, with `bodies` or without. The record of each is closed when the next one is asked for."""
        now = self.clock.wall()
        for key, record in self.store.records(bodies=bodies):
            try:
                kept = kept_for_listing(record, self.policy)
                if kept is not None:
                    yield cache_entry(key, kept, now), (record, kept)
            finally:
                close(record)
