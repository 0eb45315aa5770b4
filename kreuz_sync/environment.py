"""What requests looks up anew for every call, remembered until something it depends on changes.

For each call requests walks through all environment variables, twice, for proxies, and opens
the netrc file: half of the time that it spends on a call. Here the answers are kept by host,
and dropped as soon as an environment variable or a netrc file is not what it was. The look-ups
themselves stay requests' own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies, get_netrc_auth

from .clock import SYSTEM_CLOCK

HOSTS_KEPT = 4096
YOUNG_S = 1.0  # file systems count time in ticks of up to some milliseconds, a few in whole seconds

# On these systems proxies also come from settings outside the environment, whose changes
# can't be seen from here: there they are looked up for every call.
_PROXIES_ELSEWHERE = sys.platform in ("win32", "darwin")


class Environment:
    """Proxies, CA bundle and netrc credentials, as the process's environment has them now.

    All state is one immutable snapshot with its dictionaries, replaced as a whole; a thread
    that still fills an old one does no harm. So there is no lock.
    """

    def __init__(self) -> None:
        self._seen = _Snapshot({})

    def proxies(self, url: str, no_proxy: str | None) -> dict[str, str]:
        """What requests' get_environ_proxies says for `url`; a new dict each time."""
        if _PROXIES_ELSEWHERE:
            return dict(get_environ_proxies(url, no_proxy=no_proxy))
        known = self._now().proxies
        key = (_site(url), no_proxy)
        found = known.get(key)
        if found is None:
            found = _keep(known, key, dict(get_environ_proxies(url, no_proxy=no_proxy)))
        return found.copy()

    def ca_bundle(self) -> str | None:
        """REQUESTS_CA_BUNDLE, or else CURL_CA_BUNDLE; None if neither is set."""
        return self._now().ca_bundle

    def netrc_auth(self, url: str) -> tuple[str, str] | None:
        """The credentials that the netrc file has for the host of `url`."""
        snapshot = self._now()
        state = tuple(map(_file_state, snapshot.netrc_files))
        if state != snapshot.netrc_state:
            # In this order: a reader that meets the new state meets the new dictionary too.
            snapshot.netrc = {}
            snapshot.netrc_state = state
        known = snapshot.netrc
        if not any(state):
            return None
        if any(file is not None and abs(SYSTEM_CLOCK.wall() - file[0] / 1e9) < YOUNG_S for file in state):
            # Written a moment ago: a second write of the same length may carry the same time.
            return get_netrc_auth(url)
        key = _site(url)
        if key not in known:
            _keep(known, key, get_netrc_auth(url))
        found: tuple[str, str] | None = known[key]
        return found

    def _now(self) -> _Snapshot:
        variables = _variables()
        seen = self._seen
        if seen.variables != variables:
            seen = self._seen = _Snapshot(dict(variables))
        return seen


class _Snapshot:
    """The environment variables at one moment, and what was looked up under them."""

    def __init__(self, variables: Mapping[Any, Any]) -> None:
        self.variables = variables
        self.proxies: dict[Any, dict[str, str]] = {}
        self.ca_bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or None
        named = os.environ.get("NETRC")
        self.netrc_files = tuple(map(os.path.expanduser, (named,) if named else ("~/.netrc", "~/_netrc")))
        self.netrc_state: tuple[Any, ...] = ()
        self.netrc: dict[Any, tuple[str, str] | None] = {}


def _variables() -> Mapping[Any, Any]:
    """All environment variables, by the quickest way there is.

    CPython keeps them encoded in `_data`; comparing that dict takes a microsecond, decoding
    it into another one twenty.
    """
    data: Mapping[Any, Any] | None = getattr(os.environ, "_data", None)
    return data if data is not None else dict(os.environ)


def _file_state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _site(url: str) -> str:
    """Scheme, host and port: what the look-ups depend on."""
    end = url.find("/", 8)
    site = url if end < 0 else url[:end]
    # A query may follow the host at once, and user information may stand before it.
    return site if "@" not in site and "?" not in site and "#" not in site else urlsplit(url)[:2].__repr__()


def _keep(known: dict[Any, Any], key: Any, value: Any) -> Any:
    if len(known) >= HOSTS_KEPT:
        known.clear()
    known[key] = value
    return value
