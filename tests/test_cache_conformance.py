"""The public test cases for HTTP caches, played through a session, over real sockets.

Skipped unless the cases and their runner are at hand (see `test_cache_cases.py`, which plays them
through the rules alone). Neither side waits: both are on one clock, which jumps.
"""

from __future__ import annotations

from typing import Any

import pytest

from kreuz_sync import Cache, MemoryStore, Session
from kreuz_sync.clock import Clock

from .cache_simulation import Time
from .test_cache_cases import CASES, NOT_PASSED, OF_PARTS, _failed, _runner

pytestmark = pytest.mark.skipif(CASES is None or not CASES.exists(), reason="the cases are not here")

Verdicts = dict[str, tuple[str, str, str]]


class _Jumping(Clock):
    def __init__(self, time: Time) -> None:
        self._time = time

    def wall(self) -> float:
        return self._time.now


@pytest.fixture(scope="module")
def verdicts() -> Verdicts:
    """{case: (kind, verdict, reason)}, dependencies considered."""
    return _played()


@pytest.fixture(scope="module")
def verdicts_with_parts() -> Verdicts:
    """The same for a cache that stores parts."""
    return _played(store_parts=True)


def _played(**settings: Any) -> Verdicts:
    now = Time()
    runner = _runner(now)
    cases = runner.read_cases(CASES)
    origin = runner.Origin()

    def session() -> Session:
        cache = Cache(MemoryStore(), policy="rfc9111", clock=_Jumping(now), **settings)
        return Session(cache=cache, throttle=None, retry=0, timeout=10)

    try:
        outcomes = {name: runner.play(case, origin, session, False, lambda *_: None) for name, case in cases.items()}
    finally:
        origin.shutdown()
        origin.server_close()
    final = runner.apply_dependencies(cases, outcomes)
    return {name: (case["kind"], *final[name]) for name, case in cases.items()}


class TestCases:
    """http-tests/cache-tests, without what only shared caches and browsers can show."""

    @pytest.mark.slow
    def test_every_required_case_is_passed(self, verdicts):
        assert _failed(verdicts, "required") == {}

    def test_the_optimal_cases_that_are_not_passed_are_those_with_a_reason(self, verdicts):
        assert _failed(verdicts, "optimal").keys() == NOT_PASSED.keys()

    @pytest.mark.slow
    def test_nor_are_the_required_ones_failed_by_a_cache_that_stores_parts(self, verdicts_with_parts):
        assert _failed(verdicts_with_parts, "required") == {}

    def test_which_passes_those_about_parts(self, verdicts_with_parts):
        left = {name for name, reason in NOT_PASSED.items() if reason != OF_PARTS}
        assert _failed(verdicts_with_parts, "optimal").keys() == left == {"conditional-lm-fresh-no-lm", "other-cookie"}
