"""The fields in which proxies say whom they ask for: Forwarded, X-Forwarded-For and vendors' own.

Pure, and strict: a field that is not wholly as it should be names nobody (`KeyUnavailable`, code
`invalid_client_ip`), since whoever guesses here may be guessing at what an attacker wrote. No
error quotes a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from .failures import KeyUnavailable

Address = IPv4Address | IPv6Address

_PORT = r"[0-9]{1,5}"
_OBFUSCATED = r"_[A-Za-z0-9._-]+"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED = r'"((?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"'

# RFC 7239, section 4: a pair (there may be none between two marks) and the mark that ends it.
# No two neighbours match the same character, so that a failure takes linear time.
_PAIR = re.compile(rf"[ \t]*(?:({_TOKEN})=(?:({_TOKEN})|{_QUOTED})[ \t]*)?([;,]|\Z)")
# RFC 7239, section 6. `unknown` and obfuscated names are nodes too, but no addresses.
_NODE = re.compile(rf"(?:([0-9.]+)|\[([^\]]*)\])(?::(?:{_PORT}|{_OBFUSCATED}))?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_ITEM = re.compile(rf"(?:([0-9.]+)|\[([^\]]*)\])(?::{_PORT})?")
_BEFORE_PORT = re.compile(rf"(.+):{_PORT}")


def addresses_in(field_name: str, value: str) -> tuple[Address, ...]:
    """The addresses in one field, as they stand there: every proxy adds the one that it was asked by.

    A field that is not in the table `READERS` holds one address. Lines of one field are joined by
    commas before, which a WSGI server does.

    >>> addresses_in("X-Forwarded-For", "203.0.113.7, [2001:db8::1]:4711")
    (IPv4Address('203.0.113.7'), IPv6Address('2001:db8::1'))
    """
    try:
        return READERS.get(field_name.lower(), one_address)(value)
    except ValueError:  # whose text may quote the value
        raise KeyUnavailable("invalid_client_ip", f"the field {field_name} is malformed") from None


def is_list(field_name: str) -> bool:
    """Whether proxies append to this field, rather than write it anew."""
    return field_name.lower() in _LISTS


def forwarded(value: str) -> tuple[Address, ...]:
    """The `for` of each element of Forwarded (RFC 7239). Raises ValueError.

    Each element has exactly one, and an address in it: IPv4, or IPv6 in quotes and brackets, with
    or without a port. Other parameters are passed over.
    """
    addresses: list[Address] = []
    nodes: list[str] = []  # of the element that is being read
    position = 0
    while True:
        pair = _PAIR.match(value, position)
        if pair is None:
            raise ValueError("not the syntax of Forwarded")
        name, token, quoted, mark = pair.groups()
        if name is not None and name.lower() == "for":
            nodes.append(token if token is not None else _ESCAPED.sub(r"\1", quoted))
        if mark != ";":
            (node,) = nodes  # a ValueError too
            addresses.append(_host_of(_NODE.fullmatch(node)))
            nodes = []
        if not mark:
            return tuple(addresses)
        position = pair.end()


def x_forwarded_for(value: str) -> tuple[Address, ...]:
    """The items of X-Forwarded-For, each an address with or without a port. Raises ValueError."""
    return tuple(address_with_or_without_port(item.strip(" \t")) for item in value.split(","))


def one_address(value: str) -> tuple[Address, ...]:
    """A field that holds one address and nothing else. Raises ValueError."""
    return (plain_address(value.strip(" \t")),)


def address_and_port(value: str) -> tuple[Address, ...]:
    """CloudFront-Viewer-Address: an address, a colon, a port; IPv6 with brackets or without. Raises ValueError."""
    found = _BEFORE_PORT.fullmatch(value.strip(" \t"))
    if found is None:
        raise ValueError("no port")
    host = found[1]
    if host.startswith("["):
        return (_host_of(_ITEM.fullmatch(host)),)
    return (plain_address(host),)


def address_with_or_without_port(text: str) -> Address:
    """`192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`. Raises ValueError."""
    found = _ITEM.fullmatch(text)
    return _host_of(found) if found is not None else plain_address(text)


def plain_address(text: str) -> Address:
    """The address that `text` is. An IPv4 address in IPv6 form is that IPv4 address. Raises ValueError.

    >>> plain_address("::ffff:192.0.2.1")
    IPv4Address('192.0.2.1')
    """
    if ":" not in text:
        return IPv4Address(text)
    if "%" in text:
        raise ValueError("a zone means nothing on another machine")
    address = IPv6Address(text)
    return address.ipv4_mapped or address


def _host_of(found: re.Match[str] | None) -> Address:
    """The address in a match of `_NODE` or `_ITEM`: IPv4 bare, or IPv6 in brackets."""
    if found is None:
        raise ValueError("no address")
    bare, bracketed = found.groups()
    if bare is not None:
        return IPv4Address(bare)
    if ":" not in bracketed:
        raise ValueError("brackets are for IPv6")
    return plain_address(bracketed)


READERS: dict[str, Callable[[str], tuple[Address, ...]]] = {
    "forwarded": forwarded,
    "x-forwarded-for": x_forwarded_for,
    "cloudfront-viewer-address": address_and_port,
}
_LISTS = frozenset({"forwarded", "x-forwarded-for"})
