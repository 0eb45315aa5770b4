"""The job: workers over one session, and how a run ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from kreuz_sync.cli.fetching import Results, outcome_of, run
from kreuz_sync.cli.outcome import Outcome
from kreuz_sync.sessions import Session

from .fakes import ScriptedAdapter

GUARD_S = 10  # no step here takes longer, whatever goes wrong


class Collected:
    """A sink that keeps what it gets, and fails when told to."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.outcomes: list[Outcome] = []
        self.closed = 0
        self.fail_at = fail_at
        self.writing = threading.Lock()  # two writers at once would be a fault

    def write(self, outcome: Outcome) -> None:
        assert self.writing.acquire(blocking=False)
        self.outcomes.append(outcome)
        self.writing.release()
        if len(self.outcomes) == self.fail_at:
            raise OSError(28, "No space left on device")

    def close(self) -> None:
        self.closed += 1


def session_over(*answers: Any, delay: float | None = None) -> Session:
    return Session(adapter=ScriptedAdapter(*answers), throttle=delay)


def urls(count: int, hosts: int = 5) -> Iterator[str]:
    return (f"http://h{number % hosts}.test/{number}" for number in range(count))


def fetch(session: Session, url: str) -> Outcome:
    """What becomes of one URL."""
    (result,) = session.fetch_all([url])
    return outcome_of(result)


class TestOutcomes:
    """One URL."""

    def test_an_answer_is_its_outcome(self) -> None:
        outcome = fetch(session_over((200, {}, b"page")), "http://a.test/")
        assert (outcome.number, outcome.content, outcome.tag) == (1, b"page", None)

    @pytest.mark.parametrize("error", [requests.ConnectionError("gone"), RuntimeError("surprise"), KeyError("x")])
    def test_an_exception_is_its_outcome_too(self, error: Exception) -> None:
        assert fetch(session_over(error), "http://a.test/").tag in ("connection", "other")

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "nonsense",
            "http://",
            "http://[::1",
            "ftp://a.test/",
            "http://a.test:99999/",
            "\udcff",
            "*" * 9,
        ],
    )
    def test_what_is_no_url_is_an_invalid_one(self, url: str) -> None:
        assert fetch(session_over(200), url).tag == "invalid_url"

    def test_a_url_that_stands_there_twice_is_one_request(self) -> None:
        """Each line has its outcome, and what it took is counted once."""
        sink = Collected()
        run(session_over(200), ["http://a.test/"] * 2, Results([sink]), workers=1)
        first, second = sink.outcomes
        assert (first.status, second.status) == (200, 200)
        assert first.requests + second.requests in (1, 2)  # 2: the first was done before the second was read


class TestRun:
    """All URLs."""

    @pytest.mark.parametrize("workers", [1, 3, 32])
    def test_every_url_has_one_outcome(self, workers: int) -> None:
        sink = Collected()
        results = Results([sink])
        run(session_over(200), urls(200), results, workers=workers)
        assert sorted(one.number for one in sink.outcomes) == list(range(1, 201))
        assert (results.tally.done, results.tally.failed, sink.closed) == (200, 0, 1)

    def test_an_empty_list_ends_at_once(self) -> None:
        sink = Collected()
        run(session_over(200), [], Results([sink]), workers=4)
        assert (sink.outcomes, sink.closed) == ([], 1)

    def test_the_list_is_read_as_far_as_is_needed(self) -> None:
        """URLs are fetched while later ones are not known yet."""
        first_is_done = threading.Event()

        class Telling(Collected):
            def write(self, outcome: Outcome) -> None:
                super().write(outcome)
                first_is_done.set()

        def slowly() -> Iterator[str]:
            yield "http://a.test/1"
            assert first_is_done.wait(GUARD_S)
            yield "http://a.test/2"

        sink = Telling()
        run(session_over(200), slowly(), Results([sink]), workers=2)
        assert len(sink.outcomes) == 2

    def test_its_threads_end_with_it(self) -> None:
        before = threading.active_count()
        run(session_over(200), urls(50), Results([]), workers=8)
        assert threading.active_count() == before


class TestEndingEarly:
    """A disk that is full, an interrupt."""

    def test_a_sink_that_fails_ends_the_run(self) -> None:
        """The threads that wait for a host's turn, here for an hour, are woken."""
        sink = Collected(fail_at=1)
        with pytest.raises(OSError, match="No space left"):
            run(session_over(200, delay=3600), urls(1000, hosts=1), Results([sink]), workers=4)
        assert len(sink.outcomes) == 1

    def test_a_failure_ends_the_reading_too(self) -> None:
        """A list without end is not read on."""

        def endless() -> Iterator[str]:
            while True:
                yield "http://a.test/"

        with pytest.raises(OSError):
            run(session_over(200), endless(), Results([Collected(fail_at=3)]), workers=2)

    def test_an_interrupt_leaves_nothing_half_done(self) -> None:
        """It comes while the list is read; what waits for its turn is no outcome."""
        sink = Collected()
        one_is_done = threading.Event()

        class Telling(Collected):
            def write(self, outcome: Outcome) -> None:
                super().write(outcome)
                one_is_done.set()

        sink = Telling()

        def interrupted() -> Iterator[str]:
            yield from urls(5, hosts=1)
            assert one_is_done.wait(GUARD_S)
            raise KeyboardInterrupt

        results = Results([sink])
        with pytest.raises(KeyboardInterrupt):
            run(session_over(200, delay=3600), interrupted(), results, workers=4)
        assert (len(sink.outcomes), sink.closed, results.tally.failed) == (1, 1, 0)


class TestResults:
    """What all workers share."""

    def outcome(self) -> Outcome:
        return fetch(session_over(200), "http://a.test/")

    def test_nothing_is_taken_after_the_end(self) -> None:
        sink = Collected()
        results = Results([sink])
        results.close()
        results.take(self.outcome())
        assert (sink.outcomes, results.tally.done) == ([], 0)

    def test_closing_twice_closes_once(self) -> None:
        sink = Collected()
        results = Results([sink])
        results.close()
        results.close()
        assert sink.closed == 1

    def test_closing_waits_for_what_is_being_written(self) -> None:
        """So that the file it is writing is whole when the process ends."""
        writing, go_on, order = threading.Event(), threading.Event(), list[str]()

        class Slow(Collected):
            def write(self, outcome: Outcome) -> None:
                writing.set()
                assert go_on.wait(GUARD_S)
                order.append("written")

            def close(self) -> None:
                order.append("closed")

        results = Results([Slow()])
        threads = [
            self.started(lambda: results.take(self.outcome())),
        ]
        assert writing.wait(GUARD_S)
        threads.append(self.started(results.close))
        go_on.set()
        for thread in threads:
            thread.join(GUARD_S)
        assert order == ["written", "closed"]

    def started(self, work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work)
        thread.start()
        return thread
