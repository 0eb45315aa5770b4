"""A caller's own condition or range, answered from what is stored: RFC 9111, section 4.3.2; RFC 9110, section 14."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.answering import answerable_range, part, unchanged
from kreuz_sync.cache.entry import Entry

from .cache_values import RFC, URL, ask, date, entry, stored


class TestIfNoneMatch:
    @pytest.mark.parametrize(
        ("asked", "held", "same"),
        [
            ('"a"', '"a"', True),
            ('"a"', 'W/"a"', True),
            ('W/"a"', '"a"', True),
            ('"1", "a", "2"', '"a"', True),
            ('"1","2" , "a"', '"a"', True),
            ('"b"', '"a"', False),
            ("*", '"a"', True),
            ("*", None, True),
            ('"a"', None, False),
            ("a", "a", True),
            ("a", '"a"', False),
            ('"é"', '"é"', True),
            ("", '"a"', False),
        ],
    )
    def test_by_the_weak_comparison(self, asked, held, same):
        fields = [] if held is None else [("ETag", held)]
        assert unchanged(ask(if_none_match=asked), entry(*fields)) is same

    def test_it_alone_decides(self):
        held = entry(("ETag", '"a"'), ("Last-Modified", date(-5000)))
        assert unchanged(ask(if_none_match='"a"', if_modified_since=date(-9999)), held)
        assert not unchanged(ask(if_none_match='"b"', if_modified_since=date()), held)


class TestIfModifiedSince:
    @pytest.mark.parametrize(("since", "same"), [(-3000, True), (-2999, True), (-3001, False)])
    def test_by_last_modified(self, since, same):
        assert unchanged(ask(if_modified_since=date(since)), entry(("Last-Modified", date(-3000)))) is same

    @pytest.mark.parametrize(("since", "same"), [(0, True), (-1, False)])
    def test_without_one_by_date(self, since, same):
        assert unchanged(ask(if_modified_since=date(since)), entry(("Date", date()))) is same

    def test_without_any_date_by_the_time_of_receipt(self):
        assert unchanged(ask(if_modified_since=date()), entry())

    def test_in_another_form(self):
        held = entry(("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
        assert unchanged(ask(if_modified_since="Sunday, 06-Nov-94 08:49:37 GMT"), held)

    @pytest.mark.parametrize("since", ["", "0", "yesterday"])
    def test_what_is_no_date_is_ignored(self, since):
        assert not unchanged(ask(if_modified_since=since), entry(("Last-Modified", date(-3000))))

    @pytest.mark.parametrize("status", [301, 404, 500])
    def test_only_a_success_is_unchanged(self, status):
        assert not unchanged(ask(if_none_match="*"), entry(("ETag", '"a"'), status=status))


class TestRange:
    @pytest.mark.parametrize(
        ("asked", "first_last"),
        [
            ("bytes=0-1", (0, 1)),
            ("bytes=0-0", (0, 0)),
            ("bytes=1-", (1, 99)),
            ("bytes=-5", (95, 99)),
            ("bytes=-500", (0, 99)),
            ("bytes=90-500", (90, 99)),
            ("Bytes = 0-1 ", (0, 1)),
            ("bytes=99-99", (99, 99)),
            ("bytes=100-", None),
            ("bytes=-0", None),
            ("bytes=5-4", None),
        ],
    )
    def test_one_range_within_the_body(self, asked, first_last):
        found = part(ask(range=asked), entry())
        assert (found and (found.first, found.last)) == first_last

    @pytest.mark.parametrize(
        "asked", ["bytes=-", "bytes=0-1,3-4", "bytes=a-b", "lines=0-1", "bytes", "", "bytes=" + "9" * 5000 + "-"]
    )
    def test_all_else_is_for_the_origin(self, asked):
        assert not answerable_range(ask(range=asked))
        assert part(ask(range=asked), entry()) is None

    def test_an_empty_body_has_no_parts(self):
        assert part(ask(range="bytes=0-"), Entry(stored(size=0), RFC, URL)) is None

    @given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 200))
    def test_a_part_is_what_a_slice_gives(self, first, last, size):
        body = bytes(index % 251 for index in range(size))
        found = part(ask(range=f"bytes={first}-{last}"), Entry(stored(size=size), RFC, URL))
        cut = body[found.first : found.last + 1] if found else b""
        assert cut == body[first : last + 1]
