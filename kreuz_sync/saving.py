"""Where results go: lines of JSON on a stream, or whole files in a folder.

Both have `write(outcome)`, called by one thread at a time. A file appears under its name
only when all of it is there, so that whatever ends the run leaves whole files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from .outcome import Outcome, body_fields, record

INDEX = "index.jsonl"
READABLE = 80  # characters of a name that are there for the reader
# 80 bits: among ten million URLs two agree with a chance of one in ten thousand million.
UNIQUE = 20  # hex digits

# Chosen here and not by the machine's own tables, so that a page has one name everywhere.
EXTENSIONS = {
    "application/atom+xml": ".xml",
    "application/epub+zip": ".epub",
    "application/gzip": ".gz",
    "application/javascript": ".js",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/rss+xml": ".xml",
    "application/x-ndjson": ".jsonl",
    "application/xhtml+xml": ".html",
    "application/xml": ".xml",
    "application/zip": ".zip",
    "audio/mpeg": ".mp3",
    "image/avif": ".avif",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/css": ".css",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/javascript": ".js",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/xml": ".xml",
    "video/mp4": ".mp4",
}
_OF_SUFFIX = {"json": ".json", "xml": ".xml", "zip": ".zip"}  # RFC 6839: application/hal+json and the like


def extension_of(content_type: str | None) -> str:
    """The ending of a file of this media type; `.bin` for an unknown one.

    >>> extension_of("text/html; charset=utf-8"), extension_of("application/ld+json"), extension_of(None)
    ('.html', '.json', '.bin')
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in EXTENSIONS:
        return EXTENSIONS[kind]
    return _OF_SUFFIX.get(kind.rpartition("+")[2], ".bin")


def file_name(url: str, content_type: str | None) -> str:
    """A name for the body of `url`: always the same, different for every URL, safe on every file system.

    It starts with host and path in letters, digits, `.`, `_` and `-`, and goes on with a digest
    of the URL. Fragment and password have no part in it.

    >>> file_name("http://example.com/news/today.html?page=2", "text/html")
    'example.com-news-today-afde368940b07876a33a.html'
    """
    extension = extension_of(content_type)
    digest = hashlib.sha256(_identity(url).encode("utf-8", "surrogatepass")).hexdigest()[:UNIQUE]
    return f"{_readable(url).removesuffix(extension)}-{digest}{extension}"


_PASSWORD = re.compile(r"(?<=//)([^/?#:@]*):[^/?#]*@")


def _identity(url: str) -> str:
    """What tells one URL's body from another's. A short password could be guessed from a digest of it."""
    return _PASSWORD.sub(r"\1@", url.partition("#")[0])


def _readable(url: str) -> str:
    try:
        parts = urlsplit(url)
        text = f"{parts.hostname or ''}-{parts.port or ''}-{parts.path}"
    except ValueError:
        text = ""
    # No "..", no hidden file, nothing that looks like an option.
    text = re.sub(r"[^A-Za-z0-9._]+", "-", text)
    text = re.sub(r"\.{2,}", ".", text).strip(".-")
    return text[:READABLE].rstrip(".-") or "page"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is either there with all of `content`, or not there (or as it was before).

    Raises OSError, and then leaves nothing behind.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


class JsonLines:
    """One line of JSON a URL, on an unbuffered binary stream. with_body: the body too.

    Unbuffered, because a thread that is left behind in the middle of a buffered write ends
    the interpreter with a fatal error.
    """

    def __init__(self, stream: IO[bytes], *, with_body: bool = False) -> None:
        self.stream = stream
        self.with_body = with_body

    def write(self, outcome: Outcome) -> None:
        """Raises OSError (BrokenPipeError when the reader has left)."""
        _write_all(self.stream, _line({**record(outcome), **(body_fields(outcome) if self.with_body else {})}))

    def close(self) -> None:
        """The stream belongs to whoever opened it."""


class Folder:
    """A file for every body, and `index.jsonl` that says which URL became which file.

    A run adds to the index of the runs before; of several lines about one URL the last
    counts. Bodies of error answers and challenge pages are not kept: `file` is null.
    """

    def __init__(self, path: Path) -> None:
        """Make the folder if it is not there. Raises OSError."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._index = open(path / INDEX, "a+b", buffering=0)
        self._end_last_line()

    def write(self, outcome: Outcome) -> None:
        """Raises OSError."""
        name = None
        if outcome.tag is None:
            name = file_name(outcome.url, outcome.content_type)
            write_whole(self.path / name, outcome.content)
        # One write a line: whoever reads meanwhile, or ends this run, finds whole lines.
        _write_all(self._index, _line({**record(outcome), "file": name}))

    def close(self) -> None:
        self._index.close()

    def _end_last_line(self) -> None:
        """A run that was killed, or a full disk, may have left half a line."""
        if self._index.seek(0, os.SEEK_END):
            self._index.seek(-1, os.SEEK_END)
            if self._index.read(1) != b"\n":
                self._index.write(b"\n")


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode("ascii") + b"\n"


def _write_all(stream: IO[bytes], content: bytes) -> None:
    """A write to a pipe or a disk that is nearly full may take a part only; the next one says why."""
    while content:
        content = content[stream.write(content) :]
