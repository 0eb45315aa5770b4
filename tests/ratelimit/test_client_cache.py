"""A cache outside a rate limit: what the limit answers in a server's place is no word of that server."""

from __future__ import annotations

import pytest
import requests

from kreuz_sync import Cache, RateLimit, Session
from tests.loopback import answer

from .counting import NotingStore

FRESH = {"Cache-Control": "max-age=100", "ETag": '"server"'}

# What a user's function may answer, each of which a server's would be stored for, or believed in another way.
ANSWERS = [
    (200, {"Cache-Control": "max-age=100"}),
    (200, {"ETag": '"ours"', "Cache-Control": "public, max-age=100"}),
    (301, {"Location": "/elsewhere", "Cache-Control": "max-age=100"}),
    (404, {}),
    (410, {"Cache-Control": "max-age=100"}),
    (429, {"Cache-Control": "max-age=100"}),
    (503, {"Retry-After": "5"}),
    (304, {"ETag": '"server"'}),
    (206, {"Content-Range": "bytes 0-3/8", "ETag": '"server"'}),
]


class Answering:
    """A `response=` function that gives one answer. asked: how often."""

    def __init__(self, status, fields):
        self.status, self.fields, self.asked = status, fields, 0

    def __call__(self, request, reason):
        self.asked += 1
        made = requests.Response()
        made.status_code = self.status
        made.headers.update(self.fields)
        made._content = b"" if self.status == 304 else b"ours"
        return made


@pytest.fixture(params=["ttl", "rfc9111"])
def cache(request, tmp_path):
    return Cache(tmp_path / "pages", policy=request.param)


@pytest.fixture
def url(server):
    return server.route("/page", answer(body="server's", fields=FRESH))


def limited(cache, response, **settings):
    """A session whose limit lets nothing through."""
    limit = RateLimit(limit=0, response=response, **settings)
    return Session(throttle=None, cache=cache, rate_limits=limit)


def stored(cache, url):
    found = cache.get(url)
    return None if found is None else found.text


@pytest.mark.parametrize(("status", "fields"), ANSWERS)
class TestAnswersOfOurs:
    def test_none_is_stored(self, cache, url, status, fields):
        with limited(cache, Answering(status, fields)) as session:
            response = session.get(url, allow_redirects=False)
            assert (response.status_code, response.from_rate_limit) == (status, True)
            assert "stored" not in response.cache_status
        assert len(cache) == 0
        with Session(throttle=None, cache=cache) as session:
            assert (session.get(url).text, session.get(url).from_cache) == ("server's", True)

    def test_none_takes_the_place_of_what_is_stored_or_makes_it_stale(self, cache, url, status, fields):
        """A validation that was not sent has confirmed nothing and denied nothing, and is not tried twice."""
        with Session(throttle=None, cache=cache) as session:
            session.get(url)
        response = Answering(status, fields)
        with limited(cache, response) as session:
            answered = session.get(url, headers={"Cache-Control": "no-cache"}, allow_redirects=False)
            assert (answered.status_code, answered.from_cache, answered.from_rate_limit) == (status, False, True)
        assert (stored(cache, url), response.asked) == ("server's", 1)

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
    def test_none_makes_anything_invalid(self, cache, url, status, fields, method):
        with Session(throttle=None, cache=cache) as session:
            session.get(url)
        with limited(cache, Answering(status, fields)) as session:
            answered = session.request(method, url, headers={"Cache-Control": "no-cache"}, allow_redirects=False)
            assert answered.from_rate_limit
        assert stored(cache, url) == "server's"


class TestStreams:
    def test_one_that_is_read_later_is_not_stored_either(self, cache, url):
        with limited(cache, Answering(200, {"Cache-Control": "max-age=100"})) as session:
            assert session.get(url, stream=True).content == b"ours"
        assert len(cache) == 0


class TestStale:
    def test_our_answer_is_not_hidden_behind_a_stale_one(self, tmp_path, url):
        """It is no failure of the server's, for which `stale_if_error` stands in."""
        cache = Cache(tmp_path / "pages", policy="rfc9111", stale_if_error=1000)
        with Session(throttle=None, cache=cache) as session:
            session.get(url)
        with limited(cache, Answering(503, {})) as session:
            assert session.get(url, headers={"Cache-Control": "max-age=0"}).text == "ours"

    def test_a_server_s_answer_is_stored_as_before(self, cache, url):
        """The limit counts it, and that is all."""
        store = NotingStore()
        with Session(throttle=None, cache=cache, rate_limits=RateLimit(limit=5, store=store)) as session:
            answers = [session.get(url) for _ in range(3)]
        assert [one.from_cache for one in answers] == [False, True, True]
        assert len(store.asked) == 1
