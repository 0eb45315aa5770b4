"""What to do with a request: RFC 9111, sections 4 and 5.2; RFC 5861; RFC 8246; and per call."""

import pytest

from kreuz_sync.cache.ask import Ask
from kreuz_sync.cache.decisions import AskAgain, Forward, Freshen, Hit, PassOn, Refuse
from kreuz_sync.cache.policy import NO_WISHES, Policy, Wishes
from kreuz_sync.cache.reuse import conclude, decide, scope, validated, validation, without_answer
from kreuz_sync.cache.validation import Nominee

from .cache_values import NOW, RFC, TTL, URL, ask, cached, date, entry

TAG = ("ETag", '"a"')
PLAIN = ask()


def decided(request, held, *, after=0.0, wishes=NO_WISHES, **options):
    return decide(request, held, "key", wishes, now=NOW + after, **options)


def stale_as(request, held, *, after=0.0, wishes=NO_WISHES):
    """Why a stale response is used: "fresh" if it is not stale, "-" if it is not used."""
    decision = decided(request, held, after=after, wishes=wishes)
    return (decision.stale or "fresh") if isinstance(decision, Hit) else "-"


class TestScope:
    """What is decided without looking into the store."""

    @pytest.mark.parametrize("request_", [ask(), ask("HEAD"), ask(cache_control="no-cache"), ask(range="bytes=0-5")])
    def test_it_is_looked_into_for_get_and_head(self, request_):
        assert scope(request_) is None

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "M-SEARCH"])
    def test_other_methods_are_written_through(self, method):
        assert scope(ask(method)).reason == "method"

    def test_only_a_post_may_leave_something_to_store(self):
        assert scope(ask("POST")).keep
        assert not scope(ask("POST", cache_control="no-store")).keep
        assert not scope(ask("PUT")).keep
        assert scope(ask("POST", content_length="3"), posts=True) is None

    @pytest.mark.parametrize(
        "request_",
        [
            ask(cache_control="no-store"),
            ask(if_match='"a"'),
            ask(if_unmodified_since=date()),
            ask(range="bytes=0-5", if_range='"a"'),
            ask(range="bytes=0-1, 3-4"),
            ask(range="lines=1-2"),
            ask(range="bytes=x"),
            ask(content_length="5"),
        ],
    )
    def test_what_no_stored_response_can_answer_goes_to_the_origin_and_leaves_nothing(self, request_):
        assert scope(request_) == Forward("request", keep=False)

    @pytest.mark.parametrize("request_", [ask("PUT", cache_control="only-if-cached"), ask("POST"), ask(if_match='"a"')])
    def test_unless_nobody_may_be_asked(self, request_):
        wishes = Wishes(offline="cache-control" not in request_.fields)
        assert scope(request_, wishes) == Refuse("only-if-cached")

    def test_reuse_is_not_what_no_store_forbids(self):
        assert scope(ask(cache_control="no-store, only-if-cached")) is None

    def test_a_head_has_no_range(self):
        assert scope(ask("HEAD", range="lines=1-2")) is None


class TestNothingStored:
    def test_a_miss(self):
        assert decided(ask(), None) == Forward("uri-miss")

    @pytest.mark.parametrize(
        ("request_", "wishes"), [(ask(cache_control="only-if-cached"), Wishes()), (ask(), Wishes(offline=True))]
    )
    def test_nobody_may_be_asked(self, request_, wishes):
        assert decided(request_, None, wishes=wishes) == Refuse("only-if-cached")

    def test_no_variant_matches_but_the_origin_may_say_that_one_will_do(self):
        """Section 4.1: all their entity tags in one If-None-Match, and no date."""
        others = [
            Nominee("k1", '"a"', date(), 1.0),
            Nominee("k2", None, date(), 1.0),
            Nominee("k3", 'W/"b"', None, 1.0),
        ]
        decision = decided(ask(), None, others=others)
        assert (decision.reason, decision.conditions) == ("vary-miss", {"If-None-Match": '"a", W/"b"'})
        assert [nominee.key for nominee in decision.nominees] == ["k1", "k3"]

    @pytest.mark.parametrize(
        "request_", [ask(if_none_match='"x"'), ask(cache_control="no-cache"), ask(range="bytes=0-5")]
    )
    def test_not_where_the_caller_has_a_say(self, request_):
        assert decided(request_, None, others=[Nominee("k", '"a"', None, 1.0)]) == Forward("vary-miss")


class TestFresh:
    def test_a_hit_says_its_age_and_the_time_it_has_left(self):
        hit = decided(ask(), cached("max-age=60", ("Age", "10")), after=5)
        assert (hit.age, hit.ttl, hit.stale, hit.refresh, hit.status) == (15, 45, None, False, 200)

    def test_its_age_is_in_the_answer_once_and_whole(self):
        held = cached("max-age=60", ("age", "10"), ("Date", date()))
        assert decided(ask(), held, after=5.9).fields == (
            ("Cache-Control", "max-age=60"),
            ("Date", date()),
            ("Age", "15"),
        )

    @pytest.mark.parametrize("status", [200, 301, 404, 599])
    def test_the_status_is_the_stored_one(self, status):
        assert decided(ask(), cached("max-age=60", status=status)).status == status

    def test_stale_it_is_validated(self):
        decision = decided(ask(), cached("max-age=60", TAG, ("Last-Modified", date(-9))), after=61)
        assert decision.reason == "stale"
        assert decision.conditions == {"If-None-Match": '"a"', "If-Modified-Since": date(-9)}

    def test_without_validators_it_is_fetched_anew(self):
        decision = decided(ask(), cached("max-age=60"), after=61)
        assert (decision.conditions, decision.nominees) == ({}, ())

    @pytest.mark.parametrize("said", ["no-cache", "max-age=60, no-cache", "max-age=60, No-CaChE"])
    def test_no_cache_is_never_used_without_asking(self, said):
        assert decided(ask(), cached(said, TAG)).conditions == {"If-None-Match": '"a"'}

    def test_pragma_in_a_response_means_nothing(self):
        assert stale_as(ask(), cached("max-age=60", ("Pragma", "no-cache"))) == "fresh"

    def test_a_clock_that_stepped_back_makes_no_negative_age(self):
        assert decided(ask(), cached("max-age=60"), after=-1000).age == 0


class TestRequestDirectives:
    """Section 5.2.1; the same for both policies, whatever the origin says."""

    @pytest.mark.parametrize("policy", [RFC, TTL])
    @pytest.mark.parametrize(
        ("said", "after", "use"),
        [
            ("max-age=10", 9, "fresh"),
            ("max-age=10", 10, "fresh"),
            ("max-age=10", 11, "-"),
            ("max-age=0", 0, "-"),
            ("max-age=x", 0, "-"),
            ("min-fresh=3590", 9, "fresh"),
            ("min-fresh=3590", 10, "fresh"),
            ("min-fresh=3590", 11, "-"),
            ("no-cache", 0, "-"),
            ("max-stale=10", 3609, "max-stale"),
            ("max-stale=10", 3610, "max-stale"),
            ("max-stale=10", 3611, "-"),
            ("max-stale", 1e9, "max-stale"),
            ("max-stale=0", 3601, "-"),
            ("max-age=10, max-stale=5", 14, "max-stale"),
            ("max-age=10, max-stale=5", 16, "-"),
            ("max-age=0, max-stale=5", 4, "max-stale"),
            ("min-fresh=3590, max-stale=5", 14, "max-stale"),
            ("no-cache, max-stale", 10, "-"),
            ("x-unknown=1", 10, "fresh"),
        ],
    )
    def test_table(self, policy, said, after, use):
        held = cached("max-age=3600", policy=policy)
        assert stale_as(ask(cache_control=said), held, after=after) == use

    @pytest.mark.parametrize("said", ["max-age=60, must-revalidate", "max-age=60, no-cache"])
    def test_no_request_makes_stale_what_the_origin_forbids(self, said):
        assert stale_as(ask(cache_control="max-stale"), cached(said), after=61) == "-"

    def test_s_maxage_and_proxy_revalidate_are_for_shared_caches(self):
        held = cached("max-age=60, s-maxage=1, proxy-revalidate")
        assert stale_as(ask(), held, after=30) == "fresh"
        assert stale_as(ask(cache_control="max-stale"), held, after=90) == "max-stale"

    def test_pragma_asks_for_validation(self):
        assert stale_as(ask(pragma="no-cache"), cached("max-age=60")) == "-"

    def test_only_if_cached_is_answered_from_the_store_or_with_504(self):
        only = ask(cache_control="only-if-cached")
        assert stale_as(only, cached("max-age=60")) == "fresh"
        assert decided(only, cached("max-age=60"), after=61) == Refuse("only-if-cached")
        assert decided(ask(cache_control="only-if-cached, no-cache"), cached("max-age=60")) == Refuse("only-if-cached")

    def test_validation_that_the_caller_wants_is_told_from_that_of_the_stale(self):
        """RFC 9211, section 2.2."""
        assert decided(ask(cache_control="no-cache"), cached("max-age=60")).reason == "request"
        assert decided(ask(cache_control="no-cache"), cached("max-age=60"), after=61).reason == "stale"
        assert decided(ask(), cached("no-cache")).reason == "stale"


class TestTtl:
    """A fixed time counts from receipt, whatever the origin says."""

    @pytest.mark.parametrize(
        "fields",
        [
            [("Cache-Control", "max-age=0, no-cache")],
            [("Expires", "0")],
            [("Age", "100000"), ("Cache-Control", "max-age=5")],
            [("Date", date(-100_000))],
            [("Date", "foo")],
            [],
        ],
    )
    def test_from_receipt_on(self, fields):
        held = entry(*fields, policy=TTL)
        assert stale_as(ask(), held, after=3599) == "fresh"
        assert stale_as(ask(), held, after=3600) == "-"

    def test_nought_never_ends(self):
        hit = decided(ask(), entry(policy=Policy(ttl=0)), after=1e10)
        assert hit.ttl == float("inf")

    def test_afterwards_it_is_validated_rather_than_fetched(self):
        assert decided(ask(), entry(TAG, policy=TTL), after=3601).conditions == {"If-None-Match": '"a"'}

    def test_the_origin_s_grants_for_stale_use_do_not_count(self):
        held = cached("stale-while-revalidate=9999, stale-if-error=9999", policy=TTL)
        assert stale_as(ask(), held, after=3601) == "-"


class TestStaleWhileRevalidate:
    """RFC 5861, section 3."""

    held = cached("max-age=60, stale-while-revalidate=30", TAG)

    @pytest.mark.parametrize(
        ("after", "use"), [(59, "fresh"), (61, "stale-while-revalidate"), (90, "stale-while-revalidate"), (91, "-")]
    )
    def test_for_its_seconds_it_is_used_at_once(self, after, use):
        assert stale_as(ask(), self.held, after=after) == use

    def test_and_validated_in_the_background(self):
        assert decided(ask(), self.held, after=61).refresh
        assert not decided(ask(), self.held, after=59).refresh
        assert validation("key", self.held).conditions == {"If-None-Match": '"a"'}

    def test_but_not_where_nobody_may_be_asked(self):
        hit = decided(ask(cache_control="only-if-cached"), self.held, after=61)
        assert (hit.stale, hit.refresh) == ("stale-while-revalidate", False)

    @pytest.mark.parametrize("said", ["no-cache", "max-age=1000", "min-fresh=1"])
    def test_not_for_a_caller_who_says_how_fresh_it_must_be(self, said):
        assert stale_as(ask(cache_control=said), self.held, after=61) == "-"

    @pytest.mark.parametrize("said", ["must-revalidate", "no-cache"])
    def test_nor_where_the_origin_forbids_it(self, said):
        assert stale_as(ask(), cached(f"max-age=60, stale-while-revalidate=30, {said}"), after=61) == "-"


class TestImmutable:
    """RFC 8246."""

    held = cached("max-age=60, immutable", ("Content-Length", "100"))

    def test_a_reload_is_no_reason_to_validate_it_while_it_is_fresh(self):
        assert stale_as(ask(cache_control="max-age=0"), self.held) == "fresh"
        assert stale_as(ask(), self.held, wishes=Wishes(always_revalidate=True)) == "fresh"
        assert stale_as(ask(cache_control="max-age=0"), self.held, after=61) == "-"

    def test_but_what_the_caller_demands_in_so_many_words_is(self):
        assert stale_as(ask(cache_control="no-cache"), self.held) == "-"
        assert stale_as(ask(cache_control="max-age=5"), self.held, after=6) == "-"

    @pytest.mark.parametrize(
        "held",
        [
            cached("max-age=60, immutable", ("Content-Length", "100"), url="http://example.com/page"),
            cached("max-age=60, immutable"),
        ],
    )
    def test_it_does_not_count_over_plain_http_or_without_framing(self, held):
        assert stale_as(ask(cache_control="max-age=0"), held) == "-"

    def test_a_chunked_body_is_framed(self):
        assert cached("max-age=60, immutable", extra={"chunked": True}).immutable


class TestWishes:
    def test_always_revalidate(self):
        decision = decided(ask(), cached("max-age=60", TAG), wishes=Wishes(always_revalidate=True))
        assert (decision.reason, decision.conditions) == ("request", {"If-None-Match": '"a"'})
        assert (
            stale_as(ask(cache_control="max-stale"), cached("max-age=60"), wishes=Wishes(always_revalidate=True)) == "-"
        )

    @pytest.mark.parametrize(
        ("held", "use"),
        [
            (cached("max-age=60"), "offline"),
            (cached("max-age=3600"), "fresh"),
            (cached("max-age=60, must-revalidate"), "-"),
            (cached("no-cache"), "-"),
            (cached("no-cache, must-revalidate", policy=Policy(ttl=60)), "offline"),
        ],
    )
    def test_offline_takes_what_there_is_as_far_as_the_origin_lets_it(self, held, use):
        """Under a fixed time the origin has no say in it."""
        assert stale_as(ask(), held, after=100, wishes=Wishes(offline=True)) == use

    def test_offline_never_asks(self):
        assert decided(ask(cache_control="no-cache"), cached("max-age=60"), wishes=Wishes(offline=True)) == Refuse(
            "only-if-cached"
        )
        assert scope(ask("PUT"), Wishes(offline=True)) == Refuse("only-if-cached")


class TestHead:
    def test_a_stored_get_answers_it(self):
        assert stale_as(ask("HEAD"), cached("max-age=60")) == "fresh"

    def test_stale_it_is_validated_with_head(self):
        assert decided(ask("HEAD"), cached("max-age=60", TAG), after=61).conditions == {"If-None-Match": '"a"'}


class TestPost:
    def test_it_is_never_made_conditional(self):
        """A condition on a POST is one for carrying it out."""
        decision = decided(ask("POST", content_length="1"), cached("max-age=60", TAG), after=61)
        assert (decision.reason, decision.conditions, decision.nominees) == ("stale", {}, ())


class TestOwnConditions:
    """Section 4.3.2."""

    def test_a_fresh_response_answers_them(self):
        hit = decided(ask(if_none_match='"a"'), cached("max-age=60", TAG, ("Date", date()), ("Content-Type", "x/y")))
        assert hit.status == 304
        assert hit.fields == (("Cache-Control", "max-age=60"), TAG, ("Date", date()), ("Age", "0"))

    def test_if_they_do_not_hold_it_is_sent_whole(self):
        assert decided(ask(if_none_match='"b"'), cached("max-age=60", TAG)).status == 200

    def test_stale_they_go_to_the_origin_as_they_are(self):
        held = cached("max-age=60", TAG, ("Last-Modified", date(-9)))
        decision = decided(ask(if_none_match='"b"'), held, after=61)
        assert (decision.conditions, decision.nominees) == ({}, ())

    @pytest.mark.parametrize("request_", [ask(if_none_match='"b", W/"a"'), ask(if_modified_since=date(-9))])
    def test_and_a_304_is_about_what_is_stored_if_they_name_it(self, request_):
        held = cached("max-age=60", TAG, ("Last-Modified", date(-9)))
        forward = decided(request_, held, after=61)
        conclusion = conclude(request_, forward, 304, (), RFC, now=NOW + 61)
        assert conclusion == Freshen(Nominee("key", '"a"', date(-9), held.date), pass_on=True)


class TestRanges:
    """RFC 9110, section 14.2, answered from a stored whole."""

    held = cached("max-age=60", ("Content-Length", "100"), ("A", "1"))

    def test_a_part_of_a_fresh_response(self):
        hit = decided(ask(range="bytes=10-19"), self.held)
        assert (hit.status, hit.part) == (206, (10, 19, 100))
        assert hit.fields[1:] == (
            ("A", "1"),
            ("Content-Range", "bytes 10-19/100"),
            ("Content-Length", "10"),
            ("Age", "0"),
        )

    def test_what_lies_beyond_the_end_is_for_the_origin(self):
        assert decided(ask(range="bytes=100-"), self.held) == Forward("partial", keep=False)
        assert decided(ask(range="bytes=100-", cache_control="only-if-cached"), self.held) == Refuse("only-if-cached")

    def test_that_of_a_coded_body_is_for_the_origin(self):
        coded = cached("max-age=60", ("Content-Encoding", "gzip"))
        assert decided(ask(range="bytes=10-19"), coded) == Forward("partial", keep=False)

    def test_stale_it_is_validated_first(self):
        held = cached("max-age=60", TAG)
        assert decided(ask(range="bytes=0-5"), held, after=61).conditions == {"If-None-Match": '"a"'}
        assert validated(ask(range="bytes=0-5"), held, now=NOW + 61).part == (0, 5, 100)

    def test_a_condition_comes_before_a_range(self):
        assert decided(ask(range="bytes=0-5", if_none_match='"a"'), cached("max-age=60", TAG)).status == 304

    def test_only_a_200_has_parts(self):
        assert decided(ask(range="bytes=0-5"), cached("max-age=60", status=404)).status == 404

    def test_a_head_has_no_range(self):
        assert decided(ask("HEAD", range="bytes=0-5"), self.held).status == 200


class TestConclude:
    """Section 4.3.3."""

    held = cached("max-age=60", TAG)

    def forward(self, request=PLAIN, held=held):
        return decided(request, held, after=61)

    def test_a_304_confirms_what_it_was_asked_about(self):
        conclusion = conclude(ask(), self.forward(), 304, (TAG,), RFC, now=NOW + 61)
        assert conclusion == Freshen(self.forward().nominees[0], pass_on=False)

    def test_one_that_contradicts_is_asked_again_without_conditions(self):
        conclusion = conclude(ask(), self.forward(), 304, (("ETag", '"b"'),), RFC, now=NOW + 61)
        assert isinstance(conclusion, AskAgain)
        assert conclusion.forward == self.forward()._replace(conditions={}, nominees=())

    def test_one_that_nobody_asked_for_is_passed_on(self):
        forward = Forward("uri-miss")
        assert conclude(ask(), forward, 304, (), RFC, now=NOW) == PassOn(keep=False)

    def test_a_whole_answer_takes_the_place_of_what_was_stored(self):
        assert conclude(ask(), self.forward(), 200, (), RFC, now=NOW) == PassOn(keep=True, supersedes=True)
        assert conclude(ask(), Forward("uri-miss"), 200, (), RFC, now=NOW) == PassOn(keep=True)
        assert conclude(ask(), Forward("request", keep=False), 200, (), RFC, now=NOW) == PassOn(keep=False)

    @pytest.mark.parametrize("status", [206, 404, 429])
    def test_other_answers_leave_it(self, status):
        assert not conclude(ask(), self.forward(), status, (), RFC, now=NOW + 61).supersedes

    @pytest.mark.parametrize("status", [500, 502, 503, 504])
    def test_an_error_is_passed_on_and_never_stored_in_its_place(self, status):
        """Even one with a lifetime: the old response is what the error may be bridged with."""
        assert conclude(ask(), self.forward(), status, (), RFC, now=NOW + 61) == PassOn(keep=False)


class TestStaleIfError:
    """RFC 5861, section 4, and section 4.2.4 of RFC 9111."""

    @staticmethod
    def bridged(held, *, after, status=503, policy=RFC, request=PLAIN, wishes=NO_WISHES):
        forward = decided(request, held, after=after, wishes=wishes)
        if status is None:
            found = without_answer(request, forward, policy, wishes, now=NOW + after)
        else:
            found = conclude(request, forward, status, (), policy, wishes, now=NOW + after)
        return found.stale if isinstance(found, Hit) else None

    @pytest.mark.parametrize("status", [500, 502, 503, 504, None])
    def test_the_origin_grants_seconds_after_its_end(self, status):
        held = cached("max-age=60, stale-if-error=30", TAG)
        assert self.bridged(held, after=90, status=status) == "stale-if-error"
        assert self.bridged(held, after=91, status=status) == (None if status else "disconnected")

    @pytest.mark.parametrize("status", [200, 304, 400, 404, 429, 501, 505])
    def test_other_statuses_are_answers(self, status):
        assert self.bridged(cached("max-age=60, stale-if-error=30"), after=61, status=status) is None

    def test_so_may_the_request_the_call_and_the_policy(self):
        held, wishes = cached("max-age=60"), Wishes(stale_if_error=30)
        assert self.bridged(held, after=90, request=ask(cache_control="stale-if-error=30")) == "stale-if-error"
        assert self.bridged(held, after=90, wishes=wishes) == "stale-if-error"
        assert self.bridged(held, after=91, wishes=wishes) is None
        assert self.bridged(held, after=90, policy=Policy("rfc9111", stale_if_error=30)) == "stale-if-error"

    def test_a_call_may_want_less_than_the_policy_gives(self):
        policy = Policy("rfc9111", stale_if_error=30)
        assert self.bridged(cached("max-age=60"), after=61, policy=policy, wishes=Wishes(stale_if_error=0)) is None

    def test_a_fixed_time_may_be_bridged_too(self):
        held, policy = entry(policy=TTL), Policy(stale_if_error=60)
        assert self.bridged(held, after=3650, policy=policy) == "stale-if-error"
        assert self.bridged(held, after=3650, policy=TTL, status=None) is None

    @pytest.mark.parametrize("policy", [RFC, TTL])
    @pytest.mark.parametrize("status", [503, None])
    def test_must_revalidate_forbids_it(self, policy, status):
        held = cached("max-age=60, must-revalidate, stale-if-error=9999", policy=policy)
        assert self.bridged(held, after=3700, status=status, wishes=Wishes(stale_if_error=9999)) is None

    @pytest.mark.parametrize("status", [503, None])
    def test_and_so_does_a_caller_who_wants_it_validated(self, status):
        held = cached("max-age=60, stale-if-error=9999")
        assert self.bridged(held, after=61, status=status, request=ask(cache_control="no-cache")) is None

    def test_without_a_connection_a_stale_response_is_better_than_none_for_a_day(self):
        assert self.bridged(cached("max-age=60"), after=61, status=None) == "disconnected"
        assert self.bridged(cached("max-age=60"), after=60 + 86_401, status=None) is None
        assert self.bridged(cached("max-age=60"), after=61, status=503) is None

    def test_what_is_used_keeps_to_the_caller_s_range_and_condition(self):
        held = cached("max-age=60, stale-if-error=30", TAG)
        for request, status in ((ask(range="bytes=0-5"), 206), (ask(if_none_match='"a"'), 304)):
            forward = decided(request, held, after=61)
            assert conclude(request, forward, 503, (), RFC, now=NOW + 61).status == status

    def test_a_miss_has_nothing_to_bridge_with(self):
        assert without_answer(ask(), Forward("uri-miss"), RFC, now=NOW) is None


class TestOutdated:
    """After a HEAD that told of another representation."""

    @pytest.mark.parametrize("policy", [RFC, TTL])
    def test_it_is_never_taken_for_fresh(self, policy):
        held = cached("max-age=60, stale-while-revalidate=60, immutable", extra={"outdated": True}, policy=policy)
        assert stale_as(ask(), held) == "-"


class TestOpenToAll:
    """What was stored for nobody in particular may answer who only shows cookies, if the origin says so."""

    @pytest.mark.parametrize(
        ("held", "is_open"),
        [
            (cached("public, max-age=60"), True),
            (entry(("Expires", date(60)), ("Cache-Control", "public")), True),
            (cached("max-age=60"), False),
            (cached("public, max-age=60, private"), False),
            (cached("public, max-age=60", ("Set-Cookie", "a=b")), False),
            (cached("public"), False),
            (entry(("Last-Modified", date(-1000))), False),
            (cached("public, max-age=60", policy=TTL), False),
        ],
    )
    def test_only_where_it_is_called_public_with_a_lifetime(self, held, is_open):
        assert held.open_to_all is is_open


class TestFastPath:
    def test_a_plain_hit_reads_no_field_of_the_request(self):
        request = Ask("GET", URL, {"User-Agent": "x", "Accept": "*/*"})
        request.fields = None
        assert isinstance(decide(request, cached("max-age=60"), "key", now=NOW), Hit)
