"""What `Session.fetch_all` gives, over an adapter without a wire."""

from __future__ import annotations

import contextvars
import pickle
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from kreuz_sync import KreuzError, NotFound, Session
from kreuz_sync.errors import InvalidItem
from kreuz_sync.fetch_all import FetchAll, Item, Result

from ..fakes import ScriptedAdapter
from ..waiting import GUARD_S, Worker, eventually


def session_over(*answers: Any, **options: Any) -> Session:
    return Session(adapter=ScriptedAdapter(*answers), **{"throttle": None, **options})


def echo(request: requests.PreparedRequest) -> Any:
    """An answer whose body is the URL that was asked for."""
    return 200, {}, (request.url or "").encode()


def urls(count: int, hosts: int = 5) -> list[str]:
    return [f"http://h{number % hosts}.test/{number}" for number in range(count)]


def sent(session: Session) -> list[str]:
    """The URLs that reached the wire, sorted."""
    adapter: Any = session.get_adapter("http://a.test/").adapter  # type: ignore[attr-defined]
    return sorted(request.url for request in adapter.requests)


class TestResults:
    """Each input has one result, whatever becomes of it."""

    @pytest.mark.parametrize("workers", [1, 3, 32])
    @pytest.mark.parametrize("options", [{}, {"ordered": True}, {"ahead": 1}, {"live": True}, {"throttle": 0.0}])
    def test_every_input_has_one(self, workers: int, options: dict[str, Any]) -> None:
        session = session_over(echo, throttle=options.pop("throttle", None))
        given = urls(200)
        results = list(session.fetch_all(given, workers=workers, **options))
        assert sorted(result.index for result in results) == list(range(200))
        assert all(result.input is given[result.index] for result in results)
        assert all(result.response and result.response.text == result.url == result.input for result in results)

    def test_an_answer_that_is_an_error_is_a_response(self) -> None:
        (result,) = session_over(404).fetch_all(["http://a.test/"])
        assert result.response is not None
        assert (result.response.status_code, result.error, result.tag) == (404, None, "not_found")

    def test_a_session_that_raises_for_it_gives_the_error(self) -> None:
        (result,) = session_over(404, raise_for_status=True).fetch_all(["http://a.test/"])
        assert result.response is None
        assert isinstance(result.error, NotFound)

    @pytest.mark.parametrize("error", [requests.ConnectionError("gone"), RuntimeError("surprise"), KeyError("x")])
    def test_an_exception_is_a_result_too(self, error: Exception) -> None:
        (result,) = session_over(error).fetch_all(["http://a.test/"])
        assert isinstance(result.error, type(error))
        assert result.response is None

    @pytest.mark.parametrize(
        "url",
        ["", "nonsense", "http://", "http://[::1", "ftp://a.test/", "http://a.test:99999/", "\udcff", "*" * 9],
    )
    def test_what_is_no_url_is_an_error_of_its_own(self, url: str) -> None:
        bad, good = session_over(200).fetch_all([url, "http://a.test/"], ordered=True)
        assert (bad.tag, bad.url, good.tag) == ("invalid_url", url, None)
        assert isinstance(bad.error, requests.RequestException)

    def test_what_cannot_be_fetched_is_named(self) -> None:
        results = list(session_over(200).fetch_all([None, "http://a.test/", 42], ordered=True))
        assert [type(result.error) for result in results] == [InvalidItem, type(None), InvalidItem]
        assert "urls[2]: 42" in str(results[2].error)
        assert (results[2].input, results[2].url) == (42, "")

    def test_a_wrong_argument_of_one_is_its_error_alone(self) -> None:
        given = [("http://a.test/", {"deadline": -1}), "http://a.test/"]
        bad, good = session_over(200).fetch_all(given, ordered=True)
        assert "deadline=-1" in str(bad.error)
        assert good.error is None

    def test_its_text_holds_no_credentials(self) -> None:
        (result,) = session_over(200).fetch_all(["http://me:s3cret@a.test/?token=s3cret"])
        assert "s3cret" not in repr(result)
        assert "<Result 0 http://" in repr(result)

    def test_it_pickles(self) -> None:
        (result,) = session_over(echo).fetch_all(["http://a.test/"])
        copy = pickle.loads(pickle.dumps(result))
        assert (copy.index, copy.input, copy.response.text) == (0, "http://a.test/", "http://a.test/")

    def test_an_empty_list_ends_at_once(self) -> None:
        assert list(session_over(200).fetch_all([])) == []

    def test_the_time_it_took_is_counted_from_its_turn(self) -> None:
        (result,) = session_over(200).fetch_all(["http://a.test/"])
        assert 0 < result.elapsed < GUARD_S


class TestInputs:
    """Strings, Requests, pairs and Items, each with arguments of its own."""

    def test_arguments_reach_the_request(self) -> None:
        session = session_over(echo)
        given = [
            "http://a.test/1",
            ("http://a.test/2", {"method": "HEAD", "headers": {"X": "own"}}),
            requests.Request("POST", "http://a.test/3", data={"a": "1"}),
            Item("http://a.test/4", {"params": {"q": "2"}}, note="mine"),
        ]
        results = list(session.fetch_all(given, headers={"X": "all"}, ordered=True))
        assert results[3].input.note == "mine"
        adapter: Any = session.get_adapter("http://a.test/").adapter  # type: ignore[attr-defined]
        found = {request.url: request for request in adapter.requests}
        assert [found[f"http://a.test/{number}"].method for number in (1, 2, 3)] == ["GET", "HEAD", "POST"]
        assert found["http://a.test/1"].headers["X"] == "all"
        assert found["http://a.test/2"].headers["X"] == "own"
        assert found["http://a.test/3"].body == "a=1"
        assert "http://a.test/4?q=2" in found

    def test_a_request_is_prepared_through_the_session(self) -> None:
        session = session_over(echo)
        session.headers["X"] = "session"
        session.cookies.set("c", "1")
        list(session.fetch_all([requests.Request("GET", "http://a.test/", headers={"Y": "own"})]))
        adapter: Any = session.get_adapter("http://a.test/").adapter  # type: ignore[attr-defined]
        (request,) = adapter.requests
        assert (request.headers["X"], request.headers["Y"], request.headers["Cookie"]) == ("session", "own", "c=1")

    def test_equal_ones_are_one_request(self) -> None:
        """Each has its result, all with the same response."""
        session, go_on = session_over(lambda request: (go_on.wait(GUARD_S), echo(request))[1]), threading.Event()
        given = ["http://a.test/1", "http://a.test/1", ("http://a.test/1", {}), "http://a.test/2"]
        found = session.fetch_all(given)
        first = Worker(next, found)
        eventually(lambda: found._source.ended)
        go_on.set()
        results = [first.outcome(), *found]
        assert sent(session) == ["http://a.test/1", "http://a.test/2"]
        assert sorted(result.index for result in results) == [0, 1, 2, 3]
        assert len({id(result.response) for result in results}) == 2

    def test_equal_ones_with_bodies_are_all_sent(self) -> None:
        session = session_over(echo)
        assert len(list(session.fetch_all([("http://a.test/", {"data": "x"})] * 3))) == 3
        assert len(sent(session)) == 3

    def test_equal_ones_share_an_error_too(self) -> None:
        results = list(session_over(requests.ConnectionError("gone")).fetch_all(["http://a.test/"] * 3, workers=1))
        assert [type(result.error).__name__ for result in results] == ["ConnectionFailed"] * 3

    def test_the_more_urgent_goes_first(self) -> None:
        session = session_over(echo, throttle=None)
        given = [Item(f"http://a.test/{number}", priority=number) for number in range(20)]
        order = [result.index for result in session.fetch_all(given, workers=1)]
        assert order == sorted(order, reverse=True) or order[1:] == sorted(order[1:], reverse=True)

    def test_hosts_take_turns(self) -> None:
        session = session_over(echo)
        given = [f"http://{host}.test/{number}" for host in "abc" for number in range(3)]
        found = session.fetch_all(given, workers=1)
        held = threading.Event()
        session.hooks["response"].append(lambda *_, **__: held.wait(GUARD_S) and None)
        first = Worker(next, found)
        eventually(lambda: found._source.ended)
        held.set()
        results = [first.outcome(), *found]
        hosts = [result.url[7] for result in results[1:7]]
        assert [sorted(hosts[:3]), sorted(hosts[3:])] == [["a", "b", "c"]] * 2


class TestOrder:
    """`ordered=True`."""

    def test_results_come_in_the_order_of_the_inputs(self) -> None:
        release = threading.Event()

        def first_is_slow(request: requests.PreparedRequest) -> Any:
            if request.url == "http://h0.test/0":
                assert release.wait(GUARD_S)
            return echo(request)

        session = session_over(first_is_slow)
        found = session.fetch_all(urls(50), ordered=True, workers=4)
        worker = Worker(list, found)
        eventually(lambda: len(sent(session)) >= 33)  # 8 results a worker, and the slow one
        assert len(sent(session)) <= 36  # and what was under way then
        release.set()
        assert [result.index for result in worker.outcome()] == list(range(50))

    def test_what_all_wait_for_is_fetched_although_too_many_wait(self) -> None:
        """Even if it is the least urgent, and all places for results are taken."""
        given = [Item(url, priority=number) for number, url in enumerate(urls(100, hosts=1))]
        found = session_over(echo).fetch_all(given, ordered=True, workers=1)
        assert [result.index for result in found] == list(range(100))


class TestErrors:
    """`on_error="raise"`, and errors that are nobody's."""

    def test_the_first_error_is_raised_and_ends_everything(self) -> None:
        def sometimes(request: requests.PreparedRequest) -> Any:
            return requests.ConnectionError("gone") if request.url == "http://h3.test/3" else echo(request)

        session = session_over(sometimes)
        found = session.fetch_all(urls(10_000), on_error="raise", workers=2)
        with pytest.raises(requests.ConnectionError, match="gone"):
            list(found)
        assert len(sent(session)) < 10_000
        assert next(found, None) is None

    def test_what_is_no_url_is_raised_too(self) -> None:
        with pytest.raises(InvalidItem, match=r"urls\[0\]: 42"):
            list(session_over(200).fetch_all([42], on_error="raise"))

    @pytest.mark.parametrize("live", [False, True])
    def test_an_error_of_the_list_is_raised(self, live: bool) -> None:
        def broken() -> Iterator[str]:
            yield "http://a.test/"
            raise LookupError("no more")

        with pytest.raises(LookupError, match="no more"):
            list(session_over(200).fetch_all(broken(), live=live))

    def test_an_error_of_a_limiter_ends_the_run(self) -> None:
        """It is no request's, so it is nobody's result."""
        from kreuz_sync import RateLimiter

        class Broken(RateLimiter):
            def acquire(self, host: str) -> None: ...
            def record_response(self, host: str, status: int) -> None: ...
            def set_crawl_delay(self, host: str, seconds: float) -> None: ...
            def wait_for(self, host: str) -> float:
                raise LookupError(host)

        with pytest.raises(LookupError, match="h0.test"):
            list(session_over(200, throttle=Broken()).fetch_all(urls(3)))

    def test_an_exit_in_a_hook_ends_the_run(self) -> None:
        def leave(*_: Any, **__: Any) -> None:
            raise SystemExit(3)

        with pytest.raises(SystemExit):
            list(session_over(200).fetch_all([("http://a.test/", {"hooks": {"response": leave}})]))


class TestArguments:
    """What cannot work is said at the call, before anything is read."""

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"urls": "http://a.test/"}, "urls='http://a.test/': a list"),
            ({"urls": b"http://a.test/"}, "a list"),
            ({"urls": {"http://a.test/": {}}}, "a list"),
            ({"urls": 7}, "urls=7"),
            ({"urls": None}, "urls=None"),
            ({"workers": 0}, "workers=0"),
            ({"workers": 2.5}, "workers=2.5"),
            ({"workers": True}, "workers=True"),
            ({"ahead": 0}, "ahead=0"),
            ({"on_error": "ignore"}, "on_error='ignore'"),
            ({"ordered": "yes"}, "ordered='yes'"),
            ({"live": 1}, "live=1"),
            ({"progress": 1}, "progress=1"),
            ({"executor": 4}, "executor=4"),
            ({"worker": 4}, "no.*argument worker|argument worker"),
            ({"url": "x"}, "argument url"),
        ],
    )
    def test_wrong_ones_are_named(self, options: dict[str, Any], text: str) -> None:
        given = options.pop("urls", ["http://a.test/"])
        with pytest.raises((TypeError, ValueError), match=text):
            session_over(200).fetch_all(given, **options)

    def test_nothing_begins_before_the_first_result_is_asked_for(self) -> None:
        session = session_over(200)
        threads = threading.active_count()
        found = session.fetch_all(iter(["http://a.test/"]))
        assert (sent(session), threading.active_count()) == ([], threads)
        assert len(list(found)) == 1

    def test_arguments_of_a_session_of_ones_own_are_allowed(self) -> None:
        class Mine(Session):
            def request(self, method: Any, url: Any, *, mine: int = 0, **options: Any) -> Any:  # type: ignore[override]
                assert mine == 3
                return super().request(method, url, **options)

        (result,) = Mine(adapter=ScriptedAdapter(200), throttle=None).fetch_all(["http://a.test/"], mine=3)
        assert result.error is None


class Counted:
    """A list without end that counts what was taken of it."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        while True:
            self.count += 1
            yield f"http://h{self.count % self.hosts}.test/{self.count}"


class TestLaziness:
    """The list is read as far as is needed, and results that nobody takes bound the work."""

    @pytest.mark.parametrize("live", [False, True])
    @pytest.mark.parametrize(("hosts", "most"), [(1, 1000), (1000, 210)])
    def test_it_is_read_a_bounded_way_ahead(self, hosts: int, most: int, live: bool) -> None:
        """As far as `ahead` if all is one host's, a fifth of that if there are plenty."""
        given = Counted(hosts)
        found = session_over(200, throttle=3600.0 if hosts == 1 else None).fetch_all(
            given, ahead=1000, workers=1, live=live
        )
        with found:
            next(found)
            if live and hosts == 1:
                eventually(lambda: given.count == most + 1)
        assert given.count <= most + 1

    def test_no_more_is_fetched_than_somebody_takes(self) -> None:
        session = session_over(200)
        with session.fetch_all(urls(1000), workers=2) as found:
            next(found)
            eventually(lambda: len(sent(session)) >= 17)  # 8 a worker wait, and one was taken
            assert not threading.Event().wait(0.05)
            assert len(sent(session)) <= 18  # and one was under way

    def test_a_list_that_needs_no_thread_is_read_by_whoever_iterates(self) -> None:
        readers = set()

        def read() -> Iterator[str]:
            for url in urls(50):
                readers.add(threading.current_thread())
                yield url

        assert len(list(session_over(200).fetch_all(read()))) == 50
        assert readers == {threading.current_thread()}

    def test_a_live_list_does_not_keep_results_waiting(self) -> None:
        """Here the second URL is known only after the first has its result."""
        todo: queue.Queue[str | None] = queue.Queue()
        todo.put("http://a.test/1")
        found = session_over(200).fetch_all(iter(todo.get, None), live=True)
        assert next(found).index == 0
        todo.put("http://a.test/2")
        assert next(found).index == 1
        todo.put(None)
        assert list(found) == []

    def test_a_page_of_links_can_feed_the_list_it_is_from(self) -> None:
        """A crawl: results put new URLs into the list."""

        def three_more(request: requests.PreparedRequest) -> Any:
            path = (request.url or "").removeprefix("http://a.test/")
            return 200, {}, " ".join(path + digit for digit in "123").encode() if len(path) < 3 else b""

        todo: queue.Queue[str | None] = queue.Queue()
        todo.put("http://a.test/0")
        open_ends, seen = 1, []
        for result in session_over(three_more).fetch_all(iter(todo.get, None), live=True):
            assert result.response is not None
            seen.append(result.url)
            for path in result.response.text.split():
                todo.put("http://a.test/" + path)
                open_ends += 1
            open_ends -= 1
            if not open_ends:
                todo.put(None)
        assert len(seen) == 1 + 3 + 9


class TestTogether:
    """Several at once, one inside another, and what the caller's context says."""

    def test_one_inside_another(self) -> None:
        session = session_over(echo)
        total = 0
        for result in session.fetch_all(urls(5), workers=2):
            total += sum(1 for _ in session.fetch_all([result.url + "/a", result.url + "/b"], workers=2))
        assert total == 10

    def test_several_at_once(self) -> None:
        session = session_over(echo)
        threads = [Worker(lambda: len(list(session.fetch_all(urls(100), workers=3)))) for _ in range(5)]
        assert [thread.outcome() for thread in threads] == [100] * 5

    def test_two_cannot_iterate_one(self) -> None:
        held = threading.Event()
        found = session_over(lambda request: (held.wait(GUARD_S), 200)[1]).fetch_all(["http://a.test/"])
        first = Worker(next, found)
        eventually(lambda: found._iterating.locked())
        with pytest.raises(ValueError, match="iterated already"):
            next(found)
        held.set()
        assert isinstance(first.outcome(), Result)

    def test_the_callers_context_is_carried_along(self) -> None:
        name = contextvars.ContextVar("name", default="none")
        seen = set()
        session = session_over(lambda request: seen.add(name.get()) or 200)
        name.set("mine")
        found = session.fetch_all(urls(20))
        name.set("later")
        assert len(list(found)) == 20
        assert seen == {"mine"}

    def test_it_is_an_iterator_and_a_context(self) -> None:
        with session_over(200).fetch_all(urls(3)) as found:
            assert isinstance(found, FetchAll)
            assert iter(found) is found
            assert len(list(found)) == 3

    def test_errors_are_of_the_family(self) -> None:
        assert issubclass(InvalidItem, KreuzError)
        assert issubclass(InvalidItem, ValueError)
