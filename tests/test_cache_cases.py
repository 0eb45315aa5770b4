"""The public test cases for HTTP caches, played through the rules alone: no wire, no threads, no waiting.

Skipped unless the cases and their runner are at hand: in the folder that the variable
HTTP_CACHE_CASES names, or in one called `conformance` beside this project.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kreuz_sync.cache.policy import Policy

from .cache_simulation import Answer, Disconnected, Simulation, Time

_BESIDE = Path(__file__).resolve().parents[2].glob("*/conformance/http_cache_cases.json")
_NAMED = os.environ.get("HTTP_CACHE_CASES")
CASES = Path(_NAMED) / "http_cache_cases.json" if _NAMED else next(iter(_BESIDE), None)

pytestmark = pytest.mark.skipif(CASES is None or not CASES.exists(), reason="the cases are not here")

OF_PARTS = "answers to range requests are not stored, unless the user wants it"
# Why each of these is not passed. All are called optimal, none is required.
NOT_PASSED = {
    "other-cookie": "what was stored for nobody in particular may be another page than whoever has a cookie gets",
    "conditional-lm-fresh-no-lm": "it wants a 304 for a date before the response was made, which would be a guess",
    "partial-store-partial-reuse-partial-byterange": OF_PARTS,
    "partial-store-partial-reuse-partial-absent": OF_PARTS,
    "partial-store-partial-reuse-partial-suffix": OF_PARTS,
    "partial-store-partial-complete": OF_PARTS,
}


class _Origin:
    """What the runner's own origin is to `play`: its script, without its sockets."""

    def __init__(self) -> None:
        self.exchanges: dict[str, Any] = {}

    def url(self, exchange: Any, step: dict[str, Any]) -> str:
        filename = f"/{step['filename']}" if "filename" in step else ""
        query = f"?{step['query_arg']}" if "query_arg" in step else ""
        return f"http://origin.test/test/{exchange.token}{filename}{query}"

    def answer(self, method: str, url: str, fields: Any, body: object) -> Answer:
        path = url.removeprefix("http://origin.test")
        exchange = self.exchanges[path.split("?")[0].split("/")[2]]
        seen = {name.lower(): value for name, value in fields.items()}
        answered = exchange.answer(path, method, seen)
        if answered is None:
            raise Disconnected
        status, _, headers, content = answered
        headers = [(name, str(value).strip()) for name, value in headers]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), len(content))
        content = content[:length]
        if not any(name.lower() == "content-length" for name, _ in headers):
            headers.append(("Content-Length", str(len(content))))
        if method == "HEAD" or status in (204, 304):
            content = b""
        return Answer(status, tuple(headers), content)


class _Session:
    """What the runner takes for a session."""

    def __init__(self, origin: _Origin, now: Time) -> None:
        self.simulation = Simulation(origin.answer, Policy("rfc9111"), now)

    def request(self, method: str, url: str, *, headers: dict[str, str], data: object = None, **_: object) -> Any:
        answer = self.simulation.request(method, url, headers, data)
        named: dict[str, str] = {}
        for name, value in answer.fields:
            named[name.lower()] = f"{named[name.lower()]}, {value}" if name.lower() in named else value
        return SimpleNamespace(status_code=answer.status, content=answer.body, headers=named)


def _runner(now: Time) -> ModuleType:
    """The runner as a module of its own, on a clock that jumps instead of waiting."""
    assert CASES is not None
    spec = importlib.util.spec_from_file_location("http_cache_runner", CASES.with_name("run_http_cache.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]

    def sleep(seconds: float) -> None:
        now.now += seconds

    module.time = SimpleNamespace(time=lambda: now.now, sleep=sleep, strftime=time.strftime, gmtime=time.gmtime)
    return module


@pytest.fixture(scope="module")
def verdicts() -> dict[str, tuple[str, str, str]]:
    """{case: (kind, verdict, reason)}, dependencies considered."""
    outcomes = {}
    runner = _runner(Time())
    cases = runner.read_cases(CASES)
    for name, case in cases.items():
        now, origin = Time(), _Origin()
        runner.time.time = lambda now=now: now.now
        runner.time.sleep = lambda seconds, now=now: setattr(now, "now", now.now + seconds)
        outcomes[name] = runner.play(case, origin, lambda o=origin, n=now: _Session(o, n), False, lambda *_: None)
    final = runner.apply_dependencies(cases, outcomes)
    return {name: (case["kind"], *final[name]) for name, case in cases.items()}


def _failed(verdicts: dict[str, tuple[str, str, str]], kind: str) -> dict[str, str]:
    return {name: why for name, (its, verdict, why) in verdicts.items() if its == kind and verdict != "passed"}


class TestCases:
    """http-tests/cache-tests, without what only shared caches and browsers can show."""

    def test_every_required_case_is_passed(self, verdicts):
        assert _failed(verdicts, "required") == {}

    def test_the_optimal_cases_that_are_not_passed_are_those_with_a_reason(self, verdicts):
        assert _failed(verdicts, "optimal").keys() == NOT_PASSED.keys()
