"""Fields as other caches keep them: one value for each name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# A comma between two cookies, and not one inside of a date.
_BETWEEN_COOKIES = re.compile(r",[ \t]*(?=[!#$%&'*+.^_`|~0-9A-Za-z-]+=)")
_BREAK = re.compile("[\r\n\0]")


def field_lines(headers: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The field lines that `headers` stands for. Raises what `texts` raises."""
    for name, value in texts(headers).items():
        several = _BETWEEN_COOKIES.split(value) if name.lower() == "set-cookie" else (value,)
        yield from ((name, one) for one in several)


def texts(fields: Mapping[Any, Any]) -> dict[str, str]:
    """Fields by name, less those that were not there. Raises TypeError or ValueError for what no field can be."""
    return {text(name): text(value) for name, value in fields.items() if value is not None}


def text(value: Any) -> str:
    """What a URL or a field can hold. Raises TypeError or ValueError for anything else."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError("no text")
    value.encode("latin-1")
    if _BREAK.search(value):
        raise ValueError("a line break in a field")
    return value
