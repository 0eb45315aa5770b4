"""Everything at once: many threads, many hosts, and servers that fail in every way."""

import collections
import gc
import itertools
import os
import threading

import pytest
import requests

from kreuz_sync import Retry, Session, Throttle, classify

from .loopback import Server, answer, cut, cut_chunked, hang_up, silent
from .waiting import eventually

THREADS, HOSTS, CALLS = 64, 20, 15

# What a host does, in turn, whoever asks.
MOODS = {
    "ok": answer(body=b"x" * 500),
    "limited": answer(429, body=b"slow down"),
    "down": answer(503, fields={"Retry-After": "0"}),
    "cut": cut(b"x" * 500, 100),
    "cut in a chunk": cut_chunked(b"x" * 500),
    "gone": answer(404, body=b"no"),
    "hung up": hang_up(),
    "challenge": answer(403, fields={"cf-mitigated": "challenge"}),
}


def addresses():
    return [f"127.0.0.{number}" for number in range(1, HOSTS + 1)]


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def moody():
    """A server of many addresses; each does the next of MOODS, and is silent now and then."""
    try:
        server = Server(*addresses())
    except OSError:
        pytest.skip("this system has one loopback address")
    with server:
        moods = {address: itertools.cycle(MOODS.items()) for address in addresses()}
        lock, done = threading.Lock(), collections.Counter()

        def handler(request):
            with lock:
                name, what = next(moods[request.host.rsplit(":", 1)[0]])
                done[name] += 1
                if sum(done.values()) % 197 == 0:
                    done[name] -= 1
                    done["silent"] += 1
                    return silent()
                return what

        server.route("/", handler)
        yield server, done


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
@pytest.mark.slow
def test_all_is_counted_and_nothing_is_left(moody):
    """64 threads, 20 hosts, eight kinds of answers and silence: every attempt is accounted for.

    What the responses and errors say of attempts is what the servers saw; afterwards there is
    no thread, no open file, and nobody in any host's line.
    """
    server, done = moody
    threads_before, files_before = threading.active_count(), open_files()
    throttle = Throttle(0, first_backoff=0.001, max_delay=0.004, concurrency=8)
    session = Session(
        throttle=throttle, retry=Retry(2, base=0.001, budget=None), timeout=(30, 3), user_agents=["a/1", "b/2", "c/3"]
    )
    urls = [f"http://{address}:{server.port}/" for address in addresses()]
    lock, seen, attempts = threading.Lock(), collections.Counter(), 0

    def work(number):
        nonlocal attempts
        for call in range(CALLS):
            try:
                outcome = session.get(urls[(number + call) % HOSTS], stream=call % 5 == 0)
                outcome.content  # noqa: B018
            except requests.RequestException as error:
                outcome = error
            # A stream that broke off after it was handed over carries its attempts on its response.
            count = outcome.attempts or outcome.response.attempts
            with lock:
                seen[classify(outcome) or "ok"] += 1
                attempts += count

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"

    assert sum(seen.values()) == THREADS * CALLS
    # A server may come to a request only after its client has given up on it.
    eventually(lambda: len(server.requests) == sum(done.values()) == attempts)
    reports = throttle.snapshot()
    assert sum(report.starts for report in reports.values()) == attempts
    assert sum(report.limited for report in reports.values()) == done["limited"] + done["challenge"]
    assert all(report.waiting == 0 for report in reports.values())
    assert set(seen) >= {"ok", "not_found", "waf_blocked"}

    session.close()
    server.close()
    gc.collect()
    assert threading.active_count() <= threads_before
    assert open_files() <= files_before
