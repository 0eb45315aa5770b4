"""The arguments of `kreuz-sync cache`. Opens and reads nothing."""

from __future__ import annotations

import argparse
import re
from typing import Any

EPILOG = """\
exit codes: 0 done; 1 it could not be done, or there is no such answer; 2 wrong arguments, or FOLDER is no cache.
"""


def add_cache(commands: Any) -> None:
    """Add the command to `commands`, which argparse's `add_subparsers` gave."""
    command = commands.add_parser(
        "cache",
        help="list, read, delete, export or import what a folder of cached answers holds",
        description="Look into the folder of a cache, and put it in order. Sends nothing.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verbs = command.add_subparsers(dest="verb", title="commands", metavar="COMMAND", required=True)
    _verb(verbs, "stats", "how much there is, and of which hosts", as_json=True)
    _with_filters(_verb(verbs, "list", "a line for each stored answer", as_json=True))
    get = _verb(verbs, "get", "write the body of a stored answer, decoded, to standard output")
    get.add_argument("url", metavar="URL")
    get.add_argument("--out", metavar="FILE", help="write it to FILE instead")
    get.add_argument("--method", choices=("GET", "POST"), default="GET", help="that of the request: GET, or POST")
    get.add_argument("--with-credentials", action="store_true", help="one that was asked for with credentials")
    delete = _verb(verbs, "delete", "drop answers, by URL or by what fits")
    delete.add_argument("urls", nargs="*", metavar="URL")
    _with_filters(delete)
    clear = _verb(verbs, "clear", "drop all answers")
    clear.add_argument("--yes", action="store_true", help="do not ask")
    export = _verb(verbs, "export", "write answers into a file that another cache can import")
    export.add_argument("file", metavar="FILE")
    _with_filters(export)
    what = "add the answers of a file that export wrote; a FOLDER that is missing or empty becomes a cache"
    _verb(verbs, "import", what).add_argument("file", metavar="FILE")


def _verb(verbs: Any, name: str, what: str, *, as_json: bool = False) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = verbs.add_parser(name, help=what, description=what, allow_abbrev=False)
    made.add_argument("folder", metavar="FOLDER", help="the folder of the cache")
    if as_json:
        made.add_argument("--json", action="store_true", help="JSON for programs, a line each")
    return made


def _with_filters(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--url", dest="pattern", metavar="PATTERN", help="only these, as 'example.com/news/*'; * stands for anything")
    add("--host", metavar="HOST", help="only those of this host")
    add("--status", type=int, metavar="CODE", help="only those of this status")
    add("--stale", action="store_true", help="only those that are not fresh any more")
    add("--older-than", type=age, metavar="AGE", help="only those of a greater age: 90, 15m, 12h, 7d")
    add("--younger-than", type=age, metavar="AGE", help="only those of a lesser age")


_AGE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def age(text: str) -> float:
    """An argparse type: seconds.

    >>> age("90"), age("15m"), age("7d")
    (90.0, 900.0, 604800.0)
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: an age is wanted, as 90, 15m, 12h or 7d")
    return float(found[1]) * _UNITS[found[2]]
