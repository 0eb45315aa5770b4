"""Structured field values: the text of a List or a Dictionary, and what it says. Pure.

RFC 9651, all of it but inner lists: no rate limit field has one, and to such a field it is
malformed. Sections 4.1 (serialising) and 4.2 (parsing). Time and memory grow with the length of
the text and no faster: each character is looked at by one pattern, from left to right, and what
one pattern fails on ends the whole.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

MOST = 999_999_999_999_999  # an Integer has 15 digits at most (section 3.3.1)


class Malformed(ValueError):
    """The text is no such structured field; or, from a serialiser, the value can be written in none."""


class Token(str):
    """A word without quotes. It equals the String of the same letters."""

    __slots__ = ()


class DisplayString(str):
    """A text in any script, written with escapes."""

    __slots__ = ()


class Date(int):
    """Unix seconds."""

    __slots__ = ()


BareItem = bool | int | float | str | bytes  # among them Token, DisplayString and Date


class Item(NamedTuple):
    """One value, and the parameters that stand behind it. A parameter without a value is True."""

    value: BareItem
    parameters: Mapping[str, BareItem] = {}


_UNESCAPED = r"[ !#-\[\]-~]*"
_BARE = re.compile(
    rf"""
      "(?P<string>{_UNESCAPED}(?:\\["\\]{_UNESCAPED})*)"
    | (?P<token>[A-Za-z*][A-Za-z0-9!\#$%&'*+\-.^_`|~:/]*)
    | (?P<decimal>-?[0-9]{{1,12}}\.[0-9]{{1,3}})(?![0-9.])
    | (?P<integer>-?[0-9]{{1,15}})(?![0-9.])
    | :(?P<bytes>(?:[A-Za-z0-9+/]+={{0,2}})?):
    | \?(?P<boolean>[01])
    | @(?P<date>-?[0-9]{{1,15}})(?![0-9.])
    | %"(?P<display>(?:[ !\#$&-~]|%[0-9a-f]{{2}})*)"
    """,
    re.VERBOSE,
)
_KEY = re.compile(r"[a-z*][a-z0-9_\-.*]*")
_PARAMETER = re.compile(r"; *(?P<key>[a-z*][a-z0-9_\-.*]*)(?P<equals>=?)")
_SPACES = re.compile(r" *")
_OPTIONAL_SPACE = re.compile(r"[ \t]*")
_ESCAPE = re.compile(r"\\(.)")
_TEXT = re.compile(r"[ -~]*")


# --- parsing ----------------------------------------------------------------------------


def parse_list(text: str) -> list[Item]:
    """The members of a List; none for an empty text. Raises Malformed, and nothing else.

    >>> parse_list('"search";q=30;w=60, daily')
    [Item(value='search', parameters={'q': 30, 'w': 60}), Item(value='daily', parameters={})]
    """
    members = []
    at = _end(_SPACES, text, 0)
    while at < len(text):
        member, at = _item(text, at)
        members.append(member)
        at = _next_member(text, at)
    return members


def parse_dictionary(text: str) -> dict[str, Item]:
    """The members of a Dictionary, the last of those with the same key. Raises Malformed, and nothing else.

    >>> parse_dictionary("limit=100, fast;x=1")["limit"].value
    100
    """
    members = {}
    at = _end(_SPACES, text, 0)
    while at < len(text):
        key = _KEY.match(text, at)
        if key is None:
            raise Malformed(f"no key at character {at}")
        at = key.end()
        if text.startswith("=", at):
            members[key.group()], at = _item(text, at + 1)
        else:
            parameters, at = _parameters(text, at)
            members[key.group()] = Item(True, parameters)
        at = _next_member(text, at)
    return members


def _next_member(text: str, at: int) -> int:
    """Where the next member begins; the end of the text if there is none."""
    at = _end(_OPTIONAL_SPACE, text, at)
    if at == len(text):
        return at
    if text[at] != ",":
        raise Malformed(f"no comma at character {at}")
    at = _end(_OPTIONAL_SPACE, text, at + 1)
    if at == len(text):
        raise Malformed("a comma at the end")
    return at


def _item(text: str, at: int) -> tuple[Item, int]:
    value, at = _bare_item(text, at)
    parameters, at = _parameters(text, at)
    return Item(value, parameters), at


def _parameters(text: str, at: int) -> tuple[dict[str, BareItem], int]:
    parameters: dict[str, BareItem] = {}
    while text.startswith(";", at):
        found = _PARAMETER.match(text, at)
        if found is None:
            raise Malformed(f"no parameter at character {at}")
        at = found.end()
        parameters[found["key"]] = True
        if found["equals"]:
            parameters[found["key"]], at = _bare_item(text, at)
    return parameters, at


def _bare_item(text: str, at: int) -> tuple[BareItem, int]:
    found = _BARE.match(text, at)
    if found is None:
        raise Malformed(f"no value at character {at}")
    kind = found.lastgroup or ""
    return _READ[kind](found[kind]), found.end()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _string(written: str) -> str:
    return _ESCAPE.sub(r"\1", written) if "\\" in written else written


def _byte_sequence(written: str) -> bytes:
    data = written.rstrip("=")  # padding may be left out (section 4.2.7)
    try:
        return a2b_base64(data + "=" * (-len(data) % 4))
    except Base64Error:
        raise Malformed("a byte sequence that is no base64") from None


def _display_string(written: str) -> DisplayString:
    try:
        return DisplayString(unquote_to_bytes(written).decode("utf-8"))
    except UnicodeDecodeError:
        raise Malformed("a display string that is no UTF-8") from None


_READ: dict[str, Callable[[str], BareItem]] = {
    "string": _string,
    "token": Token,
    "decimal": float,
    "integer": int,
    "bytes": _byte_sequence,
    "boolean": lambda written: written == "1",
    "date": Date,
    "display": _display_string,
}


# --- serialising ------------------------------------------------------------------------


def serialise_list(members: Iterable[Item]) -> str:
    """The text of a List. Raises Malformed if a value cannot be written.

    >>> serialise_list([Item("search", {"q": 30, "w": 60}), Item(Token("daily"))])
    '"search";q=30;w=60, daily'
    """
    return ", ".join(_write(member.value) + _write_parameters(member.parameters) for member in members)


def serialise_dictionary(members: Mapping[str, Item]) -> str:
    """The text of a Dictionary. Raises Malformed if a key or a value cannot be written.

    >>> serialise_dictionary({"limit": Item(100), "fast": Item(True)})
    'limit=100, fast'
    """
    return ", ".join(_pair(key, member.value) + _write_parameters(member.parameters) for key, member in members.items())


def is_string(text: str) -> bool:
    """Whether a String can carry `text`: ASCII from space to tilde (section 3.3.3)."""
    return _TEXT.fullmatch(text) is not None


def _write_parameters(parameters: Mapping[str, BareItem]) -> str:
    return "".join(f";{_pair(key, value)}" for key, value in parameters.items())


def _pair(key: str, value: BareItem) -> str:
    if not _KEY.fullmatch(key):
        raise Malformed(f"{key!r} is no key")
    return key if value is True else f"{key}={_write(value)}"


def _write(value: BareItem) -> str:
    # What is a kind of another comes before it: a bool is an int, and a Token a str.
    if isinstance(value, bool):
        return f"?{value:d}"
    if isinstance(value, int):
        if abs(value) > MOST:
            raise Malformed(f"{value:.3g} has more than 15 digits")
        return f"@{value:d}" if isinstance(value, Date) else f"{value:d}"
    if isinstance(value, float):
        return _write_decimal(value)
    if isinstance(value, bytes):
        return f":{b2a_base64(value, newline=False).decode()}:"
    if isinstance(value, DisplayString):
        return f'%"{"".join(_percent(octet) for octet in _utf_8(value))}"'
    if isinstance(value, Token):
        if (found := _BARE.fullmatch(value)) is None or found.lastgroup != "token":
            raise Malformed(f"{str(value)!r} is no token")
        return str(value)
    if not is_string(value):
        raise Malformed(f"{value!r} has characters that a String cannot carry: it has ASCII from space to tilde only")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write_decimal(value: float) -> str:
    if not abs(value) < 999_999_999_999.9995:  # not: NaN is no less than anything
        raise Malformed(f"{value} has more than 12 digits before the point")
    digits = f"{value:.3f}".rstrip("0")
    return f"{digits}0" if digits.endswith(".") else digits


def _utf_8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("a lone surrogate has no UTF-8") from None


def _percent(octet: int) -> str:
    return chr(octet) if 0x20 <= octet <= 0x7E and octet not in b'%"' else f"%{octet:02x}"
