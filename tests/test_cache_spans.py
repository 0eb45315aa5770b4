"""Which bytes of a representation are at hand: Content-Range and Range as numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.spans import Span, announced, arrived, joined, last_bytes, rest_of


class TestContentRange:
    """RFC 9110, section 14.4."""

    @pytest.mark.parametrize(
        ("text", "span"),
        [
            ("bytes 0-4/10", Span(0, 5, 10)),
            ("bytes 4-9/10", Span(4, 6, 10)),
            ("BYTES 4-4/*", Span(4, 1, None)),
            ("bytes 0-0/1", Span(0, 1, 1)),
        ],
    )
    def test_it_says_which_bytes_there_are(self, text, span):
        assert announced(text) == span
        assert span.content_range == text.lower()

    @pytest.mark.parametrize(
        "text",
        [
            *("", "bytes", "bytes */10", "bytes 4-3/10", "bytes 0-10/10", "bytes 0-4", "bytes 0-4/", "bytes=0-4/10"),
            *(
                "lines 0-4/10",
                "bytes -5/10",
                "bytes 0-4/10, 6-7/10",
                "bytes 0-4/10 ",
                "bytes 0-1e3/*",
                "bytes \u0660-4/10",
            ),
            f"bytes 0-4/{10**18}",
        ],
    )
    def test_what_is_invalid_says_nothing(self, text):
        assert announced(text) is None

    @pytest.mark.parametrize(
        ("text", "count"), [("bytes=-5", 5), ("Bytes = -12 ", 12), ("bytes=1-5", None), ("bytes=-", None), ("", None)]
    )
    def test_how_many_bytes_of_the_end_are_wanted(self, text, count):
        assert last_bytes(text) == count


class TestArrived:
    """Where the bytes lie that came."""

    def test_as_many_as_announced_lie_where_they_should(self):
        assert arrived(Span(4, 6, 10), 6) == Span(4, 6, 10)

    @pytest.mark.parametrize("size", [0, 7])
    def test_of_none_and_of_too_many_nobody_can_say(self, size):
        assert arrived(Span(4, 6, 10), size) is None

    def test_fewer_begin_where_they_should(self):
        assert arrived(Span(4, 6, 10), 5) == Span(4, 5, 10)
        assert arrived(Span(4, 6, 10), 5, tail=6) == Span(4, 5, 10)

    def test_as_many_as_were_wanted_of_the_end_reach_it(self):
        assert arrived(Span(4, 6, 10), 5, tail=5) == Span(4, 5, 9)

    def test_but_not_if_they_were_not_to(self):
        assert arrived(Span(4, 5, 10), 4, tail=4) == Span(4, 4, 10)
        assert arrived(Span(4, 6, None), 5, tail=5) == Span(4, 5, None)

    def test_and_they_are_never_all_there_is(self):
        assert arrived(Span(0, 10, 10), 5, tail=5) == Span(0, 5, 10)


class TestJoined:
    @pytest.mark.parametrize(
        ("one", "other", "both"),
        [
            (Span(0, 5, 10), Span(5, 5, 10), Span(0, 10, 10)),
            (Span(5, 5, 10), Span(0, 5, 10), Span(0, 10, 10)),
            (Span(0, 5, 10), Span(2, 5, 10), Span(0, 7, 10)),
            (Span(0, 9, 10), Span(2, 5, 10), Span(0, 9, 10)),
            (Span(2, 2, None), Span(4, 2, 10), Span(2, 4, 10)),
            (Span(2, 2, None), Span(4, 2, None), Span(2, 4, None)),
        ],
    )
    def test_what_touches_is_one(self, one, other, both):
        assert joined(one, other) == both

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Span(0, 4, 10), Span(5, 5, 10)),
            (Span(5, 5, 10), Span(0, 4, 10)),
            (Span(0, 5, 10), Span(5, 5, 11)),
            (Span(0, 5, 7), Span(5, 5, None)),
        ],
    )
    def test_what_does_not_or_is_of_something_else_is_not(self, one, other):
        assert joined(one, other) is None

    @given(st.tuples(st.integers(0, 9), st.integers(1, 10)), st.tuples(st.integers(0, 9), st.integers(1, 10)))
    def test_it_has_the_bytes_of_both_and_no_others(self, one, other):
        one, other = Span(*one, 20), Span(*other, 20)
        have = {*range(one.first, one.end), *range(other.first, other.end)}
        both = joined(one, other)
        assert (both is not None) == (len(have) == max(have) - min(have) + 1)
        assert both is None or set(range(both.first, both.end)) == have


class TestRest:
    @pytest.mark.parametrize(
        ("held", "asked"),
        [
            (Span(0, 5, 10), "bytes=5-"),
            (Span(0, 5, None), "bytes=5-"),
            (Span(5, 5, 10), "bytes=0-4"),
            (Span(9, 1, 10), "bytes=0-8"),
            (Span(0, 10, 10), None),
            (Span(4, 2, 10), None),
            (Span(5, 5, None), None),
        ],
    )
    def test_what_is_missing_is_one_range_or_is_not_asked_for(self, held, asked):
        assert rest_of(held) == asked
