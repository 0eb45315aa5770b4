"""Each test runs once with requests' session and once with each of ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import requests
import urllib3

import kreuz_sync


def _everything_on() -> requests.Session:
    return kreuz_sync.Session(
        throttle=kreuz_sync.Throttle(0, first_backoff=0.001),
        retry=kreuz_sync.Retry(2, base=0.001),
        user_agents=["agent/1"],
    )


def _with_a_cache() -> requests.Session:
    """What the origin allows to keep is kept: here nearly nothing, but all goes through the cache."""
    kreuz_sync = pytest.importorskip("kreuz_sync")
    cache = kreuz_sync.Cache(kreuz_sync.MemoryStore(), policy="rfc9111")
    return kreuz_sync.Session(throttle=None, cache=cache)


KINDS: dict[str, Callable[[], requests.Session]] = {
    "requests": requests.Session,
    "without pace": lambda: kreuz_sync.Session(throttle=None),
    "everything on": _everything_on,
    "with a cache": _with_a_cache,
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    """Whose session is tested."""
    return str(request.param)


@pytest.fixture
def ours(kind: str) -> bool:
    """Whether it is one of ours: for the few places where it has to differ."""
    return kind != "requests"


@pytest.fixture
def make_session(kind: str) -> Iterator[Callable[[], requests.Session]]:
    """Makes sessions of that kind, and closes them in the end."""
    made: list[requests.Session] = []

    def make() -> requests.Session:
        made.append(KINDS[kind]())
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(make_session: Callable[[], requests.Session]) -> requests.Session:
    """One session."""
    return make_session()


@pytest.fixture
def unverified() -> Iterator[None]:
    """Without urllib3's warning about `verify=False`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        yield
