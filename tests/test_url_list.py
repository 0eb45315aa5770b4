"""Lists of URLs."""

from __future__ import annotations

import pytest

from kreuz_sync.cli.url_list import host_key, urls_in


class TestReading:
    """One URL a line."""

    @pytest.mark.parametrize(
        ("lines", "urls"),
        [
            ([], []),
            (["http://a/\n", "http://b/\n"], ["http://a/", "http://b/"]),
            (["", "  \t", "\r\n"], []),
            (["# all of it", "  # and this", "http://a/"], ["http://a/"]),
            (["  http://a/ \r\n"], ["http://a/"]),
            (["http://a/#part"], ["http://a/#part"]),
            (["not a url"], ["not a url"]),
        ],
    )
    def test_blank_lines_and_comments_are_left_out(self, lines: list[str], urls: list[str]) -> None:
        assert list(urls_in(lines)) == urls

    def test_a_list_without_end_is_read_as_it_comes(self) -> None:
        """Nothing is held back until the last line."""

        def endless() -> object:
            while True:
                yield "http://a/"

        assert next(urls_in(endless())) == "http://a/"  # type: ignore[arg-type]


class TestHostKey:
    """The host that a URL counts for."""

    @pytest.mark.parametrize(
        ("url", "key"),
        [("http://A.Example:8080/x", "a.example"), ("nonsense", ""), ("http://[::1", ""), ("", "")],
    )
    def test_what_is_no_url_has_none(self, url: str, key: str) -> None:
        assert host_key(url) == key
