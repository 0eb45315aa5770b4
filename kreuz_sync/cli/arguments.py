"""The arguments of `kreuz-sync`: which there are, and how their text is read. Opens and sends nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kreuz_sync import checks
from kreuz_sync.urls import redact
from kreuz_sync.version import __version__

from .cache_arguments import add_cache
from .example_site import PORT

BAD_USAGE = 2  # the exit code

MOST_SECONDS = 86_400  # a day: a longer time is a slip of the finger, and clocks overflow some way beyond
MOST_WORKERS = 256
MOST_RETRIES = 100
MOST_PORT = 65_535

EPILOG = """\
exit codes: 0 every URL was fetched; 1 some were not, or the results could not be written;
2 wrong arguments; 130 interrupted by Ctrl-C or SIGTERM (files that are there are whole).
"""

DEMO_EPILOG = """\
exit codes: 0 all went as it should, with the errors that the site is meant to make, or Ctrl-C ended --serve;
1 something did not; 2 wrong arguments; 130 interrupted by Ctrl-C or SIGTERM.
"""


class UsageError(Exception):
    """What the user asked for cannot be done. The text goes to the terminal."""


class Parser(argparse.ArgumentParser):
    """argparse's parser, which says what is wrong on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


class CommandParser(Parser):
    """A command's own. It refuses what it does not know itself, so that its own --help is pointed to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        read, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return read, unknown


def parse(given: Sequence[str]) -> argparse.Namespace:
    """What `given` says. Raises SystemExit where argparse does: for --help, --version and what it refuses."""
    top = parser()
    if given and "://" in given[0]:
        top.error(f"a command is wanted: kreuz-sync fetch {redact(given[0])}")
    return top.parse_args(given)


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
    commands = top.add_subparsers(
        dest="command", title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    _add_fetch(commands)
    _add_demo(commands)
    add_cache(commands)
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
    command.add_argument(
        "--allow-private",
        action="store_true",
        help="let pages of public hosts redirect to private addresses, as of this machine or a local network",
    )
    _add_options(command)


def _add_demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="see pace, backoff and errors at work on a small site on this machine",
        description="Serve a small site on this machine, fetch it as `fetch` does, and say what happens. "
        "Needs no network.",
        epilog=DEMO_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument(
        "--serve",
        action="store_true",
        help="keep another site up until Ctrl-C, the one that the documentation's examples ask, and fetch nothing",
    )
    command.add_argument("--port", type=count(0, MOST_PORT), metavar="N", help=f"where --serve listens ({PORT})")
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
    add(
        "--retries",
        type=count(0, MOST_RETRIES),
        default=2,
        metavar="N",
        help="retries after the first try (%(default)s)",
    )
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
    add(
        "--timeout",
        type=seconds(0.001),
        default=30.0,
        metavar="S",
        help="seconds to connect, and between bytes (%(default)g)",
    )
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

    >>> size("5000"), size("20k"), size("2G")
    (5000, 20000, 2000000000)
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
