"""The servers of the tests themselves, seen from a plain socket and from plain requests."""

from __future__ import annotations

import socket
import threading
import time

import pytest
import requests

from .loopback import (
    Authority,
    BasicAuth,
    DigestAuth,
    Ending,
    ForwardProxy,
    Raw,
    Server,
    answer,
    chunked,
    cut,
    cut_chunked,
    deflated,
    drip,
    garbage,
    gzipped,
    hang_up,
    json_answer,
    redirect,
    reset,
    sequence,
    set_cookies,
    silent,
)


def bytes_of(server: Server, request: bytes) -> bytes:
    """Everything that the server says to `request`, until it closes."""
    with socket.create_connection(server.address, timeout=10) as sock:
        sock.sendall(request)
        return b"".join(iter(lambda: sock.recv(65536), b""))


GET_AND_CLOSE = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class TestTheLog:
    """What came, when, and on which connection."""

    def test_a_request_is_logged_whole(self, server):
        requests.post(server.url("/a%20b?q=1&q=2"), data=b"body", headers={"X-Name": "v"})
        (one,) = server.requests
        assert (one.method, one.target, one.path, one.query) == ("POST", "/a%20b?q=1&q=2", "/a%20b", "q=1&q=2")
        assert one.params == [("q", "1"), ("q", "2")]
        assert one.body == b"body"
        assert one.fields["x-name"] == "v"
        assert one.host == f"127.0.0.1:{server.port}"

    def test_arrivals_are_on_the_monotonic_clock(self, server):
        before = time.monotonic()
        requests.get(server.url())
        assert before <= server.last.at <= time.monotonic()

    def test_one_session_keeps_its_connection(self, server):
        with requests.Session() as session:
            session.get(server.url())
            session.get(server.url())
        requests.get(server.url())
        assert [one.connection for one in server.requests] == [1, 1, 2]
        assert server.accepted == 2

    def test_a_body_in_chunks_is_put_together(self, server):
        requests.post(server.url("/echo"), data=iter([b"one", b"two"]))
        assert server.last.body == b"onetwo"
        assert server.last.chunked

    def test_a_body_that_breaks_off_is_marked(self, server):
        with socket.create_connection(server.address) as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
        (one,) = server.wait_for(1)
        assert not one.complete

    def test_several_addresses_share_a_port(self, server):
        requests.get(server.url(host="127.0.0.2"))
        assert server.last.local == ("127.0.0.2", server.port)

    def test_requests_at_once_are_counted(self, server):
        gate = threading.Event()
        server.route("/held", answer(delay=gate))
        threads = [threading.Thread(target=requests.get, args=(server.url("/held"),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        server.wait_for(3)
        gate.set()
        for thread in threads:
            thread.join(10)
        assert server.peak == 3


class TestAnswers:
    """Each ready-made answer, as bytes on the wire."""

    @pytest.mark.parametrize(
        ("what", "wire"),
        [
            (204, b"HTTP/1.1 204 No Content\r\n\r\n"),
            (answer(body="x"), b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
            (answer(reason="Fine", length=3, body=b"x"), b"HTTP/1.1 200 Fine\r\nContent-Length: 3\r\n\r\nx"),
            (answer(length=None, body=b"x"), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx"),
            (
                chunked(b"a", b"bc"),
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
            ),
            (cut(b"abcdef", 2), b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab"),
            (cut_chunked(b"abc"), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
            (redirect("/b", 301), b"HTTP/1.1 301 Moved Permanently\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
            (
                set_cookies("a=1", "b=2"),
                b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
            ),
            (garbage(b"\x00"), b"\x00"),
            (hang_up(), b""),
            (Raw([b"one", 0.001, b"two", Ending.CLOSE]), b"onetwo"),
            (drip(b"abc", pause=0.001), b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
        ],
    )
    def test_the_bytes_are_as_written(self, server, what, wire):
        server.route("/it", what)
        assert bytes_of(server, GET_AND_CLOSE % b"/it") == wire

    def test_a_sequence_ends_with_its_last(self, server):
        url = server.route("/it", sequence(503, json_answer([1]), lambda request: 418))
        assert [requests.get(url).status_code for _ in range(4)] == [503, 200, 418, 418]

    @pytest.mark.parametrize("what", [gzipped("text"), deflated("text"), deflated("text", bare=True)])
    def test_codings_are_what_they_say(self, server, what):
        assert requests.get(server.route("/it", what)).text == "text"

    def test_a_head_request_gets_no_body(self, server):
        server.route("/it", answer(body="four"))
        assert bytes_of(server, (GET_AND_CLOSE % b"/it").replace(b"GET", b"HEAD")).endswith(b"Length: 4\r\n\r\n")

    @pytest.mark.parametrize("what", [reset(), hang_up(), garbage()])
    def test_no_answer_is_a_connection_error(self, server, what):
        with pytest.raises(requests.ConnectionError):
            requests.get(server.route("/it", what))

    def test_silence_lasts_until_the_client_leaves(self, server):
        with pytest.raises(requests.ReadTimeout):
            requests.get(server.route("/it", silent()), timeout=0.05)
        server.wait_until_idle()

    def test_the_longest_prefix_wins(self, server):
        server.route("/a/*", 201)
        server.route("/a/b/*", 202)
        assert [requests.get(server.url(path)).status_code for path in ("/a/c", "/a/b/c", "/d")] == [201, 202, 404]


class TestCredentials:
    def test_basic(self, server):
        url = server.route("/it", BasicAuth("me", "pw"))
        assert requests.get(url).status_code == 401
        assert requests.get(url, auth=("me", "pw")).status_code == 200

    @pytest.mark.parametrize("algorithm", ["MD5", "SHA", "SHA-256", "SHA-512"])
    def test_digest(self, server, algorithm):
        wants = DigestAuth("me", "pw", algorithm=algorithm)
        url = server.route("/it", wants)
        assert requests.get(url, auth=requests.auth.HTTPDigestAuth("me", "no")).status_code == 401
        assert requests.get(url, auth=requests.auth.HTTPDigestAuth("me", "pw")).status_code == 200
        assert [1] in wants.counts.values()


class TestTheProxy:
    def test_a_whole_url_is_fetched(self, server, proxy):
        got = requests.post(server.url("/echo?q"), data="x", proxies={"http": proxy.url()}).json()
        assert (got["method"], got["target"], got["body"]) == ("POST", "/echo?q", "x")
        assert proxy.last.target == server.url("/echo?q")

    def test_a_tunnel_is_opened(self, tls_server, proxy, authority):
        got = requests.get(tls_server.url(), proxies={"https": proxy.url()}, verify=authority.bundle)
        assert got.text == "ok"
        assert proxy.tunnels == [f"127.0.0.1:{tls_server.port}"]

    def test_any_name_may_be_used(self, server, proxy):
        proxy.names["example.test"] = server.address
        assert requests.get("http://example.test/", proxies={"http": proxy.url()}).text == "ok"
        assert server.last.host == "example.test"

    def test_credentials_are_asked_for(self, server):
        with ForwardProxy(credentials=("me", "pw")) as proxy:
            assert requests.get(server.url(), proxies={"http": proxy.url()}).status_code == 407
            known = proxy.url(host="me:pw@127.0.0.1")
            assert requests.get(server.url(), proxies={"http": known}).status_code == 200
        assert "Proxy-Authorization" not in server.last.fields

    def test_an_origin_that_is_not_there_is_a_502(self, proxy):
        with Server() as gone:
            url = gone.url()
        assert requests.get(url, proxies={"http": proxy.url()}).status_code == 502


class TestTls:
    def test_the_certificate_is_not_trusted_by_itself(self, tls_server):
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(tls_server.url())
        tls_server.wait_until_idle()
        assert len(tls_server.handshakes_failed) == 1

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_it_is_good_for_loopback(self, tls_server, authority, host):
        assert requests.get(tls_server.url(host=host), verify=authority.bundle).text == "ok"

    def test_a_client_certificate_may_be_wanted(self, authority: Authority):
        with Server(tls=authority.server_context(wants_client=True)) as server:
            with pytest.raises(requests.ConnectionError):
                requests.get(server.url(), verify=authority.bundle)
            requests.get(server.url(), verify=authority.bundle, cert=authority.client_files())
            assert server.last.certificate


class TestTheEnd:
    def test_nothing_is_left_running(self):
        before = set(threading.enumerate())
        with Server() as server, ForwardProxy() as proxy, requests.Session() as session:
            session.get(server.url())
            session.get(server.url(), proxies={"http": proxy.url()})
            with pytest.raises(requests.ReadTimeout):
                session.get(server.route("/silent", silent()), timeout=0.01)
        assert set(threading.enumerate()) == before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.address)
