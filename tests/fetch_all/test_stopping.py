"""However a run ends, everything stops at once, and the session goes on."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kreuz_sync import Retry, Session, SessionClosed, Throttle
from kreuz_sync.fetch_all import FetchAll
from kreuz_sync.ratelimit import RateLimit

from ..fakes import ScriptedAdapter
from ..loopback import Authority, Server, answer, cut, drip, hang_up, silent
from ..waiting import GUARD_S, Worker, eventually

NAME = "kreuz_sync-fetch_all"


def our_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(NAME)]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test of this file leaves a thread behind."""
    yield
    assert our_threads() == []


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(throttle=None, timeout=GUARD_S) as session:
        yield session


def urls(server: Server, count: int = 100, hosts: int = 3) -> list[str]:
    return [server.url(f"/page/{number}", host=f"127.0.0.{number % hosts + 1}") for number in range(count)]


def is_at_work(server: Server, count: int = 1) -> Callable[[], bool]:
    return lambda: len(server.requests) >= count


class TestWays:
    """Closed, forgotten, left by an exception: always the same."""

    def begun(self, session: Session, server: Server) -> FetchAll:
        """One result was taken; 99 inputs wait behind a server that says nothing."""
        server.route("/page/*", silent())
        server.route("/page/0", answer(body="first"))
        found = session.fetch_all(urls(server), workers=4)
        assert next(found).index == 0
        server.wait_for(5)
        return found

    def still_works(self, session: Session, server: Server) -> None:
        assert our_threads() == []
        assert session.get(server.url("/")).text == "ok"
        server.route("/page/*", answer(body="page"))
        assert len(list(session.fetch_all(urls(server, 10)))) == 10

    def test_closed(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)
        found.close()
        found.close()
        assert list(found) == []
        self.still_works(session, server)

    def test_forgotten(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)
        del found
        self.still_works(session, server)

    def test_forgotten_in_a_cycle(self, session: Session, server: Server) -> None:
        holder = [self.begun(session, server)]
        holder.append(holder)  # type: ignore[arg-type]
        del holder
        gc.collect()
        self.still_works(session, server)

    def test_a_loop_that_is_left(self, session: Session, server: Server) -> None:
        server.route("/page/*", silent())
        server.route("/page/0", answer(body="first"))
        for _ in session.fetch_all(urls(server), workers=4):
            break
        self.still_works(session, server)

    def test_an_exception_in_the_loop(self, session: Session, server: Server) -> None:
        server.route("/page/*", silent())
        server.route("/page/0", answer(body="first"))
        with pytest.raises(LookupError):
            for _ in session.fetch_all(urls(server), workers=4):
                raise LookupError("of the one who iterates")
        self.still_works(session, server)

    def test_a_block_that_is_left(self, session: Session, server: Server) -> None:
        with pytest.raises(LookupError), self.begun(session, server):
            raise LookupError("of the one who iterates")
        self.still_works(session, server)

    def test_a_session_that_is_closed(self, session: Session, server: Server) -> None:
        """Whoever waits for the next result is told."""
        found = self.begun(session, server)
        waiting = Worker(next, found)
        eventually(lambda: found._iterating.locked())
        session.close()
        with pytest.raises(SessionClosed, match="fetch_all"):
            waiting.outcome()
        self.still_works(session, server)

    def test_a_session_that_is_closed_by_the_one_who_iterates(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)
        session.close()
        with pytest.raises(SessionClosed):
            next(found)
        self.still_works(session, server)

    @pytest.mark.skipif(os.name != "posix", reason="a signal that is sent to the process itself")
    def test_an_interrupt(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)

        def interrupt() -> None:
            eventually(lambda: found._iterating.locked())
            time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            list(found)
        thread.join(GUARD_S)
        self.still_works(session, server)

    def test_a_run_of_another_session_goes_on(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)
        with Session(throttle=None) as other:
            server.route("/page/*", answer(body="page"))
            others = other.fetch_all(urls(server), workers=4)
            next(others)
            found.close()
            assert len(list(others)) == 99

    def test_one_run_of_a_session_is_ended_without_the_others(self, session: Session, server: Server) -> None:
        found = self.begun(session, server)
        server.route("/page/*", answer(body="page"))
        others = session.fetch_all(urls(server), workers=4)
        next(others)
        found.close()
        assert [result.error for result in others] == [None] * 99


class TestWaits:
    """Wherever a worker is when the run ends, it comes back."""

    @pytest.mark.parametrize(
        "what",
        [
            silent(),
            answer(body="x" * 1000, delay=GUARD_S),
            drip(b"x" * 10_000, pause=0.2),
            drip(b"x" * 10_000, pause=0.2, close=True),
        ],
        ids=["before the answer", "before the header section", "in a body", "in a body without a length"],
    )
    @pytest.mark.parametrize("options", [{}, {"deadline": GUARD_S}, {"retry": 5}])
    def test_on_the_wire(self, server: Server, what: Any, options: dict[str, Any]) -> None:
        server.route("/page/*", what)
        began = time.monotonic()
        with Session(throttle=None, timeout=GUARD_S, **options) as session:
            found = session.fetch_all(urls(server, 20), workers=4, live=True)
            waiting = Worker(next, found)
            server.wait_for(4)
            found.close()
            with pytest.raises(StopIteration):
                waiting.outcome()
            assert our_threads() == []
            assert len(server.requests) == 4
        assert time.monotonic() - began < GUARD_S

    @pytest.mark.parametrize(
        "options",
        [
            {"throttle": 3600.0},
            {"throttle": Throttle(0, concurrency=1)},
            {"throttle": None, "retry": Retry(5, base=3600.0, cap=3600.0)},
            {"throttle": None, "rate_limits": [RateLimit("all", limit=1, window=3600, on_limit="wait")]},
        ],
        ids=["for a turn", "for a place", "before a retry", "for a window"],
    )
    def test_in_a_wait(self, options: dict[str, Any]) -> None:
        hold = threading.Event()
        answers = (lambda request: (hold.wait(GUARD_S), 200)[1]) if "concurrency" in repr(options) else 503
        session = Session(adapter=ScriptedAdapter(answers), **options)
        found = session.fetch_all((f"http://a.test/{number}" for number in range(100)), workers=4)
        waiting = Worker(list, found)
        eventually(lambda: found._crew.workers and not found._crew._called)
        time.sleep(0.05)
        closing = Worker(found.close)
        hold.set()
        closing.outcome()
        assert len(waiting.outcome()) <= 1
        assert our_threads() == []

    def test_what_comes_too_late_is_closed(self, server: Server) -> None:
        """A stream that nobody will read gives its connection back."""
        server.route("/page/*", answer(body="x" * 100_000))
        with Session(throttle=Throttle(0, concurrency=1), timeout=GUARD_S) as session:
            found = session.fetch_all(urls(server, 20, hosts=1), workers=4, stream=True)
            first = next(found)
            found.close()
            assert first.response is not None
            assert len(first.response.content) == 100_000
            assert session.get(server.url("/")).text == "ok"

    def test_a_connection_that_was_shut_down_serves_nobody_again(self, server: Server) -> None:
        hold = threading.Event()
        server.route("/page/*", answer(body="late", delay=hold))
        with Session(throttle=None, timeout=GUARD_S) as session:
            with session.fetch_all(urls(server, 8, hosts=1), workers=8) as found:
                waiting = Worker(next, found)
                server.wait_for(8)
                found.close()
                with pytest.raises(StopIteration):
                    waiting.outcome()
            hold.set()
            assert [session.get(server.url("/")).text for _ in range(10)] == ["ok"] * 10


class TestStreams:
    """`stream=True`: the response is handed over unread."""

    def test_it_is_read_by_the_one_who_takes_it(self, server: Server) -> None:
        server.route("/page/*", answer(body="x" * 300_000))
        with Session(throttle=Throttle(0, concurrency=2)) as session:
            for result in session.fetch_all(urls(server, 30), stream=True):
                assert result.response is not None
                assert not result.response._content_consumed
                assert sum(map(len, result.response.iter_content(65536))) == 300_000
            assert server.peak <= 6  # two places at each of three hosts

    def test_one_that_breaks_off_says_so_when_it_is_read(self, server: Server) -> None:
        from kreuz_sync import DataLoss

        server.route("/page/*", cut(b"x" * 1000, after=10))
        with Session(throttle=None) as session:
            (result,) = session.fetch_all(urls(server, 1), stream=True)
            assert result.response is not None
            with pytest.raises(DataLoss):
                _ = result.response.content

    def test_it_outlives_the_run_that_it_came_from(self, server: Server) -> None:
        server.route("/page/*", drip(b"x" * 50, pause=0.005))
        with Session(throttle=None) as session:
            found = session.fetch_all(urls(server, 3), stream=True)
            first = next(found)
            found.close()
            assert first.response is not None
            assert first.response.content == b"x" * 50


class TestForks:
    """A run belongs to the process that began it."""

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
    @pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
    def test_a_child_is_told(self) -> None:
        session = Session(adapter=ScriptedAdapter(200), throttle=None)
        found = session.fetch_all(f"http://a.test/{number}" for number in range(50))
        next(found)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                next(found)
            except RuntimeError as error:
                os.write(writing, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert b"fork" in os.read(reading, 1000)
        os.close(reading)
        os.close(writing)
        assert len(list(found)) == 49

    def test_a_session_with_a_run_pickles(self) -> None:
        session = Session(adapter=None, throttle=None)
        found = session.fetch_all(["http://[::1"])
        next(found)
        assert pickle.loads(pickle.dumps(session)).throttle is None


class TestHangUps:
    """Servers that end connections."""

    def test_each_is_a_result(self, session: Session, server: Server) -> None:
        server.route("/page/*", hang_up())
        results = list(session.fetch_all(urls(server, 30), workers=8))
        assert {result.tag for result in results} == {"connection"}
        assert len(results) == 30


class TestSecure:
    """Connections by TLS."""

    def test_they_are_shut_down_too(self, tls_server: Server, authority: Authority) -> None:
        tls_server.route("/page/*", silent())
        with Session(throttle=None, timeout=GUARD_S) as session:
            session.verify = str(authority.bundle)
            found = session.fetch_all((tls_server.url(f"/page/{number}") for number in range(20)), workers=4)
            waiting = Worker(next, found)
            tls_server.wait_for(4)
            found.close()
            with pytest.raises(StopIteration):
                waiting.outcome()
            assert our_threads() == []
            assert session.get(tls_server.url("/")).text == "ok"


class TestRobots:
    """A request for robots.txt is made on behalf of a worker's."""

    def test_each_is_asked_for_once(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /page/5\n", content_type="text/plain"))
        server.route("/page/*", answer(body="page"))
        with Session(robots=True, throttle=0.01) as session:
            tags = [result.tag for result in session.fetch_all(urls(server, 30), ordered=True)]
        assert len(server.requests_to("/robots.txt")) == 3
        assert [number for number, tag in enumerate(tags) if tag] == [5]

    def test_it_is_ended_with_the_run(self, server: Server) -> None:
        server.route("/robots.txt", silent())
        with Session(robots=True, throttle=None, timeout=GUARD_S) as session:
            found = session.fetch_all(urls(server, 30), workers=4)
            waiting = Worker(next, found)
            server.wait_for(1)
            found.close()
            with pytest.raises(StopIteration):
                waiting.outcome()
            assert our_threads() == []
