"""A rate limit of the session in the way of a robots.txt: the site has said nothing, and nothing is made of it."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from kreuz_sync import Cache, MemoryStore, RateLimit, RateLimitExceeded, RateLimitUnavailable, Robots, Session
from kreuz_sync.ratelimit import CounterStore, StoreUnavailable, Usage
from kreuz_sync.ratelimit.answers import too_many

from ..fakes import FakeClock
from ..loopback import Server, answer, redirect
from .sessions import PRIVATE, asked, asking, refused


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def used_up(server: Server, clock: FakeClock, robots: dict[str, Any] | None = None, **settings: Any) -> Session:
    """A session that has sent all that its rate limit has room for, and knows no robots.txt."""
    limit = RateLimit("few", limit=1, window=60.0, clock=clock, **settings)
    session = asking(clock, rate_limits=limit, **robots or {})
    session.get(server.url("/"), robots=False)
    return session


class Out(CounterStore):
    def increment(self, key: str, window: float) -> Usage:
        raise StoreUnavailable("out")


class TestPage:
    """The page that was wanted meets the limit's own outcome."""

    def test_the_limits_own_answer_is_the_answer_to_the_page(self, server: Server, clock: FakeClock) -> None:
        session = used_up(server, clock)
        page = session.get(server.url("/page"))
        assert (page.status_code, page.from_rate_limit, page.attempts) == (429, True, 0)
        assert page.limited_by is not None and page.limited_by.name == "few"
        assert page.headers["Retry-After"] == "60"
        assert (page.url, page.request.url) == (server.url("/page"), server.url("/page"))

    def test_nothing_is_remembered_of_the_site(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", answer(body=PRIVATE))
        session = used_up(server, clock)
        for _ in range(2):
            session.get(server.url("/page"))
        assert (asked(server), session.layers[0].keeper.known_origins()) == (0, [])  # type: ignore[attr-defined]

    def test_in_the_next_window_the_file_is_asked_for(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", answer(body=PRIVATE))
        session = used_up(server, clock)
        session.get(server.url("/page"))
        clock.advance(60.0)
        refused(session, server.url("/private/page"))
        assert asked(server) == 1

    def test_a_limit_that_raises_raises_its_own_error(self, server: Server, clock: FakeClock) -> None:
        session = used_up(server, clock, on_limit="raise")
        with pytest.raises(RateLimitExceeded) as caught:
            session.get(server.url("/page"))
        assert (caught.value.policy, caught.value.retry_after) == ("few", 60.0)

    def test_so_does_one_in_the_way_of_a_redirect(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", redirect(server.url("/moved.txt")))
        session = asking(clock, rate_limits=RateLimit("few", limit=1, window=60.0, clock=clock, on_limit="raise"))
        with pytest.raises(RateLimitExceeded):
            session.get(server.url("/page"))

    def test_what_the_users_own_function_answers_is_the_answer(self, server: Server, clock: FakeClock) -> None:
        def function(request: requests.PreparedRequest, reason: object) -> requests.Response:
            response = too_many(request)
            response.status_code = 599
            return response

        assert used_up(server, clock, response=function).get(server.url("/page")).status_code == 599

    def test_with_the_pace_alone_the_page_meets_the_limit_itself(self, server: Server, clock: FakeClock) -> None:
        page = used_up(server, clock, {"mode": "crawl-delay"}).get(server.url("/page"))
        assert (page.from_rate_limit, page.url) == (True, server.url("/page"))


class TestHandle:
    """Who asks without a page is told by an error."""

    def test_a_limit_without_room(self, server: Server, clock: FakeClock) -> None:
        session = used_up(server, clock)
        with pytest.raises(RateLimitExceeded, match="over the rate limit 'few' of 1 in 60 s") as caught:
            session.robots.allowed(server.url("/page"))
        assert (caught.value.policy, caught.value.limit, caught.value.retry_after) == ("few", 1, 60.0)
        assert caught.value.ready_at == clock.wall() + 60.0

    def test_a_limit_that_cannot_tell(self, server: Server, clock: FakeClock) -> None:
        limit = RateLimit(store=Out(), response=lambda request, reason: too_many(request))
        with pytest.raises(RateLimitUnavailable):
            asking(clock, rate_limits=limit).robots.allowed(server.url("/page"))


class TestOffline:
    """A cache that is offline has not asked the site either."""

    def test_it_refuses_nothing(self, server: Server) -> None:
        session = asking(cache=Cache(MemoryStore(), offline=True))
        assert session.robots.allowed(server.url("/page"))
        assert session.get(server.url("/page")).status_code == 504
        assert server.requests == []

    def test_nor_where_robots_are_asked_before_the_cache(self, server: Server) -> None:
        with Session(layers=[Robots(), Cache(MemoryStore(), offline=True)]) as session:
            assert session.get(server.url("/page")).status_code == 504

    def test_a_file_that_is_known_goes_before_that(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", answer(body=PRIVATE))
        cache = Cache(MemoryStore())
        session = asking(clock, cache=cache)
        session.get(server.url("/page"))
        clock.advance(2 * 86_400.0)
        cache.clear()
        with cache.using(offline=True):
            assert not session.robots.allowed(server.url("/private/page"))
            assert session.robots.allowed(server.url("/page"))

    def test_it_is_asked_as_soon_as_that_is_over(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=PRIVATE))
        cache = Cache(MemoryStore())
        session = asking(cache=cache)
        with cache.using(offline=True):
            assert session.robots.allowed(server.url("/private/page"))
        refused(session, server.url("/private/page"))
