"""Everything at once: many threads, several sessions, one folder, and a server that fails."""

from __future__ import annotations

import gc
import random
import threading

import pytest
import requests

from kreuz_sync import Cache, Retry

from .cache_sessions import caching
from .loopback import answer, cut, gzipped, hang_up
from .waiting import Worker

THREADS, CALLS = 16, 120
KINDS = {
    "fresh": {"Cache-Control": "max-age=60"},
    "secret": {"Cache-Control": "no-store"},
    "stale": {"Cache-Control": "max-age=0, stale-while-revalidate=60, stale-if-error=60", "ETag": '"a"'},
    "checked": {"Cache-Control": "max-age=0", "ETag": '"a"'},
    "large": {"Cache-Control": "max-age=60"},
    "coded": {"Cache-Control": "max-age=60"},
}


def body_of(path):
    return f"{path} ".encode() * (40_000 if "large" in path else 20)


def page(request):
    """What the path says, seven times out of eight."""
    if request.method != "GET":
        return 200
    fields, chance = KINDS[request.path.split("/")[2]], random.random()
    if chance < 0.04:
        return hang_up()
    if chance < 0.08:
        return 503
    if chance < 0.12:
        return cut(b"x" * 5000, 100, fields=fields)
    if request.fields.get("If-None-Match") and chance < 0.8:
        return answer(304, fields=fields)
    if "coded" in request.path:
        coded = gzipped(body_of(request.path))
        coded.fields.extend(fields.items())
        return coded
    return answer(body=body_of(request.path), fields=fields)


def one_call(session, url, chance):
    """Do one thing; the path and body of an answer that was read, None for anything else."""
    if chance.random() < 0.05:
        return session.request(chance.choice(["POST", "DELETE"]), url) and None
    stream = chance.random() < 0.3
    response = session.get(url, stream=stream)
    if stream and chance.random() < 0.3:
        response.raw.read(100)
        return response.close()
    return response.content if response.status_code == 200 else None


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
def test_every_answer_is_the_right_one_and_nothing_is_left(server, tmp_path):
    server.route("/p/*", page)
    cache = Cache(tmp_path / "pages", policy="rfc9111", max_entries=20)
    retry = Retry(1, base=0.001, budget=None)
    sessions = [caching(cache, retry=retry) for _ in range(3)]
    read = []

    def run(number):
        chance = random.Random(number)
        for _ in range(CALLS):
            path = f"/p/{chance.choice(list(KINDS))}/{chance.randrange(5)}"
            try:
                content = one_call(chance.choice(sessions), server.url(path), chance)
            except requests.RequestException:
                continue
            if content is not None:
                read.append(content == body_of(path))

    for worker in [Worker(run, number) for number in range(THREADS)]:
        worker.join(120)
        worker.outcome()
    for session in sessions:
        session.close()
    gc.collect()
    assert all(read)
    assert len(read) > THREADS * CALLS / 2
    assert len(cache) <= 20
    assert cache.statistics.hits and cache.statistics.validated and cache.statistics.stored
    assert not cache.workings.flights._flights
    assert not [one for one in threading.enumerate() if one.name == "kreuz_sync cache"]
    assert list((tmp_path / "pages" / "cache.db-incoming").iterdir()) == []
    cache.store.close()
