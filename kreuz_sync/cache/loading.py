"""Reads what `archive.py` wrote, or somebody else did: it is taken for what anybody may have made.

What could not be an answer is an error; what this cache would not have stored is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import requests

from .archive import HEAD, NAME, VERSION, WANTED
from .ask import Ask
from .decisions import Hit
from .kept import Kept
from .lines import lines
from .replay import replay
from .store import Body
from .stored import FieldLines, Stored, are_fields, encode, is_sound
from .storing import refusal, to_store

if TYPE_CHECKING:
    from zipfile import ZipFile

    from .setting import Cache
    from .workings import Tools

_MOST_JSON = 2**20  # bytes
_PIECE = 2**18  # bytes


class Item(NamedTuple):
    """An answer on its way into a store. See the head of archive.py; size: bytes of the body, which `open` gives."""

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
    open: Callable[[], BinaryIO]


def read(path: str | os.PathLike[str]) -> Iterator[Item]:
    """The answers in the file at `path`. Raises ValueError for a file of another form, or a damaged one."""
    from zipfile import ZipFile

    try:
        with ZipFile(path) as archive:
            head = _json(archive, HEAD)
            if head.get("format") != NAME or head.get("version") != VERSION:
                raise ValueError(f"{os.fspath(path)} is no export of a cache, or one of another version")
            for name in archive.namelist():
                number, dot, kind = name.partition(".")
                if dot and kind == "json" and number.isdecimal():
                    yield _item(archive, _json(archive, name), f"{number}.body")
    except (ValueError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(path, error) from error
    except Exception as error:  # what a damaged archive makes of its reader is anything
        raise _damaged(path, error) from error


def _damaged(path: str | os.PathLike[str], error: Exception) -> ValueError:
    return ValueError(f"{os.fspath(path)} is no export of a cache: {error or type(error).__name__}")


def _json(archive: ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MOST_JSON:
        raise ValueError(f"{name} is larger than any answer's fields")
    found = json.loads(archive.read(name))
    if not isinstance(found, dict):
        raise ValueError(f"{name} holds no object")
    return found


def _item(archive: ZipFile, found: dict[str, Any], body: str) -> Item:
    missing = [name for name in WANTED if name not in found]
    if missing:
        raise ValueError(f"an answer has no {', '.join(missing)}")
    asked, fields = found["asked"], tuple([(name, value) for name, value in found["fields"]])
    lines_asked = tuple((name, value or "") for name, value in asked.items())
    if not are_fields(fields + lines_asked):
        raise ValueError("what should be fields of an answer, or of its request, is none")
    url, kept_for = found["url"], found.get("kept_for")
    requests.Request("GET", url).prepare()  # raises ValueError for what is no URL
    item = Item(
        url=url,
        status=found["status"],
        reason=found["reason"],
        version=found["version"],
        fields=fields,
        asked=asked,
        request_time=found["request_time"],
        response_time=found["response_time"],
        elapsed=found.get("elapsed") or 0.0,
        kept_for=kept_for,
        pinned=bool(found.get("pinned")),
        size=archive.getinfo(body).file_size,
        open=partial(archive.open, body),  # type: ignore[arg-type]
    )
    if not is_sound(_bare(item)):
        raise ValueError(f"the answer from {url} has a value that no answer has")
    said = {value.strip(" \t") for line in lines(fields, "content-length") for value in line.split(",")}
    if said not in (set(), {str(item.size)}) and item.status not in (204, 304):
        raise ValueError(f"the answer from {url} has a body of another length than its fields say")
    return item


def _bare(item: Item) -> Stored:
    """The head for `item`, without what the rules of a cache add."""
    times = (item.request_time, item.response_time, item.elapsed)
    return Stored(
        *("GET", item.url, item.status, item.reason, item.version, item.fields, (), "", *times),
        *(item.kept_for, item.size, {}),
    )


def admit(cache: Cache, tools: Tools, item: Item) -> bool:
    """Put an answer into the store, as if it had just come, at the time when it came; whether that was done.

    It is not where a newer one is there.
    """
    if cache.max_entry_size is not None and item.size > cache.max_entry_size:
        return False
    asked = {name: value for name, value in item.asked.items() if value is not None}
    ask, request = Ask("GET", item.url, asked), requests.Request("GET", item.url, headers=asked).prepare()
    text = None if cache.key is None else cache.text_for(request)
    if cache.key is not None and text is None:
        return False
    key = tools.keys.primary(ask, text)
    if key is None or "." in key:  # asked for with credentials, and whose nobody knows
        return False
    received = min(item.response_time, cache.clock.wall())
    if refusal(ask, item.status, item.fields, cache.policy, tools.keys, received=received) is not None:
        return False
    stored = _head(cache, tools, ask, item, received)
    _read_through(item)
    if tools.keeper.has_newer(tools.keeper.key_for(key, stored), stored):
        return False
    if cache.store_if is not None and not _is_wanted(cache, request, stored, item):
        return False
    with item.open() as body:
        return tools.keeper.put(key, stored, _body(body, item.size)) is not None


def _head(cache: Cache, tools: Tools, ask: Ask, item: Item, received: float) -> Stored:
    stored = to_store(
        *(ask, item.status, item.reason, item.version, item.fields, cache.policy, tools.keys),
        request_time=min(item.request_time, received),
        response_time=received,
        elapsed=item.elapsed,
    )
    extra: dict[str, Any] = {"asked": item.asked} if stored.vary else {}
    if item.pinned:
        extra["pinned"] = True
    return stored._replace(kept_for=item.kept_for, size=item.size, extra=extra)


def _read_through(item: Item) -> None:
    """Raises ValueError if the body is damaged: while it is being stored it would look as if the store failed."""
    size = 0
    try:
        with item.open() as body:
            while piece := body.read(_PIECE):
                size += len(piece)
    except Exception as error:
        raise ValueError(f"the body of the answer from {item.url} is damaged: {error}") from error
    if size != item.size:
        raise ValueError(f"the body of the answer from {item.url} is damaged")


def _body(body: BinaryIO, size: int) -> Body:
    return body.read() if size <= _PIECE else body


def _is_wanted(cache: Cache, request: requests.PreparedRequest, stored: Stored, item: Item) -> bool:
    kept = Kept(encode(stored), stored, cache.policy, request.url or stored.url)
    if kept.entry is None:
        return False
    hit = Hit(kept.entry, 0.0, stored.status)
    with item.open() as body, replay(request, hit, kept, _body(body, item.size), stream=True) as response:
        return cache.workings.rule.allows(request, response)
