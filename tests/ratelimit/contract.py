"""What every counter store promises, as test classes that each store's tests inherit."""

from __future__ import annotations

import copy
import math
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kreuz_sync.ratelimit import CounterStore, StoreUnavailable, Usage
from tests.fakes import FakeClock

ROOT = Path(__file__).resolve().parent.parent.parent

MakeStore = Callable[[], CounterStore]


def hits(store: CounterStore, count: int, key: str = "policy:key", window: float = 60.0) -> list[int]:
    """The numbers that `count` hits get."""
    return [store.increment(key, window).used for _ in range(count)]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(0)` to `work(count - 1)` at once, and raise what any of them raised."""
    barrier = threading.Barrier(count)
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(20)
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]


class StoreContract:
    """A subclass gives the fixture `make_store`, which makes stores that count together."""

    # The length of a window that a test sees the end of: short where it must really wait.
    short = 60.0

    @pytest.fixture
    def store(self, make_store: MakeStore) -> Iterator[CounterStore]:
        with closing(make_store()) as store:
            yield store

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The store's, unless its time is not ours to move."""
        return FakeClock()

    @pytest.fixture
    def let_pass(self, clock: FakeClock) -> Callable[[float], None]:
        """Lets seconds pass for the store."""
        return clock.advance

    # --- a window ---

    def test_the_first_hit_opens_a_window(self, store: CounterStore) -> None:
        usage = store.increment("policy:key", 60.0)
        assert type(usage) is Usage
        assert usage.used == 1 and type(usage.used) is int
        assert 59 < usage.reset_after <= 60 and type(usage.reset_after) is float

    def test_hits_are_numbered(self, store: CounterStore) -> None:
        assert hits(store, 5) == [1, 2, 3, 4, 5]

    def test_no_hit_moves_the_end(self, store: CounterStore, let_pass: Callable[[float], None]) -> None:
        """However many there are: one that is rejected counts, and does not extend the window."""
        store.increment("policy:key", 60.0)
        let_pass(0.02)
        ends = [store.increment("policy:key", 60.0).reset_after for _ in range(50)]
        assert max(ends) <= 60 - 0.019
        assert ends == sorted(ends, reverse=True)

    def test_after_the_end_the_next_hit_opens_another(
        self, store: CounterStore, let_pass: Callable[[float], None]
    ) -> None:
        hits(store, 3, window=self.short)
        let_pass(self.short * 1.5)
        usage = store.increment("policy:key", self.short)
        assert usage.used == 1
        assert self.short * 0.5 < usage.reset_after <= self.short

    def test_a_window_begins_with_its_first_hit(self, store: CounterStore, let_pass: Callable[[float], None]) -> None:
        """It is not aligned to the clock."""
        for _ in range(3):
            let_pass(self.short * 1.3)
            assert store.increment("policy:key", self.short).reset_after > self.short * 0.9

    def test_the_length_is_no_part_of_the_key(self, store: CounterStore, let_pass: Callable[[float], None]) -> None:
        """A window under way keeps its own end, and the next one has the length of the hit that opens it."""
        store.increment("policy:key", self.short)
        usage = store.increment("policy:key", 1000.0)
        assert usage.used == 2 and usage.reset_after <= self.short
        let_pass(self.short * 1.5)
        usage = store.increment("policy:key", 1000.0)
        assert usage.used == 1 and usage.reset_after > 990

    @pytest.mark.parametrize("window", [0.001, 0.5, 1.5, 86_400.0, 31_622_400.0])
    def test_a_window_may_be_short_or_long(self, store: CounterStore, window: float) -> None:
        usage = store.increment("policy:key", window)
        assert usage.used == 1 and 0 < usage.reset_after <= window

    @pytest.mark.parametrize("window", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
    def test_an_impossible_window_is_a_failure(self, store: CounterStore, window: float) -> None:
        with pytest.raises(StoreUnavailable) as raised:
            store.increment("policy:key", window)
        assert raised.value.code.endswith("_store_error") and raised.value.detail

    # --- keys ---

    def test_keys_count_apart(self, store: CounterStore) -> None:
        for key in ("a:b", "a", "a:", ":a", "A:b", "a:b "):
            assert hits(store, 2, key) == [1, 2]

    @pytest.mark.parametrize(
        "key",
        ["", "a\0b", "a\nb", "*", "{a}b", "'; DROP TABLE Cache; --", "ключ", "\U0001f511", "\udcff", "k" * 10_000],
        ids=["empty", "zero", "line", "star", "braces", "quote", "letters", "astral", "half", "long"],
    )
    def test_a_key_is_any_text(self, store: CounterStore, key: str) -> None:
        """`scope.py` gives short printable ones, a `key_encoder` of a user's whatever it likes."""
        hits(store, 1, "other")
        assert hits(store, 2, key) == [1, 2]

    # --- together ---

    def test_threads_lose_no_hit_and_share_none(self, store: CounterStore) -> None:
        """16 threads and 10 keys: of each key every number comes once."""
        seen: dict[int, list[list[int]]] = {}

        def work(number: int) -> None:
            seen[number] = [hits(store, 20, f"policy:{key}") for key in range(10)]

        in_threads(16, work)
        for key in range(10):
            assert sorted(used for mine in seen.values() for used in mine[key]) == list(range(1, 16 * 20 + 1))

    def test_a_copy_counts_along(self, store: CounterStore) -> None:
        """A session that is copied has the same limits, not new ones."""
        hits(store, 1)
        assert hits(copy.copy(store), 1) == [2]
        assert hits(copy.deepcopy(store), 1) == [3]
        assert hits(store, 1) == [4]

    def test_a_closed_store_may_be_used_again(self, store: CounterStore) -> None:
        """And has forgotten nothing."""
        hits(store, 2)
        store.close()
        store.close()
        assert hits(store, 1) == [3]

    def test_it_shows_no_secret(self, store: CounterStore) -> None:
        assert type(store).__name__ in repr(store)
        assert "tok9" not in repr(store)


class ClockedContract(StoreContract):
    """Of a store whose time a test moves."""

    def test_at_its_very_end_a_window_is_over(self, store: CounterStore, clock: FakeClock) -> None:
        hits(store, 3, window=4.0)
        clock.advance(3.999)
        assert store.increment("policy:key", 4.0).used == 4
        clock.advance(0.001)
        assert store.increment("policy:key", 4.0) == (1, 4.0)

    @pytest.mark.parametrize(
        ("begin", "window", "later"),
        [(0.02, 2346.2, 2.8000000000000003), (0.21, 2565.4, 4.2), (0.53, 2969.4, 0.5), (0.5, 10.0, 2.5)],
    )
    @pytest.mark.parametrize("rounded", [float, math.ceil])
    def test_who_waits_as_long_as_it_was_told_begins_a_window(
        self,
        store: CounterStore,
        clock: FakeClock,
        begin: float,
        window: float,
        later: float,
        rounded: Callable[[float], float],
    ) -> None:
        """To the last bit: in the first three, the difference of end and now is rounded down."""
        clock.advance(begin)
        store.increment("policy:key", window)
        clock.advance(later)
        usage = store.increment("policy:key", window)
        assert usage.used == 2 and 0 < usage.reset_after <= window
        clock.advance(rounded(usage.reset_after))
        assert store.increment("policy:key", window).used == 1

    @pytest.mark.parametrize("seed", range(5))
    def test_any_sequence_of_hits_ends_as_the_model_does(
        self, store: CounterStore, clock: FakeClock, seed: int
    ) -> None:
        draw = random.Random(seed)
        windows: dict[str, tuple[float, int]] = {}  # of each key: its end and its hits
        for _ in range(400):
            clock.advance(draw.choice([0.0, 0.0, 0.25, 1.0, 5.0, 40.0]))
            key, window = f"policy:{draw.randrange(12)}", draw.choice([0.5, 2.0, 10.0])
            now = clock.monotonic()
            end, used = windows.get(key, (now, 0))
            windows[key] = (end, used + 1) if now < end else (now + window, 1)
            assert store.increment(key, window) == (windows[key][1], windows[key][0] - now)


# A store is made by the first argument, a Python expression. Says "ready", and begins when it is told to.
COUNTING = """
import sys
make, key, window, count = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
exec(make)
print("ready", flush=True)
sys.stdin.readline()
print(*(store.increment(key, window).used for _ in range(count)))
store.close()
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own that runs `code`, with pipes from and to it."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def finish(process: subprocess.Popen[str]) -> str:
    """What it prints until its end, which must be a good one."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate(timeout=20)[1]


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


class SharedContract(StoreContract):
    """Of a store that several processes share. `program`: Python code that makes one more such store, as `store`."""

    @pytest.fixture
    def program(self) -> str:
        raise NotImplementedError

    def test_it_says_so(self, store: CounterStore) -> None:
        assert store.is_shared is True

    def test_two_stores_count_together(self, make_store: MakeStore) -> None:
        with closing(make_store()) as one, closing(make_store()) as two:
            assert [hits(one, 1), hits(two, 2), hits(one, 1)] == [[1], [2, 3], [4]]

    @pytest.mark.slow
    def test_processes_lose_no_hit_and_share_none(self, store: CounterStore, program: str) -> None:
        """Four at once: every number comes once, so exactly `limit` of all hits are within any limit."""
        processes = [start(COUNTING, program, "policy:key", 600, 250) for _ in range(4)]
        for process in processes:
            wait_ready(process)
        for process in processes:
            go(process)
        numbers = [int(word) for process in processes for word in finish(process).split()]
        assert sorted(numbers) == list(range(1, 1001))
        assert sum(used <= 300 for used in numbers) == 300
        assert hits(store, 1) == [1001]

    @pytest.mark.slow
    def test_in_no_window_is_more_allowed_than_its_limit(self, store: CounterStore, program: str) -> None:
        """Over many windows too: each number comes at most as often as there were windows."""
        processes = [start(COUNTING, program, "policy:key", 0.05, 200) for _ in range(4)]
        for process in processes:
            wait_ready(process)
        for process in processes:
            go(process)
        times = Counter(int(word) for process in processes for word in finish(process).split())
        assert sum(times.values()) == 800
        # A window has no gap: whoever has a number in it has all below it before.
        assert all(times[used] >= times[used + 1] for used in range(1, max(times)))

    @pytest.mark.slow
    def test_a_worker_that_is_killed_leaves_its_window_to_end(self, make_store: MakeStore, program: str) -> None:
        """And its hits counted. Nobody waits for it."""
        code = COUNTING.replace("range(count)", "__import__('itertools').count()")
        workers = [start(code, program, "policy:key", 1.0, 0) for _ in range(3)]
        for worker in workers:
            wait_ready(worker)
        for worker in workers:
            go(worker)
        with closing(make_store()) as store:
            until = time.monotonic() + 20
            while store.increment("policy:key", 1.0).used < 30:
                assert time.monotonic() < until, "the workers do not count"
            for worker in workers:
                worker.kill()
                worker.communicate(timeout=20)
            usage = store.increment("policy:key", 1.0)
            assert usage.reset_after <= 1.0
            time.sleep(usage.reset_after + 0.01)
            assert hits(store, 1, window=1.0) == [1]
