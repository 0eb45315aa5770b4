"""`kreuz-sync cache`: look into the folder of a cache, and put it in order.

The folder's own settings are not in it. So an answer is shown as fresh for as long as it was stored for, and by its
origin's word if that decided; a URL is found by its key, or else by what a listing shows of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

from kreuz_sync import checks
from kreuz_sync.cache import Cache, CacheEntry, DiskStore, Policy, StoreTrouble
from kreuz_sync.cache.kept import Kept
from kreuz_sync.cache.listing import cache_entry
from kreuz_sync.cache.store import Record
from kreuz_sync.cache.uris import listed
from kreuz_sync.response import Response
from kreuz_sync.urls import host_of, redact_text

from .tables import line, plain, size, span, table

OK, FAILED, BAD_USAGE = 0, 1, 2  # exit codes


# --- the command ----------------------------------------------------------------------------


def cache(read: argparse.Namespace) -> int:
    """`kreuz-sync cache`: do what `read` says, and give the exit code."""
    if not is_cache(read.folder):
        return _fail(f"{read.folder} is no folder of a cache", BAD_USAGE)
    try:
        with_store = DiskStore(read.folder, max_entries=0, memory=0)
        try:
            return _VERBS[read.verb](_Shown(with_store, ttl=0, max_entry_size=None), read)
        finally:
            with_store.close()
    except BrokenPipeError:  # `| head` has seen enough
        return FAILED
    except (TypeError, ValueError) as error:
        return _fail(str(error), BAD_USAGE)
    except (StoreTrouble, OSError) as error:
        return _fail(str(error), FAILED)


def is_cache(folder: str) -> bool:
    """Whether `folder` holds a cache. Changes nothing: opening another folder would make one of it."""
    import sqlite3
    from contextlib import closing
    from urllib.request import pathname2url

    from kreuz_sync.cache.folder.connect import DATABASE

    path = os.path.join(os.path.abspath(folder), DATABASE)
    if not os.path.isfile(path):
        return False
    try:
        with closing(sqlite3.connect(f"file:{pathname2url(path)}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return {"Cache", "Settings"} <= found


class _Shown(Cache):
    """Every answer by the policy that it was stored under."""

    _RFC9111 = Policy("rfc9111")

    def _each(self) -> Iterator[tuple[CacheEntry, tuple[Record, Kept]]]:
        for entry, (record, kept) in super()._each():
            stored = kept.stored
            if stored.kept_for is None and "pinned" not in stored.extra:
                by_origin = Kept(record.head, stored, self._RFC9111, stored.url)
                yield cache_entry(entry.key, by_origin, self.clock.wall()), (record, by_origin)
            else:
                yield entry, (record, kept)

    def by_rfc9111(self) -> Cache:
        """The same answers, for one that only this policy stores."""
        return Cache(self.store, policy=self._RFC9111, max_entry_size=None)

    def named(self, url: str) -> list[CacheEntry]:
        """Those that a listing shows under `url`."""
        return [entry for entry in self if entry.url == listed(url)]


def _stats(cache: _Shown, read: argparse.Namespace) -> int:
    hosts: dict[str, list[int]] = {}  # answers, stale ones, bytes of bodies
    somebodys, oldest = 0, 0.0
    for entry in cache:
        somebodys += entry.for_somebody
        oldest = max(oldest, entry.age)
        counts = hosts.setdefault(entry.host, [0, 0, 0])
        for place, value in enumerate((1, not entry.fresh, entry.size)):
            counts[place] += value
    answers, stale, body = (sum(counts[place] for counts in hosts.values()) for place in range(3))
    found: dict[str, Any] = {
        "answers": answers,
        "fresh": answers - stale,
        "stale": stale,
        "with_credentials": somebodys,
    }
    found |= {"bytes": cache.volume(), "body_bytes": body, "oldest_age": round(oldest, 3)}
    if read.json:
        by_host = {
            host: dict(zip(("answers", "stale", "body_bytes"), counts, strict=True)) for host, counts in hosts.items()
        }
        line(json.dumps({**found, "hosts": by_host}))
        return OK
    shown = {"bytes": size(cache.volume()), "body_bytes": size(body), "oldest_age": span(oldest)}
    table([(name.replace("_", " "), str(shown.get(name, value))) for name, value in found.items()])
    if hosts:
        most = sorted(hosts.items(), key=lambda item: (-item[1][2], item[0]))
        line("")
        rows = [(host, str(count), str(old), size(body)) for host, (count, old, body) in most]
        table([("HOST", "ANSWERS", "STALE", "BODIES"), *rows], right={1, 2, 3})
    return OK


def _list(cache: _Shown, read: argparse.Namespace) -> int:
    found = cache.entries(**_wanted(read))
    if read.json:
        for entry in found:
            line(json.dumps(_as_json(entry)))
        return OK
    rows = [
        (str(e.status), span(e.age), span(e.ttl) if e.fresh else "stale", size(e.size), e.content_type or "-", e.url)
        for e in found
    ]
    if rows:
        table([("STATUS", "AGE", "FRESH", "SIZE", "TYPE", "URL"), *rows], right={1, 2, 3})
    return OK


def _as_json(entry: CacheEntry) -> dict[str, Any]:
    told = {name: value for name, value in entry._asdict().items() if name != "key"}
    return {**told, "ttl": entry.ttl if math.isfinite(entry.ttl) else None, "fresh": entry.fresh}


def _get(cache: _Shown, read: argparse.Namespace) -> int:
    response = _found(cache, read.url)
    if response is None:
        return _fail(f"no answer is stored for {plain(listed(read.url))}", FAILED)
    if read.out is None:
        sys.stdout.buffer.write(response.content)
        sys.stdout.buffer.flush()
    else:
        with open(read.out, "wb") as file:
            file.write(response.content)
    return OK


def _found(cache: _Shown, url: str) -> Response | None:
    caches = (cache, cache.by_rfc9111())
    for one in caches:
        if (response := one.get(url)) is not None:
            return response
    for entry in cache.named(url):
        for one in caches:
            if entry.method == "GET" and (response := one.get(entry)) is not None:
                return response
    return None


def _delete(cache: _Shown, read: argparse.Namespace) -> int:
    wanted = _wanted(read)
    if bool(read.urls) is bool(wanted):
        return _fail("delete: either URLs are wanted, or --url, --host, --stale or --older-than", BAD_USAGE)
    count = cache.delete(**wanted) if wanted else 0
    for url in read.urls:
        count += cache.delete(url) or sum(cache.delete(entry) for entry in cache.named(url))
    return _told("deleted", count)


def _clear(cache: _Shown, read: argparse.Namespace) -> int:
    if not read.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            return _fail("clear: nobody is there to be asked: give --yes", BAD_USAGE)
        _say(f"Drop all {len(cache)} answers in {plain(read.folder)}? [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return _fail("nothing was dropped", FAILED)
    return _told("deleted", cache.clear())


def _export(cache: _Shown, read: argparse.Namespace) -> int:
    return _told("written", cache.export(read.file, **_wanted(read)))


def _import(cache: _Shown, read: argparse.Namespace) -> int:
    return _told("added", cache.load(read.file))


_VERBS: dict[str, Callable[[_Shown, argparse.Namespace], int]] = {
    "stats": _stats,
    "list": _list,
    "get": _get,
    "delete": _delete,
    "clear": _clear,
    "export": _export,
    "import": _import,
}


def _wanted(read: argparse.Namespace) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    if read.pattern is not None:
        wanted["url"] = checks.text("--url", read.pattern)
    if read.host is not None:
        if not host_of(f"//{read.host}"):
            raise ValueError(f"--host {read.host!r}: a host is wanted, as example.com")
        wanted["host"] = read.host
    if read.stale:
        wanted["stale"] = True
    if read.older_than is not None:
        wanted["older_than"] = read.older_than
    return wanted


# --- what it says ---------------------------------------------------------------------------


def _told(what: str, count: int) -> int:
    _say(f"{count} {'answer' if count == 1 else 'answers'} {what}\n", end="")
    return OK


def _fail(text: str, code: int) -> int:
    _say(f"kreuz-sync cache: {plain(redact_text(text))}")
    return code


def _say(text: str, end: str = "\n") -> None:
    stream: IO[str] | None = sys.stderr
    if stream is not None:
        stream.write(text + end)
        stream.flush()
