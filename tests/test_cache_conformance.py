"""The public test cases for HTTP caches, played through a session, over real sockets.

Skipped unless the cases and their runner are at hand (see `test_cache_cases.py`, which plays them
through the rules alone). Neither side waits: both are on one clock, which jumps.
"""

from __future__ import annotations

import pytest

from kreuz_sync import Cache, MemoryStore, Session
from kreuz_sync.clock import Clock

from .cache_simulation import Time
from .test_cache_cases import CASES, NOT_PASSED, _failed, _runner

pytestmark = pytest.mark.skipif(CASES is None or not CASES.exists(), reason="the cases are not here")


class _Jumping(Clock):
    def __init__(self, time: Time) -> None:
        self._time = time

    def wall(self) -> float:
        return self._time.now


@pytest.fixture(scope="module")
def verdicts() -> dict[str, tuple[str, str, str]]:
    """{case: (kind, verdict, reason)}, dependencies considered."""
    now = Time()
    runner = _runner(now)
    cases = runner.read_cases(CASES)
    origin = runner.Origin()

    def session() -> Session:
        cache = Cache(MemoryStore(), policy="rfc9111", clock=_Jumping(now))
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

    def test_every_required_case_is_passed(self, verdicts):
        assert _failed(verdicts, "required") == {}

    def test_the_optimal_cases_that_are_not_passed_are_those_with_a_reason(self, verdicts):
        assert _failed(verdicts, "optimal").keys() == NOT_PASSED.keys()
