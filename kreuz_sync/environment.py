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

from requests.utils import get_environ_proxies, get_netrc_auth

from .clock import SYSTEM_CLOCK, Clock
from .urls import site_of

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

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._seen = _Snapshot({})

    def proxies(self, url: str, no_proxy: str | None) -> dict[str, str]:
        """What requests' get_environ_proxies says for `url`; a new dict each time."""
        if _PROXIES_ELSEWHERE:
            return dict(get_environ_proxies(url, no_proxy=no_proxy))
        known = self._now().proxies
        key = (site_of(url), no_proxy)
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
        if any(file is not None and abs(self._clock.wall() - max(file[:2]) / 1e9) < YOUNG_S for file in state):
            # Written a moment ago: a second write of the same length may carry the same time.
            return get_netrc_auth(url)
        key = site_of(url)
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


def _file_state(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # The change time also tells of permissions, and of a modification time that was put back.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _keep(known: dict[Any, Any], key: Any, value: Any) -> Any:
    if len(known) >= HOSTS_KEPT:
        known.clear()
    known[key] = value
    return value
