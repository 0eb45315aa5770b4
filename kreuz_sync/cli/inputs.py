"""Where the URLs of `kreuz-sync fetch` come from: its arguments, files, and standard input."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from .arguments import UsageError
from .url_list import urls_in

# A list up to this size is read once more, to know how many URLs it has: half a second at most.
MOST_COUNTED = 50_000_000  # bytes

Source = tuple[Iterable[str], int | None]  # URLs, and how many, if that is known


def wanted(urls: Sequence[str], lists: Sequence[str], opened: contextlib.ExitStack) -> tuple[Iterator[str], int | None]:
    """All URLs of the command line and of the lists it names, and how many, if that is known.

    Every list is opened here, so that a missing one is found out before anything is sent. Files are closed with
    `opened`, others when they have been read: closing a pipe would wait for the thread that reads it.
    Raises UsageError.
    """
    if not urls and not lists:
        raise UsageError("nothing to fetch: give URLs, --from FILE, or - to read a list from standard input")
    if [*urls, *lists].count("-") > 1:
        raise UsageError("standard input (-) can be read once")
    sources: list[Source] = [_listed(url, opened) if url == "-" else ((url,), 1) for url in urls]
    sources += [_listed(name, opened) for name in lists]
    counts = [count for _, count in sources if count is not None]
    total = sum(counts) if len(counts) == len(sources) else None
    return itertools.chain.from_iterable(source for source, _ in sources), total


def _listed(name: str, opened: contextlib.ExitStack) -> Source:
    file = open_list(name)
    if is_file(file):
        return urls_in(opened.enter_context(file)), counted(file)
    return _to_its_end(file), None


def _to_its_end(file: IO[str]) -> Iterator[str]:
    with file:
        yield from urls_in(file)


def is_file(file: IO[str]) -> bool:
    """Whether it can be read again, and reading never waits."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    return False


def open_list(name: str) -> IO[str]:
    """The lines of a file; `-` is standard input. Raises UsageError."""
    if name == "-" and sys.stdin is None:
        raise UsageError("there is no standard input to read a list from")
    try:
        # Bytes that are not UTF-8 must fail as the URL they stand in, and not turn into another one.
        return open(
            sys.stdin.fileno() if name == "-" else name,
            encoding="utf-8-sig",
            errors="surrogateescape",
            closefd=name != "-",
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"--from {name}: cannot be read ({reason(error)})") from None


def counted(file: IO[str]) -> int | None:
    """How many URLs a list has; it is read from its start again. None for what is no file, and for a very large one."""
    with contextlib.suppress(OSError):
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size <= MOST_COUNTED:
            start = file.tell()
            number = sum(1 for _ in urls_in(file))
            file.seek(start)
            return number
    return None


def reason(error: Exception) -> str:
    """What the system says, without the name of the file."""
    return getattr(error, "strerror", None) or str(error)
