"""The retry budget: shares of retries, host by host."""

import copy
import pickle
import threading

import pytest

from kreuz_sync.retry.budget import HOSTS_KEPT, RetryBudget

from .fakes import FakeClock

A, B = "http://a.test/x", "http://b.test/"


def budget(share=0.25, **settings):
    return RetryBudget(share, **{"burst": 2, "per_second": 0, "clock": FakeClock(), **settings})


def spent(it, url=A):
    """How many retries `it` allows in a row."""
    count = 0
    while it.spend(url):
        count += 1
    return count


class TestBudget:
    def test_a_host_may_retry_as_often_as_its_burst_allows(self):
        assert spent(budget(burst=7)) == 7

    def test_every_host_has_a_bucket_of_its_own(self):
        it = budget()
        assert (spent(it, A), spent(it, B)) == (2, 2)

    def test_ports_of_a_host_share_one(self):
        it = budget()
        assert (spent(it, "http://a.test:1/"), spent(it, "https://A.test:2/")) == (2, 0)

    def test_calls_earn_their_share(self):
        """A quarter of a retry each: eight calls, two retries."""
        it = budget()
        spent(it)
        for _ in range(8):
            it.earn(A)
        assert spent(it) == 2

    def test_seconds_earn_too(self):
        clock = FakeClock()
        it = budget(per_second=0.5, clock=clock)
        spent(it)
        clock.advance(4)
        assert spent(it) == 2

    def test_nothing_earned_goes_beyond_the_burst(self):
        clock = FakeClock()
        it = budget(per_second=1, clock=clock)
        it.spend(A)
        clock.advance(1000)
        for _ in range(100):
            it.earn(A)
        assert spent(it) == 2

    def test_a_host_that_needs_no_retry_leaves_no_trace(self):
        it = budget()
        for number in range(1000):
            it.earn(f"http://h{number}.test/")
        assert it._ledger.buckets == {}

    def test_a_bucket_that_is_full_again_is_dropped(self):
        clock = FakeClock()
        it = budget(per_second=1, clock=clock)
        it.spend(A)
        clock.advance(10)
        it.earn(A)
        assert it._ledger.buckets == {}

    def test_memory_is_bounded_however_many_hosts_fail(self):
        it = budget()
        for number in range(HOSTS_KEPT + 500):
            it.spend(f"http://h{number}.test/")
        assert len(it._ledger.buckets) == HOSTS_KEPT

    def test_the_host_that_failed_last_is_the_last_to_be_forgotten(self):
        it = budget()
        spent(it, A)
        for number in range(HOSTS_KEPT + 500):
            it.spend(f"http://h{number}.test/")
            assert not it.spend(A)

    def test_threads_share_it_to_the_last_token(self):
        it, allowed, ready = budget(burst=500), [], threading.Barrier(8)

        def spend():
            ready.wait(10)
            allowed.append(sum(it.spend(A) for _ in range(100)))

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sum(allowed) == 500


class TestSetting:
    def test_a_pickle_has_the_settings_and_starts_full(self):
        it = RetryBudget(0.5, burst=3)
        spent(it)
        again = pickle.loads(pickle.dumps(it))
        assert again == it and spent(again) == 3

    def test_a_copy_is_the_same_budget(self):
        """Copying a session does not double what its hosts have to bear."""
        it = RetryBudget()
        assert copy.copy(it) is copy.deepcopy(it) is it

    def test_it_is_renewed_in_a_forked_child(self):
        """A thread of the parent may hold the lock at the moment of the fork."""
        it = budget()
        it._ledger.lock.acquire()
        it._ledger.after_fork()
        assert it.spend(A)

    @pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
    @pytest.mark.parametrize("name", ["share", "burst", "per_second"])
    def test_impossible_numbers_are_refused_by_name(self, name, value):
        with pytest.raises(ValueError, match=f"{name}="):
            RetryBudget(**{name: value})

    @pytest.mark.parametrize("value", ["1", None, True])
    def test_other_things_than_numbers_are_refused(self, value):
        with pytest.raises(TypeError, match="share="):
            RetryBudget(value)
