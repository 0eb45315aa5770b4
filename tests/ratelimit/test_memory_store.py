"""Counters in memory: exact under threads, gone when their time is over, bounded. What every store promises
is tested with the other stores."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import random
import sys
import threading
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreuz_sync.ratelimit import MemoryStore, StoreUnavailable, Usage
from kreuz_sync.ratelimit import memory as rooms
from kreuz_sync.ratelimit.usage import whole_seconds
from tests.fakes import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock=clock)


class TestWindow:
    """A window begins with the first hit, and is over at its very end."""

    def test_the_first_hit_has_the_whole_window_before_it(self, store):
        assert store.increment("k", 60.0) == Usage(used=1, reset_after=60.0)

    def test_no_hit_moves_its_end(self, store, clock):
        store.increment("k", 60.0)
        clock.advance(50.0)
        assert store.increment("k", 60.0) == Usage(2, 10.0)

    def test_a_moment_before_its_end_it_counts_on(self, store, clock):
        store.increment("k", 60.0)
        clock.advance(59.75)
        assert store.increment("k", 60.0) == Usage(2, 0.25)

    def test_at_its_end_another_begins(self, store, clock):
        store.increment("k", 60.0)
        clock.advance(60.0)
        assert store.increment("k", 60.0) == Usage(1, 60.0)

    def test_it_begins_with_the_first_hit_and_not_with_the_minute(self, store, clock):
        """12:00:50 and a window of 60 s: it ends at 12:01:50."""
        clock.advance(50.0)
        assert store.increment("k", 60.0).reset_after == 60.0
        clock.advance(59.0)
        assert store.increment("k", 60.0) == Usage(2, 1.0)
        clock.advance(1.0)
        assert store.increment("k", 60.0).used == 1

    def test_another_length_waits_for_the_next_window(self, store, clock):
        """The length is no part of the key: the window under way keeps its end."""
        store.increment("k", 60.0)
        clock.advance(10.0)
        assert store.increment("k", 1.0) == Usage(2, 50.0)
        clock.advance(50.0)
        assert store.increment("k", 1.0) == Usage(1, 1.0)

    def test_a_clock_that_is_set_back_makes_no_window_longer(self, store, clock):
        """Time goes on from where it was, for windows under way and for those that begin."""
        store.increment("k", 60.0)
        clock.advance(10.0)
        clock.advance(-500.0)
        assert store.increment("k", 60.0) == Usage(2, 60.0)  # nobody has looked at the clock in between
        clock.advance(20.0)
        assert store.increment("k", 60.0) == Usage(3, 40.0)
        clock.advance(-7.0)
        assert store.increment("k", 60.0) == Usage(4, 40.0)
        assert store.increment("other", 5.0) == Usage(1, 5.0)
        clock.advance(40.0)
        assert store.increment("k", 60.0) == Usage(1, 60.0)

    def test_keys_count_apart(self, store):
        assert [store.increment(key, 60.0).used for key in "aabab"] == [1, 2, 1, 3, 2]

    @given(st.floats(min_value=0, max_value=1e7), st.floats(min_value=0.001, max_value=1e6))
    def test_the_time_left_is_never_more_than_the_window(self, start, window):
        """Rounding would otherwise make 61 of a window of 60 s in a header field."""
        store = MemoryStore(clock=FakeClock(monotonic=start))
        for _ in range(2):
            assert 0 < store.increment("k", window).reset_after <= window

    @given(
        st.floats(min_value=0, max_value=1e7),
        st.floats(min_value=0.001, max_value=1e5),
        st.floats(min_value=0, max_value=1, exclude_max=True),
    )
    def test_who_waits_the_whole_seconds_that_are_left_finds_a_new_window(self, start, window, share):
        clock = FakeClock(monotonic=start)
        store = MemoryStore(clock=clock)
        store.increment("k", window)
        clock.advance(window * share)
        usage = store.increment("k", window)
        clock.advance(whole_seconds(usage.reset_after))
        assert store.increment("k", window).used == 1

    def test_so_it_is_at_ten_thousand_random_times(self):
        """At every time within a window, and with windows of every length."""
        chance = random.Random(61)
        for _ in range(10_000):
            clock = FakeClock(monotonic=chance.uniform(0, 1e6))
            store, window = MemoryStore(clock=clock), chance.uniform(0.001, 4000.0)
            store.increment("k", window)
            clock.advance(chance.uniform(0.0, window))
            usage = store.increment("k", window)
            seconds = whole_seconds(usage.reset_after)
            assert 1 <= seconds < usage.reset_after + 1
            clock.advance(seconds)
            assert store.increment("k", window).used == 1


class TestRange:
    """What a clock cannot count is a failure of the store, and no crash."""

    @pytest.mark.parametrize("window", [0.0, -1.0, 1e-14, 9e-14, float("nan"), float("inf")])
    def test_a_window_beyond_it_is_unavailable(self, store, window):
        with pytest.raises(StoreUnavailable) as caught:
            store.increment("k", window)
        assert (caught.value.code, caught.value.detail) == ("memory_store_error", "invalid_window")
        assert len(store) == 0

    def test_an_end_beyond_it_is_unavailable(self):
        store = MemoryStore(clock=FakeClock(monotonic=1.7e308))
        with pytest.raises(StoreUnavailable, match="memory_store_error"):
            store.increment("k", 1.7e308)

    def test_a_count_does_not_overflow(self, store):
        store.increment("k", 60.0)
        store._hits["k"] = 2**64 - 1
        assert [store.increment("k", 60.0).used for _ in range(2)] == [2**64, 2**64 + 1]

    def test_it_counts_in_whole_numbers(self, store):
        used = store.increment("k", 60.0).used
        assert type(used) is int


class TestThreads:
    """No hit is lost, and none gets another's number."""

    @pytest.mark.slow
    def test_every_hit_of_16_threads_is_counted(self):
        """50,000 hits each, over 100 keys."""
        store, threads, hits, keys = MemoryStore(), 16, 50_000, [f"k{number}" for number in range(100)]
        start, most = threading.Barrier(threads), [{} for _ in range(threads)]

        def run(mine):
            start.wait(10)
            for number in range(hits):
                key = keys[number % 100]
                mine[key] = max(mine.get(key, 0), store.increment(key, 3600.0).used)

        workers = [threading.Thread(target=run, args=(mine,)) for mine in most]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        of_a_key = threads * hits // 100
        assert {key: max(mine[key] for mine in most) for key in keys} == dict.fromkeys(keys, of_a_key)
        assert [store.increment(key, 3600.0).used for key in keys] == [of_a_key + 1] * 100

    def test_each_number_is_given_once(self):
        """So exactly `limit` requests of a window are let through, whoever asks."""
        store, threads = MemoryStore(), 8
        start, numbers = threading.Barrier(threads), [[] for _ in range(threads)]

        def run(mine):
            start.wait(10)
            for _ in range(1000):
                mine.append(store.increment("k", 3600.0).used)

        workers = [threading.Thread(target=run, args=(mine,)) for mine in numbers]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert sorted(number for mine in numbers for number in mine) == list(range(1, 8001))

    def test_the_clock_is_read_under_the_lock(self, store, clock):
        """Read before it, a time could be older than the window that another thread began meanwhile."""
        held = []
        store._now = lambda: held.append(store._lock.locked()) or clock.monotonic()
        store.increment("k", 60.0)
        assert held == [True]


class TestDropping:
    """Keys go when their windows are over, by the hits that come then."""

    def test_what_is_over_is_gone_within_a_sixteenth_of_the_window(self, store, clock):
        for number in range(100):
            store.increment(f"k{number}", 60.0)
        clock.advance(60.0 * 17 / 16)
        for _ in range(100):
            store.increment("other", 600.0)
        assert len(store) == 1

    def test_what_is_under_way_stays(self, store, clock):
        for number in range(100):
            store.increment(f"k{number}", 60.0)
            clock.advance(0.5)
        for _ in range(100):
            store.increment("other", 600.0)
        assert len(store) == 101

    def test_short_windows_do_not_wait_for_long_ones(self, store, clock):
        store.increment("long", 86_400.0)
        for number in range(100):
            store.increment(f"k{number}", 1.0)
        clock.advance(2.0)
        for _ in range(100):
            store.increment("long", 86_400.0)
        assert len(store) == 1

    def test_a_key_that_came_back_is_kept(self, store, clock):
        """Its first window's batch is over while the second is under way."""
        store.increment("k", 60.0)
        clock.advance(61.0)
        store.increment("k", 60.0)
        clock.advance(20.0)
        for _ in range(10):
            store.increment("other", 600.0)
        assert store.increment("k", 60.0) == Usage(2, 40.0)

    def test_a_key_that_came_back_with_a_shorter_window_goes_with_that(self, store, clock):
        store.increment("k", 60.0)
        clock.advance(60.0)
        store.increment("k", 1.0)
        clock.advance(2.0)
        for _ in range(10):
            store.increment("other", 600.0)
        assert len(store) == 1
        clock.advance(100.0)
        store.increment("other", 600.0)
        assert len(store) == 1

    def test_no_hit_pays_for_more_than_a_few(self, store, clock):
        """A hundred thousand windows end at once: each hit drops four."""
        for number in range(1000):
            store.increment(f"k{number}", 60.0)
        clock.advance(64.0)
        left = []
        for _ in range(5):
            store.increment("other", 600.0)
            left.append(len(store))
        assert left == [1001 - 4 * hit for hit in range(1, 6)]

    def test_one_window_after_another_takes_no_more_room(self, store, clock):
        """A thousand keys in use all the time are a thousand keys, ten windows later too."""
        sizes = []
        for _ in range(10):
            for number in range(1000):
                store.increment(f"k{number}", 60.0)
            clock.advance(64.0)
            sizes.append((len(store), sum(len(batch.keys) for batch in store._expiry._heap)))
        assert max(sizes) <= (1000, 2000)

    def test_a_window_length_that_is_no_longer_used_leaves_nothing(self, store, clock):
        for number in range(500):
            store.increment("k", 1.0 + number / 1000)
            clock.advance(2.0)
        for _ in range(500):
            store.increment("k", 1.0)
        assert len(store._expiry._heap) == len(store._expiry._open) == 1

    @settings(max_examples=60)
    @given(
        st.lists(
            st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.5, 1.0, 3.0, 60.0]), st.floats(0.0, 2.0)),
            max_size=200,
        )
    )
    def test_it_counts_as_a_table_that_forgets_nothing(self, hits):
        """Whatever is dropped, and when, is never missed."""
        clock = FakeClock()
        store, table = MemoryStore(clock=clock), {}
        for key, window, pause in hits:
            now = clock.monotonic()
            end, used = table.get(key, (0.0, 0))
            table[key] = (end, used + 1) if now < end else (now + window, 1)
            usage = store.increment(key, window)
            assert usage.used == table[key][1]
            assert usage.reset_after == pytest.approx(table[key][0] - now)
            clock.advance(pause)
        assert len(store) <= len(table)


class TestCap:
    """At most `max_keys` keys are held; a new one more is refused, and the others count on."""

    def test_a_key_too_many_is_unavailable(self, clock):
        store = MemoryStore(max_keys=2, clock=clock)
        store.increment("a", 60.0)
        store.increment("b", 60.0)
        with pytest.raises(StoreUnavailable) as caught:
            store.increment("c", 60.0)
        assert (caught.value.code, caught.value.detail) == ("memory_store_error", "full")
        assert len(store) == 2

    def test_no_counter_makes_room_for_another(self, clock):
        """Who comes under a thousand names must not get rid of the count under the first."""
        store = MemoryStore(max_keys=2, clock=clock)
        store.increment("a", 60.0)
        for number in range(1000):
            with contextlib.suppress(StoreUnavailable):
                store.increment(f"k{number}", 60.0)
        assert store.increment("a", 60.0).used == 2

    def test_what_is_over_makes_room(self, clock):
        store = MemoryStore(max_keys=100, clock=clock)
        for number in range(100):
            store.increment(f"k{number}", 60.0)
        clock.advance(64.0)
        assert store.increment("new", 60.0).used == 1

    def test_a_key_may_begin_another_window_though_it_is_full(self, clock):
        store = MemoryStore(max_keys=1, clock=clock)
        store.increment("a", 60.0)
        clock.advance(60.0)
        assert store.increment("a", 60.0).used == 1

    @pytest.mark.parametrize("max_keys", [0, -1, True, 1.5, "10", None])
    def test_it_is_a_whole_number_of_1_or_more(self, max_keys):
        with pytest.raises((TypeError, ValueError), match="max_keys="):
            MemoryStore(max_keys=max_keys)


class TestMemory:
    """What a key costs."""

    @pytest.mark.slow
    def test_a_key_takes_less_than_200_bytes(self):
        """The text of the key, which is the caller's, not counted; with a count that no small number holds."""
        keys, store = [f"user:{number:06d}" for number in range(100_000)], MemoryStore()
        gc.collect()
        tracemalloc.start()
        try:
            for key in keys:
                store.increment(key, 60.0)
                store._hits[key] = 1000 + len(store)
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert taken / len(keys) < 200

    @pytest.mark.skipif(sys.implementation.name != "cpython", reason="about CPython's collector")
    def test_no_counter_is_work_for_the_garbage_collector(self, store):
        """A pass over a million objects would be a pause for every thread."""
        for number in range(100):
            for _ in range(3):
                store.increment(f"k{number}", 60.0)
        assert not any(gc.is_tracked(one) for table in (store._ends, store._hits) for one in table.values())


class TestCopies:
    """A copy is the same store; a pickle carries the settings."""

    def test_a_copy_counts_with_the_original(self, store):
        store.increment("k", 60.0)
        assert copy.deepcopy(store).increment("k", 60.0).used == 2
        assert copy.copy(store).increment("k", 60.0).used == 3

    def test_a_pickle_starts_without_counters(self):
        store = MemoryStore(max_keys=7)
        store.increment("k", 60.0)
        other = pickle.loads(pickle.dumps(store))
        assert other.max_keys == 7
        assert other.increment("k", 60.0).used == 1

    def test_it_shows_its_settings_and_no_keys(self, store):
        store.increment("tok9", 60.0)
        assert repr(store) == f"MemoryStore(max_keys={rooms.MAX_KEYS})"

    def test_it_says_that_it_is_of_this_process_alone(self, store):
        assert store.is_shared is False

    def test_closing_it_closes_nothing(self, store):
        store.increment("k", 60.0)
        store.close()
        assert store.increment("k", 60.0).used == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
class TestFork:
    """The child goes on by itself."""

    def test_a_lock_that_was_held_does_not_stop_the_child(self):
        """The thread that held it is not there any more."""
        store = MemoryStore()
        store.increment("k", 60.0)
        with store._lock:
            child = os.fork()
            if child == 0:
                used = 0
                try:
                    used = store.increment("k", 60.0).used
                finally:
                    os._exit(0 if used == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert store.increment("k", 60.0).used == 2
