"""The retry layer: what is sent again, when, and what the caller gets in the end."""

import contextlib
import copy
import gc
import io
import logging
import pickle
import socket
import threading
from itertools import pairwise

import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from kreuz_sync import errors
from kreuz_sync.calls import Attempt
from kreuz_sync.clock import Clock
from kreuz_sync.retry import Retry, RetryAdapter, draw, without_own_retries
from kreuz_sync.retry.budget import RetryBudget
from kreuz_sync.sessions import Session
from kreuz_sync.stack import LayerAdapter, Stack
from kreuz_sync.throttle import Throttle
from kreuz_sync.transport import Transport

from .fakes import FakeClock, ScriptedAdapter, prepared
from .loopback import answer, cut, cut_chunked, hang_up, json_answer, reset, sequence, silent
from .waiting import Worker


def stacked(*answers, clock=None, layers=(), **settings):
    """A stack with a retry, the adapter that answers below it, and its clock."""
    clock = clock or FakeClock()
    wire = ScriptedAdapter(*answers)
    return Stack([Retry(**{"clock": clock, **settings}), *layers], Transport(wire)), wire, clock


def sends(*answers, request=None, **settings):
    """The last answer, how many attempts there were, and the seconds between them."""
    stack, wire, clock = stacked(*answers, **settings)
    response = stack.send(request or prepared())
    # Rounded: the clock adds and subtracts them. `Attempt.wait` has them as they were worked out.
    return response, len(wire.requests), [round(seconds, 9) for seconds in clock.waits]


class TestWhatWasRepeated:
    """What is left of errors that a caller never sees."""

    @pytest.mark.parametrize("last", [requests.ConnectionError, 200])
    def test_no_reference_cycle_keeps_them(self, last):
        class OwnError(requests.ConnectionError):
            pass

        class Failing(ScriptedAdapter):
            def send(self, request, **options):
                if len(self.requests) < 3 or last != 200:
                    self.requests.append(request)
                    raise OwnError
                return super().send(request, **options)

        stack = Stack([Retry(3, clock=FakeClock())], Failing())
        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(OwnError):
                stack.send(prepared())
            assert not [one for one in gc.get_objects() if type(one) is OwnError]
        finally:
            gc.enable()


class TestStatuses:
    """Which answers are repeated: those of the list, and no others."""

    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    def test_not_now_is_repeated(self, status):
        response, count, _ = sends(status, 200)
        assert (response.status_code, count) == (200, 2)

    @pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 403, 404, 408, 410, 501, 505])
    def test_any_other_answer_is_final(self, status):
        response, count, _ = sends(status, 200)
        assert (response.status_code, count) == (status, 1)

    @pytest.mark.parametrize("status", [401, 403, 404, 408, 410, 418])
    def test_whatever_the_caller_lists_is_repeated(self, status):
        assert sends(status, 200, statuses={status})[1] == 2

    def test_retry_after_does_not_put_a_status_on_the_list(self):
        response, count, waits = sends((503, {"Retry-After": "30"}, b""), statuses={502})
        assert (response.status_code, count, waits) == (503, 1, [])

    def test_a_challenge_page_is_not_repeated(self):
        """Asking again only makes the firewall surer."""

        class Blocking(LayerAdapter):
            def send(self, request, **options):
                response = super().send(request, **options)
                response.waf = object()
                return response

        response, count, _ = sends(503, layers=[Blocking])
        assert (count, response.retry_skipped) == (1, "the answer is a challenge page")


class TestMethods:
    """RFC 9110, section 9.2.2: the server may have acted on a request before it failed."""

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
    def test_idempotent_ones_are_repeated(self, method):
        assert sends(503, 200, request=prepared(method=method))[1] == 2

    @pytest.mark.parametrize("method", ["POST", "PATCH", "REPORT"])
    def test_others_are_not(self, method):
        assert sends(503, 200, request=prepared(method=method))[1] == 1

    def test_post_is_if_the_caller_names_it(self):
        assert sends(503, 503, 200, request=prepared(method="POST"), methods=["GET", "post"], attempts=2)[1] == 3

    @pytest.mark.parametrize("kind", [errors.ConnectionRefused, errors.ConnectTimeout, errors.DnsError])
    def test_every_method_is_when_nothing_was_sent(self, kind):
        assert sends(kind(), 200, request=prepared(method="POST"))[1] == 2

    @pytest.mark.parametrize("kind", [errors.ReadTimeout, errors.ConnectionFailed, errors.DataLoss])
    def test_post_is_not_when_something_may_have_been(self, kind):
        stack, wire, _ = stacked(kind("no answer"), 200)
        with pytest.raises(kind) as caught:
            stack.send(prepared(method="POST"))
        assert len(wire.requests) == 1
        assert str(caught.value) == (
            "no answer (not repeated: the server may have acted on this POST, which Retry(methods=...) does not name)"
        )


class TestErrors:
    """Which failures are repeated."""

    @pytest.mark.parametrize("kind", [errors.ConnectionFailed, errors.ReadTimeout, errors.BodyTimeout, errors.DataLoss])
    def test_a_broken_exchange_is(self, kind):
        assert sends(kind(), kind(), 200)[1] == 3

    @pytest.mark.parametrize(
        "error",
        [
            errors.SslError(),
            errors.ThrottleTimeout(),
            errors.SessionClosed(),
            errors.BodyTooLarge(),
            errors.RetriesExhausted(),
            requests.exceptions.InvalidURL(),
        ],
    )
    def test_a_decision_is_not(self, error):
        stack, wire, _ = stacked(error, 200)
        with pytest.raises(type(error)):
            stack.send(prepared())
        assert len(wire.requests) == 1

    def test_an_error_that_is_not_of_requests_passes_untouched(self):
        stack, wire, _ = stacked(ZeroDivisionError(), 200)
        with pytest.raises(ZeroDivisionError):
            stack.send(prepared())
        assert len(wire.requests) == 1


class TestWaits:
    def test_they_double_exactly(self):
        response, _, waits = sends(503, attempts=4)
        assert [one.wait for one in response.earlier] == waits == [0.1, 0.2, 0.4, 0.8]

    def test_they_stop_growing_at_the_cap(self):
        assert sends(503, attempts=5, base=1, cap=3)[2] == [1, 2, 3, 3, 3]

    def test_no_base_is_no_wait(self):
        assert sends(503, 503, 200, base=0)[1:] == (3, [])

    def test_full_jitter_scales_each(self):
        draws = iter([0.5, 0.25, 1.0])
        assert sends(503, base=1, cap=2, jitter="full", draw=lambda: next(draws))[2] == [0.5, 0.5, 2.0]

    def test_without_jitter_nothing_is_drawn(self):
        assert sends(503, draw=lambda: 1 / 0)[2] == [0.1, 0.2, 0.4]

    def test_random_numbers_lie_between_0_and_1_and_differ(self):
        numbers = [draw() for _ in range(100)]
        assert all(0 <= number <= 1 for number in numbers) and len(set(numbers)) > 50

    def test_they_are_counted_as_waited(self):
        response, _, _ = sends(503, 503, 200, base=1)
        assert response.waited == 3.0


class TestTogether:
    """Twenty threads that fail at the same moment."""

    def waits(self, **settings):
        wire = ScriptedAdapter(503)
        stack = Stack([Retry(1, base=1, clock=FakeClock(), **settings)], wire)
        waits, ready = [], threading.Barrier(20)

        def work():
            ready.wait(10)
            waits.extend(one.wait for one in stack.send(prepared()).earlier)

        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(wire.requests) == 40
        return waits

    def test_jitter_spreads_their_return(self):
        waits = self.waits(jitter="full")
        assert max(waits) - min(waits) > 0.4 and max(waits) <= 1.0

    def test_without_it_all_wait_the_same(self):
        assert self.waits() == [1.0] * 20


class TestRetryAfter:
    """RFC 9110, section 10.2.3."""

    @pytest.mark.parametrize("status", [429, 503])
    def test_it_is_waited_for(self, status):
        assert sends((status, {"Retry-After": "7"}, b""), 200)[2] == [7.0]

    def test_the_longer_of_it_and_the_back_off_counts(self):
        assert sends((503, {"Retry-After": "2"}, b""), attempts=3, base=1)[2] == [2.0, 2.0, 4.0]

    def test_a_date_is_compared_with_the_servers_own_clock(self):
        """Ours may be an hour behind."""
        fields = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:39 GMT"}
        assert sends((503, fields, b""), 200)[2] == [2.0]

    def test_without_a_date_field_ours_must_do(self):
        clock = FakeClock(wall=784111777.0)  # Sun, 06 Nov 1994 08:49:37 GMT
        assert sends((503, {"Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"}, b""), 200, clock=clock)[2] == [10.0]

    def test_more_than_the_ceiling_ends_the_retries_before_sleeping(self):
        response, count, waits = sends((503, {"Retry-After": "9999999999"}, b"why"))
        assert (count, waits, response.retry_after, response.content) == (1, [], 9999999999, b"why")
        assert response.retry_skipped == "Retry-After asks for 9999999999 s, more than max_retry_after=60"

    def test_the_error_then_has_the_uncapped_value(self):
        response, _, _ = sends((429, {"Retry-After": "9999999999"}, b""))
        with pytest.raises(errors.RateLimited, match="more than max_retry_after=60") as caught:
            response.raise_for_status()
        assert caught.value.retry_after == 9999999999 and caught.value.response is response

    def test_the_ceiling_itself_is_waited_for(self):
        assert sends((503, {"Retry-After": "5"}, b""), 200, max_retry_after=5)[2] == [5.0]

    def test_there_may_be_no_ceiling(self):
        assert sum(sends((503, {"Retry-After": "86400"}, b""), 200, max_retry_after=None)[2]) == 86400

    def test_it_can_be_ignored_altogether(self):
        answer = (503, {"Retry-After": "9999999999"}, b"")
        assert sends(answer, 200, respect_retry_after=False)[1:] == (2, [0.1])

    @pytest.mark.parametrize("value", ["", "soon", "-5", "1e3", "\u0663"])
    def test_one_that_cannot_be_read_changes_nothing(self, value):
        assert sends((503, {"Retry-After": value}, b""), 200)[2] == [0.1]


class TestHeedless:
    def test_without_respect_the_field_is_ignored_altogether(self):
        """Neither the retry waits for it nor the host is paused."""
        clock = FakeClock()
        session = Session(
            throttle=Throttle(0, clock=clock),
            retry=Retry(1, base=0.5, respect_retry_after=False, clock=clock),
            adapter=ScriptedAdapter((503, {"Retry-After": "3600"}, b""), 200),
        )
        assert session.get("http://example.test/").status_code == 200
        assert clock.waits == pytest.approx([0.5])
        assert session.throttle.wait_for("example.test") == 0

    def test_a_closed_session_says_for_which_request(self):
        pause_at = threading.Event()

        class Closing(FakeClock):
            def wait(self, condition, seconds):
                pause_at.set()
                condition.wait(seconds)

        session = Session(throttle=None, retry=Retry(1, base=30, clock=Closing()), adapter=ScriptedAdapter(503))
        worker = Worker(session.get, "http://example.test/")
        assert pause_at.wait(10)
        session.close()
        with pytest.raises(errors.SessionClosed) as caught:
            worker.outcome()
        assert caught.value.request.url == "http://example.test/"


class TestTheEnd:
    """What the caller gets after the last retry."""

    def test_the_last_answer_is_returned_as_it_is(self):
        response, count, _ = sends((503, {"X-Pod": "7"}, b'{"why": "fleet empty"}'), attempts=2)
        assert (count, response.json(), response.headers["X-Pod"]) == (3, {"why": "fleet empty"}, "7")

    def test_it_knows_its_attempts_and_what_the_earlier_ones_came_to(self):
        response, _, _ = sends(errors.DataLoss(), 429, 503, attempts=2)
        assert response.attempts == 3
        assert response.earlier == (Attempt("data_loss", None, 0.1), Attempt("rate_limited", 429, 0.2))

    def test_so_does_the_error_made_from_it(self):
        error = sends(503, attempts=2)[0].error
        assert error.attempts == 3 and [one.tag for one in error.earlier] == ["server_error"] * 2

    def test_the_last_error_is_raised_with_the_same_knowledge(self):
        stack, _, _ = stacked(429, errors.ReadTimeout("no answer"), attempts=2)
        with pytest.raises(errors.ReadTimeout, match="^no answer$") as caught:
            stack.send(prepared())
        assert caught.value.attempts == 3
        assert caught.value.earlier == (Attempt("rate_limited", 429, 0.1), Attempt("read_timeout", None, 0.2))
        assert caught.value.retry_skipped is None

    def test_success_knows_what_it_took(self):
        response, _, _ = sends(503, 200)
        assert (response.attempts, [one.status for one in response.earlier]) == (2, [503])

    def test_an_answer_at_once_has_no_history(self):
        response, _, _ = sends(200)
        assert (response.attempts, response.earlier, response.retry_skipped) == (1, (), None)

    def test_all_of_it_pickles(self):
        response, _, _ = sends(503, (503, {"Retry-After": "999"}, b""))
        for thing in (response, response.error):
            again = pickle.loads(pickle.dumps(thing))
            assert (again.earlier, again.retry_skipped) == (response.earlier, response.retry_skipped)

    def test_no_attempts_is_no_retry(self):
        response, count, _ = sends(503, attempts=0)
        assert (response.status_code, count, response.retry_skipped) == (503, 1, None)

    def test_why_something_was_repeated_or_not_is_logged(self, caplog):
        caplog.set_level(logging.DEBUG, "kreuz_sync.retry")
        sends(503, (503, {"Retry-After": "999"}, b""), request=prepared("http://me:pw@example.test/?token=s3cret"))
        first, second = (record.getMessage() for record in caplog.records if record.name == "kreuz_sync.retry")
        assert first.endswith(": server_error; retry 1 of 3 in 0.100 s")
        assert second.endswith("; not repeated: Retry-After asks for 999 s, more than max_retry_after=60")
        assert "s3cret" not in first + second and "pw" not in first + second


class Reading(BaseAdapter):
    """Reads the body of each request, as a wire does, then answers as `answers` say."""

    def __init__(self, *answers):
        super().__init__()
        self.bodies = []
        self.inner = ScriptedAdapter(*answers)

    def send(self, request, **options):
        body = request.body
        self.bodies.append(
            body.read() if hasattr(body, "read") else b"".join(body) if hasattr(body, "__next__") else body
        )
        return self.inner.send(request, **options)

    def close(self):
        pass


class TestRequestBodies:
    """An upload is sent again from where it began, or not at all."""

    def send(self, body, *answers, **settings):
        wire = Reading(*answers)
        stack = Stack([Retry(clock=FakeClock(), **settings)], wire)
        return stack.send(prepared(method="PUT", data=body)), wire.bodies

    @pytest.mark.parametrize("body", [b"bytes", "text", {"form": "x"}])
    def test_bytes_and_text_are_sent_again(self, body):
        _, bodies = self.send(body, 503, 200)
        assert len(bodies) == 2 and bodies[0] == bodies[1]

    def test_a_file_is_sent_again_from_its_first_position(self):
        file = io.BytesIO(b"0123456789")
        file.seek(4)
        response, bodies = self.send(file, 503, errors.DataLoss(), 200)
        assert (response.status_code, bodies) == (200, [b"456789"] * 3)

    def test_a_generator_is_gone_with_the_first_attempt(self):
        response, bodies = self.send((part for part in [b"a", b"b"]), 503, 200)
        assert (response.status_code, bodies) == (503, [b"ab"])
        assert response.retry_skipped == "its body cannot be sent a second time"

    def test_a_pipe_is_gone_too(self):
        class Pipe(io.BytesIO):
            def tell(self):
                raise OSError("not seekable")

        assert self.send(Pipe(b"once"), 503, 200)[1] == [b"once"]

    def test_a_file_that_was_closed_meanwhile_ends_the_retries(self):
        file = io.BytesIO(b"once")

        def answer(_):
            file.close()
            return 503

        response, bodies = self.send(file, answer, 200)
        assert (response.status_code, bodies) == (503, [b"once"])


class TestBudget:
    """Retries per host, so that an outage does not multiply our load."""

    def test_a_host_whose_budget_is_used_up_gets_no_retry(self):
        budget = RetryBudget(0, burst=2, per_second=0)
        response, count, _ = sends(503, attempts=5, budget=budget)
        assert count == 3
        assert response.retry_skipped == "the retry budget of example.test is used up"

    def test_other_hosts_have_their_own(self):
        stack, wire, _ = stacked(503, attempts=5, budget=RetryBudget(0, burst=2, per_second=0))
        for url in ("http://a.test/", "http://a.test/", "http://b.test/"):
            stack.send(prepared(url))
        assert [request.url for request in wire.requests].count("http://b.test/") == 3

    def test_by_default_a_storm_ends_and_a_few_failures_do_not_notice(self):
        """1,000 calls to a host that is down, in no time: 100 retries, and one for five calls."""
        stack, wire, _ = stacked(503, base=0)
        for _ in range(1000):
            stack.send(prepared())
        assert 1000 + 100 + 150 < len(wire.requests) <= 1000 + 100 + 200

    def test_there_need_be_none(self):
        stack, wire, _ = stacked(503, base=0, budget=None)
        for _ in range(100):
            stack.send(prepared())
        assert len(wire.requests) == 400


class TestClosing:
    """`close` wakes whoever waits."""

    def test_a_waiting_call_ends_with_a_typed_error(self):
        waiting = threading.Event()

        class Watched(Clock):
            def wait(self, condition, seconds):
                waiting.set()
                super().wait(condition, seconds)

        stack, wire, _ = stacked(503, base=3600, cap=3600, clock=Watched())
        caught = []

        def work():
            try:
                stack.send(prepared())
            except errors.SessionClosed as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert waiting.wait(10)
        while thread.is_alive():  # the waiter sets the event a moment before it lets the lock go
            stack.close()
            thread.join(0.01)
        assert [(error.attempts, error.earlier[0].status) for error in caught] == [(1, 503)]
        assert len(wire.requests) == 1

    def test_the_layers_below_are_closed(self):
        stack, wire, _ = stacked(200)
        stack.close()
        assert wire.closed == 1

    def test_a_forked_child_waits_on_a_lock_of_its_own(self):
        adapter = RetryAdapter(Retry(clock=FakeClock()), ScriptedAdapter(503, 200))
        adapter._pause._condition.acquire()
        adapter.after_fork()
        assert adapter.send(prepared()).status_code == 200


class Interrupting(FakeClock):
    """Ctrl-C in the first wait."""

    def wait(self, condition, seconds):
        if not self.waits:
            self.waits.append(seconds)
            raise KeyboardInterrupt
        super().wait(condition, seconds)


class TestInterrupt:
    def test_it_leaves_the_wait_once_and_everything_usable(self):
        stack, wire, _ = stacked(503, 503, 200, clock=Interrupting())
        with pytest.raises(KeyboardInterrupt):
            stack.send(prepared())
        assert len(wire.requests) == 1
        assert stack.send(prepared()).status_code == 200

    def test_inside_a_streamed_answer_that_is_being_discarded_it_closes_it(self, server, monkeypatch):
        page = server.route("/page", sequence(answer(503, body=b"x" * 1000), 200))

        def interrupted(*_):
            raise KeyboardInterrupt

        with Session(throttle=None, retry=1) as session:
            with monkeypatch.context() as patch:
                patch.setattr("kreuz_sync.retry.discard._drain", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    session.get(page, stream=True)
            assert session.get(page).status_code == 200
            assert len(server.requests) == 2


class TestLayersBelow:
    """Every attempt goes through them, so it waits its host's turn."""

    def test_each_attempt_passes_them(self):
        passed = []

        class Counting(LayerAdapter):
            def send(self, request, **options):
                passed.append(request.url)
                return super().send(request, **options)

        sends(503, errors.ReadTimeout(), 200, layers=[Counting])
        assert passed == ["http://example.test/"] * 3

    def test_each_attempt_waits_its_hosts_turn(self):
        """A retry that is due at once still comes no sooner than the host's delay allows."""
        clock, starts = FakeClock(), []

        def note(_):
            starts.append(clock.monotonic())
            return 503 if len(starts) < 4 else 200

        throttle = Throttle(0.5, clock=clock)
        Stack([Retry(base=0, clock=clock), throttle], Transport(ScriptedAdapter(note))).send(prepared())
        assert [round(later - first, 6) for first, later in pairwise(starts)] == [0.5, 0.5, 0.5]

    def test_retry_after_is_waited_for_once_though_two_layers_read_it(self):
        """The throttle keeps the host quiet for as long, so the two waits run side by side."""
        clock, starts = FakeClock(), []

        def note(_):
            starts.append(clock.monotonic())
            return (503, {"Retry-After": "8"}, b"") if len(starts) == 1 else 200

        throttle = Throttle(0.5, clock=clock)
        Stack([Retry(base=0, clock=clock), throttle], Transport(ScriptedAdapter(note))).send(prepared())
        assert round(starts[1] - starts[0], 6) == 8

    def test_a_throttle_that_refuses_ends_the_retries(self):
        clock = FakeClock()
        throttle = Throttle(5, max_wait=1, clock=clock)
        stack = Stack([Retry(base=0, clock=clock), throttle], Transport(ScriptedAdapter(503)))
        with pytest.raises(errors.ThrottleTimeout) as caught:
            stack.send(prepared())
        assert (caught.value.attempts, [one.status for one in caught.value.earlier]) == (1, [503])

    def test_options_survive_every_round(self):
        stack, wire, _ = stacked(503, 503, 200)
        stack.send(prepared(), timeout=7, verify="bundle.pem", cert="c.pem", proxies={"http": "p"})
        expected = {"stream": False, "timeout": 7, "verify": "bundle.pem", "cert": "c.pem", "proxies": {"http": "p"}}
        assert wire.options == [expected] * 3

    def test_the_same_request_is_sent_each_time(self):
        stack, wire, _ = stacked(503, 200)
        request = prepared()
        stack.send(request)
        assert all(one is request for one in wire.requests)

    def test_the_answer_is_given_back_before_the_wait(self):
        """What a layer below holds for an answer must not be held while we sleep."""
        events = []

        class Holding(LayerAdapter):
            def send(self, request, **options):
                response = super().send(request, **options)
                response.when_released(lambda: events.append("released"))
                return response

        class Watched(FakeClock):
            def wait(self, condition, seconds):
                events.append("wait")
                super().wait(condition, seconds)

        stack, _, _ = stacked(503, 200, layers=[Holding], clock=Watched())
        stack.send(prepared(), stream=True)
        assert events[:2] == ["released", "wait"]


class TestOnTheWire:
    """Against a server, through a session."""

    @pytest.fixture
    def session(self):
        with Session(throttle=None, retry=Retry(2, base=0.001)) as session:
            yield session

    def test_a_body_that_breaks_off_is_an_attempt_that_failed(self, session, server):
        page = server.route("/page", sequence(*[cut(b"x" * 20, after=5)] * 2, answer(body=b"x" * 20)))
        response = session.get(page)
        assert response.content == b"x" * 20
        assert (len(server.requests), [one.tag for one in response.earlier]) == (3, ["data_loss"] * 2)

    def test_so_are_chunks_whose_end_never_comes(self, session, server):
        page = server.route("/page", sequence(cut_chunked(b"abc"), answer(chunks=[b"abc", b"def"])))
        assert session.get(page).content == b"abcdef"

    def test_a_body_that_stops_coming_is_another(self, session, server):
        never = threading.Event()
        page = server.route("/page", sequence(answer(body=b"x" * 20, piece=5, pause=never), answer(body="ok")))
        response = session.get(page, timeout=0.2)
        assert (response.text, response.earlier[0].tag) == ("ok", "read_timeout")

    def test_a_stream_that_was_handed_over_is_not_repeated_behind_the_callers_back(self, session, server):
        page = server.route("/page", sequence(cut(b"x" * 20, after=5), answer(body=b"x" * 20)))
        response = session.get(page, stream=True)
        with pytest.raises(errors.DataLoss):
            b"".join(response.iter_content(4))
        assert len(server.requests) == 1

    @pytest.mark.parametrize("trouble", [hang_up, reset])
    def test_a_connection_that_ends_without_an_answer_is_repeated(self, session, server, trouble):
        page = server.route("/page", sequence(trouble(), answer(body="ok")))
        assert session.get(page).text == "ok"

    def test_silence_is_repeated_too(self, session, server):
        page = server.route("/page", sequence(silent(), answer(body="ok")))
        assert session.get(page, timeout=0.2).text == "ok"

    def test_post_to_a_port_where_nobody_listens_is_repeated(self, session):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(errors.ConnectionRefused) as caught:
            session.post(url, data=b"x")
        assert caught.value.attempts == 3
        assert [one.tag for one in caught.value.earlier] == ["connection_refused"] * 2

    def test_an_untrusted_certificate_is_not(self, session, tls_server):
        with pytest.raises(errors.SslError) as caught:
            session.get(tls_server.url("/"))
        assert caught.value.attempts == 1

    def test_an_upload_arrives_whole_each_time(self, session, server, tmp_path):
        file = tmp_path / "upload"
        file.write_bytes(b"0123456789" * 1000)
        page = server.route("/up", sequence(503, 503, 200))
        with file.open("rb") as body:
            session.put(page, data=body)
        assert [request.body for request in server.requests] == [file.read_bytes()] * 3

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("shape", ["length", "chunks", "empty"])
    def test_the_connection_of_a_discarded_answer_serves_again(self, session, server, stream, shape):
        how = {"length": {"body": b"x" * 5000}, "chunks": {"chunks": [b"x" * 500] * 9}, "empty": {}}[shape]
        page = server.route("/page", sequence(answer(503, **how), answer(503, **how), answer(body="ok")))
        assert session.get(page, stream=stream).text == "ok"
        assert {request.connection for request in server.requests} == {1}

    def test_of_a_large_body_only_the_beginning_is_read(self, session, server):
        never = threading.Event()
        endless = answer(503, body=b"x" * 1_000_000, piece=200_000, pause=never)
        page = server.route("/page", sequence(endless, answer(body="ok")))
        assert session.get(page, stream=True, timeout=10).text == "ok"
        assert [request.connection for request in server.requests] == [1, 2]

    def test_the_last_answer_of_a_stream_is_still_to_be_read(self, session, server):
        page = server.route("/page", json_answer({"why": "fleet empty"}, 503))
        response = session.get(page, stream=True)
        assert (response.attempts, response.json()) == (3, {"why": "fleet empty"})

    def test_a_typed_error_carries_the_last_answer(self, server):
        page = server.route("/page", json_answer({"why": "fleet empty"}, 503))
        with (
            Session(throttle=None, retry=Retry(2, base=0), raise_for_status=True) as session,
            pytest.raises(errors.ServerError) as caught,
        ):
            session.get(page)
        assert (caught.value.response.json()["why"], caught.value.attempts) == ("fleet empty", 3)

    def test_every_redirect_hop_has_retries_of_its_own(self, session, server):
        server.route("/b", sequence(503, 503, answer(body="ok")))
        page = server.route("/a", sequence(503, 503, answer(302, fields={"Location": "/b"})))
        response = session.get(page)
        assert (response.text, response.attempts, response.history[0].attempts) == ("ok", 3, 3)

    def test_a_hundred_calls_leave_no_connection_open_but_one(self, session, server):
        page = server.route("/page", sequence(*[503, 200] * 50))
        for _ in range(50):
            assert session.get(page, stream=True).content == b""
        assert len(server.requests) == 100
        assert {request.connection for request in server.requests} == {1}


class TestOwnRetries:
    """An inner adapter with a retry loop of its own."""

    @pytest.mark.parametrize(
        "own", [3, urllib3.Retry(2), urllib3.Retry(total=None, connect=2), urllib3.Retry(1, status_forcelist=[503])]
    )
    def test_it_is_switched_off_with_one_warning(self, own, caplog):
        adapter = HTTPAdapter(max_retries=own)
        without_own_retries(adapter)
        without_own_retries(adapter)
        assert (adapter.max_retries.total, adapter.max_retries.read) == (0, False)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "HTTPAdapter" in caplog.text

    @pytest.mark.parametrize("adapter", [HTTPAdapter(), HTTPAdapter(max_retries=0), ScriptedAdapter()])
    def test_an_adapter_that_makes_none_is_left_alone(self, adapter, caplog):
        before = getattr(adapter, "max_retries", None)
        without_own_retries(adapter)
        assert getattr(adapter, "max_retries", None) is before and not caplog.records

    def test_what_is_no_retry_of_urllib3_is_left_alone(self):
        class Own(ScriptedAdapter):
            max_retries = 5

        adapter = Own()
        without_own_retries(adapter)
        assert adapter.max_retries == 5

    def test_the_two_never_multiply(self, server):
        page = server.route("/page", 503)
        with Session(throttle=None, retry=Retry(2, base=0)) as session:
            session.mount("http://", HTTPAdapter(max_retries=urllib3.Retry(5, status_forcelist=[503])))
            assert session.get(page).status_code == 503
        assert len(server.requests) == 3


class TestSetting:
    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("attempts", -1, ValueError),
            ("attempts", 1.5, TypeError),
            ("attempts", True, TypeError),
            ("base", -0.1, ValueError),
            ("base", "1", TypeError),
            ("cap", float("inf"), ValueError),
            ("jitter", "some", ValueError),
            ("jitter", True, ValueError),
            ("statuses", 503, TypeError),
            ("statuses", "503", TypeError),
            ("statuses", [99], ValueError),
            ("statuses", ["503"], TypeError),
            ("methods", "GET", TypeError),
            ("methods", ["GET POST"], ValueError),
            ("methods", [1], TypeError),
            ("max_retry_after", -1, ValueError),
            ("max_retry_after", float("nan"), ValueError),
            ("respect_retry_after", 1, TypeError),
            ("budget", -0.2, ValueError),
            ("budget", "0.2", TypeError),
        ],
    )
    def test_impossible_values_are_refused_by_name(self, name, value, kind):
        with pytest.raises(kind, match=name):
            Retry(**{name: value})

    def test_an_unknown_keyword_is_refused(self):
        with pytest.raises(TypeError):
            Retry(tries=3)

    def test_it_is_fixed(self):
        with pytest.raises(AttributeError):
            Retry().attempts = 5

    def test_a_number_is_the_share_of_a_budget(self):
        assert Retry(budget=0.5).budget == RetryBudget(0.5)

    def test_it_pickles_and_copies(self):
        retry = Retry(5, jitter="full", methods={"GET"}, budget=RetryBudget(0.5, burst=7))
        for other in (pickle.loads(pickle.dumps(retry)), copy.deepcopy(retry)):
            assert other == retry and 0 <= other.delay(0) <= 0.1

    def test_a_session_with_it_pickles(self, server):
        page = server.route("/page", sequence(503, 200))
        with Session(throttle=None, retry=Retry(base=0)) as session, pickle.loads(pickle.dumps(session)) as again:
            assert again.get(page).status_code == 200
