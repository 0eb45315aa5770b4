"""One request for the file, whoever waits for it: threads, interrupts, forks, forgetting."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from kreuz_sync import Robots
from kreuz_sync.errors import DeadlineExceeded, SessionClosed
from kreuz_sync.robots.keeping import Keeper

from ..fakes import ScriptedAdapter
from ..loopback import Server, answer, sequence
from ..waiting import Worker, eventually
from .sessions import CLOSED, PRIVATE, asked, asking, opened, refused

THREADS = 20


def all_at_once(task, count: int = THREADS) -> list[Worker]:
    barrier = threading.Barrier(count)

    def run() -> object:
        barrier.wait(10)
        return task()

    return [Worker(run) for _ in range(count)]


class TestOneRequest:
    def test_twenty_threads_ask_once(self, server: Server) -> None:
        held = threading.Event()
        server.route("/robots.txt", answer(body=PRIVATE, delay=held))
        session = asking()
        workers = all_at_once(lambda: session.get(server.url("/")).status_code)
        server.wait_for(1)
        held.set()
        assert [worker.outcome() for worker in workers] == [200] * THREADS
        assert asked(server) == 1

    def test_also_if_it_fails(self, server: Server) -> None:
        """They are let go, and told."""
        held = threading.Event()
        server.route("/robots.txt", answer(503, delay=held))
        session = asking()
        workers = all_at_once(lambda: refused(session, server.url("/")).unreachable)
        server.wait_for(1)
        held.set()
        assert [worker.outcome() for worker in workers] == [True] * THREADS
        assert asked(server) == 1

    def test_origins_do_not_wait_for_each_other(self, server: Server, second_server: Server) -> None:
        held = threading.Event()
        server.route("/robots.txt", answer(body=PRIVATE, delay=held))
        session = asking()
        waiting = Worker(lambda: session.get(server.url("/")).ok)
        server.wait_for(1)
        assert session.get(second_server.url("/")).ok
        held.set()
        assert waiting.outcome()

    def test_several_sessions_that_share_a_setting_ask_once(self, server: Server) -> None:
        robots = Robots()
        sessions = [opened(robots=robots, throttle=None, headers={"User-Agent": f"bot{number}"}) for number in range(3)]
        server.route("/robots.txt", answer(body="User-agent: bot1\nDisallow: /"))
        allowed = [session.robots.allowed(server.url("/")) for session in sessions]
        assert (allowed, asked(server)) == ([True, False, True], 1)

    def test_what_is_needed_to_get_the_file_is_allowed(self) -> None:
        """Such as a token that an adapter asks for, at the same origin."""
        session = asking()

        class Signing(ScriptedAdapter):
            def send(self, request, **options):
                if request.url.endswith("/robots.txt") and len(self.requests) < 10:
                    self.requests.append(request)
                    assert session.get("http://example.test/token").ok
                return super().send(request, **options)

        wire = Signing((200, (), CLOSED.encode()))
        session.mount("http://", wire)
        refused(session, "http://example.test/page")
        assert [request.url[-10:] for request in wire.requests] == ["robots.txt", "test/token", "robots.txt"]


class TestWhoLeads:
    def test_an_error_of_its_own_call_is_its_own(self, server: Server) -> None:
        """A deadline ends the call that has it; the next in line asks in its place."""
        held = threading.Event()
        server.route("/robots.txt", sequence(answer(body=PRIVATE, delay=held), answer(body=PRIVATE)))
        session = asking()
        hasty = Worker(session.get, server.url("/"), deadline=0.5)
        server.wait_for(1)
        patient = Worker(lambda: session.get(server.url("/")).status_code)
        with pytest.raises(DeadlineExceeded):
            hasty.outcome()
        assert patient.outcome() == 200 and asked(server) == 2
        held.set()

    def test_an_interrupt_lets_the_others_go_on(self, server: Server) -> None:
        begun, go_on = threading.Event(), threading.Event()
        session = asking()

        class Interrupted(ScriptedAdapter):
            def send(self, request, **options):
                response = super().send(request, **options)
                if len(self.requests) == 1:
                    begun.set()
                    assert go_on.wait(10)
                    raise KeyboardInterrupt
                return response

        wire = Interrupted((404, (), b""))
        session.mount("http://", wire)
        first = Worker(session.get, "http://example.test/")
        assert begun.wait(10)
        others = [Worker(lambda: session.get("http://example.test/").status_code) for _ in range(5)]
        robots = session.layers[0]
        eventually(lambda: any(flight.condition for flight in robots.keeper.flights._flights.values()))
        go_on.set()
        with pytest.raises(KeyboardInterrupt):
            first.outcome()
        assert [worker.outcome() for worker in others] == [404] * 5
        assert [request.url for request in wire.requests].count("http://example.test/robots.txt") == 2

    def test_one_that_vanished_without_a_word_is_replaced(self, server: Server) -> None:
        """An interrupt may strike before anybody is there to tell the others."""

        class Leader:
            pass

        session = asking()
        origin = f"http://127.0.0.1:{server.port}"
        Worker(lambda: session.layers[0].keeper.flights.join(origin, Leader())).outcome()
        gc.collect()
        assert session.get(server.url("/")).ok


class TestWaiting:
    def test_it_is_bound_by_the_deadline(self, server: Server) -> None:
        held = threading.Event()
        server.route("/robots.txt", answer(body=PRIVATE, delay=held))
        session = asking()
        leader = Worker(lambda: session.get(server.url("/")).ok)
        server.wait_for(1)
        with pytest.raises(DeadlineExceeded) as caught:
            session.get(server.url("/"), deadline=0.3)
        assert caught.value.deadline == 0.3 and caught.value.waited >= 0.25
        held.set()
        assert leader.outcome()

    def test_it_counts_as_waited(self, server: Server) -> None:
        held = threading.Event()
        server.route("/robots.txt", answer(body=PRIVATE, delay=held))
        session = asking()
        leader = Worker(session.get, server.url("/"))
        server.wait_for(1)
        follower = Worker(session.get, server.url("/"))
        eventually(lambda: any(f.condition for f in session.layers[0].keeper.flights._flights.values()))
        held.set()
        assert follower.outcome().waited > 0 and leader.outcome().waited == 0
        assert follower.outcome().attempts == leader.outcome().attempts == 1

    def test_closing_the_session_ends_it(self, server: Server) -> None:
        held = threading.Event()
        server.route("/robots.txt", answer(body=PRIVATE, delay=held))
        session = asking()
        leader = Worker(lambda: session.get(server.url("/")).ok)
        server.wait_for(1)
        follower = Worker(session.get, server.url("/"))
        eventually(lambda: any(f.condition for f in session.layers[0].keeper.flights._flights.values()))
        session.close()
        with pytest.raises(SessionClosed):
            follower.outcome()
        held.set()
        assert leader.outcome()


class TestForgetting:
    def test_no_more_origins_are_kept_than_asked_for(self) -> None:
        session = asking(max_origins=5, adapter=ScriptedAdapter((200, (), PRIVATE.encode())))
        for number in range(20):
            session.get(f"http://host{number}.test/")
        robots = session.layers[0]
        assert robots.keeper.known_origins() == [f"http://host{number}.test:80" for number in range(15, 20)]
        assert len(robots.keeper._ready) == 5

    def test_what_is_kept_is_bounded(self) -> None:
        """Also of large files: the oldest are asked for again."""
        from kreuz_sync.robots import keeping

        keeper = Robots().keeper
        assert isinstance(keeper, Keeper)
        for number in range(200):
            keeper._note(f"origin {number}", keeping.Answer(b"x" * 500_000))
        assert keeper._known.volume <= keeping.FILES_BYTES
        assert "origin 199" in keeper.known_origins() and "origin 0" not in keeper.known_origins()

    def test_the_rules_of_a_file_that_is_known_are_read_again_when_they_were_forgotten(self, server: Server) -> None:
        server.route("/robots.txt", answer(body=CLOSED))
        session = asking()
        refused(session, server.url("/"))
        session.layers[0].keeper._ready.clear()
        refused(session, server.url("/"))
        assert asked(server) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
class TestFork:
    def test_a_child_has_no_part_in_what_its_parents_threads_do(self, server: Server) -> None:
        """A lock that another thread held, and a file that it asks for, are no concern of the child."""
        held = threading.Event()
        server.route("/robots.txt", sequence(answer(body=PRIVATE, delay=held), answer(body=PRIVATE)))
        session = asking()
        leader = Worker(lambda: session.get(server.url("/")).ok)
        server.wait_for(1)
        with session.layers[0].keeper._lock:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if session.get(server.url("/"), deadline=8.0).ok else 2
                finally:
                    os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.set()
        assert leader.outcome()
