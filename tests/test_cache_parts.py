"""Answers to range requests, stored where a cache is told to, put together, and completed: RFC 9111, 3.3 and 3.4."""

from __future__ import annotations

import errno
import io
import re
import threading
from contextlib import suppress
from typing import NamedTuple

import pytest

from kreuz_sync import Cache, DataLoss, DiskStore, MemoryStore
from kreuz_sync.cache import Policy, Record
from kreuz_sync.cache.archive import is_portable
from kreuz_sync.cache.capture import IN_MEMORY
from kreuz_sync.cache.store import DamagedBody
from kreuz_sync.cache.storing import refusal
from kreuz_sync.clock import SYSTEM_CLOCK

from .cache_sessions import FRESH, WatchedStore, caching, clock, locked, rfc, ttl
from .cache_values import KEYS, NOW, RFC, ask, date, stored
from .loopback import answer, chunked, cut, sequence
from .test_cache_collapse import ask_together
from .waiting import Worker, eventually

BODY = b"0123456789"


class Sent(NamedTuple):
    """The fields of a request that say which bytes are wanted."""

    range: str | None
    if_range: str | None


def ranged(body=BODY, tag='"a"', fields=(), **how):
    """A resource that knows ranges: what a file server answers."""
    shown = dict(FRESH) | ({"ETag": tag} if tag else {}) | dict(fields)

    def one(request):
        wanted = re.fullmatch("bytes=([0-9]*)-([0-9]*)", request.fields.get("Range") or "")
        if not wanted or request.fields.get("If-Range", tag) != tag:
            return answer(body=body, fields=shown, **how)
        first = int(wanted[1]) if wanted[1] else len(body) - int(wanted[2])
        last = min(int(wanted[2]), len(body) - 1) if wanted[1] and wanted[2] else len(body) - 1
        if first > last:
            return answer(416, fields={"Content-Range": f"bytes */{len(body)}"})
        told = {"Content-Range": f"bytes {first}-{last}/{len(body)}"}
        return answer(206, body[first : last + 1], shown | told, **how)

    return one


def part(body, told, **fields):
    """One answer 206."""
    return answer(206, body, {**FRESH, "Content-Range": told, **fields})


def parts(**settings):
    """A cache in memory that stores parts."""
    return rfc(store_parts=True, **settings)


def get(session, url, wanted=None, **how):
    headers = how.pop("headers", {})
    return session.get(url, headers=headers | ({"Range": f"bytes={wanted}"} if wanted else {}), **how)


def sent(server):
    return [Sent(one.fields.get("Range"), one.fields.get("If-Range")) for one in server.requests]


def held(cache):
    """(status, size) of each entry."""
    return [(entry.status, entry.size) for entry in cache]


class TestSetting:
    def test_it_is_off_unless_asked_for(self, tmp_path):
        assert not Cache(tmp_path, policy="rfc9111").policy.store_parts
        assert Cache(tmp_path, policy="rfc9111", store_parts=True).policy.store_parts

    @pytest.mark.parametrize("make", [lambda: Policy(store_parts=True), lambda: ttl(store_parts=True)])
    def test_under_a_fixed_time_it_is_an_error(self, make):
        with pytest.raises(ValueError, match='store_parts=True: .* policy="rfc9111"'):
            make()

    def test_beside_a_whole_policy_it_is_one_too(self):
        with pytest.raises(ValueError, match="put store_parts into it"):
            Cache(MemoryStore(), policy=Policy("rfc9111"), store_parts=True)
        assert Cache(MemoryStore(), policy=Policy("rfc9111", store_parts=True)).policy.store_parts

    @pytest.mark.parametrize("policy", ["rfc9111", Policy("rfc9111")])
    def test_it_is_yes_or_no(self, policy):
        with pytest.raises(TypeError, match="store_parts=1"):
            Cache(MemoryStore(), policy=policy, store_parts=1)

    def test_one_who_does_not_store_parts_finds_none(self, server):
        """Another session may have left some in the same folder."""
        store, url = MemoryStore(), server.route("/file", ranged())
        with caching(parts(store=store)) as session:
            get(session, url, "2-5")
        with caching(rfc(store=store)) as session:
            assert get(session, url, "2-5").cache_status == "kreuz; fwd=uri-miss"
            assert get(session, url).cache_status == "kreuz; fwd=uri-miss; stored"
        assert sent(server)[1:] == [("bytes=2-5", None), (None, None)]

    def test_nor_does_one_hide_variants_from_it(self, server):
        store, url = MemoryStore(), server.route("/file", ranged(fields={"Vary": "X"}))
        with caching(parts(store=store)) as session:
            get(session, url, "2-5", headers={"X": "1"})
        with caching(rfc(store=store)) as session:
            get(session, url, headers={"X": "2"})
            assert get(session, url, headers={"X": "2"}).from_cache


class TestRangesInAPart:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        ("wanted", "given", "told"),
        [
            ("4-9", b"456789", "bytes 4-9/10"),
            ("6-8", b"678", "bytes 6-8/10"),
            ("6-", b"6789", "bytes 6-9/10"),
            ("6-99", b"6789", "bytes 6-9/10"),
            ("-1", b"9", "bytes 9-9/10"),
        ],
    )
    def test_they_are_answered_from_it(self, server, stream, wanted, given, told):
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            first = get(session, url, "-6", stream=stream)
            assert (first.status_code, first.content, first.from_cache) == (206, b"456789", False)
            assert first.cache_status == "kreuz; fwd=uri-miss; stored"
            again = get(session, url, wanted, stream=stream)
            assert (again.status_code, again.reason, again.content) == (206, "Partial Content", given)
            assert (again.headers["Content-Range"], again.headers["Content-Length"]) == (told, str(len(given)))
            assert (again.from_cache, again.cache_status) == (True, "kreuz; hit; ttl=59")
            assert again.raw.headers.getlist("Content-Range") == [told]
        assert len(server.requests) == 1

    @pytest.mark.parametrize("wanted", ["3-8", "0-3", "-7", "20-"])
    def test_others_are_not(self, server, wanted):
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            get(session, url, "4-9")
            other = get(session, url, wanted)
        assert not other.from_cache
        assert other.cache_status.startswith("kreuz; fwd=partial")
        assert sent(server)[1] == (f"bytes={wanted}", None)

    def test_of_a_length_that_is_not_known_only_bounded_ones_are(self, server):
        url = server.route("/file", part(b"2345", "bytes 2-5/*"))
        with caching(parts()) as session:
            get(session, url, "2-5")
            again = get(session, url, "3-4")
            assert (again.content, again.headers["Content-Range"]) == (b"34", "bytes 3-4/*")
            assert not any(get(session, url, wanted).from_cache for wanted in ("3-", "-2", "3-6"))

    def test_a_condition_is_answered_from_it_too(self, server):
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            get(session, url, "2-5")
            assert get(session, url, "3-4", headers={"If-None-Match": '"a"'}).status_code == 304
            assert get(session, url, headers={"If-None-Match": '"a"'}).status_code == 200  # what it lacks might differ
        assert len(server.requests) == 2

    def test_neither_head_nor_a_caller_who_wants_the_store_alone_gets_more_of_it(self, server):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            assert not session.head(url).from_cache
            assert get(session, url, headers={"Cache-Control": "only-if-cached"}).status_code == 504
            with cache.using(offline=True):
                assert get(session, url).status_code == 504
                assert get(session, url, "2-5").from_cache

    def test_stale_it_is_validated(self, server):
        fields = {**FRESH, "ETag": '"a"'}
        url = server.route("/file", sequence(part(b"2345", "bytes 2-5/10", ETag='"a"'), answer(304, fields=fields)))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            cache.clock.advance(61)
            again = get(session, url, "3-4")
            assert (again.status_code, again.content, again.from_cache) == (206, b"34", True)
            assert server.last.fields["If-None-Match"] == '"a"'
            assert get(session, url, "3-4").cache_status == "kreuz; hit; ttl=59"

    def test_stale_it_is_not_renewed_in_the_background(self, server):
        """What that fetched would be the whole."""
        said = {"Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": '"a"'}
        url = server.route("/file", ranged(fields=said))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            cache.clock.advance(5)
            assert not get(session, url, "3-4").from_cache
        assert [one.range for one in sent(server)] == ["bytes=2-5", "bytes=3-4"]

    def test_it_stands_in_for_an_error(self, server):
        said = {"Cache-Control": "max-age=1, stale-if-error=60"}
        url = server.route("/file", sequence(part(b"2345", "bytes 2-5/10", **said), 503, 503))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            cache.clock.advance(5)
            assert get(session, url, "3-4").content == b"34"
            assert get(session, url).status_code == 503
        assert held(cache) == [(206, 4)]


class TestPartsTogether:
    def test_parts_of_one_version_become_one(self, server):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            for wanted in ("4-5", "2-4", "6-7"):
                get(session, url, wanted)
            assert held(cache) == [(206, 6)]
            assert get(session, url, "2-7").content == b"234567"
        assert len(server.requests) == 3

    def test_and_the_whole_once_nothing_is_missing(self, server):
        url = server.route("/file", ranged(fields={"Content-Type": "text/plain"}))
        cache = parts()
        with caching(cache) as session:
            for wanted in ("5-9", "0-2", "3-4"):
                get(session, url, wanted)
            get(session, url, "0-2")  # the middle part took the place of the first one, and lies beside the last
            whole = get(session, url)
        assert (whole.status_code, whole.reason, whole.content, whole.from_cache) == (200, "OK", BODY, True)
        assert (whole.headers["Content-Length"], "Content-Range" in whole.headers) == ("10", False)

    @pytest.mark.parametrize("wanted", ["0-", "0-9", "-10"])
    def test_one_that_has_it_all_is_whole(self, server, wanted):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            assert get(session, url, wanted).status_code == 206
            assert get(session, url).cache_status == "kreuz; hit; ttl=59"
        assert held(cache) == [(200, 10)]

    def test_the_newer_fields_count_and_the_others_stay(self, server):
        one = part(b"01234", "bytes 0-4/10", ETag='"a"', A="1", B="1", Age="9")
        other = part(b"56789", "bytes 5-9/10", ETag='"a"', B="2")
        url = server.route("/file", sequence(one, other))
        with caching(parts()) as session:
            get(session, url, "0-4")
            get(session, url, "5-9")
            whole = get(session, url)
        assert [whole.headers[name] for name in ("A", "B", "Age")] == ["1", "2", "0"]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({}, {}),
            ({"ETag": '"a"'}, {"ETag": '"b"'}),
            ({"ETag": '"a"'}, {}),
            ({"ETag": 'W/"a"'}, {"ETag": 'W/"a"'}),
            ({"ETag": "a"}, {"ETag": "a"}),
            ({"Last-Modified": date(-9000)}, {"Last-Modified": date(-9000)}),
            ({"ETag": '"a"', "Vary": "X"}, {"ETag": '"a"'}),
        ],
    )
    def test_without_a_strong_validator_that_they_share_the_newer_one_is_kept(self, server, one, other):
        url = server.route(
            "/file", sequence(part(b"01234", "bytes 0-4/10", **one), part(b"567", "bytes 5-7/10", **other))
        )
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            get(session, url, "5-7")
            assert get(session, url, "5-7").from_cache
        assert held(cache) == [(206, 3)]

    def test_of_variants_each_has_its_own(self, server):
        url = server.route("/file", ranged(fields={"Vary": "X"}))
        cache = parts()
        with caching(cache) as session:
            for x, wanted in (("1", "0-4"), ("2", "0-4"), ("2", "5-9")):
                get(session, url, wanted, headers={"X": x})
            assert get(session, url, headers={"X": "2"}).from_cache
            assert get(session, url, "0-4", headers={"X": "1"}).from_cache
        assert sorted(held(cache)) == [(200, 10), (206, 5)]

    def test_a_part_takes_no_fresh_whole_s_place(self, server):
        """Nor does it freshen what may be another version."""
        url = server.route("/file", sequence(answer(body=BODY, fields=FRESH), part(b"xx", "bytes 0-1/10")))
        cache = parts()
        with caching(cache) as session:
            get(session, url)
            get(session, url, "0-1", headers={"Cache-Control": "no-cache"})
        assert held(cache) == [(200, 10)]

    def test_but_that_of_a_stale_one(self, server):
        url = server.route("/file", sequence(answer(body=BODY, fields=FRESH), part(b"xx", "bytes 0-1/10")))
        cache = parts()
        with caching(cache) as session:
            get(session, url)
            cache.clock.advance(61)
            get(session, url, "0-1")
        assert held(cache) == [(206, 2)]

    def test_one_that_lies_in_what_is_there_freshens_it(self, server):
        """An origin may send a part again where a 304 would do."""
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url)
            cache.clock.advance(61)
            assert not get(session, url, "2-3").from_cache
            assert get(session, url).cache_status == "kreuz; hit; ttl=59"
        assert held(cache) == [(200, 10)]

    def test_a_whole_replaces_a_part(self, server):
        url = server.route("/file", ranged(tag=None))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            assert get(session, url, headers={"Cache-Control": "no-cache"}).content == BODY
            assert get(session, url, "2-5").from_cache
        assert held(cache) == [(200, 10)]

    def test_a_whole_that_answers_a_range_request_is_stored_as_such(self, server):
        url = server.route("/file", answer(body=BODY, fields=FRESH))
        with caching(parts()) as session:
            assert get(session, url, "2-5").content == BODY
            assert get(session, url, "2-5").content == b"2345"

    @pytest.mark.parametrize("make", [lambda folder: MemoryStore(), DiskStore])
    def test_large_ones_are_joined_in_a_file(self, server, tmp_path, make):
        body = bytes(range(256)) * (IN_MEMORY // 256 * 3)
        url, third = server.route("/file", ranged(body)), len(body) // 3
        cache = parts(store=make(tmp_path / "cache"))
        with caching(cache) as session:
            for first in (third, 0, 2 * third):
                with get(session, url, f"{max(0, first - 5)}-{first + third - 1}", stream=True) as response:
                    assert sum(map(len, response.iter_content(65_536))) == third + (5 if first else 0)
            assert get(session, url, f"{third - 9}-{third + 9}").content == body[third - 9 : third + 10]
            whole = get(session, url, stream=True)
            assert (whole.from_cache, whole.content) == (True, body)
        assert len(server.requests) == 3

    def test_it_lasts_in_a_folder(self, server, tmp_path):
        url, now = server.route("/file", ranged()), clock()
        for wanted in ("2-5", "3-4"):
            with caching(Cache(tmp_path / "cache", policy="rfc9111", store_parts=True, clock=now)) as session:
                response = get(session, url, wanted)
        assert (response.content, len(server.requests)) == (b"34", 1)


class TestCompletion:
    """A request for the whole brings what is missing."""

    @pytest.mark.parametrize(
        ("had", "missing"), [("0-4", "bytes=5-"), ("-5", "bytes=0-4"), ("1-", "bytes=0-0"), ("0-8", "bytes=9-")]
    )
    def test_only_that_is_asked_for(self, server, had, missing):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, had)
            whole = get(session, url)
            assert (whole.status_code, whole.reason, whole.content) == (200, "OK", BODY)
            assert whole.cache_status == "kreuz; fwd=partial; fwd-status=206; ttl=59"
            assert (whole.from_cache, whole.attempts) == (True, 1)
            assert (whole.request.headers.get("Range"), whole.headers.get("Content-Range")) == (None, None)
            assert get(session, url).cache_status == "kreuz; hit; ttl=59"
        assert sent(server)[1:] == [(missing, '"a"')]
        assert (held(cache), cache.statistics.validated) == ([(200, 10)], 1)

    def test_stale_parts_are_completed_too(self, server):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            cache.clock.advance(3600)
            assert get(session, url).content == BODY
            assert get(session, url).cache_status == "kreuz; hit; ttl=59"

    def test_if_it_has_changed_all_of_it_comes(self, server):
        url = server.route("/file", sequence(part(b"01234", "bytes 0-4/10", ETag='"a"'), ranged(b"new", '"b"')))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            assert get(session, url).content == b"new"
        assert sent(server)[1] == ("bytes=5-", '"a"')
        assert held(cache) == [(200, 3)]

    @pytest.mark.parametrize(
        "second",
        [
            part(b"56789", "bytes 5-9/10", ETag='"b"'),  # If-Range was not heard
            part(b"56789", "bytes 5-9/10"),
            part(b"56789", "bytes 5-9/11", ETag='"a"'),
            part(b"567", "bytes 5-7/10", ETag='"a"'),
            part(b"6789", "bytes 6-9/10", ETag='"a"'),
            part(b"6789", "bytes 5-9/10", ETag='"a"'),
            part(b"56789", "5-9", ETag='"a"'),
            part(b"56789", "bytes 5-9/10", ETag='"a"', **{"Cache-Control": "no-store"}),
            part(b"56789", "bytes 5-9/10", ETag='"a"', Vary="*"),
            answer(416, fields={"Content-Range": "bytes */5"}),
            answer(304, fields={"ETag": '"a"'}),
        ],
    )
    def test_what_does_not_complete_it_is_nobodys_answer(self, server, second):
        url = server.route("/file", sequence(part(b"01234", "bytes 0-4/10", ETag='"a"'), second, ranged(tag='"c"')))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            whole = get(session, url)
        assert (whole.status_code, whole.content, whole.from_cache) == (200, BODY, False)
        assert sent(server)[1:] == [("bytes=5-", '"a"'), (None, None)]
        assert held(cache) == [(200, 10)]

    @pytest.mark.parametrize("status", [404, 500, 503])
    def test_an_error_is_told(self, server, status):
        url = server.route("/file", sequence(part(b"01234", "bytes 0-4/10", ETag='"a"'), status, status))
        with caching(parts()) as session:
            get(session, url, "0-4")
            assert get(session, url).status_code == status

    def test_a_whole_that_may_not_be_stored_is_the_end_of_the_part(self, server):
        last = answer(body=BODY, fields={"Cache-Control": "no-store"})
        url = server.route("/file", sequence(part(b"01234", "bytes 0-4/10", ETag='"a"'), last))
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert len(cache) == 0

    def test_without_a_validator_an_origin_that_knows_no_ranges_sends_all(self, server):
        url = server.route("/file", sequence(part(b"01234", "bytes 0-4/10"), answer(body=BODY, fields=FRESH)))
        with caching(parts()) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [("bytes=5-", None)]

    def test_and_one_that_does_is_asked_again(self, server):
        url = server.route("/file", ranged(tag=None))
        with caching(parts()) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [("bytes=5-", None), (None, None)]

    @pytest.mark.parametrize("had", ["3-5", "5-5"])
    def test_with_gaps_at_both_ends_all_of_it_is_asked_for(self, server, had):
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            get(session, url, had)
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [(None, None)]

    @pytest.mark.parametrize(
        "fields", [{"ETag": 'W/"a"'}, {"Last-Modified": date(-9000)}, {"ETag": 'W/"a"', "Last-Modified": date(-9000)}]
    )
    def test_with_a_weak_validator_too(self, server, fields):
        url = server.route("/file", ranged(tag=None, fields=fields))
        with caching(parts()) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [(None, None)]

    @pytest.mark.parametrize("how", [{"stream": True}, {"headers": {"Cache-Control": "no-cache"}}])
    def test_and_for_streams_and_callers_with_wishes(self, server, how):
        """A stream begins at once, and not when the rest has come."""
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            get(session, url, "0-4")
            assert get(session, url, **how).content == BODY
        assert sent(server)[1:] == [(None, None)]

    def test_one_for_nobody_in_particular_is_not_completed_with_somebody_s(self, server):
        url = server.route("/file", ranged(fields={"Cache-Control": "public, max-age=60"}))
        with caching(parts()) as session:
            get(session, url, "0-4")
            with_cookie = {"Cookie": "user=1"}
            assert get(session, url, "0-4", headers=with_cookie).from_cache
            assert get(session, url, headers=with_cookie).content == BODY
        assert sent(server)[1:] == [(None, None)]

    def test_a_store_that_fails_meanwhile_costs_a_request(self, server):
        store = WatchedStore()
        url = server.route("/file", ranged())
        with caching(parts(store=store)) as session:
            get(session, url, "0-4")
            store.failing, store.trouble = frozenset({"write"}), locked()
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [("bytes=5-", '"a"'), (None, None)]

    @pytest.mark.parametrize("failing", ["write", "spool"])
    def test_so_does_one_that_fails_in_the_middle_of_a_large_one(self, server, failing):
        body, store = bytes(2 * IN_MEMORY), WatchedStore()
        url = server.route("/file", ranged(body))
        with caching(parts(store=store)) as session:
            get(session, url, "0-99999")
            store.failing, store.trouble = frozenset({failing}), locked()
            assert get(session, url).content == body
        assert len(server.requests) == 3

    def test_and_a_disk_that_is_full(self, server):
        body = bytes(2 * IN_MEMORY)
        url = server.route("/file", ranged(body))
        with caching(parts(store=_Full())) as session:
            get(session, url, "0-99999")
            assert get(session, url).content == body
        assert len(server.requests) == 3

    def test_and_a_part_that_turns_out_to_be_damaged(self, server, caplog):
        store = _Damaging()
        url = server.route("/file", ranged())
        with caching(parts(store=store)) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [("bytes=5-", '"a"'), (None, None)]
        assert "cannot be read now" in caplog.text

    def test_many_at_once_make_one_request(self, server):
        gate = threading.Event()
        url = server.route("/file", ranged())
        cache = parts(clock=SYSTEM_CLOCK)  # here threads really wait
        with caching(cache) as session:
            get(session, url, "0-4")
            server.route("/file", ranged(delay=gate))
            answers = [one.outcome() for one in ask_together(session, url, gate, cache)]
        assert {one.content for one in answers} == {BODY}
        assert sent(server)[1:] == [("bytes=5-", '"a"')]

    def test_ranges_of_one_resource_do_not_wait_for_each_other(self, server):
        gate, plain = threading.Event(), ranged()
        url = server.route(
            "/file", lambda request: ranged(delay=gate)(request) if _is_first(request) else plain(request)
        )
        with caching(parts(clock=SYSTEM_CLOCK)) as session:
            first = Worker(get, session, url, "0-1")
            eventually(lambda: len(server.requests) == 1)
            assert get(session, url, "8-9").content == b"89"
            gate.set()
            assert first.outcome().content == b"01"

    def test_a_change_meanwhile_is_no_reason_to_put_the_old_one_back(self, server):
        plain = ranged()

        def changed(request):
            if "If-Range" in request.fields:
                session.post(url)
            return plain(request)

        url = server.route("/file", changed)
        cache = parts()
        with caching(cache) as session:
            get(session, url, "0-4")
            assert get(session, url).content == BODY
        assert sent(server)[1:] == [("bytes=5-", '"a"'), (None, None), (None, None)]
        assert held(cache) == [(200, 10)]


class TestNeverStored:
    """What must not be stored must not be stored in parts either."""

    @pytest.mark.parametrize(
        "one",
        [
            cut(BODY, 4, status=206, fields={**FRESH, "Content-Range": "bytes 0-9/20"}),
            part(b"2345", "bytes 2-5/10", **{"Cache-Control": "no-store"}),
            part(b"2345", "bytes 2-5/10", **{"Cache-Control": "max-age=0"}),
            part(b"2345", "bytes 2-5/10", Vary="*"),
            part(b"2345", "bytes 2-5/10", **{"Content-Encoding": "aes128gcm"}),
            part(b"2345", "bytes 2-4/10"),
            part(b"2345", "bytes 5-2/10"),
            part(b"2345", "lines 2-5/10"),
            part(b"2345", "bytes */10"),
            part(b"", "bytes 2-5/10"),
            answer(206, b"2345", FRESH),
            answer(206, b"--x", {**FRESH, "Content-Type": "multipart/byteranges; boundary=x"}),
            chunked(b"23", b"4", status=206, fields={**FRESH, "Content-Range": "bytes 2-5/10"}),
            answer(206, b"234", {**FRESH, "Content-Range": "bytes 2-5/10"}, length=None),
            answer(416, fields={**FRESH, "Content-Range": "bytes */10"}),
            answer(404, b"none", FRESH),
        ],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_what_is_cut_secret_coded_or_cannot_be_placed(self, server, one, stream):
        url = server.route("/file", one)
        cache = parts()
        with caching(cache) as session:
            with suppress(DataLoss):
                assert get(session, url, "2-5", stream=stream).content is not None
            assert len(cache) == 0

    def test_what_nobody_asked_a_part_of(self, server):
        url = server.route("/file", part(b"2345", "bytes 2-5/10"))
        cache = parts()
        with caching(cache) as session:
            get(session, url)
            get(session, url, "0-1,4-5")
            get(session, url, "2-5", headers={"Cache-Control": "no-store"})
            get(session, url, "2-5", headers={"If-Range": '"a"'})
        assert len(cache) == 0

    def test_a_stream_that_is_not_read_to_its_end(self, server):
        url = server.route("/file", ranged(bytes(300_000)))
        cache = parts()
        with caching(cache) as session:
            with get(session, url, "0-200000", stream=True) as response:
                response.raw.read(10)
            assert len(cache) == 0

    def test_a_part_that_is_too_large_and_a_whole_that_would_be(self, server):
        url = server.route("/file", ranged())
        cache = parts(max_entry_size=6)
        with caching(cache) as session:
            get(session, url, "0-6")
            assert held(cache) == []
            get(session, url, "0-3")
            get(session, url, "4-9")  # not put together
            assert held(cache) == [(206, 4)]
            assert get(session, url).content == BODY  # nor completed
        assert [one.range for one in sent(server)] == ["bytes=0-6", "bytes=0-3", "bytes=4-9", None]

    def test_what_the_user_does_not_want(self, server):
        url = server.route("/file", ranged())
        cache = parts(store_if=lambda request, response: response.status_code != 206)
        with caching(cache) as session:
            get(session, url, "0-4")
        assert len(cache) == 0

    @pytest.mark.parametrize("method", ["HEAD", "POST"])
    def test_of_other_methods(self, method):
        told = (("Cache-Control", "max-age=60"), ("Content-Range", "bytes 2-5/10"), ("Content-Location", "/page"))
        asked = ask(method, range="bytes=2-5")
        assert refusal(asked, 206, told, RFC, KEYS, received=NOW, posts=True, parts=True) == "range"


class TestMiscounted:
    """Some servers announce more bytes than they send."""

    def kept(self, server, told, wanted, **fields):
        url = server.route("/file", sequence(part(b"01234", told, **fields), ranged(tag='"a"')))
        cache = parts()
        session = caching(cache)
        get(session, url, wanted)
        return session, url, cache

    def test_they_begin_where_they_should(self, server):
        session, url, _ = self.kept(server, "bytes 4-9/10", "4-9")
        with session:
            again = get(session, url, "6-8")
            assert (again.content, again.headers["Content-Range"]) == (b"234", "bytes 6-8/10")
            assert not get(session, url, "9-9").from_cache

    def test_asked_for_as_the_end_they_are_the_end(self, server):
        session, url, _ = self.kept(server, "bytes 4-9/10", "-5")
        with session:
            answers = [get(session, url, wanted) for wanted in ("6-8", "6-", "-1")]
        assert [one.content for one in answers] == [b"234", b"234", b"4"]
        assert len(server.requests) == 1

    def test_they_are_joined_with_nothing_and_not_completed(self, server):
        session, url, cache = self.kept(server, "bytes 0-5/10", "0-5", ETag='"a"')
        with session:
            assert held(cache) == [(206, 5)]
            get(session, url, "5-9")
            assert held(cache) == [(206, 5)]
            assert not get(session, url, "0-4").from_cache
        session, url, cache = self.kept(server, "bytes 0-5/10", "0-5", ETag='"a"')
        with session:
            assert get(session, url).content == BODY
        assert sent(server)[-1] == (None, None)

    def test_they_are_never_taken_for_the_whole(self, server):
        session, _, cache = self.kept(server, "bytes 0-9/10", "-5", ETag='"a"')
        with session:
            assert held(cache) == [(206, 5)]


class TestHandling:
    """What a user does by hand is about wholes."""

    def test_a_listing_shows_parts_as_what_they_are(self, server):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            (entry,) = cache.entries(status=206)
            assert (entry.size, cache.get(entry).content) == (4, b"2345")
            assert (cache.get(url), url in cache) == (None, False)
            assert cache.delete(url) == 1

    def test_they_are_not_exported(self, server, tmp_path):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            assert cache.export(tmp_path / "answers.zip") == 0
        assert not is_portable("0" * 32, stored(status=206), KEYS)

    def test_a_head_makes_them_stale(self, server):
        """What it says about the whole, nobody can compare with a part."""
        url = server.route("/file", ranged())
        with caching(parts()) as session:
            get(session, url, "2-5")
            session.head(url)
            get(session, url, "2-5")
        assert server.last.fields["If-None-Match"] == '"a"'

    def test_a_change_makes_them_invalid(self, server):
        url = server.route("/file", ranged())
        cache = parts()
        with caching(cache) as session:
            get(session, url, "2-5")
            session.post(url)
        assert len(cache) == 0


class _Full(WatchedStore):
    """One whose temporary files take nothing."""

    def spool(self):
        return io.BufferedRandom(_FullFile())


class _FullFile(io.RawIOBase):
    def readable(self):
        return True

    writable = seekable = readable

    def seek(self, place, whence=0):
        return 0

    def write(self, data):
        raise OSError(errno.ENOSPC, "no space left on the device")


class _Damaging(WatchedStore):
    """One whose bodies show at their end that they are not what was stored."""

    def read(self, key):
        record = super().read(key)
        return None if record is None else Record(record.head, _Damaged(record.body))


class _Damaged(io.BytesIO):
    def read(self, size=-1):
        data = super().read(size)
        if not data:
            raise DamagedBody("a stored body is damaged")
        return data


def _is_first(request):
    return request.fields["Range"] == "bytes=0-1"
