"""Lists of URLs, read line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreuz_sync.urls import host_of


def urls_in(lines: Iterable[str]) -> Iterator[str]:
    """The URLs of a list: one a line; blank lines and lines that start with `#` are left out.

    >>> list(urls_in(["# pages", "", " http://example.com/a ", "http://example.com/b#c"]))
    ['http://example.com/a', 'http://example.com/b#c']
    """
    for line in lines:
        url = line.strip()
        if url and not url.startswith("#"):
            yield url


def host_key(url: str) -> str:
    """The host of `url`; "" for what is no URL, which is found out when it is fetched."""
    try:
        return host_of(url)
    except ValueError:
        return ""
