"""Doubles for tests: a clock that never waits, and adapters that answer without a wire."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPResponse
from urllib3._collections import HTTPHeaderDict  # urllib3 1.26 has it nowhere else

from kreuz_sync.clock import Clock


class FakeClock(Clock):
    """Stands still until somebody waits or a test advances it.

    `waits` lists the seconds of every wait, in order. A wait with an end moves the clock to
    that end at once; one without an end really waits to be notified, 10 s at most.
    """

    def __init__(self, monotonic: float = 1000.0, wall: float = 1_800_000_000.0) -> None:
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._wall = wall
        self.waits: list[float] = []

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def wall(self) -> float:
        with self._lock:
            return self._wall

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._monotonic += seconds
            self._wall += seconds

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        if seconds is None:
            assert condition.wait(10), "nobody notified a waiter"
            return
        with self._lock:
            self.waits.append(seconds)
        self.advance(seconds)


Answer = tuple[int, Mapping[str, str] | Iterable[tuple[str, str]], bytes]


class ScriptedAdapter(BaseAdapter):
    """Answers each request with the next of `answers`, and the last one from then on.

    An answer is a status, an Exception to raise, a (status, fields, body) triple, or a function of
    the request that gives one of these. `requests` lists what was sent, `options` how.
    """

    def __init__(self, *answers: int | Answer | Exception | Callable[[requests.PreparedRequest], Any]) -> None:
        super().__init__()
        self.answers = list(answers) or [200]
        self.requests: list[requests.PreparedRequest] = []
        self.options: list[dict[str, Any]] = []
        self.closed = 0
        self._lock = threading.Lock()

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        with self._lock:
            self.requests.append(request)
            self.options.append(options)
            answer: Any = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return respond(request, *(answer if isinstance(answer, tuple) else (answer,)))

    def close(self) -> None:
        self.closed += 1


def respond(
    request: requests.PreparedRequest,
    status: int = 200,
    fields: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    content: bytes = b"",
) -> requests.Response:
    """A response as requests' own adapter builds it, over bytes instead of a socket."""
    headers = HTTPHeaderDict(fields)
    raw = HTTPResponse(
        body=io.BytesIO(content),
        headers=headers,
        status=status,
        reason="Reason",
        preload_content=False,
        decode_content=False,
        request_method=request.method,
    )
    return HTTPAdapter().build_response(request, raw)


def prepared(url: str = "http://example.test/", method: str = "GET", **parts: Any) -> requests.PreparedRequest:
    return requests.Request(method, url, **parts).prepare()
