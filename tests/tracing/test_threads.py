"""Spans of other threads, in the trace of whoever started them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

from kreuz_sync.calls import Call, current, next_send
from kreuz_sync.carrying import carried

from .recorder import parent_of

HERE: ContextVar[int] = ContextVar("HERE", default=0)


class TestCarried:
    def test_what_is_done_on_other_threads_belongs_to_this_ones_span(self, recorder, server):
        session = recorder.session()
        urls = [server.url(f"/{number}") for number in range(8)]
        with ThreadPoolExecutor(4) as pool, recorder.span("job"):
            list(pool.map(carried(session.get), urls))
        assert {parent_of(call, recorder.spans).name for call in recorder.calls} == {"job"}
        assert len({span.context.trace_id for span in recorder.spans}) == 1

    def test_two_threads_do_not_mix_their_calls(self, recorder, server):
        session = recorder.session()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(session.get, [server.url(f"/{number}") for number in range(20)]))
        for attempt in recorder.attempts:
            assert parent_of(attempt, recorder.spans).attributes["url.full"] == attempt.attributes["url.full"]

    def test_fetch_all_does_so_by_itself(self, recorder, server):
        """Also where its threads wait for turns, and see to other hosts meanwhile."""
        hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
        urls = [server.url(f"/{number}", host=host) for number in range(4) for host in hosts]
        session = recorder.session(throttle=0.02)
        with recorder.span("job"):
            assert len(list(session.fetch_all(urls, workers=2))) == 12
        assert len({span.context.trace_id for span in recorder.spans}) == 1
        assert sorted(call.attributes["url.full"] for call in recorder.calls) == sorted(urls)
        assert {parent_of(call, recorder.spans).name for call in recorder.calls} == {"job"}
        for attempt in recorder.attempts:
            assert parent_of(attempt, recorder.spans).attributes["url.full"] == attempt.attributes["url.full"]

    def test_it_gives_what_the_work_gives(self):
        assert carried(max)(1, 2, key=lambda number: -number) == 1

    def test_each_call_has_a_context_of_its_own(self):
        token = HERE.set(1)

        def count() -> int:
            HERE.set(HERE.get() + 1)
            return HERE.get()

        work = carried(count)
        HERE.reset(token)
        assert (work(), work(), HERE.get()) == (2, 2, 0)

    def test_a_call_that_is_under_way_stays_behind(self):
        tokens = current.set(Call()), next_send.set(Call())
        work = carried(lambda: (current.get(), next_send.get()))
        current.reset(tokens[0])
        next_send.reset(tokens[1])
        assert work() == (None, None)
