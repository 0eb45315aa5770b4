"""URLs: parameters, quoting, names, and what is refused."""

from __future__ import annotations

import pytest
import requests


class TestParams:
    @pytest.mark.parametrize(
        ("params", "query"),
        [
            ({"a": "1", "b": "2"}, "a=1&b=2"),
            ({"a": ["1", "2"]}, "a=1&a=2"),
            ([("a", "1"), ("b", "2"), ("a", "3")], "a=1&b=2&a=3"),
            ((("a", "1"),), "a=1"),
            ({"a": 1, "b": 2.5, "c": True}, "a=1&b=2.5&c=True"),
            ({"a": None, "b": "2"}, "b=2"),
            ({"a": ""}, "a="),
            ({"a": "x y&z=\u00fc/+"}, "a=x+y%26z%3D%C3%BC%2F%2B"),
            ({b"a": b"1"}, "a=1"),
            ("a=1&b=x y", "a=1&b=x%20y"),
            (b"a=1", "a=1"),
            ({}, ""),
            (None, ""),
        ],
    )
    def test_they_become_the_query(self, session, server, params, query):
        session.get(server.url("/it"), params=params)
        assert server.last.query == query

    def test_they_join_a_query_that_is_there(self, session, server):
        session.get(server.url("/it?x=%20&y"), params={"a": "1"})
        assert server.last.query == "x=%20&y&a=1"

    def test_they_stand_before_the_fragment(self, session, server):
        response = session.get(server.url("/it#part"), params={"a": "1"})
        assert response.url == server.url("/it?a=1#part")
        assert server.last.target == "/it?a=1"

    def test_the_sessions_are_added(self, session, server):
        session.params = {"key": "k"}
        session.get(server.url("/it"), params={"a": "1"})
        assert server.last.params == [("key", "k"), ("a", "1")]

    def test_the_calls_beat_the_sessions(self, session, server):
        session.params = {"key": "k", "other": "o"}
        session.get(server.url("/it"), params={"key": "mine"})
        assert dict(server.last.params) == {"key": "mine", "other": "o"}

    def test_none_removes_one_of_the_sessions(self, session, server):
        session.params = {"key": "k"}
        session.get(server.url("/it"), params={"key": None})
        assert server.last.query == ""

    def test_none_in_the_session_itself_is_left_out(self, session, server):
        session.params = {"key": None, "a": "1"}
        session.get(server.url("/it"))
        assert server.last.query == "a=1"

    def test_the_callers_are_not_changed(self, session, server):
        params = {"a": None, "b": "1"}
        session.params = {"c": "2"}
        session.get(server.url("/it"), params=params)
        assert (params, session.params) == ({"a": None, "b": "1"}, {"c": "2"})


class TestQuoting:
    @pytest.mark.parametrize(
        ("written", "target"),
        [
            ("/a b", "/a%20b"),
            ("/a%20b", "/a%20b"),
            ("/%2f%2F", "/%2F%2F"),
            ("/100%", "/100%25"),
            ("/%zz", "/%25zz"),
            ("/gr\u00fc\u00df", "/gr%C3%BC%C3%9F"),
            ("/a;b=1,c", "/a;b=1,c"),
            ("/a/../b/./c", "/b/c"),
            ("/..", "/"),
            ("/a//b", "/a//b"),
            ("?a=1", "/?a=1"),
            ("", "/"),
            ("/it?q=a b", "/it?q=a%20b"),
            ("/it?q=\u00fc", "/it?q=%C3%BC"),
            ('/"<>', "/%22%3C%3E"),
            ("/~user", "/~user"),
            ("/%7Euser", "/~user"),
        ],
    )
    def test_what_needs_it_is_quoted_once(self, session, server, written, target):
        session.get(server.url(written))
        assert server.last.target == target

    def test_the_answer_shows_the_url_as_it_was_sent(self, session, server):
        response = session.get(server.url("/a b?q=\u00fc"))
        assert response.url == server.url("/a%20b?q=%C3%BC")


class TestForms:
    def test_bytes_are_a_url(self, session, server):
        assert session.get(server.url().encode()).text == "ok"

    def test_anything_that_turns_into_text_is_one(self, session, server):
        class Place:
            def __str__(self):
                return server.url()

        assert session.get(Place()).text == "ok"

    @pytest.mark.parametrize("spaces", ["  ", "\t", "\n"])
    def test_space_before_it_is_left_out(self, session, server, spaces):
        assert session.get(spaces + server.url()).text == "ok"

    @pytest.mark.parametrize("change", [str.upper, str.title])
    def test_scheme_and_host_have_no_case(self, session, server, change):
        assert session.get(change(f"http://localhost:{server.port}") + "/").text == "ok"
        assert server.last.host == f"localhost:{server.port}"

    def test_names_beyond_ascii_are_idna(self, session, server, proxy):
        proxy.names["xn--bcher-kva.test"] = server.address
        response = session.get("http://b\u00fccher.test/", proxies={"http": proxy.url()})
        assert server.last.host == "xn--bcher-kva.test"
        assert response.url == "http://xn--bcher-kva.test/"


class TestRefused:
    @pytest.mark.parametrize(
        ("url", "error"),
        [
            ("example.test", requests.exceptions.MissingSchema),
            ("/path", requests.exceptions.MissingSchema),
            ("", requests.exceptions.MissingSchema),
            ("http://", requests.exceptions.InvalidURL),
            ("http:///path", requests.exceptions.InvalidURL),
            ("http://*.example.test/", requests.exceptions.InvalidURL),
            ("http://.example.test/", requests.exceptions.InvalidURL),
            ("http://a.test:port/", requests.exceptions.InvalidURL),
            ("http://a.test:99999/", requests.exceptions.InvalidURL),
            ("http://[::1", requests.exceptions.InvalidURL),
            ("http://\u2603.." + "x" * 70 + "\u00fc.test/", requests.exceptions.InvalidURL),
            ("ftp://example.test/", requests.exceptions.InvalidSchema),
            ("localhost:3128/", requests.exceptions.InvalidSchema),
            ("mailto:me@example.test", requests.exceptions.InvalidSchema),
            ("data:text/plain,hello", requests.exceptions.InvalidSchema),
            (None, requests.exceptions.MissingSchema),
        ],
    )
    def test_what_is_no_url_is_an_error(self, session, url, error):
        with pytest.raises(error) as caught:
            session.get(url)
        assert isinstance(caught.value, ValueError)
        assert str(caught.value)

    def test_no_url_at_all_is_an_error(self, session):
        with pytest.raises(TypeError):
            session.get()
