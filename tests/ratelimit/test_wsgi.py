"""The middleware: what a request meets, and what PEP 3333 asks of it."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kreuz_sync.ratelimit import (
    CounterStore,
    KeyUnavailable,
    LimitUnavailable,
    MemoryStore,
    PolicyUsage,
    RateLimit,
    RateLimitContext,
    StoreUnavailable,
    Usage,
    by_credential,
    by_host,
    by_origin,
    by_path,
)
from kreuz_sync.ratelimit.scope import scoped_key
from kreuz_sync.ratelimit.wsgi import CONTEXT, PeerAddress, RateLimitMiddleware, TrustedProxies, by_header

from ..fakes import FakeClock
from .wsgi_calls import PEER, Body, Hello, call, checked, current_exception, environ


class CountedStore(MemoryStore):
    """A store that lists its keys, one for each hit."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self.hits: list[str] = []

    def increment(self, key: str, window: float) -> Usage:
        self.hits.append(key)
        return super().increment(key, window)


class BrokenStore(CounterStore):
    """A store that fails until it is mended."""

    is_shared = True

    def __init__(self) -> None:
        self.is_out = True

    def increment(self, key: str, window: float) -> Usage:
        if self.is_out:
            raise StoreUnavailable("test_store_error", "no route to the secret host")
        return Usage(1, window)


def broken(kind: Any, code: str = "some_code") -> Callable[[Any], Any]:
    def function(request: Any) -> Any:
        raise kind(code, "not today")

    return function


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> CountedStore:
    return CountedStore(clock)


class TestOutcomes:
    """What a request comes to."""

    def test_within_the_limit_the_application_answers(self, store: CountedStore) -> None:
        app = Hello(fields=[("X-Own", "1")])
        answer = call(RateLimitMiddleware(app, limit=2, window=60, store=store))
        assert (answer.status, answer.body) == ("200 OK", b"hello")
        assert answer.fields == [
            ("Content-Type", "text/plain"),
            ("X-Own", "1"),
            ("RateLimit-Policy", '"default-policy";q=2;w=60'),
            ("RateLimit", '"default-policy";r=1;t=60'),
        ]

    def test_the_application_s_own_retry_after_is_left_alone(self, store: CountedStore) -> None:
        answer = call(RateLimitMiddleware(Hello("503 Down", [("Retry-After", "7")]), limit=2, store=store))
        assert answer.values("Retry-After") == ["7"]

    def test_over_the_limit_it_is_429_and_empty(self, store: CountedStore, clock: FakeClock) -> None:
        app = Hello()
        limited = RateLimitMiddleware(app, limit=1, window=60, store=store)
        call(limited)
        clock.advance(10.4)
        answer = call(limited)
        assert (answer.status, answer.body) == ("429 Too Many Requests", b"")
        assert answer.value("Content-Length") == "0"
        assert answer.value("Retry-After") == "50"
        assert answer.value("RateLimit-Policy") == '"default-policy";q=1;w=60'
        assert answer.value("RateLimit") == '"default-policy";r=0;t=50'
        assert len(app.environs) == 1

    def test_who_waits_for_retry_after_is_let_in(self, store: CountedStore, clock: FakeClock) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, window=2, store=store)
        call(limited)
        clock.advance(0.4)
        seconds = call(limited).value("Retry-After")
        assert seconds == "2"
        clock.advance(int(seconds))
        assert call(limited).code == 200

    def test_a_limit_of_0_refuses_all_and_counts(self, store: CountedStore) -> None:
        app = Hello()
        assert call(RateLimitMiddleware(app, limit=0, store=store)).code == 429
        assert (app.environs, len(store.hits)) == ([], 1)

    def test_an_application_s_own_429_has_the_fields_as_any_answer(self, store: CountedStore) -> None:
        answer = call(RateLimitMiddleware(Hello("429 Slow Down"), limit=5, store=store))
        assert answer.status == "429 Slow Down"
        assert answer.value("RateLimit") == '"default-policy";r=4;t=60'
        assert answer.values("Retry-After") == []

    def test_an_informational_answer_has_no_fields(self, store: CountedStore) -> None:
        assert call(RateLimitMiddleware(Hello("103 Early Hints"), limit=5, store=store)).values("RateLimit") == []

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "BREW"])
    def test_every_method_counts(self, method: str, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, store=store)
        assert [call(limited, method=method).code for _ in range(2)] == [200, 429]

    def test_what_the_application_raises_passes_through_and_stays_counted(self, store: CountedStore) -> None:
        def failing(environ: Any, start_response: Any) -> Any:
            raise KeyboardInterrupt

        limited = RateLimitMiddleware(failing, limit=1, store=store)
        with pytest.raises(KeyboardInterrupt):
            call(limited)
        assert call(limited).code == 429


class TestFields:
    """What an answer says of a limit."""

    def test_none_are_none_but_retry_after_stays(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, fields="none", store=store)
        first, second = call(limited), call(limited)
        assert first.fields == [("Content-Type", "text/plain")]
        assert (second.values("RateLimit"), second.values("RateLimit-Policy")) == ([], [])
        assert second.value("Retry-After") == "60"

    def test_those_of_draft_7(self, store: CountedStore) -> None:
        answer = call(RateLimitMiddleware(Hello(), limit=5, fields="draft-7", store=store))
        assert answer.value("RateLimit-Policy") == "5;w=60"
        assert answer.value("RateLimit") == "limit=5, remaining=4, reset=60"

    def test_they_are_added_to_what_the_application_says(self, store: CountedStore) -> None:
        app = Hello(fields=[("RateLimit", '"db";r=1;t=1')])
        answer = call(RateLimitMiddleware(app, limit=5, store=store))
        assert answer.values("RateLimit") == ['"db";r=1;t=1', '"default-policy";r=4;t=60']

    def test_names_are_escaped(self, store: CountedStore) -> None:
        answer = call(RateLimitMiddleware(Hello(), RateLimit('the "\\" lane', limit=5, store=store)))
        assert answer.value("RateLimit") == '"the \\"\\\\\\" lane";r=4;t=60'

    def test_seconds_are_rounded_up_and_never_0(self, store: CountedStore, clock: FakeClock) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, window=1.5, store=store)
        assert call(limited).value("RateLimit-Policy").endswith(";w=2")
        clock.advance(1.499)
        answer = call(limited)
        assert (answer.value("Retry-After"), answer.value("RateLimit")) == ("1", '"default-policy";r=0;t=1')

    def test_values_are_native_strings_of_latin_1(self, store: CountedStore) -> None:
        for _, value in call(RateLimitMiddleware(Hello(), limit=1, store=store)).fields:
            assert type(value) is str and value.encode("latin-1")


class TestFailures:
    """What cannot be decided is refused, without a word of quotas."""

    @pytest.mark.parametrize(
        ("settings", "status"),
        [
            ({"key": broken(KeyUnavailable)}, "500 Internal Server Error"),
            ({"limit": broken(LimitUnavailable)}, "500 Internal Server Error"),
            ({"store": BrokenStore()}, "503 Service Unavailable"),
        ],
    )
    def test_each_has_its_status_and_no_fields(self, settings: dict[str, Any], status: str) -> None:
        app = Hello()
        answer = call(checked(RateLimitMiddleware(app, **settings)))
        assert (answer.status, answer.body) == (status, b"")
        assert {name for name, _ in answer.fields} == {"Content-Type", "Content-Length"}
        assert app.environs == []

    @pytest.mark.parametrize("mode", ["allow", "local", "reject"])
    @pytest.mark.parametrize("settings", [{"key": broken(KeyUnavailable)}, {"limit": broken(LimitUnavailable)}])
    def test_those_of_key_and_limit_let_nothing_through(self, settings: dict[str, Any], mode: str) -> None:
        assert call(RateLimitMiddleware(Hello(), on_store_failure=mode, **settings)).code == 500

    def test_a_failed_limit_consumes_nothing(self, store: CountedStore) -> None:
        call(RateLimitMiddleware(Hello(), limit=broken(LimitUnavailable), store=store))
        assert store.hits == []

    def test_with_allow_the_application_answers_and_nothing_is_said(self) -> None:
        app = Hello()
        answer = call(RateLimitMiddleware(app, limit=1, store=BrokenStore(), on_store_failure="allow"))
        assert (answer.code, answer.fields) == (200, app.fields)
        assert CONTEXT not in app.environs[0]

    def test_with_local_this_process_counts(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, store=BrokenStore(), on_store_failure="local")
        assert [call(limited).code for _ in range(2)] == [200, 429]

    def test_the_limit_holds_again_once_the_store_is_back(self) -> None:
        store = BrokenStore()
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, on_store_failure="allow")
        assert call(limited).code == 200
        store.is_out = False
        assert call(limited).code == 429

    def test_without_an_address_there_is_no_key(self) -> None:
        assert call(RateLimitMiddleware(Hello(), limit=9), peer="").code == 500


class TestKeys:
    """Whose request it is."""

    def test_it_is_the_peer_whatever_the_fields_say(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=3)
        codes = [call(limited, x_forwarded_for=f"9.9.9.{n}", forwarded=f"for=9.9.9.{n}").code for n in range(10)]
        assert codes == [200] * 3 + [429] * 7

    def test_peers_are_counted_apart(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1)
        assert [call(limited, peer=f"9.9.9.{n}").code for n in range(4)] == [200] * 4

    def test_ipv6_addresses_of_one_64_share_a_quota(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1)
        codes = [call(limited, peer=peer).code for peer in ("2001:db8:1:2::a", "2001:DB8:1:2::b", "2001:db8:1:3::a")]
        assert codes == [200, 429, 200]

    def test_an_ipv4_address_in_ipv6_form_is_the_same(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1)
        assert [call(limited, peer=peer).code for peer in ("::ffff:1.2.3.4", "1.2.3.4")] == [200, 429]

    def test_trusted_proxies_say_who_asks(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=TrustedProxies(["198.51.100.0/24"]), store=store)
        codes = [
            call(limited, x_forwarded_for=value).code for value in ("9.9.9.9, 5.5.5.5", "8.8.8.8, 5.5.5.5", "7.7.7.7")
        ]
        assert codes == [200, 429, 200]
        assert store.hits == ["default-policy:5.5.5.5", "default-policy:5.5.5.5", "default-policy:7.7.7.7"]

    def test_a_malformed_field_of_a_trusted_proxy_fails_closed(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=TrustedProxies(hops=1), on_store_failure="allow")
        assert call(limited, x_forwarded_for="unknown").code == 500

    def test_functions_are_given_the_environ(self, store: CountedStore) -> None:
        seen: list[Any] = []
        given = environ()

        def remember(value: Any) -> Callable[[Any], Any]:
            return lambda request: (seen.append(request), value)[1]

        call(
            RateLimitMiddleware(Hello(), skip=remember(False), key=remember("k"), limit=remember(1), store=store), given
        )
        assert [one is given for one in seen] == [True] * 3

    def test_the_limit_may_differ_from_request_to_request(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(
            Hello(), limit=lambda environ: 2 if environ["PATH_INFO"] == "/a" else 1, store=store
        )
        assert [call(limited, path=path).code for path in ("/a", "/b", "/a")] == [200, 429, 429]


class TestByPath:
    """The key of a session serves here too: by template, for each caller."""

    def test_each_caller_has_a_counter_for_each_template(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=by_path("/users/{id}", "/login"), store=store)
        asked = [("/users/7", PEER), ("/users/8", PEER), ("/login", PEER), ("/users/7", "9.9.9.9"), ("/x", PEER)]
        assert [call(limited, path=path, peer=peer).code for path, peer in asked] == [200, 429, 200, 200, 200]
        assert store.hits[0] == f"default-policy:{PEER} /users/{{id}}"

    def test_paths_that_fit_no_template_share_a_counter(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=by_path("/login"))
        assert [call(limited, path=path).code for path in ("/a", "/b")] == [200, 429]

    def test_who_asks_may_be_told_otherwise(self, store: CountedStore) -> None:
        key = by_path("/login", key=TrustedProxies(hops=1))
        call(RateLimitMiddleware(Hello(), key=key, store=store), path="/login", x_forwarded_for="192.0.2.1")
        assert store.hits == ["default-policy:192.0.2.1 /login"]

    @pytest.mark.parametrize("template", ["/straße/{x}", "/stra%C3%9Fe/{x}"])
    def test_a_template_is_compared_with_the_path_as_the_server_decoded_it(
        self, template: str, store: CountedStore
    ) -> None:
        path = "/straße/1".encode().decode("latin-1")  # PEP 3333
        call(RateLimitMiddleware(Hello(), key=by_path(template, key=lambda environ: b"\xff"), store=store), path=path)
        (hit,) = store.hits
        assert hit == scoped_key("default-policy", f"ff {template}")

    def test_a_key_that_is_no_text_is_a_failure(self) -> None:
        nobody: Any = lambda environ: None  # noqa: E731
        assert call(RateLimitMiddleware(Hello(), key=by_path("/a", key=nobody))).code == 500

    @pytest.mark.parametrize("key", [by_host, by_origin, by_credential(), by_path("/a", key=by_host)])
    def test_a_key_for_sessions_is_refused_at_once(self, key: Any) -> None:
        with pytest.raises(TypeError, match="key=.*requests of a session; a server has PeerAddress"):
            RateLimitMiddleware(Hello(), key=key)


class TestUnixSocket:
    """A connection there has no address, so that nobody gets in: the log says what to do about it."""

    def test_it_is_told_once_what_to_do(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "kreuz_sync.ratelimit")
        limited = RateLimitMiddleware(Hello(), limit=5)
        assert [call(limited, peer="").code for _ in range(3)] == [500] * 3
        assert [record.levelname for record in caplog.records] == ["ERROR", "DEBUG", "DEBUG"]
        assert "socket_ip_unavailable" in caplog.records[0].getMessage()
        assert "key=TrustedProxies(hops=1, unix_socket=True)" in caplog.records[0].getMessage()

    def test_what_it_says_lets_requests_in(self, caplog: pytest.LogCaptureFixture) -> None:
        limited = RateLimitMiddleware(Hello(), limit=5, key=TrustedProxies(hops=1, unix_socket=True))
        assert call(limited, peer="", x_forwarded_for="192.0.2.1").code == 200
        assert caplog.records == []


class TestByHeader:
    """A key for each value of a field."""

    def test_values_are_counted_apart(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=by_header("X-Api-Key"))
        assert [call(limited, x_api_key=key).code for key in ("tok1", "tok2", "tok1")] == [200, 200, 429]

    def test_no_store_sees_one(self, store: CountedStore) -> None:
        call(RateLimitMiddleware(Hello(), limit=1, key=by_header("X-Api-Key"), store=store), x_api_key="tok9")
        assert "tok9" not in store.hits[0]
        assert store.hits[0].startswith("default-policy:x-api-key ")

    def test_without_the_field_there_is_no_key(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=1, key=by_header("X-Api-Key"))
        assert [call(limited).code, call(limited, x_api_key="").code] == [500, 500]

    def test_or_another_one(self, store: CountedStore) -> None:
        key = by_header("X-Api-Key", otherwise=lambda environ: environ["REMOTE_ADDR"])
        call(RateLimitMiddleware(Hello(), limit=1, key=key, store=store))
        assert store.hits == [f"default-policy:{PEER}"]

    def test_one_secret_gives_one_key_in_every_process(self) -> None:
        given = environ(x_api_key="tok9")
        keys = [by_header("X-Api-Key", secret=secret)(given) for secret in ("s" * 16, b"s" * 16, "t" * 16, None, None)]
        assert keys[0] == keys[1]
        assert len(set(keys)) == 4

    def test_a_shared_store_needs_a_secret(self) -> None:
        with pytest.raises(ValueError, match="secret"):
            RateLimitMiddleware(Hello(), key=by_header("X-Api-Key"), store=BrokenStore())
        RateLimitMiddleware(Hello(), key=by_header("X-Api-Key", secret="s" * 16), store=BrokenStore())

    def test_the_secret_is_not_shown(self) -> None:
        assert "sss" not in repr(by_header("X-Api-Key", secret="s" * 16))

    @pytest.mark.parametrize("secret", ["short", b"short", 7])
    def test_a_bad_secret_is_refused_and_not_shown(self, secret: Any) -> None:
        with pytest.raises(ValueError, match=r"secret=\.\.\.: 16 bytes"):
            by_header("X-Api-Key", secret=secret)

    @pytest.mark.parametrize("name", ["", "X Api", 7])
    def test_a_name_is_that_of_a_field(self, name: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="name"):
            by_header(name)


class TestContext:
    """What the application can look up."""

    def test_an_allowed_request_carries_its_policy(self, store: CountedStore) -> None:
        app = Hello()
        call(RateLimitMiddleware(app, RateLimit("search", limit=5, window=60, store=store)))
        assert app.environs[0][CONTEXT] == RateLimitContext((PolicyUsage("search", 5, 60.0, 1, 60.0),))

    def test_limits_further_in_append_theirs(self, clock: FakeClock) -> None:
        app = Hello()
        inner = RateLimitMiddleware(app, RateLimit("b", limit=5, clock=clock), RateLimit("c", limit=6, clock=clock))
        call(RateLimitMiddleware(inner, RateLimit("a", limit=4, clock=clock)))
        assert [policy.name for policy in app.environs[0][CONTEXT].policies] == ["a", "b", "c"]

    def test_a_refused_request_has_none_of_its_own(self, store: CountedStore) -> None:
        given = environ()
        call(RateLimitMiddleware(Hello(), limit=0, store=store), given)
        assert CONTEXT not in given


@pytest.mark.parametrize("nested", [True, False], ids=["middlewares", "limits of one middleware"])
class TestNesting:
    """Outer before inner on the way in, inner before outer on the way out."""

    def build(self, nested: bool, app: Any, *limits: RateLimit) -> Any:
        if not nested:
            return RateLimitMiddleware(app, *limits)
        for limit in reversed(limits):
            app = RateLimitMiddleware(app, limit)
        return app

    def test_fields_are_those_of_the_inner_first(self, nested: bool, clock: FakeClock) -> None:
        limits = [RateLimit("outer", limit=9, clock=clock), RateLimit("inner", limit=5, clock=clock)]
        answer = call(self.build(nested, Hello(), *limits))
        assert answer.values("RateLimit") == ['"inner";r=4;t=60', '"outer";r=8;t=60']
        assert answer.values("RateLimit-Policy") == ['"inner";q=5;w=60', '"outer";q=9;w=60']

    def test_a_refusal_inside_was_charged_outside_and_both_say_so(self, nested: bool, clock: FakeClock) -> None:
        outer, inner = RateLimit("outer", limit=9, window=90, clock=clock), RateLimit("inner", limit=0, clock=clock)
        limited = self.build(nested, Hello(), outer, inner)
        call(limited)
        answer = call(limited)
        assert answer.code == 429
        assert answer.values("RateLimit") == ['"inner";r=0;t=60', '"outer";r=7;t=90']
        assert answer.value("Retry-After") == "60"

    def test_a_refusal_outside_is_not_charged_inside(self, nested: bool, clock: FakeClock) -> None:
        inner_store = CountedStore(clock)
        outer, inner = RateLimit("outer", limit=0, clock=clock), RateLimit("inner", limit=5, store=inner_store)
        answer = call(self.build(nested, Hello(), outer, inner))
        assert answer.values("RateLimit") == ['"outer";r=0;t=60']
        assert inner_store.hits == []

    @pytest.mark.parametrize("order", [(60, 5), (5, 60)])
    def test_retry_after_is_that_of_the_last_window_without_room(
        self, nested: bool, clock: FakeClock, order: tuple[int, int]
    ) -> None:
        """Who comes back with the inner one's would be refused by the outer one."""
        outer, inner = order
        limited = self.build(
            nested,
            Hello(),
            RateLimit("outer", limit=2, window=outer, clock=clock),
            RateLimit("inner", window=inner, clock=clock),
        )
        call(limited)
        answer = call(limited)
        assert answer.values("Retry-After") == ["60"]
        assert answer.values("RateLimit") == [f'"inner";r=0;t={inner}', f'"outer";r=0;t={outer}']
        clock.advance(60.0)
        assert call(limited).code == 200

    def test_an_outer_window_with_room_does_not_lengthen_it(self, nested: bool, clock: FakeClock) -> None:
        outer, inner = RateLimit("outer", limit=3, clock=clock), RateLimit("inner", window=5, clock=clock)
        limited = self.build(nested, Hello(), outer, inner)
        call(limited)
        assert call(limited).values("Retry-After") == ["5"]

    def test_a_retry_after_of_the_user_s_own_stays(self, nested: bool, clock: FakeClock) -> None:
        answer = (429, {"Retry-After": "5"}, b"")
        inner = RateLimit("inner", window=5, clock=clock, response=lambda *_: answer)
        limited = self.build(nested, Hello(), RateLimit("outer", limit=2, clock=clock), inner)
        call(limited)
        assert call(limited).values("Retry-After") == ["5"]

    @pytest.mark.parametrize(
        ("broken", "code"), [({"store": BrokenStore()}, 503), ({"key": broken(KeyUnavailable)}, 500)]
    )
    @pytest.mark.parametrize("response", [None, lambda *_: Hello("503 Out")])
    def test_a_failure_inside_makes_no_claim_of_a_quota(
        self, nested: bool, clock: FakeClock, broken: dict[str, Any], code: int, response: Any
    ) -> None:
        """Nor does a limit further out, though it knows of one."""
        limits = [RateLimit("outer", limit=9, clock=clock), RateLimit("inner", limit=5, response=response, **broken)]
        answer = call(self.build(nested, Hello(), *limits))
        assert answer.code == (code if response is None else 503)
        assert [name for name in ("RateLimit", "RateLimit-Policy", "Retry-After") if answer.values(name)] == []

    def test_a_skip_is_of_one_limit_alone(self, nested: bool, clock: FakeClock) -> None:
        skipped = RateLimit("outer", limit=0, skip=lambda environ: True, clock=clock)
        answer = call(self.build(nested, Hello(), skipped, RateLimit("inner", limit=5, clock=clock)))
        assert answer.values("RateLimit") == ['"inner";r=4;t=60']


class TestExempt:
    """What is not counted."""

    def untouched(self, store: CountedStore, exempt: dict[str, Any], **request: Any) -> bool:
        """Whether the application alone answers."""
        app = Hello()
        answer = call(RateLimitMiddleware(app, limit=0, store=store, **exempt), **request)
        if answer.code == 429:
            return False
        assert answer.fields == app.fields
        assert CONTEXT not in app.environs[0]
        assert store.hits == []
        return True

    def test_methods(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, exempt_methods={"OPTIONS"})
        assert {call(limited, method="OPTIONS").code for _ in range(100)} == {200}
        assert store.hits == []
        assert self.untouched(store, {"exempt_methods": ["options"]}, method="OPTIONS")
        assert not self.untouched(store, {"exempt_methods": ["OPTIONS"]}, method="GET")

    @pytest.mark.parametrize(
        ("path", "is_exempt"),
        [
            ("/health", True),
            ("/health/", False),
            ("/healthy", False),
            ("/static/a.css", True),
            ("/static/", True),
            ("/static/a/b", True),
            ("/static", False),
            ("/static/../login", False),
            ("/static/..", False),
            ("/static/./a", False),
            ("/static//login", False),
            ("//static/a", False),
            ("/caf\u00c3\u00a9", True),  # as a server gives it
            ("/", False),
            ("", False),
        ],
    )
    def test_paths(self, path: str, is_exempt: bool, store: CountedStore) -> None:
        exempt = {"exempt_paths": ["/health", "/static/*", "/café"]}
        assert self.untouched(store, exempt, path=path) is is_exempt

    def test_a_path_is_that_from_the_root_of_the_host(self, store: CountedStore) -> None:
        exempt = {"exempt_paths": ["/shop/health"]}
        assert self.untouched(store, exempt, path="/health", SCRIPT_NAME="/shop")

    def test_whatever_a_function_says(self, store: CountedStore) -> None:
        assert self.untouched(store, {"skip": lambda environ: True})

    def test_a_skip_comes_before_all_else(self, store: CountedStore) -> None:
        exempt = {"skip": lambda environ: True, "key": broken(KeyUnavailable)}
        assert self.untouched(store, exempt)


class TestResponse:
    """The user's own answer for a refused request."""

    def test_it_is_given_the_environ_and_the_policy(self, store: CountedStore) -> None:
        seen: list[Any] = []

        def response(environ: Any, reason: Any) -> Any:
            seen.extend([environ, reason])
            return 429, {"Content-Type": "application/json"}, b"{}"

        given = environ()
        answer = call(checked(RateLimitMiddleware(Hello(), limit=0, store=store, response=response)), given)
        assert (answer.status, answer.body) == ("429 Too Many Requests", b"{}")
        assert (answer.value("Content-Type"), answer.value("Content-Length")) == ("application/json", "2")
        assert answer.value("RateLimit") == '"default-policy";r=0;t=60'
        assert answer.value("Retry-After") == "60"
        assert seen == [given, PolicyUsage("default-policy", 0, 60.0, 1, 60.0)]

    def test_it_is_given_the_failure(self) -> None:
        def response(environ: Any, reason: Any) -> Any:
            assert isinstance(reason, StoreUnavailable)
            return 502, [("X-Code", reason.code)], b""

        answer = call(RateLimitMiddleware(Hello(), store=BrokenStore(), response=response))
        assert (answer.status, answer.value("X-Code")) == ("502 Bad Gateway", "test_store_error")
        assert (answer.values("RateLimit"), answer.values("Retry-After")) == ([], [])

    def test_its_own_retry_after_stays_the_only_one(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(
            Hello(), limit=0, store=store, response=lambda *_: (503, [("retry-after", "120")], b"")
        )
        assert call(limited).values("Retry-After") == ["120"]

    def test_it_may_be_an_application(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: Hello("420 Calm"))
        answer = call(limited)
        assert (answer.status, answer.body) == ("420 Calm", b"hello")
        assert answer.value("Retry-After") == "60"

    def test_it_can_be_read_by_a_script_of_another_origin(self, store: CountedStore) -> None:
        fields = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After, RateLimit"}
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (429, fields, b"slow down"))
        assert call(limited).value("Access-Control-Allow-Origin") == "*"

    def test_head_has_no_body(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (429, {}, b"slow down"))
        answer = call(limited, method="HEAD")
        assert (answer.body, answer.value("Content-Length")) == (b"", "9")

    def test_what_it_raises_is_raised_and_lets_nothing_through(self, store: CountedStore) -> None:
        app = Hello()

        def response(environ: Any, reason: Any) -> Any:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            call(RateLimitMiddleware(app, limit=0, store=store, response=response))
        assert app.environs == []

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (None, TypeError),
            (b"", TypeError),
            ((429, {}), TypeError),
            ((429, {}, "text"), TypeError),
            (("429", {}, b""), ValueError),
            ((True, {}, b""), ValueError),
            ((101, {}, b""), ValueError),
            ((429, ["X-A: b"], b""), TypeError),
        ],
    )
    def test_what_is_none_is_told(self, answer: Any, error: type[Exception], store: CountedStore) -> None:
        with pytest.raises(error, match="response"):
            call(RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: answer))

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("X-A", "a\r\nSet-Cookie: b=tok9", ValueError),
            ("X-A", "tok9\n", ValueError),
            ("X-A", "tok9 \u20ac", ValueError),
            ("X-A", 5, TypeError),
            ("X-A", b"tok9", TypeError),
            ("X A", "a", ValueError),
            ("X-A\r\nX-B", "a", ValueError),
            ("Connection", "close", ValueError),
            ("transfer-encoding", "chunked", ValueError),
        ],
    )
    def test_a_field_that_cannot_be_sent_is_named(
        self, name: str, value: Any, error: type[Exception], store: CountedStore
    ) -> None:
        """A server would break off in the middle, or send a line that somebody else has made up."""
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (429, {name: value}, b""))
        with pytest.raises(error, match="response: (the name of a )?field") as raised:
            call(limited)
        assert name.split("\r")[0] in str(raised.value)
        assert "tok9" not in str(raised.value)

    def test_a_field_may_be_empty(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (429, {"X-A": ""}, b""))
        assert call(limited).value("X-A") == ""

    @pytest.mark.parametrize("status", [204, 304])
    def test_a_status_without_a_body_has_neither_that_nor_a_length(self, status: int, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (status, {}, b"body"))
        answer = call(checked(limited))
        assert (answer.values("Content-Length"), answer.body) == ([], b"")

    def test_not_even_one_of_its_own(self, store: CountedStore) -> None:
        answer = (204, {"Content-Length": "4"}, b"body")
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: answer)
        assert call(limited).values("Content-Length") == []

    def test_a_reset_of_a_form_says_that_it_is_empty(self, store: CountedStore) -> None:
        """RFC 9110, section 15.3.6."""
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, response=lambda *_: (205, {}, b"body"))
        answer = call(limited)
        assert (answer.value("Content-Length"), answer.body) == ("0", b"")


class TestPep3333:
    """To the letter: between a server and an application that check each other."""

    @pytest.fixture
    def limited(self, store: CountedStore) -> Any:
        return checked(RateLimitMiddleware(checked(Hello()), RateLimit(limit=1, store=store), RateLimit("b", limit=9)))

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
    def test_a_checker_finds_nothing_allowed_or_refused(self, limited: Any, method: str) -> None:
        assert [call(limited, method=method).code for _ in range(2)] == [200, 429]

    def test_the_iterable_is_the_application_s_own(self, store: CountedStore) -> None:
        body = Body(b"a", b"b")

        def app(environ: Any, start_response: Any) -> Body:
            start_response("200 OK", [("Content-Type", "text/plain")])
            return body

        returned = RateLimitMiddleware(app, limit=1, store=store)(environ(), lambda *_: None)
        assert returned is body
        assert call(RateLimitMiddleware(app, limit=1, store=store), peer="::1").body == b"ab"
        assert body.closed == 1

    def test_write_is_the_server_s(self, store: CountedStore) -> None:
        def app(environ: Any, start_response: Any) -> list[bytes]:
            write = start_response("200 OK", [("Content-Type", "text/plain")])
            write(b"written, ")
            return [b"returned"]

        assert call(RateLimitMiddleware(app, limit=1, store=store)).body == b"written, returned"

    def test_a_generator_may_start_its_response_late(self, store: CountedStore) -> None:
        def app(environ: Any, start_response: Any) -> Iterator[bytes]:
            start_response("200 OK", [("Content-Type", "text/plain")])
            yield b"late"

        answer = call(checked(RateLimitMiddleware(app, limit=1, store=store)))
        assert (answer.body, answer.value("RateLimit")) == (b"late", '"default-policy";r=0;t=60')

    def test_an_application_may_change_its_mind_with_exc_info(self, store: CountedStore) -> None:
        """The second response replaces the first, and has the fields too, once."""
        told: list[tuple[Any, ...]] = []

        def app(environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [("Content-Type", "text/plain")])
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                start_response("500 Oh", [("Content-Type", "text/plain")], current_exception())
            return [b"oh"]

        RateLimitMiddleware(app, limit=1, store=store)(environ(), lambda *given: told.append(given))
        first, second = told
        assert len(first) == 2
        assert second[0] == "500 Oh" and second[2][0] is ZeroDivisionError
        assert [name for name, _ in second[1]] == ["Content-Type", "RateLimit-Policy", "RateLimit"]

    def test_what_the_server_raises_for_exc_info_reaches_the_application(self, store: CountedStore) -> None:
        """Once the header section is out, a server raises the exception again."""

        def start_response(status: str, headers: Any, exc_info: Any = None) -> Any:
            if exc_info:
                raise exc_info[1].with_traceback(exc_info[2])

        def app(environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                start_response("500 Oh", [], current_exception())
            return [b"not reached"]

        with pytest.raises(ZeroDivisionError):
            RateLimitMiddleware(app, limit=1, store=store)(environ(), start_response)

    def test_the_application_s_list_of_fields_is_not_changed(self, store: CountedStore) -> None:
        fields = [("Content-Type", "text/plain")]

        def app(environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", fields)
            return []

        call(RateLimitMiddleware(app, limit=1, store=store))
        assert fields == [("Content-Type", "text/plain")]

    def test_a_refused_request_s_body_is_not_read(self, store: CountedStore) -> None:
        class Unreadable:
            def __getattr__(self, name: str) -> Any:
                raise AssertionError(f"wsgi.input.{name} was asked for")

        given = environ("POST", **{"wsgi.input": Unreadable(), "CONTENT_LENGTH": "5"})
        assert call(RateLimitMiddleware(Hello(), limit=0, store=store), given).code == 429

    def test_replies_are_not_shared_between_requests(self, store: CountedStore) -> None:
        """A server may change the list that it is given."""
        limited = RateLimitMiddleware(Hello(), limit=0, store=store, fields="none")
        for _ in range(3):
            told: list[Any] = []
            limited(environ(), lambda status, headers, told=told: told.append(headers))
            assert len(told[0]) == 3
            told[0].append(("X-Server", "s"))

    def test_the_environ_keeps_its_address(self, store: CountedStore) -> None:
        app = Hello()
        given = environ(peer="10.0.0.1", x_forwarded_for="9.9.9.9")
        call(RateLimitMiddleware(app, limit=1, store=store, key=TrustedProxies(hops=1)), given)
        assert app.environs[0] is given
        assert given["REMOTE_ADDR"] == "10.0.0.1"


class TestManyProcesses:
    """A store of this process alone, in a server of several."""

    def several(self, *limited: Any, times: int = 1) -> None:
        for one in limited * times:
            call(one, **{"wsgi.multiprocess": True})

    def test_it_is_told_once(self, store: CountedStore) -> None:
        limited = RateLimitMiddleware(Hello(), RateLimit("search", limit=9, store=store), RateLimit("login", limit=9))
        with pytest.warns(RuntimeWarning, match=r"'search', 'login'.* several processes") as caught:
            self.several(limited, times=3)
        assert len(caught) == 1

    def test_each_middleware_tells_it(self) -> None:
        with pytest.warns(RuntimeWarning) as caught:
            self.several(RateLimitMiddleware(Hello(), limit=9), RateLimitMiddleware(Hello(), limit=9))
        assert len(caught) == 2

    def test_of_many_threads_one_tells_it(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=99)
        barrier = threading.Barrier(16)

        def request() -> None:
            barrier.wait(10)
            self.several(limited)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            threads = [threading.Thread(target=request) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
        assert len(caught) == 1

    def test_one_process_is_no_matter(self) -> None:
        call(RateLimitMiddleware(Hello(), limit=9), **{"wsgi.multiprocess": False})

    def test_neither_is_a_shared_store(self) -> None:
        self.several(RateLimitMiddleware(Hello(), limit=9, store=BrokenStore()))

    def test_an_exempt_request_is_told_too(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=9, exempt_paths=["/health"])
        with pytest.warns(RuntimeWarning):
            call(limited, path="/health", **{"wsgi.multiprocess": True})


class TestThreads:
    """What is let through is counted exactly."""

    def test_never_more_than_the_limit(self) -> None:
        limited = RateLimitMiddleware(Hello(), limit=100)
        barrier = threading.Barrier(16)
        codes: list[int] = []

        def requests() -> None:
            barrier.wait(10)
            for _ in range(20):
                codes.append(call(limited).code)

        threads = [threading.Thread(target=requests) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (codes.count(200), codes.count(429)) == (100, 220)


class TestArguments:
    """Bad input."""

    @pytest.mark.parametrize(
        ("arguments", "settings", "error", "said"),
        [
            ((None,), {}, TypeError, "app"),
            ((Hello(), 5), {}, TypeError, "limits"),
            ((Hello(), RateLimit()), {"limit": 5}, TypeError, "limit"),
            ((Hello(), RateLimit(), RateLimit(on_limit="raise", name="b")), {}, ValueError, "on_limit"),
            ((Hello(),), {"on_limit": "wait"}, ValueError, "on_limit"),
            ((Hello(),), {"margin": 1.0}, ValueError, "margin"),
            ((Hello(),), {"limits": 5}, TypeError, "limits"),
            ((Hello(),), {"limit": -1}, ValueError, "limit"),
            ((Hello(),), {"exempt_methods": "OPTIONS"}, TypeError, "exempt_methods"),
            ((Hello(),), {"exempt_methods": ["OP TIONS"]}, ValueError, "exempt_methods"),
            ((Hello(),), {"exempt_paths": "/health"}, TypeError, "exempt_paths"),
            ((Hello(),), {"exempt_paths": ["health"]}, ValueError, "exempt_paths"),
            ((Hello(),), {"exempt_paths": ["/*/health"]}, ValueError, "exempt_paths"),
            ((Hello(),), {"exempt_paths": ["/stat*"]}, ValueError, "exempt_paths"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(
        self, arguments: Any, settings: dict[str, Any], error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            RateLimitMiddleware(*arguments, **settings)

    def test_two_limits_of_one_name_and_store_would_count_twice(self, store: CountedStore) -> None:
        with pytest.raises(ValueError, match="one store"):
            RateLimitMiddleware(Hello(), RateLimit(limit=5, store=store), RateLimit(limit=9, store=store))
        with pytest.raises(ValueError, match="one store"):
            RateLimitMiddleware(Hello(), RateLimit(store=store), RateLimit(key=PeerAddress(), store=store))
        RateLimitMiddleware(Hello(), RateLimit(store=store), RateLimit(key=TrustedProxies(hops=1), store=store))

    def test_a_repr_says_what_it_is(self) -> None:
        assert repr(RateLimitMiddleware(Hello(), limit=5)).startswith("RateLimitMiddleware(<")
