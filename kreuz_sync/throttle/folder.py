"""The throttle of several processes on one machine, which keep one pace through a folder."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any

import requests

from kreuz_sync import checks, fork
from kreuz_sync.cache.folder.connect import connect
from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.clock import SYSTEM_CLOCK, Clock

from .hosts import HostSettings, RuleTable
from .local import Throttle
from .shared.plan import Plan
from .shared.steps import Steps
from .shared.turns import SharedTurns

FILE = "pace.db"
_TOLD = 11  # the words that come first in every step, see `Plan`
_SWEEP = 256  # steps of one process after which it removes the hosts that need no state any more

_FORK_WAIT_S = 2.0  # how long a fork waits for a step
_inherited: list[object] = []

_SCHEMA = "CREATE TABLE IF NOT EXISTS pace (host TEXT PRIMARY KEY, kept TEXT NOT NULL, until INTEGER NOT NULL)"


class FolderSteps(Steps):
    """Each step is a transaction of SQLite. All processes of a machine have one clock, its wall clock.

    `_lock` guards the connection, and is held for one step.
    """

    def __init__(self, folder: str, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._steps = 0
        self._is_paused = False
        self.after_fork()
        fork.renew_in_child(self)
        fork.pause_for_fork(self)

    def before_fork(self) -> None:
        """Have no connection: SQLite's locks are those of one process, and it does not look who it is in."""
        self._is_paused = self._lock.acquire(timeout=_FORK_WAIT_S)
        if self._is_paused:
            self._drop()

    def after_fork_in_parent(self) -> None:
        if self._is_paused:
            self._lock.release()

    def after_fork(self) -> None:
        """In a child. What it inherited in the middle of a step must not even be closed."""
        self._lock = threading.Lock()
        if self._connection is not None:
            _inherited.append(self._connection)
        self._connection = None

    def __del__(self) -> None:
        self._drop()

    def send(self, what: str, name: str, words: tuple[bytes, ...]) -> Any:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return self._step(self._connection, what, name, words)
            except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as error:
                self._drop()
                raise StoreTrouble(f"the folder of the pace failed: {type(error).__name__}") from error
            except BaseException:  # an interrupt, maybe within the transaction
                self._drop()
                raise

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _step(self, connection: sqlite3.Connection, what: str, name: str, words: tuple[bytes, ...]) -> Any:
        connection.execute("BEGIN IMMEDIATE")
        now = time_ns() // 1000  # within the transaction: no other step comes between
        row = connection.execute("SELECT kept FROM pace WHERE host = ? AND until > ?", (name, now)).fetchone()
        plan = Plan(None if row is None else json.loads(row[0]), now, [int(word) for word in words[:_TOLD]])
        answer = _answer(plan, what, words[_TOLD:])
        connection.execute("REPLACE INTO pace VALUES (?, ?, ?)", (name, json.dumps(plan.kept()), plan.until()))
        self._steps += 1
        if self._steps % _SWEEP == 0:
            connection.execute("DELETE FROM pace WHERE until <= ?", (now,))
        connection.execute("COMMIT")
        return answer

    def _open(self) -> sqlite3.Connection:
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, FILE)
        # For nobody else: which hosts somebody asks is his own affair.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # A process that is killed leaves nothing half-written in a database that is opened so, and no step waits
        # for the disk.
        connection = connect(path, self._timeout)
        try:
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _answer(plan: Plan, what: str, words: tuple[bytes, ...]) -> list[Any]:
    if what == "take":
        claim, epoch, patience, least = (int(word) for word in words)
        return plan.take(claim, epoch, patience, least)
    kind, *rest = (word.decode("utf-8", "surrogatepass") for word in words)
    return plan.learn(kind, rest)


class FolderThrottle(Throttle):
    """A `Throttle` whose pace is kept by all processes of one machine that are given the same folder.

    folder: where a file `pace.db` is kept, an SQLite database; made if it is not there. It has to be on a disk of the
    machine: locks over a network do not hold. That of a cache may be given. timeout: seconds to wait for a lock on
    it. The rest is as of `Throttle`, but that there is no `state`: that is in the folder, and outlives
    all processes. All who share a folder should have the same settings.

    What is shared, and what happens when it fails, is as of `RedisThrottle`, with the machine's wall clock for that
    of Redis. A folder that cannot be written, or is no such database, costs one warning, and each process keeps
    the pace of each host by itself. It pickles, and a copy is the same throttle.
    """

    fields = ("folder", "timeout", *(name for name in Throttle.fields if name != "state"))

    folder: str
    timeout: float
    _steps: FolderSteps

    def __init__(
        self,
        folder: str | os.PathLike[str],
        delay: float = 0.2,
        *,
        timeout: float = 2.0,
        hosts: Mapping[str, float | HostSettings] | None = None,
        max_delay: float = 60.0,
        max_wait: float | None = None,
        concurrency: int | None = None,
        key: Callable[[str], str] | None = None,
        bucket: Callable[[requests.PreparedRequest], str | None] | None = None,
        smooth: bool = False,
        max_crawl_delay: float = 300.0,
        max_retry_after: float = 300.0,
        first_backoff: float = 1.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        path = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
        self._fix(
            folder=os.path.abspath(checks.text("folder", path)),
            timeout=checks.seconds("timeout", timeout, above=0),
        )
        self._fix(_steps=FolderSteps(self.folder, self.timeout))
        super().__init__(
            delay,
            hosts=hosts,
            max_delay=max_delay,
            max_wait=max_wait,
            concurrency=concurrency,
            key=key,
            bucket=bucket,
            smooth=smooth,
            max_crawl_delay=max_crawl_delay,
            max_retry_after=max_retry_after,
            first_backoff=first_backoff,
            clock=clock,
        )

    def close(self) -> None:
        """Close the database. It is opened anew when the throttle is used again."""
        self._steps.close()

    def _turns_of(self, table: RuleTable, clock: Clock) -> SharedTurns:
        return SharedTurns(table, clock, self._steps)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
