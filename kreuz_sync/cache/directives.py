"""Cache-Control, and Pragma in a request, read into what they ask for. Pure.

Reading never raises, whatever the text. RFC 9111, sections 1.2.2, 4.2.1, 5.2 and 5.4; RFC 5861.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from .lines import members, names

# The largest delta-seconds that has to be told from a larger one (RFC 9111, section 1.2.2).
LONGEST = 2**31

_DIGITS = re.compile(r"[0-9]+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
NOTHING: Mapping[str, str | None] = MappingProxyType({})


@lru_cache(maxsize=1024)
def parse(text: str) -> Mapping[str, str | None]:
    """The directives in a Cache-Control value (several lines joined by commas), names in lower case.

    The value is None for a directive without one, and without its quotes for a quoted one. Of
    duplicates the first counts (RFC 9111, section 4.2.1), but a bare `no-cache` always does.

    >>> dict(parse('MAX-age="60", no-cache, max-age=1'))
    {'max-age': '60', 'no-cache': None}
    """
    found: dict[str, str | None] = {}
    for member in members(text):
        name, equals, value = member.partition("=")
        if equals and name != name.rstrip():
            value = " "  # no space belongs there, so the value is not to be trusted
        name = name.strip().lower()
        if name == "no-cache" and not equals:
            found[name] = None  # without names it says more than one with names before it
        else:
            found.setdefault(name, _unquoted(value) if equals else None)
    return MappingProxyType(found)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return _ESCAPE.sub(r"\1", value[1:-1])
    return value


def directives(lines: Sequence[str]) -> Mapping[str, str | None]:
    """The directives in all lines of Cache-Control, as `parse` gives them."""
    return parse(",".join(lines)) if lines else NOTHING


def delta_seconds(value: str | None) -> int | None:
    """Seconds, at most 2**31; None for what is not plain digits. RFC 9111, section 1.2.2."""
    if value is None or not _DIGITS.fullmatch(value):
        return None
    digits = value.lstrip("0") or "0"
    # int() refuses thousands of digits, and more than ten are above the limit anyway.
    return LONGEST if len(digits) > 10 else min(int(digits), LONGEST)


def window(found: Mapping[str, str | None], name: str) -> float:
    """The seconds that the directive `name` grants; 0 if it is absent or unreadable."""
    return float(delta_seconds(found.get(name)) or 0) if name in found else 0.0


def listed_fields(found: Mapping[str, str | None], name: str) -> list[str]:
    """The field names that `name="..."` lists, in lower case; empty for the bare directive."""
    return names(found.get(name) or "")


class RequestDirectives(NamedTuple):
    """What a request asks of a cache. RFC 9111, section 5.2.1; RFC 5861, section 4.

    All durations are in seconds. max_age: 0 also where it is unreadable, which is the most
    careful reading. max_stale: infinity for the bare directive. None: not asked for.
    """

    no_cache: bool = False
    no_store: bool = False
    only_if_cached: bool = False
    max_age: float | None = None
    max_stale: float | None = None
    min_fresh: float | None = None
    stale_if_error: float = 0.0


ASKS_NOTHING = RequestDirectives()


@lru_cache(maxsize=256)
def request_directives(cache_control: str | None, pragma: str | None) -> RequestDirectives:
    """The directives of a request. Pragma counts only without Cache-Control (RFC 9111, section 5.4)."""
    if cache_control is None:
        return RequestDirectives(no_cache=pragma is not None and "no-cache" in parse(pragma))
    found = parse(cache_control)
    max_stale = delta_seconds(found.get("max-stale"))
    if "max-stale" in found and found["max-stale"] is None:
        return _request_directives(found, float("inf"))
    return _request_directives(found, max_stale)


def _request_directives(found: Mapping[str, str | None], max_stale: float | None) -> RequestDirectives:
    return RequestDirectives(
        no_cache="no-cache" in found,
        no_store="no-store" in found,
        only_if_cached="only-if-cached" in found,
        max_age=delta_seconds(found["max-age"]) or 0 if "max-age" in found else None,
        max_stale=max_stale,
        min_fresh=delta_seconds(found.get("min-fresh")),
        stale_if_error=window(found, "stale-if-error"),
    )
