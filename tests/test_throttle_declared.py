"""What an answer says about pace, in whatever dialect: each as its servers send it."""

import math
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict
from urllib3._collections import HTTPHeaderDict

from kreuz_sync.fields import ENDLESS_S
from kreuz_sync.throttle import dialects, verdict
from kreuz_sync.throttle.declared import TELLING, declared
from kreuz_sync.throttle.resets import DELTA, EPOCH, EPOCH_MS, number, rfc_3339, seconds_until
from kreuz_sync.throttle.verdict import Declared

DATE = "Fri, 15 Jan 2027 08:00:00 GMT"
NOW = 1_800_000_000.0  # the same moment
EARLY = NOW - 3600  # by a local clock that is an hour slow


def said(status=200, now=EARLY, host="", **headers):
    """What an answer with these fields says; `_` in a name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return declared(CaseInsensitiveDict({"Date": DATE, **named}), status, now=now, host=host)


class TestOrdinaryAnswers:
    """Nearly all of them."""

    @pytest.mark.parametrize("status", [200, 204, 302, 304, 403, 404, 429, 503])
    def test_an_answer_without_such_fields_says_nothing(self, status):
        assert said(status, Server="nginx", Cache_Control="max-age=60", X_RateLimit_Limit="60") is None

    def test_its_reader_is_not_even_imported(self):
        """Neither by importing the package, nor by answers that say nothing."""
        program = (
            "import sys, kreuz_sync\n"
            "from kreuz_sync.throttle.declared import declared\n"
            "declared(kreuz_sync.Response().headers, 200, now=0.0)\n"
            "reader = [name for name in sys.modules if name.startswith('kreuz_sync.ratelimit') or 'verdict' in name]\n"
            "assert not reader, reader\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_every_field_that_is_read_makes_an_answer_worth_a_look(self):
        """Of the list and the table, neither has a name that the other lacks."""
        others = {"retry-after", *verdict.IN_MILLISECONDS, "ratelimit", dialects.SHOPIFY}
        assert set(dialects.DIALECT_OF) | others == TELLING

    def test_no_two_rows_read_the_same_field(self):
        names = [name for row in dialects.DIALECTS for name in (row.remaining, *row.resets)]
        assert len(names) == len(set(names))


# Fields as the servers' documentation shows them, at NOW; with what they say of remaining and reset.
LEFT = {
    "github": (
        {
            "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": "4999",
            "x-ratelimit-used": "1",
            "x-ratelimit-reset": "1800000099",
            "x-ratelimit-resource": "search",
        },
        Declared(0.0, "search", "", 4999, 100, "x-ratelimit-reset"),
    ),
    "twitter": (
        {"x-rate-limit-limit": "900", "x-rate-limit-remaining": "899", "x-rate-limit-reset": "1800000899"},
        Declared(0.0, "", "", 899, 900, "x-rate-limit-reset"),
    ),
    "twitter by day": (
        {"x-user-limit-24hour-remaining": "40", "x-user-limit-24hour-reset": "1800000099"},
        Declared(0.0, "", "", 40, 100, "x-user-limit-24hour-reset"),
    ),
    "twitter's application": (
        {"x-app-limit-24hour-remaining": "40", "x-app-limit-24hour-reset": "1800000099"},
        Declared(0.0, "", "", 40, 100, "x-app-limit-24hour-reset"),
    ),
    "reddit": (
        {"X-Ratelimit-Used": "2", "X-Ratelimit-Remaining": "598.0", "X-Ratelimit-Reset": "395"},
        Declared(0.0, "", "", 598, 395, "x-ratelimit-reset"),
    ),
    "gitlab": (
        {
            "RateLimit-Limit": "600",
            "RateLimit-Name": "throttle_authenticated_api",
            "RateLimit-Observed": "6",
            "RateLimit-Remaining": "594",
            "RateLimit-Reset": "1800000059",
            "RateLimit-ResetTime": "Fri, 15 Jan 2027 08:00:59 GMT",
        },
        Declared(0.0, "", "throttle_authenticated_api", 594, 60, "ratelimit-reset"),
    ),
    "gitlab's date alone": (
        {"RateLimit-Remaining": "594", "RateLimit-ResetTime": "Fri, 15 Jan 2027 08:00:59 GMT"},
        Declared(0.0, "", "", 594, 60, "ratelimit-resettime"),
    ),
    "discord": (
        {
            "X-RateLimit-Limit": "5",
            "X-RateLimit-Remaining": "4",
            "X-RateLimit-Reset": "1800000001.500",
            "X-RateLimit-Reset-After": "1.250",
            "X-RateLimit-Bucket": "abcd1234",
        },
        Declared(0.0, "abcd1234", "", 4, 1.25, "x-ratelimit-reset-after"),
    ),
    "docker hub": (
        {"ratelimit-limit": "100;w=21600", "ratelimit-remaining": "76;w=21600"},
        Declared(0.0, "", "", 76, None, "ratelimit-remaining"),
    ),
    "flask-limiter": (
        {
            "X-RateLimit-Limit": "10",
            "X-RateLimit-Remaining": "9",
            "X-RateLimit-Reset": "1800000059",
            "Retry-After": "59",
        },
        Declared(0.0, "", "", 9, 60, "x-ratelimit-reset"),
    ),
    "envoy": (
        {"x-ratelimit-limit": '10, 10;w=1;name="a|b"', "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1"},
        Declared(0.0, "", "", 9, 1, "x-ratelimit-reset"),
    ),
    "kong": (
        {
            "X-RateLimit-Limit-Minute": "20",
            "X-RateLimit-Remaining-Minute": "18",
            "RateLimit-Limit": "20",
            "RateLimit-Remaining": "18",
            "RateLimit-Reset": "30",
        },
        Declared(0.0, "", "", 18, 30, "ratelimit-reset"),
    ),
    "openai": (
        {
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": "59",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-limit-tokens": "150000",
            "x-ratelimit-remaining-tokens": "149984",
            "x-ratelimit-reset-tokens": "6m0s",
        },
        Declared(0.0, "", "", 59, 1, "x-ratelimit-reset-requests"),
    ),
    "anthropic": (
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:01Z",
            "anthropic-ratelimit-tokens-remaining": "40000",
            "anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:30Z",
        },
        Declared(0.0, "", "", 49, 2, "anthropic-ratelimit-requests-reset"),
    ),
    "linear": (
        {"X-RateLimit-Requests-Remaining": "1499", "X-RateLimit-Requests-Reset": "1800003599000"},
        Declared(0.0, "", "", 1499, 3600, "x-ratelimit-requests-reset"),
    ),
    "atlassian": (
        {"X-RateLimit-Limit": "350", "X-RateLimit-Remaining": "350", "X-RateLimit-Reset": "2027-01-15T08:01Z"},
        Declared(0.0, "", "", 350, 61, "x-ratelimit-reset"),
    ),
    "vimeo": (
        {"X-RateLimit-Remaining": "249", "X-RateLimit-Reset": "2027-01-15T03:01:00-05:00"},
        Declared(0.0, "", "", 249, 61, "x-ratelimit-reset"),
    ),
    "shopify": (
        {"X-Shopify-Shop-Api-Call-Limit": "32/40"},
        Declared(0.0, "", "", 8, None, "x-shopify-shop-api-call-limit"),
    ),
    "zendesk": (
        {
            "x-rate-limit": "700",
            "x-rate-limit-remaining": "699",
            "ratelimit-limit": "700",
            "ratelimit-remaining": "699",
            "ratelimit-reset": "41",
        },
        Declared(0.0, "", "", 699, 41, "ratelimit-reset"),
    ),
    "draft 11": (
        {"RateLimit-Policy": '"search";q=30;w=60', "RateLimit": '"search";r=40;t=20'},
        Declared(0.0, "", "search", 40, 20, "ratelimit"),
    ),
    "draft 11, partitioned": (
        {"RateLimit": '"search";r=40;t=20;pk=:dXNlci0x:'},
        Declared(0.0, "dXNlci0x", "search", 40, 20, "ratelimit"),
    ),
    "draft 7": (
        {"RateLimit-Policy": "100;w=60", "RateLimit": "limit=100, remaining=50, reset=30"},
        Declared(0.0, "", "", 50, 30, "ratelimit"),
    ),
    "draft 6": (
        {"RateLimit-Limit": "100", "RateLimit-Remaining": "50", "RateLimit-Reset": "30"},
        Declared(0.0, "", "", 50, 30, "ratelimit-reset"),
    ),
    "draft 3": (
        {"RateLimit-Limit": "10, 10;w=1, 50;w=60", "RateLimit-Remaining": "9", "RateLimit-Reset": "1"},
        Declared(0.0, "", "", 9, 1, "ratelimit-reset"),
    ),
}


class TestWhatIsLeft:
    @pytest.mark.parametrize("dialect", LEFT)
    def test_in_each_dialect(self, dialect):
        fields, expected = LEFT[dialect]
        assert said(**fields) == expected

    @pytest.mark.parametrize("dialect", LEFT)
    def test_on_an_error_too(self, dialect):
        """Fields count with every status; an error that they do not explain gives no pause."""
        fields, expected = LEFT[dialect]
        assert said(404, **fields) == expected

    def test_the_slowest_of_several_quotas_is_told(self):
        found = said(RateLimit='"second";r=10;t=1, "minute";r=20;t=60, "day";r=5000;t=86400')
        assert (found.policy, found.remaining, found.reset) == ("day", 5000, 86400)

    def test_what_is_left_may_be_spread_over_the_time_to_the_reset(self):
        """40 left in 20 s: one in half a second."""
        assert said(RateLimit='"a";r=40;t=20').interval == 0.5
        assert said(RateLimit='"a";r=0;t=20').interval == 20
        assert said(RateLimit='"a";r=40').interval == 0.0

    def test_what_is_not_counted_in_requests_sets_no_pace(self):
        policies = '"bytes";q=9;w=60;qu="content-bytes", "slots";q=9;w=60;qu="concurrent-requests"'
        assert said(RateLimit='"bytes";r=5;t=60, "slots";r=1;t=60', RateLimit_Policy=policies) is None

    def test_a_limit_without_a_window_has_that_of_its_policy(self):
        assert said(RateLimit='"a";r=30', RateLimit_Policy='"a";q=60;w=60').reset == 60


# The same servers, when the last unit is used up. Status, fields; seconds of pause, bucket, source.
REFUSALS = {
    "github, primary": (
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000099", "x-ratelimit-resource": "core"}),
        (100, "core", "x-ratelimit-reset"),
    ),
    "github, secondary": (
        (403, {"x-ratelimit-remaining": "4000", "x-ratelimit-resource": "core", "Retry-After": "60"}),
        (60, "", "retry-after"),
    ),
    "twitter": (
        (429, {"x-rate-limit-remaining": "0", "x-rate-limit-reset": "1800000899"}),
        (900, "", "x-rate-limit-reset"),
    ),
    "reddit": ((429, {"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "395"}), (395, "", "x-ratelimit-reset")),
    "gitlab": (
        (429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000059", "Retry-After": "59"}),
        (59, "", "retry-after"),
    ),
    "discord": (
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "64.57", "x-ratelimit-bucket": "abcd"}),
        (64.57, "abcd", "x-ratelimit-reset-after"),
    ),
    "discord, with Retry-After": (
        (
            429,
            {
                "retry-after": "65",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset-after": "64.57",
                "x-ratelimit-bucket": "abcd",
            },
        ),
        (65, "abcd", "retry-after"),
    ),
    "discord, everywhere": (
        (
            429,
            {
                "retry-after": "65",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-bucket": "abcd",
                "x-ratelimit-global": "true",
            },
        ),
        (65, "", "retry-after"),
    ),
    "discord, everywhere by scope": (
        (
            429,
            {
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset-after": "9",
                "x-ratelimit-bucket": "abcd",
                "x-ratelimit-scope": "global",
            },
        ),
        (9, "", "x-ratelimit-reset-after"),
    ),
    "docker hub": ((429, {"ratelimit-remaining": "0;w=21600"}), (0, "", "ratelimit-remaining")),
    "flask-limiter": (
        (
            429,
            {
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1800000059",
                "Retry-After": DATE.replace("00:00", "00:58"),
            },
        ),
        (58, "", "retry-after"),
    ),
    "envoy": ((429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}), (7, "", "x-ratelimit-reset")),
    "kong": (
        (429, {"x-ratelimit-remaining-minute": "0", "x-ratelimit-remaining-hour": "9", "ratelimit-reset": "31"}),
        (31, "", "ratelimit-reset"),
    ),
    "openai": (
        (429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}),
        (360, "", "x-ratelimit-reset-requests"),
    ),
    "openai, tokens": (
        (
            429,
            {
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "20ms",
            },
        ),
        (0.02, "", "x-ratelimit-reset-tokens"),
    ),
    "anthropic": (
        (
            429,
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:30Z",
            },
        ),
        (31, "", "anthropic-ratelimit-input-tokens-reset"),
    ),
    "linear": (
        (400, {"x-ratelimit-requests-remaining": "0", "x-ratelimit-requests-reset": "1800003599000"}),
        (3600, "", "x-ratelimit-requests-reset"),
    ),
    "atlassian": (
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2027-01-15T08:01Z"}),
        (61, "", "x-ratelimit-reset"),
    ),
    "shopify": ((429, {"x-shopify-shop-api-call-limit": "40/40", "Retry-After": "2.0"}), (2, "", "retry-after")),
    "shopify, the last one": (
        (200, {"x-shopify-shop-api-call-limit": "40/40"}),
        (0.5, "", "x-shopify-shop-api-call-limit"),
    ),
    "azure": ((429, {"retry-after-ms": "1500", "Retry-After": "2"}), (1.5, "", "retry-after-ms")),
    "azure, cosmos": ((429, {"x-ms-retry-after-ms": "9"}), (0.009, "", "x-ms-retry-after-ms")),
    "azure, read by the number left": (
        (200, {"x-ms-ratelimit-remaining-subscription-reads": "0", "Retry-After": "17"}),
        (17, "", "retry-after"),
    ),
    "zendesk": (
        (
            429,
            {
                "x-rate-limit-remaining": "0",
                "ratelimit-remaining": "0",
                "ratelimit-reset": "41",
                "Retry-After": "42",
            },
        ),
        (42, "", "retry-after"),
    ),
    "zendesk, by one name alone": (
        (429, {"x-rate-limit-remaining": "0", "ratelimit-reset": "41"}),
        (41, "", "ratelimit-reset"),
    ),
    "draft 11": ((429, {"RateLimit": '"search";r=0;t=12'}), (12, "", "ratelimit")),
    "draft 11, partitioned": ((429, {"RateLimit": '"search";r=0;t=12;pk=:YQ==:'}), (12, "YQ==", "ratelimit")),
    "draft 7": ((429, {"RateLimit": "limit=10, remaining=0, reset=12"}), (12, "", "ratelimit")),
    "draft 7, nothing said of what is left": ((429, {"RateLimit": "limit=10, reset=12"}), (12, "", "ratelimit")),
    "draft 6": ((429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "12"}), (12, "", "ratelimit-reset")),
}


class TestRefusals:
    @pytest.mark.parametrize("server", REFUSALS)
    def test_in_each_dialect(self, server):
        (status, fields), (pause, bucket, source) = REFUSALS[server]
        found = said(status, **fields)
        assert (found.pause, found.bucket, found.source) == (pytest.approx(pause), bucket, source)


class TestRetryAfter:
    """RFC 9110, section 10.2.3: when it is an order, and for how long."""

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 403, 413, 429, 503])
    def test_it_is_an_order_on_a_refusal_and_on_a_redirect(self, status):
        assert said(status, Retry_After="7").pause == 7

    @pytest.mark.parametrize("status", [200, 201, 204, 206, 304, 400, 401, 404, 500, 502])
    def test_it_is_none_on_any_other_answer(self, status):
        assert said(status, Retry_After="7") is None

    @pytest.mark.parametrize("status", [200, 302, 304, 404])
    def test_with_nothing_left_it_is_one_on_any(self, status):
        assert said(status, Retry_After="7", X_RateLimit_Remaining="0").pause == 7

    @pytest.mark.parametrize("status", [200, 302, 304, 404])
    def test_with_something_left_it_is_none_but_on_a_refusal(self, status):
        """Some servers put it on every answer, redirects too."""
        assert said(status, Retry_After="7", X_RateLimit_Remaining="3").pause == 0
        assert said(429, Retry_After="7", X_RateLimit_Remaining="3").pause == 7

    @pytest.mark.parametrize("after", ["5", "90"])
    def test_it_comes_before_the_reset(self, after):
        found = said(429, Retry_After=after, RateLimit='"a";r=0;t=30')
        assert (found.pause, found.source, found.reset) == (float(after), "retry-after", 30)

    def test_a_malformed_one_is_as_none(self):
        assert said(429, Retry_After="soon") is None
        assert said(429, Retry_After="5, 10", RateLimit='"a";r=0;t=30').pause == 30
        assert said(429, retry_after_ms="soon", Retry_After="2").pause == 2

    def test_zero_is_no_pause(self):
        assert said(503, Retry_After="0").pause == 0

    def test_a_date_is_compared_with_the_answers_own(self):
        assert said(503, Retry_After="Fri, 15 Jan 2027 08:00:02 GMT").pause == 2
        assert declared({"Retry-After": "Fri, 15 Jan 2027 08:00:02 GMT"}, 503, now=NOW - 5).pause == 7

    def test_an_endless_one_has_an_end(self):
        assert said(503, Retry_After="9" * 5000).pause == ENDLESS_S


class TestForbidden:
    def test_with_something_left_it_is_no_rate_limit(self):
        assert said(403, X_RateLimit_Remaining="4000", X_RateLimit_Reset="1800000099").pause == 0

    def test_nor_without_any_field(self):
        assert said(403) is None

    def test_nor_with_a_reset_alone(self):
        """Only 429 says of itself that nothing is left."""
        assert said(403, X_RateLimit_Reset="1800000099") is None
        assert said(429, X_RateLimit_Reset="1800000099").pause == 100


class TestUsedUp:
    @pytest.mark.parametrize("status", [200, 201, 302, 304, 403, 404, 429, 500, 503])
    def test_nothing_left_is_a_pause_with_any_status(self, status):
        assert said(status, X_RateLimit_Remaining="0", X_RateLimit_Reset="30").pause == 30

    def test_less_than_one_is_nothing(self):
        assert said(200, X_RateLimit_Remaining="0.9", X_RateLimit_Reset="30").pause == 30

    def test_of_several_the_last_reset_counts(self):
        found = said(RateLimit='"a";r=0;t=5, "b";r=0;t=50, "c";r=1;t=500')
        assert (found.pause, found.policy) == (50, "b")
        assert (found.remaining, found.reset) == (1, 500)

    def test_bytes_that_are_used_up_are_a_pause_too(self):
        policy = '"bytes";q=9;w=60;qu="content-bytes"'
        found = said(RateLimit='"bytes";r=0;t=60', RateLimit_Policy=policy)
        assert (found.pause, found.remaining) == (60, None)

    def test_without_a_reset_there_is_no_pause(self):
        assert said(429, X_RateLimit_Remaining="0").pause == 0

    def test_a_refusal_with_something_left_is_explained_by_none_of_them(self):
        """The throttle's own backoff has to find the pace."""
        assert said(429, X_RateLimit_Remaining="5", X_RateLimit_Reset="30").pause == 0
        assert said(429, X_RateLimit_Remaining_Minute="5", RateLimit_Remaining="5", RateLimit_Reset="30").pause == 0

    @pytest.mark.parametrize("left", ["-1", "none", "", "٣", "1e3", "0, 5", "9" * 16])
    def test_what_is_no_number_says_nothing(self, left):
        assert said(200, X_RateLimit_Remaining=left, X_RateLimit_Reset="30") is None


class TestBuckets:
    def test_quotas_of_two_parts_of_the_host_pause_all_of_it(self):
        assert said(RateLimit='"a";r=0;t=5;pk=:YQ==:, "b";r=0;t=9;pk=:Yg==:').bucket == ""

    def test_one_quota_that_is_for_the_host_pauses_all_of_it(self):
        assert said(RateLimit='"a";r=0;t=5;pk=:YQ==:, "b";r=0;t=9').bucket == ""

    def test_what_is_not_used_up_does_not_widen_it(self):
        assert said(RateLimit='"a";r=0;t=5;pk=:YQ==:, "b";r=7;t=9').bucket == "YQ=="

    @pytest.mark.parametrize("name", ["x" * 101, "a\x00b", "a\x1b[2J", ""])
    def test_a_name_that_cannot_be_kept_or_shown_is_none(self, name):
        assert said(X_RateLimit_Remaining="0", X_RateLimit_Reset="5", X_RateLimit_Bucket=name).bucket == ""


class TestStoredAnswers:
    """Section 7.3 of draft 11."""

    @pytest.mark.parametrize("dialect", LEFT)
    def test_what_a_shared_cache_kept_says_nothing_of_now(self, dialect):
        fields, _ = LEFT[dialect]
        assert said(Age="12", **fields) is None

    def test_an_age_of_zero_is_none(self):
        assert said(Age="0", RateLimit='"a";r=0;t=5').pause == 5

    def test_nothing_left_in_it_makes_no_order(self):
        assert said(200, Age="12", Retry_After="7", X_RateLimit_Remaining="0") is None

    def test_a_refusal_is_heeded_all_the_same(self):
        """It tells everybody behind that cache to wait, and to wait too long does no harm."""
        assert said(503, Age="12", Retry_After="7").pause == 7


class TestHeaders:
    def test_any_mapping_will_do(self):
        for kind in (dict, CaseInsensitiveDict, HTTPHeaderDict):
            assert declared(kind({"RETRY-after": "7"}), 503, now=NOW).pause == 7
            assert declared(kind({"server": "x"}), 503, now=NOW) is None

    @pytest.mark.parametrize("value", [7, b"7", "7"])
    def test_values_of_test_doubles_are_read_as_text(self, value):
        assert declared(CaseInsensitiveDict({"Retry-After": value}), 503, now=NOW).pause == 7

    def test_none_is_no_value(self):
        assert declared(CaseInsensitiveDict({"Retry-After": None, "RateLimit": None}), 503, now=NOW) is None


class TestReset:
    """One rule for all of them."""

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            *(("0", 0), ("30", 30), ("1.5", 1.5), ("999999999", 999999999), ("30;w=60", 30)),
            *(("1800000030", 31), ("1800000030.25", 31.25), ("1799999000", 1), ("1000000000", 1)),
            *(("1800000030000", 31), ("1800000030250", 31.25), ("1000000000000", 1)),
            *(("1s", 1), ("6m0s", 360), ("20ms", 0.02), ("1h2m3s", 3723), ("7.66s", 7.66), ("1m12.5s", 72.5)),
            *(("2d", 172800),),
            *(("2027-01-15T08:00:30Z", 31), ("2027-01-15T08:00:30.500Z", 31.5), ("2027-01-15T08:01Z", 61)),
            *(("2027-01-15T09:00:30+01:00", 31), ("2027-01-15T03:30:30-0430", 31), ("2027-01-15t08:00:30z", 31)),
            *(("2027-01-15 08:00:30", 31), ("2020-01-01T00:00:00Z", 1), ("9999-12-31T23:59:59Z", 251602300800)),
            *(("Fri, 15 Jan 2027 08:00:30 GMT", 31), ("Friday, 15-Jan-27 08:00:30 GMT", 31)),
            *(("Fri Jan 15 08:00:30 2027", 31),),
        ],
    )  # fmt: skip
    def test_epoch_delta_date_and_duration_are_told_apart(self, value, seconds):
        assert seconds_until(value, server_now=NOW) == pytest.approx(seconds, rel=1e-9)

    @pytest.mark.parametrize(
        "value",
        [
            *("", "soon", "-1", "+1", "1e9", "nan", "inf", "٣", "²", "1_0", "0x10", "1,5", "1 2", "9" * 16, "9" * 5000),
            *("s", "1x", "1s2", "5 s", "-5s", "1m-1s", "1s" * 6, "٣s", "99999999999s"),
            *("2027-01-15", "2027-13-15T08:00:00Z", "2027-02-30T08:00:00Z", "2027-01-15T25:00:00Z"),
            *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "2027-01-15T08:00:00+99:00", "::::"),
            *("2027-01-15T08:00:60Z", "T", "-", "GMT"),
            *("2027-01-15T08:00:30Zulu", "2027-01-15T08", "20270115T080030Z", "Fri, 99 Jan 2027 08:00:30 GMT"),
        ],
    )  # fmt: skip
    def test_anything_else_is_none(self, value):
        assert seconds_until(value, server_now=NOW) is None

    @pytest.mark.parametrize(
        ("value", "kind", "seconds"),
        [
            ("1800000030", DELTA, 1800000030),
            ("1800000030", EPOCH, 31),
            ("30", EPOCH, 1),
            ("1800000030000", EPOCH_MS, 31),
        ],
    )
    def test_a_kind_that_is_known_is_not_guessed(self, value, kind, seconds):
        assert seconds_until(value, server_now=NOW, kind=kind) == seconds

    @pytest.mark.parametrize(
        ("host", "reset"),
        [
            ("www.reddit.com", 1800000099),
            ("reddit.com", 1800000099),
            ("notreddit.com", 100),
            ("gitlab.com", 100),
            ("", 100),
        ],
    )
    def test_the_kind_goes_by_the_end_of_the_hosts_name(self, host, reset):
        assert said(host=host, X_RateLimit_Remaining="5", X_RateLimit_Reset="1800000099").reset == reset

    def test_a_delta_that_says_so_is_one_on_any_host(self):
        assert said(host="discord.com", X_RateLimit_Remaining="5", X_RateLimit_Reset_After="1.5").reset == 1.5

    def test_the_servers_own_clock_counts(self):
        """The local one is an hour slow, and without a Date there is no other."""
        assert said(now=EARLY, X_RateLimit_Remaining="5", X_RateLimit_Reset="1800000099").reset == 100
        bare = {"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1800000099"}
        assert declared(bare, 200, now=NOW - 100).reset == 200
        assert declared({**bare, "Date": "yesterday"}, 200, now=NOW - 100).reset == 200


# Values that are nearly right, in every field that is read.
VALUES = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from('0123456789.:;=",-+TZGMT smhdrtwqpk/aé\x00'), max_size=40),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["0", "1", "1800000030", "1800000030000", '"a";r=0;t=5', "limit=1, reset=9", DATE, "1/2", "true"]),
    st.binary(max_size=20),
    st.none(),
    st.integers(),
)  # fmt: skip
NAMES = st.sampled_from(
    [*sorted(TELLING), "ratelimit-policy", "date", "age", "x-ratelimit-bucket", "x-ratelimit-global", "ratelimit-name",
     "x-ms-ratelimit-remaining-reads"]
)  # fmt: skip


class TestAnyAnswer:
    @given(
        st.dictionaries(NAMES, VALUES, max_size=8),
        st.sampled_from([200, 204, 302, 304, 403, 404, 413, 429, 500, 503]),
        st.sampled_from(["", "reddit.com", "linear.app", "gitlab.com"]),
    )
    @example({"ratelimit": '"a";r=0;t=999999999999999'}, 429, "")
    @example(
        {
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": "9999-12-31T23:59:59Z",
            "date": "Thu, 01 Jan 0001 00:00:00 GMT",
        },
        200,
        "",
    )
    def test_nothing_is_raised_and_nothing_is_without_bound(self, headers, status, host):
        found = declared(CaseInsensitiveDict(headers), status, now=NOW, host=host)
        if found is None:
            return
        for seconds in (found.pause, found.interval, found.reset or 0.0, found.remaining or 0.0):
            assert 0 <= seconds <= ENDLESS_S and math.isfinite(seconds)
        assert len(found.bucket) <= 100 and found.bucket.isprintable()
        assert len(found.policy) <= 100 and found.policy.isprintable()
        assert found.source in {*TELLING, dialects.AZURE}

    @given(st.text(max_size=100))
    def test_nor_over_a_single_value(self, text):
        for read in (number, rfc_3339, lambda value: seconds_until(value, server_now=NOW)):
            found = read(text)
            assert found is None or math.isfinite(found)
