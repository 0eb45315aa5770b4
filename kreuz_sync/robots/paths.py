"""Paths of URLs and of rules in one spelling, so that they can be compared. Pure; RFC 9309, section 2.2.2.

Octets that are not allowed in a URL are percent-encoded, escapes of unreserved characters are
decoded, those of reserved ones are kept, hexadecimal digits are in upper case. A literal `*` or `$`
is written as an escape, since in a rule these two are specials.
"""

from __future__ import annotations

import re

_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986, section 2.3

# What there is nothing to do to: most paths and rules.
_PLAIN = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=]*")
_PLAIN_PATTERN = re.compile(rb"[A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=*]*")
_ODD = re.compile(rb"%([0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=]")

_ESCAPES = [b"%%%02X" % octet for octet in range(256)]


def _spelled(found: re.Match[bytes]) -> bytes:
    digits = found.group(1)
    if digits is None:  # an octet that is not allowed, or a percent sign that begins no escape
        return _ESCAPES[found.group()[0]]
    octet = int(digits, 16)
    return bytes([octet]) if octet in _UNRESERVED else _ESCAPES[octet]


def path_of(url: str, site: str) -> str:
    """Path and query of `url`, which begins with `site`, as rules are compared with them.

    >>> path_of("http://example.com?b=%62#top", "http://example.com")
    '/?b=b'
    """
    path = url[len(site) :].partition("#")[0]
    if path[:1] != "/":
        path = "/" + path
    if _PLAIN.fullmatch(path):
        return path
    return _ODD.sub(_spelled, path.encode("utf-8", "surrogatepass")).decode("ascii")


def pieces(pattern: bytes) -> list[str]:
    """What stands between the `*` of a rule's pattern, in the spelling of `path_of`."""
    if _PLAIN_PATTERN.fullmatch(pattern):
        return pattern.decode("ascii").split("*")
    return [_ODD.sub(_spelled, piece).decode("ascii") for piece in pattern.split(b"*")]
