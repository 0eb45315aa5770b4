"""Stored answers in a file that another cache, or another program, can read.

It is a ZIP file. `cache.json` in it says `{"format": "kreuz-sync cache", "version": 1}`. The answers are
numbered; each is two members, `NUMBER.json` and `NUMBER.body`:

- The body, byte for byte as it was on the wire, in its Content-Encoding.
- An object: `method`, `url`, `status`, `reason`, `version` (11 is HTTP/1.1), `fields` (pairs in the
  order received, several of one name apart), `asked` (the request's values of the fields that Vary
  names, null for one it did not have), `request_time` and `response_time` (Unix seconds),
  `elapsed` and `kept_for` (seconds, the latter null where the origin decides), `pinned` (whether
  `kept_for` was set by hand).

The keys of a store are made with a secret of its own, so they are not in the file: they are made
anew when it is read (loading.py). What was asked for with credentials cannot be taken along.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from typing import Any

from .ask import Ask
from .keys import Keys
from .parts import PARTIAL
from .store import Body
from .stored import Stored

NAME, VERSION = "kreuz-sync cache", 1
HEAD = "cache.json"
_REDACTED = "REDACTED"
# Fields that select an answer and say nothing about who asks: their values may be written down.
PLAIN_FIELDS = frozenset(
    "accept accept-charset accept-encoding accept-language dnt origin save-data user-agent "
    "upgrade-insecure-requests x-requested-with".split()
)
WANTED = ("method", "url", "status", "reason", "version", "fields", "asked", "request_time", "response_time")


def asked(vary: Iterable[str], ask: Ask) -> dict[str, str | None] | None:
    """The values of `ask` for the fields in `vary`, None if one of them may be a secret."""
    names = list(vary)
    return {name: ask.get(name) for name in names} if PLAIN_FIELDS.issuperset(names) else None


def is_portable(key: str, stored: Stored, keys: Keys) -> bool:
    """Whether `stored`, which is under `key`, is whole, and its key could be made anew elsewhere."""
    if stored.status == PARTIAL or "unverified" in stored.extra or key[32:33] not in ("", "~"):
        return False
    if _REDACTED in keys.canonical(stored.url):
        return False
    return not stored.vary or isinstance(stored.extra.get("asked"), dict)


def write(path: str | os.PathLike[str], pieces: Iterable[tuple[Stored, Body]]) -> int:
    """Write answers into the file at `path`; how many. What was there is replaced once all is written."""
    from zipfile import ZIP_DEFLATED, ZipFile

    count = 0
    made = f"{os.fspath(path)}.{os.urandom(4).hex()}.part"
    try:
        # Pages are for their owner's eyes, here as in the store.
        try:
            file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:  # of a file that nobody has named
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        with open(file, "w+b") as target, ZipFile(target, "w", ZIP_DEFLATED) as archive:
            archive.writestr(HEAD, json.dumps({"format": NAME, "version": VERSION}))
            for count, (stored, body) in enumerate(pieces, start=1):
                archive.writestr(f"{count}.json", json.dumps(_portable(stored), ensure_ascii=False))
                with archive.open(f"{count}.body", "w", force_zip64=True) as member:
                    if isinstance(body, bytes):
                        member.write(body)
                    else:
                        shutil.copyfileobj(body, member, 2**18)
        os.replace(made, path)
    finally:
        if os.path.exists(made):
            os.unlink(made)
    return count


def _portable(stored: Stored) -> dict[str, Any]:
    named = stored._asdict()
    wanted = {name: named[name] for name in (*WANTED, "elapsed", "kept_for") if name in named}
    return {**wanted, "asked": stored.extra.get("asked") or {}, "pinned": "pinned" in stored.extra}
