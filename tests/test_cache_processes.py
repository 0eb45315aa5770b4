"""Equal requests of several processes make one, if their cache says so."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kreuz_sync
from kreuz_sync import Cache, MemoryStore, SessionClosed
from kreuz_sync.cache import StoreTrouble
from kreuz_sync.cache.disk import DiskStore
from kreuz_sync.cache.folder.leads import FileLead
from kreuz_sync.cache.folder.ranges import WindowsRanges
from kreuz_sync.cache.processes import leads_here
from kreuz_sync.clock import SYSTEM_CLOCK, Clock
from kreuz_sync.errors import DeadlineExceeded

from .cache_sessions import FRESH, NO_STORE, WatchedStore, caching, rfc
from .fakes import FakeClock
from .loopback import Server, answer, chunked, hang_up, sequence
from .test_cache_store_disk import ROOT, needs_proc, open_files, run_python
from .test_cache_store_processes import finish, posix, start
from .waiting import GUARD_S, Worker, eventually

pytestmark = [posix, pytest.mark.slow]

# Asks for a URL on each of several threads once it is told to, says when a thread has to wait, and what came.
ASKING = """
import sys, threading
from kreuz_sync import Cache, DiskStore, Session
from kreuz_sync.clock import Clock

folder, url, policy, threads = sys.argv[1:5]
printing, waiting = threading.Lock(), set()

def say(*words):
    with printing:
        print(*words, flush=True)

class Telling(Clock):
    def wait(self, condition, seconds):
        if threading.get_ident() not in waiting:
            waiting.add(threading.get_ident())
            say("waiting")
        super().wait(condition, seconds)

store = DiskStore(folder, lock_wait=30)
cache = Cache(store, policy=policy, collapse="processes", clock=Telling())
session = Session(cache=cache, throttle=None, timeout=60)

def ask():
    try:
        answer = session.get(url)
        say(answer.text or answer.status_code, "collapsed" if "collapsed" in answer.cache_status else "asked")
    except Exception as error:
        say(type(error).__name__, "asked")

len(cache)
say("ready")
sys.stdin.readline()
if threads == "0":
    ask()
crowd = [threading.Thread(target=ask) for _ in range(int(threads))]
for one in crowd:
    one.start()
for one in crowd:
    one.join()
session.close()
"""


# May be given out stale, and is then renewed.
BEHIND = {"Cache-Control": "max-age=60, stale-while-revalidate=600", "ETag": '"a"'}


class Asker:
    """A process that asks for `url` when it is told to."""

    def __init__(self, folder: Path, url: str, *, policy: str = "rfc9111", threads: int = 1) -> None:
        command = [sys.executable, "-W", "error", "-c", ASKING, str(folder), url, policy, str(threads)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, cwd=ROOT, **pipes)
        self.said: list[str] = []
        self._reader: Worker | None = None

    def is_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.stderr and self.process.stderr.read()
        self._reader = Worker(self._read)

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(line.strip() for line in iter(self.process.stdout.readline, ""))

    def ask(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def waiting(self) -> int:
        return self.said.count("waiting")

    def answers(self) -> list[str]:
        """What each of its threads got."""
        assert self.process.wait(60) == 0, self.process.stderr and self.process.stderr.read()
        assert self._reader is not None
        self._reader.outcome()
        return [line for line in self.said if line != "waiting"]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pages"


Crowd = Callable[..., list[Asker]]


@pytest.fixture
def crowd(folder: Path) -> Iterator[Crowd]:
    """Gives so many processes, each of which is ready to ask for a URL."""
    made: list[Asker] = []

    def make(count: int, url: str, **how: Any) -> list[Asker]:
        askers = [Asker(folder, url, **how) for _ in range(count)]
        made.extend(askers)
        for one in askers:
            one.is_ready()
        return askers

    yield make
    for one in made:
        one.end()


def ask_all(askers: list[Asker], threads: int = 1) -> None:
    """Have them all ask, and wait until all threads but one wait for somebody."""
    for one in askers:
        one.ask()
    eventually(lambda: sum(one.waiting for one in askers) == len(askers) * threads - 1)


def all_answers(askers: list[Asker]) -> list[str]:
    return sorted(itertools.chain.from_iterable(one.answers() for one in askers))


def shared(folder: Path, make: Callable[..., Cache] = rfc, **settings: Any) -> Cache:
    """A cache over `folder` that heeds other processes."""
    settings.setdefault("clock", SYSTEM_CLOCK)
    return make(store=DiskStore(folder, lock_wait=20), collapse="processes", **settings)


@contextlib.contextmanager
def led(folder: Path, cache: Cache, url: str) -> Iterator[FileLead]:
    """Somebody else, over a store of its own, leads for `url` meanwhile."""
    with closing(DiskStore(folder)) as store:
        lead = store.lead(cache._key_of(cache._tools(), url))
        assert isinstance(lead, FileLead)
        yield lead
        lead.end()


def noted_leads(cache: Cache, before: Callable[[], None] = lambda: None) -> list[str]:
    """What `cache` gets from now on where it asks for a lead. before: called first each time."""
    got: list[str] = []
    lead = cache.store.lead

    def noted(key: str) -> Any:
        before()
        found = lead(key)
        got.append(type(found).__name__)
        return found

    cache.store.lead = noted  # type: ignore[method-assign]
    return got


class TellingClock(Clock):
    """The system's; waiting: the threads that have waited by it."""

    def __init__(self) -> None:
        self.waiting: set[int] = set()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        self.waiting.add(threading.get_ident())
        super().wait(condition, seconds)


class TestMisses:
    @pytest.mark.parametrize("policy", ["rfc9111", "ttl"])
    def test_several_processes_make_one_request(self, server: Server, crowd: Crowd, policy: str) -> None:
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        askers = crowd(4, url, policy=policy)
        ask_all(askers)
        gate.set()
        assert all_answers(askers) == ["page asked"] + ["page collapsed"] * 3
        assert len(server.requests) == 1

    def test_of_several_threads_each(self, server: Server, crowd: Crowd) -> None:
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        askers = crowd(3, url, threads=5)
        ask_all(askers, threads=5)
        gate.set()
        assert all_answers(askers) == ["page asked"] + ["page collapsed"] * 14
        assert len(server.requests) == 1

    def test_what_is_large_is_waited_for_as_well(self, server: Server, crowd: Crowd) -> None:
        """It is stored in a file of its own."""
        gate = threading.Event()
        url = server.route("/page", answer(body="x" * 300_000, fields=FRESH, delay=gate))
        askers = crowd(3, url)
        ask_all(askers)
        gate.set()
        assert [said.split()[1] for said in all_answers(askers)] == ["asked", "collapsed", "collapsed"]
        assert len(server.requests) == 1

    def test_stale_answers_are_validated_once(self, server: Server, crowd: Crowd, folder: Path) -> None:
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields={"Cache-Control": "max-age=0", "ETag": '"a"'}))
        with caching(shared(folder)) as session:
            session.get(url)
        server.route("/page", answer(304, fields=FRESH, delay=gate))
        askers = crowd(3, url)
        ask_all(askers)
        gate.set()
        assert all_answers(askers) == ["page asked"] + ["page collapsed"] * 2
        assert len(server.requests) == 2

    def test_a_few_urls_asked_for_by_many_are_asked_for_once(self, server: Server, folder: Path) -> None:
        """Four processes of eight threads, 20 URLs, in an order of each one's own."""
        server.route("/p/*", lambda request: answer(body=request.path, fields=FRESH))
        code = """
import random, sys
from concurrent.futures import ThreadPoolExecutor
from kreuz_sync import Cache, DiskStore, Session
session = Session(cache=Cache(DiskStore(sys.argv[1], lock_wait=30), collapse="processes"), throttle=None, timeout=60)
urls = [f"{sys.argv[2]}/{number}" for number in range(20)]
def run(seed):
    mine = urls * 3
    random.Random(seed).shuffle(mine)
    return all(session.get(url).text == "/p/" + url.rpartition("/")[2] for url in mine)
with ThreadPoolExecutor(8) as pool:
    assert all(pool.map(run, range(int(sys.argv[3]), int(sys.argv[3]) + 8)))
session.close()
"""
        for process in [start(code, folder, server.url("/p"), number * 8) for number in range(4)]:
            finish(process)
        assert len(server.requests) == 20

    def test_caches_of_one_process_that_share_a_folder_do_as_well(self, server: Server, folder: Path) -> None:
        gate, clock = threading.Event(), TellingClock()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        sessions = [caching(shared(folder, clock=clock)) for _ in range(5)]
        workers = [Worker(session.get, url) for session in sessions]
        eventually(lambda: len(clock.waiting) == 4)
        gate.set()
        assert {one.outcome().text for one in workers} == {"page"}
        assert len(server.requests) == 1
        for session in sessions:
            session.close()

    def test_one_that_came_just_before_is_found(self, server: Server, folder: Path) -> None:
        """After this one had looked into the store, and before it could lead."""
        url = server.route("/page", answer(body="page", fields=FRESH))
        late, early = shared(folder), shared(folder)

        def be_early() -> None:
            with caching(early) as session:
                session.get(url)

        noted_leads(late, be_early)
        with caching(late) as session:
            told = session.get(url).cache_status
        assert (told, len(server.requests)) == ("kreuz; fwd=uri-miss; ttl=59; collapsed", 1)

    def test_it_is_renewed_in_the_background_by_one(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(body="page", fields=BEHIND))
        clock = FakeClock()
        cache = shared(folder, clock=clock)
        asked = noted_leads(cache)
        with caching(cache) as session:
            session.get(url)
            clock.advance(100)
            with led(folder, cache, url):
                assert session.get(url).from_cache
                eventually(lambda: asked == ["FileLead", "bytes"])
            eventually(lambda: session.get(url).from_cache and len(asked) > 2)
            eventually(lambda: len(server.requests) == 2)

    def test_what_another_one_has_renewed_is_left_alone(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(body="page", fields=BEHIND))
        clock = FakeClock()
        cache, other = shared(folder, clock=clock), shared(folder, clock=clock)

        def renew() -> None:
            with caching(other) as session:
                session.get(url, headers={"Cache-Control": "no-cache"})

        with caching(cache) as session:
            session.get(url)
            clock.advance(100)
            asked = noted_leads(cache, renew)
            assert session.get(url).from_cache
            eventually(lambda: asked == ["FileLead"])
        assert (len(server.requests), cache.statistics.refreshed) == (2, 0)

    def test_the_usual_setting_heeds_no_other_process(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=FRESH))
        cache = rfc(store=DiskStore(folder))
        with led(folder, cache, url), caching(cache) as session:
            assert session.get(url).ok
        assert not leads_here()

    def test_streams_go_by_themselves(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(body="page", fields=FRESH))
        cache = shared(folder)
        with led(folder, cache, url), caching(cache) as session, session.get(url, stream=True) as page:
            assert page.text == "page"


class TestNotForAll:
    """Whoever cannot use the answer asks for one of its own."""

    def test_all_ask_at_once(self, server: Server, crowd: Crowd) -> None:
        first, others = threading.Event(), threading.Event()
        url = server.route(
            "/page",
            sequence(answer(body="1", fields=NO_STORE, delay=first), answer(body="2", fields=NO_STORE, delay=others)),
        )
        askers = crowd(4, url)
        ask_all(askers)
        first.set()
        eventually(lambda: len(server.requests) == 4)
        others.set()
        assert all_answers(askers) == ["1 asked"] + ["2 asked"] * 3

    def test_they_need_not_wait_for_its_body(self, server: Server, folder: Path) -> None:
        """The header section says that it will not be stored; its body may take for ever."""
        gate, rest = threading.Event(), threading.Event()
        first = chunked(b"x" * 10, b"y" * 10, fields=NO_STORE, delay=gate, pause=rest)
        url = server.route("/page", sequence(first, answer(body="other")))
        clock = TellingClock()
        with caching(shared(folder)) as leading, caching(shared(folder, clock=clock)) as following:
            leader = Worker(leading.get, url)
            eventually(lambda: len(server.requests) == 1)
            follower = Worker(following.get, url)
            eventually(lambda: clock.waiting)
            gate.set()
            assert follower.outcome().text == "other"
            rest.set()
            assert leader.outcome().content == b"x" * 10 + b"y" * 10

    def test_the_next_ones_do_not_wait_in_vain_again(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=NO_STORE))
        cache = shared(folder)
        with caching(cache) as session:
            session.get(url)
            with led(folder, cache, url):
                assert session.get(url).ok

    def test_nor_for_what_is_stale_at_once(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields={"Cache-Control": "max-age=0", "ETag": '"a"'}))
        cache = shared(folder)
        with caching(cache) as session:
            session.get(url)
            with led(folder, cache, url):
                assert session.get(url).ok

    def test_other_credentials_are_another_key(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=FRESH))
        cache = shared(folder)
        with led(folder, cache, url), caching(cache) as session:
            assert session.get(url, headers={"Authorization": "Bearer a"}).ok

    def test_who_wants_a_new_answer_asks_for_it(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=FRESH))
        cache = shared(folder)
        with led(folder, cache, url), caching(cache) as session:
            assert session.get(url, headers={"Cache-Control": "no-cache"}).ok

    def test_if_another_one_leads_by_then_it_is_not_waited_for(self, server: Server, folder: Path) -> None:
        """What came was of no use, and so will be the next."""
        url = server.route("/page", answer(fields=FRESH))
        clock = FakeClock()
        cache = shared(folder, clock=clock)
        leaders = iter([b"", b"one", b"", b"one", b"another"])
        cache.store.lead = lambda key: next(leaders)  # type: ignore[method-assign, misc]
        with caching(cache) as session:
            assert session.get(url).cache_status == "kreuz; fwd=uri-miss; stored"
        assert len(clock.waits) == 4


class TestFailures:
    @pytest.mark.parametrize("then", [hang_up(), 503])
    def test_a_failing_leader_wakes_the_rest(self, server: Server, crowd: Crowd, then: Any) -> None:
        gate = threading.Event()
        first = [True]

        def page(request: Any) -> Any:
            if first:
                first.clear()
                gate.wait(GUARD_S)
                return then
            return answer(body="page", fields=FRESH)

        askers = crowd(4, server.route("/page", page))
        ask_all(askers)
        gate.set()
        said = all_answers(askers)
        failed = "503 asked" if then == 503 else "ConnectionFailed asked"
        assert said.count(failed) == 1
        assert {one for one in said if one != failed} <= {"page asked", "page collapsed"}
        assert len(server.requests) == said.count("page asked") + 1

    def test_where_a_leader_is_killed_one_takes_its_place(self, server: Server, crowd: Crowd) -> None:
        gate, never = threading.Event(), threading.Event()
        page = answer(body="page", fields=FRESH, delay=gate)
        url = server.route("/page", sequence(answer(delay=never), page))
        leader, *others = crowd(4, url)
        leader.ask()
        eventually(lambda: len(server.requests) == 1)
        for one in others:
            one.ask()
        eventually(lambda: all(one.waiting for one in others))
        leader.process.send_signal(signal.SIGKILL)
        eventually(lambda: len(server.requests) == 2)
        gate.set()
        assert all_answers(others) == ["page asked", "page collapsed", "page collapsed"]
        assert len(server.requests) == 2
        never.set()

    def test_killed_again_and_again_they_leave_nothing_behind(self, server: Server, crowd: Crowd, folder: Path) -> None:
        never = threading.Event()
        url = server.route("/page", sequence(*[answer(delay=never)] * 3, answer(body="page", fields=FRESH)))
        askers = crowd(4, url)
        for number, one in enumerate(askers[:3]):
            one.ask()
            eventually(lambda number=number: len(server.requests) == number + 1)
            one.process.send_signal(signal.SIGKILL)
            one.process.wait(20)
        askers[3].ask()
        assert askers[3].answers() == ["page asked"]
        never.set()

    def test_who_waits_too_long_goes_itself(self, server: Server, folder: Path) -> None:
        """As long as an answer of its own might take: its time-out, and a minute if it has none."""
        url = server.route("/page", answer(body="page", fields=NO_STORE))
        for timeout, seconds in ((None, 60.0), (20.0, 20.0), ((5.0, 7.0), 7.0)):
            clock = FakeClock()
            cache = shared(folder, clock=clock)
            with led(folder, cache, url), caching(cache, timeout=timeout) as session:
                assert session.get(url).text == "page"
            assert sum(clock.waits) == pytest.approx(seconds)
            assert max(clock.waits) <= 0.05

    def test_a_deadline_holds_for_the_wait(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(fields=FRESH))
        cache = shared(folder)
        with led(folder, cache, url), caching(cache, timeout=60) as session, pytest.raises(DeadlineExceeded):
            session.get(url, deadline=0.1)
        assert not server.requests

    def test_closing_its_session_ends_the_wait(self, server: Server, folder: Path) -> None:
        url = server.route("/page", answer(body="page", fields=FRESH))
        clock = TellingClock()
        cache = shared(folder, clock=clock)
        closed, staying = caching(cache), caching(shared(folder, clock=clock))
        with led(folder, cache, url):
            workers = [Worker(one.get, url) for one in (closed, staying)]
            eventually(lambda: len(clock.waiting) == 2)
            closed.close()
            with pytest.raises(SessionClosed):
                workers[0].outcome()
        assert workers[1].outcome().text == "page"
        staying.close()

    def test_ctrl_c_ends_the_wait(self, server: Server, crowd: Crowd) -> None:
        gate = threading.Event()
        url = server.route("/page", answer(body="page", fields=FRESH, delay=gate))
        leader, waiting = crowd(2, url, threads=0)
        leader.ask()
        eventually(lambda: len(server.requests) == 1)
        waiting.ask()
        eventually(lambda: waiting.waiting)
        waiting.process.send_signal(signal.SIGINT)
        assert waiting.process.wait(20) != 0
        gate.set()
        assert leader.answers() == ["page asked"]

    def test_a_call_made_while_it_leads_waits_for_nobody(self, server: Server, folder: Path) -> None:
        """That one may be waiting for this thread."""
        outer, inner = server.route("/outer", answer(fields=FRESH)), server.route("/inner", answer(fields=FRESH))
        cache = shared(folder)
        nested: list[bool] = []

        class Nosy(kreuz_sync.LayerAdapter):
            def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
                if not nested:
                    nested.append(leads_here())
                    nested.append(session.get(inner).ok)
                return self.inner.send(request, **options)

        with led(folder, cache, inner), kreuz_sync.Session(layers=[cache, Nosy]) as session:
            assert session.get(outer).ok
        assert (nested, leads_here()) == ([True, True], False)

    def test_what_cannot_be_locked_is_asked_for_and_told_once(
        self, server: Server, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (folder / "cache.db-leads").mkdir(parents=True)
        url = server.route("/page*", answer(fields=FRESH))
        with caplog.at_level(logging.WARNING), caching(shared(folder)) as session:
            assert [session.get(f"{url}{number % 3}").from_cache for number in range(6)] == [False] * 3 + [True] * 3
        (record,) = caplog.records
        assert "cannot be shared with other processes now" in record.getMessage()

    def test_a_folder_that_may_only_be_read_is_as_none(self, server: Server) -> None:
        url = server.route("/page", answer(body="page", fields=FRESH))
        code = """
import logging, os, sys
from kreuz_sync import Cache, Session
def ask(folder):
    with Session(cache=Cache(folder, policy="rfc9111", collapse="processes"), throttle=None) as session:
        return [session.get(sys.argv[2]).from_cache for _ in range(2)]
ask(sys.argv[1] + "/first")  # what it imports may be out of another user's reach
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
records = []
handler = logging.Handler()
handler.emit = records.append
logging.getLogger("kreuz_sync.cache").addHandler(handler)
folder = sys.argv[1] + "/folder"
before = ask(folder)
for name in os.listdir(folder):
    os.chmod(os.path.join(folder, name), 0o400)
os.chmod(folder, 0o500)
print(before, ask(folder), len(records))
"""
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)
            assert run_python(code, place, url) == "[False, True] [False, False] 1\n"


class TestSetting:
    def test_a_store_without_leads_is_an_error(self) -> None:
        for store in (MemoryStore(), WatchedStore()):
            with pytest.raises(ValueError, match=f'"processes" is for a folder: a {type(store).__name__}'):
                Cache(store, collapse="processes")
            assert not store.has_leads
            with pytest.raises(StoreTrouble, match="has no leads"):
                store.lead("key")

    @pytest.mark.parametrize("value", ["threads", "", "Processes"])
    def test_so_is_another_word(self, folder: Path, value: Any) -> None:
        with pytest.raises(ValueError, match='True, False or "processes" is wanted'):
            Cache(folder, collapse=value)

    def test_it_survives_pickling(self, folder: Path) -> None:
        assert pickle.loads(pickle.dumps(Cache(folder, collapse="processes"))).collapse == "processes"


class TestLeads:
    """Who leads for a key, among the stores over one folder."""

    @pytest.fixture
    def stores(self, folder: Path) -> Iterator[list[DiskStore]]:
        stores = [DiskStore(folder) for _ in range(2)]
        yield stores
        for store in stores:
            store.close()

    def test_one_at_a_time_has_it(self, stores: list[DiskStore]) -> None:
        one, two = stores
        lead = one.lead("key")
        assert isinstance(lead, FileLead) and not lead.is_taken_over
        held_by = two.lead("key")
        assert isinstance(held_by, bytes) and held_by
        assert one.lead("key") == two.lead("key") == held_by
        lead.end()
        lead.end()
        other = two.lead("key")
        assert isinstance(other, FileLead) and not other.is_taken_over
        assert one.lead("key") not in (b"", held_by)
        lead.end()
        assert isinstance(one.lead("key"), bytes)
        other.end()

    def test_thousands_of_keys_have_one_each(self, stores: list[DiskStore]) -> None:
        """More than there are notes: none of them waits for another."""
        leads = [stores[number % 2].lead(str(number)) for number in range(3000)]
        assert all(isinstance(lead, FileLead) and not lead.is_taken_over for lead in leads)
        assert all(isinstance(stores[number % 2].lead(str(number)), bytes) for number in range(3000))

    def test_one_that_is_dropped_ends(self, stores: list[DiskStore]) -> None:
        """An interrupt may strike between taking it and being able to end it."""
        lead = stores[0].lead("key")
        assert isinstance(stores[1].lead("key"), bytes)
        del lead
        assert isinstance(stores[1].lead("key"), FileLead)

    def test_closing_the_store_does_not_end_it(self, stores: list[DiskStore], folder: Path) -> None:
        """Nor does closing another one over the same folder, as closing a file that was locked would."""
        lead = stores[0].lead("key")
        stores[1].lead("other key")
        for store in stores:
            store.close()
        assert lead_elsewhere(folder) == "bytes"
        assert isinstance(lead, FileLead)
        lead.end()
        assert lead_elsewhere(folder) == "FileLead"

    @needs_proc
    def test_no_file_is_left_open(self, folder: Path) -> None:
        before = open_files()
        for _ in range(3):
            with closing(DiskStore(folder)) as store:
                lead = store.lead("key")
                assert isinstance(lead, FileLead)
                lead.end()
                del lead
        assert open_files() == before

    def test_a_folder_that_was_taken_away_has_new_ones(self, folder: Path) -> None:
        with closing(DiskStore(folder)) as store:
            lead = store.lead("key")
            shutil.rmtree(folder)
            with closing(DiskStore(folder)) as other:
                assert isinstance(other.lead("key"), FileLead)
            assert isinstance(lead, FileLead)

    def test_the_child_of_a_fork_does_not_hold_it(self, folder: Path) -> None:
        code = """
import os, sys
from kreuz_sync.cache.disk import DiskStore
store = DiskStore(sys.argv[1])
lead = store.lead("key")
leave, wait = os.pipe(), os.pipe()
child = os.fork()
if not child:
    assert isinstance(store.lead("key"), bytes)  # its parent has it
    assert type(store.lead("another")).__name__ == "FileLead"
    lead.end()  # says nothing: it is its parent's
    os.write(leave[1], b"x")
    os.close(wait[1])
    os.read(wait[0], 1)
    os._exit(0)
os.read(leave[0], 1)
assert isinstance(DiskStore(sys.argv[1]).lead("key"), bytes)
print(child, flush=True)
os.kill(os.getpid(), 9)
"""
        process = start(code, folder)
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.wait(20)
        try:
            with closing(DiskStore(folder)) as store:
                lead = store.lead("key")
                assert isinstance(lead, FileLead) and lead.is_taken_over
        finally:
            os.kill(child, signal.SIGKILL)
        process.communicate(timeout=20)

    @pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 8192, b"\0" * 100])
    def test_whatever_is_in_the_file_they_work(self, folder: Path, content: bytes) -> None:
        folder.mkdir()
        (folder / "cache.db-leads").write_bytes(content)
        with closing(DiskStore(folder)) as store, closing(DiskStore(folder)) as other:
            for number in range(50):
                lead = store.lead(str(number))
                assert isinstance(lead, FileLead)
                (folder / "cache.db-leads").write_bytes(content)
                assert isinstance(other.lead(str(number)), bytes)
                lead.end()


class TestWindows:
    """With a double for the module that only Windows has."""

    @pytest.fixture
    def ranges(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[WindowsRanges]:
        locked: dict[int, int] = {}

        def locking(file: int, mode: int, count: int) -> None:
            place = os.lseek(file, 0, os.SEEK_CUR)
            assert (count, place < 2**31) == (1, True)
            if mode == 0:
                assert locked.pop(place) == file
            elif locked.setdefault(place, file) != file:
                raise PermissionError(13, "Permission denied")

        double = types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking)
        monkeypatch.setitem(sys.modules, "msvcrt", double)
        return [WindowsRanges(str(tmp_path / "leads")) for _ in range(2)]

    @needs_proc
    def test_one_at_a_time_has_a_lock(self, ranges: list[WindowsRanges]) -> None:
        one, two = ranges
        number = 2**56 - 3
        assert one.lock(number)
        assert not two.lock(number) and not one.lock(number)
        assert two.lock(number + 1)
        before = open_files()
        one.unlock(number)
        one.unlock(number)
        assert open_files() == before - 1
        assert two.lock(number)
        two.unlock(number)
        two.unlock(number + 1)
        for each in ranges:
            os.close(each.file)


def lead_elsewhere(folder: Path) -> str:
    """What another process gets that asks for the lead for `key`."""
    code = "import sys; from kreuz_sync.cache.disk import DiskStore"
    return run_python(f"{code}; print(type(DiskStore(sys.argv[1]).lead('key')).__name__)", folder).strip()
