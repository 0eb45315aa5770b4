"""The pace that several machines keep through Redis: the steps on the server, and one throttle before it.

Delays are so long that the time which a test takes is none beside them; what would be later is written into the
server. Several processes are in test_throttle_redis_processes.py.
"""

from __future__ import annotations

import copy
import logging
import pickle
import random
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import kreuz_sync
from kreuz_sync import RedisThrottle, Session
from kreuz_sync.errors import DeadlineExceeded, SessionClosed, ThrottleTimeout
from kreuz_sync.throttle.folder import _answer
from kreuz_sync.throttle.redis import RedisSteps
from kreuz_sync.throttle.shared.plan import WAIT, Plan
from kreuz_sync.throttle.shared.steps import NO_CLAIM, Claim

from .fakes import FakeClock, ScriptedAdapter
from .loopback import Server as WebServer
from .pace_contract import DELAY_S, HOST, NOTHING, RULES, Answers, Joining, Machine, Site, Slots, near
from .redis_server import GivenServer, RedisCluster, RedisServer, closed_port, silent_port
from .waiting import GUARD_S, Worker, eventually

redis = pytest.importorskip("redis")


class RedisSite(Site):
    def __init__(self, client: Any, namespace: str) -> None:
        super().__init__()
        self.client = client
        self.key = f"{namespace}:pace:{HOST}"
        self.steps = RedisSteps(client, GUARD_S, namespace)

    def shift(self, microseconds: int) -> None:
        for field in ("started", "next", "paused", "at", "buckets"):
            self.client.hincrby(self.key, field, -microseconds)

    def lasts(self) -> float:
        return float(self.client.pttl(self.key)) / 1000


@pytest.fixture
def client(redis_server: GivenServer) -> Iterator[Any]:
    with redis_server.client() as client:
        yield client


@pytest.fixture
def site(client: Any, redis_space: str) -> Iterator[RedisSite]:
    site = RedisSite(client, redis_space)
    with closing(site.steps):
        yield site


class TestSlots(Slots):
    """In Redis."""


class TestAnswers(Answers):
    """In Redis."""


class TestJoining(Joining):
    """In Redis."""

    def test_a_forgotten_script_is_sent_again(self, site: RedisSite) -> None:
        Machine(site).ask()
        site.client.script_flush()
        assert Machine(site).ask() == (WAIT, near(100))


WORDS = tuple(b"%d" % number for number in (100_000_000, 1_000_000_000, 1_000_000, 0, 0, 0, 0, 0, 0, 0, -1))


class TestTheSameInPython:
    """`plan.py` and the scripts are one set of rules, written twice."""

    @pytest.mark.parametrize("seed", range(12))
    def test_both_give_the_same_answers(self, site: RedisSite, seed: int) -> None:
        chance = random.Random(seed)
        kept: dict[str, Any] | None = None
        claims: list[list[int]] = []
        for _ in range(60):
            what, words = _step(chance, claims)
            told = _told(chance)
            answer = site.steps.send(what, HOST, told + words)
            plan = Plan(kept, answer[4], [int(word) for word in told])
            again = _answer(plan, what, words)
            assert [*again[:-1], _pairs(again[-1])] == [*answer[:-1], _pairs(answer[-1])]
            kept = plan.kept()
            assert site.lasts() == near((plan.until() - answer[4]) / 1e6)
            if answer[2]:
                claims.append([answer[2], answer[3]])
            seconds = chance.choice((0, 0, 10, 50, 100, 130, 400, -50))
            site.pass_time(seconds)
            for name in ("started", "next", "paused", "at"):
                kept[name] -= seconds * 1_000_000
            for claim in claims:
                claim[0] -= seconds * 1_000_000


def _told(chance: random.Random) -> tuple[bytes, ...]:
    """What the asker knows: mostly nothing."""
    if chance.random() < 0.8:
        return WORDS
    numbers = (1, chance.randrange(2), chance.choice((0, 250_000_000)), chance.choice((0, 120_000_000)))
    numbers += (chance.randrange(4), chance.choice((0, 30_000_000)), chance.randrange(2), chance.choice((-1, 7)))
    return WORDS[:3] + tuple(b"%d" % number for number in numbers)


def _step(chance: random.Random, claims: list[list[int]]) -> tuple[str, tuple[bytes, ...]]:
    kind = chance.choice(("take", "take", "take", "answer", "answer", "floor", "pause"))
    if kind == "take":
        claim, epoch = chance.choice([*claims[-4:], [0, 0]])
        numbers = (max(0, claim), epoch, chance.choice((-1, -1, 150_000_000)), chance.choice((0, 0, 170_000_000)))
        return "take", tuple(b"%d" % number for number in numbers)
    if kind == "answer":
        how = chance.choice(("many", "good", "good", "good", "neutral", "bad", "failed", "unreachable"))
        return "learn", (b"answer", how.encode(), b"%d" % chance.choice((0, 1, 2, 2**53)))
    if kind == "floor":
        return "learn", (b"floor", b"%d" % chance.choice((0, 150_000_000)))
    return "learn", (b"pause", b"%d" % chance.choice((0, 200_000_000)), b"%d" % chance.randrange(2), b"-1")


def _pairs(flat: list[Any]) -> set[tuple[Any, ...]]:
    return {tuple(flat[place : place + 3]) for place in range(0, len(flat), 3)}


class TiedClock(FakeClock):
    """On which time passes for the server too."""

    def __init__(self, site: RedisSite) -> None:
        super().__init__()
        self.site = site
        self.throttle: Any = None
        self.meanwhile: list[Any] = []

    def wait(self, condition: Any, seconds: float | None) -> None:
        super().wait(condition, seconds)
        if seconds:
            self.site.pass_time(seconds)
            host = self.throttle.turns.roster.hosts[HOST]
            if host.claim != NO_CLAIM:
                host.claim = Claim(host.claim.slot - round(seconds * 1e6), host.claim.epoch)
        if self.meanwhile:
            self.meanwhile.pop(0)()


@pytest.fixture
def tied(site: RedisSite, client: Any, redis_space: str) -> Iterator[TiedClock]:
    clock = TiedClock(site)
    clock.throttle = RedisThrottle(client, DELAY_S, namespace=redis_space, timeout=GUARD_S, clock=clock)
    clock.throttle.acquire(HOST)
    yield clock
    clock.throttle.close()


class TestWaiting:
    """A thread that waits for a slot which is far away."""

    def test_it_sleeps_until_its_slot(self, tied: TiedClock) -> None:
        tied.throttle.acquire(HOST)
        assert sum(tied.waits) == near(DELAY_S)

    def test_it_waits_longer_after_a_429_for_another(self, tied: TiedClock, site: RedisSite) -> None:
        tied.meanwhile = [lambda: site.steps.answer(HOST, RULES, NOTHING, "many", 0)]
        tied.throttle.acquire(HOST)
        assert sum(tied.waits) == near(2 * DELAY_S)

    def test_it_waits_longer_while_others_pause(self, tied: TiedClock, site: RedisSite) -> None:
        tied.meanwhile = [lambda: site.steps.pause(HOST, RULES, NOTHING, 300.0, False, -1)]
        tied.throttle.acquire(HOST)
        assert sum(tied.waits) == near(DELAY_S + 300)

    def test_it_hears_of_a_pause_that_has_become_shorter(self, tied: TiedClock, site: RedisSite) -> None:
        """It asks every few seconds while it has a slot."""
        longer = site.steps.pause(HOST, RULES, NOTHING, 300.0, False, -1)
        tied.advance(DELAY_S)
        site.pass_time(DELAY_S)
        moved = longer.paused_until - round(DELAY_S * 1e6)

        def end() -> None:
            at = int(site.client.hget(site.key, "paused"))
            assert abs(at - moved) < 60e6
            site.steps.pause(HOST, RULES, NOTHING, 0.0, False, at)

        tied.meanwhile = [end]
        tied.throttle.acquire(HOST)
        assert sum(tied.waits) < 30


Made = Any


@pytest.fixture
def make(client: Any, redis_space: str) -> Iterator[Made]:
    """Makes throttles that share one namespace."""
    made: list[RedisThrottle] = []

    def make(delay: float = DELAY_S, **settings: Any) -> RedisThrottle:
        settings = {"client": client, "namespace": redis_space, "timeout": GUARD_S, **settings}
        made.append(RedisThrottle(delay=delay, **settings))
        return made[-1]

    yield make
    for throttle in made:
        throttle.close()


def session(throttle: RedisThrottle, *answers: Any, **settings: Any) -> Session:
    return Session(throttle=throttle, adapter=ScriptedAdapter(*answers), retry=None, **settings)


URL = f"http://{HOST}/"


class TestThrottle:
    """Several throttles before one server."""

    def test_they_keep_one_pace(self, make: Made) -> None:
        make().acquire(HOST)
        with pytest.raises(ThrottleTimeout) as raised:
            make(max_wait=1.0).acquire(HOST)
        assert raised.value.retry_after == near(DELAY_S)

    def test_who_would_wait_for_too_long_takes_no_slot(self, make: Made) -> None:
        make().acquire(HOST)
        hasty = make(max_wait=1.0)
        for _ in range(2):
            with pytest.raises(ThrottleTimeout) as raised:
                hasty.acquire(HOST)
        assert raised.value.retry_after == near(DELAY_S)

    def test_a_deadline_that_cannot_be_met_is_told_at_once(self, make: Made) -> None:
        make().acquire(HOST)
        with session(make(), 200) as late, pytest.raises(DeadlineExceeded):
            late.get(URL, deadline=20)

    def test_other_hosts_do_not_wait(self, make: Made) -> None:
        make().acquire(HOST)
        make(max_wait=0).acquire("other.test")

    def test_another_namespace_is_another_pace(self, make: Made, redis_space: str) -> None:
        make().acquire(HOST)
        make(namespace=f"{redis_space}:other", max_wait=0).acquire(HOST)

    def test_429_for_one_slows_the_other(self, make: Made) -> None:
        one, other = make(0), make(0, first_backoff=50.0, max_wait=1.0)
        with session(make(0, first_backoff=50.0), 429) as refused:
            refused.get(URL)
        with pytest.raises(ThrottleTimeout) as raised:
            other.acquire(HOST)
        assert raised.value.retry_after == near(50)
        assert (other.delay_for(HOST), one.delay_for(HOST)) == (50, 0)

    def test_retry_after_for_one_pauses_the_other(self, make: Made) -> None:
        with session(make(0), (503, {"Retry-After": "70"}, b"")) as refused:
            refused.get(URL)
        with pytest.raises(ThrottleTimeout) as raised:
            make(0, max_wait=1.0).acquire(HOST)
        assert raised.value.retry_after == near(70)

    def test_a_quota_that_is_granted_anew_ends_the_pause_of_all(self, make: Made) -> None:
        used_up = {"RateLimit-Remaining": "0", "RateLimit-Reset": "70"}
        granted = {"RateLimit-Remaining": "9", "RateLimit-Reset": "70"}
        one = make(0)
        with session(one, (200, used_up, b"")) as first:
            first.get(URL)
        assert one.wait_for(HOST) == near(70)
        one.turns.heed(HOST, _declared(granted))
        make(0, max_wait=1.0).acquire(HOST)

    def test_a_bucket_that_is_used_up_for_one_is_for_the_other(self, make: Made) -> None:
        fields = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "70", "X-RateLimit-Resource": "search"}
        with session(make(0, bucket=_bucket), (200, fields, b"")) as one:
            one.get(URL + "search")
        with session(make(0, bucket=_bucket, max_wait=1.0), 200) as other:
            other.get(URL + "else")  # hears of it with this one
            with pytest.raises(ThrottleTimeout):
                other.get(URL + "search")

    def test_a_crawl_delay_holds_for_all(self, make: Made) -> None:
        make(0).set_crawl_delay(HOST, 60)
        make(0).acquire(HOST)
        with pytest.raises(ThrottleTimeout) as raised:
            make(0, max_wait=1.0).acquire(HOST)
        assert raised.value.retry_after == near(60)

    def test_five_answers_end_a_backoff_for_all(self, make: Made) -> None:
        one, other = make(0, first_backoff=0.015), make(0, first_backoff=0.015)
        one.acquire(HOST)
        one.record_response(HOST, 429)
        other.acquire(HOST)
        for _ in range(5):
            other.record_response(HOST, 200)
        one.acquire(HOST)
        assert (one.delay_for(HOST), other.delay_for(HOST)) == (0, 0)

    def test_one_request_is_one_question(self, make: Made, client: Any) -> None:
        one = make(0)
        one.acquire(HOST)  # the script is known from here on
        before = _calls(client)
        with session(one, 200) as quick:
            for _ in range(10):
                quick.get(URL)
        assert _calls(client) - before == 10

    def test_threads_of_one_process_go_in_order_of_arrival(self, make: Made) -> None:
        throttle = make(0.02)
        order: list[int] = []
        throttle.acquire(HOST)

        def go(number: int) -> None:
            throttle.acquire(HOST)
            order.append(number)

        workers = []
        for number in range(5):
            workers.append(Worker(go, number))
            eventually(lambda number=number: throttle.snapshot()[HOST].waiting + len(order) > number)  # type: ignore[misc]
        for worker in workers:
            worker.outcome()
        assert order == [0, 1, 2, 3, 4]

    def test_closing_a_session_ends_its_waits(self, make: Made) -> None:
        throttle = make()
        throttle.acquire(HOST)
        waits = session(throttle, 200)
        worker = Worker(waits.get, URL)
        eventually(lambda: throttle.snapshot()[HOST].waiting)
        waits.close()
        with pytest.raises(SessionClosed):
            worker.outcome()

    def test_an_interrupt_leaves_the_slot_to_the_next(self, make: Made) -> None:
        """The slot is the process's, so nothing is lost."""
        throttle = make(0.5)
        throttle.acquire(HOST)
        rest = throttle.turns._rest
        calls: list[object] = []

        def interrupted(*given: Any) -> None:
            calls.append(given)
            if len(calls) == 2:
                raise KeyboardInterrupt
            rest(*given)

        throttle.turns._rest = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            throttle.acquire(HOST)
        throttle.turns._rest = rest  # type: ignore[method-assign]
        assert throttle.snapshot()[HOST].waiting == 0
        throttle.acquire(HOST)

    def test_a_mistake_in_the_settings_is_told(self, client: Any) -> None:
        with pytest.raises(ValueError, match="timeout"):
            RedisThrottle(client, timeout=0)
        with pytest.raises(ValueError, match="delay"):
            RedisThrottle(client, -1)
        with pytest.raises(TypeError, match="client"):
            RedisThrottle("redis://localhost")

    def test_it_is_shown_without_its_client(self, client: Any) -> None:
        assert repr(RedisThrottle(client, namespace="crawl")).startswith(
            "RedisThrottle(client=..., namespace='crawl', timeout=0.5, delay=0.2, "
        )


def _calls(client: Any) -> int:
    return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


def _bucket(request: Any) -> str | None:
    return "search" if request.url.endswith("search") else None


def _declared(fields: dict[str, str]) -> Any:
    from kreuz_sync.throttle.declared import declared

    return declared(fields, 200, now=time.time())


def client_of_closed_port() -> Any:
    """At the top level, so that it can be pickled."""
    return redis.Redis(port=closed_port())


class TestCopies:
    def test_a_copy_is_the_same(self, make: Made) -> None:
        throttle = make()
        assert copy.copy(throttle) is throttle
        assert copy.deepcopy(throttle) is throttle

    def test_it_pickles_with_a_function_that_makes_the_client(self) -> None:
        throttle = RedisThrottle(client_of_closed_port, 0.3, namespace="crawl", hosts={HOST: 1.5}, max_wait=9)
        again = pickle.loads(pickle.dumps(Session(throttle=throttle))).throttle
        assert isinstance(again, RedisThrottle)
        assert repr(again) == repr(throttle)
        assert again.delay_for(HOST) == 1.5

    def test_what_does_not_pickle_says_what_would(self, client: Any) -> None:
        throttle = RedisThrottle(lambda: client)
        with pytest.raises(TypeError, match="a function that makes the client"):
            pickle.dumps(throttle)

    def test_the_package_names_it(self) -> None:
        assert "RedisThrottle" in kreuz_sync.__all__


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "kreuz_sync.throttle")
    return lambda: [(record.levelname, getattr(record, "event", "")) for record in caplog.records]


class TestOutage:
    """A server that is gone, or silent: everybody keeps the pace alone."""

    def test_nobody_connects_before_the_first_request(self) -> None:
        RedisThrottle(client_of_closed_port)

    def test_a_server_that_is_not_there(self, messages: Any) -> None:
        """The delay holds here, nothing is raised, one warning is logged."""
        throttle = RedisThrottle(redis.Redis(port=closed_port()), 0.05, timeout=0.5)
        began = time.monotonic()
        for _ in range(4):
            throttle.acquire(HOST)
        assert time.monotonic() - began >= 0.05 * 3 * 0.9
        assert messages() == [("WARNING", "pace_store_trouble")]

    def test_a_server_that_is_silent(self, messages: Any) -> None:
        """It is waited for once, and then left alone for as long."""
        with silent_port() as port:
            throttle = RedisThrottle(redis.Redis(port=port), 0, timeout=0.2)
            for _ in range(50):
                throttle.acquire(HOST)
            throttle.close()
        assert messages() == [("WARNING", "pace_store_trouble")]

    def test_answers_are_learnt_from_alone(self) -> None:
        throttle = RedisThrottle(redis.Redis(port=closed_port()), 10.0)
        throttle.acquire(HOST)
        throttle.record_response(HOST, 429)
        throttle.set_crawl_delay("slow.test", 60)
        report = throttle.snapshot()[HOST]
        assert (report.delay, report.limited, report.backoffs) == (20, 1, 1)
        assert throttle.delay_for("slow.test") == 60

    def test_what_was_learnt_alone_is_known_to_all_when_it_is_back(self, messages: Any, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisThrottle(client, 0, first_backoff=0.2)) as throttle:
            throttle.acquire(HOST)
            own_redis.stop()
            throttle.record_response(HOST, 429)
            own_redis.start()
            throttle.acquire(HOST)
            with closing(RedisThrottle(client, 0, max_wait=0)) as other, pytest.raises(ThrottleTimeout):
                other.acquire(HOST)
        assert messages() == [("WARNING", "pace_store_trouble"), ("INFO", "pace_store_recovery")]

    def test_a_restart_loses_no_backoff(self, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisThrottle(client, 0, first_backoff=0.2)) as throttle:
            throttle.acquire(HOST)
            throttle.record_response(HOST, 429)
            own_redis.restart()
            throttle.acquire(HOST)
            with closing(RedisThrottle(client, 0)) as other:
                other.acquire(HOST)
                assert other.delay_for(HOST) == 0.2

    def test_a_frozen_server_is_used_again_when_it_is_thawed(self, messages: Any, own_redis: RedisServer) -> None:
        with own_redis.client() as client, closing(RedisThrottle(client, 0, timeout=0.2)) as throttle:
            throttle.acquire(HOST)
            own_redis.freeze()
            throttle.acquire(HOST)
            own_redis.thaw()
            eventually(lambda: throttle.acquire(HOST) or len(messages()) == 2)
        assert messages() == [("WARNING", "pace_store_trouble"), ("INFO", "pace_store_recovery")]

    def test_a_key_of_somebody_else_is_trouble_too(self, messages: Any, client: Any, redis_space: str) -> None:
        client.set(f"{redis_space}:pace:{HOST}", "something")
        with closing(RedisThrottle(client, 0, namespace=redis_space)) as throttle:
            throttle.acquire(HOST)
        assert messages() == [("WARNING", "pace_store_trouble")]

    def test_an_address_is_not_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        port = closed_port()
        RedisThrottle(redis.Redis(port=port, password="secret")).acquire(HOST)
        assert str(port) not in caplog.text
        assert "secret" not in caplog.text


def test_it_paces_a_real_session(server: WebServer, make: Made) -> None:
    with Session(throttle=make(0.05)) as one, Session(throttle=make(0.05)) as other:
        for _ in range(3):
            assert one.get(server.url("/")).status_code == other.get(server.url("/")).status_code == 200
    assert server.requests[-1].at - server.requests[0].at >= 5 * 0.05 - 0.04


def test_in_a_cluster_each_host_is_on_its_node(redis_cluster: RedisCluster) -> None:
    with closing(redis_cluster.client()) as client:
        throttle = RedisThrottle(client, DELAY_S, max_wait=1.0, timeout=GUARD_S)
        for number in range(8):
            throttle.acquire(f"host{number}.test")
        with closing(RedisThrottle(client, DELAY_S, max_wait=1.0, timeout=GUARD_S)) as other:
            for number in range(8):
                with pytest.raises(ThrottleTimeout):
                    other.acquire(f"host{number}.test")
        throttle.close()
