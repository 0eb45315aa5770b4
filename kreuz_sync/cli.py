"""The command `kreuz-sync`: reads its arguments, and hands on to `job.py` and `demo.py`.

Nothing else imports this file, so that argparse costs only those who use the command.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from . import checks, demo, job
from .fetching import Results, Sink
from .progress import progress_on
from .saving import Folder, JsonLines
from .url_list import urls_in
from .version import __version__

MOST_SECONDS = 86_400  # a day: a longer time is a slip of the finger, and clocks overflow some way beyond
MOST_WORKERS = 256
MOST_RETRIES = 100

EPILOG = """\
exit codes: 0 every URL was fetched; 1 some were not, or the results could not be written;
2 wrong arguments; 130 interrupted by Ctrl-C or SIGTERM (files that are there are whole).
"""


class UsageError(Exception):
    """What the user asked for cannot be done. The text goes to the terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process), and give its exit code.

    Raises SystemExit where argparse does: for --help, --version and arguments that it refuses.
    """
    try:
        with job.interruptible():
            read = parser().parse_args(arguments)
            return int(read.command(read))
    except UsageError as error:
        job.say(stderr(), f"kreuz-sync: {error}")
        return job.BAD_USAGE
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


# --- arguments ----------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """argparse's parser, which says what is wrong on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(job.BAD_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> Parser:
    """The parser of the whole command."""
    top = Parser(
        prog="kreuz-sync",
        description="Fetch web pages politely: a pace for every host, backoff, retries.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"kreuz-sync {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    _add_fetch(commands)
    _add_demo(commands)
    return top


def _add_fetch(commands: Any) -> None:
    command = commands.add_parser(
        "fetch",
        help="fetch URLs into a folder, or to lines of JSON",
        description="Fetch URLs, many hosts at once and each at its own pace. Writes a line of JSON for every URL, "
        "as it is done, to standard output, and a summary by host to standard error.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(command=fetch)
    command.add_argument("urls", nargs="*", metavar="URL", help="what to fetch; - reads a list from standard input")
    command.add_argument(
        "--from",
        dest="lists",
        action="append",
        default=[],
        metavar="FILE",
        help="a list, one URL a line; blank lines and lines that start with # are left out",
    )
    command.add_argument("--body", action="store_true", help="put bodies into the lines of JSON")
    _add_options(command)


def _add_demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="see pace, backoff and errors at work on a small site on this machine",
        description="Serve a small site on this machine, fetch it as `fetch` does, and say what happens. "
        "Needs no network.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(command=show)
    _add_options(command)


def _add_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--out", metavar="DIR", help="write every body to a file in DIR, and index.jsonl that says which URL is where")
    add("--delay", type=seconds(0), default=0.2, metavar="S", help="seconds between requests to one host (%(default)s)")
    add(
        "--workers",
        type=count(1, MOST_WORKERS),
        default=16,
        metavar="N",
        help="pages that are asked for at once, over all hosts (%(default)s)",
    )
    add("--retries", type=count(0, MOST_RETRIES), default=2, metavar="N", help="sends after the first (%(default)s)")
    add(
        "--header",
        dest="headers",
        type=header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="a header field for every request; may be given several times",
    )
    add(
        "--user-agent",
        dest="user_agents",
        type=user_agent,
        action="append",
        default=[],
        metavar="TEXT",
        help="who asks; several are used in turn",
    )
    add("--timeout", type=seconds(0.001), default=30.0, metavar="S", help="seconds without an answer (%(default)g)")
    add(
        "--max-body",
        type=size,
        default="100M",
        metavar="SIZE",
        help="bytes of a body, as 5000, 20k, 100M or 2G (%(default)s); 0: no limit",
    )


def seconds(least: float) -> Callable[[str], float]:
    """An argparse type: a number of seconds, `least` up to a day."""

    def read(text: str) -> float:
        try:
            value = checks.seconds("", float(text), least=least)
        except ValueError:
            value = MOST_SECONDS + 1
        if value > MOST_SECONDS:
            raise argparse.ArgumentTypeError(f"{text!r}: seconds are wanted, {least:g} to {MOST_SECONDS}")
        return value

    return read


def count(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a whole number, `least` to `most`."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number is wanted, {least} to {most}")
        return int(text)

    return read


_SIZE = re.compile(r"([0-9]{1,12})([kMG]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def size(text: str) -> int:
    """An argparse type: a number of bytes.

    >>> size("5000"), size("20k"), size("1.5")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: '1.5': a size is wanted, as 5000, 20k, 100M or 2G
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is wanted, as 5000, 20k, 100M or 2G")
    return int(found[1]) * _UNITS[found[2].lower()]


_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")  # RFC 9110, section 5.5


def header(text: str) -> tuple[str, str]:
    """An argparse type: name and value of a header field. Errors do not show the value, which may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not _FIELD_NAME.fullmatch(name):
        raise argparse.ArgumentTypeError("a field is wanted, as 'Accept-Language: en'")
    value = value.strip(" \t")
    if not _FIELD_VALUE.fullmatch(value):
        raise argparse.ArgumentTypeError(f"{name}: the value has characters that a header field cannot carry")
    return name, value


def user_agent(text: str) -> str:
    """An argparse type: the value of a User-Agent field."""
    if not text.strip() or not _FIELD_VALUE.fullmatch(text):
        raise argparse.ArgumentTypeError("a name is wanted that a header field can carry, as 'my-crawler/1.0'")
    return text.strip()
