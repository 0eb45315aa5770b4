"""Parts of a host with quotas of their own: who waits for which, and who does not."""

import threading
from collections import Counter

import pytest

from kreuz_sync import Session, Throttle
from kreuz_sync.errors import DeadlineExceeded, SessionClosed, ThrottleTimeout
from kreuz_sync.throttle.buckets import MOST, Buckets
from kreuz_sync.throttle.verdict import Declared

from .fakes import FakeClock, ScriptedAdapter, prepared
from .loopback import answer
from .test_throttle_line import HOST, Line
from .waiting import Worker, eventually

DATE = "Fri, 15 Jan 2027 08:00:00 GMT"


def used_up(bucket="search", seconds=30.0, policy=""):
    """What an answer says when nothing is left of a bucket."""
    return Declared(seconds, bucket, policy, 0, seconds, "x-ratelimit-reset")


def left(remaining, reset, bucket="search", policy=""):
    return Declared(0.0, bucket, policy, remaining, reset, "x-ratelimit-reset")


class BucketLine(Line):
    """A line whose waiters want something of one bucket."""

    def go(self, who=None, host=HOST, owner=None, bucket="search", **options):
        turn = self.turns.take(host, owner, ask=bucket, **options)
        self.started.append((who, round(self.clock.monotonic() - self._began, 6)))
        return turn

    def queue(self, who, host=HOST, owner=None, bucket="search", **options):
        before = self.waiting(host)
        worker = Worker(self.go, who, host, owner, bucket, **options)
        eventually(lambda: self.waiting(host) == before + 1)
        return worker

    def heed(self, said):
        self.turns.heed(HOST, said)


@pytest.fixture
def line():
    return BucketLine()


class TestWhoWaits:
    def test_those_of_a_bucket_that_is_used_up_and_no_others(self, line):
        line.heed(used_up())
        worker = line.queue("a")
        assert line.go("b", bucket="core").waited == 0.0
        line.clock.advance(1)
        assert line.go("c", bucket="").waited == 0.0
        line.advance(29)
        assert worker.outcome().waited == 30.0

    def test_they_hold_up_nobody_behind_them(self, line):
        """Three wait for a bucket; two that come later have the host's next turns."""
        line.heed(used_up())
        line.go("first", bucket="core")
        held = [line.queue(name) for name in "abc"]
        others = [line.queue(name, bucket="core") for name in "xy"]
        for worker in others:
            line.advance(1, asleep=2)
            worker.outcome()
        assert [who for who, _ in line.started] == ["first", "x", "y"]
        line.advance(28)
        for worker in held:
            worker.outcome() if worker is held[0] else None
            line.advance(1) if worker is not held[-1] else None
        held[-1].outcome()
        assert line.started[3:] == [("a", 30), ("b", 31), ("c", 32)]

    def test_when_it_opens_they_go_in_order_of_arrival(self, line):
        line.heed(used_up())
        workers = [line.queue(name) for name in "abcdef"]
        line.advance(30)
        for number, worker in enumerate(workers):
            worker.outcome()
            if number < 5:
                line.advance(1)
        assert line.started == [(name, 30 + number) for number, name in enumerate("abcdef")]

    def test_who_came_before_goes_before_those_who_came_later_for_another_bucket(self, line):
        """A place in the order of arrival is not lost by waiting for a bucket."""
        line.heed(used_up(seconds=2))
        line.go("first", bucket="core")
        early = line.queue("early")
        late = [line.queue(name, bucket="core") for name in "xyz"]
        line.advance(1, asleep=2)
        late[0].outcome()
        line.advance(1, asleep=2)
        early.outcome()  # its bucket opens at the very moment of a turn
        for worker in late[1:]:
            line.advance(1)
            worker.outcome()
        assert line.started[1:] == [("x", 1), ("early", 2), ("y", 3), ("z", 4)]

    def test_a_newcomer_does_not_overtake_those_in_the_buckets_line(self, line):
        line.heed(used_up(seconds=2))
        worker = line.queue("a")
        line.advance(2)
        worker.outcome()
        line.heed(used_up(seconds=2))
        second = line.queue("b")
        line.clock.advance(1.999999)
        third = line.queue("c")
        line.advance(1)
        second.outcome()
        line.advance(1)
        third.outcome()
        assert [who for who, _ in line.started] == ["a", "b", "c"]

    def test_an_unknown_request_is_paced_by_the_host_alone(self, line):
        line.heed(used_up())
        assert line.go(bucket=None).waited == 0.0

    def test_the_host_as_a_whole_holds_its_buckets_up_too(self, line):
        line.heed(used_up(bucket="", seconds=5))
        worker = line.queue("a")
        line.advance(5)
        assert worker.outcome().waited == 5.0

    def test_waiting_for_a_bucket_takes_no_place(self):
        line = BucketLine(delay=0.0, concurrency=1)
        line.heed(used_up())
        held = line.queue("a")
        for _ in range(3):
            line.go("b", bucket="core").give_back()
        line.advance(30)
        held.outcome().give_back()


class TestChangesReachThoseThatWait:
    def test_a_pause_takes_those_of_its_bucket_out_of_the_hosts_line(self, line):
        line.go("first")
        search = [line.queue(name) for name in "ab"]
        core = line.queue("x", bucket="core")
        line.heed(used_up(seconds=10))
        line.advance(1, asleep=2)
        core.outcome()
        line.advance(9)
        search[0].outcome()
        line.advance(1)
        search[1].outcome()
        assert line.started[1:] == [("x", 1), ("a", 10), ("b", 11)]

    def test_a_shorter_word_on_the_same_policy_brings_them_forward(self, line):
        line.heed(used_up(seconds=30))
        worker = line.queue("a")
        line.heed(used_up(seconds=3))
        line.advance(3)
        assert worker.outcome().waited == 3.0

    def test_a_longer_one_puts_them_off(self, line):
        line.heed(used_up(seconds=3))
        worker = line.queue("a")
        line.heed(used_up(seconds=30))
        line.advance(3)
        eventually(lambda: line.clock.asleep == 1)
        line.advance(27)
        assert worker.outcome().waited == 30.0

    def test_an_answer_that_something_is_left_again_lets_them_go(self, line):
        """As one brings to a request whose bucket nobody knew."""
        line.heed(used_up(seconds=30))
        worker = line.queue("a")
        line.clock.advance(0.5)
        line.heed(left(5, 60))
        assert worker.outcome().waited == 0.5

    def test_what_is_said_of_another_bucket_changes_nothing(self, line):
        line.heed(used_up(seconds=30))
        worker = line.queue("a")
        line.heed(left(5, 60, bucket="core"))
        line.heed(used_up(seconds=90, bucket="core"))
        line.advance(30)
        assert worker.outcome().waited == 30.0


class TestLimitsOnWaiting:
    def test_max_wait_is_decided_before_waiting(self):
        line = BucketLine(max_wait=10.0)
        line.heed(used_up(seconds=30))
        with pytest.raises(ThrottleTimeout) as caught:
            line.go()
        assert (caught.value.retry_after, line.clock.waits) == (30.0, [])
        assert line.go(bucket="core").waited == 0.0

    def test_those_before_one_in_the_buckets_line_count(self):
        line = BucketLine(max_wait=11.0)
        line.heed(used_up(seconds=10))
        workers = [line.queue("a"), line.queue("b")]
        with pytest.raises(ThrottleTimeout) as caught:
            line.go("c")
        assert caught.value.retry_after == 12.0
        line.advance(10)
        workers[0].outcome()
        line.advance(1)
        workers[1].outcome()

    def test_a_pause_that_comes_later_refuses_those_it_puts_off_too_far(self):
        line = BucketLine(max_wait=10.0)
        line.go("first")
        worker = line.queue("a")
        line.heed(used_up(seconds=30))
        with pytest.raises(ThrottleTimeout) as caught:
            worker.outcome()
        assert caught.value.retry_after == 30.0
        assert line.waiting() == 0

    def test_so_does_a_deadline(self, line):
        line.heed(used_up(seconds=30))
        with pytest.raises(DeadlineExceeded) as caught:
            line.go(seconds=10.0)
        assert caught.value.retry_after == 30.0

    def test_and_one_that_passes_while_waiting(self, line):
        line.heed(used_up(seconds=10))
        worker = line.queue("a", seconds=20.0)
        line.heed(used_up(seconds=100))
        with pytest.raises(DeadlineExceeded):
            worker.outcome()

    def test_closing_ends_the_wait(self, line):
        line.heed(used_up())
        owner = object()
        worker, other = line.queue("a", owner=owner), line.queue("b")
        line.turns.wake(owner)
        with pytest.raises(SessionClosed):
            worker.outcome()
        line.advance(30)
        other.outcome()
        assert line.waiting() == 0

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_an_interrupt_gives_the_place_to_the_next(self, line, position):
        line.heed(used_up())
        hit = threading.Event()
        wait = line.clock.wait

        def failing(condition, seconds):
            wait(condition, seconds)
            if threading.current_thread() is workers[position] and hit.is_set():
                raise KeyboardInterrupt

        line.clock.wait = failing
        workers = [line.queue(name) for name in "abc"]
        eventually(lambda: line.clock.asleep == 1)
        hit.set()
        line.turns.roster.hosts[HOST].buckets.by_name["search"].queue[position].ring()
        with pytest.raises(KeyboardInterrupt):
            workers[position].outcome()
        line.advance(30)
        stayed = [worker for worker in workers if worker is not workers[position]]
        stayed[0].outcome()
        line.advance(1)
        stayed[1].outcome()
        assert [when for _, when in line.started] == [30, 31]
        assert not line.turns._waiting


class TestWaitingForAMoment:
    """Who was redirected waits for a moment of its own, in no line."""

    def test_others_go_before_it(self, line):
        worker = line.queue("a", not_before=line.clock.monotonic() + 10)
        assert line.go("b").waited == 0.0
        line.advance(10)
        assert worker.outcome().waited == 10.0

    def test_then_it_has_its_place_in_the_order_of_arrival(self, line):
        line.go("first")
        worker = line.queue("a", not_before=line.clock.monotonic() + 1.5)
        later = [line.queue(name) for name in "xyz"]
        line.advance(1, asleep=2)
        later[0].outcome()
        line.advance(0.5, asleep=2)
        eventually(lambda: line.turns.roster.hosts[HOST].buckets.aside == set())
        line.advance(0.5, asleep=2)
        worker.outcome()
        for one in later[1:]:
            line.advance(1)
            one.outcome()
        assert [who for who, _ in line.started] == ["first", "x", "a", "y", "z"]

    def test_then_it_may_have_to_wait_for_its_bucket(self, line):
        worker = line.queue("a", not_before=line.clock.monotonic() + 2)
        line.heed(used_up(seconds=10))
        line.advance(2)
        eventually(lambda: line.clock.asleep == 1)
        line.advance(8)
        assert worker.outcome().waited == 10.0

    def test_it_can_be_closed(self, line):
        owner = object()
        worker = line.queue("a", owner=owner, not_before=line.clock.monotonic() + 10)
        line.turns.wake(owner)
        with pytest.raises(SessionClosed):
            worker.outcome()
        assert line.waiting() == 0


class TestCutPauses:
    def test_one_of_the_bucket_asks_and_the_others_wait_for_its_answer(self):
        line = BucketLine(delay=0.0)
        line.heed(used_up(seconds=10_000))
        workers = [line.queue(name) for name in "abc"]
        line.advance(300)
        probe = workers[0].outcome()
        assert probe.is_probe and line.waiting() == 2
        assert line.go("x", bucket="core").waited == 0.0
        line.turns.heed(HOST, None, probe, "search")
        for worker in workers[1:]:
            assert not worker.outcome().is_probe
        assert [who for who, _ in line.started] == ["a", "x", "b", "c"]

    def test_a_probe_in_the_hosts_line_is_not_put_back(self):
        """While it waits for the host's turn, the pace changes."""
        line = BucketLine(delay=5.0)
        line.heed(used_up(seconds=10_000))
        worker = line.queue("a")
        line.clock.advance(298)
        line.go("x", bucket="core")
        line.advance(2)
        eventually(lambda: line.clock.asleep == 1)
        line.throttle.set_crawl_delay(HOST, 6)
        line.advance(4)
        assert worker.outcome().is_probe


class TestSmoothing:
    def test_each_bucket_is_spread_out_by_itself(self):
        line = BucketLine(delay=0.0, smooth=True)
        line.heed(left(10, 20))
        line.go("first")
        workers = [line.queue(name) for name in "ab"]
        for _ in range(5):
            assert line.go("x", bucket="core").waited == 0.0
        for worker in workers:
            line.advance(2)
            worker.outcome()
        assert [one for one in line.started if one[0] != "x"] == [("first", 0), ("a", 2), ("b", 4)]


class TestNames:
    """Servers choose them: they have bounds."""

    def test_those_that_nothing_would_be_lost_with_make_room(self):
        buckets = Buckets()
        for number in range(3 * MOST):
            assert buckets.named(f"b{number}", 0.0) is not None
        assert len(buckets.by_name) == MOST

    def test_beyond_that_the_host_as_a_whole_is_paused(self, line):
        for number in range(MOST):
            line.heed(used_up(bucket=f"b{number}"))
        assert line.throttle.wait_for(HOST) == 0.0
        line.heed(used_up(bucket="one more", seconds=7))
        assert line.throttle.wait_for(HOST) == 7.0
        assert len(line.throttle.snapshot()[HOST].buckets) == MOST

    def test_a_host_whose_bucket_is_paused_is_not_forgotten(self, line):
        line.heed(used_up(seconds=30))
        host, now = line.turns.roster.hosts[HOST], line.clock.monotonic()
        assert not host.is_forgettable(now + 29)
        assert host.is_forgettable(now + 31)


class TestByAnswers:
    """Servers name the bucket afterwards; the next time it is known."""

    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    def session(self, clock):
        with Session(throttle=Throttle(0, clock=clock)) as session:
            yield session

    def github(self, used_up=()):
        """Answers of a server whose quotas named here are used up for a minute."""

        def api(request):
            resource = "search" if request.path.startswith("/search/") else "core"
            remaining = "0" if resource in used_up else "40"
            fields = {"x-ratelimit-resource": resource, "x-ratelimit-remaining": remaining}
            return answer(200, fields={"Date": DATE, **fields, "x-ratelimit-reset": "1800000059"})

        return api

    def test_github_searches_wait_and_the_rest_of_the_api_does_not(self, server, session, clock):
        server.route("/*", self.github(used_up={"search"}))
        for path in ("/search/code?q=a", "/repos/me/it", "/users/me", "/orgs/us"):
            assert session.get(server.url(path)).waited == 0.0
        assert session.get(server.url("/repos/me/it/issues")).waited == 0.0
        assert session.get(server.url("/search/code?q=b")).waited == 60.0
        (search, core) = session.throttle.snapshot()["127.0.0.1"].buckets
        assert (search.name, search.paused, search.pause_source) == ("search", 60, "x-ratelimit-reset")
        assert (core.name, core.paused, core.remaining) == ("core", 0, None)

    def test_github_pages_that_were_never_asked_for_wait_with_their_like(self, server, session):
        used = set()
        server.route("/*", self.github(used))
        for path in ("/repos/a/x", "/repos/b/x", "/repos/c/x", "/search/code"):
            session.get(server.url(path))
        used.add("core")
        session.get(server.url("/repos/a/x"))
        assert session.get(server.url("/search/code")).waited == 0.0
        assert session.get(server.url("/repos/d/y/issues")).waited == 60.0

    def test_discord_a_route_waits_and_its_like_with_it(self, server, session):
        def api(request):
            bucket = "m1" if request.path.endswith("/messages") else "c1"
            fields = {"x-ratelimit-remaining": "0" if bucket == "m1" else "4", "x-ratelimit-reset-after": "64.5"}
            return answer(200, fields={**fields, "x-ratelimit-bucket": bucket})

        server.route("/*", api)
        session.get(server.url("/api/v10/channels/1/messages"))
        assert session.get(server.url("/api/v10/channels/1")).waited == 0.0
        assert session.post(server.url("/api/v10/channels/1/messages")).waited == 0.0
        assert session.get(server.url("/api/v10/channels/22/messages?limit=5")).waited == 64.5

    def test_partitions_are_told_by_a_function(self, server, clock):
        """A partition is a caller's, and not a path's: who knows them says so."""

        def api(request):
            who = request.fields.get("Authorization")
            return answer(200, fields={"RateLimit": f'"a";r=0;t=30;pk=:{who}:'})

        def partition(request):
            return request.headers.get("Authorization")

        url = server.route("/", api)
        with Session(throttle=Throttle(0, bucket=partition, clock=clock)) as session:
            assert session.get(url, headers={"Authorization": "QQ=="}).waited == 0.0
            assert session.get(url, headers={"Authorization": "Qg=="}).waited == 0.0
            assert session.get(url).waited == 0.0
            assert session.get(url, headers={"Authorization": "QQ=="}).waited == 30.0

    def test_a_function_that_gives_no_name_leaves_it_to_the_host(self, clock):
        wire = ScriptedAdapter((200, {"RateLimit": '"a";r=0;t=30;pk=:QQ==:'}, b""))
        adapter = Throttle(0, bucket=lambda request: None, clock=clock)(wire)
        for _ in range(3):
            adapter.send(prepared())
        assert clock.waits == []

    def test_one_that_gives_no_string_is_named(self, clock):
        adapter = Throttle(0, bucket=lambda request: 5, clock=clock)(ScriptedAdapter())
        with pytest.raises(TypeError, match="a string is wanted"):
            adapter.send(prepared())
        with pytest.raises(TypeError, match="bucket='core'"):
            Throttle(bucket="core")


class TestStress:
    def test_no_turn_is_lost_while_buckets_open_and_close(self):
        """Sixteen threads, four buckets that are paused now and then, exact counts at the end."""
        clock = FakeClock()
        throttle = Throttle(0.01, clock=clock, max_retry_after=0.2, smooth=True)
        barrier = threading.Barrier(16)

        def work(number):
            barrier.wait(10)
            for step in range(60):
                bucket = f"b{(number + step) % 4}"
                turn = throttle.turns.take(HOST, ask=bucket)
                said = None
                if (number * step) % 7 == 3:
                    said = used_up(bucket, seconds=0.05 * (step % 9))
                elif step % 3 == 0:
                    said = left(5, 0.1, bucket)
                throttle.turns.heed(HOST, said, turn, bucket)
                throttle.turns.answered(HOST, 200, raised=turn.raised)
            return Counter(done=60)

        total = sum((worker.outcome() for worker in [Worker(work, number) for number in range(16)]), Counter())
        report = throttle.snapshot()[HOST]
        assert total["done"] == report.starts == 16 * 60
        assert report.waiting == 0 and not throttle.turns._waiting
        host = throttle.turns.roster.hosts[HOST]
        assert host.queue is None and all(one.queue is None for one in host.buckets.by_name.values())
