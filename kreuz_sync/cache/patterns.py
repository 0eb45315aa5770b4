"""URL patterns: a host, a host and a path, or a whole URL, with `*` for anything. Pure."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from kreuz_sync import checks
from kreuz_sync.urls import DEFAULT_PORTS

from .uris import canonical

Pattern = str | re.Pattern[str]

_SCHEME = re.compile(r"([A-Za-z*][A-Za-z0-9+.*-]*)://")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.*]+\]|[^\[\]:/?#@\s\\]+)(?::(?P<port>[0-9*]+))?", re.ASCII)
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))  # in a path; the rest is percent-encoded there


def checked_pattern(name: str, pattern: Any) -> Pattern:
    """`pattern` if it is one; `name` is that of the argument.

    Raises TypeError for what is none, ValueError for text that could match no URL.
    """
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern
    if not isinstance(pattern, str) or not pattern:
        wanted = "text such as 'example.com/news/*' or a compiled regular expression"
        raise TypeError(f"{name}: {pattern!r}: {wanted} is wanted")
    why = _why_never(pattern)
    if why is not None:
        raise ValueError(f"{name}: {pattern!r} is no pattern of any URL: {why}")
    return pattern


def _why_never(pattern: str) -> str | None:
    """Why `pattern` matches nothing, and what to write; None if it may match something."""
    _, authority, path = _parts(pattern)
    found = _AUTHORITY.fullmatch(authority)
    if not authority or authority.startswith("?"):
        query = "" if path is not None or not authority else "/"
        return f"it begins with a host: '*{query}{pattern}' is for all hosts"
    if "#" in pattern:
        return "what follows # is not sent, and belongs to no URL here"
    if "@" in authority:
        return "the user of a URL is left out"
    if "?" in authority:
        return f"a path is between the host and the query, as in {pattern.replace('?', '/?', 1)!r}"
    if found is None:
        return "it begins with a host, as in 'example.com/news/*', and perhaps a port"
    if not found["host"].isascii():
        return "a host is written as it is sent, with 'xn--'"
    return None


def checked_names(name: str, value: Any, *, of: str, never: str) -> tuple[str, ...]:
    """Names in which `*` stands for anything. of: of what; never: the characters that none of them has.

    Raises TypeError for what is no list of text, ValueError for what could be no name.
    """
    found = checks.texts(name, value)
    for text in found:
        if text[0] == "?" or not set(never).isdisjoint(text):
            raise ValueError(f"{name}: {text!r} is the name of no {of}: a name alone is wanted, as 'id' or 'utm_*'")
    return found


def checked_fields(name: str, value: Any) -> tuple[str, ...]:
    """Names of fields, each in full. Raises TypeError or ValueError for anything else."""
    found = checks.texts(name, value)
    for text in found:
        if "*" in checks.token(name, text):
            raise ValueError(f"{name}: {text!r}: the whole name of a field is wanted, without *")
    return found


def url_pattern(pattern: Pattern) -> re.Pattern[str]:
    """`pattern`, which has been checked, as an expression to search in a canonical URL."""
    if isinstance(pattern, re.Pattern):
        return pattern
    scheme, authority, path = _parts(pattern)
    found = _AUTHORITY.fullmatch(authority)
    assert found is not None
    # A `*` for a host must not reach into the path, where anybody may write another host's name.
    host, port = _wildcards(found["host"].lower(), "[^/?]*"), "(?::[0-9]+)?"
    if found["port"] is not None:
        port = ":" + _wildcards(found["port"], "[0-9]*")
        if found["port"] == str(DEFAULT_PORTS.get(scheme or "")):  # which a canonical URL does not have
            port = ""
    rest = "(?:[/?].*)?" if path is None else _wildcards(_canonical_path(path), ".*")
    start = "[^:/]+" if scheme is None else _wildcards(scheme, "[^:/]*")
    return re.compile(rf"\A{start}://{host}{port}{rest}\Z", re.DOTALL)


def _parts(pattern: str) -> tuple[str | None, str, str | None]:
    """The scheme, the host with its port, and the path with what follows; None for what is not there."""
    found = _SCHEME.match(pattern)
    rest = pattern[found.end() :] if found else pattern
    authority, slash, path = rest.partition("/")
    return found[1].lower() if found else None, authority, slash + path if slash else None


def _canonical_path(path: str) -> str:
    return canonical("http://host" + quote(path, safe=_AS_IT_IS)).removeprefix("http://host")


def _wildcards(text: str, anything: str) -> str:
    return anything.join(map(re.escape, text.split("*")))
