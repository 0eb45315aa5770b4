"""Cache-Control and Pragma, RFC 9111, sections 1.2.2, 4.2.1, 5.2 and 5.4."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.directives import (
    LONGEST,
    delta_seconds,
    directives,
    listed_fields,
    parse,
    request_directives,
    window,
)
from kreuz_sync.cache.lines import members, names


class TestParse:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", {}),
            (" , ,", {}),
            ("no-cache", {"no-cache": None}),
            ("MaX-aGe=60, Public", {"max-age": "60", "public": None}),
            ('max-age="60"', {"max-age": "60"}),
            (r'x="a\"b, c"', {"x": 'a"b, c'}),
            ('extension="max-age=3600", max-age=1', {"extension": "max-age=3600", "max-age": "1"}),
            ("max-age=", {"max-age": ""}),
            ("max-age = 60", {"max-age": " "}),
            ("max-age= 60", {"max-age": " 60"}),
            ("max-age='60'", {"max-age": "'60'"}),
            ("max-age=1800, max-age=1", {"max-age": "1800"}),
            ('no-cache="a, b", max-age=5', {"no-cache": "a, b", "max-age": "5"}),
        ],
    )
    def test_forms(self, text, found):
        assert dict(parse(text)) == found

    def test_a_quote_that_is_never_closed_hides_nothing(self):
        """What would be lost in it may be a no-store."""
        assert "no-store" in parse('a="b, max-age=60, no-store')

    def test_a_bare_no_cache_counts_beside_one_with_names(self):
        assert parse('no-cache="set-cookie", no-cache')["no-cache"] is None

    def test_several_lines_are_one_list(self):
        assert dict(directives(["max-age=1", "no-cache"])) == {"max-age": "1", "no-cache": None}
        assert dict(directives([])) == {}

    @given(st.text(max_size=60))
    def test_no_text_raises(self, text):
        parse(text)
        request_directives(text, text)

    @given(st.text(alphabet='",\\= ax', max_size=300))
    def test_quotes_and_commas_never_raise_nor_lose_the_text(self, text):
        """Each character but space and separating commas is in some member."""
        kept = "".join(members(text))
        assert [character for character in kept if character in '"\\='] == [
            character for character in text if character in '"\\='
        ]

    def test_many_open_quotes_take_no_time_to_speak_of(self):
        """Quadratic work for a field of 64 KiB would be a way to stop a client."""
        assert len(members('"' + '\\"' * 30_000)) == 1
        assert len(members('"a",' * 15_000 + '"')) == 15_001


class TestDeltaSeconds:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("0", 0),
            ("60", 60),
            ("003600", 3600),
            ("2147483648", LONGEST),
            ("99999999999", LONGEST),
            ("9" * 5000, LONGEST),
            ("0" * 5000, 0),
            (None, None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("60.0", None),
            ("60a", None),
            ("a60", None),
            (" 60", None),
            ("1_0", None),
            ("²", None),
            ("٣", None),
        ],
    )
    def test_only_plain_digits_count(self, value, seconds):
        assert delta_seconds(value) == seconds

    def test_a_window_that_is_absent_or_unreadable_is_none_at_all(self):
        said = parse("stale-if-error=60, stale-while-revalidate=soon")
        assert window(said, "stale-if-error") == 60.0
        assert window(said, "stale-while-revalidate") == 0.0
        assert window(said, "max-age") == 0.0


class TestNames:
    def test_names_are_lower_case_and_what_is_no_name_is_left_out(self):
        assert names("Foo, b@d, ,BAR , a b") == ["foo", "bar"]

    def test_a_directive_lists_fields(self):
        assert listed_fields(parse('no-cache="Set-Cookie, X-A"'), "no-cache") == ["set-cookie", "x-a"]
        assert listed_fields(parse("no-cache"), "no-cache") == []


class TestRequestDirectives:
    def test_all_of_them(self):
        said = request_directives(
            "no-cache, no-store, only-if-cached, max-age=1, max-stale=2, min-fresh=3, stale-if-error=4", None
        )
        assert said == (True, True, True, 1, 2, 3, 4.0)

    def test_none_of_them(self):
        assert request_directives("x-nothing", None) == request_directives(None, None)

    def test_max_stale_without_a_number_accepts_any_age(self):
        assert request_directives("max-stale", None).max_stale == float("inf")

    def test_an_unreadable_number_is_read_the_careful_way(self):
        said = request_directives("max-age=soon, max-stale=soon, min-fresh=soon, stale-if-error=soon", None)
        assert (said.max_age, said.max_stale, said.min_fresh, said.stale_if_error) == (0, None, None, 0.0)

    @pytest.mark.parametrize(
        ("cache_control", "pragma", "no_cache"),
        [(None, "no-cache", True), (None, "foo", False), ("max-age=5", "no-cache", False), (None, None, False)],
    )
    def test_pragma_counts_only_without_cache_control(self, cache_control, pragma, no_cache):
        """RFC 9111, section 5.4."""
        assert request_directives(cache_control, pragma).no_cache is no_cache
