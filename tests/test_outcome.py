"""What became of a URL, and the record of it that may be shown."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import requests

from kreuz_sync.calls import Attempt
from kreuz_sync.errors import DataLoss, NotFound
from kreuz_sync.outcome import Hop, Outcome, answered, body_fields, failed, record, shown
from kreuz_sync.response import Response, adopt

from .fakes import prepared, respond


def response(status: int = 200, fields: dict[str, str] | None = None, content: bytes = b"", url: str = "") -> Response:
    """An answer as a session returns it."""
    made = adopt(respond(prepared(url or "http://a.test/"), status, fields or {}, content))
    made.attempts = 1
    return made


class TestAnswered:
    """An answer came, good or bad."""

    def test_a_good_answer_has_no_tag(self) -> None:
        outcome = answered(1, "http://a.test/", response(content=b"page", fields={"Content-Type": "text/html"}), 0.5)
        assert (outcome.tag, outcome.error, outcome.status) == (None, None, 200)
        assert (outcome.content, outcome.content_type, outcome.requests) == (b"page", "text/html", 1)

    def test_an_error_answer_has_its_tag_and_text(self) -> None:
        outcome = answered(1, "http://a.test/", response(404), 0.5)
        assert (outcome.tag, outcome.status) == ("not_found", 404)
        assert "404" in (outcome.error or "")

    def test_redirects_count_for_the_host_they_went_to(self) -> None:
        first, last = response(302), response(url="http://b.test/")
        first.waited, last.waited, last.attempts = 0.25, 0.5, 2
        last.history = [first]
        outcome = answered(1, "http://a.test/", last, 1.0)
        assert [(hop.host, hop.requests) for hop in outcome.hops] == [("a.test", 1), ("b.test", 2)]
        assert (outcome.requests, outcome.waited) == (3, 0.75)

    def test_repeated_attempts_are_named(self) -> None:
        answer = response()
        answer.earlier = (Attempt("rate_limited", 429, 1.0), Attempt("data_loss", None, 0.2))
        assert answered(1, "http://a.test/", answer, 2.0).earlier == ("rate_limited", "data_loss")


class TestFailed:
    """An exception came."""

    @pytest.mark.parametrize(
        ("error", "tag"),
        [
            (NotFound("no"), "not_found"),
            (DataLoss("cut"), "data_loss"),
            (requests.exceptions.InvalidURL("no host"), "invalid_url"),
            (requests.exceptions.MissingSchema("no scheme"), "invalid_url"),
            (UnicodeError("not text"), "invalid_url"),
            (RuntimeError("surprise"), "other"),
        ],
    )
    def test_every_exception_has_a_tag(self, error: Exception, tag: str) -> None:
        outcome = failed(1, "http://a.test/", error, 0.5)
        assert (outcome.tag, outcome.status, outcome.final_url) == (tag, None, None)

    def test_attempts_are_those_of_the_error(self) -> None:
        error = DataLoss("cut")
        error.attempts = 3
        assert failed(1, "http://a.test/", error, 0.6).hops[0] == Hop("a.test", 3, 0.0, pytest.approx(0.2))

    def test_what_was_never_sent_took_no_time_of_the_host(self) -> None:
        assert failed(1, "nonsense", ValueError("no"), 0.5).hops[0] == Hop("", 0, 0.0, 0.0)


class TestShown:
    """An error's text."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain", "plain"),
            ("two\nlines\there", "two lines here"),
            ("http://me:pw@a.test/?token=abc failed", "http://REDACTED@a.test/?token=REDACTED"),
            ("", "ValueError"),
            ("x" * 1000, "x" * 500),
        ],
    )
    def test_it_is_one_line_without_secrets(self, text: str, expected: str) -> None:
        assert shown(ValueError(text)).startswith(expected)
        assert len(shown(ValueError(text))) <= 500


def outcome(**parts: Any) -> Outcome:
    return Outcome(
        **{"number": 1, "url": "http://a.test/", "elapsed": 0.5, "hops": (Hop("a.test", 1, 0.0, 0.5),), **parts}
    )


class TestRecord:
    """What is written about an outcome."""

    def test_credentials_are_left_out_of_both_urls(self) -> None:
        written = record(outcome(url="http://me:pw@a.test/", final_url="http://me:pw@a.test/?sig=abc"))
        assert written["url"] == "http://REDACTED@a.test/"
        assert written["final_url"] == "http://REDACTED@a.test/?sig=REDACTED"

    def test_it_has_every_number(self) -> None:
        hops = (Hop("a.test", 2, 0.25, 0.1, ("timeout",)), Hop("b.test", 1, 0.5, 0.1))
        written = record(outcome(number=7, hops=hops, elapsed=1.23456, content=b"abc", status=200))
        wanted = {"number": 7, "status": 200, "attempts": 3, "waited": 0.75, "elapsed": 1.235, "bytes": 3}
        assert written | wanted == written
        assert written["retried"] == ["timeout"]

    def test_a_long_field_of_the_servers_is_cut(self) -> None:
        assert len(record(outcome(content_type="x" * 10_000))["content_type"]) == 500


class TestBody:
    """A body as a part of a line of JSON."""

    @pytest.mark.parametrize(
        ("content", "content_type", "text"),
        [
            (b"plain", None, "plain"),
            ("grün".encode(), "text/html", "grün"),
            ("grün".encode("latin-1"), "text/html; charset=iso-8859-1", "grün"),
            ("grün".encode(), "text/html; charset=no-such-charset", "grün"),
            ("grün".encode(), "text/html; charset=ascii", "grün"),
            (b"\x41", "text/html; charset=rot13", "A"),
            (b"A", "text/html; charset=\x00", "A"),
            (b"", "image/png", ""),
        ],
    )
    def test_text_is_decoded(self, content: bytes, content_type: str | None, text: str) -> None:
        assert body_fields(outcome(content=content, content_type=content_type)) == {"body": text}

    def test_other_bytes_are_kept_as_base64(self) -> None:
        content = bytes(range(256))
        (value,) = body_fields(outcome(content=content, content_type="text/html")).values()
        assert base64.b64decode(value) == content
