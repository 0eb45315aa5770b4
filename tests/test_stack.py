"""The contract of a layer, and the order of the stack."""

import pickle
import threading

import pytest
import requests

from kreuz_sync.calls import Call, current, current_call
from kreuz_sync.errors import ConnectionFailed
from kreuz_sync.order import polite_order, reference_order
from kreuz_sync.response import Response, adopt
from kreuz_sync.stack import LayerAdapter, Stack, copy_request, stack
from kreuz_sync.transport import Transport

from .fakes import ScriptedAdapter, prepared, respond


class Noting:
    """A layer that notes who was met."""

    def __init__(self, name, met):
        self.name, self.met = name, met

    def __call__(self, inner):
        layer = self

        class Adapter(LayerAdapter):
            def send(self, request, **options):
                layer.met.append(layer.name)
                return super().send(request, **options)

            def close(self):
                layer.met.append(f"close {layer.name}")
                super().close()

        return Adapter(inner)

    def __repr__(self):
        return self.name


class TestOrder:
    def test_a_request_meets_the_layers_in_the_order_written(self):
        met = []
        stack(ScriptedAdapter(), Noting("a", met), Noting("b", met), Noting("c", met)).send(prepared())
        assert met == ["a", "b", "c"]

    def test_the_sessions_own_order(self):
        """The throttle inside the retry: every attempt waits its host's turn."""
        order = polite_order(throttle="throttle", retry="retry", auth="auth", user_agents="agents")
        assert order == ("agents", "auth", "retry", "throttle")

    def test_what_refuses_attempts_stands_above_what_waits(self):
        """What the breaker refuses uses up no budget, and what the budget refuses no rate limit and no turn."""
        order = polite_order(
            retry="retry", breaker="breaker", budget="budget", rate_limits=["a", "b"], throttle="throttle"
        )
        assert order == ("retry", "breaker", "budget", "a", "b", "throttle")

    def test_tracing_stands_around_all_others_and_next_to_the_wire(self):
        """So a call's span has the waits in it, and an attempt's has none."""

        class Tracing:
            wire = "wire"

        tracing = Tracing()
        order = polite_order(tracing=tracing, cache="cache", throttle="throttle")
        assert order == (tracing, "cache", "throttle", "wire")

    def test_the_order_of_the_reference_pipeline(self):
        """The throttle outermost; user agent, auth and retry next to the wire."""
        order = reference_order(throttle="throttle", retry="retry", auth="auth", user_agents="agents")
        assert order == ("throttle", "agents", "auth", "retry")

    def test_a_layer_that_is_off_is_left_out(self):
        assert polite_order(throttle="throttle") == ("throttle",)
        assert reference_order() == ()


class TestOptions:
    def test_all_five_reach_the_transport_untouched(self):
        wire = ScriptedAdapter()
        options = {
            "stream": True,
            "timeout": (1, None),
            "verify": "/ca.pem",
            "cert": ("/c.pem", "/k.pem"),
            "proxies": {"http": "http://p.test"},
        }
        Stack([Noting("a", [])], Transport(wire)).send(prepared(), **options)
        assert wire.options == [options]
        assert wire.options[0]["proxies"] is options["proxies"]

    def test_they_may_be_given_by_position_as_to_any_adapter(self):
        wire = ScriptedAdapter()
        Stack([], Transport(wire)).send(prepared(), False, 3.0, False, None, None)
        assert wire.options == [{"stream": False, "timeout": 3.0, "verify": False, "cert": None, "proxies": None}]


class TestClose:
    def test_it_reaches_the_transport_through_every_layer(self):
        met, wire = [], ScriptedAdapter()
        Stack([Noting("a", met), Noting("b", met)], Transport(wire)).close()
        assert (met, wire.closed) == (["close a", "close b"], 1)


class TestResponse:
    def test_it_says_how_often_it_was_sent_and_how_long_it_waited(self):
        class Waiting(LayerAdapter):
            def send(self, request, **options):
                current_call().waited += 1.5
                self.inner.send(request, **options)
                return self.inner.send(request, **options)

        mounted = Stack([Waiting], Transport(ScriptedAdapter()))
        first, second = mounted.send(prepared()), mounted.send(prepared())
        assert (first.attempts, first.waited) == (second.attempts, second.waited) == (2, 1.5)

    def test_an_error_says_so_too(self):
        with pytest.raises(ConnectionFailed) as caught:
            Stack([], Transport(ScriptedAdapter(requests.ConnectionError("x")))).send(prepared())
        assert caught.value.attempts == 1

    def test_its_connection_is_the_stack(self):
        """Digest authentication sends again through it."""
        mounted = Stack([], Transport(ScriptedAdapter()))
        assert mounted.send(prepared()).connection is mounted

    def test_a_users_subclass_stays_one(self):
        class Special(requests.Response):
            def shout(self):
                return self.text.upper()

        def send(request):
            response = respond(request, 200, (), b"abc")
            response.__class__ = Special
            return response

        class Adapter(ScriptedAdapter):
            def send(self, request, **options):
                return send(request)

        response = Stack([], Transport(Adapter())).send(prepared())
        assert isinstance(response, Special) and isinstance(response, Response)
        assert response.shout() == "ABC" and response.tag is None

    def test_elapsed_is_the_transports(self):
        """What requests assigns afterwards, with all waits, does not replace it."""
        response = Stack([], Transport(ScriptedAdapter())).send(prepared())
        before = response.elapsed
        response.elapsed = before * 2 + before.max / 2
        assert response.elapsed == before

    def test_pickling_keeps_the_numbers(self):
        response = Stack([], Transport(ScriptedAdapter((200, (), b"abc")))).send(prepared())
        response.waited = 2.5
        copy = pickle.loads(pickle.dumps(response))
        assert type(copy) is Response
        assert (copy.content, copy.attempts, copy.waited, copy.elapsed) == (b"abc", 1, 2.5, response.elapsed)


class TestCall:
    def test_a_stack_on_a_session_of_requests_makes_its_own(self):
        session = requests.Session()
        session.mount("http://", Stack([], Transport(ScriptedAdapter())))
        assert session.get("http://example.test/").attempts == 1
        assert current.get() is None

    def test_a_stack_inside_a_call_counts_for_it(self):
        call = Call()
        token = current.set(call)
        try:
            Stack([], Transport(ScriptedAdapter())).send(prepared())
        finally:
            current.reset(token)
        assert call.attempts == 1

    def test_threads_do_not_share_calls(self):
        """Eight threads send one PreparedRequest; each response counts its own attempt."""
        mounted, request, barrier, counts = (
            Stack([], Transport(ScriptedAdapter())),
            prepared(),
            threading.Barrier(8),
            [],
        )

        def send():
            barrier.wait(10)
            for _ in range(50):
                counts.append(mounted.send(request).attempts)

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert counts == [1] * 400


class TestCopyRequest:
    def test_fields_of_the_copy_are_its_own(self):
        original = prepared(headers={"A": "1"})
        copy = copy_request(original)
        copy.headers["A"] = "2"
        assert original.headers["A"] == "1"

    def test_everything_else_comes_along(self):
        original = prepared(method="POST", data=b"body")
        original.credential_fields = ("X-Api-Key",)
        copy = copy_request(original)
        assert (copy.method, copy.url, copy.body) == (original.method, original.url, original.body)
        assert copy.hooks is original.hooks and copy.credential_fields == ("X-Api-Key",)


class TestDelegation:
    def test_attributes_of_the_transports_adapter_are_reached(self):
        class Wire(ScriptedAdapter):
            poolmanager = "the pools"

        assert Stack([], Transport(Wire())).poolmanager == "the pools"

    def test_what_nobody_has_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="nothing_like_it"):
            Stack([], Transport(ScriptedAdapter())).nothing_like_it  # noqa: B018


def test_adopting_twice_changes_nothing():
    response = adopt(respond(prepared()))
    assert adopt(response) is response and type(response) is Response
