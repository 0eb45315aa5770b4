"""One run of `fetch_all`, as whoever iterates sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableSet
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from .progress import Progress
from .result import Result

if TYPE_CHECKING:
    from .crew import Crew
    from .source import Reader, Source

# A wait for a lock can't be interrupted on Windows, so it is made of short ones.
LOOK_AGAIN_S = 0.5
READ_A_RESULT = 64  # inputs read before a result is given, where they run low


class Hands(Protocol):
    """Who does the work."""

    def end(self) -> None:
        """Wait for all of it, after the crew was stopped."""


class FetchAll(Iterator[Result]):
    """The results of `Session.fetch_all`, one after the other as they come.

    It begins with the first one that is asked for, and is to be iterated by one thread. When it is closed,
    left by a `with` block or forgotten, and when an exception passes through it, everything stops: what
    waits is woken, what is on the wire is shut down, threads have ended. The session goes on.
    """

    def __init__(
        self,
        crew: Crew,
        source: Source,
        reader: Reader | None,
        hands: Hands,
        runs: MutableSet[Crew],
        progress: Progress,
        *,
        ordered: bool,
        raises: bool,
    ) -> None:
        self._crew = crew
        self._source = source
        self._reader = reader
        self._hands = hands
        self._runs = runs  # those of the session, which ends them when it is closed
        self._held: dict[int, Result] | None = {} if ordered else None  # those that came before their time
        self._raises = raises
        self._progress = progress
        self._iterating = threading.Lock()
        self._begun = self._over = False

    def __iter__(self) -> FetchAll:
        return self

    def __next__(self) -> Result:
        if not self._iterating.acquire(blocking=False):
            raise ValueError("this fetch_all is iterated already: by another thread, or by the list that it reads")
        try:
            result = None if self._over else self._next()
        except BaseException:
            self.close()
            raise
        finally:
            self._iterating.release()
        if result is None:
            self.close()
            raise StopIteration
        self._progress.step(failed=result.tag is not None)
        if self._raises and result.error is not None:
            self.close()
            raise result.error
        return result

    def close(self) -> None:
        """Stop everything. Does nothing the second time."""
        if not self._over:
            self._over = True
            try:
                self._crew.stop()
                if self._reader is not None:
                    self._reader.join()
                self._hands.end()
                self._forget()
            finally:
                self._progress.close()

    def __enter__(self) -> FetchAll:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_over", True):
            self.close()

    # --- the next one -------------------------------------------------------------------

    def _next(self) -> Result | None:
        """The next result, once there is one; None when there will be no more."""
        crew, source = self._crew, self._source
        if not self._begun:
            self._begun = True
            self._runs.add(crew)
            if self._reader is not None:
                self._reader.start()
        while not self._over:  # closed by another thread
            crew.check()
            if self._reader is None and crew.results:
                self._read_on()
            result = self._take()
            if result is not None:
                return result
            if source.ended and crew.given == source.count:
                return None
            if self._reader is None and source.has_room:
                source.step()
            else:
                crew.listener.wait(LOOK_AGAIN_S)
        return None

    def _take(self) -> Result | None:
        """A result that is there, None for none."""
        crew = self._crew
        if self._held is None:
            result = crew.results.popleft() if crew.results else None
        else:
            while crew.results:
                early = crew.results.popleft()
                self._held[early.index] = early
            result = self._held.pop(crew.given, None)
        if result is not None:
            crew.given += 1
            crew.look()
            if self._reader is not None:
                self._reader.bell.ring()
        return result

    def _read_on(self) -> None:
        for _ in range(READ_A_RESULT):
            if not self._source.runs_low:
                break
            self._source.step()

    def _forget(self) -> None:
        """Let go of the results that nobody took: streams have connections."""
        for result in (*self._crew.results, *(self._held or {}).values()):
            if result.response is not None:
                result.response.close()
        self._crew.results.clear()
