"""`Cache(...)`: what it takes, what it refuses, what a user does with it by hand."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import requests

import kreuz_sync
from kreuz_sync import Cache, CacheStore, DiskStore, MemoryStore, Session
from kreuz_sync.cache import CacheEntry, Policy, Statistics, StoreTrouble

from .cache_sessions import FRESH, WatchedStore, caching, clock, locked, rfc, ttl
from .loopback import answer, gzipped


class TestWhere:
    @pytest.mark.parametrize("make", [str, Path, lambda path: Cache(path), lambda path: DiskStore(path)])
    def test_a_session_takes_a_folder_a_cache_or_a_store(self, server, tmp_path, make):
        url = server.route("/page", answer(body="page"))
        for _ in range(2):
            with Session(cache=make(tmp_path / "pages"), throttle=None) as session:
                session.get(url)
                assert isinstance(session.cache, Cache)
                assert isinstance(session.cache.store, DiskStore)
        assert len(server.requests) == 1

    def test_by_default_there_is_none(self):
        assert Session().cache is None
        assert Session(cache=None).cache is None

    def test_a_store_of_ones_own_will_do(self, server):
        url = server.route("/page", answer(fields=FRESH))
        with Session(cache=WatchedStore(), throttle=None) as session:
            assert [session.get(url).from_cache for _ in range(2)] == [False, True]

    def test_the_defaults_are_those_of_the_reference(self, tmp_path):
        cache = Cache(tmp_path)
        assert (cache.policy.name, cache.policy.ttl, cache.store.max_entries) == ("ttl", 3600.0, 10_000)
        assert Cache(tmp_path, max_entries=0).store.max_entries == 0

    def test_two_sessions_share_one(self, server):
        url = server.route("/page", answer(fields=FRESH))
        cache = rfc()
        with caching(cache) as one, caching(cache) as two:
            one.get(url)
            assert two.get(url).from_cache

    def test_one_who_closes_leaves_it_open_for_the_other(self, server, tmp_path):
        url = server.route("/page", answer(fields=FRESH))
        cache = Cache(tmp_path / "pages")
        one, two = caching(cache), caching(cache)
        one.get(url), two.get(url)
        one.close()
        assert cache.store._shelf is not None
        two.close()
        assert cache.store._shelf is None
        assert one.get(url).from_cache
        one.close()

    def test_its_place_in_the_stack(self, tmp_path):
        cache = Cache(tmp_path)
        session = Session(cache=cache, retry=1, user_agents=["a/1"], auth={"https://a.example": ("u", "p")})
        assert [type(layer).__name__ for layer in session.layers] == [
            "UserAgents",
            "OriginAuth",
            "Cache",
            "Retry",
            "Throttle",
        ]
        order = kreuz_sync.reference_order(throttle=session.throttle, cache=cache, user_agents=session.layers[0])
        assert [type(layer).__name__ for layer in order] == ["Throttle", "Cache", "UserAgents"]

    def test_it_cannot_stand_beside_a_whole_stack(self, tmp_path):
        with pytest.raises(ValueError, match="put cache into it"):
            Session(layers=[], cache=tmp_path)


ONLY_STORED = {"Cache-Control": "only-if-cached"}
FLAGS = ("always_revalidate", "offline", "post", "collapse")
LISTS = ("ignored_parameters", "identity_fields", "ignored_cookies")


class TestBadInput:
    """Wrong values fail where they are written, with a sentence that names them."""

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, value) for name in ("ttl", "stale_if_error") for value in ("1", True, [], object())),
            *((name, value) for name in ("max_entries", "max_bytes", "max_entry_size") for value in ("1", 1.5, True)),
            *((name, value) for name in ("always_revalidate", "offline", "post") for value in (1, "yes", None)),
            *(("collapse", value) for value in (1, None, ["processes"])),
            *((name, value) for name in ("store_if", "key") for value in ("text", 1)),
            *(
                (name, value)
                for name in ("ignored_parameters", "identity_fields", "ignored_cookies")
                for value in ("a", 1, [1])
            ),
            *(("policy", value) for value in (1, None, ["ttl"])),
            *(("ttl_by_url", value) for value in ("a", [1], {1: 1}, {"": 1}, {"a": "1"})),
        ],
    )
    def test_a_wrong_type(self, name, value):
        store = {} if name in ("max_entries", "max_bytes") else {"where": MemoryStore()}
        with pytest.raises(TypeError, match=name):
            Cache(**{"where": "pages", **store, name: value})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, value) for name in ("ttl", "stale_if_error") for value in (-1, float("inf"), float("nan"))),
            *((name, -1) for name in ("max_entries", "max_bytes", "max_entry_size")),
            ("policy", "lru"),
            *(("ignored_parameters", [name]) for name in ("?utm_*", "utm=*", "a&b")),
            *(("ignored_cookies", [name]) for name in ("sid=*", "a;b")),
            *(("identity_fields", [name]) for name in ("X-*", "X-Customer:", "X Customer")),
            *(("ttl_by_url", {pattern: 1}) for pattern in ("/count*", "https:///a", "example.com?a=*")),
            ("collapse", "yes"),
            ("collapse", "processes"),
            ("ttl_by_url", {"a": -1}),
            ("ignored_parameters", [""]),
        ],
    )
    def test_a_wrong_value(self, name, value):
        store = {} if name in ("max_entries", "max_bytes") else {"where": MemoryStore()}
        with pytest.raises(ValueError, match=name):
            Cache(**{"where": "pages", **store, name: value})

    @pytest.mark.parametrize("where", [None, 1, b"pages", ["pages"]])
    def test_no_place(self, where):
        with pytest.raises(TypeError, match="where="):
            Cache(where)
        if where is not None:
            with pytest.raises(TypeError, match="cache="):
                Session(cache=where)

    def test_limits_of_a_folder_beside_a_store(self):
        with pytest.raises(ValueError, match="give them to MemoryStore"):
            Cache(MemoryStore(), max_entries=5)

    def test_times_that_the_origin_decides(self):
        for times in ({"ttl": 5}, {"ttl_by_url": {"a": 5}}):
            with pytest.raises(ValueError, match="ttl"):
                Cache(MemoryStore(), policy="rfc9111", **times)
            with pytest.raises(ValueError, match="Policy"):
                Cache(MemoryStore(), policy=Policy(), **times)

    def test_an_unknown_keyword(self):
        with pytest.raises(TypeError):
            Cache(MemoryStore(), max_age=5)

    @pytest.mark.parametrize("wish", [{"offline": 1}, {"always_revalidate": "no"}, {"stale_if_error": -1}])
    def test_a_wish_for_a_while(self, wish):
        with pytest.raises((TypeError, ValueError), match=next(iter(wish))):
            rfc().using(**wish)


class TestSettings:
    def test_times_by_url(self, server):
        server.route("/*", answer(fields=FRESH))
        cache = ttl(60, ttl_by_url={"127.0.0.1/short*": 5, re.compile("/never"): None, "*/ever": 0})
        with caching(cache) as session:
            for path, wanted in (("/short", [5]), ("/never", []), ("/ever", [float("inf")]), ("/other", [60])):
                cache.clear()
                session.get(server.url(path))
                assert [round(entry.ttl) if entry.ttl < 1e9 else entry.ttl for entry in cache] == wanted

    def test_ignored_parameters_make_no_difference_and_are_not_kept(self, server):
        server.route("/page", answer(fields=FRESH))
        cache = rfc(ignored_parameters=["utm_*", "token"])
        with caching(cache) as session:
            session.get(server.url("/page?a=1&token=s3cret"))
            again = session.get(server.url("/page?utm_source=x&a=1&token=other"))
            assert again.from_cache
            assert again.url.endswith("token=other")
            assert not session.get(server.url("/page?a=2")).from_cache
            assert all("s3cret" not in entry.url for entry in cache)

    def test_a_key_of_ones_own(self, server):
        server.route("/*", answer(fields=FRESH))
        cache = rfc(key=lambda request: None if "skip" in request.url else request.headers["X-Page"])
        with caching(cache) as session:
            session.get(server.url("/a"), headers={"X-Page": "1"})
            assert session.get(server.url("/b"), headers={"X-Page": "1"}).from_cache
            assert not session.get(server.url("/a"), headers={"X-Page": "2"}).from_cache
            assert session.get(server.url("/skip")).cache_status == "kreuz; fwd=bypass"
            session.post(server.url("/b"), headers={"X-Page": "1"})
            assert not session.get(server.url("/a"), headers={"X-Page": "1"}).from_cache

    def test_fields_that_say_who_asks(self, server):
        url = server.route("/page", lambda request: answer(body=request.fields.get("X-Tenant") or "", fields=FRESH))
        with caching(rfc(identity_fields=["X-Tenant"])) as session:
            said = [session.get(url, headers={"X-Tenant": tenant}).text for tenant in ("a", "b", "a")]
        assert (said, len(server.requests)) == (["a", "b", "a"], 2)

    def test_a_policy_of_its_own(self, server):
        url = server.route("/page", answer(fields={"Cache-Control": "no-store"}))
        cache = Cache(MemoryStore(), policy=Policy("ttl", ttl=5, keep_no_store=True))
        with caching(cache) as session:
            assert [session.get(url).from_cache for _ in range(2)] == [False, True]

    def test_no_secret_is_shown(self):
        assert "secret" not in repr(Cache(MemoryStore()))


class TestCopies:
    def test_a_copy_is_the_same_cache(self):
        cache = rfc()
        assert copy.copy(cache) is cache
        assert copy.deepcopy(cache) is cache

    def test_a_pickle_has_its_settings_and_opens_the_folder(self, server, tmp_path):
        url = server.route("/page", answer(fields=FRESH))
        settings = {"policy": "rfc9111", "ignored_parameters": ["a"], "offline": False, "stale_if_error": 5.0}
        session = Session(cache=Cache(tmp_path / "pages", **settings), throttle=None)
        session.get(url)
        made = pickle.loads(pickle.dumps(session))
        with session, made:
            assert made.cache is not session.cache
            for name in ("policy", "ignored_parameters", "offline", "max_entry_size"):
                assert getattr(made.cache, name) == getattr(session.cache, name)
            assert made.get(url).from_cache
            assert copy.deepcopy(session).get(url).from_cache

    def test_another_process_uses_the_same_folder(self, server, tmp_path):
        url = server.route("/page", answer(body="page", fields=FRESH))
        with Session(cache=tmp_path / "pages", throttle=None) as session:
            session.get(url)
            with ProcessPoolExecutor(1) as pool:
                assert pool.submit(_get, session, url).result(60) == ("page", True)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
    def test_a_forked_child_goes_on(self, server, tmp_path):
        """Also one that was forked while another thread led a request that others wait for."""
        url = server.route("/page", answer(body="page", fields=FRESH))
        code = f"""
            import os, threading
            from kreuz_sync import Cache, Session
            session = Session(cache={str(tmp_path / "pages")!r}, throttle=None)
            session.get({url!r})
            flights, counters = session.cache.workings.flights, session.cache.workings.counters
            flights.join("key", session), flights._lock.acquire(), counters._lock.acquire()
            child = os.fork()
            if child == 0:
                ok = session.get({url!r}).from_cache and flights.join("key", session)[1]
                os._exit(0 if ok else 1)
            _, status = os.waitpid(child, 0)
            raise SystemExit(os.waitstatus_to_exitcode(status))
        """
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], timeout=60, capture_output=True
        )
        assert done.returncode == 0, done.stderr


def _get(session, url):
    with session:
        response = session.get(url)
        return response.text, response.from_cache


class TestNotLoaded:
    """A program without a cache does not pay for one."""

    def test_its_rooms_are_not_imported(self):
        code = """
            import sys, kreuz_sync
            kreuz_sync.Session()
            print([name for name in sys.modules if name.startswith("kreuz_sync.cache")])
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == "[]"

    def test_one_in_memory_needs_no_database(self):
        code = """
            import sys, kreuz_sync
            session = kreuz_sync.Session(cache=kreuz_sync.MemoryStore())
            print([name for name in ("diskcache", "sqlite3", "dataclasses") if name in sys.modules])
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == "[]"

    def test_the_names_are_there(self):
        from kreuz_sync.cache import setting

        assert (kreuz_sync.Cache, kreuz_sync.CacheStore) == (setting.Cache, CacheStore)
        assert {"Cache", "CacheStore", "DiskStore", "MemoryStore"} <= set(dir(kreuz_sync))
        with pytest.raises(AttributeError):
            kreuz_sync.NoSuchName  # noqa: B018


@pytest.fixture(params=["memory", "folder"])
def cache(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "pages")
    return ttl(60, store=store)


@pytest.fixture
def session(cache):
    with caching(cache) as session:
        yield session


@pytest.fixture
def site(server):
    """A page, a larger one, another host's, and one that has gone."""
    server.route("/a", answer(body="a", content_type="text/plain"))
    server.route("/b", answer(body="b" * 100))
    server.route("/moved", answer(301, fields={"Location": "/a"}))
    other = server.url("/a", host="127.0.0.2")
    return [server.url("/a"), server.url("/b"), other, server.url("/moved")]


def fetch(session, urls):
    for url in urls:
        session.get(url, allow_redirects=False)


class TestLooking:
    def test_it_lists_what_is_stored(self, session, cache, site):
        fetch(session, site)
        entries = list(cache)
        assert [entry.url for entry in entries] == site
        first = entries[0]
        assert isinstance(first, CacheEntry)
        assert (first.host, first.method, first.status, first.size) == ("127.0.0.1", "GET", 200, 1)
        assert (first.content_type, first.fresh, first.for_somebody, first.vary) == ("text/plain", True, False, ())
        assert cache.clock.wall() - 1 < first.stored_at <= cache.clock.wall()
        assert len(cache) == 4
        assert cache.volume() > 100

    def test_an_empty_cache_is_a_cache(self, cache):
        assert (len(cache), bool(cache), list(cache), cache.volume()) == (0, True, [], 0)

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            ({"url": "*/a"}, [0, 2]),
            ({"url": re.compile("/[ab]$")}, [0, 1, 2]),
            ({"host": "127.0.0.2"}, [2]),
            ({"host": "127.0.0.1", "url": "*/a"}, [0]),
            ({"status": 301}, [3]),
            ({"older_than": 10.0}, [0]),
            ({"younger_than": 10.0}, [1, 2, 3]),
            ({"stale": True}, [0]),
            ({"stale": False}, [1, 2, 3]),
            ({}, [0, 1, 2, 3]),
            ({"host": "elsewhere"}, []),
        ],
    )
    def test_it_can_be_filtered(self, session, cache, site, wanted, numbers):
        fetch(session, site[:1])
        cache.clock.advance(70)
        fetch(session, site[1:])
        assert sorted(entry.url for entry in cache.entries(**wanted)) == sorted(site[number] for number in numbers)

    @pytest.mark.parametrize(
        "wanted", [{"url": 1}, {"host": ""}, {"status": 99}, {"older_than": -1}, {"stale": 1}, {"age": 1}]
    )
    def test_a_wrong_filter_is_told(self, cache, wanted):
        with pytest.raises((TypeError, ValueError), match=next(iter(wanted))):
            cache.entries(**wanted)

    def test_an_answer_is_got_by_its_url_or_its_entry(self, session, cache, server):
        coded = gzipped("text", content_type="text/plain")
        url = server.route("/page", coded)
        assert cache.get(url) is None
        assert url not in cache
        session.get(url)
        (entry,) = cache
        for what in (url, entry):
            assert (cache.get(what).text, cache.get(what).from_cache) == ("text", True)
            assert cache.get(what).cache_status == "kreuz; hit; ttl=59"
        cache.clock.advance(1000)
        assert (cache.get(url).text, cache.get(url).cache_status) == ("text", "kreuz; hit; ttl=-940")
        assert url in cache
        assert len(server.requests) == 1

    def test_each_variant_and_each_identity_is_an_entry(self, session, cache, server):
        url = server.route("/page", lambda request: answer(body=request.fields["Accept"], fields={"Vary": "Accept"}))
        session.get(url, headers={"Accept": "a/a"})
        session.get(url, headers={"Accept": "b/b"})
        session.get(url, headers={"Accept": "b/b", "Authorization": "x"})
        entries = list(cache)
        assert sorted(cache.get(entry).text for entry in entries) == ["a/a", "b/b", "b/b"]
        assert sorted(entry.for_somebody for entry in entries) == [False, False, True]
        assert {entry.vary for entry in entries} == {("accept",)}

    def test_what_it_did_is_counted(self, session, cache, server):
        url = server.route("/page", answer(fields={"ETag": '"a"'}))
        for _ in range(3):
            session.get(url)
        session.post(url)
        session.get(server.url("/none"), headers={"Cache-Control": "only-if-cached"})
        with cache.disabled():
            session.get(url)
        wanted = {"hits": 2, "misses": 2, "stored": 1, "refused": 1, "invalidated": 1, "bypassed": 1}
        assert cache.statistics == Statistics(**wanted)
        assert cache.statistics.hit_rate == 0.5
        cache.reset_statistics()
        assert (cache.statistics, cache.statistics.hit_rate) == (Statistics(), 0.0)

    def test_what_is_no_filter_is_told_in_the_words_of_the_caller(self, cache, tmp_path):
        actions = [
            lambda: cache.entries(where="/a"),
            lambda: cache.delete(where="/a"),
            lambda: cache.update_ttl(5, where="/a"),
            lambda: cache.export(tmp_path / "x.zip", where="/a"),
        ]
        for action in actions:
            with pytest.raises(TypeError, match="^where='/a': one of url, host, status"):
                action()
        with pytest.raises(ValueError, match=r"^url: '/a\*' is no pattern of any URL: it begins with a host: '\*/a\*'"):
            cache.entries("/a*")
        with pytest.raises(TypeError, match="delete: 5: the text of a URL is wanted"):
            cache.delete(5)

    def test_a_pattern_may_come_first(self, session, cache, site, tmp_path):
        fetch(session, site)
        assert len(list(cache.entries("*/a"))) == cache.update_ttl(5, "*/a") == 2
        assert cache.export(tmp_path / "x.zip", "*/a") == 2

    def test_trouble_of_the_store_is_told_here(self):
        cache = ttl(store=WatchedStore(locked()))
        for action in (lambda: list(cache), lambda: cache.get("http://a.example/"), cache.clear):
            with pytest.raises(StoreTrouble, match="locked"):
                action()


class TestChanging:
    def test_a_url_goes_with_all_its_variants(self, session, cache, server):
        url = server.route("/page", lambda request: answer(fields={"Vary": "Accept"}))
        other = server.route("/other", answer())
        for headers in ({"Accept": "a/a"}, {"Accept": "b/b"}, {"Authorization": "x"}):
            session.get(url, headers=headers)
        session.get(other)
        assert (cache.delete(url), len(cache), cache.delete(url)) == (3, 1, 0)
        assert session.get(other).from_cache

    def test_an_entry_goes_alone(self, session, cache, site):
        fetch(session, site)
        first = next(iter(cache))
        assert (cache.delete(first), cache.delete(first), len(cache)) == (1, 0, 3)

    def test_what_fits_goes(self, session, cache, site):
        fetch(session, site)
        assert (cache.delete(url="*/a"), len(cache)) == (2, 2)

    def test_all_goes(self, session, cache, site):
        fetch(session, site)
        assert (cache.clear(), len(cache)) == (4, 0)

    def test_to_delete_nothing_in_particular_is_a_mistake(self, cache):
        for wrong in ({}, {"what": "http://a.example/", "host": "a"}):
            with pytest.raises(TypeError, match="delete"):
                cache.delete(**wrong)

    @pytest.mark.parametrize("how", [lambda cache, url: cache.delete(url), lambda cache, url: cache.clear()])
    def test_what_is_under_way_is_not_stored_after_that(self, session, cache, server, how):
        url = server.route("/page", answer(body=b"x" * 100))
        response = session.get(url, stream=True)
        how(cache, url)
        assert len(response.content) == 100
        assert len(cache) == 0

    def test_times_can_be_changed(self, session, cache, site):
        fetch(session, site)
        cache.clock.advance(50)
        assert cache.update_ttl(100, url="*/a") == 2
        cache.clock.advance(99)
        assert [session.get(url, allow_redirects=False).from_cache for url in site] == [True, False, True, False]
        cache.clock.advance(2)
        assert not session.get(site[0]).from_cache

    def test_a_stale_answer_becomes_fresh(self, session, cache, site):
        fetch(session, site[:1])
        cache.clock.advance(1000)
        assert cache.update_ttl(0, stale=True) == 1
        cache.clock.advance(1e6)
        assert session.get(site[0]).from_cache

    def test_not_where_the_origin_decides(self):
        with pytest.raises(ValueError, match="origin"):
            rfc().update_ttl(5)


class TestTakingAlong:
    def test_another_cache_reads_what_one_wrote(self, session, cache, site, tmp_path):
        fetch(session, site)
        file = tmp_path / "pages.zip"
        assert cache.export(file) == 4
        other = ttl(60, clock=cache.clock)
        assert (other.load(file), len(other)) == (4, 4)
        with caching(other) as reader:
            again = reader.get(site[0])
            assert (again.text, again.from_cache, again.headers["Content-Type"]) == ("a", True, "text/plain")
            other.clock.advance(61)
            assert not reader.get(site[0]).from_cache

    def test_variants_are_told_apart_again(self, session, cache, server, tmp_path):
        url = server.route(
            "/page", lambda request: answer(body=request.fields["Accept"], fields={"Vary": "Accept, Accept-Encoding"})
        )
        for kind in ("a/a", "b/b"):
            session.get(url, headers={"Accept": kind})
        cache.export(tmp_path / "pages.zip")
        other = ttl(60, clock=cache.clock)
        assert other.load(tmp_path / "pages.zip") == 2
        with caching(other) as reader:
            assert [reader.get(url, headers={"Accept": kind}).text for kind in ("a/a", "b/b")] == ["a/a", "b/b"]
        assert len(server.requests) == 2

    def test_bodies_are_what_they_were_on_the_wire(self, session, cache, server, tmp_path):
        coded, large = gzipped("text"), answer(body=b"0123456789" * 2**18)
        urls = [server.route("/coded", coded), server.route("/large", large)]
        for url in urls:
            session.get(url)
        cache.export(tmp_path / "pages.zip")
        with zipfile.ZipFile(tmp_path / "pages.zip") as archive:
            assert archive.read("1.body") == coded.body
            assert json.loads(archive.read("cache.json")) == {"format": "kreuz-sync cache", "version": 1}
        other = ttl(60, clock=cache.clock)
        other.load(tmp_path / "pages.zip")
        with caching(other) as reader:
            assert [reader.get(url).content for url in urls] == [b"text", large.body]

    def test_nobodys_secrets_go_along(self, session, cache, server, tmp_path):
        url = server.route("/page", lambda request: answer(fields={"Vary": "X-Thing"}))
        plain = server.route("/plain", answer())
        session.get(url, headers={"X-Thing": "s3cret"})
        session.get(plain, headers={"Authorization": "s3cret"})
        session.get(f"{plain}?token=s3cret")
        session.get(plain)
        assert cache.export(tmp_path / "pages.zip") == 1
        with zipfile.ZipFile(tmp_path / "pages.zip") as archive:
            assert not [name for name in archive.namelist() if b"s3cret" in archive.read(name)]

    def test_a_part_can_be_taken(self, session, cache, site, tmp_path):
        fetch(session, site)
        assert cache.export(tmp_path / "pages.zip", host="127.0.0.2") == 1
        assert cache.export(tmp_path / "pages.zip", site[0]) == 1

    def test_what_came_later_stays(self, session, cache, site, server, tmp_path):
        """Taking the same along twice adds nothing, and an old file makes nothing old."""
        fetch(session, site[:2])
        file = tmp_path / "pages.zip"
        cache.export(file)
        assert cache.load(file) == 0
        cache.clock.advance(10)
        server.route("/a", answer(body="new"))
        session.get(site[0], headers={"Cache-Control": "no-cache"})
        cache.delete(site[1])
        assert cache.load(file) == 1
        assert [session.get(url, headers=ONLY_STORED).text[:3] for url in site[:2]] == ["new", "bbb"]

    def test_nor_does_an_old_answer_push_out_newer_variants(self, session, cache, server, tmp_path):
        url = server.route("/page", answer(body="old"))
        session.get(url)
        file = tmp_path / "pages.zip"
        cache.export(file)
        cache.clear()
        cache.clock.advance(10)
        server.route("/page", lambda request: answer(body=request.fields["Accept"], fields={"Vary": "Accept"}))
        for kind in ("a/a", "b/b"):
            session.get(url, headers={"Accept": kind})
        assert (cache.load(file), len(cache)) == (0, 2)

    def test_what_was_there_stays_until_the_new_file_is_whole(self, tmp_path):
        (tmp_path / "pages.zip").write_bytes(b"before")
        cache = ttl(store=WatchedStore(locked()))
        with pytest.raises(StoreTrouble):
            cache.export(tmp_path / "pages.zip")
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("pages.zip", b"before")]

    def test_a_file_in_a_folder_that_is_not_there_is_told_by_its_name(self, cache, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no/pages\.zip'$"):
            cache.export(tmp_path / "no" / "pages.zip")

    @pytest.mark.parametrize("head", [None, {}, {"format": "kreuz-sync cache", "version": 2}, []])
    def test_another_file_is_refused(self, tmp_path, head):
        file = tmp_path / "pages.zip"
        if head is None:
            file.write_bytes(b"no archive")
        else:
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("cache.json", json.dumps(head))
        with pytest.raises(ValueError, match=r"pages\.zip|cache\.json"):
            ttl().load(file)
        with pytest.raises(OSError, match="nowhere"):
            ttl().load(tmp_path / "nowhere.zip")

    @pytest.mark.parametrize(
        "change", [{"url": None, "status": "x"}, {"fields": 1}, {"asked": []}, {"fields": [["a"]]}]
    )
    def test_an_answer_that_is_none_is_refused(self, session, cache, site, tmp_path, change):
        fetch(session, site[:1])
        cache.export(tmp_path / "good.zip")
        with zipfile.ZipFile(tmp_path / "good.zip") as good, zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
            bad.writestr("cache.json", good.read("cache.json"))
            bad.writestr("1.json", json.dumps({**json.loads(good.read("1.json")), **change}))
            bad.writestr("1.body", good.read("1.body"))
        with pytest.raises(ValueError):
            ttl().load(tmp_path / "bad.zip")

    def test_bodies_over_the_limit_stay_outside(self, session, cache, site, tmp_path):
        fetch(session, site[:2])
        cache.export(tmp_path / "pages.zip")
        assert ttl(max_entry_size=50).load(tmp_path / "pages.zip") == 1


class TestSwitches:
    def test_wishes_hold_inside_the_block_and_add_up(self):
        cache = rfc(always_revalidate=True)
        outside = cache.wishes_here()
        with cache.using(offline=True):
            assert cache.wishes_here() == outside._replace(offline=True)
            with cache.using(always_revalidate=False, stale_if_error=5):
                assert cache.wishes_here() == (False, True, 5.0)
            with cache.disabled():
                assert cache.wishes_here() is None
        assert cache.wishes_here() == outside

    def test_other_threads_do_not_see_them(self):
        cache, seen = rfc(), []
        with cache.using(offline=True):
            thread = threading.Thread(target=lambda: seen.append(cache.wishes_here().offline))
            thread.start()
            thread.join()
        assert seen == [False]


class TestLogger:
    def test_a_warning_names_no_secret(self, server, caplog):
        url = server.route("/page", answer(fields=FRESH)).replace("//", "//me:s3cret@")
        with caching(rfc(store=WatchedStore(locked()))) as session, caplog.at_level(logging.DEBUG, "kreuz_sync.cache"):
            session.get(f"{url}?token=s3cret")
        assert caplog.records
        assert "s3cret" not in caplog.text


class TestClock:
    def test_a_clock_that_steps_back_makes_nothing_younger(self, server):
        cache = rfc()
        url = server.route("/page", answer(fields={**FRESH, "Age": "30"}))
        with caching(cache) as session:
            session.get(url)
            cache.clock.advance(-10_000)
            assert session.get(url).headers["Age"] == "30"

    def test_the_settings_of_a_session_are_requests_own(self, server):
        """The clock is the cache's: requests' elapsed time is the real one."""
        cache = rfc(clock=clock())
        with caching(cache) as session:
            assert session.get(server.url()).elapsed.total_seconds() < 10
        assert isinstance(session, requests.Session)
