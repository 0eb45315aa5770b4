"""Sessions that ask robots.txt, for tests."""

from __future__ import annotations

from typing import Any

import pytest

from kreuz_sync import Robots, RobotsDisallowed, Session

from ..fakes import FakeClock
from ..loopback import Server

OPEN: list[Session] = []  # closed when the test is over

CLOSED = "User-agent: *\nDisallow: /"
PRIVATE = "User-agent: *\nDisallow: /private/"


def asking(clock: FakeClock | None = None, **settings: Any) -> Session:
    """A session without pace. Settings of `Robots` go to that, the others to the session."""
    own = {name: settings.pop(name) for name in list(settings) if name in Robots.fields}
    if clock is not None:
        own["clock"] = clock
    settings.setdefault("throttle", None)
    settings.setdefault("timeout", 10.0)
    return opened(robots=Robots(**own), **settings)


def opened(**settings: Any) -> Session:
    """A session."""
    OPEN.append(Session(**settings))
    return OPEN[-1]


def refused(session: Session, url: str, **options: Any) -> RobotsDisallowed:
    """The error of a GET that robots.txt does not allow."""
    with pytest.raises(RobotsDisallowed) as caught:
        session.get(url, **options)
    return caught.value


def asked(server: Server) -> int:
    """How often the server was asked for its robots.txt."""
    return len(server.requests_to("/robots.txt"))
