"""A SQLite file of requests-cache."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from kreuz_sync import checks
from kreuz_sync.cache.lines import first
from kreuz_sync.cache.newcomer import UNREADABLE, Migrated, Newcomer, admit_all
from kreuz_sync.cache.stored import FieldLines
from kreuz_sync.cache.unpacking import NotPlain, plain_pickle

from .fields import field_lines, text, texts

if TYPE_CHECKING:
    import sqlite3

    from kreuz_sync.cache.setting import Cache

_PICKLED = "pickled (trust_pickle=True reads them, and runs whatever is in them)"
_MAYBE_CODED = "in a Content-Encoding that may not have been undone"
_ALWAYS_DECODED = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})  # by urllib3, without further packages


def from_requests_cache(path: str | os.PathLike[str], cache: Cache, *, trust_pickle: bool = False) -> Migrated:
    """Add the answers of a SQLite file of requests-cache to `cache`; how many, and what was skipped.

    Rows in its JSON are read, and pickled rows of plain data, as its version 1.3 writes them, without unpickling.
    trust_pickle: unpickle other rows, which runs whatever code is in them; needs the packages that they name.
    Redirects are taken as answers of their own, and answers to POST if `cache` has `post=True`. How long an answer
    stays fresh is `cache`'s to say.

    Raises ValueError for a file that is none of requests-cache, OSError for one that cannot be read.
    """
    checks.flag("trust_pickle", trust_pickle)
    name = os.fspath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name} is a folder: a SQLite file of requests-cache is wanted")
    if not os.path.exists(name) and os.path.isfile(f"{name}.sqlite"):
        raise FileNotFoundError(f"{name} is not there, but {name}.sqlite is")
    return admit_all(cache, name, _rows(name, trust_pickle))


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
            yield _answer(one)


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


def _answer(found: Any) -> Newcomer | str:
    try:
        request = found["request"]
        if not isinstance(request, Mapping):
            request = vars(request)
        body = _body(found)
        fields = tuple(field_lines(found["headers"]))
        if body is None:
            return UNREADABLE
        coding = (first(fields, "content-encoding") or "").lower()
        length = first(fields, "content-length")
        if coding not in _ALWAYS_DECODED and (length is None or length == str(len(body))):
            return _MAYBE_CODED
        method = text(request["method"])
        return Newcomer(
            method=method,
            url=text(request["url"]),
            asked=texts(request.get("headers") or {}),
            status=int(found["status_code"]),
            reason=text(found.get("reason") or ""),
            version=11,
            fields=_of_decoded(fields, len(body)),
            body=body,
            response_time=_time(found["created_at"]),
            elapsed=_duration(found.get("elapsed")),
            sent=_bytes(request.get("body") or b"") if method == "POST" else b"",
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return UNREADABLE


def _body(found: Mapping[str, Any]) -> bytes | None:
    if "_decoded_content" in found and found.get("_content") in (None, b"", ""):
        decoded = found["_decoded_content"]
        # Their own bytes are gone: text is in the encoding that its fields name, JSON is written anew.
        if isinstance(decoded, str):
            return decoded.encode(str(found.get("encoding") or "utf-8"))
        return None if decoded is None else json.dumps(decoded, ensure_ascii=False).encode()
    content = found.get("_content", b"")
    if content is None:  # so JSON writes a body that was asked for and not there
        length = first(tuple(field_lines(found["headers"])), "content-length")
        return b"" if length == "0" or found["status_code"] == 204 else None
    return _bytes(content)


def _bytes(value: Any) -> bytes:
    """Bytes as they are in a pickle, or in JSON. Raises TypeError or ValueError for anything else."""
    if isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError("no bytes")
    return bytes(value)


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
