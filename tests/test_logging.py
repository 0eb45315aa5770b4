"""The log: one tree, records for programs, nothing loud in ordinary work, one warning for a trouble, no secrets.

What can be seen in the source is looked for there, in the whole package; what cannot is tried over real connections.
"""

from __future__ import annotations

import ast
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import kreuz_sync
from kreuz_sync import Breaker, Budget, Cache, HeaderAuth, MemoryStore, RateLimit, Retry, Robots, Session, Throttle
from kreuz_sync.ratelimit.store import CounterStore

from .cache_sessions import FRESH, WatchedStore, locked, rfc
from .fakes import FakeClock
from .loopback import answer, cut, redirect, sequence
from .waiting import eventually

PACKAGE = Path(kreuz_sync.__file__).parent
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
SECRETS = ("s3cret", "abc123", "def456")


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def logging_calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call of a method of `_log`, with its place."""
    for name, tree in trees():
        for call in calls(tree):
            function = call.func
            if isinstance(function, ast.Attribute) and function.attr in METHODS:
                if isinstance(function.value, ast.Name) and function.value.id == "_log":
                    yield f"{name}:{call.lineno}", call


class TestSource:
    """What holds for every line of the package that logs."""

    def test_every_logger_is_one_of_the_tree(self) -> None:
        """`kreuz_sync`, or `kreuz_sync.` and one word: the layer's."""
        found: dict[str, str] = {}
        for name, tree in trees():
            for call in calls(tree):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "getLogger":
                    found[f"{name}:{call.lineno}"] = ast.unparse(call.args[0]) if call.args else ""
        own = {"__init__.py": "__name__"}  # which is `kreuz_sync` there
        wrong = {
            place: text
            for place, text in found.items()
            if own.get(place.partition(":")[0]) != text and not _is_of_the_tree(text)
        }
        assert wrong == {}
        assert len(found) > 8

    def test_every_record_can_be_read_by_a_program(self) -> None:
        """It has `extra`, so an `event`, and its text takes its values as arguments."""
        without = [place for place, call in logging_calls() if not any(one.arg == "extra" for one in call.keywords)]
        made = [place for place, call in logging_calls() if any(isinstance(one, ast.JoinedStr) for one in call.args)]
        assert (without, made) == ([], [])

    def test_no_record_takes_a_url_or_a_proxy_as_it_is(self) -> None:
        """Only through `redact`."""
        raw = [
            f"{place} {ast.unparse(argument)}"
            for place, call in logging_calls()
            for argument in (*call.args, *(word.value for word in call.keywords))
            for node in ast.walk(argument)
            if isinstance(node, ast.Attribute) and node.attr in ("url", "headers", "body", "content")
            if "redact(" not in ast.unparse(argument)
        ]
        assert raw == []

    def test_no_record_has_the_trace_of_an_error(self) -> None:
        """Its text would be in it, and that may quote anything."""
        assert [place for place, call in logging_calls() if any(one.arg == "exc_info" for one in call.keywords)] == []
        assert [place for place, call in logging_calls() if _method(call) == "exception"] == []

    def test_the_program_decides_where_it_goes(self) -> None:
        """No handler but the one that keeps Python from complaining, and no level."""
        logger = logging.getLogger("kreuz_sync")
        assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
        assert logger.propagate
        level_set = [
            name for name, tree in trees() for call in calls(tree) if _method(call) in ("setLevel", "basicConfig")
        ]
        assert level_set == []


def _is_of_the_tree(text: str) -> bool:
    name = text.strip("'\"")
    return name == "kreuz_sync" or (name.startswith("kreuz_sync.") and name.count(".") == 1)


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "kreuz_sync")
    return caplog


def ours(log: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in log.records if record.name.startswith("kreuz_sync")]


def loud(log: pytest.LogCaptureFixture) -> list[str]:
    """The events of the records above INFO."""
    return [record.event for record in ours(log) if record.levelno > logging.INFO]  # type: ignore[attr-defined]


def everything(log: pytest.LogCaptureFixture) -> str:
    """All that a handler could write of the records."""
    return "\n".join(f"{record.getMessage()} {vars(record)}" for record in ours(log))


class TestOrdinaryWork:
    """A session with everything on, and a server that is busy now and then: nothing above INFO."""

    def test_is_quiet(self, server, log, tmp_path):
        clock = FakeClock()
        server.route("/robots.txt", answer(body="User-agent: *\nCrawl-delay: 0.01\nDisallow: /private"))
        server.route("/busy", sequence(503, answer(429, fields={"Retry-After": "1"}), answer(body="1", fields=FRESH)))
        server.route("/away", redirect("/"))
        session = Session(
            throttle=Throttle(0.01, clock=clock),
            retry=Retry(3, base=0.01, clock=clock),
            cache=Cache(tmp_path / "pages"),
            robots=Robots(clock=clock),
            breaker=Breaker(clock=clock),
            budget=Budget(1000),
            rate_limits=[RateLimit("many", limit=5, window=60.0, clock=clock)],
            user_agents=["a/1", "b/2"],
            headers={"Accept": "*/*"},
        )
        with session:
            for path in ("/busy", "/busy", "/away", "/missing", "/"):
                session.get(server.url(path))
            with pytest.raises(kreuz_sync.RobotsDisallowed):
                session.get(server.url("/private"))
            session.get(server.url("/"), stream=True).close()
        assert loud(log) == []
        assert {"retry"} <= {record.event for record in ours(log)}

    def test_one_who_traces_hears_of_every_attempt_at_info(self, server, log):
        pytest.importorskip("opentelemetry.sdk")
        from opentelemetry.sdk.trace import TracerProvider

        tracing = kreuz_sync.Tracing(tracer_provider=TracerProvider())
        with Session(throttle=None, tracing=tracing) as session:
            session.get(server.url("/"))
        assert [(record.levelname, record.event) for record in ours(log)] == [("INFO", "attempt_complete")]


class TestTrouble:
    """Each is told by one record above INFO, however many calls meet it."""

    def repeat(self, session: Session, url: str, count: int = 5, **options: Any) -> None:
        with session:
            for _ in range(count):
                with contextlib.suppress(requests.RequestException):
                    session.get(url, **options)

    def test_a_challenge_page(self, server, log):
        url = server.route("/", answer(403, fields={"cf-mitigated": "challenge", "Server": "cloudflare"}))
        self.repeat(Session(throttle=None), url)
        assert loud(log) == ["waf_blocked"]

    def test_a_host_that_is_down(self, log):
        self.repeat(Session(throttle=None, breaker=Breaker(2)), "http://127.0.0.1:1/")
        assert loud(log) == ["circuit_open"]

    def test_a_store_of_answers_that_fails(self, server, log):
        self.repeat(Session(throttle=None, cache=rfc(store=WatchedStore(locked()))), server.url("/"))
        assert loud(log) == ["store_failure"]

    def test_a_store_of_counters_that_fails(self, server, log):
        class Broken(CounterStore):
            def increment(self, key: str, window: float) -> Any:
                raise OSError("s3cret")

            def close(self) -> None:
                pass

        limit = RateLimit("few", limit=5, store=Broken(), on_store_failure="allow")
        self.repeat(Session(throttle=None, rate_limits=[limit]), server.url("/"))
        assert loud(log) == ["store_failure"]
        assert "s3cret" not in everything(log)

    def test_a_mistake_in_a_function_of_a_rate_limit(self, server, log):
        limit = RateLimit("few", limit=5, key=lambda request: {}["s3cret"])
        self.repeat(Session(throttle=None, rate_limits=[limit]), server.url("/"))
        assert loud(log) == ["function_failure"]

    def test_a_crawl_delay_that_is_too_long(self, server, log):
        server.route("/robots.txt", answer(body="User-agent: *\nCrawl-delay: 100000"))
        clock = FakeClock()
        throttle = Throttle(0.0, clock=clock, max_crawl_delay=1.0)
        robots = Robots(clock=clock, max_crawl_delay=1.0)
        self.repeat(Session(throttle=throttle, robots=robots), server.url("/"))
        assert loud(log) == ["crawl_delay_cut"]

    def test_a_proxy_that_a_guard_cannot_see_through(self, server, proxy, log):
        proxies = {"http": proxy.url().replace("://", "://me:s3cret@")}
        proxy.names["site.test"] = server.address
        self.repeat(Session(throttle=None, deny_private=True), server.url("/", host="site.test"), proxies=proxies)
        assert loud(log) == ["proxy_unguarded"]
        assert "s3cret" not in everything(log)

    def test_an_adapter_with_retries_of_its_own(self, log):
        adapter = requests.adapters.HTTPAdapter(max_retries=3)
        Session(retry=1, adapter=adapter).close()
        assert loud(log) == ["own_retries_off"]

    def test_an_error_of_other_code_in_the_background(self, server, log):
        """Without its text, which may quote anything."""
        fields = {"Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": '"a"'}
        url = server.route("/page", answer(body="1", fields=fields))
        cache = rfc()
        with Session(throttle=None, cache=cache) as session:
            session.get(url)
            cache.clock.advance(5)
            session.mount("http://", Breaking())
            session.get(url)
            eventually(lambda: loud(log))
        assert loud(log) == ["refresh_failed"]
        assert "RuntimeError" in everything(log)
        assert "s3cret" not in everything(log)


class Breaking(requests.adapters.BaseAdapter):
    """An adapter with an error of its own, which quotes what it was given."""

    def send(self, request: Any, **options: Any) -> Any:
        raise RuntimeError("no luck with s3" + "cret")  # the trace shows this line

    def close(self) -> None:
        pass


class TestSecrets:
    """Credentials in every place that a request has for them, and a server that makes much be told of it."""

    def test_none_is_in_any_record(self, server, log):
        clock = FakeClock()
        server.route("/robots.txt", 503)
        server.route("/busy", sequence(503, 429, cut(b"0123456789", 4), 200))
        server.route("/wall", answer(403, fields={"cf-mitigated": "challenge", "Server": "cloudflare"}))
        server.route("/away", redirect("/busy?sig=abc123"))
        session = Session(
            throttle=Throttle(0.0, clock=clock),
            retry=Retry(2, base=0.01, clock=clock),
            cache=Cache(MemoryStore(), clock=clock),
            robots=Robots(clock=clock, on_unreachable="allow"),
            breaker=Breaker(1, clock=clock),
            auth={server.url("/"): HeaderAuth("X-Key", "def456")},
        )
        site = server.url("").replace("//", "//me:s3cret@")
        with session:
            for path in ("/busy", "/wall", "/away", "/missing", "/busy"):
                with contextlib.suppress(requests.RequestException):
                    session.get(f"{site}{path}?token=abc123#access_token=def456", cookies={"id": "s3cret"})
            with contextlib.suppress(requests.RequestException):
                session.get("http://me:s3cret@127.0.0.1:1/?code=abc123")
        told = everything(log)
        assert len(ours(log)) > 5
        assert [secret for secret in SECRETS if secret in told] == []
