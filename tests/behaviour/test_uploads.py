"""Bodies that are sent: bytes, text, JSON, forms, files, generators, multipart."""

from __future__ import annotations

import email
import email.message
import io
from urllib.parse import parse_qsl

import pytest
import requests


def parts_of(request) -> list[email.message.Message]:
    """The parts of a multipart body."""
    head = f"Content-Type: {request.fields['Content-Type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + request.body)
    assert message.is_multipart()
    return message.get_payload()


class TestBytesAndText:
    @pytest.mark.parametrize(
        ("data", "sent"),
        [(b"\x00\xff", b"\x00\xff"), ("text", b"text"), (bytearray(b"abc"), b"abc")],
    )
    def test_they_are_sent_as_they_are(self, session, server, data, sent):
        session.post(server.url(), data=data)
        assert server.last.body == sent
        assert server.last.fields["Content-Length"] == str(len(sent))

    @pytest.mark.parametrize("data", ["a=1", b"a=1"])
    def test_they_have_no_type(self, session, server, data):
        session.post(server.url(), data=data)
        assert "Content-Type" not in server.last.fields

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_an_empty_body_says_so(self, session, server, method):
        session.request(method, server.url())
        assert server.last.fields["Content-Length"] == "0"

    def test_a_get_without_body_says_nothing(self, session, server):
        session.get(server.url())
        assert "Content-Length" not in server.last.fields

    def test_a_get_may_have_one(self, session, server):
        session.get(server.url(), data=b"query")
        assert (server.last.method, server.last.body) == ("GET", b"query")

    @pytest.mark.parametrize("method", ["put", "patch", "post"])
    def test_each_method_takes_one(self, session, server, method):
        getattr(session, method)(server.url(), data=b"x")
        assert (server.last.method, server.last.body) == (method.upper(), b"x")


class TestJson:
    @pytest.mark.parametrize("value", [{"a": [1, None, "\u00fc"]}, [], {}, 0, False, "text"])
    def test_it_is_sent_as_json(self, session, server, value):
        session.post(server.url(), json=value)
        assert server.last.json() == value
        assert server.last.fields["Content-Type"] == "application/json"

    def test_none_is_no_json(self, session, server):
        session.post(server.url(), json=None)
        assert (server.last.body, "Content-Type" in server.last.fields) == (b"", False)

    def test_data_counts_more(self, session, server):
        session.post(server.url(), data={"a": "1"}, json={"b": 2})
        assert server.last.body == b"a=1"

    def test_its_type_may_be_another(self, session, server):
        session.post(server.url(), json={}, headers={"content-type": "application/ld+json"})
        assert server.last.fields.all("Content-Type") == ["application/ld+json"]

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_numbers_that_json_does_not_know_are_refused(self, session, server, value):
        with pytest.raises(requests.exceptions.InvalidJSONError):
            session.post(server.url(), json=value)
        assert server.requests == []

    def test_what_is_not_json_is_refused(self, session, server):
        with pytest.raises(TypeError):
            session.post(server.url(), json={1, 2})


class TestForms:
    @pytest.mark.parametrize(
        ("data", "pairs"),
        [
            ({"a": "1", "b": "x y&z"}, [("a", "1"), ("b", "x y&z")]),
            ({"a": ["1", "2"]}, [("a", "1"), ("a", "2")]),
            ([("a", "1"), ("b", "2"), ("a", "3")], [("a", "1"), ("b", "2"), ("a", "3")]),
            ((("a", "1"), ("a", "2")), [("a", "1"), ("a", "2")]),
            ({"a": 1, "b": 2.5}, [("a", "1"), ("b", "2.5")]),
            ({"a": None, "b": "2"}, [("b", "2")]),
            ({"\u00fc": "\u20ac"}, [("\u00fc", "\u20ac")]),
        ],
    )
    def test_they_are_encoded(self, session, server, data, pairs):
        session.post(server.url(), data=data)
        assert parse_qsl(server.last.body.decode()) == pairs
        assert server.last.fields["Content-Type"] == "application/x-www-form-urlencoded"

    def test_an_empty_one_is_no_body(self, session, server):
        session.post(server.url(), data={})
        assert (server.last.body, server.last.fields["Content-Length"]) == (b"", "0")


class TestFiles:
    def test_a_file_is_sent_with_its_length(self, session, server, tmp_path):
        path = tmp_path / "it.bin"
        path.write_bytes(b"0123456789")
        with path.open("rb") as file:
            session.post(server.url(), data=file)
        assert server.last.body == b"0123456789"
        assert (server.last.fields["Content-Length"], server.last.chunked) == ("10", False)

    def test_it_is_sent_from_where_it_stands(self, session, server):
        file = io.BytesIO(b"0123456789")
        file.seek(4)
        session.post(server.url(), data=file)
        assert server.last.body == b"456789"

    def test_one_of_unknown_length_is_chunked(self, session, server):
        class Pipe:
            def __init__(self):
                self.left = [b"one", b"two"]

            def read(self, size=-1):
                return self.left.pop(0) if self.left else b""

            def __iter__(self):
                return iter(lambda: self.read(), b"")

        session.post(server.url(), data=Pipe())
        assert (server.last.body, server.last.chunked) == (b"onetwo", True)

    def test_a_file_with_a_length_of_its_own(self, session, server):
        class Sized(io.BytesIO):
            len = 3

        session.post(server.url(), data=Sized(b"abc"))
        assert server.last.fields["Content-Length"] == "3"


class TestGenerators:
    def test_they_are_sent_in_chunks(self, session, server):
        session.post(server.url(), data=(part for part in [b"one", b"two"]))
        assert (server.last.body, server.last.chunked) == (b"onetwo", True)
        assert "Content-Length" not in server.last.fields

    def test_an_empty_one_is_an_empty_body(self, session, server):
        session.post(server.url(), data=iter([]))
        assert (server.last.body, server.last.chunked) == (b"", True)

    def test_the_connection_is_kept(self, session, server):
        session.post(server.url(), data=iter([b"a"]))
        session.get(server.url())
        assert server.accepted == 1

    def test_what_it_raises_comes_through(self, session, server):
        def failing():
            yield b"one"
            raise KeyError("disk")

        with pytest.raises(KeyError, match="disk"):
            session.post(server.url(), data=failing())
        assert session.get(server.url()).text == "ok"


class TestMultipart:
    @pytest.mark.parametrize(
        ("given", "name", "content_type", "content"),
        [
            (b"abc", "field", None, b"abc"),
            ("abc", "field", None, b"abc"),
            (("a.txt", b"abc"), "a.txt", None, b"abc"),
            (("a.txt", "abc", "text/plain"), "a.txt", "text/plain", b"abc"),
            (("a.txt", io.BytesIO(b"abc"), "text/csv"), "a.txt", "text/csv", b"abc"),
            ((None, "abc"), None, None, b"abc"),
        ],
    )
    def test_a_part_has_name_type_and_content(self, session, server, given, name, content_type, content):
        if isinstance(given, tuple) and isinstance(given[1], io.BytesIO):
            given[1].seek(0)
        session.post(server.url(), files={"field": given})
        (part,) = parts_of(server.last)
        assert part.get_param("name", header="Content-Disposition") == "field"
        assert part.get_filename() == name
        assert part["Content-Type"] == content_type
        assert part.get_payload(decode=True) == content

    def test_a_part_may_have_more_fields(self, session, server):
        session.post(server.url(), files={"f": ("a", b"x", "text/plain", {"X-Part": "1"})})
        assert parts_of(server.last)[0]["X-Part"] == "1"

    def test_an_open_file_has_its_own_name(self, session, server, tmp_path):
        path = tmp_path / "report.csv"
        path.write_bytes(b"1,2")
        with path.open("rb") as file:
            session.post(server.url(), files={"f": file})
        assert parts_of(server.last)[0].get_filename() == "report.csv"

    def test_fields_come_before_files(self, session, server):
        session.post(server.url(), data={"a": "1", "b": ["2", "3"]}, files={"f": b"x"})
        names = [part.get_param("name", header="Content-Disposition") for part in parts_of(server.last)]
        assert names == ["a", "b", "b", "f"]

    def test_one_name_may_have_several_files(self, session, server):
        session.post(server.url(), files=[("f", ("1", b"a")), ("f", ("2", b"b"))])
        assert [part.get_filename() for part in parts_of(server.last)] == ["1", "2"]

    def test_the_type_names_the_boundary(self, session, server):
        session.post(server.url(), files={"f": b"x"})
        kind = server.last.fields["Content-Type"]
        assert kind.startswith("multipart/form-data; boundary=")
        assert kind.partition("boundary=")[2].encode() in server.last.body

    def test_text_and_files_do_not_go_together(self, session, server):
        with pytest.raises(ValueError):
            session.post(server.url(), data="text", files={"f": b"x"})


class TestWrongBodies:
    def test_pairs_of_three_are_refused(self, session, server):
        with pytest.raises(ValueError):
            session.post(server.url(), data=[("a", "b", "c")])

    def test_a_stream_and_files_do_not_go_together(self, session, server):
        with pytest.raises(NotImplementedError):
            session.post(server.url(), data=iter([b"a"]), files={"f": b"x"})
