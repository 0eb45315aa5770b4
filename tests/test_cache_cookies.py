"""Cookies that come over the wire reach the session once, also with an answer whose body is a stored one."""

from __future__ import annotations

import pytest
import requests

from kreuz_sync.stack import Stack
from kreuz_sync.transport import Transport

from .cache_sessions import FRESH, caching, rfc, ttl
from .loopback import answer, echo, redirect, sequence
from .waiting import eventually

STALE = {"Cache-Control": "max-age=0", "ETag": '"a"'}


def setting(*lines):
    """Fields that set these cookies."""
    return [("Set-Cookie", line) for line in lines]


class TestValidated:
    """A 304 confirms a body, and may set cookies."""

    def test_its_cookies_reach_the_session(self, server):
        url = server.route(
            "/page", sequence(answer(body="1", fields=STALE), answer(304, fields=setting("a=1; Path=/", "b=2; Path=/")))
        )
        with caching(rfc()) as session:
            session.get(url)
            validated = session.get(url)
            assert (validated.from_cache, validated.text) == (True, "1")
            assert dict(session.cookies) == dict(validated.cookies) == {"a": "1", "b": "2"}
            session.get(server.route("/echo", echo))
        assert server.last.fields["Cookie"] == "a=1; b=2"

    def test_a_hit_after_that_sets_none(self, server):
        confirmed = answer(304, fields=[("Cache-Control", "max-age=60"), *setting("a=1; Path=/")])
        url = server.route("/page", sequence(answer(body="1", fields=STALE), confirmed))
        with caching(rfc(ignored_cookies=["a"])) as session:
            session.get(url)
            session.get(url)
            session.cookies.clear()
            hit = session.get(url)
            assert (hit.cache_status, dict(session.cookies)) == ("kreuz; hit; ttl=59", {})

    def test_a_cookie_may_be_taken_away(self, server):
        gone = "a=; Path=/; Max-Age=0"
        url = server.route("/page", sequence(answer(body="1", fields=STALE), answer(304, fields=setting(gone))))
        with caching(rfc(ignored_cookies=["a"])) as session:
            session.get(url)
            session.cookies.set("a", "1", domain="127.0.0.1", path="/")
            assert session.get(url).from_cache
            assert dict(session.cookies) == {}

    def test_a_stream_of_a_validated_answer_is_read_as_ever(self, server):
        url = server.route("/page", sequence(answer(body="12", fields=STALE), answer(304, fields=setting("a=1"))))
        with caching(rfc()) as session:
            session.get(url)
            validated = session.get(url, stream=True)
            assert dict(session.cookies) == {"a": "1"}
            assert (list(validated.iter_content(None)), validated.raw.closed, validated.raw.read()) == (
                *([b"12"], True, b""),
            )

    def test_the_next_hop_of_a_redirect_has_them(self, server):
        moved = redirect("/echo", 301, fields=STALE)
        server.route("/moved", sequence(moved, answer(304, fields=setting("a=1; Path=/"))))
        server.route("/echo", lambda request: answer(body=request.fields.get("Cookie") or "none"))
        with caching(rfc()) as session:
            texts = [session.get(server.url("/moved")).text for _ in range(2)]
        assert texts == ["none", "a=1"]

    def test_a_response_hook_sees_the_session_as_it_was(self, server):
        """As requests has it: the jar comes after the hooks, once."""
        url = server.route("/page", sequence(answer(body="1", fields=STALE), answer(304, fields=setting("a=1"))))
        seen = []
        with caching(rfc()) as session:
            for _ in range(2):
                session.get(url, hooks={"response": lambda response, **_: seen.append(dict(session.cookies))})
        assert (seen, dict(session.cookies)) == ([{}, {}], {"a": "1"})

    def test_a_session_of_requests_with_this_stack_has_them_too(self, server):
        url = server.route("/page", sequence(answer(body="1", fields=STALE), answer(304, fields=setting("a=1"))))
        with requests.Session() as session:
            session.mount("http://", Stack([rfc()], Transport(requests.adapters.HTTPAdapter())))
            session.get(url)
            assert (session.get(url).from_cache, dict(session.cookies)) == (True, {"a": "1"})


class TestOtherwise:
    def test_those_of_a_206_that_completes_a_stored_part_reach_it(self, server):
        part = [("ETag", '"a"'), *FRESH.items()]
        begin = answer(206, body=b"01234", fields=[*part, ("Content-Range", "bytes 0-4/10")])
        rest = answer(206, body=b"56789", fields=[*part, ("Content-Range", "bytes 5-9/10"), *setting("a=1")])
        url = server.route("/page", sequence(begin, rest))
        with caching(rfc(store_parts=True)) as session:
            session.get(url, headers={"Range": "bytes=0-4"})
            whole = session.get(url)
            assert (whole.content, whole.from_cache, dict(session.cookies)) == (b"0123456789", True, {"a": "1"})

    def test_those_of_an_error_that_a_stored_answer_stands_in_for_do(self, server):
        url = server.route(
            "/page", sequence(answer(body="1", fields={"ETag": '"a"'}), answer(503, fields=setting("a=1")))
        )
        cache = ttl(60, stale_if_error=600)
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(61)
            assert (session.get(url).text, dict(session.cookies)) == ("1", {"a": "1"})

    def test_those_of_a_304_that_confirms_nothing_come_before_those_of_the_answer(self, server):
        unknown = answer(304, fields=[("ETag", '"other"'), *setting("a=1", "b=1")])
        again = answer(body="2", fields=setting("b=2", "c=2"))
        url = server.route("/page", sequence(answer(body="1", fields=STALE), unknown, again))
        with caching(rfc()) as session:
            session.get(url)
            assert session.get(url).text == "2"
            assert dict(session.cookies) == {"a": "1", "b": "2", "c": "2"}

    @pytest.mark.parametrize("status", [304, 200])
    def test_those_of_a_renewal_in_the_background_do(self, server, status):
        fields = {"Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": '"a"'}
        renewed = answer(status, fields=setting("a=1; Path=/"))
        url = server.route("/page", sequence(answer(body="1", fields=fields), renewed))
        cache = rfc()
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(5)
            assert session.get(url).text == "1"
            eventually(lambda: cache.statistics.refreshed)
            assert dict(session.cookies) == {"a": "1"}

    @pytest.mark.parametrize("cache", [ttl, rfc])
    def test_a_hit_touches_no_jar(self, server, cache):
        url = server.route("/page", answer(fields=[*FRESH.items(), *setting("a=1")]))
        with caching(cache()) as session:
            session.get(url)
            session.cookies.clear()
            hit = session.get(url)
            assert (hit.from_cache, dict(hit.cookies), dict(session.cookies)) == (True, {"a": "1"}, {})
