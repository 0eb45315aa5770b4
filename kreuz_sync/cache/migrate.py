"""Takes along what other caches stored: a SQLite file of requests-cache, or a folder of CacheControl.

What is stored goes by the rules of the cache that takes it, as if it had come just then, at the time when it came:
what may not be stored is not, and nor is what was asked for with credentials. Nothing is unpickled unless the user
says that the file can be trusted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

import requests

from kreuz_sync import checks

from .dates import http_date
from .directives import directives
from .lines import first, lines
from .newcomer import UNREADABLE, Migrated, Newcomer, admit_all
from .stored import FieldLines
from .unpacking import NotPlain, plain_pickle, unpack

if TYPE_CHECKING:
    import sqlite3

    from .setting import Cache

_PICKLED = "pickled (trust_pickle=True reads them, and runs whatever is in them)"
_MAYBE_CODED = "in a Content-Encoding that may not have been undone"
_UNKNOWN_ASKER = "perhaps asked for with credentials (anonymous=True if none was)"
_UNKNOWN_URL = "of other URLs"

# A comma between two cookies, and not one inside of a date.
_BETWEEN_COOKIES = re.compile(r",[ \t]*(?=[!#$%&'*+.^_`|~0-9A-Za-z-]+=)")
_BREAK = re.compile("[\r\n\0]")
_ALWAYS_DECODED = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})  # by urllib3, without further packages


# --- requests-cache -------------------------------------------------------------------------


def from_requests_cache(path: str | os.PathLike[str], cache: Cache, *, trust_pickle: bool = False) -> Migrated:
    """Add the answers of a SQLite file of requests-cache to `cache`; how many, and what was skipped.

    Rows in its JSON are read, and pickled rows of plain data, as its version 1.3 writes them, without unpickling.
    trust_pickle: unpickle other rows, which runs whatever code is in them; needs the packages that they name.
    Redirects are taken as answers of their own. How long an answer stays fresh is `cache`'s to say.

    Raises ValueError for a file that is none of requests-cache, OSError for one that cannot be read.
    """
    checks.flag("trust_pickle", trust_pickle)
    return admit_all(cache, path, _rows(os.fspath(path), trust_pickle))


def _rows(path: str, trust_pickle: bool) -> Iterator[Newcomer | str]:
    import sqlite3
    from contextlib import closing
    from urllib.request import pathname2url

    with open(path, "rb"):  # says what is wrong in words of the file system
        pass
    # Read-only: neither a missing file nor a table of its own may come about.
    address = f"file:{pathname2url(os.path.abspath(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            yield from _answers(connection, trust_pickle)
    except sqlite3.Error as error:
        raise ValueError(f"{path} cannot be read as a SQLite file of requests-cache: {error}") from error


def _answers(connection: sqlite3.Connection, trust_pickle: bool) -> Iterator[Newcomer | str]:
    for (value,) in connection.execute("SELECT value FROM responses"):
        found = _loaded(value, trust_pickle)
        if isinstance(found, str):
            yield found
            continue
        history = found.get("history") or []
        for one in (*(history if isinstance(history, list) else ()), found):
            yield _requests_cache_answer(one)


def _loaded(value: Any, trust_pickle: bool) -> dict[str, Any] | str:
    """The mapping in a row, or why there is none."""
    try:
        if isinstance(value, str) or value[:1] == b"{":
            found = json.loads(value)
        elif value[:1] != b"\x80":
            return UNREADABLE
        else:
            found = _unpickled(value, trust_pickle)
    except NotPlain:
        return _PICKLED
    except Exception:  # unpickling raises anything
        return UNREADABLE
    return found if isinstance(found, dict) else UNREADABLE


def _unpickled(value: bytes, trust_pickle: bool) -> Any:
    try:
        return plain_pickle(value)
    except NotPlain:
        if not trust_pickle:
            raise
    import pickle

    found = pickle.loads(value)  # the user has said so
    return found if isinstance(found, dict) else dict(vars(found))


def _requests_cache_answer(found: Any) -> Newcomer | str:
    try:
        request = found["request"]
        if not isinstance(request, Mapping):
            request = vars(request)
        body = _requests_cache_body(found)
        fields = tuple(_field_lines(found["headers"]))
        if body is None:
            return UNREADABLE
        coding = (first(fields, "content-encoding") or "").lower()
        length = first(fields, "content-length")
        if coding not in _ALWAYS_DECODED and (length is None or length == str(len(body))):
            return _MAYBE_CODED
        return Newcomer(
            method=_text(request["method"]),
            url=_text(request["url"]),
            asked=_texts(request.get("headers") or {}),
            status=int(found["status_code"]),
            reason=_text(found.get("reason") or ""),
            version=11,
            fields=_of_decoded(fields, len(body)),
            body=body,
            response_time=_time(found["created_at"]),
            elapsed=_duration(found.get("elapsed")),
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return UNREADABLE


def _requests_cache_body(found: Mapping[str, Any]) -> bytes | None:
    if "_decoded_content" in found and found.get("_content") in (None, b"", ""):
        decoded = found["_decoded_content"]
        # Their own bytes are gone: text is in the encoding that its fields name, JSON is written anew.
        if isinstance(decoded, str):
            return decoded.encode(str(found.get("encoding") or "utf-8"))
        return None if decoded is None else json.dumps(decoded, ensure_ascii=False).encode()
    content = found.get("_content", b"")
    if content is None:  # so JSON writes a body that was asked for and not there
        length = first(tuple(_field_lines(found["headers"])), "content-length")
        return b"" if length == "0" or found["status_code"] == 204 else None
    if isinstance(content, str):
        try:
            return base64.b64decode(content, validate=True)
        except binascii.Error:
            return None
    return bytes(content) if isinstance(content, (bytes, bytearray)) else None


def _of_decoded(fields: FieldLines, size: int) -> FieldLines:
    """`fields` for a body that was decoded before it was stored, and is `size` bytes long."""
    kept = tuple(
        line for line in fields if line[0].lower() not in ("content-encoding", "content-length", "transfer-encoding")
    )
    return (*kept, ("Content-Length", str(size)))


def _time(value: Any) -> float:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


def _duration(value: Any) -> float:
    found = value.total_seconds() if isinstance(value, timedelta) else float(value or 0.0)
    return found if 0.0 <= found < math.inf else 0.0


# --- CacheControl ---------------------------------------------------------------------------

_CACHECONTROL = b"cc=4,"


def from_cachecontrol(
    folder: str | os.PathLike[str], cache: Cache, *, urls: Iterable[str], anonymous: bool = False
) -> Migrated:
    """Add the answers in a folder of CacheControl (`FileCache`, `SeparateBodyFileCache`) to `cache`.

    How many, and what was skipped. urls: those to look for. The folder has no URL in it, only a one-way digest of
    each. anonymous: none of them was asked for with credentials. The folder does not say; without this word, only what
    the origin calls `public` (or gives an `s-maxage`) is taken.

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
                yield _UNKNOWN_URL if url is None else _cachecontrol_answer(os.path.join(at, name), url, is_sure)


def _cachecontrol_answer(path: str, url: str, is_sure: bool) -> Newcomer | str:
    try:
        with open(path, "rb") as file:
            data = file.read()
        if not data.startswith(_CACHECONTROL):
            return UNREADABLE
        found = unpack(data[len(_CACHECONTROL) :])
        answer = found["response"]
        fields = tuple(_field_lines(answer["headers"]))
        body = answer["body"] or _separate_body(path)
        length = first(fields, "content-length")
        if not isinstance(body, bytes) or (length is not None and length != str(len(body))):
            return UNREADABLE
        said = directives(lines(fields, "cache-control"))
        if not is_sure and not ("public" in said or "s-maxage" in said):
            return _UNKNOWN_ASKER
        changed = os.stat(path).st_mtime
        made = http_date(first(fields, "date") or "", near=changed)
        return Newcomer(
            method="GET",
            url=url,
            asked=_texts(found.get("vary") or {}),
            status=int(answer["status"]),
            reason=_text(answer.get("reason") or ""),
            version=int(answer.get("version") or 11),
            fields=fields,
            body=body,
            response_time=changed if made is None else made,
            elapsed=0.0,
        )
    except (OSError, LookupError, TypeError, ValueError, AttributeError):
        return UNREADABLE


def _separate_body(path: str) -> bytes:
    try:
        with open(f"{path}.body", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


# --- both -----------------------------------------------------------------------------------


def _field_lines(headers: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, value in _texts(headers).items():
        several = _BETWEEN_COOKIES.split(value) if name.lower() == "set-cookie" else (value,)
        yield from ((name, one) for one in several)


def _texts(fields: Mapping[Any, Any]) -> dict[str, str]:
    """Fields by name, less those that were not there. Raises TypeError or ValueError for what no field can be."""
    return {_text(name): _text(value) for name, value in fields.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError("no text")
    value.encode("latin-1")
    if _BREAK.search(value):
        raise ValueError("a line break in a field")
    return value
