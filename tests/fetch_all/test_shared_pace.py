"""Several processes that keep one pace, as the server sees it."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync import FolderThrottle, RedisThrottle, Session, Throttle

from ..loopback import Server, answer, sequence
from ..redis_server import GivenServer
from ..waiting import Worker

DELAY_S = 0.05
PROCESSES = 4

# Whoever is stalled between its turn and sending makes two requests look closer than they were let go.
STALL_S = 0.02

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),  # of a cluster
]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    """A Dask cluster's."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.fixture
def executor(request: pytest.FixtureRequest) -> Executor:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def through_redis(server: GivenServer, space: str) -> Throttle:
    redis = importlib.import_module("redis")
    return RedisThrottle(partial(redis.Redis.from_url, server.url), DELAY_S, namespace=space)


@pytest.fixture
def throttle(request: pytest.FixtureRequest, tmp_path: Path) -> Throttle:
    if request.param == "redis":
        return through_redis(request.getfixturevalue("redis_server"), request.getfixturevalue("redis_space"))
    return FolderThrottle(tmp_path, DELAY_S)


def urls(server: Server, count: int) -> list[str]:
    return [server.url(f"/page/{number}", host=f"127.0.0.{number % 2 + 1}") for number in range(count)]


def moments(server: Server) -> dict[str, list[float]]:
    """When each host was asked."""
    found: dict[str, list[float]] = {}
    for request in server.requests:
        found.setdefault(request.local[0], []).append(request.at)
    return found


each = pytest.mark.parametrize(
    ("executor", "throttle"), list(itertools.product(["pool", "cluster"], ["redis", "folder"])), indirect=True
)


class TestPace:
    """One pace, whoever keeps it and wherever requests are made."""

    @each
    def test_it_is_the_same_as_that_of_one_process(
        self, server: Server, executor: Executor, throttle: Throttle
    ) -> None:
        server.route("/page/*", answer(body="page"))
        with Session(throttle=throttle) as session:
            results = list(session.fetch_all(urls(server, 24), executor=executor))
        assert [result.tag for result in results] == [None] * 24
        for asked in moments(server).values():
            assert asked[-1] - asked[0] >= 0.9 * 11 * DELAY_S - STALL_S

    @each
    def test_a_429_slows_down_all(self, server: Server, executor: Executor, throttle: Throttle) -> None:
        """The delay is doubled by it, and halved after five good answers."""
        server.route("/page/*", sequence(answer(429), answer(body="page")))
        given = [server.url(f"/page/{number}") for number in range(6)]
        with Session(throttle=throttle) as session:
            assert len(list(session.fetch_all(given, executor=executor, workers=4))) == 6
        (asked,) = moments(server).values()
        # What was let go before its answer came may still be at the old pace.
        assert asked[-1] - asked[1] >= 0.9 * (2 * 2 * DELAY_S + 2 * DELAY_S) - STALL_S

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
    @pytest.mark.parametrize("throttle", ["redis", "folder"], indirect=True)
    def test_a_process_that_is_killed_loses_no_turn_for_ever(self, server: Server, throttle: Throttle) -> None:
        """Others go on with the same pace at once."""
        server.route("/page/*", answer(body="page", delay=0.05))
        with Session(throttle=throttle) as session:
            with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                waiting = Worker(list, session.fetch_all(urls(server, 20), executor=pool))
                server.wait_for(2, seconds=60)
                os.kill(next(iter(pool._processes)), signal.SIGKILL)
                assert len(waiting.outcome()) == 20
            before = len(server.requests)
            server.route("/page/*", answer(body="page"))
            assert {result.tag for result in session.fetch_all(urls(server, 10))} == {None}
            assert len(server.requests) == before + 10


class TestRestart:
    """The server that keeps the pace goes away, and comes back."""

    def test_the_run_goes_on_meanwhile(self, server: Server, own_redis: Any, pool: ProcessPoolExecutor) -> None:
        server.route("/page/*", answer(body="page"))
        with Session(throttle=through_redis(own_redis, "restarted")) as session:
            tags = []
            for number, result in enumerate(session.fetch_all(urls(server, 40), executor=pool)):
                tags.append(result.tag)
                if number == 10:
                    own_redis.stop()
                if number == 20:
                    own_redis.start()
        assert tags == [None] * 40
