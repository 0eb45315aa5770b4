"""Field lines, the way a stored response keeps them: pairs in the order received, duplicates kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from .stored import FieldLines

Grouped = Mapping[str, Sequence[str]]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_COMMA_OR_QUOTE = re.compile(r'[,"]')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def lines(fields: Iterable[tuple[str, str]], name: str) -> list[str]:
    """The values of all lines of the field `name` (lower case), in order."""
    return [value for known, value in fields if known.lower() == name]


def grouped(fields: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The values of all lines by lower-case name: one pass where several fields are looked at."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name.lower(), []).append(value)
    return found


def first(fields: Iterable[tuple[str, str]], name: str) -> str | None:
    """The first line of the field `name` (lower case), without space at its ends; None if there is none."""
    for known, value in fields:
        if known.lower() == name:
            return value.strip(" \t")
    return None


def without(fields: FieldLines, names: Iterable[str]) -> FieldLines:
    """`fields` without the lines whose (lower case) name is among `names`."""
    dropped = frozenset(names)
    return tuple((name, value) for name, value in fields if name.lower() not in dropped)


def members(text: str) -> list[str]:
    """The members of a list, without space around them and without empty ones. RFC 9110, section 5.6.1.

    A comma in a quoted string ends no member. A quote that is never closed quotes nothing: what
    follows it is read like the rest, so that no directive can hide there.
    """
    if '"' not in text:
        return [member for piece in text.split(",") if (member := piece.strip(" \t"))]
    found, start, at = [], 0, 0
    while stop := _COMMA_OR_QUOTE.search(text, at):
        at = stop.end()
        if stop.group() == ",":
            found.append(text[start : stop.start()])
            start = at
        elif quoted := _QUOTED.match(text, stop.start()):
            at = quoted.end()
        else:
            found.extend(text[start:].split(","))
            start = len(text)
            break
    found.append(text[start:])
    return [member for piece in found if (member := piece.strip(" \t"))]


def names(text: str) -> list[str]:
    """The field names in a list of names, in lower case; what is not a name is left out."""
    return [name for member in text.split(",") if _TOKEN.fullmatch(name := member.strip(" \t").lower())]
