"""A folder of CacheControl."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

import requests

from kreuz_sync import checks
from kreuz_sync.cache.dates import http_date
from kreuz_sync.cache.directives import directives
from kreuz_sync.cache.lines import first, lines, without
from kreuz_sync.cache.newcomer import UNREADABLE, Migrated, Newcomer, admit_all
from kreuz_sync.cache.stored import FieldLines
from kreuz_sync.cache.unpacking import unpack

from .fields import field_lines, text, texts

if TYPE_CHECKING:
    from kreuz_sync.cache.setting import Cache

_UNKNOWN_ASKER = "perhaps asked for with credentials (anonymous=True if none was)"
_UNKNOWN_URL = "of other URLs"
_CACHECONTROL = b"cc=4,"


def from_cachecontrol(
    folder: str | os.PathLike[str], cache: Cache, *, urls: Iterable[str], anonymous: bool = False
) -> Migrated:
    """Add the answers in a folder of CacheControl (`FileCache`, `SeparateBodyFileCache`) to `cache`.

    How many, and what was skipped. urls: those to look for. The folder has no URL in it, only a one-way digest of
    each. anonymous: none of them was asked for with credentials. The folder does not say; without this word, only what
    the origin itself calls `public` (or gives an `s-maxage`) is taken, and nothing that a heuristic has marked so.

    Raises NotADirectoryError if there is no such folder.
    """
    if isinstance(urls, str):
        raise TypeError(f"urls={urls!r}: a collection of URLs is wanted")
    name, is_sure = os.fspath(folder), checks.flag("anonymous", anonymous)
    if not os.path.isdir(name):
        raise NotADirectoryError(f"{name} is no folder")
    wanted = {_digest(prepared): prepared for url in urls if (prepared := _prepared(url))}
    return admit_all(cache, folder, _files(name, wanted, is_sure))


def _prepared(url: str) -> str:
    return urldefrag(requests.Request("GET", url).prepare().url or "")[0]


def _digest(url: str) -> str:
    return hashlib.sha224(url.encode()).hexdigest()


def _files(folder: str, wanted: Mapping[str, str], is_sure: bool) -> Iterator[Newcomer | str]:
    for at, _, names in os.walk(folder):
        for name in names:
            if re.fullmatch("[0-9a-f]{56}", name):
                url = wanted.get(name)
                yield _UNKNOWN_URL if url is None else _answer(os.path.join(at, name), url, is_sure)


def _answer(path: str, url: str, is_sure: bool) -> Newcomer | str:
    try:
        with open(path, "rb") as file:
            data = file.read()
        if not data.startswith(_CACHECONTROL):
            return UNREADABLE
        found = unpack(data[len(_CACHECONTROL) :])
        answer = found["response"]
        fields = tuple(field_lines(answer["headers"]))
        body = answer["body"] or _separate_body(path)
        length = first(fields, "content-length")
        if not isinstance(body, bytes) or (length is not None and length != str(len(body))):
            return UNREADABLE
        if not is_sure and not _is_for_all(fields):
            return _UNKNOWN_ASKER
        changed = os.stat(path).st_mtime
        made = http_date(first(fields, "date") or "", near=changed)
        return Newcomer(
            method="GET",
            url=url,
            asked=texts(found.get("vary") or {}),
            status=int(answer["status"]),
            reason=text(answer.get("reason") or ""),
            version=int(answer.get("version") or 11),
            fields=_of_origin(fields),
            body=body,
            response_time=changed if made is None else made,
            elapsed=0.0,
        )
    except (OSError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return UNREADABLE


def _is_for_all(fields: FieldLines) -> bool:
    """Whether the origin says that anybody may have an answer with `fields`, and not CacheControl.

    Its heuristics (`ExpiresAfter`, `OneDayCache`, those of a user) put `public` there themselves, in place of what the
    origin said: in lower case, and with a Warning unless that was switched off. Set-Cookie is somebody's.
    """
    said = directives(lines(fields, "cache-control"))
    if "private" in said or not ("public" in said or "s-maxage" in said):
        return False
    return not any(name == "cache-control" or name.lower() in ("warning", "set-cookie") for name, _ in fields)


def _of_origin(fields: FieldLines) -> FieldLines:
    """`fields` without those that a heuristic put in the place of the origin's."""
    if first(fields, "warning") is None:
        return fields
    return without(fields, ("cache-control", "expires", "warning"))


def _separate_body(path: str) -> bytes:
    try:
        with open(f"{path}.body", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
