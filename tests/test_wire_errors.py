"""What the wire raises, typed: real sockets, real failures."""

import socket
import time
from contextlib import closing

import pytest
import requests
from requests import exceptions as theirs
from requests.adapters import HTTPAdapter

from kreuz_sync import errors
from kreuz_sync.stack import Stack
from kreuz_sync.transport import Transport
from kreuz_sync.wire_errors import require_possible_host, translate

from .fakes import ScriptedAdapter, prepared
from .loopback import Raw, answer, chunked, cut, cut_chunked, drip, garbage, hang_up, reset, silent

OPTIONS = {"timeout": 5.0}


@pytest.fixture
def wire():
    stack = Stack([], Transport(HTTPAdapter()))
    with closing(stack):
        yield lambda url, **options: stack.send(prepared(url), **{**OPTIONS, **options})


def prepared_as_is(url):
    request = requests.PreparedRequest()
    request.method, request.url = "GET", url
    return request


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class TestConnecting:
    def test_nobody_listens(self, wire):
        with pytest.raises(requests.ConnectionError) as caught:
            wire(f"http://127.0.0.1:{unused_port()}/?token=s3cret")
        assert type(caught.value) is errors.ConnectionRefused
        assert isinstance(caught.value.__cause__, ConnectionRefusedError)
        assert caught.value.request.method == "GET" and caught.value.attempts == 1

    @pytest.mark.parametrize("host", ["nobody.invalid", "proxy.invalid", "timeout.ssl.invalid"])
    def test_a_name_without_address_is_told_by_its_kind_not_its_words(self, wire, host):
        with pytest.raises(requests.ConnectionError) as caught:
            wire(f"http://{host}/")
        assert type(caught.value) is errors.DnsError

    def test_a_server_that_is_not_trusted(self, wire, tls_server):
        with pytest.raises(theirs.SSLError) as caught:
            wire(tls_server.url("/"))
        assert type(caught.value) is errors.SslError

    def test_a_proxy_that_is_not_there(self, wire):
        with pytest.raises(theirs.ProxyError) as caught:
            wire("http://example.test/", proxies={"http": f"http://me:s3cret@127.0.0.1:{unused_port()}"})
        assert type(caught.value) is errors.ProxyError
        assert "s3cret" not in str(caught.value)

    def test_no_connection_in_time(self, wire):
        """A queue that is full takes nobody in."""
        with socket.socket() as listener, socket.socket() as one, socket.socket() as two:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for filler in (one, two):
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            time.sleep(0.05)
            with pytest.raises(requests.ConnectTimeout) as caught:
                wire(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout=0.2)
        assert type(caught.value) is errors.ConnectTimeout


class TestAnswering:
    @pytest.mark.parametrize(
        ("what", "kind", "theirs_too"),
        [
            (hang_up(), errors.ConnectionFailed, requests.ConnectionError),
            (reset(), errors.ConnectionFailed, requests.ConnectionError),
            (garbage(), errors.ProtocolViolation, requests.ConnectionError),
            (cut(b"x" * 20, 5), errors.DataLoss, theirs.ChunkedEncodingError),
            (cut_chunked(b"x" * 20), errors.DataLoss, theirs.ChunkedEncodingError),
            (
                answer(body=b"plain", fields={"Content-Encoding": "gzip"}),
                errors.UndecodableBody,
                theirs.ContentDecodingError,
            ),
        ],
    )
    def test_each_failure_has_its_type(self, wire, server, what, kind, theirs_too):
        url = server.route("/", what)
        with pytest.raises(theirs_too) as caught:
            wire(url)
        assert type(caught.value) is kind

    def test_no_answer_in_time(self, wire, server):
        with pytest.raises(requests.ReadTimeout) as caught:
            wire(server.route("/", silent()), timeout=0.1)
        assert type(caught.value) is errors.ReadTimeout

    def test_a_body_that_stops_coming_is_a_time_out_and_what_requests_says(self, wire, server):
        url = server.route("/", drip(b"x" * 100, piece=50, pause=1.0))
        with pytest.raises(requests.ConnectionError) as caught:
            wire(url, timeout=0.1)
        assert type(caught.value) is errors.BodyTimeout and isinstance(caught.value, requests.Timeout)

    def test_a_cut_stream_raises_where_it_is_read(self, wire, server):
        response = wire(server.route("/", cut(b"x" * 20, 5)), stream=True)
        with pytest.raises(errors.DataLoss) as caught:
            response.content  # noqa: B018
        assert (caught.value.expected, caught.value.received) == (20, 5)

    def test_a_whole_chunked_body_passes(self, wire, server):
        assert wire(server.route("/", chunked(b"ab", b"cd"))).content == b"abcd"

    def test_two_different_lengths_are_impossible(self, wire, server):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
        with pytest.raises(requests.RequestException) as caught:
            wire(server.route("/", Raw([head])))
        assert type(caught.value) is errors.ProtocolViolation
        assert isinstance(caught.value, theirs.InvalidHeader)


class TestText:
    def test_no_credentials_in_the_text_or_in_what_a_traceback_shows(self, wire):
        """urllib3 quotes the URL with its query; that error is not shown."""
        with pytest.raises(errors.ConnectionRefused) as caught:
            wire(f"http://me:s3cret@127.0.0.1:{unused_port()}/?token=s3cret")
        shown, error = [], caught.value
        while error is not None:
            shown.append(str(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        assert "s3cret" not in " ".join(shown)
        assert "REDACTED" in shown[0]

    def test_the_text_says_what_to_what_and_why(self, wire):
        port = unused_port()
        with pytest.raises(errors.ConnectionRefused) as caught:
            wire(f"http://127.0.0.1:{port}/a")
        assert str(caught.value) == f"GET http://127.0.0.1:{port}/a: connection refused (Connection refused)"


class TestTranslate:
    def test_a_users_own_subclass_passes_as_it_is(self):
        class Theirs(requests.ConnectionError):
            pass

        assert translate(Theirs("x"), prepared()) is None

    def test_an_error_from_a_test_double_is_typed_by_its_class(self):
        stack = Stack([], Transport(ScriptedAdapter(requests.ConnectTimeout("slow"))))
        with pytest.raises(errors.ConnectTimeout):
            stack.send(prepared())

    @pytest.mark.parametrize(
        "error",
        [
            requests.ConnectionError("boom"),
            requests.ReadTimeout("boom"),
            theirs.SSLError("boom"),
            theirs.ChunkedEncodingError("boom, see http://me:s3cret@h.test/"),
        ],
    )
    def test_what_a_test_double_has_to_say_is_said(self, error):
        stack = Stack([], Transport(ScriptedAdapter(error)))
        with pytest.raises(type(error), match="boom") as caught:
            stack.send(prepared())
        assert "s3cret" not in str(caught.value)

    def test_a_host_that_cannot_exist_is_an_invalid_url(self, wire):
        """Not a connection that failed, which would be tried again."""
        for host in ("a..b", "x" * 70 + ".test"):
            with pytest.raises(theirs.InvalidURL):
                wire(f"http://{host}/")

    @pytest.mark.parametrize(
        "host", ["a%2Fb", "a%2fb:80", "me:pw@a%40b", "a%3f", "a%23b", "a%5cb", "a%20b", "a%00", "a%25b"]
    )
    def test_nor_can_one_with_an_escaped_delimiter(self, host):
        """Who decodes it, such as a proxy, would ask another host."""
        with pytest.raises(theirs.InvalidURL, match="no such host") as caught:
            require_possible_host(prepared_as_is(f"http://{host}/x"))
        assert "pw" not in str(caught.value)

    @pytest.mark.parametrize(
        "url", ["http://a/b%2Fc", "http://[fe80::1%25eth0]/", "http://m%40e@a/", "http://a?b%2F", "x:%2F"]
    )
    def test_escapes_elsewhere_are_fine(self, url):
        require_possible_host(prepared_as_is(url))

    def test_a_chain_that_bites_its_tail_ends(self):
        one, two = OSError("one"), OSError("two")
        one.__cause__, two.__cause__ = two, one
        error = requests.ConnectionError(one)
        typed = translate(error, prepared())
        assert type(typed) is errors.ConnectionFailed
