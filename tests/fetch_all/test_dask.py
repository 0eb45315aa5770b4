"""A Dask cluster's executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kreuz_sync import Session

from ..loopback import Server, answer

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the cluster's own libraries


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two processes, which take a few seconds to start."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def urls(server: Server, count: int) -> list[str]:
    return [server.url(f"/page/{number}", host=f"127.0.0.{number % 3 + 1}") for number in range(count)]


class TestCluster:
    """Its processes make the requests."""

    def test_every_input_has_a_result(self, server: Server, client: Any) -> None:
        server.route("/page/*", answer(body="page"))
        with Session(throttle=None) as session:
            given = [*urls(server, 40), "nonsense"]
            results = list(session.fetch_all(given, executor=client.get_executor(), workers=6))
        assert sorted(result.index for result in results) == list(range(41))
        assert [result.tag for result in results if result.tag] == ["invalid_url"]
        assert server.peak <= 6
        assert server.accepted <= 2 * 2 * 3  # each process has one session, of as many connections as threads

    def test_equal_requests_of_two_runs_are_two(self, server: Server, client: Any) -> None:
        """A cluster remembers what it takes for pure functions of their arguments."""
        server.route("/page/*", answer(body="page"))
        with Session(throttle=None) as session:
            for _ in range(2):
                assert len(list(session.fetch_all(urls(server, 3), executor=client.get_executor()))) == 3
        assert len(server.requests) == 6

    def test_a_worker_that_is_killed_costs_nothing(self, server: Server, client: Any) -> None:
        """The cluster makes its requests again elsewhere."""
        server.route("/page/*", answer(body="page", delay=0.02))
        with Session(throttle=None) as session:
            results = []
            for result in session.fetch_all(urls(server, 60), executor=client.get_executor(), workers=4):
                results.append(result)
                if len(results) == 10:
                    workers = list(client.scheduler_info()["workers"])
                    client.restart_workers(workers[:1], timeout=30, raise_for_error=False)
        assert sorted(result.index for result in results) == list(range(60))
        assert [result.error for result in results if result.error] == []
