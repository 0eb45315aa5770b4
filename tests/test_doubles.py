"""Test doubles as users use them: `responses`, `requests_mock` and `vcrpy`, on our session."""

from __future__ import annotations

import threading

import pytest
import requests

import kreuz_sync
from kreuz_sync import Retry, Session, Throttle

from .fakes import FakeClock
from .loopback import answer, gzipped, redirect, sequence

URL = "https://api.example.test/items"


@pytest.fixture
def session():
    with Session(throttle=None) as made:
        yield made


class TestResponses:
    """It replaces the sending in requests' HTTPAdapter, so all layers are the real ones."""

    @pytest.fixture
    def responses(self):
        responses = pytest.importorskip("responses")
        with responses.RequestsMock() as running:
            yield running

    def test_an_answer(self, session, responses):
        responses.get(URL, json={"a": 1}, headers={"X-A": "b"})
        response = session.get(URL, params={"q": "1"})
        assert (response.json(), response.headers["X-A"], response.attempts) == ({"a": 1}, "b", 1)
        assert responses.calls[0].request.url == f"{URL}?q=1"
        assert responses.calls[0].response.status_code == 200

    def test_as_a_decorator(self, session):
        responses = pytest.importorskip("responses")

        @responses.activate
        def fetch():
            responses.add(responses.GET, URL, body="text")
            return session.get(URL).text

        assert fetch() == "text"

    def test_what_is_not_registered_is_a_connection_error(self, session):
        responses = pytest.importorskip("responses")
        with responses.RequestsMock(), pytest.raises(requests.ConnectionError):
            session.get(URL)

    def test_typed_errors(self, session, responses):
        responses.get(URL, status=404)
        with pytest.raises(kreuz_sync.NotFound):
            session.get(URL).raise_for_status()

    def test_errors_of_ones_own(self, session, responses):
        responses.get(URL, body=requests.ConnectTimeout("slow"))
        with pytest.raises(requests.ConnectTimeout):
            session.get(URL)

    def test_retries_are_real(self, responses):
        responses.get(URL, status=503)
        responses.get(URL, body="here")
        with Session(throttle=None, retry=Retry(1, clock=FakeClock())) as session:
            response = session.get(URL)
        assert (response.text, response.attempts, len(responses.calls)) == ("here", 2, 2)

    def test_the_pace_is_real(self, responses):
        responses.get(URL, body="here")
        with Session(throttle=Throttle(2, clock=(clock := FakeClock()))) as session:
            session.get(URL)
            session.get(URL)
        assert clock.waits == [2]

    def test_redirects_and_cookies(self, session, responses):
        responses.get(URL, status=302, headers={"Location": "/other", "Set-Cookie": "a=1; Path=/"})
        responses.get("https://api.example.test/other", body="there")
        response = session.get(URL)
        assert (response.text, len(response.history)) == ("there", 1)
        assert session.cookies.get_dict() == {"a": "1"}
        assert responses.calls[1].request.headers["Cookie"] == "a=1"

    def test_callbacks(self, session, responses):
        responses.add_callback("POST", URL, lambda request: (201, {"X-Got": str(len(request.body))}, request.body))
        response = session.post(URL, data=b"four")
        assert (response.status_code, response.headers["X-Got"], response.content) == (201, "4", b"four")

    def test_matchers(self, session, responses):
        from responses import matchers

        responses.post(URL, match=[matchers.json_params_matcher({"a": 1}), matchers.header_matcher({"X": "y"})])
        assert session.post(URL, json={"a": 1}, headers={"X": "y"}).ok

    def test_streams(self, session, responses):
        responses.get(URL, body=b"abcdef")
        with session.get(URL, stream=True) as response:
            assert list(response.iter_content(4)) == [b"abcd", b"ef"]

    def test_streams_at_a_pace(self, responses):
        """The throttle waits for the end of a stream, and a double's connection knows no length."""
        responses.get(URL, body=b"abcdef")
        with Session(throttle=0.0) as session, session.get(URL, stream=True) as response:
            assert list(response.iter_content(4)) == [b"abcd", b"ef"]

    def test_real_servers_may_be_let_through(self, session, responses, server):
        responses.add_passthru(server.url())
        assert session.get(server.url()).text == "ok"

    def test_functions_of_the_front_page(self, responses):
        responses.get(URL, body="here")
        assert kreuz_sync.get(URL).text == "here"


class TestRequestsMock:
    """It replaces the look-up of the adapter, so the layers are absent, unless its adapter is mounted."""

    @pytest.fixture
    def mock(self):
        requests_mock = pytest.importorskip("requests_mock")
        with requests_mock.Mocker() as running:
            yield running

    def test_an_answer(self, session, mock):
        mock.get(URL, json={"a": 1}, headers={"X-A": "b"})
        response = session.get(URL)
        assert (response.json(), response.headers["X-A"]) == ({"a": 1}, "b")
        assert mock.called_once
        assert mock.request_history[0].url == URL

    def test_the_response_is_ours_all_the_same(self, session, mock):
        mock.get(URL, status_code=429, headers={"Retry-After": "7"})
        response = session.get(URL)
        assert isinstance(response, kreuz_sync.Response)
        with pytest.raises(kreuz_sync.RateLimited) as caught:
            response.raise_for_status()
        assert caught.value.retry_after == 7

    def test_one_session_alone(self, session, server):
        requests_mock = pytest.importorskip("requests_mock")
        with requests_mock.Mocker(session=session) as mock, Session(throttle=None) as other:
            mock.get(server.url(), text="not real")
            assert (session.get(server.url()).text, other.get(server.url()).text) == ("not real", "ok")

    def test_as_a_decorator(self, session):
        requests_mock = pytest.importorskip("requests_mock")

        @requests_mock.Mocker()
        def fetch(mock):
            mock.get(URL, text="text")
            return session.get(URL).text

        assert fetch() == "text"

    def test_a_list_of_answers(self, session, mock):
        mock.get(URL, [{"status_code": 503}, {"text": "here"}])
        assert [session.get(URL).status_code for _ in range(2)] == [503, 200]

    def test_errors_of_ones_own(self, session, mock):
        mock.get(URL, exc=requests.ConnectTimeout)
        with pytest.raises(requests.ConnectTimeout):
            session.get(URL)

    def test_callbacks(self, session, mock):
        mock.post(URL, text=lambda request, context: request.text.upper())
        assert session.post(URL, data="abc").text == "ABC"

    def test_cookies_and_redirects(self, session, mock):
        mock.get(URL, status_code=302, headers={"Location": "/other"})
        mock.get("https://api.example.test/other", text="there", cookies={"a": "1"})
        response = session.get(URL)
        assert (response.text, len(response.history)) == ("there", 1)
        assert response.cookies.get_dict() == {"a": "1"}

    def test_what_is_not_registered_is_its_own_error(self, session, mock):
        requests_mock = pytest.importorskip("requests_mock")
        with pytest.raises(requests_mock.NoMockAddress):
            session.get(URL)

    def test_real_servers_may_be_let_through(self, session, server):
        requests_mock = pytest.importorskip("requests_mock")
        with requests_mock.Mocker(real_http=True) as mock:
            mock.get(URL, text="not real")
            assert (session.get(URL).text, session.get(server.url()).text) == ("not real", "ok")

    def test_its_adapter_can_be_mounted_under_the_layers(self):
        requests_mock = pytest.importorskip("requests_mock")
        adapter = requests_mock.Adapter()
        adapter.register_uri("GET", "mock://a.test/", [{"status_code": 503}, {"text": "here"}])
        with Session(throttle=None, retry=Retry(1, clock=FakeClock())) as session:
            session.mount("mock://", adapter)
            response = session.get("mock://a.test/")
        assert (response.text, response.attempts, adapter.call_count) == ("here", 2, 2)

    def test_streams(self, session, mock):
        mock.get(URL, content=b"abcdef")
        with session.get(URL, stream=True) as response:
            assert list(response.iter_content(4)) == [b"abcd", b"ef"]


class TestVcr:
    """It replaces the connections below urllib3, so everything of ours is the real thing."""

    @pytest.fixture
    def cassette(self, tmp_path):
        vcr = pytest.importorskip("vcr")
        return lambda mode="once": vcr.use_cassette(str(tmp_path / "it.yaml"), record_mode=mode)

    @pytest.mark.parametrize("stream", [False, True])
    def test_what_was_recorded_is_played_back(self, session, server, cassette, stream):
        url = server.route("/it", answer(body="recorded", content_type="text/plain", fields={"X-A": "b"}))
        with cassette() as tape:
            assert session.get(url, stream=stream).text == "recorded"
        server.close()
        with cassette("none") as tape, Session(throttle=None) as other:
            response = other.get(url, stream=stream)
            assert (response.text, response.headers["X-A"], response.attempts) == ("recorded", "b", 1)
            assert tape.all_played

    def test_a_compressed_body(self, session, server, cassette):
        url = server.route("/it", gzipped("compressed"))
        for _ in range(2):
            with cassette():
                assert session.get(url).text == "compressed"
        assert len(server.requests) == 1

    def test_redirects_and_cookies(self, session, server, cassette):
        url = server.route("/from", redirect("/", fields={"Set-Cookie": "a=1; Path=/"}))
        for _ in range(2):
            with cassette(), Session(throttle=None) as other:
                assert other.get(url).text == "ok"
                assert other.cookies.get_dict() == {"a": "1"}
        assert len(server.requests) == 2

    def test_a_post(self, session, server, cassette):
        for _ in range(2):
            with cassette():
                assert session.post(server.url("/echo"), json={"a": 1}).json()["body"] == '{"a": 1}'
        assert len(server.requests) == 1

    def test_retries(self, server, cassette):
        url = server.route("/it", sequence(503, answer(body="here")))
        for _ in range(2):
            with cassette(), Session(throttle=None, retry=Retry(1, clock=FakeClock())) as session:
                assert session.get(url).attempts == 2
        assert len(server.requests) == 2

    def test_what_was_not_recorded_is_refused(self, session, server, cassette):
        vcr = pytest.importorskip("vcr")
        with cassette("none"), pytest.raises(vcr.errors.CannotOverwriteExistingCassetteException):
            session.get(server.url())

    def test_several_threads(self, session, server, cassette):
        seen: list[str] = []
        with cassette():
            threads = [
                threading.Thread(target=lambda: seen.append(session.get(server.url("/echo")).json()["method"]))
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
        assert seen == ["GET"] * 4
