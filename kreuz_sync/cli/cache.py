"""`kreuz-sync cache`: look into the folder of a cache, and put it in order.

The folder's own settings are not in it. So an answer is shown as fresh for as long as it was stored for, and by its
origin's word if that decided; a URL is found by its key, or else by what a listing shows of it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import IO, Any

from kreuz_sync import checks
from kreuz_sync.cache import CacheEntry, DiskStore, StoreTrouble
from kreuz_sync.cache.uris import listed
from kreuz_sync.response import Response
from kreuz_sync.urls import host_of, redact_text

from .cache_folder import Shown, can_be_made_one, is_cache, is_somebodys, require_export
from .tables import line, plain, size, span, table

OK, FAILED, BAD_USAGE = 0, 1, 2  # exit codes


# --- the command ----------------------------------------------------------------------------


def cache(read: argparse.Namespace) -> int:
    """`kreuz-sync cache`: do what `read` says, and give the exit code."""
    is_new = read.verb == "import" and can_be_made_one(read.folder)
    if not is_new and not is_cache(read.folder):
        return _fail(f"{read.folder} is no folder of a cache", BAD_USAGE)
    try:
        if is_new:
            require_export(read.file)  # before there is a folder
        with_store = DiskStore(read.folder, max_entries=0, memory=0)
        try:
            return _VERBS[read.verb](Shown(with_store, ttl=0, max_entry_size=None), read)
        finally:
            with_store.close()
    except BrokenPipeError:  # `| head` has seen enough
        return FAILED
    except (TypeError, ValueError) as error:
        return _fail(str(error), BAD_USAGE)
    except (StoreTrouble, OSError) as error:
        return _fail(str(error), FAILED)


def _stats(cache: Shown, read: argparse.Namespace) -> int:
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


def _list(cache: Shown, read: argparse.Namespace) -> int:
    found = cache.entries(**_wanted(read))
    if read.json:
        for entry in found:
            line(json.dumps(_as_json(entry)))
        return OK
    rows = [_row(entry) for entry in found]
    if rows:
        table([("STATUS", "METHOD", "AGE", "FRESH", "SIZE", "TYPE", "FOR", "URL"), *rows], right={2, 3, 4})
    return OK


def _row(entry: CacheEntry) -> tuple[str, ...]:
    left = span(entry.ttl) if entry.fresh else "stale"
    whose = "somebody" if entry.for_somebody else "anybody"
    kind = entry.content_type or "-"
    return (str(entry.status), entry.method, span(entry.age), left, size(entry.size), kind, whose, entry.url)


def _as_json(entry: CacheEntry) -> dict[str, Any]:
    told = {name: value for name, value in entry._asdict().items() if name != "key"}
    return {**told, "ttl": entry.ttl if math.isfinite(entry.ttl) else None, "fresh": entry.fresh}


def _get(cache: Shown, read: argparse.Namespace) -> int:
    response = _found(cache, read)
    if response is None:
        return FAILED
    if read.out is None:
        sys.stdout.buffer.write(response.content)
        sys.stdout.buffer.flush()
    else:
        with open(read.out, "wb") as file:
            file.write(response.content)
    return OK


def _found(cache: Shown, read: argparse.Namespace) -> Response | None:
    """The answer that is meant, None where there is none. Says what there is instead, or besides."""
    url, is_get = plain(listed(read.url)), read.method == "GET"
    if is_get and not read.with_credentials and (response := cache.given(read.url)) is not None:
        return response
    entries = [entry for entry in cache.named(read.url) if entry.method == read.method]
    fitting = [entry for entry in entries if is_somebodys(entry) is read.with_credentials]
    answers = [response for entry in fitting if (response := cache.given(entry)) is not None]
    if not answers:
        others = len(entries) - len(fitting)
        instead = "without credentials: --with-credentials" if not read.with_credentials else "with credentials"
        _fail(f"no answer is stored for {url}" + (f" that was asked for {instead}" if others else ""), FAILED)
        return None
    if len(answers) > 1:
        _say(f"kreuz-sync cache: {len(answers)} answers are stored for {url}: this is the newest")
    return answers[0]


def _delete(cache: Shown, read: argparse.Namespace) -> int:
    wanted = _wanted(read)
    if bool(read.urls) is bool(wanted):
        return _fail("delete: either URLs are wanted, or some of the options that choose answers", BAD_USAGE)
    count = cache.delete(**wanted) if wanted else 0
    for url in read.urls:
        count += cache.delete(url) or sum(cache.delete(entry) for entry in cache.named(url))
    return _told("deleted", count)


def _clear(cache: Shown, read: argparse.Namespace) -> int:
    if not read.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            return _fail("clear: nobody is there to be asked: give --yes", BAD_USAGE)
        _say(f"Drop all {len(cache)} answers in {plain(read.folder)}? [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return _fail("nothing was dropped", FAILED)
    return _told("deleted", cache.clear())


def _export(cache: Shown, read: argparse.Namespace) -> int:
    return _told("written", cache.export(read.file, **_wanted(read)))


def _import(cache: Shown, read: argparse.Namespace) -> int:
    return _told("added", cache.load(read.file))


_VERBS: dict[str, Callable[[Shown, argparse.Namespace], int]] = {
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
    for name in ("status", "older_than", "younger_than"):
        if getattr(read, name) is not None:
            wanted[name] = getattr(read, name)
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
