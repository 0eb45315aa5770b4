"""The command `kreuz-sync`: from its arguments (`cli_arguments.py`) to a run of `job.py` or `demo.py`.

Nothing else imports this file, so that argparse costs only those who use the command.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from . import demo, job
from .cli_arguments import BAD_USAGE, parser
from .fetching import Results, Sink
from .progress import progress_on
from .saving import Folder, JsonLines
from .url_list import urls_in


class UsageError(Exception):
    """What the user asked for cannot be done. The text goes to the terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process), and give its exit code.

    Raises SystemExit where argparse does: for --help, --version and arguments that it refuses.
    """
    try:
        with job.interruptible():
            read = parser().parse_args(arguments)
            return COMMANDS[read.command](read)
    except UsageError as error:
        job.say(stderr(), f"kreuz-sync: {error}")
        return BAD_USAGE
    except KeyboardInterrupt:  # before there was anything to do, or after
        return job.INTERRUPTED
    finally:
        for stream in (sys.stdout, sys.stderr):
            _let_go(stream)


def _let_go(stream: IO[str] | None) -> None:
    """Spare the interpreter, when it ends, from a last write to a pipe that nobody reads."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# --- the commands ---------------------------------------------------------------------------


def fetch(arguments: argparse.Namespace) -> int:
    """`kreuz-sync fetch`."""
    if arguments.body and arguments.out:
        raise UsageError("--body writes bodies to standard output, --out to files: give one of the two")
    options = options_of(arguments)
    session = _or_usage(lambda: job.open_session(options))
    with contextlib.ExitStack() as opened:
        urls, total = wanted(arguments.urls, arguments.lists, opened)
        sink: Sink = folder(arguments.out) if arguments.out else JsonLines(raw_stdout(), with_body=arguments.body)
        # Lines of results on the same terminal would tear the display.
        display = progress_on(stderr(), total) if arguments.out or not sys.stdout.isatty() else None
        return job.carry_out(session, urls, Results([sink], display), workers=options.workers, stream=stderr())


def show(arguments: argparse.Namespace) -> int:
    """`kreuz-sync demo`."""
    options = options_of(arguments)
    sinks = [folder(arguments.out)] if arguments.out else []
    return demo.run(options, sinks, sys.stdout or stderr())


COMMANDS = {"fetch": fetch, "demo": show}


def options_of(arguments: argparse.Namespace) -> job.Options:
    """The options that both commands take. Raises UsageError."""
    names = [name.lower() for name, _ in arguments.headers]
    if arguments.user_agents:
        names.append("user-agent")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the field {twice} is given more than once")
    return job.Options(
        delay=arguments.delay,
        workers=arguments.workers,
        retries=arguments.retries,
        timeout=arguments.timeout,
        max_body=arguments.max_body or None,
        headers=dict(arguments.headers),
        user_agents=tuple(arguments.user_agents),
    )


def _or_usage(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


# --- where URLs come from, where results go -----------------------------------------------------


def wanted(urls: Sequence[str], lists: Sequence[str], opened: contextlib.ExitStack) -> tuple[Iterator[str], int | None]:
    """All URLs of the command line and of the lists it names, and how many, if that is known.

    Every list is opened here, so that a missing one is found out before anything is sent, and
    closed with `opened`. Raises UsageError.
    """
    if not urls and not lists:
        raise UsageError("nothing to fetch: give URLs, --from FILE, or - to read a list from standard input")
    if [*urls, *lists].count("-") > 1:
        raise UsageError("standard input (-) can be read once")
    given: list[Iterable[str]] = [[url] if url != "-" else _listed("-", opened) for url in urls]
    given += [_listed(name, opened) for name in lists]
    total = len(urls) if not lists and "-" not in urls else None
    return itertools.chain.from_iterable(given), total


def _listed(name: str, opened: contextlib.ExitStack) -> Iterator[str]:
    return urls_in(opened.enter_context(open_list(name)))


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
        raise UsageError(f"--from {name}: cannot be read ({_reason(error)})") from None


def folder(name: str) -> Folder:
    """Where `--out` writes. Raises UsageError."""
    try:
        return Folder(Path(name))
    except (OSError, ValueError) as error:
        raise UsageError(f"--out {name}: cannot be written to ({_reason(error)})") from None


def raw_stdout() -> IO[bytes]:
    """Standard output without a buffer. Raises UsageError if it is closed."""
    if sys.stdout is None:
        raise UsageError("there is no standard output to write to: use --out DIR")
    return open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)


def stderr() -> IO[str]:
    """Standard error; a stream that goes nowhere if it is closed."""
    return sys.stderr if sys.stderr is not None else open(os.devnull, "w")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
