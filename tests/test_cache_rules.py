"""The rules of the cache together, in what happens in the field: several requests in a row, no wire."""

from __future__ import annotations

import pytest

from kreuz_sync.cache.dates import imf_fixdate
from kreuz_sync.cache.decisions import Hit
from kreuz_sync.cache.policy import Policy, Wishes

from .cache_simulation import Answer, Disconnected, Simulation, Time

RFC, TTL = Policy("rfc9111"), Policy("ttl", ttl=3600)
URL = "http://example.com/page"
both_policies = pytest.mark.parametrize("policy", [RFC, TTL], ids=["rfc9111", "ttl"])


class Site:
    """An origin: `answer` is called with method, URL and fields; `sent` counts its requests by URL."""

    def __init__(self, answer, policy=RFC):
        self.time = Time()
        self.answer = answer
        self.sent = []
        self.cache = Simulation(self._answer, policy, self.time)

    def _answer(self, method, url, fields, body):
        self.sent.append((method, url, dict(fields)))
        answer = self.answer(method, url, fields)
        if answer is None:
            raise Disconnected
        status, said, content = answer
        fields = [("Date", imf_fixdate(self.time.now)), *said.items()]
        return Answer(status, tuple(fields), content.encode())

    def request(self, method, url=URL, fields=None, body=None, **wishes):
        return (
            self.cache.request(method, url, fields, body, Wishes(**wishes))
            if wishes
            else self.cache.request(method, url, fields, body)
        )

    def get(self, url=URL, fields=None, **wishes):
        return self.request("GET", url, fields, **wishes)


def always(status=200, content="page", **said):
    named = {name.replace("_", "-"): value for name, value in said.items()}
    return lambda *_: (status, named, content)


class TestCredentials:
    @both_policies
    @pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-Api-Key"])
    def test_two_users_and_none_never_get_each_other_s_page(self, policy, name):
        site = Site(lambda _, __, fields: (200, {"Cache-Control": "max-age=60"}, fields.get(name, "nobody")), policy)
        asked = [{name: "sid=A"}, {name: "sid=B"}, {}] * 2
        assert [site.get(fields=fields).body for fields in asked] == [b"sid=A", b"sid=B", b"nobody"] * 2
        assert len(site.sent) == 3

    def test_what_nobody_in_particular_got_answers_who_shows_a_cookie_if_the_origin_calls_it_public(self):
        site = Site(always(Cache_Control="public, max-age=60"))
        site.get()
        assert isinstance(site.get(fields={"Cookie": "a=b"}).said, Hit)

    def test_and_only_then(self):
        """Before a login the page may be another one than after it."""
        site = Site(always(Cache_Control="max-age=60"))
        site.get()
        assert not isinstance(site.get(fields={"Cookie": "a=b"}).said, Hit)

    def test_but_under_a_fixed_time_it_does_not(self):
        site = Site(always(Cache_Control="public, max-age=60"), TTL)
        site.get()
        site.get(fields={"Cookie": "a=b"})
        assert len(site.sent) == 2


class TestVariants:
    @both_policies
    def test_alternating_accept_values_both_stay_stored(self, policy):
        def answer(_, __, fields):
            return 200, {"Vary": "Accept", "Cache-Control": "max-age=60"}, fields["Accept"]

        site = Site(answer, policy)
        bodies = [site.get(fields={"Accept": accept}).body for accept in ("json", "text", "json", "text")]
        assert bodies == [b"json", b"text", b"json", b"text"]
        assert len(site.sent) == 2

    def test_the_origin_may_say_that_one_variant_answers_another_request(self):
        """A rotated User-Agent under `Vary: User-Agent` then costs a 304 once, and no body."""

        def answer(_, __, fields):
            said = {"Vary": "User-Agent", "Cache-Control": "max-age=60", "ETag": '"same"'}
            return (304, said, "") if fields.get("If-None-Match") == '"same"' else (200, said, "page")

        site = Site(answer)
        agents = ["a", "b", "a", "b", "c", "c"]
        assert [site.get(fields={"User-Agent": agent}).body for agent in agents] == [b"page"] * 6
        assert len(site.sent) == 3

    def test_a_variant_is_validated_and_found_again(self):
        def answer(_, __, fields):
            tag = f'"{fields["Accept"]}"'
            said = {"Vary": "Accept", "Cache-Control": "max-age=60", "ETag": tag}
            return (304, said, "") if fields.get("If-None-Match") == tag else (200, said, fields["Accept"])

        site = Site(answer)
        for accept in ("a", "b"):
            site.get(fields={"Accept": accept})
        site.time.now += 61
        asked = ["b", "b", "a", "a"]
        assert [site.get(fields={"Accept": accept}).body for accept in asked] == [b"b", b"b", b"a", b"a"]
        assert len(site.sent) == 4


class TestValidation:
    def test_a_304_renews_freshness(self):
        answers = iter([(200, "max-age=1", "page"), (304, "max-age=60", "")])

        def answer(*_):
            status, said, content = next(answers)
            return status, {"Cache-Control": said, "ETag": '"a"'}, content

        site = Site(answer)
        site.get()
        site.time.now += 1.1
        assert [site.get().body for _ in range(3)] == [b"page"] * 3
        assert len(site.sent) == 2

    @both_policies
    def test_a_fixed_time_and_the_origin_s_word_both_end_in_validation(self, policy):
        site = Site(lambda _, __, fields: (304 if "If-None-Match" in fields else 200, {"ETag": '"a"'}, "page"), policy)
        site.get()
        site.time.now += 4000
        assert site.get().body == b"page"
        assert site.sent[1][2]["If-None-Match"] == '"a"'

    def test_a_304_about_something_else_is_asked_again_without_conditions(self):
        def answer(_, __, fields):
            return (304, {"ETag": '"b"'}, "") if "If-None-Match" in fields else (200, {"ETag": '"a"'}, "page")

        site = Site(answer)
        assert [site.get().body for _ in range(2)] == [b"page", b"page"]
        assert len(site.sent) == 3

    def test_one_that_says_no_store_now_is_served_and_forgotten(self):
        def answer(_, __, fields):
            if "If-None-Match" in fields:
                return 304, {"Cache-Control": "no-store"}, ""
            return 200, {"ETag": '"a"', "Cache-Control": "no-cache"}, "page"

        site = Site(answer)
        assert [site.get().body for _ in range(2)] == [b"page", b"page"]
        assert site.cache.store == {}

    def test_what_may_not_be_stored_takes_the_place_of_what_was(self):
        """It must not come back later, offline or after an error."""
        answers = iter([(200, {"ETag": '"a"'}, "old"), (200, {"Cache-Control": "no-store"}, "new")])
        site = Site(lambda *_: next(answers))
        assert [site.get().body for _ in range(2)] == [b"old", b"new"]
        assert site.get(offline=True).status == 504

    def test_the_caller_s_own_condition_gets_the_304_and_renews_what_is_stored(self):
        def answer(_, __, fields):
            status = 304 if "If-None-Match" in fields else 200
            return status, {"ETag": '"a"', "Cache-Control": "max-age=60"}, "page"

        site = Site(answer)
        site.get()
        site.time.now += 61
        assert site.get(fields={"If-None-Match": '"a"'}).status == 304
        assert site.get().body == b"page"
        assert len(site.sent) == 2


class TestInvalidation:
    @both_policies
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "FROBNICATE"])
    @pytest.mark.parametrize(("status", "requests"), [(200, 3), (303, 3), (500, 2), (404, 2)])
    def test_writing_makes_what_was_read_invalid_unless_it_failed(self, policy, method, status, requests):
        site = Site(
            lambda asked, *_: (status if asked == method else 200, {"Cache-Control": "max-age=60"}, "x"), policy
        )
        site.get()
        site.request(method, body="x")
        site.get()
        assert len(site.sent) == requests

    @both_policies
    def test_all_variants_and_all_users_of_it(self, policy):
        site = Site(always(Vary="Accept", Cache_Control="max-age=60"), policy)
        for fields in ({"Accept": "a"}, {"Accept": "b"}, {"Accept": "a", "Authorization": "Bearer x"}):
            site.get(fields=fields)
        site.request("POST", body="x", fields={"Authorization": "Bearer y"})
        assert site.cache.store == {}

    def test_what_it_names_on_the_same_origin_and_nothing_elsewhere(self):
        said = {"Cache-Control": "max-age=60"}

        def answer(method, *_):
            return 201, {**said, "Location": "/new", "Content-Location": "http://example.org/"}, "x"

        site = Site(answer)
        for url in ("http://example.com/new", "http://example.org/"):
            site.get(url)
        site.request("POST", body="x")
        site.get("http://example.org/")
        site.get("http://example.com/new")
        assert [url for _, url, _ in site.sent[3:]] == ["http://example.com/new"]


class TestHead:
    @both_policies
    def test_head_never_answers_get_but_get_answers_head(self, policy):
        site = Site(lambda method, *_: (200, {"Cache-Control": "max-age=60"}, "" if method == "HEAD" else "x"), policy)
        assert [site.request(method).body for method in ("HEAD", "GET", "HEAD")] == [b"", b"x", b""]
        assert len(site.sent) == 2

    def test_a_head_may_renew_or_outdate_what_is_stored(self):
        tag = ['"a"']

        def answer(method, _, fields):
            if fields.get("If-None-Match") == tag[0]:
                return 304, {"Cache-Control": "max-age=60"}, ""
            return 200, {"Cache-Control": "max-age=60", "ETag": tag[0]}, "" if method == "HEAD" else f"page {tag[0]}"

        site = Site(answer)
        site.get()
        site.time.now += 61
        site.request("HEAD")
        assert isinstance(site.get().said, Hit)
        tag[0] = '"b"'
        site.request("HEAD", fields={"Cache-Control": "no-cache"})
        assert site.get().body == b'page "b"'


class TestDates:
    @pytest.mark.parametrize("expires", ["0", "-1", "", "Thu, 99 Foo"])
    def test_an_expires_that_is_none_is_stale_and_raises_nothing(self, expires):
        site = Site(always(Expires=expires, ETag='"a"'))
        site.get()
        site.get()
        assert len(site.sent) == 2


class TestOriginFails:
    @both_policies
    def test_the_old_copy_for_as_long_as_the_call_wants_it(self, policy):
        up = [True]
        site = Site(lambda *_: (200, {"Cache-Control": "max-age=3600"}, "old") if up else None, policy)
        site.get()
        up.clear()
        site.time.now += 3605
        answer = site.get(stale_if_error=60)
        assert (answer.body, answer.said.stale) == (b"old", "stale-if-error")
        site.time.now += 60
        if policy is TTL:
            with pytest.raises(Disconnected):
                site.get(stale_if_error=60)

    @both_policies
    def test_never_against_the_origin_s_word_and_the_entry_stays(self, policy):
        up = [True]
        site = Site(lambda *_: (200, {"Cache-Control": "max-age=3600, must-revalidate"}, "old") if up else None, policy)
        site.get()
        up.clear()
        site.time.now += 3605
        with pytest.raises(Disconnected):
            site.get(stale_if_error=60)
        assert len(site.cache.store) == 1

    def test_a_failed_validation_neither_deletes_nor_replaces_the_entry(self):
        status = [200]
        site = Site(lambda *_: (status[0], {"Cache-Control": "max-age=60", "ETag": '"a"'}, "x"))
        site.get()
        site.time.now += 61
        status[0] = 503
        assert site.get().status == 503
        assert site.get(offline=True).status == 200


class TestCallersWord:
    """It acts under both policies."""

    @both_policies
    def test_no_cache_goes_to_the_origin_and_renews(self, policy):
        count = iter(range(9))
        site = Site(lambda *_: (200, {"Cache-Control": "max-age=60"}, str(next(count))), policy)
        site.get()
        assert site.get(fields={"Cache-Control": "no-cache"}).body == b"1"
        assert site.get().body == b"1"

    @both_policies
    def test_no_store_goes_to_the_origin_and_is_not_stored(self, policy):
        count = iter(range(9))
        site = Site(lambda *_: (200, {"Cache-Control": "max-age=60"}, str(next(count))), policy)
        site.get()
        assert site.get(fields={"Cache-Control": "no-store"}).body == b"1"
        assert site.get().body == b"0"

    @both_policies
    def test_only_if_cached_on_a_miss_is_504_without_asking_anybody(self, policy):
        site = Site(always(), policy)
        assert site.get(fields={"Cache-Control": "only-if-cached"}).status == 504
        assert site.sent == []


class TestRedirects:
    def test_each_hop_is_an_entry_of_its_own(self):
        def answer(_, url, __):
            if url.endswith("/a"):
                return 307, {"Location": "/b", "Cache-Control": "no-store"}, ""
            return 200, {"Cache-Control": "max-age=60"}, "b"

        site = Site(answer)
        for _ in range(2):
            assert site.get("http://example.com/a").status == 307
            assert site.get("http://example.com/b").body == b"b"
        assert [url[-1] for _, url, _ in site.sent] == ["a", "b", "a"]

    def test_a_permanent_one_without_a_lifetime_is_not_followed_for_ever(self):
        site = Site(always(301, Location="/b"))
        site.get()
        site.get()
        assert len(site.sent) == 2


class TestPost:
    @both_policies
    def test_it_is_not_answered_from_the_store(self, policy):
        site = Site(always(Cache_Control="max-age=60"), policy)
        for _ in range(2):
            site.request("POST", body="a")
        assert len(site.sent) == 2


class TestBackground:
    def test_stale_while_revalidate_is_answered_at_once(self):
        site = Site(always(Cache_Control="max-age=1, stale-while-revalidate=60"))
        site.get()
        site.time.now += 3
        assert site.get().body == b"page"
        assert (len(site.sent), site.cache.background) == (1, [URL])
