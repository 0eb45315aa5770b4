"""One request and one rate limit, step by step, whatever kind of request it is."""

from __future__ import annotations

import logging
import threading

import pytest

from kreuz_sync import RateLimit
from kreuz_sync.ratelimit import (
    KeyUnavailable,
    LimitUnavailable,
    MemoryStore,
    PolicyUsage,
    RateLimitFailure,
    StoreUnavailable,
    Usage,
)
from kreuz_sync.ratelimit.flow import Outcome, decide
from tests.fakes import FakeClock

from .counting import NotingStore, SayingStore

LOG = "kreuz_sync.ratelimit"


def of_all(request):
    return "all"


def failing(error):
    def function(*_):
        raise error

    return function


class TestOrder:
    """skip, key, limit, store, comparison: each step is the last where it fails."""

    class Noted:
        """A limit that notes which of its functions is asked what."""

        def __init__(self, **settings):
            self.steps = []
            self.store = NotingStore()
            functions = {name: self._noting(name, answer) for name, answer in self.ANSWERS.items()}
            self.limit = RateLimit("p", store=self.store, **{**functions, **settings})

        ANSWERS = {"skip": False, "key": "a:b", "limit": 2, "key_encoder": "encoded"}

        def _noting(self, name, answer):
            def function(request):
                self.steps.append((name, request))
                return answer

            return function

        def decide(self):
            return decide(self.limit, "the request", of_all)

    def test_every_function_is_asked_once_in_order(self):
        noted = self.Noted()
        assert noted.decide().outcome is Outcome.ALLOWED
        assert noted.steps == [
            ("skip", "the request"),
            ("key", "the request"),
            ("key_encoder", "p:a%3Ab"),
            ("limit", "the request"),
        ]
        assert noted.store.asked == [("encoded", 60.0)]

    def test_what_is_skipped_meets_no_further_step(self):
        noted = self.Noted(skip=lambda request: True)
        decision = noted.decide()
        assert decision == (Outcome.SKIPPED, None, None)
        assert decision.passes
        assert (noted.steps, noted.store.asked) == ([], [])

    def test_without_a_key_nobody_asks_for_the_limit(self):
        noted = self.Noted(key=failing(KeyUnavailable("no_key")))
        assert noted.decide().outcome is Outcome.FAILED
        assert [name for name, _ in noted.steps] == ["skip"]
        assert noted.store.asked == []

    def test_without_a_limit_nothing_is_counted(self):
        noted = self.Noted(limit=failing(LimitUnavailable("no_limit")))
        assert noted.decide().outcome is Outcome.FAILED
        assert [name for name, _ in noted.steps] == ["skip", "key", "key_encoder"]
        assert noted.store.asked == []

    @pytest.mark.parametrize("skip", [failing(ZeroDivisionError()), lambda request: "yes"])
    def test_what_skip_cannot_tell_is_refused_uncounted(self, skip):
        noted = self.Noted(skip=skip)
        assert noted.decide().outcome is Outcome.FAILED
        assert (noted.steps, noted.store.asked) == ([], [])

    @pytest.mark.parametrize("step", ["skip", "key", "limit"])
    def test_an_interrupt_passes_through_every_step(self, step):
        with pytest.raises(KeyboardInterrupt):
            decide(RateLimit(**{step: failing(KeyboardInterrupt())}), "request", of_all)


class TestComparison:
    """The first `limit` requests of a window pass, and the others do not."""

    def test_the_limit_is_the_last_that_passes(self):
        limit = RateLimit(limit=2, clock=FakeClock())
        outcomes = [decide(limit, "request", of_all).outcome for _ in range(4)]
        assert outcomes == [Outcome.ALLOWED, Outcome.ALLOWED, Outcome.LIMITED, Outcome.LIMITED]

    def test_what_is_refused_counts_and_moves_no_end(self):
        clock = FakeClock()
        limit = RateLimit(limit=1, clock=clock)
        for _ in range(3):
            decide(limit, "request", of_all)
            clock.advance(10.0)
        decision = decide(limit, "request", of_all)
        assert decision.policy == PolicyUsage("default-policy", limit=1, window=60.0, used=4, reset_after=30.0)
        assert not decision.passes

    def test_a_limit_of_0_refuses_all_and_counts_them(self):
        limit = RateLimit(limit=0, clock=FakeClock())
        decisions = [decide(limit, "request", of_all) for _ in range(2)]
        assert [decision.outcome for decision in decisions] == [Outcome.LIMITED] * 2
        assert [decision.policy.used for decision in decisions] == [1, 2]

    def test_the_next_window_has_room_again(self):
        clock = FakeClock()
        limit = RateLimit(clock=clock)
        assert decide(limit, "request", of_all).passes
        assert not decide(limit, "request", of_all).passes
        clock.advance(60.0)
        assert decide(limit, "request", of_all).passes

    def test_twice_the_limit_passes_around_a_border(self):
        """The known nature of a fixed window; a second limit with a shorter one bounds it."""
        clock = FakeClock()
        limit = RateLimit(limit=10, window=60, clock=clock)
        decide(limit, "request", of_all)
        clock.advance(59.0)
        passed = sum(decide(limit, "request", of_all).passes for _ in range(20))
        clock.advance(1.0)
        passed += sum(decide(limit, "request", of_all).passes for _ in range(20))
        assert passed == 19

    def test_a_function_may_give_another_limit_for_every_request(self):
        limit = RateLimit(limit=lambda request: 3 if request == "gold" else 1)
        assert [decide(limit, who, of_all).passes for who in ("free", "gold", "free", "gold")] == [1, 1, 0, 0]

    def test_two_limits_with_one_name_and_store_share_the_count(self):
        """Whatever their windows are; each compares with its own limit."""
        store = MemoryStore(clock=FakeClock())
        short = RateLimit("p", limit=1, window=10, store=store)
        long = RateLimit("p", limit=2, window=60, store=store)
        assert decide(short, "request", of_all).policy.reset_after == 10.0
        assert decide(long, "request", of_all).policy == PolicyUsage("p", 2, 60.0, 2, 10.0)
        assert decide(short, "request", of_all).outcome is Outcome.LIMITED

    def test_two_limits_with_two_names_do_not(self):
        store = MemoryStore()
        assert decide(RateLimit("a", store=store), "request", of_all).passes
        assert decide(RateLimit("b", store=store), "request", of_all).passes

    def test_keys_that_look_alike_when_joined_count_apart(self):
        store = MemoryStore()
        for name, key in (("a:b", "c"), ("a", "b:c")):
            limit = RateLimit(name, store=store, key=lambda request, key=key: key)
            assert decide(limit, "request", of_all).policy.used == 1

    @pytest.mark.parametrize("key", ["k" * 10_240, "schlüssel", b"\x00\xff"])
    def test_any_text_and_any_bytes_are_a_key(self, key):
        limit = RateLimit(key=lambda request: key, limit=1)
        assert [decide(limit, "request", of_all).passes for _ in range(2)] == [True, False]

    def test_an_encoder_decides_what_the_store_is_given(self):
        store = NotingStore()
        limit = RateLimit("p", store=store, key_encoder=str.upper)
        decide(limit, "request", of_all)
        assert store.asked == [("P:ALL", 60.0)]

    def test_exactly_the_limit_passes_with_many_threads(self):
        limit, start, passed = RateLimit(limit=100), threading.Barrier(8), []

        def run():
            start.wait(10)
            for _ in range(50):
                passed.append(decide(limit, "request", of_all).passes)

        workers = [threading.Thread(target=run) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
        assert (len(passed), sum(passed)) == (400, 100)


class TestFailures:
    """One closed family; key and limit never fail open."""

    @pytest.mark.parametrize("mode", ["reject", "allow", "local"])
    @pytest.mark.parametrize("step", ["skip", "key", "limit", "key_encoder"])
    @pytest.mark.parametrize(
        "error", [StoreUnavailable("other_kind"), RuntimeError("boom"), LookupError(), RateLimitFailure("base")]
    )
    def test_whatever_a_function_raises_is_a_failure_of_its_kind(self, mode, step, error):
        limit = RateLimit(**{step: failing(error)}, on_store_failure=mode)
        decision = decide(limit, "request", of_all)
        assert decision.outcome is Outcome.FAILED
        assert not decision.passes
        assert type(decision.failure) is (LimitUnavailable if step == "limit" else KeyUnavailable)
        assert decision.failure.code == f"{step}_function_failed".replace("encoder_function", "encoder")
        assert decision.failure.__cause__ is error
        assert decision.reason is decision.failure

    @pytest.mark.parametrize("answer", [None, 1, 0, "", "yes", [], object()])
    def test_a_skip_that_is_not_true_or_false_is_a_failure(self, answer):
        decision = decide(RateLimit(limit=5, skip=lambda request: answer), "request", of_all)
        assert (type(decision.failure), decision.failure.code) == (KeyUnavailable, "invalid_skip")
        assert not decision.passes

    @pytest.mark.parametrize(
        ("step", "code"), [("skip", "invalid_skip"), ("key", "invalid_key"), ("limit", "invalid_limit")]
    )
    def test_an_answer_that_is_to_be_awaited_is_a_failure(self, step, code):
        """Such an object counts as true, so that a `skip` of that kind would let everything through."""

        class Later:
            def __await__(self):
                yield

        decision = decide(RateLimit(**{step: lambda request: Later()}), "request", of_all)
        assert (decision.outcome, decision.failure.code) == (Outcome.FAILED, code)

    @pytest.mark.parametrize(
        ("step", "kind"), [("skip", KeyUnavailable), ("key", KeyUnavailable), ("limit", LimitUnavailable)]
    )
    def test_a_failure_of_its_own_kind_stays_what_it_is(self, step, kind):
        failure = kind("mine", "look here", "closely")
        assert decide(RateLimit(**{step: failing(failure)}), "request", of_all).failure is failure

    @pytest.mark.parametrize("key", [None, 5, ["a"], object()])
    def test_a_key_that_is_no_text_is_a_failure(self, key):
        decision = decide(RateLimit(key=lambda request: key), "request", of_all)
        assert decision.failure.code == "invalid_key"

    def test_an_encoded_key_that_is_no_text_is_a_failure(self):
        decision = decide(RateLimit(key_encoder=lambda key: None), "request", of_all)
        assert decision.failure.code == "invalid_key"

    @pytest.mark.parametrize("quota", [None, -1, True, 1.0, "5", float("inf")])
    def test_a_limit_that_is_no_whole_number_is_a_failure(self, quota):
        store = NotingStore()
        decision = decide(RateLimit(limit=lambda request: quota, store=store), "request", of_all)
        assert (type(decision.failure), decision.failure.code) == (LimitUnavailable, "invalid_limit")
        assert store.asked == []

    def test_the_end_may_find_no_key_either(self):
        decision = decide(RateLimit(), "request", failing(KeyUnavailable("socket_ip_unavailable")))
        assert decision.failure.code == "socket_ip_unavailable"

    @pytest.mark.parametrize(
        "said",
        [
            *(Usage(used, 1.0) for used in (0, -1, True, 1.0, "1", None)),
            *(Usage(1, reset) for reset in (-1.0, float("nan"), float("inf"), "1", None)),
            *(None, 5, (1,), (1, 2.0, 3), [1, 2.0]),
        ],
    )
    def test_a_store_that_says_nonsense_has_failed(self, said):
        for mode, passes in (("reject", False), ("allow", True)):
            decision = decide(RateLimit(store=SayingStore(said), on_store_failure=mode), "request", of_all)
            assert (type(decision.failure), decision.failure.code) == (StoreUnavailable, "invalid_usage")
            assert decision.passes is passes

    def test_a_plain_pair_is_as_good_as_a_usage(self):
        assert decide(RateLimit(store=SayingStore((1, 2))), "request", of_all).policy.reset_after == 2

    @pytest.mark.parametrize("error", [ConnectionError("10.0.0.9"), KeyError("tok9"), KeyUnavailable("odd")])
    def test_whatever_a_store_raises_is_a_failure_of_the_store(self, error):
        decision = decide(RateLimit(store=SayingStore(error)), "request", of_all)
        assert (type(decision.failure), decision.failure.code) == (StoreUnavailable, "store_error")
        assert decision.failure.__cause__ is error
        assert "tok9" not in str(decision.failure)
        assert "10.0.0.9" not in str(decision.failure)


class TestStoreFailure:
    """What becomes of requests while the store is out."""

    def outage(self, mode, **settings):
        self.clock = FakeClock()
        self.store = NotingStore(self.clock)
        self.limit = RateLimit("p", store=self.store, on_store_failure=mode, clock=self.clock, **settings)
        self.store.out = True

    def decide(self):
        return decide(self.limit, "request", of_all)

    def test_reject_refuses(self):
        self.outage("reject")
        decision = self.decide()
        assert (decision.outcome, decision.passes) == (Outcome.FAILED, False)
        assert decision.failure.code == "test_store_error"

    def test_allow_lets_through_and_says_nothing_of_a_quota(self):
        self.outage("allow")
        decision = self.decide()
        assert (decision.outcome, decision.passes, decision.policy) == (Outcome.UNCOUNTED, True, None)

    def test_local_counts_in_this_process(self):
        self.outage("local", limit=2)
        assert [self.decide().outcome for _ in range(3)] == [Outcome.ALLOWED, Outcome.ALLOWED, Outcome.LIMITED]
        self.clock.advance(60.0)
        assert self.decide().passes

    def test_local_begins_to_count_when_the_store_fails(self):
        self.outage("local", limit=2)
        self.store.out = False
        assert [self.decide().passes for _ in range(3)] == [True, True, False]
        self.store.out = True
        assert [self.decide().passes for _ in range(3)] == [True, True, False]

    @pytest.mark.parametrize("mode", ["reject", "allow", "local"])
    def test_limits_act_again_as_soon_as_the_store_is_back(self, mode):
        self.outage(mode)
        self.decide()
        self.store.out = False
        assert [self.decide().passes for _ in range(2)] == [True, False]

    def test_where_local_fails_too_the_request_is_refused(self):
        self.outage("local", key=lambda request: request)
        object.__setattr__(self.limit, "local", MemoryStore(max_keys=1, clock=self.clock))
        assert decide(self.limit, "a", of_all).passes
        decision = decide(self.limit, "b", of_all)
        assert (decision.outcome, decision.failure.detail) == (Outcome.FAILED, "full")


class TestLog:
    """An outage is told once, its end once, and no key is in any record."""

    @pytest.fixture(autouse=True)
    def everything(self, caplog):
        caplog.set_level(logging.DEBUG, LOG)

    def records(self, caplog):
        return [(record.levelname, record.event, record.error_code) for record in caplog.records]

    def test_the_first_failure_is_told_at_the_level_and_the_next_at_debug(self, caplog):
        store = NotingStore()
        limit = RateLimit(store=store, log_level=logging.ERROR)
        store.out = True
        for _ in range(3):
            decide(limit, "request", of_all)
        store.out = False
        for _ in range(3):
            decide(limit, "request", of_all)
        store.out = True
        decide(limit, "request", of_all)
        assert self.records(caplog) == [
            ("ERROR", "store_failure", "test_store_error"),
            ("DEBUG", "store_failure", "test_store_error"),
            ("DEBUG", "store_failure", "test_store_error"),
            ("INFO", "store_recovery", ""),
            ("ERROR", "store_failure", "test_store_error"),
        ]

    @pytest.mark.parametrize("mode", ["reject", "allow", "local"])
    def test_a_record_says_which_policy_and_what_follows(self, caplog, mode):
        store = NotingStore()
        store.out = True
        decide(RateLimit("search", store=store, on_store_failure=mode), "request", of_all)
        (record,) = caplog.records
        assert (record.levelno, record.policy_name, record.failure_mode) == (logging.WARNING, "search", mode)

    def test_a_record_says_what_happened_to_the_store(self, caplog):
        """By the class of what its library raised, and by the store's own word."""
        failure = StoreUnavailable("redis_store_error", "secret words", "timeout")
        failure.__cause__ = TimeoutError("secret words")
        decide(RateLimit(store=SayingStore(failure)), "request", of_all)
        (record,) = caplog.records
        assert (record.error_code, record.error_detail, record.error_type) == (
            *("redis_store_error", "timeout"),
            "TimeoutError",
        )
        assert "(redis_store_error, timeout, TimeoutError)" in record.getMessage()
        assert "secret" not in str(vars(record))

    def test_no_record_has_a_key_or_the_text_of_an_error(self, caplog):
        store = NotingStore()
        store.out = True
        decide(RateLimit(store=store, key=lambda request: "tok9"), "request", of_all)
        store.out = False
        decide(RateLimit(store=SayingStore(OSError("tok9"))), "request", of_all)
        decide(RateLimit(key=failing(ValueError("tok9"))), "request", of_all)
        assert len(caplog.records) == 3
        for record in caplog.records:
            assert "tok9" not in str(vars(record))
            assert "10.0.0.9" not in str(vars(record))

    @pytest.mark.parametrize(
        ("step", "kind"), [("skip", KeyUnavailable), ("key", KeyUnavailable), ("limit", LimitUnavailable)]
    )
    def test_failures_that_a_function_tells_itself_are_not_told(self, caplog, step, kind):
        """Whoever sends a strange address would fill the log."""

        def function(request):
            try:
                return {}["tok9"]
            except KeyError as error:
                raise kind("no") from error

        decide(RateLimit(**{step: function}), "request", of_all)
        decide(RateLimit(**{step: failing(kind("no"))}), "request", of_all)
        assert caplog.records == []

    @pytest.mark.parametrize("step", ["skip", "key", "limit", "key_encoder"])
    def test_a_function_that_breaks_is_told_with_its_place(self, caplog, step):
        """The request is refused by a mistake of the program's own, which nobody would find otherwise."""
        decide(RateLimit("search", **{step: failing(ZeroDivisionError())}), "request", of_all)
        (record,) = caplog.records
        code = "key_encoder_failed" if step == "key_encoder" else f"{step}_function_failed"
        assert record.getMessage().startswith(f"rate limit 'search': {code}: ZeroDivisionError in ")
        assert "test_flow.py, line " in record.getMessage()
        assert (record.levelname, record.event, record.error_code) == ("ERROR", "function_failure", code)

    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"skip": lambda request: "tok9"}, "invalid_skip: the skip function gave str, and not True or False"),
            ({"key": lambda request: ["tok9"]}, "invalid_key: the key function gave list, and not a string"),
            ({"limit": lambda request: "tok9"}, "invalid_limit: the limit function gave str, and not a whole number"),
        ],
    )
    def test_so_is_one_that_gives_what_it_may_not(self, caplog, settings, told):
        decide(RateLimit("search", **settings), "request", of_all)
        (record,) = caplog.records
        assert record.getMessage().startswith(f"rate limit 'search': {told}")
        assert (record.levelname, record.event) == ("ERROR", "function_failure")
        assert "tok9" not in str(vars(record))

    def test_a_mistake_is_told_once_for_each_limit_and_place(self, caplog):
        """What a stranger sends may bring it about a thousand times."""

        def key(request):
            return {}[request] if request == "a" else int(request)

        limits = [RateLimit("one", key=key), RateLimit("two", key=key)]
        for _ in range(50):
            for limit in limits:
                decide(limit, "a", of_all)
                decide(limit, "b", of_all)
        errors = [record.policy_name for record in caplog.records if record.levelname == "ERROR"]
        assert sorted(errors) == ["one", "one", "two", "two"]
        assert {record.levelname for record in caplog.records} == {"ERROR", "DEBUG"}

    def test_one_outage_that_many_threads_meet_is_told_once(self, caplog):
        store, start = NotingStore(), threading.Barrier(8)
        store.out = True
        limit = RateLimit(store=store)

        def run():
            start.wait(10)
            decide(limit, "request", of_all)

        workers = [threading.Thread(target=run) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
        assert sorted(record.levelname for record in caplog.records) == ["DEBUG"] * 7 + ["WARNING"]


class TestFamily:
    """Key, limit, store: each failure has a code, and a message and a detail where there is more to say."""

    @pytest.mark.parametrize("kind", [KeyUnavailable, LimitUnavailable, StoreUnavailable])
    def test_each_is_one_of_three(self, kind):
        assert RateLimitFailure.__subclasses__() == [KeyUnavailable, LimitUnavailable, StoreUnavailable]
        assert issubclass(kind, RateLimitFailure)

    @pytest.mark.parametrize(
        ("failure", "text"),
        [
            (KeyUnavailable("code"), "code"),
            (KeyUnavailable("code", "message"), "code: message"),
            (StoreUnavailable("code", "message", "finer"), "code (finer): message"),
            (StoreUnavailable("code", detail="finer"), "code (finer)"),
        ],
    )
    def test_its_text_is_what_it_says(self, failure, text):
        assert str(failure) == text

    def test_it_pickles(self):
        import pickle

        failure = pickle.loads(pickle.dumps(StoreUnavailable("code", "message", "finer")))
        assert (failure.code, failure.message, failure.detail) == ("code", "message", "finer")
