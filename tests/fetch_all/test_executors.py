"""`fetch_all(executor=...)`: requests on somebody else's threads, and in other processes."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import requests

from kreuz_sync import BodyTooLarge, Session, Throttle
from kreuz_sync.errors import KreuzError, WorkerLost
from kreuz_sync.fetch_all import Item
from kreuz_sync.fetch_all.items import Ask
from kreuz_sync.fetch_all.remote import KEPT, Sessions, fetch, portable_error
from kreuz_sync.throttle.folder import FolderThrottle

from ..fakes import ScriptedAdapter
from ..loopback import Server, answer, redirect, silent
from ..waiting import GUARD_S, Worker, eventually

NAME = "kreuz_sync-fetch_all"


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes that begin with nothing of this one. They take a second or two to start."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def urls(server: Server, count: int, hosts: int = 3) -> list[str]:
    return [server.url(f"/page/{number}", host=f"127.0.0.{number % hosts + 1}") for number in range(count)]


class TestThreads:
    """A `ThreadPoolExecutor` does what threads of our own would do."""

    def test_every_input_has_a_result(self, server: Server) -> None:
        server.route("/page/*", answer(body="page"))
        with ThreadPoolExecutor(4, thread_name_prefix="mine") as pool, Session(throttle=0) as session:
            results = list(session.fetch_all(urls(server, 50), executor=pool))
            assert sorted(result.index for result in results) == list(range(50))
            assert {result.response and result.response.text for result in results} == {"page"}
            assert pool.submit(threading.current_thread).result().name.startswith("mine")

    def test_no_more_are_under_way_than_it_has_threads(self) -> None:
        together = threading.Barrier(3)
        session = Session(adapter=ScriptedAdapter(lambda request: (together.wait(GUARD_S), 200)[1]), throttle=None)
        with ThreadPoolExecutor(3) as pool:
            assert len(list(session.fetch_all((f"http://h{n}.test/" for n in range(12)), executor=pool))) == 12

    def test_its_threads_do_not_wait_for_a_host(self) -> None:
        """With one thread, 30 pages of one host come although another host is due in an hour only."""
        throttle = Throttle(0, hosts={"a.test": 3600})
        session = Session(adapter=ScriptedAdapter(200), throttle=throttle)
        given = [f"http://a.test/{n}" for n in range(3)] + [f"http://b.test/{n}" for n in range(30)]
        with ThreadPoolExecutor(1) as pool, session.fetch_all(given, executor=pool) as found:
            assert [next(found).url[7] for _ in range(31)].count("b") == 30

    def test_it_stops_promptly_and_the_executor_goes_on(self, server: Server) -> None:
        server.route("/page/*", silent())
        with ThreadPoolExecutor(4) as pool, Session(throttle=None, timeout=GUARD_S) as session:
            found = session.fetch_all(urls(server, 100), executor=pool)
            waiting = Worker(next, found)
            server.wait_for(4)
            found.close()
            with pytest.raises(StopIteration):
                waiting.outcome()
            assert pool.submit(int, "7").result(GUARD_S) == 7
            assert [thread for thread in threading.enumerate() if thread.name.startswith(NAME)] == []
            assert len(server.requests) == 4

    def test_an_exit_in_a_hook_ends_the_run(self) -> None:
        def leave(*_: Any, **__: Any) -> None:
            raise SystemExit(3)

        session = Session(adapter=ScriptedAdapter(200), throttle=None)
        given = [("http://a.test/", {"hooks": {"response": leave}})]
        with ThreadPoolExecutor(2) as pool, pytest.raises(SystemExit):
            list(session.fetch_all(given, executor=pool))

    def test_one_that_was_shut_down_is_said_for_each(self) -> None:
        pool = ThreadPoolExecutor(2)
        pool.shutdown()
        session = Session(adapter=ScriptedAdapter(200), throttle=None)
        results = list(session.fetch_all([f"http://h{n}.test/" for n in range(20)], executor=pool))
        assert [type(result.error) for result in results] == [WorkerLost] * 20
        assert {result.tag for result in results} == {"worker_lost"}


class TestProcesses:
    """A `ProcessPoolExecutor`: the session goes there as a pickle, and whole responses come back."""

    def test_responses_come_back_whole(self, server: Server, processes: ProcessPoolExecutor) -> None:
        server.route("/page/*", answer(body="page", fields={"X": "field"}))
        with Session(throttle=None, headers={"Y": "sent"}) as session:
            given = [Item(url, {"params": {"q": "1"}}, note=number) for number, url in enumerate(urls(server, 20))]
            results = list(session.fetch_all(given, executor=processes))
        assert sorted(result.input.note for result in results) == list(range(20))
        for result in results:
            assert result.response is not None
            assert (result.response.text, result.response.headers["X"]) == ("page", "field")
            assert result.response.url == result.url + "?q=1"
        assert {request.fields.get("Y") for request in server.requests} == {"sent"}

    def test_streams_are_read_where_they_come_from(self, server: Server, processes: ProcessPoolExecutor) -> None:
        server.route("/page/*", answer(body="x" * 100_000))
        with Session(throttle=None) as session:
            (result,) = session.fetch_all(urls(server, 1), executor=processes, stream=True)
        assert result.response is not None
        assert len(result.response.content) == 100_000

    def test_errors_come_back_with_their_types(self, server: Server, processes: ProcessPoolExecutor) -> None:
        server.route("/page/0", answer(body="x" * 100))
        with Session(throttle=None, max_body=10, raise_for_status=True) as session:
            given = [*urls(server, 2), "nonsense", 42]
            results = list(session.fetch_all(given, executor=processes, ordered=True))
        assert [result.tag for result in results] == ["body_too_large", "not_found", "invalid_url", "invalid_item"]
        assert isinstance(results[0].error, BodyTooLarge)
        assert results[0].error.limit == 10

    def test_each_process_keeps_its_session(self, server: Server, processes: ProcessPoolExecutor) -> None:
        """Connections too: there are no more than processes and hosts."""
        server.route("/page/*", answer(body="page"))
        with Session(throttle=None) as session:
            assert len(list(session.fetch_all(urls(server, 60), executor=processes))) == 60
        assert server.accepted <= 2 * 3

    def test_what_cannot_be_sent_there_is_its_own_error(self, server: Server, processes: ProcessPoolExecutor) -> None:
        server.route("/page/*", answer(body="page"))
        first, second = urls(server, 2)
        given = [(first, {"hooks": {"response": lambda *_, **__: None}}), second]
        with Session(throttle=None) as session:
            bad, good = session.fetch_all(given, executor=processes, ordered=True)
        assert isinstance(bad.error, WorkerLost)
        assert good.error is None

    def test_a_session_that_cannot_be_sent_there_is_refused(self, processes: ProcessPoolExecutor) -> None:
        session = Session(throttle=None)
        session.hooks["response"].append(lambda *_, **__: None)
        with pytest.raises(TypeError, match="pickle"):
            session.fetch_all(["http://a.test/"], executor=processes)

    def test_paces_that_processes_keep_alone_are_warned_of(self, processes: ProcessPoolExecutor) -> None:
        with Session() as session, pytest.warns(UserWarning, match="keeps its pace alone") as caught:
            session.fetch_all(["http://a.test/"], executor=processes)
        assert caught[0].filename == __file__

    def test_hosts_are_handed_out_at_their_pace(self, server: Server, processes: ProcessPoolExecutor) -> None:
        """So that no process waits on one, as far as it is known here."""
        server.route("/page/*", answer(body="page"))
        with warnings.catch_warnings(), Session(throttle=0.1) as session:
            warnings.simplefilter("ignore")
            began = time.monotonic()
            assert len(list(session.fetch_all(urls(server, 9), executor=processes))) == 9
            assert time.monotonic() - began >= 0.9 * 2 * 0.1 - 0.02

    def test_a_throttle_that_they_share_is_kept_by_all(
        self, server: Server, processes: ProcessPoolExecutor, tmp_path: Path
    ) -> None:
        """Redirects too, of which this process knows nothing."""
        server.route("/page/*", answer(body="page"))
        given = []
        for number in range(6):
            server.route(f"/go/{number}", redirect(server.url(f"/page/{number}")))
            given.append(server.url(f"/go/{number}"))
        with Session(throttle=FolderThrottle(tmp_path, 0.05)) as session:
            began = time.monotonic()
            assert {result.tag for result in session.fetch_all(given, executor=processes)} == {None}
            assert time.monotonic() - began >= 0.9 * 11 * 0.05

    def test_it_stops_promptly(self, server: Server, processes: ProcessPoolExecutor) -> None:
        hold = threading.Event()
        server.route("/page/*", answer(body="page", delay=hold))
        with Session(throttle=None, timeout=GUARD_S) as session:
            with session.fetch_all(urls(server, 100), executor=processes):
                pass
            found = session.fetch_all(urls(server, 100), executor=processes)
            waiting = Worker(next, found)
            server.wait_for(2)
            found.close()
            with pytest.raises(StopIteration):
                waiting.outcome()
            hold.set()
        assert processes.submit(int, "7").result(60) == 7

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
    def test_a_process_that_is_killed_is_said_for_each(self, server: Server) -> None:
        """No result is lost, and nothing hangs: the pool does nothing more, and says so."""
        hold = threading.Event()
        server.route("/page/*", answer(body="page", delay=hold))
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool, Session(throttle=None) as session:
            found = session.fetch_all(urls(server, 30), executor=pool)
            waiting = Worker(list, found)
            server.wait_for(2, seconds=60)
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
            results = waiting.outcome()
            hold.set()
        assert sorted(result.index for result in results) == list(range(30))
        assert {type(result.error) for result in results} == {WorkerLost}
        assert results[0].error.__cause__ is not None


class Elsewhere(Executor):
    """An executor as a cluster has it: it is given pickles, and gives back pickles."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.broken: Exception | None = None
        self._lock = threading.Lock()

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        threading.Thread(target=self._run, args=(future, pickle.dumps((function, args, options)))).start()
        return future

    def _run(self, future: Future[Any], task: bytes) -> None:
        time.sleep(0.002)
        function, args, options = pickle.loads(task)
        outcome = pickle.loads(pickle.dumps(function(*args, **options)))
        with self._lock:
            self.under_way -= 1
        if self.broken is not None:
            future.set_exception(self.broken)
        else:
            future.set_result(outcome)


class TestOthers:
    """Any `concurrent.futures.Executor`."""

    def test_as_many_are_under_way_as_there_are_workers(self, server: Server) -> None:
        server.route("/page/*", answer(body="page"))
        executor = Elsewhere()
        with Session(throttle=None) as session:
            assert len(list(session.fetch_all(urls(server, 40), executor=executor, workers=5))) == 40
        assert 1 < executor.most <= 5

    def test_what_it_has_to_say_of_a_task_is_its_error(self, server: Server) -> None:
        executor = Elsewhere()
        executor.broken = LookupError("the cluster lost it")
        with Session(throttle=None) as session:
            results = list(session.fetch_all(urls(server, 5), executor=executor))
        assert [type(result.error) for result in results] == [WorkerLost] * 5
        assert "the cluster lost it" in str(results[0].error)


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("two arguments")


class TestRemote:
    """What runs in the other process."""

    def test_a_session_is_made_once_of_one_pickle(self) -> None:
        sessions = Sessions()
        one, other = pickle.dumps(Session(throttle=None)), pickle.dumps(Session(throttle=None, timeout=5))
        assert sessions.find(one) is sessions.find(one)
        assert sessions.find(one) is not sessions.find(other)

    def test_only_a_few_are_kept(self) -> None:
        sessions = Sessions()
        made = [sessions.find(pickle.dumps(Session(throttle=None, timeout=n))) for n in range(1, KEPT + 3)]
        assert len(sessions._made) == KEPT
        assert sessions.find(pickle.dumps(Session(throttle=None, timeout=1))) is not made[0]

    def test_threads_share_one(self) -> None:
        """A cluster's process may have several."""
        sessions, settings = Sessions(), pickle.dumps(Session(throttle=None))
        threads = [Worker(sessions.find, settings) for _ in range(8)]
        assert len({id(thread.outcome()) for thread in threads}) == 1

    def test_an_error_that_does_not_survive_a_pickle_is_told_by_another(self) -> None:
        error = portable_error(Unpicklable(1, 2))
        assert type(error) is KreuzError
        assert str(error) == "Unpicklable: two arguments"

    def test_no_credentials_come_back(self) -> None:
        settings = pickle.dumps(Session(throttle=None))
        outcome = fetch(settings, Ask("GET", "http://me:s3cret@[::1/", {}))
        assert isinstance(outcome, requests.RequestException)
        assert b"s3cret" not in pickle.dumps(outcome)

    def test_the_pace_there_is_that_of_the_settings(self) -> None:
        session = Sessions().find(pickle.dumps(Session(throttle=Throttle(3.5))))
        assert isinstance(session, Session)
        assert session.throttle is not None
        eventually(lambda: isinstance(session.throttle, Throttle) and session.throttle.delay == 3.5)
