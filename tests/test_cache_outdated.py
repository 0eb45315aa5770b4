"""What comes too late is not given out, whatever the moment; and nobody waits for what never comes."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kreuz_sync import Cache, Session
from kreuz_sync.cache import StoreTrouble
from kreuz_sync.cache.background import JOIN_S, Background
from kreuz_sync.cache.store import Body
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.errors import DeadlineExceeded

from .cache_sessions import WatchedStore
from .loopback import Answer, Received, Server, sequence

GUARD_S = 10.0


class Resource:
    """A page that a POST changes. gate: what the first GET waits for, once it has taken the old state along."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.text = "old"
        self.gate = gate
        self.asked = threading.Event()

    def __call__(self, request: Received) -> Answer:
        if request.method == "POST":
            self.text = "new"
            return Answer()
        first = not self.asked.is_set()
        self.asked.set()
        return Answer(body=self.text, delay=self.gate if first and self.gate is not None else 0.0)


class HookedStore(WatchedStore):
    """before, after: what else happens in the moments around the next write."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None

    def write(self, key: str, head: bytes, body: Body) -> None:
        before, self.before = self.before, None
        if before is not None:
            before()
        super().write(key, head, body)
        after, self.after = self.after, None
        if after is not None:
            after()


def elsewhere(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(GUARD_S)


class TestOneProcess:
    @pytest.mark.parametrize("fails", [False, True])
    def test_who_reads_after_the_change_never_sees_the_old(self, server: Server, fails: bool) -> None:
        """Even where the old is written after it, and cannot be dropped then."""
        url, store, seen = server.route("/page", Resource()), HookedStore(), []
        with Session(cache=Cache(store), throttle=None) as session:

            def change() -> None:
                elsewhere(lambda: session.post(url))
                if fails:
                    store.trouble, store.failing = StoreTrouble("locked"), frozenset({"delete", "delete_under"})

            store.before = change
            store.after = lambda: elsewhere(lambda: seen.append(session.get(url).text))
            assert session.get(url).text == "old"
            store.trouble = None
            assert seen == ["new"]
            assert [session.get(url).text for _ in range(2)] == ["new"] * 2
            assert "hit" in (session.get(url).cache_status or "")


class TestTwoCaches:
    """Of one folder, as two processes have them."""

    def test_what_is_under_way_in_one_is_not_stored_after_a_change_in_the_other(
        self, server: Server, tmp_path: Path
    ) -> None:
        gate = threading.Event()
        page = Resource(gate)
        url = server.route("/page", page)
        one, other = (Session(cache=Cache(tmp_path / "cache"), throttle=None) for _ in range(2))
        with one, other:
            thread = threading.Thread(target=one.get, args=(url,))
            thread.start()
            assert page.asked.wait(GUARD_S)
            other.post(url)
            gate.set()
            thread.join(GUARD_S)
            assert other.get(url).text == "new"

    def test_a_folder_that_was_made_anew_has_one_secret_for_both(self, server: Server, tmp_path: Path) -> None:
        page = Resource()
        url = server.route("/page", page)
        one, other = (Session(cache=Cache(tmp_path / "cache"), throttle=None) for _ in range(2))
        with one, other:
            one.get(url)
            shutil.rmtree(tmp_path / "cache")
            other.get(url)
            one.cache.store._look_at = 0.0  # type: ignore[union-attr]
            one.post(url)
            assert other.get(url).text == "new"
            assert "hit" in (one.get(url).cache_status or "")


class TestDeadline:
    def test_who_waits_for_an_equal_request_waits_no_longer_than_its_own_deadline(self, server: Server) -> None:
        gate = threading.Event()
        page = Resource(gate)
        url, cache = server.route("/page", page), Cache(WatchedStore())
        with Session(cache=cache, throttle=None) as one, Session(cache=cache, throttle=None, deadline=0.2) as other:
            thread = threading.Thread(target=one.get, args=(url,))
            thread.start()
            assert page.asked.wait(GUARD_S)
            with pytest.raises(DeadlineExceeded):
                other.get(url)
            assert thread.is_alive()
            gate.set()
            thread.join(GUARD_S)


class TestAbsentBodies:
    def test_a_304_that_announces_chunks_has_none_to_wait_for(self, server: Server) -> None:
        """RFC 9112, section 6.3: whatever its fields say, its header section is all of it."""
        first = Answer(body="page", fields={"ETag": '"1"', "Cache-Control": "max-age=0"})
        url = server.route("/page", sequence(first, Answer(304, fields={"Transfer-Encoding": "chunked"})))
        with Session(cache=Cache(WatchedStore(), policy="rfc9111"), throttle=None, timeout=5) as session:
            session.get(url)
            again = session.get(url)
            assert again.text == "page"
            assert (again.cache_status or "").startswith("kreuz; fwd=stale; fwd-status=304")
            assert session.get(url).text == "page"

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("status", [204, 304])
    def test_nor_has_one_without_a_cache(self, server: Server, status: int, stream: bool) -> None:
        url = server.route("/page", Answer(status, fields={"Transfer-Encoding": "chunked"}))
        with Session(throttle=None, timeout=5) as session:
            for _ in range(2):
                with session.get(url, stream=stream) as response:
                    assert response.content == b""


class TestBackground:
    FIELDS: ClassVar[dict[str, str]] = {"Cache-Control": "max-age=0, stale-while-revalidate=90"}

    def test_nothing_is_begun_while_the_interpreter_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread would never say that it has begun."""
        monkeypatch.setattr(sys, "is_finalizing", lambda: True)
        assert not Background(SYSTEM_CLOCK).start("key", lambda: None)

    def test_nobody_waits_for_long_for_what_does_not_end_nor_twice(self) -> None:
        assert JOIN_S <= 1.0
        background, gate, begun = Background(SYSTEM_CLOCK), threading.Event(), threading.Event()
        assert background.start("key", lambda: begun.set() or gate.wait(GUARD_S))  # type: ignore[func-returns-value]
        assert begun.wait(GUARD_S)
        background.join(0.01)
        workers = [thread for thread in threading.enumerate() if thread.name == "kreuz_sync cache"]
        background.join(GUARD_S)
        assert [worker.is_alive() for worker in workers] == [True]
        gate.set()
        workers[0].join(GUARD_S)


class TestAnswers:
    def test_raw_names_the_version_as_on_the_wire(self, server: Server) -> None:
        url = server.route("/page", Answer(body="page"))
        with Session(cache=Cache(WatchedStore()), throttle=None) as session:
            wire, stored = session.get(url).raw, session.get(url).raw
            assert stored.version == wire.version == 11
            assert stored.version_string == getattr(wire, "version_string", "HTTP/1.1")

    @pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, b"a", ("a",)])
    def test_a_key_that_is_no_text_is_an_error_that_names_the_setting(self, server: Server, value: Any) -> None:
        url = server.route("/page", Answer(body="page"))
        with Session(cache=Cache(WatchedStore(), key=lambda request: value), throttle=None) as session:
            with pytest.raises(TypeError, match="key="):
                session.get(url)
            with pytest.raises(TypeError, match="key="):
                assert session.cache is not None
                session.cache.get(url)
