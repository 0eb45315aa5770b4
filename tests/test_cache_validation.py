"""Validation, and what its answer changes: RFC 9111, sections 3.2, 4.3 and 4.3.5."""

import pytest

from kreuz_sync.cache.entry import Entry
from kreuz_sync.cache.policy import Policy
from kreuz_sync.cache.validation import (
    Nominee,
    after_head,
    conditions,
    confirmed,
    entity_tags,
    freshen,
    keepable,
    weakly_equal,
)

from .cache_values import KEYS, NOW, RFC, TTL, URL, ask, date, stored


def nominee(etag=None, changed=None, when=1.0, key="key"):
    return Nominee(key, etag, changed, when)


def freshened(held, *fields, request=None, policy=RFC, after=100.0):
    return freshen(
        held, fields, request or ask(), policy, KEYS, request_time=NOW + after - 1, response_time=NOW + after
    )


class TestConditions:
    """Section 4.3.1."""

    @pytest.mark.parametrize(
        ("nominees", "fields"),
        [
            ([nominee('"a"')], {"If-None-Match": '"a"'}),
            ([nominee('W/"a"')], {"If-None-Match": 'W/"a"'}),
            ([nominee("a")], {"If-None-Match": "a"}),
            ([nominee(None, "Sunday")], {"If-Modified-Since": "Sunday"}),
            ([nominee('"a"', "Sunday")], {"If-None-Match": '"a"', "If-Modified-Since": "Sunday"}),
            ([nominee('"a"', "Sunday"), nominee('"b"'), nominee('"a"')], {"If-None-Match": '"a", "b"'}),
            ([nominee()], {}),
            ([], {}),
        ],
    )
    def test_validators_go_out_as_they_came(self, nominees, fields):
        assert conditions(nominees) == fields


class TestEntityTags:
    """RFC 9110, sections 8.8.3 and 13.1.2."""

    @pytest.mark.parametrize(
        ("text", "tags"),
        [
            ('"a"', ['"a"']),
            ('"a", W/"b" ,"c,d"', ['"a"', 'W/"b"', '"c,d"']),
            (r'"a\", "b"', [r'"a\"', '"b"']),
            ("*", ["*"]),
            ("abc", ["abc"]),
            ('"é"', ['"é"']),
            ("", []),
        ],
    )
    def test_a_list_of_them(self, text, tags):
        assert entity_tags(text) == tags

    def test_the_weak_comparison(self):
        assert weakly_equal('W/"a"', '"a"')
        assert not weakly_equal('"a"', '"b"')
        assert not weakly_equal('w/"a"', '"a"')


class TestConfirmed:
    """Section 4.3.4: which stored response a 304 is about."""

    @pytest.mark.parametrize(
        ("fields", "nominees", "key"),
        [
            ([("ETag", '"a"')], [nominee('"a"')], "key"),
            ([("ETag", '"b"')], [nominee('"a"')], None),
            ([("ETag", '"b"')], [nominee('"a"'), nominee('"b"', key="b")], "b"),
            ([("ETag", '"a"')], [nominee('"a"', key="old"), nominee('"a"', when=2.0, key="new")], "new"),
            ([("ETag", '"a"')], [nominee(None, "Sunday")], None),
            ([], [nominee('"a"')], "key"),
            ([], [nominee('"a"'), nominee('"b"')], None),
            ([], [], None),
            ([("Last-Modified", "Sunday")], [nominee(None, "Sunday")], "key"),
            ([("Last-Modified", "Monday")], [nominee('"a"', "Sunday")], None),
            ([("Last-Modified", "Sunday")], [nominee('"a"')], "key"),
            ([("Last-Modified", "Sunday")], [nominee('"a"', "Sunday", key="a"), nominee('"b"', "Monday")], "a"),
        ],
    )
    def test_table(self, fields, nominees, key):
        found = confirmed(tuple(fields), nominees)
        assert (found.key if found else None) == key

    def test_a_tag_that_differs_only_in_being_weak_confirms(self):
        """nginx sends W/"a" with a body that it compresses, and "a" with a 304."""
        assert confirmed((("ETag", '"a"'),), [nominee('W/"a"')]).key == "key"
        assert confirmed((("ETag", '"a"'),), [nominee('W/"a"', when=2.0), nominee('"a"', key="strong")]).key == "strong"


class TestFreshen:
    """Section 3.2."""

    def test_what_the_304_says_replaces_and_the_rest_stays(self):
        held = stored(("A", "1"), ("B", "1"), ("Cache-Control", "max-age=1"), ("Date", date()))
        fresh = freshened(held, ("Cache-Control", "max-age=60"), ("b", "2"), ("Date", date(100)))
        assert fresh.fields == (("A", "1"), ("Cache-Control", "max-age=60"), ("b", "2"), ("Date", date(100)))

    def test_a_field_of_several_lines_is_replaced_as_a_whole(self):
        fresh = freshened(stored(("X", "1"), ("x", "2"), ("Date", date())), ("X", "3"), ("X", "4"))
        assert [value for name, value in fresh.fields if name == "X"] == ["3", "4"]

    @pytest.mark.parametrize("name", ["Content-Length", "content-encoding", "Content-Range"])
    def test_what_describes_the_stored_bytes_stays(self, name):
        fresh = freshened(stored((name, "as stored"), ("Date", date())), (name, "another"))
        assert (name, "as stored") in fresh.fields

    @pytest.mark.parametrize("name", ["Connection", "Transfer-Encoding", "Proxy-Authenticate"])
    def test_what_is_for_one_connection_does_not_come_in(self, name):
        assert name not in dict(freshened(stored(), (name, "x")).fields)

    @pytest.mark.parametrize("name", ["Content-Type", "ETag", "Expires", "Set-Cookie", "X-Frame-Options"])
    def test_all_else_does(self, name):
        assert (
            dict(
                freshened(
                    stored(
                        (name, "1"),
                    ),
                    (name, "2"),
                ).fields
            )[name]
            == "2"
        )

    def test_age_and_times_are_those_of_the_exchange_that_validated(self):
        held = stored(("Age", "1000"), ("Date", date()), ("Cache-Control", "max-age=60"))
        fresh = Entry(freshened(held), RFC, URL)
        assert fresh.age(NOW + 100) == 1
        assert dict(fresh.fields)["Date"] == date(100)

    def test_an_age_in_the_304_counts(self):
        assert Entry(freshened(stored(), ("Age", "30")), RFC, URL).age(NOW + 100) == 31

    def test_the_body_and_what_is_known_of_it_stay(self):
        held = stored(size=7, elapsed=0.3, extra={"others": [], "chunked": True, "outdated": True})
        fresh = freshened(held)
        assert (fresh.size, fresh.status, fresh.elapsed) == (7, 200, 0.3)
        assert fresh.extra == {"others": [], "chunked": True}

    def test_with_another_vary_it_is_for_requests_like_this_one(self):
        held = stored(("Vary", "Accept"), to=ask(accept="a"))
        fresh = freshened(held, ("Vary", "Foo"), request=ask(accept="a", foo="1"))
        assert (fresh.vary, fresh.variant) == (("foo",), stored(("Vary", "Foo"), to=ask(foo="1")).variant)
        assert freshened(held, request=ask(accept="b")).variant == held.variant

    def test_a_fixed_time_starts_anew(self):
        assert freshened(stored(kept_for=60.0), policy=TTL).kept_for == 3600.0
        assert freshened(stored(kept_for=60.0, extra={"pinned": True}), policy=TTL).kept_for == 60.0
        assert Entry(freshened(stored(kept_for=60.0), policy=TTL), TTL, URL).lifetime > 3600

    @pytest.mark.parametrize(
        ("fields", "keep"),
        [([("Cache-Control", "no-store")], False), ([("Vary", "*")], False), ([("ETag", '"a"')], True)],
    )
    def test_it_may_turn_out_not_to_be_for_storing(self, fields, keep):
        assert keepable(freshened(stored(("ETag", '"a"')), *fields), RFC, URL) is keep

    def test_as_when_a_pattern_forbids_it_now(self):
        policy = Policy(ttl_by_url={"*": None})
        assert not keepable(freshened(stored(kept_for=60.0), policy=policy), policy, URL)


class TestAfterHead:
    """Section 4.3.5."""

    @staticmethod
    def told(held, *fields, status=200):
        return after_head(held, status, fields, ask("HEAD"), RFC, KEYS, request_time=NOW + 99, response_time=NOW + 100)

    held = stored(("ETag", '"a"'), ("Last-Modified", date(-9)), ("Content-Length", "100"), ("X", "1"))

    @pytest.mark.parametrize(
        "fields",
        [[], [("ETag", '"a"')], [("Last-Modified", date(-9))], [("Content-Length", "100")], [("X", "2")]],
    )
    def test_what_agrees_freshens(self, fields):
        told = self.told(self.held, *fields)
        assert told.response_time == NOW + 100
        assert "outdated" not in told.extra

    @pytest.mark.parametrize("fields", [[("ETag", '"b"')], [("Last-Modified", date())], [("Content-Length", "99")]])
    def test_what_differs_makes_it_stale_and_changes_nothing_else(self, fields):
        told = self.told(self.held, *fields)
        assert told == self.held._replace(extra={"outdated": True})

    def test_a_length_is_compared_with_the_bytes_where_the_get_had_none(self):
        assert "outdated" not in self.told(stored(size=100), ("Content-Length", "100")).extra
        assert "outdated" in self.told(stored(size=100), ("Content-Length", "99")).extra

    def test_a_200_where_something_else_is_stored_makes_that_stale(self):
        assert "outdated" in self.told(stored(status=404)).extra

    @pytest.mark.parametrize("status", [204, 302, 404, 503])
    def test_other_statuses_say_nothing(self, status):
        assert self.told(self.held, status=status) is None
