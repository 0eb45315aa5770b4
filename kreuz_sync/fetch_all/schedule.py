"""Which URL goes next: a line of jobs for each host, and the moment at which each host is due.

Pure arithmetic: moments come in as `now`, and how long a host has to be waited for is asked of
`paces`. Guarded by the crew's lock.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from math import inf
from typing import Any, Protocol

# A job is handed out a little before its host is due: the worker has to prepare the request, and waits
# in the host's line for the rest. One that came late would put off all turns after it.
EARLY_S = 0.02
# One job of a host is on its way to the host's line at a time, so that no second worker waits in it. It
# may be held up before it gets there, by a robots.txt or a refresh of credentials: then the next goes.
PATIENCE_S = 1.0
ROUNDING_S = 1e-6  # what adding and subtracting moments may cost


class Paces(Protocol):
    """What a schedule asks of a pace. All of it is cheap, and none of it waits."""

    def wait(self, name: str, now: float) -> float:
        """Seconds until the host's next turn that nobody waits for yet; 0 or less if it has come."""

    def places(self, name: str) -> int | None:
        """Requests to the host that may be under way at once; None for any number."""

    def handed_out(self, name: str, now: float) -> bool:
        """A worker gets a job of the host. True if the schedule will be told when it has had its turn there."""


class Job:
    """One request, for all inputs that ask for it.

    index, source: of the first of these. others: the rest, None for none. key: see `items.key_of`.
    handed_out: whether a worker has it. on_way: and it has not had its turn at the host yet. since: the
    moment when it was handed out.
    """

    __slots__ = ("handed_out", "index", "key", "line", "on_way", "others", "priority", "since", "source")

    def __init__(self, index: int, source: Any, key: Hashable | None = None, priority: float = 0) -> None:
        self.index = index
        self.source = source
        self.key = key
        self.priority = priority
        self.others: list[tuple[int, Any]] | None = None
        self.line: Line | None = None
        self.handed_out = self.on_way = False
        self.since = 0.0

    @property
    def inputs(self) -> list[tuple[int, Any]]:
        """Index and source of all inputs that it is for."""
        return [(self.index, self.source), *(self.others or ())]


class Line:
    """One host's jobs.

    queue: a heap, the next job first. running: jobs handed out and not finished. on_way: those of them
    that have not had their turn yet. patience: the moment until which these are waited for. places: how
    many may run, None for any number. stamp: the number that it is filed under. due: the moment it is
    filed under, -inf for ready, None if it is filed nowhere.
    """

    __slots__ = ("due", "name", "on_way", "patience", "places", "queue", "running", "stamp")

    def __init__(self, name: str, places: int | None) -> None:
        self.name = name
        self.places = places
        self.queue: list[tuple[float, int, Job]] = []
        self.running = self.on_way = self.stamp = 0
        self.patience = 0.0
        self.due: float | None = None

    def first(self) -> Job | None:
        """The next job. Entries of jobs that have been handed out are dropped."""
        while self.queue and self.queue[0][2].handed_out:
            heapq.heappop(self.queue)
        return self.queue[0][2] if self.queue else None


class Schedule:
    """All hosts' jobs. One of higher priority goes first; among equal ones, hosts take turns.

    paces: None where nothing is paced. queued: jobs that are not handed out.
    """

    def __init__(self, paces: Paces | None) -> None:
        self.paces = paces
        self.lines: dict[str, Line] = {}
        self.queued = 0
        self._equals: dict[Hashable, Job] = {}
        # A line is in one of these two heaps, under its stamp. Entries with an older stamp are void.
        self._stamps = itertools.count(1)
        self._ready: list[tuple[float, int, Line]] = []
        self._timed: list[tuple[float, int, Line]] = []

    # --- coming in ----------------------------------------------------------------------

    def put(self, job: Job, host: str, now: float) -> bool:
        """Add a job for `host` ("" for none that has a pace). False: an equal one was there, and does for both."""
        if job.key is not None:
            same = self._equals.setdefault(job.key, job)
            if same is not job:
                self._join(same, job, now)
                return False
        line = self.lines.get(host)
        if line is None:
            places = self.paces.places(host) if self.paces is not None and host else None
            line = self.lines[host] = Line(host, places)
        job.line = line
        self.queued += 1
        self._queue(line, job, now)
        return True

    def _join(self, same: Job, job: Job, now: float) -> None:
        same.others = [*(same.others or ()), (job.index, job.source)]
        if job.priority > same.priority and not same.handed_out and same.line is not None:
            same.priority = job.priority
            self._queue(same.line, same, now)  # once more; its later entry will be dropped

    def _queue(self, line: Line, job: Job, now: float) -> None:
        first = line.first()
        heapq.heappush(line.queue, (-job.priority, job.index, job))
        if first is None or (line.due == -inf and job.priority > first.priority):
            self._file(line, now)

    # --- going out ----------------------------------------------------------------------

    def take(self, now: float, only: Job | None = None) -> Job | None:
        """The job whose turn it is, handed out; None if no host is due. only: that one or none."""
        if only is not None:
            line = only.line
            return self._hand_out(line, only, now) if line is not None and self._wait(line, now) <= 0 else None
        while self._timed and self._timed[0][0] <= now:
            _, stamp, line = heapq.heappop(self._timed)
            if line.stamp == stamp:
                self._file(line, now)
        while self._ready:
            _, stamp, line = self._ready[0]
            if line.stamp != stamp:
                heapq.heappop(self._ready)
                continue
            job = line.first()
            if job is not None and self._wait(line, now) <= 0:
                return self._hand_out(line, job, now)
            self._file(line, now)  # the pace has changed since it was filed as ready
        return None

    def seconds(self, now: float, only: Job | None = None) -> float | None:
        """Seconds until a host is due, 0 if one is; None if none will be before something happens."""
        if only is not None:
            wait = inf if only.line is None else self._wait(only.line, now)
            return None if wait == inf else max(0.0, wait)
        for heap in (self._ready, self._timed):
            while heap and heap[0][2].stamp != heap[0][1]:
                heapq.heappop(heap)
        if self._ready:
            return 0.0
        return max(0.0, self._timed[0][0] - now) if self._timed else None

    @property
    def ready(self) -> int:
        """How many hosts are ready, or have been so lately."""
        return len(self._ready)

    def _hand_out(self, line: Line, job: Job, now: float) -> Job:
        job.handed_out, job.since = True, now
        self.queued -= 1
        line.running += 1
        if self.paces is not None and line.name and self.paces.handed_out(line.name, now):
            job.on_way = True
            line.on_way += 1
            line.patience = now + PATIENCE_S
        self._file(line, now)
        return job

    # --- what comes of it ---------------------------------------------------------------

    def had_turn(self, job: Job, now: float) -> None:
        """A job has had a turn at a host, its own or one that it was redirected to."""
        line = job.line
        if line is None:
            return
        if job.on_way:
            job.on_way = False
            line.on_way -= 1
        self._file(line, now)

    def finish(self, job: Job, now: float) -> None:
        """A job that was handed out is done."""
        line = job.line
        if job.key is not None:
            self._equals.pop(job.key, None)
        if line is None:
            return
        line.running -= 1
        if job.on_way:
            job.on_way = False
            line.on_way -= 1
            self._file(line, now)
        elif line.due is None or self._is_sooner(line, now):
            self._file(line, now)

    def _is_sooner(self, line: Line, now: float) -> bool:
        """Whether the host is due before the moment that it is filed under: its backoff may be halved."""
        return line.due is not None and line.due > now and now + self._wait(line, now) < line.due - EARLY_S

    # --- filing -------------------------------------------------------------------------

    def _file(self, line: Line, now: float) -> None:
        line.stamp = stamp = next(self._stamps)
        job = line.first()
        if job is None:
            line.due = None
            if not line.running and self.lines.get(line.name) is line:
                del self.lines[line.name]  # what its host's pace is, the pace remembers
            return
        wait = self._wait(line, now)
        if wait == inf:
            line.due = None
        elif wait <= 0:
            line.due = -inf
            heapq.heappush(self._ready, (-job.priority, stamp, line))
        else:
            line.due = now + wait
            heapq.heappush(self._timed, (line.due, stamp, line))

    def _wait(self, line: Line, now: float) -> float:
        """Seconds until a job of the line may be handed out; inf until one has finished."""
        if line.places is not None and line.running >= line.places:
            return inf
        if self.paces is None or not line.name:
            return 0.0
        if line.on_way and line.patience - now > ROUNDING_S:
            return line.patience - now
        wait = self.paces.wait(line.name, now) - EARLY_S
        return wait if wait > ROUNDING_S else 0.0
