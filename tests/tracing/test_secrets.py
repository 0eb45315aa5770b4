"""What spans, measurements and log records never hold."""

from __future__ import annotations

import logging

import pytest
import requests

from kreuz_sync import Basic, HeaderAuth, Session, Tracing

from ..loopback import answer, cut, redirect
from .recorder import Recorder


def everything(recorder: Recorder) -> str:
    return "\n".join(span.to_json() for span in recorder.spans)


class TestUrls:
    def test_neither_user_nor_password_nor_signature(self, recorder, server):
        url = server.url("/").replace("//", "//u:s3cret@") + "?sig=abc123&q=1#access_token=def456"
        recorder.session().get(url)
        assert recorder.attempt.attributes["url.full"] == (
            server.url("/").replace("//", "//REDACTED:REDACTED@") + "?sig=REDACTED&q=1#access_token=REDACTED"
        )
        for secret in ("s3cret", "abc123", "def456"):
            assert secret not in everything(recorder)

    @pytest.mark.parametrize(
        "name",
        [
            *("AWSAccessKeyId", "Signature", "sig", "X-Goog-Signature", "X-Amz-Signature", "X-Amz-Credential"),
            *("X-Amz-Security-Token", "token", "api_key", "access_token", "code"),
        ],
    )
    def test_the_usual_names_are_known(self, recorder, server, name):
        recorder.session().get(server.url("/"), params={"q": "1", name: "abc123", "p": "2"})
        assert recorder.attempt.attributes["url.full"] == server.url(f"/?q=1&{name}=REDACTED&p=2")

    def test_others_can_be_named(self, recorder, server):
        """In any case; the usual ones stay."""
        recorder.session(redacted=["Ticket"]).get(server.url("/?ticket=abc123&sig=def456&tickets=2"))
        assert recorder.attempt.attributes["url.full"] == server.url("/?ticket=REDACTED&sig=REDACTED&tickets=2")

    def test_a_redirects_target_is_shown_in_the_same_way(self, recorder, server):
        url = server.route("/a", redirect("/?sig=abc123"))
        recorder.session(response_fields=["Location"]).get(url)
        first, second = recorder.attempts
        assert first.attributes["http.response.header.location"] == ("/?sig=REDACTED",)
        assert second.attributes["url.full"] == server.url("/?sig=REDACTED")

    def test_an_errors_text_is_too(self, recorder, server):
        url = server.route("/cut", cut(b"0123456789", 4)) + "?ticket=abc123&sig=def456&q=1"
        with pytest.raises(requests.RequestException):
            recorder.session(redacted=["ticket"]).get(url)
        shown = server.url("/cut?ticket=REDACTED&sig=REDACTED&q=1")
        assert recorder.attempt.status.description == f"GET {shown}: 4 of 10 bytes came"
        assert "abc123" not in everything(recorder)

    def test_the_text_of_an_error_that_is_not_ours_is_left_out(self, recorder):
        """Nobody knows what it quotes."""
        session = recorder.session()
        session.mount("http://", Breaking())
        with pytest.raises(RuntimeError):
            session.get("http://example.test/")
        assert recorder.attempt.attributes["error.type"] == "RuntimeError"
        assert recorder.attempt.status.description is None
        assert "s3cret" not in everything(recorder)


class Breaking(requests.adapters.BaseAdapter):
    """An adapter with an error of its own, which quotes what it was given."""

    def send(self, request, **options):
        raise RuntimeError("no luck with Authorization: s3cret")

    def close(self):
        pass


class TestFields:
    """Fields are recorded only if they are named, and those with credentials not even then."""

    def captured(self, recorder: Recorder) -> dict[str, object]:
        return {name: value for name, value in recorder.attempt.attributes.items() if ".header." in name}

    def test_none_by_default(self, recorder, server):
        recorder.session().get(server.url("/"))
        assert self.captured(recorder) == {}

    def test_those_that_are_named(self, recorder, server):
        url = server.route("/", answer(fields={"X-Cache": "hit", "X-Other": "1"}))
        session = recorder.session(request_fields=["Accept-Language"], response_fields=["x-cache", "x-none"])
        session.get(url, headers={"Accept-Language": "en"})
        assert self.captured(recorder) == {
            "http.request.header.accept-language": ("en",),
            "http.response.header.x-cache": ("hit",),
        }

    def test_of_all_those_with_credentials_and_cookies_are_left_out(self, recorder, server):
        url = server.route("/", answer(fields={"Set-Cookie": "a=s3cret", "X-Cache": "hit"}))
        session = recorder.session(request_fields=["*", "authorization", "cookie"], response_fields=["*", "set-cookie"])
        session.get(url, auth=("me", "s3cret"), headers={"Cookie": "b=s3cret", "Proxy-Authorization": "s3cret"})
        names = set(self.captured(recorder))
        assert {"http.request.header.user-agent", "http.response.header.x-cache"} <= names
        assert not [name for name in names if "authorization" in name or "cookie" in name]
        assert "s3cret" not in everything(recorder)

    def test_fields_of_an_origins_credentials_too(self, recorder, server):
        """Whatever their names are."""
        session = recorder.session(request_fields=["*"], auth={server.url("/"): HeaderAuth("X-Key", "s3cret")})
        session.get(server.url("/"))
        assert server.last.fields["X-Key"] == "s3cret"
        assert "s3cret" not in everything(recorder)

    def test_fields_of_a_calls_own_credentials_too(self, recorder, server):
        session = recorder.session(request_fields=["*"])
        session.get(server.url("/"), auth=HeaderAuth("X-Key", "s3cret"))
        assert "s3cret" not in everything(recorder)

    def test_a_referer_is_shown_without_secrets(self, recorder, server):
        session = recorder.session(request_fields=["referer"])
        session.get(server.url("/"), headers={"Referer": "http://me:s3cret@a.test/?code=abc123"})
        assert self.captured(recorder) == {"http.request.header.referer": ("http://REDACTED@a.test/?code=REDACTED",)}


class TestLog:
    def test_the_record_of_an_attempt_has_no_secrets_either(self, recorder, server, caplog):
        url = server.url("/").replace("//", "//u:s3cret@") + "?ticket=abc123&q=1"
        with caplog.at_level(logging.DEBUG, "kreuz_sync"):
            recorder.session(redacted=["ticket"]).get(url, auth=Basic("u", "s3cret"))
        assert [record.name for record in caplog.records] == ["kreuz_sync.tracing"]
        told = caplog.text + repr([vars(record) for record in caplog.records])
        assert "q=1" in told
        assert "s3cret" not in told
        assert "abc123" not in told

    def test_a_setting_shows_nothing(self, recorder):
        assert "TracerProvider" not in repr(recorder.session())
        pytest.importorskip("opentelemetry")
        assert repr(Session(tracing=Tracing(redacted=["ticket"]))).count("redacted=('ticket',)") == 1
