"""Where the robots.txt of a URL is: one for each origin, scheme, host and port (RFC 9309, section 2.3). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from kreuz_sync.urls import canonical_host, origin_of, site_of


class Place(NamedTuple):
    """An origin, as a URL names it.

    site: what URLs begin with, up to their path. origin: the same in one spelling. host: its name.
    robots_url: where its file is.
    """

    site: str
    origin: str
    host: str
    robots_url: str


def place_of(url: str) -> Place | None:
    """The origin of `url`; None for what has no robots.txt: another scheme, or no URL.

    >>> place_of("http://me:pw@Example.com:8080/a").robots_url
    'http://Example.com:8080/robots.txt'
    """
    end = url.find("/", 8)  # behind the slashes of `https://`
    return _place_of_site(url[:end] if end > 0 else site_of(url))


@lru_cache(maxsize=4096)
def _place_of_site(site: str) -> Place | None:
    site = site_of(site)  # it may still have a query in it
    try:
        parts = urlsplit(site)
        host = canonical_host(parts.hostname or "")
        if parts.scheme not in ("http", "https") or not host:
            return None
        address = parts.netloc.rpartition("@")[2]
        return Place(site, origin_of(site), host, f"{parts.scheme}://{address}/robots.txt")
    except ValueError:  # no port, no address
        return None
