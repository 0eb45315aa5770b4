"""Several processes before one loopback server: when they were let go, and when their requests came there."""

from __future__ import annotations

import itertools
import subprocess
import sys

from .loopback import Server
from .test_cache_store_processes import ROOT, finish

# Between leave and the server lie an answer, a connection and two threads, which a busy machine may run late. By the
# clock that gives leave the distances are exact.
NOISE_S = 0.15
ROUNDING_S = 1e-6


def reader(throttle: str) -> str:
    """A program with a session, which says when it was let go, in microseconds of the clock that all share.

    throttle: an expression for it, of `place` and `delay`. Arguments: place, URL, delay, how many requests.
    """
    return f"""
import sys
from kreuz_sync import FolderThrottle, RedisThrottle, Session
place, url, delay, count = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
throttle = {throttle}
take = throttle.turns.take
def noted(name, *given):
    turn = take(name, *given)
    if name == "127.0.0.1":
        print(throttle.turns.roster.hosts[name].as_of, flush=True)
    return turn
throttle.turns.take = noted
with Session(throttle=throttle, retry=None) as session:
    # The first request of a process takes long on its way: it loads and connects what later ones have.
    session.get(url.replace("127.0.0.1", "127.0.0.3"))
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        session.get(url)
throttle.close()
"""


class Crew:
    """Processes that begin together."""

    def __init__(self, code: str, count: int, *arguments: object) -> None:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        self.processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for _ in range(count)
        ]
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]

    def go(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def kill_one(self) -> str:
        """What it had said by then."""
        victim = self.processes.pop()
        victim.kill()
        return victim.communicate()[0]

    def outputs(self) -> list[str]:
        return [finish(process) for process in self.processes]

    def moments(self) -> list[float]:
        """When each request was let go, in seconds."""
        return let_go(*self.outputs())


def let_go(*outputs: str) -> list[float]:
    return sorted(int(line) / 1e6 for output in outputs for line in output.split())


def gaps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(sorted(moments))]


def arrivals(server: Server) -> list[float]:
    return [request.at for request in server.requests if request.fields["Host"].startswith("127.0.0.1:")]
