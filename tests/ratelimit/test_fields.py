"""RateLimit header fields, both ways. Sections are those of draft-ietf-httpapi-ratelimit-headers-11."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from kreuz_sync.ratelimit import fields
from kreuz_sync.ratelimit.fields import QuotaPolicy, RateLimitFields, ServiceLimit
from kreuz_sync.ratelimit.usage import PolicyUsage

from .effort import work

NAMES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=20)
USAGES = st.builds(
    PolicyUsage,
    name=NAMES,
    limit=st.integers(0, 10**18),
    window=st.floats(0.001, 1e9),
    used=st.integers(1, 10**18),
    reset_after=st.floats(0, 1e9),
)
# Values that are nearly right, so that more than their first character is looked at.
NEARLY = st.text(st.sampled_from('"search";=rtqwupk0193,. :?@%aLimitng\\é\x00'), max_size=60)
ANY_VALUE = st.one_of(st.text(max_size=60), NEARLY, st.binary(max_size=60))


def usage(name="search", limit=30, window=60.0, used=1, reset_after=59.2):
    return PolicyUsage(name, limit, window, used, reset_after)


class TestWriting:
    """Sections 3 and 4, and RFC 9651, section 4.1."""

    def test_one_policy(self):
        assert fields.response_fields([usage()]) == [
            ("RateLimit-Policy", '"search";q=30;w=60'),
            ("RateLimit", '"search";r=29;t=60'),
        ]

    def test_several_policies_stand_in_their_order(self):
        daily = usage("daily", 1000, 86400.0, 400, 3600.0)
        assert fields.serialise_policies([usage(), daily]) == '"search";q=30;w=60, "daily";q=1000;w=86400'
        assert fields.serialise_limits([usage(), daily]) == '"search";r=29;t=60, "daily";r=600;t=3600'

    @pytest.mark.parametrize(
        ("name", "written"),
        [('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a, b;q=1", '"a, b;q=1"'), ("search/v1:x", '"search/v1:x"')],
    )
    def test_a_name_is_escaped(self, name, written):
        assert fields.serialise_policies([usage(name)]) == f"{written};q=30;w=60"
        assert fields.parse_limits(fields.serialise_limits([usage(name)]))[0].name == name

    @pytest.mark.parametrize("name", ["für", "a\nb", "a\x7f", "\ud800"])
    def test_a_name_that_no_string_carries_is_refused(self, name):
        """And is known beforehand, so that a rate limit can refuse it when it is made."""
        assert not fields.is_policy_name(name)
        with pytest.raises(ValueError):
            fields.serialise_policies([usage(name)])
        with pytest.raises(ValueError):
            fields.serialise_limits([usage(name)])

    def test_an_empty_name_is_none(self):
        assert not fields.is_policy_name("")

    def test_a_quota_has_fifteen_digits_at_most(self):
        assert fields.serialise_policies([usage(limit=2**64)]) == '"search";q=999999999999999;w=60'
        assert fields.serialise_limits([usage(limit=2**64)]) == '"search";r=999999999999999;t=60'

    @pytest.mark.parametrize(
        ("seconds", "written"),
        [(0.0, 1), (0.001, 1), (1.0, 1), (1.000001, 2), (59.2, 60), (60.0, 60), (1e18, 10**15 - 1)],
    )
    def test_seconds_are_rounded_up_and_at_least_one(self, seconds, written):
        used = usage(window=seconds, reset_after=seconds)
        assert fields.parse_policies(fields.serialise_policies([used]))[0].window == written
        assert fields.parse_limits(fields.serialise_limits([used]))[0].effective_window == written
        assert fields.parse_limit_draft_7(fields.serialise_limit_draft_7([used])).effective_window == written

    def test_what_is_left_is_never_below_zero(self):
        assert fields.serialise_limits([usage(used=31)]) == '"search";r=0;t=60'

    def test_the_policy_does_not_shrink_with_its_window(self):
        assert fields.serialise_policies([usage(reset_after=1.0)]) == fields.serialise_policies([usage()])

    def test_draft_7(self):
        assert fields.response_fields([usage()], "draft-7") == [
            ("RateLimit-Policy", "30;w=60"),
            ("RateLimit", "limit=30, remaining=29, reset=60"),
        ]

    def test_draft_7_reports_the_policy_closest_to_its_end(self):
        few, fewer, later = usage(used=20), usage(used=28, reset_after=5.0), usage(used=28, reset_after=9.0)
        assert fields.serialise_limit_draft_7([few, fewer, later]) == "limit=30, remaining=2, reset=9"
        assert fields.serialise_policies_draft_7([few, usage(limit=9)]) == "30;w=60, 9;w=60"

    def test_none_writes_nothing(self):
        assert fields.response_fields([usage()], "none") == []
        assert fields.response_fields([], "draft-11") == []

    def test_another_revision_is_refused(self):
        with pytest.raises(ValueError, match="draft-8"):
            fields.response_fields([usage()], "draft-8")

    @given(st.lists(USAGES, min_size=1, max_size=4), st.sampled_from(["draft-11", "draft-7"]))
    def test_what_is_written_is_read_again(self, usages, revision):
        read = fields.read_fields(CaseInsensitiveDict(fields.response_fields(usages, revision)))
        assert [policy.quota for policy in read.policies] == [min(one.limit, 10**15 - 1) for one in usages]
        if revision == "draft-11":
            assert [limit.name for limit in read.limits] == [one.name for one in usages]
            assert [limit.available for limit in read.limits] == [min(one.remaining, 10**15 - 1) for one in usages]
            for one, limit in zip(usages, read.limits, strict=True):
                assert one.reset_after <= limit.effective_window <= max(1, one.reset_after + 1)
        else:
            assert read.limits[0].available == min(10**15 - 1, *(one.remaining for one in usages))


class TestWritingRetryAfter:
    """RFC 9110, section 10.2.3."""

    @pytest.mark.parametrize(("seconds", "written"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.6, "2"), (3600.0, "3600")])
    def test_in_seconds(self, seconds, written):
        assert fields.serialise_retry_after(seconds) == written

    def test_as_a_date(self):
        assert fields.serialise_retry_after(10.2, now=784111777.0) == "Sun, 06 Nov 1994 08:49:48 GMT"

    @given(st.floats(0, 1e6), st.floats(1e9, 2e9))
    def test_who_obeys_does_not_come_early(self, seconds, now):
        assert fields.parse_retry_after(fields.serialise_retry_after(seconds), now=now) >= seconds
        assert now + fields.parse_retry_after(fields.serialise_retry_after(seconds, now=now), now=now) >= now + seconds

    @given(st.floats(0, 1e6))
    def test_it_is_not_before_the_end_of_the_window(self, seconds):
        """Section 6."""
        (limit,) = fields.parse_limits(fields.serialise_limits([usage(reset_after=seconds)]))
        assert int(fields.serialise_retry_after(seconds)) >= limit.effective_window

    def test_seconds_grow_with_what_they_are_of(self):
        written = [int(fields.serialise_retry_after(tenths / 10)) for tenths in range(100)]
        assert all(one <= next_one for one, next_one in pairwise(written))


class TestReadingPolicies:
    """Section 3."""

    def test_all_parameters(self):
        value = '"search";q=30;w=60;qu="content-bytes";pk=:YWJj:'
        assert fields.parse_policies(value) == (QuotaPolicy("search", 30, 60, "content-bytes", b"abc"),)

    def test_what_is_left_out(self):
        assert fields.parse_policies('"search";q=30') == (QuotaPolicy("search", 30, None, "requests", None),)

    def test_the_units_name_is_read_in_both_spellings(self):
        assert fields.parse_policies('"a";q=1;qu="request", "b";q=1;qu="requests"')[0].unit == "requests"

    def test_a_name_may_be_a_token(self):
        assert fields.parse_policies("search;q=30;w=60") == fields.parse_policies('"search";q=30;w=60')

    @pytest.mark.parametrize(
        "extra", [";x", ";acme-x=1", ";x=@1", ';x=%"f%c3%bcr"', ';comment="a, b"', ";x=1.5", ";x=?0"]
    )
    def test_parameters_it_does_not_know_are_comments(self, extra):
        assert fields.parse_policies(f'"a";q=1;w=2{extra}') == (QuotaPolicy("a", 1, 2),)
        assert fields.parse_limits(f'"a";r=1{extra};t=2') == (ServiceLimit("a", 1, 2),)

    @pytest.mark.parametrize(
        "value",
        [
            *("", "   ", '"a"', '"a";w=60', '"a";q', '"a";q=-1', '"a";q=1.5', '"a";q="1"', '"a";q=?1', '"a";q=@1'),
            *('"a";q=1;w=0', '"a";q=1;w=-1', '"a";q=1;w=1.5', '"a";q=1;w="60"', '"a";q=1;w'),
            *('"a";q=1;qu=5', '"a";q=1;pk="abc"', '"a";q=1;pk=abc', "5;q=1", ":YQ==:;q=1", "?1;q=1", "@1;q=1"),
            *('%"a";q=1', '"a";q=1,', '"a";q=1 "b";q=1', '"a";q=1000000000000000', '("a");q=1', '"ä";q=1', "100;w=60"),
        ],
    )
    def test_a_malformed_member_spoils_the_field(self, value):
        assert fields.parse_policies(value) is None
        assert fields.parse_policies(f'"good";q=1;w=1, {value}'.rstrip()) is None or not value.strip()


class TestReadingLimits:
    """Section 4."""

    def test_all_parameters(self):
        assert fields.parse_limits('"search";r=5;t=12;pk=:YWJj:') == (ServiceLimit("search", 5, 12, b"abc"),)

    def test_a_comma_in_a_name_divides_nothing(self):
        assert [limit.name for limit in fields.parse_limits('"a, b";r=1, "c;r=2";r=3')] == ["a, b", "c;r=2"]

    def test_the_last_of_a_parameter_counts(self):
        assert fields.parse_limits('"a";r=5;t=12;r=0')[0].available == 0

    def test_a_policy_may_have_several_partitions(self):
        found = fields.parse_limits('"a";r=0;t=9;pk=:YQ==:, "a";r=3;t=5;pk=:Yg==:')
        assert [(limit.partition_key, limit.available) for limit in found] == [(b"a", 0), (b"b", 3)]

    @pytest.mark.parametrize(
        "value",
        [
            *("", '"a"', '"a";t=5', '"a";r', '"a";r=-1', '"a";r=0.5', '"a";r="0"', '"a";r=?0', '"a";r=@0'),
            *('"a";r=0;t=-1', '"a";r=0;t=1.5', '"a";r=0;t="5"', '"a";r=0;t', '"a";r=0;pk="a"', "0;r=0", '"a";r=0;t=5,'),
            *('"a";r=0;t=5; ', "'a';r=0", '"a";R=0', '"a";r=0, ("b");r=0', "limit=1, reset=1", "100;w=60"),
        ],
    )
    def test_a_malformed_member_spoils_the_field(self, value):
        assert fields.parse_limits(value) is None

    def test_octets_are_read_as_text_is(self):
        assert fields.parse_limits(b'"a";r=0;t=5') == (ServiceLimit("a", 0, 5),)
        assert fields.parse_limits('"ä";r=0;t=5'.encode("latin-1")) is None


class TestReadingBoth:
    """Sections 3 and 4 together, and which revision an answer speaks."""

    def test_a_limit_without_a_window_has_its_policys(self):
        read = fields.parse_fields('"a";r=7, "b";r=1;t=5', '"a";q=30;w=60, "b";q=9;w=90;qu="content-bytes"')
        assert read.limits == (
            ServiceLimit("a", 7, 60, quota=30),
            ServiceLimit("b", 1, 5, quota=9, unit="content-bytes"),
        )

    def test_of_several_policies_of_a_name_it_is_that_of_the_partition(self):
        policies = '"a";q=1;w=10;pk=:YQ==:, "a";q=2;w=20;pk=:Yg==:'
        assert fields.parse_fields('"a";r=0;pk=:Yg==:', policies).limits[0].effective_window == 20
        assert fields.parse_fields('"a";r=0', policies).limits[0].effective_window == 10

    def test_a_limit_without_window_and_policy_is_information_only(self):
        assert fields.parse_fields('"a";r=7', '"b";q=30;w=60').limits == (ServiceLimit("a", 7, None),)

    def test_a_malformed_policy_leaves_the_limit_usable(self):
        assert fields.parse_fields('"a";r=0;t=5', '"a";w=60') == RateLimitFields(11, (), (ServiceLimit("a", 0, 5),))

    @pytest.mark.parametrize(
        ("headers", "revision", "available", "window"),
        [
            ({"RateLimit": '"a";r=5;t=12'}, 11, 5, 12),
            ({"RateLimit": "a;r=5;t=12"}, 11, 5, 12),
            ({"RateLimit": "limit=100, remaining=50, reset=30", "RateLimit-Policy": "100;w=60"}, 7, 50, 30),
            ({"RateLimit": "limit=100, reset=30"}, 7, None, 30),
            ({"RateLimit-Limit": "100", "RateLimit-Remaining": "50", "RateLimit-Reset": "30"}, 6, 50, 30),
            ({"RateLimit": "broken", "RateLimit-Limit": "100", "RateLimit-Remaining": "50"}, 6, 50, None),
        ],
    )
    def test_revisions_are_told_apart(self, headers, revision, available, window):
        read = fields.read_fields(CaseInsensitiveDict(headers))
        assert (read.revision, read.limits[0].available, read.limits[0].effective_window) == (
            revision,
            available,
            window,
        )

    @pytest.mark.parametrize(
        "headers",
        [{}, {"RateLimit": ""}, {"RateLimit-Policy": "soon"}, {"RateLimit-Reset": "30"}, {"RateLimit": None}],
    )
    def test_an_answer_without_them_says_nothing(self, headers):
        assert fields.read_fields(CaseInsensitiveDict(headers)) is None

    @pytest.mark.parametrize("limits", [{}, {"RateLimit": ""}, {"RateLimit": '"a";r=-1'}])
    @pytest.mark.parametrize(
        ("policies", "found"),
        [
            ('"a";q=1;w=2', RateLimitFields(11, (QuotaPolicy("a", 1, 2),))),
            ("100;w=60, 1000;w=3600", RateLimitFields(7, (QuotaPolicy("", 100, 60), QuotaPolicy("", 1000, 3600)))),
        ],
    )
    def test_policies_may_be_all_that_is_said(self, limits, policies, found):
        """Section 3 does not want a RateLimit beside them, and a malformed one is as none."""
        assert fields.read_fields(CaseInsensitiveDict({**limits, "RateLimit-Policy": policies})) == found
        assert fields.parse_fields(limits.get("RateLimit", ""), policies) == found

    def test_the_three_fields_come_before_policies_alone(self):
        """They say what is left."""
        headers = {"RateLimit-Limit": "100", "RateLimit-Remaining": "50", "RateLimit-Policy": "100;w=60"}
        read = fields.read_fields(CaseInsensitiveDict(headers))
        assert (read.revision, read.limits[0].available, read.policies) == (6, 50, (QuotaPolicy("", 100, 60),))

    def test_a_quota_of_more_digits_than_a_field_can_have_is_the_largest_that_it_can(self):
        """A limit may be any number below 2**64."""
        usage = PolicyUsage("a", 2**64 - 1, 60.0, 1, 60.0)
        for revision in ("draft-11", "draft-7"):
            read = fields.read_fields(CaseInsensitiveDict(fields.response_fields([usage], revision)))
            assert (read.policies[0].quota, read.limits[0].available) == (10**15 - 1, 10**15 - 1)


class TestReadingDraft7:
    """Revision 7, sections 2 and 3."""

    def test_the_limit_is_a_dictionary(self):
        assert fields.parse_limit_draft_7("limit=100, remaining=50, reset=30") == ServiceLimit("", 50, 30, quota=100)

    def test_members_and_parameters_it_does_not_know_are_comments(self):
        assert fields.parse_limit_draft_7('limit=100;x, reset=30;y="z", acme=?0').effective_window == 30

    def test_the_last_of_two_lines_counts(self):
        joined = "limit=100, remaining=50, reset=30, limit=10, remaining=0, reset=5"
        assert fields.parse_limit_draft_7(joined) == ServiceLimit("", 0, 5, quota=10)

    @pytest.mark.parametrize(
        "value",
        [
            *("", "limit=100", "reset=30", "limit=100, reset", "limit=100, reset=-1", "limit=1.5, reset=30"),
            *(
                "limit=100, remaining=x, reset=30",
                'limit="100", reset=30',
                "Limit=100, reset=30",
                "limit=100; reset=30",
            ),
            *("limit=100, remaining=-1, reset=30", "limit=100, reset=30,"),
        ],
    )
    def test_malformed(self, value):
        assert fields.parse_limit_draft_7(value) is None

    def test_policies_have_a_quota_and_a_window(self):
        found = fields.parse_policies_draft_7('100;w=60;comment="fair", 1000;w=3600')
        assert found == (QuotaPolicy("", 100, 60), QuotaPolicy("", 1000, 3600))

    @pytest.mark.parametrize(
        "value", ["", "100", "100;w", "100;w=1.5", "-1;w=60", '"a";w=60', "100;w=60, 5", "100;w=-1"]
    )
    def test_malformed_policies(self, value):
        assert fields.parse_policies_draft_7(value) is None


class TestReadingTheThreeFields:
    """Revisions 0 to 6."""

    def test_each_is_an_integer(self):
        read = fields.parse_three_fields("100", "50", "30", "100;w=60")
        assert read == RateLimitFields(6, (QuotaPolicy("", 100, 60),), (ServiceLimit("", 50, 30, quota=100),))

    def test_the_oldest_have_the_policies_behind_the_limit(self):
        read = fields.parse_three_fields("10, 10;w=1, 50;w=60", "9", "1")
        assert read.policies == (QuotaPolicy("", 10, 1), QuotaPolicy("", 50, 60))
        assert read.limits == (ServiceLimit("", 9, 1, quota=10),)

    def test_values_may_have_parameters(self):
        read = fields.parse_three_fields("100;w=21600", "76;w=21600")
        assert read == RateLimitFields(6, (QuotaPolicy("", 100, 21600),), (ServiceLimit("", 76, None, quota=100),))

    @pytest.mark.parametrize("bad", ["", "x", "-1", "1.5", "1, 2", "٣", "1 2"])
    def test_one_that_is_malformed_leaves_the_others(self, bad):
        assert fields.parse_three_fields("100", bad, "30").limits == (ServiceLimit("", None, 30, quota=100),)
        assert fields.parse_three_fields("100", "50", bad).limits == (ServiceLimit("", 50, None, quota=100),)

    def test_without_limit_and_remaining_they_say_nothing(self):
        assert fields.parse_three_fields("x", "", "30") is None


PARSERS = [
    fields.parse_fields,
    fields.parse_policies,
    fields.parse_limits,
    fields.parse_policies_draft_7,
    fields.parse_limit_draft_7,
    fields.parse_three_fields,
    lambda value: fields.parse_fields('"a";r=1, b;r=2', value),
    lambda value: fields.parse_three_fields("1", value, value, value),
    lambda value: fields.read_fields({"RateLimit": value, "RateLimit-Limit": value, "RateLimit-Reset": value}),
]


class TestAnyValue:
    @pytest.mark.parametrize("parse", PARSERS)
    @given(ANY_VALUE)
    def test_nothing_is_raised_and_nothing_is_without_bound(self, parse, value):
        for number in numbers(parse(value)):
            assert 0 <= number < 10**15

    @given(st.text(max_size=40), st.text(max_size=40), st.floats(0, 1e12))
    def test_nor_over_retry_after(self, value, date, now):
        seconds = fields.parse_retry_after(value, now=now, date=date)
        assert seconds is None or (seconds >= 0 and math.isfinite(seconds))

    def test_many_limits_and_many_policies_are_joined_in_one_pass(self):
        """Each limit finds its policy without a search: 30 times as many must not take 900 times as long."""
        compared = 0

        class Name(str):
            __slots__ = ()
            __hash__ = str.__hash__

            def __eq__(self, other):
                nonlocal compared
                compared += 1
                return str.__eq__(self, other)

        from kreuz_sync.ratelimit import reading

        limits = tuple(ServiceLimit(Name(f"p{number}"), 1) for number in range(300))
        policies = tuple(QuotaPolicy(Name(f"p{number}"), 1, 5) for number in range(300))
        assert {limit.effective_window for limit in reading._joined(limits, policies)} == {5}
        assert compared < 3000

    @pytest.mark.parametrize("member", ['"a";r=1;t=2, ', '"a";q=1;w=2, ', "limit=1, reset=2, ", "1;w=1, "])
    def test_ten_times_the_value_is_ten_times_the_work(self, member):
        few, many = (work(member * times + member.rstrip(", ")) for times in (100, 1000))
        assert many <= 11 * few


def numbers(read):
    """Every number in what was read."""
    if isinstance(read, tuple):
        return [number for part in read for number in numbers(part)]
    return [read] if isinstance(read, int | float) else []
