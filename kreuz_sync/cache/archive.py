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
anew when it is read. What was asked for with credentials cannot be taken along.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import requests

from .ask import Ask
from .keys import Keys
from .lines import lines
from .selecting import variant_of, vary_names
from .store import Body
from .stored import FieldLines, Stored

if TYPE_CHECKING:
    from zipfile import ZipFile

    from .setting import KeyFunction
    from .workings import Tools

NAME, VERSION = "kreuz-sync cache", 1
_HEAD = "cache.json"
_MOST_JSON = 2**20  # bytes
_REDACTED = "REDACTED"
# Fields that select an answer and say nothing about who asks: their values may be written down.
PLAIN_FIELDS = frozenset(
    "accept accept-charset accept-encoding accept-language dnt origin save-data user-agent "
    "upgrade-insecure-requests x-requested-with".split()
)
_WANTED = ("method", "url", "status", "reason", "version", "fields", "asked", "request_time", "response_time")


class Item(NamedTuple):
    """An answer on its way into a store. See the head of this file; size: bytes of the body."""

    url: str
    status: int
    reason: str
    version: int
    fields: FieldLines
    asked: dict[str, str | None]
    request_time: float
    response_time: float
    elapsed: float
    kept_for: float | None
    pinned: bool
    size: int
    body: Body


def asked(vary: Iterable[str], ask: Ask) -> dict[str, str | None] | None:
    """The values of `ask` for the fields in `vary`, None if one of them may be a secret."""
    names = list(vary)
    return {name: ask.get(name) for name in names} if PLAIN_FIELDS.issuperset(names) else None


def is_portable(key: str, stored: Stored, keys: Keys) -> bool:
    """Whether the key of `stored`, which is under `key`, could be made anew elsewhere."""
    if key[32:33] not in ("", "~") or _REDACTED in keys.canonical(stored.url):
        return False
    return not stored.vary or isinstance(stored.extra.get("asked"), dict)


def write(path: str | os.PathLike[str], pieces: Iterable[tuple[Stored, Body]]) -> int:
    """Write answers into the file at `path`; how many. What was there is replaced once all is written."""
    from zipfile import ZIP_DEFLATED, ZipFile

    count = 0
    made = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with ZipFile(made, "w", ZIP_DEFLATED) as archive:
            archive.writestr(_HEAD, json.dumps({"format": NAME, "version": VERSION}))
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
    wanted = {name: named[name] for name in (*_WANTED, "elapsed", "kept_for") if name in named}
    return {**wanted, "asked": stored.extra.get("asked") or {}, "pinned": "pinned" in stored.extra}


def read(path: str | os.PathLike[str]) -> Iterator[Item]:
    """The answers in the file at `path`. Raises ValueError for a file of another form."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            head = _json(archive, _HEAD)
            if head.get("format") != NAME or head.get("version") != VERSION:
                raise ValueError(f"{os.fspath(path)} is no export of a cache, or one of another version")
            for name in archive.namelist():
                number, dot, kind = name.partition(".")
                if dot and kind == "json" and number.isdecimal():
                    info = archive.getinfo(f"{number}.body")
                    with archive.open(info) as member:
                        yield _item(_json(archive, name), info.file_size, member)  # type: ignore[arg-type]
    except (BadZipFile, KeyError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)} is no export of a cache: {error}") from error


def _json(archive: ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MOST_JSON:
        raise ValueError(f"{name} is larger than any answer's fields")
    found = json.loads(archive.read(name))
    if not isinstance(found, dict):
        raise ValueError(f"{name} holds no object")
    return found


def _item(found: dict[str, Any], size: int, body: BinaryIO) -> Item:
    missing = [name for name in _WANTED if name not in found]
    if missing:
        raise ValueError(f"an answer has no {', '.join(missing)}")
    if not isinstance(found["asked"], dict):
        raise ValueError("the values that an answer was asked for with are no object")
    kept_for = found.get("kept_for")
    return Item(
        url=str(found["url"]),
        status=int(found["status"]),
        reason=str(found["reason"]),
        version=int(found["version"]),
        fields=tuple((str(name), str(value)) for name, value in found["fields"]),
        asked={str(name): None if value is None else str(value) for name, value in found["asked"].items()},
        request_time=float(found["request_time"]),
        response_time=float(found["response_time"]),
        elapsed=float(found.get("elapsed") or 0.0),
        kept_for=None if kept_for is None else float(kept_for),
        pinned=bool(found.get("pinned")),
        size=size,
        body=body,
    )


def admit(tools: Tools, item: Item, key_function: KeyFunction | None, most: int | None) -> bool:
    """Put an answer into the store; whether it is there now. most: bytes of a body."""
    vary = vary_names(lines(item.fields, "vary"))
    if vary is None or (most is not None and item.size > most):
        return False
    ask = Ask("GET", item.url, {name: value for name, value in item.asked.items() if value is not None})
    text = None if key_function is None else key_function(requests.Request("GET", item.url).prepare())
    key = None if key_function is not None and text is None else tools.keys.primary(ask, text)
    if key is None:
        return False
    extra: dict[str, Any] = {"asked": item.asked} if vary else {}
    stored = Stored(
        method="GET",
        url=tools.keys.listed(item.url),
        status=item.status,
        reason=item.reason,
        version=item.version,
        fields=item.fields,
        vary=vary,
        variant=variant_of(vary, ask, tools.keys.secret),
        request_time=item.request_time,
        response_time=item.response_time,
        elapsed=item.elapsed,
        kept_for=item.kept_for,
        size=item.size,
        extra={**extra, "pinned": True} if item.pinned else extra,
    )
    return tools.keeper.put(key, stored, item.body) is not None
