"""The wire: one attempt, its body, its limits, and what a fork must not share."""

import gzip
import os
import pickle
import threading

import pytest
import requests
from requests.adapters import HTTPAdapter

from kreuz_sync.errors import BodyTooLarge, DataLoss
from kreuz_sync.response import Response
from kreuz_sync.stack import Stack
from kreuz_sync.transport import Transport
from kreuz_sync.waf import DEFAULT_WAF

from .fakes import ScriptedAdapter, prepared
from .loopback import answer, cut, echo, redirect

CHALLENGE = {"cf-mitigated": "challenge"}


def wire(*answers, **limits):
    return Stack([], Transport(ScriptedAdapter(*answers), **limits))


class TestBody:
    def test_without_stream_it_is_read_inside_the_attempt(self):
        response = wire((200, (), b"abc")).send(prepared())
        assert response._content == b"abc" and type(response) is Response

    def test_with_stream_it_is_left_to_the_caller(self):
        response = wire((200, (), b"abc")).send(prepared(), stream=True)
        assert response.raw.tell() == 0 and response.raw.read() == b"abc"

    def test_a_body_that_a_double_gave_whole_counts_against_the_limit(self):
        class Double(ScriptedAdapter):
            def send(self, request, **options):
                response = super().send(request, **options)
                response._content = b"x" * 11
                return response

        with pytest.raises(BodyTooLarge):
            Stack([], Transport(Double(), max_body=10)).send(prepared())

    def test_a_redirect_is_followed_whatever_became_of_its_body(self):
        response = wire((302, {"Location": "/b", "Content-Length": "20"}, b"x" * 5)).send(prepared())
        assert response.is_redirect and response.content == b"x" * 5
        with pytest.raises(DataLoss):
            wire((200, {"Content-Length": "20"}, b"x" * 5)).send(prepared())

    def test_a_tolerance_holds_for_streams(self, server):
        """The reference pipeline's 100 bytes, over a real wire, where urllib3 would raise by itself."""
        url = server.route("/", cut(b"x" * 1000, 950))
        tolerant = Stack([], Transport(HTTPAdapter(), length_tolerance=100))
        try:
            assert len(tolerant.send(prepared(url), stream=True, timeout=5).content) == 950
        finally:
            tolerant.close()


class TestConnections:
    def test_a_body_that_was_too_large_leaves_a_usable_wire(self, server):
        big = server.route("/big", answer(body=b"x" * 100_000, fields={"Content-Type": "image/png"}))
        small = server.route("/small", answer(body=b"ok"))
        limited = Stack([], Transport(HTTPAdapter(), max_body=1000))
        try:
            for _ in range(3):
                with pytest.raises(BodyTooLarge):
                    limited.send(prepared(big), timeout=5)
                assert limited.send(prepared(small), timeout=5).content == b"ok"
        finally:
            limited.close()

    def test_one_connection_serves_one_request_after_another(self, server):
        url = server.route("/", echo)
        plain = Stack([], Transport(HTTPAdapter()))
        try:
            for _ in range(5):
                plain.send(prepared(url), timeout=5)
        finally:
            plain.close()
        assert len({one.connection for one in server.requests}) == 1


class TestChallenges:
    def test_a_challenge_is_marked_and_not_raised(self):
        response = wire((200, CHALLENGE, b""), waf=DEFAULT_WAF).send(prepared())
        assert response.waf.vendor == "cloudflare"
        with pytest.raises(requests.HTTPError):
            response.raise_for_status()

    def test_without_rules_none_is_looked_for(self):
        assert wire((403, CHALLENGE, b"")).send(prepared()).waf is None

    def test_a_compressed_page_is_looked_at_decoded(self):
        page = gzip.compress(b'<html><script id="anubis_challenge" type="application/json">{}</script></html>')
        fields = {"Content-Encoding": "gzip", "Content-Type": "text/html"}
        assert wire((200, fields, page), waf=DEFAULT_WAF).send(prepared()).waf.vendor == "anubis"

    def test_a_stream_is_judged_by_its_header_section_at_once(self):
        response = wire((403, CHALLENGE, b"<html>"), waf=DEFAULT_WAF).send(prepared(), stream=True)
        assert response.waf is not None and response.raw.tell() == 0

    def test_it_is_told_once_for_each_host(self, caplog):
        mounted = wire((403, CHALLENGE, b""), waf=DEFAULT_WAF)
        for url in ("http://a.test/?token=s3cret", "http://a.test/2", "http://b.test/"):
            mounted.send(prepared(url))
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
        assert caplog.messages[0] == "a.test: a challenge page of cloudflare in place of http://a.test/?token=REDACTED"

    def test_a_small_page_that_was_streamed_is_judged_at_its_end(self):
        page = b'<html><script id="anubis_challenge" type="application/json">{}</script></html>'
        response = wire((200, {"Content-Type": "text/html", "Content-Length": str(len(page))}, page), waf=DEFAULT_WAF)
        response = response.send(prepared(), stream=True)
        assert response.waf is None
        assert b"".join(response.iter_content(7)) == page
        assert response.waf.vendor == "anubis"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
class TestFork:
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_a_child_opens_connections_of_its_own(self, server):
        """Parent and child, on one socket, would read each other's answers."""
        url = server.route("/", echo)
        plain = Stack([], Transport(HTTPAdapter()))
        try:
            plain.send(prepared(url), timeout=5)
            child = os.fork()
            if child == 0:
                try:
                    plain.send(prepared(url), timeout=5)
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            plain.send(prepared(url), timeout=5)
        finally:
            plain.close()
        first, second, third = (one.connection for one in server.requests)
        assert first == third != second


class TestPickling:
    def test_settings_travel_and_pools_do_not(self, server):
        url = server.route("/", answer(body=b"x" * 11))
        plain = Stack([], Transport(HTTPAdapter(pool_maxsize=7), max_body=10, waf=DEFAULT_WAF))
        copy = pickle.loads(pickle.dumps(plain))
        try:
            assert copy.adapter._pool_maxsize == 7
            with pytest.raises(BodyTooLarge):
                copy.send(prepared(url), timeout=5)
        finally:
            copy.close()


def test_redirects_are_left_to_the_session(server):
    url = server.route("/", redirect("/elsewhere"))
    plain = Stack([], Transport(HTTPAdapter()))
    try:
        response = plain.send(prepared(url), timeout=5)
    finally:
        plain.close()
    assert response.status_code == 302 and len(server.requests) == 1


def test_threads_share_one_transport(server):
    """Sixteen threads, 20 requests each: as many answers, each its own."""
    url = server.route("/", echo)
    plain, barrier, bodies = Stack([], Transport(HTTPAdapter(pool_maxsize=16))), threading.Barrier(16), []

    def work(number):
        barrier.wait(10)
        for count in range(20):
            response = plain.send(prepared(f"{url}?n={number}-{count}"), timeout=10)
            bodies.append(f"n={number}-{count}" in response.text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    plain.close()
    assert bodies == [True] * 320
