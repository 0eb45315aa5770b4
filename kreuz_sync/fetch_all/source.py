"""Reading the list: no further ahead of the results than is allowed, and far enough to find work for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

from kreuz_sync.errors import InvalidItem

from .bell import Bell
from .crew import Crew
from .items import key_of
from .making import Maker
from .result import Result
from .schedule import Job

USUALLY = 5  # so many times fewer than `ahead` inputs are held, as long as enough hosts are among them
HOSTS_A_WORKER = 4  # these are enough
QUICK_S = 0.001  # a list that gives its next input within this time is read while results wait to be taken
JOIN_S = 0.2


class Source:
    """The list of one run, and how far it has been read.

    ahead: inputs that may have been read and have no result yet. A fifth of that is held, and more only as
    long as the inputs of few hosts make up nearly all of it: others may follow. ended: whether it has been
    read to its end. count: inputs read.
    """

    def __init__(
        self,
        urls: Iterable[Any],
        crew: Crew,
        maker: Maker,
        name_of: Callable[[str], str],
        *,
        ahead: int,
        workers: int,
    ) -> None:
        self.ended = False
        self.count = 0
        self._inputs: Iterator[Any] = iter(urls)
        self._crew = crew
        self._maker = maker
        self._name_of = name_of
        self._ahead = ahead
        self._usual = max(1, ahead // USUALLY)
        self._enough_hosts = HOSTS_A_WORKER * workers
        self._quick = True

    @property
    def has_room(self) -> bool:
        """Whether another input may be read."""
        schedule = self._crew.schedule
        if self.ended or self.count - self._crew.given >= self._ahead:
            return False
        return schedule.queued < self._usual or len(schedule.lines) < self._enough_hosts

    @property
    def runs_low(self) -> bool:
        """Whether another input should be read although there are results to be taken first."""
        return self._quick and self._crew.schedule.queued < self._usual // 2 and self.has_room

    def step(self) -> None:
        """Read the next input. Raises what reading it raises."""
        began = perf_counter()
        try:
            given = next(self._inputs)
        except StopIteration:
            self.ended = True
            return
        self._quick = perf_counter() - began < QUICK_S
        index = self.count
        self.count += 1
        try:
            ask = self._maker.read(given, index)
        except InvalidItem as error:
            self._crew.add(Result(given, index, "", None, error))
            return
        self._crew.put(Job(index, given, key_of(ask), ask.priority), self._name_of(ask.text))


class Reader:
    """Reads a source on a thread of its own, so that a list that waits does not keep results waiting."""

    def __init__(self, source: Source, crew: Crew) -> None:
        self.bell = Bell()  # rung when results were taken
        self._source = source
        self._crew = crew
        self._thread = threading.Thread(target=self._run, name="kreuz_sync-fetch_all-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread, unless the list keeps it: it ends as soon as that gives something."""
        self.bell.ring()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        crew, source = self._crew, self._source
        try:
            while not source.ended and not crew.stopped:
                if source.has_room:
                    source.step()
                else:
                    self.bell.wait(1.0)
        except BaseException as error:  # it has to end the run, not this thread alone
            crew.fail(error)
        crew.listener.ring()


def inputs(urls: Any) -> Iterable[Any]:
    """`urls`, if that is a list of any kind. Raises TypeError."""
    if isinstance(urls, (str, bytes, Mapping)) or not isinstance(urls, Iterable):
        raise TypeError(f"urls={urls!r}: a list of URLs is wanted, or anything else that gives one after the other")
    return urls
