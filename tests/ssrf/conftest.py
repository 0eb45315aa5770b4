"""Sessions with a guard, and a resolver in place of the system's."""

import socket

import pytest

from kreuz_sync import AddressGuard, Session

from .resolving import PRIVATE, Resolver


@pytest.fixture
def open_session():
    """Sessions without pace, closed at the end. `public` makes 127.0.0.1 public, by these names."""
    made = []

    def make(public=None, **settings):
        guard = {"private": [PRIVATE, "10.0.0.0/8"], "lookup": public} if public is not None else {}
        for name in ("redirects_only", "proxies", "allow", "private", "lookup"):
            if name in settings:
                guard[name] = settings.pop(name)
        session = Session(**{"throttle": None, "deny_private": AddressGuard(**guard), **settings})
        made.append(session)
        return session

    yield make
    for session in made:
        session.close()


@pytest.fixture
def strict(open_session):
    """A session with `deny_private=True`."""
    return open_session(deny_private=True)


@pytest.fixture
def resolve(monkeypatch):
    """The machine's own look-up, replaced as a test of somebody else's would do it."""

    def make(**names):
        resolver = Resolver(**names)
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        return resolver

    return make
