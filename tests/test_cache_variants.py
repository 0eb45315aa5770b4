"""Vary: which requests a stored response answers, and several of them side by side. RFC 9111, section 4.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.selecting import canonical_value, favourite, matches, variant_of, vary_names
from kreuz_sync.cache.stored import decode, encode
from kreuz_sync.cache.variants import MOST_OTHERS, answers_also, choose, nominees, others_of, place

from .cache_values import KEYS, NOW, ask, stored

KEY = "primary"


def varied(vary, to, **values):
    return stored(("Vary", vary), ("ETag", values.pop("etag", '"1"')), to=to, **values)


class TestVaryField:
    @pytest.mark.parametrize(
        ("lines", "found"),
        [
            ([], ()),
            ([""], ()),
            (["Foo, bar ,,FOO"], ("bar", "foo")),
            (["Foo", "Bar"], ("bar", "foo")),
            (["*"], None),
            (["*, *"], None),
            ([", *"], None),
            (["", "*"], None),
            (["Foo, *"], None),
        ],
    )
    def test_names_sorted_or_none_for_what_matches_nothing(self, lines, found):
        assert vary_names(lines) == found


class TestMatches:
    @pytest.mark.parametrize(
        ("vary", "first", "second", "same"),
        [
            ("Foo", {"foo": "1"}, {"foo": "1"}, True),
            ("Foo", {"foo": "1"}, {"foo": "2"}, False),
            ("Foo", {"foo": "1"}, {}, False),
            ("Foo", {}, {"foo": "1"}, False),
            ("Foo", {}, {"foo": ""}, False),
            ("Foo", {}, {}, True),
            ("Foo", {"foo": "1", "other": "2"}, {"foo": "1", "other": "3"}, True),
            ("Foo, Bar", {"foo": "1", "bar": "2"}, {"bar": "2", "foo": "1"}, True),
            ("Foo, Bar", {"foo": "1", "bar": "2"}, {"foo": "2", "bar": "1"}, False),
            ("Foo", {"foo": "1,2"}, {"foo": " 1, 2 "}, True),
            ("Foo", {"foo": "1,2"}, {"foo": "2,1"}, False),
            ("Foo", {"foo": "a"}, {"foo": "A"}, False),
            ("Foo", {"foo": '"a, b"'}, {"foo": '"a,b"'}, False),
            ("Accept-Language", {"accept-language": "en, de"}, {"accept-language": "de,EN"}, True),
            ("Accept-Language", {"accept-language": "en, de"}, {"accept-language": "en, de;q=1.0"}, True),
            ("Accept-Language", {"accept-language": "en, de;q=0.5"}, {"accept-language": "en;q=0.5, de"}, False),
            ("Accept-Encoding", {"accept-encoding": "gzip, br"}, {"accept-encoding": "br,gzip"}, True),
            ("Accept-Encoding", {"accept-encoding": "gzip"}, {"accept-encoding": "gzip;q=0"}, False),
            ("Foo", {"foo": b"1"}, {"foo": "1"}, True),
        ],
    )
    def test_same_selecting_fields_in_any_form(self, vary, first, second, same):
        assert matches(varied(vary, ask(**first)), ask(**second), KEYS.secret) is same

    def test_without_vary_everything_matches(self):
        assert matches(stored(), ask(foo="1"), KEYS.secret)

    def test_the_digests_of_values_show_nothing_and_are_the_store_s_own(self):
        request = ask(cookie="s3cret")
        assert "s3cret" not in variant_of(("cookie",), request, KEYS.secret)
        assert variant_of(("cookie",), request, KEYS.secret) != variant_of(("cookie",), request, b"another")


class TestLanguage:
    def test_a_response_in_the_language_wanted_most_is_what_is_wanted(self):
        held = stored(("Vary", "Accept-Language"), ("Content-Language", "de"), to=ask(accept_language="en, de"))
        assert matches(held, ask(accept_language="fr;q=0.5, DE;q=1.0"), KEYS.secret)

    @pytest.mark.parametrize("wanted", ["fr, de", "de-AT", "fr", "*", "", "de;q=0", "d e"])
    def test_but_not_where_another_is_wanted_as_much(self, wanted):
        held = stored(("Vary", "Accept-Language"), ("Content-Language", "de"), to=ask(accept_language="en, de"))
        assert not matches(held, ask(accept_language=wanted), KEYS.secret)

    def test_nor_where_another_field_differs(self):
        vary = ("Vary", "Accept-Language, Accept")
        held = stored(vary, ("Content-Language", "de"), to=ask(accept_language="en", accept="a/b"))
        assert matches(held, ask(accept_language="de", accept="a/b"), KEYS.secret)
        assert not matches(held, ask(accept_language="de", accept="c/d"), KEYS.secret)

    @pytest.mark.parametrize("language", [None, "de, en", ""])
    def test_nor_where_it_is_not_in_one_language(self, language):
        fields = [("Vary", "Accept-Language")] + ([] if language is None else [("Content-Language", language)])
        assert not matches(stored(*fields, to=ask(accept_language="en")), ask(accept_language="de"), KEYS.secret)

    def test_the_favourite_is_the_single_best(self):
        assert favourite("fr;q=0.5, de, en;q=0.9") == "de"
        assert favourite("de, en") is None
        assert favourite("") is None


class TestCanonicalValue:
    @given(st.sampled_from(["accept-language", "accept", "foo"]), st.text(max_size=60))
    def test_no_text_raises_and_the_form_of_the_form_is_the_form(self, name, text):
        form = canonical_value(name, text)
        assert canonical_value(name, form) == form


class TestPlacing:
    """Where a new response goes, and which one answers a request."""

    @staticmethod
    def keep(store, fresh):
        at = place(fresh, store.get(KEY), KEY, KEYS)
        store[at.key] = decode(encode(at.stored))
        if at.primary is not None:
            store[KEY] = decode(encode(at.primary))

    @staticmethod
    def find(store, request):
        key = choose(store[KEY], others_of(store[KEY]), KEY, request, KEYS)
        return None if key is None else store[key]

    def test_two_variants_live_side_by_side(self):
        store = {}
        for accept in ("text/html", "application/json"):
            self.keep(store, varied("Accept", ask(accept=accept), reason=accept))
        assert [self.find(store, ask(accept=a)).reason for a in ("text/html", "application/json")] == [
            "text/html",
            "application/json",
        ]
        assert self.find(store, ask(accept="image/png")) is None

    def test_the_usual_single_variant_is_under_the_primary_key(self):
        store = {}
        self.keep(store, varied("Accept", ask(accept="a")))
        self.keep(store, varied("Accept", ask(accept="a"), reason="newer"))
        assert list(store) == [KEY]
        assert store[KEY].reason == "newer"

    def test_replacing_the_primary_variant_keeps_the_others(self):
        store = {}
        for accept in ("a", "b", "a"):
            self.keep(store, varied("Accept", ask(accept=accept)))
        assert len(store) == 2
        assert self.find(store, ask(accept="b")) is not None

    def test_replacing_another_variant_lists_it_once(self):
        store = {}
        for accept, reason in (("a", "1"), ("b", "2"), ("b", "3")):
            self.keep(store, varied("Accept", ask(accept=accept), reason=reason))
        assert len(others_of(store[KEY])) == 1
        assert self.find(store, ask(accept="b")).reason == "3"

    def test_a_response_without_vary_replaces_all(self):
        store = {}
        self.keep(store, varied("Accept", ask(accept="a")))
        self.keep(store, varied("Accept", ask(accept="b")))
        self.keep(store, stored(reason="one for all"))
        assert self.find(store, ask(accept="b")).reason == "one for all"

    def test_one_with_vary_replaces_one_without(self):
        store = {}
        self.keep(store, stored())
        self.keep(store, varied("Accept", ask(accept="a")))
        assert self.find(store, ask(accept="b")) is None

    def test_dropping_the_primary_record_drops_all(self):
        store = {}
        for accept in ("a", "b"):
            self.keep(store, varied("Accept", ask(accept=accept)))
        del store[KEY]
        self.keep(store, varied("Accept", ask(accept="a")))
        assert self.find(store, ask(accept="b")) is None

    def test_of_several_that_match_the_newest_is_taken(self):
        """A resource that changed what it varies by."""
        store = {}
        self.keep(store, varied("Accept", ask(accept="a"), reason="old"))
        both = ask(accept="a", accept_charset="c")
        self.keep(store, varied("Accept, Accept-Charset", both, reason="new", response_time=NOW + 1))
        assert self.find(store, both).reason == "new"
        assert self.find(store, ask(accept="a")).reason == "old"

    def test_the_list_does_not_grow_without_end(self):
        store = {}
        for number in range(MOST_OTHERS + 5):
            self.keep(store, varied("User-Agent", ask(user_agent=str(number)), response_time=NOW + number))
        kept = others_of(store[KEY])
        assert len(kept) == MOST_OTHERS
        assert kept[0].date == NOW + MOST_OTHERS + 4

    def test_a_damaged_list_is_no_list(self):
        assert others_of(stored(extra={"others": "x"})) == ()
        assert others_of(stored(extra={"others": [1, ["k"], ["k", 5, "v", None, None, "x"]]})) == ()


class TestOneAnswerForSeveral:
    """A 304 may say that a stored variant answers other requests too."""

    def test_it_is_found_by_both_from_then_on(self):
        primary = varied("User-Agent", ask(user_agent="a"))
        primary = answers_also(primary, KEY, primary, ask(user_agent="b"), KEYS)
        assert choose(primary, others_of(primary), KEY, ask(user_agent="b"), KEYS) == KEY
        assert choose(primary, others_of(primary), KEY, ask(user_agent="a"), KEYS) == KEY

    def test_until_the_one_they_share_is_replaced(self):
        """Of the new one nobody knows whether it answers both."""
        primary = varied("User-Agent", ask(user_agent="a"))
        primary = answers_also(primary, KEY, primary, ask(user_agent="b"), KEYS)
        replaced = place(varied("User-Agent", ask(user_agent="a")), primary, KEY, KEYS).stored
        assert choose(replaced, others_of(replaced), KEY, ask(user_agent="b"), KEYS) is None

    def test_all_variants_are_nominated_newest_first(self):
        store = {KEY: varied("Accept", ask(accept="a"), etag='"a"')}
        TestPlacing.keep(store, varied("Accept", ask(accept="b"), etag='"b"', response_time=NOW + 1))
        found = nominees(store[KEY], others_of(store[KEY]), KEY)
        assert [(nominee.key == KEY, nominee.etag) for nominee in found] == [(False, '"b"'), (True, '"a"')]
