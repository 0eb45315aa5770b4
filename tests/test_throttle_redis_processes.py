"""The pace that several processes keep through Redis, by its clock and as a server sees it."""

from __future__ import annotations

import pytest

from .loopback import Server, sequence
from .pace_processes import NOISE_S, ROUNDING_S, Crew, arrivals, gaps, let_go, reader
from .redis_server import RedisServer
from .test_cache_store_processes import posix

pytestmark = pytest.mark.slow

pytest.importorskip("redis")

READER = reader(
    "RedisThrottle(__import__('redis').Redis.from_url(place), delay, namespace='crawl', timeout=5, first_backoff=0.4)"
)


@posix
class TestSeveralProcesses:
    def test_four_are_as_polite_as_one(self, own_redis: RedisServer, server: Server) -> None:
        """Whoever sends them, the server gets one request in each delay."""
        crew = Crew(READER, 4, own_redis.url, server.url("/"), 0.3, 3)
        crew.go()
        moments = crew.moments()
        assert len(moments) == len(arrivals(server)) == 12
        assert min(gaps(moments)) >= 0.3 - ROUNDING_S
        assert min(gaps(arrivals(server))) >= 0.3 - NOISE_S

    def test_a_429_slows_all_of_them(self, own_redis: RedisServer, server: Server) -> None:
        """From 0.1 s to 0.2 s, for all that are let go once it is known."""
        url = server.route("/refuses", sequence(*[200] * 6, 429, *[503] * 20))
        crew = Crew(READER, 4, own_redis.url, url, 0.1, 4)
        crew.go()
        distances = gaps(crew.moments())
        assert min(distances) >= 0.1 - ROUNDING_S
        assert min(distances[-8:]) >= 0.2 - ROUNDING_S

    def test_killing_one_loses_no_more_than_its_slot(self, own_redis: RedisServer, server: Server) -> None:
        crew = Crew(READER, 3, own_redis.url, server.url("/"), 0.1, 10)
        crew.go()
        server.wait_for(3 + 6)
        said = crew.kill_one()
        others = crew.outputs()
        assert [len(output.split()) for output in others] == [10, 10]
        assert min(gaps(let_go(said, *others))) >= 0.1 - ROUNDING_S
        assert max(gaps(let_go(said, *others))) < 5.0  # nobody waits for one who is gone

    def test_a_restart_of_redis_in_between(self, own_redis: RedisServer, server: Server) -> None:
        """All go on, and are one pace again afterwards."""
        crew = Crew(READER, 3, own_redis.url, server.url("/"), 0.1, 12)
        crew.go()
        server.wait_for(3 + 6)
        own_redis.restart()
        crew.outputs()
        times = arrivals(server)
        assert len(times) == 36
        assert times[-1] - times[-11] >= 10 * 0.1 - NOISE_S
