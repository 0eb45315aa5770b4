"""The bytes of a robots.txt file, cut into lines that mean something. Pure; RFC 9309, sections 2.2 and 2.5.

Works on bytes: what is not UTF-8 is then no error, and a pattern in another encoding still
matches the URLs that the site makes with it. Cutting text into lines is Python's own idea of a
line end (U+2028, U+0085, form feeds), which is not this format's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

LIMIT = 500 * 1024  # bytes that have to be read of a file (section 2.5); no more are

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LAST_LINE_END = re.compile(rb"[\r\n](?=[^\r\n]*\Z)")


class Kind(Enum):
    """What a line says. Lines of other kinds are as if they were not there."""

    AGENT = "User-agent"
    ALLOW = "Allow"
    DISALLOW = "Disallow"
    DELAY = "Crawl-delay"
    RATE = "Request-rate"
    SITEMAP = "Sitemap"


# Lower case. With the misspellings that Google's parser reads.
_KINDS = {
    b"user-agent": Kind.AGENT,
    b"useragent": Kind.AGENT,
    b"user agent": Kind.AGENT,
    b"allow": Kind.ALLOW,
    b"disallow": Kind.DISALLOW,
    b"dissallow": Kind.DISALLOW,
    b"dissalow": Kind.DISALLOW,
    b"disalow": Kind.DISALLOW,
    b"diasllow": Kind.DISALLOW,
    b"disallaw": Kind.DISALLOW,
    b"crawl-delay": Kind.DELAY,
    b"crawl delay": Kind.DELAY,
    b"crawldelay": Kind.DELAY,
    b"request-rate": Kind.RATE,
    b"sitemap": Kind.SITEMAP,
    b"site-map": Kind.SITEMAP,
}


def within_limit(content: bytes) -> bytes:
    """`content` up to LIMIT bytes. A line that is cut there is dropped: half a path is another path."""
    if len(content) <= LIMIT:
        return content
    kept = content[:LIMIT]
    if content[LIMIT : LIMIT + 1] in (b"\r", b"\n"):
        return kept
    end = _LAST_LINE_END.search(kept)
    return kept[: end.start()] if end else b""


def lines_of(content: bytes) -> Iterator[tuple[Kind, bytes]]:
    """The lines that say something, each with its value.

    >>> list(lines_of(b"USER-AGENT: *  # all\\r\\nDisallow /x\\rnonsense"))
    [(<Kind.AGENT: 'User-agent'>, b'*'), (<Kind.DISALLOW: 'Disallow'>, b'/x')]
    """
    content = within_limit(content).removeprefix(_BYTE_ORDER_MARK)
    for line in content.replace(b"\r", b"\n").split(b"\n"):
        key, colon, value = line.partition(b"#")[0].partition(b":")
        kind = _KINDS.get(key.strip(b" \t").lower())
        if kind is None or not colon:
            # Google's parser also takes a key and a value without a colon between them.
            words = line.partition(b"#")[0].split()
            kind = _KINDS.get(words[0].lower()) if len(words) == 2 else None
            value = words[1] if kind is not None else b""
        if kind is not None:
            yield kind, value.strip(b" \t")
