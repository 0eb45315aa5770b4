"""URLs in the one form in which they are compared, and in the form in which they are shown. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_plus

from kreuz_sync.urls import DEFAULT_PORTS, redact

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:(?P<user>[^/?#]*)@)?(?P<host>\[[^\]/?#]*\]|[^:/?#]*)(?::(?P<port>[0-9]{0,9}))?"
    r"(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@lru_cache(maxsize=4096)
def canonical(url: str, ignored_query: tuple[str, ...] = ()) -> str:
    """`url` without what RFC 3986, section 6.2.2 and 6.2.3, calls no difference, and without its user.

    Case of scheme and host, the default port, an empty path, `.` and `..`, and needless
    percent-encoding go; the fragment too. The query stays in its order, less the parameters
    whose names are in `ignored_query` (`*` in them stands for anything).

    >>> canonical("HTTP://Example.com:80/%7euser/./a?b=2&a=1#top")
    'http://example.com/~user/a?b=2&a=1'
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        return url
    scheme, host, port = parts["scheme"].lower(), parts["host"].lower(), parts["port"]
    if port and int(port) != DEFAULT_PORTS.get(scheme):
        host = f"{host}:{int(port)}"
    path, query = _decoded(parts["path"] or "/"), _decoded(parts["query"] or "")
    if "/." in path:
        path = _without_dots(path)
    if ignored_query and query:
        query = _kept_query(query, ignored_query)
    return f"{scheme}://{host}{path}{query}"


@lru_cache(maxsize=4096)
def listed(url: str, ignored_query: tuple[str, ...] = ()) -> str:
    """`url` as a listing may show it: no user, and no values of ignored or of secret query parameters."""
    shown = redact(canonical(url))
    path, mark, query = shown.partition("?")
    if not mark or not ignored_query:
        return shown
    expression = one_of(ignored_query)
    return path + "?" + "&".join(_redacted(pair, expression) for pair in query.split("&"))


def user_of(url: str) -> str:
    """The user information in `url`, "" without one."""
    parts = _URL.fullmatch(url) if "@" in url else None
    return (parts["user"] or "") if parts else ""


def _decoded(text: str) -> str:
    """`text` with unreserved characters as they are, and other escapes in upper case."""
    return _ESCAPED.sub(_decoded_one, text) if "%" in text else text


def _decoded_one(escape: re.Match[str]) -> str:
    character = chr(int(escape.group()[1:], 16))
    return character if character in _UNRESERVED else escape.group().upper()


def _without_dots(path: str) -> str:
    """RFC 3986, section 5.2.4, for an absolute path."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _kept_query(query: str, ignored: tuple[str, ...]) -> str:
    expression = one_of(ignored)
    kept = [pair for pair in query[1:].split("&") if not expression.fullmatch(_query_name(pair))]
    return "?" + "&".join(kept) if kept else ""


def _redacted(pair: str, ignored: re.Pattern[str]) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}=REDACTED" if equals and ignored.fullmatch(_query_name(pair)) else pair


def _query_name(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0])


@lru_cache(maxsize=64)
def one_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """An expression for any of `names`, in which `*` stands for anything."""
    return re.compile("|".join(".*".join(map(re.escape, name.split("*"))) for name in names), re.DOTALL)
