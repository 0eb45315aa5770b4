"""What the public constructors require of their arguments, and how they say so.

Every function returns the value it was given, in the type that the rest of the
package works with, or raises TypeError (a wrong kind of thing) or ValueError (the
right kind, an impossible value). The text names the argument, the value, and what
would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def seconds(name: str, value: Any, *, least: float = 0.0, above: float | None = None) -> float:
    """A finite duration in seconds, at least `least` (or, if given, more than `above`)."""
    wanted = f"more than {above:g}" if above is not None else f"{least:g} or more"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}={value!r}: seconds are wanted, a number of {wanted}")
    if not _is_finite(value) or value < least or (above is not None and value <= above):
        raise ValueError(f"{name}={value!r}: seconds are wanted, finite and {wanted}")
    return float(value)


def count(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """A whole number, `least` or more and at most `most`."""
    wanted = f"{least} or more" if most is None else f"{least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: a whole number is wanted, {wanted}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name}={value!r}: a whole number is wanted, {wanted}")
    return value


def number(name: str, value: Any, *, least: float = 0.0) -> float:
    """A finite number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}={value!r}: a number is wanted, {least:g} or more")
    if not _is_finite(value) or value < least:
        raise ValueError(f"{name}={value!r}: a finite number is wanted, {least:g} or more")
    return float(value)


def adapter(name: str, value: Any) -> Any:
    """Something that sends as requests' adapters do."""
    if not callable(getattr(value, "send", None)) or not callable(getattr(value, "close", None)):
        raise TypeError(f"{name}={value!r}: an adapter is wanted, such as requests.adapters.HTTPAdapter()")
    return value


def clock(name: str, value: Any) -> Any:
    """Something that tells the time as `kreuz_sync.clock.Clock` does."""
    if not all(callable(getattr(value, method, None)) for method in ("monotonic", "wall", "wait")):
        raise TypeError(f"{name}={value!r}: a kreuz_sync.clock.Clock is wanted")
    return value


def function(name: str, value: Any) -> Any:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{name}={value!r}: a function is wanted")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that is only like it."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: True or False is wanted")
    return value


def text(name: str, value: Any, *, secret: bool = False) -> str:
    """A string that is not empty; a `secret` one is left out of the error."""
    shown = "..." if secret else repr(value)
    if not isinstance(value, str):
        raise TypeError(f"{name}={shown}: a string is wanted, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{name}={shown}: a string that is not empty is wanted")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Several strings, none empty. One string alone is a mistake, not a sequence of letters."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name}={value!r}: a list of strings is wanted")
    return tuple(text(f"{name}[{index}]", item) for index, item in enumerate(value))


def token(name: str, value: Any) -> str:
    """A token (RFC 9110, section 5.6.2), such as the name of a field or a method."""
    if not _TOKEN.fullmatch(text(name, value)):
        raise ValueError(f"{name}={value!r}: letters, digits and !#$%&'*+-.^_`|~ are allowed, and nothing else")
    return str(value)


def field_value(name: str, value: Any, *, secret: bool = False) -> str:
    """What a header field can hold: Latin-1, one line, no space at its ends (RFC 9110, section 5.5).

    A `secret` one is left out of the error.
    """
    shown = "..." if secret else repr(value)
    for character in text(name, value, secret=secret):
        if character > "\xff" or (character < " " and character != "\t") or character == "\x7f":
            raise ValueError(f"{name}={shown}: {character!a} cannot stand in a header field")
    if value != value.strip(" \t"):
        raise ValueError(f"{name}={shown}: a header field neither begins nor ends with a space")
    return str(value)


def statuses(name: str, value: Any) -> frozenset[int]:
    """HTTP status codes, each 100 to 599 (RFC 9110, section 15)."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name}={value!r}: a collection of status codes is wanted, such as {{429, 503}}")
    return frozenset(count(f"{name}: {item!r}", item, least=100, most=599) for item in value)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of a few words."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, choices))} is wanted")
    return value


def name_given(name: str, by: Any, thing: Any) -> str:
    """What the user's function `by`, the argument `name`, gives `thing` for a name: a string."""
    given = by(thing)
    if not isinstance(given, str):
        raise TypeError(f"{name}={by!r} gave {given!r}: a string is wanted")
    return given
