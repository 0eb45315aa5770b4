"""The settings of a rate limit: what they are by default, and what is no setting."""

from __future__ import annotations

import copy
import logging
import pickle

import pytest

import kreuz_sync
from kreuz_sync import RateLimit
from kreuz_sync.ratelimit import MemoryStore, by_credential, by_host, by_path
from tests.fakes import FakeClock

from .counting import NotingStore


def a_limit(request):
    return 3


class TestDefaults:
    """What holds where nothing is said."""

    def test_they_are_these(self):
        limit = RateLimit()
        assert (limit.name, limit.limit, limit.window) == ("default-policy", 1, 60.0)
        assert (limit.on_store_failure, limit.fields, limit.log_level) == ("reject", "draft-11", logging.WARNING)
        assert (limit.key, limit.skip, limit.key_encoder, limit.response) == (None, None, None, None)
        assert (limit.on_limit, limit.max_wait) == ("answer", None)

    def test_each_has_a_memory_store_of_its_own(self):
        one, other = RateLimit(), RateLimit()
        assert isinstance(one.store, MemoryStore)
        assert one.store is not other.store

    def test_its_own_store_has_its_clock(self):
        clock = FakeClock()
        limit = RateLimit(limit=5, clock=clock)
        limit.store.increment("k", 60.0)
        clock.advance(10.0)
        assert limit.store.increment("k", 60.0).reset_after == 50.0


class TestChecks:
    """What cannot work is said at construction, with the argument's name."""

    @pytest.mark.parametrize("limit", [0, 1, 10**15, 2**64 - 1, a_limit])
    def test_a_limit_is_a_number_or_a_function(self, limit):
        """0 is one: it lets nothing through."""
        assert RateLimit(limit=limit).limit == limit

    @pytest.mark.parametrize("window", [0.001, 1, 60, 86_400.0])
    def test_a_window_is_a_millisecond_or_more(self, window):
        assert RateLimit(window=window).window == window

    @pytest.mark.parametrize("name", ["search", "per minute", 'say "hi"', "a\\b", "a:b", "~"])
    def test_a_name_may_have_any_printable_ascii(self, name):
        assert RateLimit(name).name == name

    def test_without_fields_a_name_may_be_any_text(self):
        assert RateLimit("für alle", fields="none").name == "für alle"

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            *(("name", value) for value in ("", "für alle", "a\nb", "\x7f", b"search", None, 5)),
            *(("limit", value) for value in (-1, True, 1.5, "10", None, 2**64, float("inf"))),
            *(("window", value) for value in (0, 0.0009, -1.0, float("nan"), float("inf"), True, "60", None, 1e300)),
            *(("key", value) for value in ("host", 5)),
            *(("store", value) for value in ("memory", {}, MemoryStore)),
            *(("response", value) for value in (429, "no")),
            *(("skip", value) for value in (True, ["/health"])),
            *(("key_encoder", value) for value in ("sha256",)),
            *(("on_store_failure", value) for value in ("deny", None, True)),
            *(("fields", value) for value in ("draft-10", None, True, 11)),
            *(("log_level", value) for value in ("WARNING", -1, True, None)),
            *(("on_limit", value) for value in ("block", None)),
            *((name, value) for name in ("max_wait", "margin") for value in (-1.0, float("nan"), "5")),
            ("clock", 5),
        ],
    )
    def test_anything_else_is_refused(self, argument, value):
        with pytest.raises((TypeError, ValueError), match=rf"^{argument}="):
            RateLimit(**{"on_limit": "wait", argument: value})

    def test_a_cache_store_is_no_counter_store(self):
        """Both kinds have a MemoryStore: the text says which one is wanted."""
        with pytest.raises(TypeError, match=r"kreuz_sync\.ratelimit\.CounterStore"):
            RateLimit(store=kreuz_sync.MemoryStore())

    @pytest.mark.parametrize("on_limit", ["answer", "raise"])
    def test_a_longest_wait_is_for_those_that_wait(self, on_limit):
        with pytest.raises(ValueError, match="max_wait=5.0: only on_limit='wait' waits"):
            RateLimit(on_limit=on_limit, max_wait=5.0)

    def test_an_unknown_keyword_is_an_error(self):
        with pytest.raises(TypeError, match="windows"):
            RateLimit(windows=60)

    def test_a_shared_store_wants_fingerprints_that_are_the_same_everywhere(self):
        """Other processes would count the same credential apart, and nobody would notice."""
        store = NotingStore()
        store.is_shared = True
        with pytest.raises(ValueError, match="give it a secret="):
            RateLimit(key=by_credential(), store=store)
        RateLimit(key=by_credential(secret="s" * 16), store=store)


class TestFixed:
    """It never changes; a copy is the same limit."""

    def test_nothing_can_be_set(self):
        with pytest.raises(AttributeError, match="RateLimit.limit is fixed"):
            RateLimit().limit = 5

    def test_a_copy_counts_with_the_original(self):
        limit = RateLimit()
        assert copy.copy(limit) is limit
        assert copy.deepcopy([limit])[0] is limit

    def test_two_of_equal_settings_are_two(self):
        assert RateLimit("a") != RateLimit("a")
        assert len({RateLimit("a"), RateLimit("a")}) == 2

    def test_a_pickle_carries_the_settings(self):
        limit = RateLimit(
            "search",
            limit=a_limit,
            window=5,
            key=by_host,
            fields="none",
            on_limit="wait",
            max_wait=2,
            log_level=10,
            margin=1,
        )
        other = pickle.loads(pickle.dumps(limit))
        assert repr(other) == repr(limit)
        assert (other.name, other.limit, other.window, other.key) == ("search", a_limit, 5.0, by_host)
        assert (other.fields, other.on_limit, other.max_wait, other.log_level) == ("none", "wait", 2.0, 10)
        assert (other.margin, other.length) == (1.0, 6.0)

    def test_two_that_share_a_store_share_it_after_a_pickle_too(self):
        store = MemoryStore(max_keys=5)
        one, other = pickle.loads(pickle.dumps([RateLimit("a", store=store), RateLimit("b", store=store)]))
        assert one.store is other.store
        assert one.store.max_keys == 5

    def test_it_shows_everything_but_secrets(self):
        shown = repr(RateLimit("search", limit=30, key=by_credential(secret="open sesame 1234")))
        assert "name='search', limit=30, window=60.0, key=by_credential(secret=...)" in shown
        assert "sesame" not in shown


class TestSession:
    """`Session(rate_limits=...)`."""

    def test_it_takes_a_list_or_one_alone(self):
        outer, inner = RateLimit("outer"), RateLimit("inner")
        with kreuz_sync.Session(rate_limits=[outer, inner]) as session:
            assert session.rate_limits == (outer, inner)
        with kreuz_sync.Session(rate_limits=outer) as session:
            assert session.rate_limits == (outer,)

    @pytest.mark.parametrize("nothing", [None, [], ()])
    def test_there_need_be_none(self, nothing):
        with kreuz_sync.Session(rate_limits=nothing) as session:
            assert session.rate_limits == ()

    @pytest.mark.parametrize("value", [5, "30/minute", [30], [RateLimit], {"search": 30}, iter([])])
    def test_anything_else_is_refused(self, value):
        with pytest.raises(TypeError, match=r"^rate_limits="):
            kreuz_sync.Session(rate_limits=value)

    def test_one_counter_for_two_limits_is_a_mistake(self):
        """Each request would count twice."""
        store = MemoryStore()
        limits = [RateLimit(limit=10, window=1, store=store), RateLimit(limit=100, window=60, store=store)]
        with pytest.raises(ValueError, match="two are called 'default-policy'"):
            kreuz_sync.Session(rate_limits=limits)
        with pytest.raises(ValueError, match="rate_limits: two"):
            kreuz_sync.Session(rate_limits=[limits[0], limits[0]])
        kreuz_sync.Session(rate_limits=[RateLimit(), RateLimit()]).close()  # each has its own store

    def test_two_that_count_other_things_there_are_none(self):
        """Their keys are told apart, or what the store is given for them."""
        store = MemoryStore()
        paths, users = by_path("/search"), by_path("/users/{id}")
        for keys in ((None, paths), (paths, users), (str, repr)):
            limits = [RateLimit(key=key, store=store) for key in keys]
            kreuz_sync.Session(rate_limits=limits).close()
        kreuz_sync.Session(rate_limits=[RateLimit(store=store), RateLimit(store=store, key_encoder=str.upper)]).close()

    @pytest.mark.parametrize("keys", [(None, by_host), (by_path("/a"), by_path("/a")), (str, str)])
    def test_but_equal_keys_are(self, keys):
        store = MemoryStore()
        with pytest.raises(ValueError, match="one store and one key"):
            kreuz_sync.Session(rate_limits=[RateLimit(key=key, store=store) for key in keys])

    def test_it_belongs_into_a_whole_stack_that_is_given(self):
        with pytest.raises(ValueError, match="put rate_limits into it"):
            kreuz_sync.Session(layers=[], rate_limits=RateLimit())
        limit = RateLimit()
        with kreuz_sync.Session(layers=[limit]) as session:
            assert session.rate_limits == (limit,)

    def test_a_session_pickles_and_copies_with_it(self):
        with kreuz_sync.Session(rate_limits=RateLimit("search", limit=30)) as session:
            (limit,) = pickle.loads(pickle.dumps(session)).rate_limits
            assert (limit.name, limit.limit) == ("search", 30)
            assert copy.deepcopy(session).rate_limits == session.rate_limits
