"""Codings and charsets: how bytes become text, JSON and links."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
import requests

from ..loopback import answer, chunked, deflated, gzipped, json_answer

TEXT = "gr\u00fc\u00df \u20ac"


class TestCharset:
    @pytest.mark.parametrize(
        ("content_type", "encoding"),
        [
            ("text/html; charset=utf-8", "utf-8"),
            ('text/html; charset="UTF-8"', "UTF-8"),
            ("text/html; Charset=windows-1252; x=y", "windows-1252"),
            ("text/html", "ISO-8859-1"),
            ("text/plain", "ISO-8859-1"),
            ("application/json", "utf-8"),
            ("application/octet-stream", None),
            (None, None),
        ],
    )
    def test_it_is_read_from_the_field(self, session, server, content_type, encoding):
        assert session.get(server.route("/it", answer(content_type=content_type))).encoding == encoding

    @pytest.mark.parametrize("charset", ["utf-8", "utf-16", "iso-8859-15", "cp1252"])
    def test_text_is_decoded_with_it(self, session, server, charset):
        what = answer(body=TEXT.encode(charset), content_type=f"text/plain; charset={charset}")
        assert session.get(server.route("/it", what)).text == TEXT

    def test_without_one_it_is_guessed(self, session, server):
        response = session.get(server.route("/it", answer(body=(TEXT * 20).encode())))
        assert response.apparent_encoding == "utf-8"
        assert response.text == TEXT * 20

    def test_it_may_be_set_by_hand(self, session, server):
        response = session.get(server.route("/it", answer(body=TEXT.encode(), content_type="text/html")))
        assert response.text != TEXT
        response.encoding = "utf-8"
        assert response.text == TEXT

    def test_an_unknown_one_is_no_obstacle(self, session, server):
        what = answer(body=b"abc", content_type="text/plain; charset=nonsense")
        assert session.get(server.route("/it", what)).text == "abc"

    def test_bytes_that_do_not_fit_are_replaced(self, session, server):
        what = answer(body=b"a\xffb", content_type="text/plain; charset=utf-8")
        assert session.get(server.route("/it", what)).text == "a\ufffdb"

    def test_an_empty_body_is_an_empty_text(self, session, server):
        assert session.get(server.route("/it", 200)).text == ""


class TestJson:
    @pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
    def test_its_charset_is_seen_from_its_bytes(self, session, server, charset):
        what = answer(body=json.dumps({"a": TEXT}, ensure_ascii=False).encode(charset))
        assert session.get(server.route("/it", what)).json() == {"a": TEXT}

    def test_it_does_not_ask_for_a_type(self, session, server):
        assert session.get(server.route("/it", answer(body="[1]", content_type="text/html"))).json() == [1]

    def test_what_json_loads_takes_is_handed_on(self, session, server):
        response = session.get(server.route("/it", json_answer({"a": 1.5})))
        assert response.json(parse_float=str) == {"a": "1.5"}

    @pytest.mark.parametrize("body", ["", "{", "<html>", "{'a': 1}"])
    def test_no_json_is_one_error_of_two_kinds(self, session, server, body):
        response = session.get(server.route("/it", answer(body=body)))
        with pytest.raises(requests.exceptions.JSONDecodeError) as caught:
            response.json()
        assert isinstance(caught.value, (ValueError, requests.RequestException))
        assert caught.value.doc == body

    def test_a_stream_may_be_json(self, session, server):
        assert session.get(server.route("/it", json_answer({"a": 1})), stream=True).json() == {"a": 1}


class TestCodings:
    @pytest.mark.parametrize(
        "what",
        [
            gzipped("text"),
            deflated("text"),
            deflated("text", bare=True),
            answer(body=gzip.compress(b"te") + gzip.compress(b"xt"), fields={"Content-Encoding": "gzip"}),
            answer(body=zlib.compress(gzip.compress(b"text")), fields={"Content-Encoding": "gzip, deflate"}),
            answer(body=b"text", fields={"Content-Encoding": "identity"}),
            answer(body=b"text", fields={"Content-Encoding": "unknown"}),
            answer(body=gzip.compress(b"text"), fields={"Content-Encoding": "GZIP"}),
        ],
        ids=["gzip", "deflate", "bare deflate", "two members", "two codings", "identity", "unknown", "upper"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_they_are_undone(self, session, server, what, stream):
        response = session.get(server.route("/it", what), stream=stream)
        assert response.content == b"text"

    def test_chunks_may_be_compressed(self, session, server):
        packed = gzip.compress(TEXT.encode())
        what = chunked(packed[:5], packed[5:], fields={"Content-Encoding": "gzip"})
        assert session.get(server.route("/it", what)).content == TEXT.encode()

    @pytest.mark.parametrize("status", [200, 204, 304])
    def test_an_empty_body_in_a_coding_is_empty(self, session, server, status):
        what = answer(status, fields={"Content-Encoding": "gzip"})
        assert session.get(server.route("/it", what)).content == b""

    @pytest.mark.parametrize(
        "packed", [b"", gzip.compress(b"te") + gzip.compress(b"xt") + b"\0\0\0"], ids=["nothing", "padding"]
    )
    @pytest.mark.parametrize("length", ["true", None])
    def test_nothing_and_padding_are_no_broken_coding(self, session, server, packed, length):
        what = answer(body=packed, length=length, fields={"Content-Encoding": "gzip"})
        assert session.get(server.route("/it", what)).content == (b"text" if packed else b"")

    def test_a_head_answer_has_no_body_to_undo(self, session, server):
        assert session.head(server.route("/it", gzipped("text"))).content == b""

    def test_the_field_stays(self, session, server):
        assert session.get(server.route("/it", gzipped("text"))).headers["content-encoding"] == "gzip"

    def test_codings_that_can_be_undone_are_asked_for(self, session, server):
        session.get(server.url())
        assert {"gzip", "deflate"} <= set(server.last.fields["Accept-Encoding"].split(", "))

    def test_none_may_be_asked_for(self, session, server):
        session.get(server.url(), headers={"Accept-Encoding": "identity"})
        assert server.last.fields.all("Accept-Encoding") == ["identity"]


class TestLinks:
    def test_they_are_read_by_relation(self, session, server):
        value = '<http://a.test/2>; rel="next", <http://a.test/9>; rel=last; title="the end"'
        links = session.get(server.route("/it", answer(fields={"Link": value}))).links
        assert links["next"] == {"url": "http://a.test/2", "rel": "next"}
        assert links["last"]["url"] == "http://a.test/9"

    def test_no_field_is_no_links(self, session, server):
        assert session.get(server.url()).links == {}


class TestFields:
    def test_names_are_compared_without_case(self, session, server):
        headers = session.get(server.route("/it", answer(fields={"X-Name": "v"}))).headers
        assert headers["x-name"] == headers["X-NAME"] == "v"
        assert headers.get("absent") is None

    def test_repeated_ones_are_joined(self, session, server):
        headers = session.get(server.route("/it", answer(fields=[("X-A", "1"), ("X-A", "2")]))).headers
        assert headers["X-A"] == "1, 2"

    def test_bytes_beyond_ascii_are_latin_1(self, session, server):
        headers = session.get(server.route("/it", answer(fields={"X-A": "\u00fc"}))).headers
        assert headers["X-A"] == "\u00fc"
