"""Which responses are stored, and what of them. RFC 9111, section 3."""

import pytest

from kreuz_sync.cache.entry import entry_of
from kreuz_sync.cache.policy import Policy
from kreuz_sync.cache.storing import refusal, storable_fields, to_store

from .cache_values import KEYS, NOW, RFC, TTL, URL, ask, cached, date, stored

FRESH = ("Cache-Control", "max-age=60")


def refused(*fields, policy=RFC, status=200, to=None, **options):
    return refusal(to or ask(), status, fields, policy, KEYS, received=NOW, **options)


def kept(*fields, policy=RFC, to=None, **values):
    return to_store(
        to or ask(),
        values.get("status", 200),
        "OK",
        11,
        fields,
        policy,
        KEYS,
        request_time=NOW - 1,
        response_time=NOW,
        elapsed=0.5,
    )


class TestBothPolicies:
    """What never is stored, whatever the policy."""

    policies = pytest.mark.parametrize("policy", [RFC, TTL, Policy(keep_no_store=True)])

    @policies
    def test_an_ordinary_page_is(self, policy):
        assert refused(FRESH, policy=policy) is None

    @policies
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (ask("HEAD"), "method"),
            (ask("POST"), "method"),
            (ask("PUT"), "method"),
            (ask("OPTIONS"), "method"),
            (ask(cache_control="no-store"), "no-store"),
            (ask(range="bytes=0-5"), "range"),
        ],
    )
    def test_what_the_request_forbids(self, policy, request_, reason):
        """A 200 to a range request, too."""
        assert refused(FRESH, policy=policy, to=request_) == reason

    @policies
    @pytest.mark.parametrize("status", [100, 103, 206, 304, 428, 429, 431, 511])
    def test_what_is_no_answer_of_its_own(self, policy, status):
        assert refused(FRESH, policy=policy, status=status) == "status"

    @policies
    def test_a_challenge_page(self, policy):
        assert refused(FRESH, policy=policy, challenge=True) == "challenge"

    @policies
    @pytest.mark.parametrize("vary", ["*", "Accept, *"])
    def test_what_no_request_would_match(self, policy, vary):
        assert refused(FRESH, ("Vary", vary), policy=policy) == "vary"


class TestTtl:
    """A fixed time, whatever the server says about freshness."""

    @pytest.mark.parametrize("status", [200, 201, 203, 204, 226, 301, 308])
    def test_success_and_permanent_redirects_are_stored(self, status):
        assert refused(policy=TTL, status=status) is None

    @pytest.mark.parametrize("status", [300, 302, 303, 307, 400, 401, 403, 404, 410, 500, 503])
    def test_errors_and_other_redirects_are_not_even_with_a_lifetime(self, status):
        assert refused(FRESH, policy=TTL, status=status) == "status"

    @pytest.mark.parametrize(
        "said", ["no-cache", "max-age=0", "must-revalidate, max-age=0", "private", "max-age=x", "must-understand"]
    )
    def test_what_the_server_says_about_freshness_does_not_matter(self, said):
        assert refused(("Cache-Control", said), ("Expires", "0"), policy=TTL) is None

    def test_no_store_is_about_secrecy_and_is_obeyed_unless_the_user_says_otherwise(self):
        line = ("Cache-Control", "no-store")
        assert refused(line, policy=TTL) == "no-store"
        assert refused(line, policy=Policy(keep_no_store=True)) is None

    def test_a_pattern_may_say_not_to_store(self):
        assert refused(policy=Policy(ttl_by_url={"example.com": None})) == "pattern"

    def test_the_time_is_noted_with_the_entry(self):
        assert kept(policy=TTL).kept_for == 3600.0
        assert kept(policy=Policy(ttl_by_url={"example.com/page": 0})).kept_for == 0.0
        assert kept(FRESH).kept_for is None


class TestRfc9111:
    @pytest.mark.parametrize("status", [200, 203, 204, 299, 302, 307, 400, 403, 404, 499, 500, 502, 504, 599])
    def test_any_final_status_with_a_lifetime_is_stored(self, status):
        assert refused(FRESH, status=status) is None
        assert refused(("Expires", date(60)), ("Date", date()), status=status) is None

    @pytest.mark.parametrize("status", [201, 202, 302, 307, 403, 500, 502, 503])
    def test_others_need_a_word_that_permits_it(self, status):
        validator = ("Last-Modified", date(-1000))
        assert refused(validator, status=status) == "freshness"
        assert refused(validator, ("Cache-Control", "public"), status=status) is None

    @pytest.mark.parametrize("status", [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
    def test_some_need_none(self, status):
        assert refused(("Last-Modified", date(-1000)), ("Date", date()), status=status) is None

    @pytest.mark.parametrize(
        ("said", "status", "reason"),
        [
            ("no-store", 200, "no-store"),
            ("max-age=60, No-Store", 200, "no-store"),
            ("max-age=60, no-store, must-understand", 200, None),
            ("max-age=60, no-store, must-understand", 599, "status"),
            ("max-age=60, must-understand", 599, "status"),
            ("private, max-age=60", 200, None),
            ("no-cache, max-age=60", 200, None),
        ],
    )
    def test_directives(self, said, status, reason):
        assert refused(("Cache-Control", said), status=status) == reason

    @pytest.mark.parametrize(
        "fields",
        [
            [("ETag", '"a"')],
            [("Last-Modified", date(0)), ("Date", date())],
            [("Cache-Control", "max-age=0, stale-if-error=60")],
            [("Cache-Control", "max-age=0, stale-while-revalidate=60")],
            [("Cache-Control", "no-cache"), ("ETag", '"a"')],
            [("Expires", date(60))],
        ],
    )
    def test_stale_at_once_it_is_stored_if_something_can_be_done_with_it(self, fields):
        assert refused(*fields) is None

    @pytest.mark.parametrize(
        "fields", [[], [("Cache-Control", "max-age=0")], [("Expires", "0")], [("Cache-Control", "public")]]
    )
    def test_what_could_never_be_reused_would_only_push_out_others(self, fields):
        assert refused(*fields) == "freshness"

    def test_authorization_does_not_forbid_it_in_a_private_cache(self):
        assert refused(FRESH, to=ask(authorization="Bearer x")) is None


class TestPost:
    """RFC 9110, section 9.3.3."""

    @pytest.mark.parametrize(
        ("fields", "status", "reason"),
        [
            ([FRESH, ("Content-Location", "/page")], 200, None),
            ([FRESH, ("Content-Location", URL)], 201, None),
            ([("Expires", date(60)), ("Content-Location", "/page")], 200, None),
            ([FRESH, ("Content-Location", "/other")], 200, "method"),
            ([FRESH, ("Content-Location", "http://[")], 200, "method"),
            ([FRESH], 200, "method"),
            ([("ETag", '"a"'), ("Content-Location", "/page")], 200, "method"),
            ([FRESH, ("Content-Location", "/page")], 404, "method"),
        ],
    )
    def test_an_answer_that_says_what_a_get_gets_is_stored(self, fields, status, reason):
        assert refused(*fields, to=ask("POST"), status=status) == reason

    def test_but_not_for_a_fixed_time_unless_the_user_wants_posts(self):
        assert refused(FRESH, ("Content-Location", "/page"), policy=TTL, to=ask("POST")) == "method"
        assert refused(policy=TTL, to=ask("POST"), posts=True) is None


class TestFields:
    """Section 3.1."""

    @pytest.mark.parametrize(
        "name",
        [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "transfer-encoding",
            "Upgrade",
            "Proxy-Authenticate",
            "Proxy-Authentication-Info",
            "Proxy-Authorization",
        ],
    )
    def test_what_is_for_one_connection_is_left_out(self, name):
        assert storable_fields(((name, "x"), ("Date", date())), received=NOW) == (("Date", date()),)

    def test_and_what_connection_lists(self):
        fields = (("Connection", "a, B"), ("A", "1"), ("b", "2"), ("C", "3"), ("Date", date()))
        assert storable_fields(fields, received=NOW) == fields[3:]

    def test_but_not_what_the_rest_is_nothing_without(self):
        fields = (("Connection", "vary, cache-control"), ("Vary", "a"), FRESH, ("Date", date()))
        assert storable_fields(fields, received=NOW) == fields[1:]

    def test_all_others_stay_in_order_with_their_duplicates(self):
        fields = (("X", "1"), ("Set-Cookie", "a=b"), ("x", "2"), ("Content-Range", "odd"), ("Date", date()))
        assert storable_fields(fields, received=NOW) == fields

    def test_one_without_a_date_gets_that_of_receipt(self):
        """RFC 9110, section 6.6.1."""
        assert storable_fields((("X", "1"),), received=NOW) == (("X", "1"), ("Date", date()))

    def test_fields_that_no_cache_lists_are_not_stored_so_that_the_rest_may_be_reused(self):
        fields = (
            ("Cache-Control", 'no-cache="a, b", max-age=60'),
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("Date", date()),
        )
        assert storable_fields(fields, received=NOW) == (fields[0], *fields[3:])
        assert not cached('no-cache="a, b", max-age=60').validate_first

    def test_unless_the_rest_is_nothing_without_them(self):
        assert cached('no-cache="content-encoding", max-age=60').validate_first
        assert cached('no-cache="@", max-age=60').validate_first


class TestStored:
    def test_the_head_has_all_that_a_decision_needs(self):
        request = ask(url="https://me:pw@example.com/page?token=s3cret", accept="x", authorization="Bearer s3cret")
        head = kept(FRESH, ("Vary", "Accept, Authorization"), to=request)
        assert (head.method, head.status, head.reason, head.version, head.size) == ("GET", 200, "OK", 11, -1)
        assert (head.request_time, head.response_time, head.elapsed) == (NOW - 1, NOW, 0.5)
        assert head.vary == ("accept", "authorization")
        assert "s3cret" not in repr(head)
        assert "pw" not in repr(head)

    def test_that_the_body_was_chunked_is_noted(self):
        """Immutable counts only for what is whole beyond doubt, and the field itself is not stored."""
        assert kept(("Transfer-Encoding", "gzip, chunked")).extra == {"chunked": True}
        assert kept(("Transfer-Encoding", "gzip")).extra == {}


class TestTwoPoliciesOnOneStore:
    """A folder outlives the settings that filled it."""

    def test_the_standard_s_policy_does_not_use_what_it_would_not_have_stored(self):
        assert entry_of(stored(("Cache-Control", "no-store"), kept_for=3600.0), RFC, URL) is None
        assert entry_of(stored(kept_for=3600.0), RFC, URL) is None
        assert entry_of(stored(FRESH, kept_for=3600.0), RFC, URL).lifetime == 60

    def test_nor_does_a_fixed_time_use_a_stored_error(self):
        assert entry_of(stored(FRESH, status=404), TTL, URL) is None
        assert entry_of(stored(FRESH), TTL, URL).lifetime == 3600

    @pytest.mark.parametrize(
        ("kept_for", "ttl", "lifetime"),
        [
            (3600.0, 60, 60),
            (60.0, 3600, 60),
            (0.0, 60, 60),
            (60.0, 0, 60),
            (0.0, 0, float("inf")),
            (None, 0, float("inf")),
        ],
    )
    def test_the_shorter_time_counts_and_nought_is_for_ever(self, kept_for, ttl, lifetime):
        assert entry_of(stored(FRESH, kept_for=kept_for), Policy(ttl=ttl), URL).lifetime == lifetime

    def test_a_time_given_by_hand_is_final(self):
        pinned = stored(kept_for=7200.0, extra={"pinned": True})
        assert entry_of(pinned, Policy(ttl=60), URL).lifetime == 7200

    def test_a_pattern_that_forbids_to_store_makes_what_is_there_stale(self):
        assert entry_of(stored(kept_for=60.0), Policy(ttl_by_url={"*": None}), URL).lifetime == 0
