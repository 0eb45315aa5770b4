"""The same list again, over a cache: what is fresh is not asked for a second time, however the first run ended."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kreuz_sync import Cache, Session

from ..loopback import Server, answer
from ..waiting import eventually

COUNT = 150
ROUNDS = 3

# Begun anew, it does the same: it says how many results it had.
PROGRAM = """
import sys
from kreuz_sync import Cache, Session
folder, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
urls = [f"http://127.0.0.{number % 3 + 1}:{port}/page/{number}" for number in range(count)]
with Session(cache=Cache(folder), throttle=0.005) as session:
    results = list(session.fetch_all(urls, workers=4))
assert all(result.response is not None and result.response.text == "page" for result in results)
print(len(results))
"""


@pytest.fixture
def pages(server: Server) -> Server:
    server.route("/page/*", answer(body="page", fields={"Cache-Control": "max-age=3600"}))
    return server


def program(pages: Server, folder: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(folder), str(pages.port), str(COUNT)]


class TestAgain:
    """Without and with an interruption."""

    @pytest.mark.parametrize("policy", ["ttl", "rfc9111"])
    def test_a_second_run_asks_for_nothing(self, pages: Server, tmp_path: Path, policy: str) -> None:
        given = [pages.url(f"/page/{number}") for number in range(30)]
        for _ in range(2):
            with Session(cache=Cache(tmp_path, policy=policy), throttle=0) as session:
                assert {result.tag for result in session.fetch_all(given)} == {None}
        assert len(pages.requests) == 30

    def test_a_run_that_was_left_goes_on_where_it_was(self, pages: Server, tmp_path: Path) -> None:
        given = [pages.url(f"/page/{number}") for number in range(30)]
        with Session(cache=Cache(tmp_path), throttle=0) as session:
            for result in session.fetch_all(given, workers=2):
                if result.index > 10:
                    break
            list(session.fetch_all(given))
        # What was shut down on the wire is asked for again, and nothing else.
        assert len(pages.requests) <= 30 + 2 + 1

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
    def test_a_process_that_is_killed_at_any_moment(self, pages: Server, tmp_path: Path) -> None:
        """Each kill costs at most what was under way and the entry that was being written."""
        draw = random.Random(6)
        for _ in range(ROUNDS):
            before = len(pages.requests)
            process = subprocess.Popen(program(pages, tmp_path), stdout=subprocess.PIPE)
            wanted = before + draw.randrange(1, COUNT // (ROUNDS + 1))
            eventually(lambda process=process, wanted=wanted: len(pages.requests) >= wanted or process.poll() == 0)
            process.kill()
            process.communicate(timeout=30)
        killed = len(pages.requests)
        done = subprocess.run(program(pages, tmp_path), capture_output=True, timeout=60, check=True)
        assert int(done.stdout) == COUNT
        paths = [request.path for request in pages.requests]
        assert len(set(paths)) == COUNT
        assert len(paths) - COUNT <= ROUNDS * (2 * 4 + 1)
        assert len(paths) > killed

        again = subprocess.run(program(pages, tmp_path), capture_output=True, timeout=60, check=True)
        assert int(again.stdout) == COUNT
        assert len(pages.requests) == len(paths)
