"""Lists of URLs, and the queue that hands them out host by host."""

from __future__ import annotations

import threading

import pytest

from kreuz_sync.url_list import HostQueue, host_key, urls_in


class TestReading:
    """One URL a line."""

    @pytest.mark.parametrize(
        ("lines", "urls"),
        [
            ([], []),
            (["http://a/\n", "http://b/\n"], ["http://a/", "http://b/"]),
            (["", "  \t", "\r\n"], []),
            (["# all of it", "  # and this", "http://a/"], ["http://a/"]),
            (["  http://a/ \r\n"], ["http://a/"]),
            (["http://a/#part"], ["http://a/#part"]),
            (["not a url"], ["not a url"]),
        ],
    )
    def test_blank_lines_and_comments_are_left_out(self, lines: list[str], urls: list[str]) -> None:
        assert list(urls_in(lines)) == urls

    def test_a_list_without_end_is_read_as_it_comes(self) -> None:
        """Nothing is held back until the last line."""

        def endless() -> object:
            while True:
                yield "http://a/"

        assert next(urls_in(endless())) == "http://a/"  # type: ignore[arg-type]


class TestHostKey:
    """The queue that a URL stands in."""

    @pytest.mark.parametrize(
        ("url", "key"),
        [("http://A.Example:8080/x", "a.example"), ("nonsense", ""), ("http://[::1", ""), ("", "")],
    )
    def test_what_is_no_url_has_a_queue_too(self, url: str, key: str) -> None:
        assert host_key(url) == key


def taken(queue: HostQueue) -> list[str]:
    """All that the complete queue hands out, in order."""
    found = []
    while (item := queue.take()) is not None:
        found.append(item[1])
    return found


class TestOrder:
    """One URL of each host in turn."""

    @pytest.mark.parametrize(
        ("given", "order"),
        [
            ("", ""),
            ("a1 a2 a3", "a1 a2 a3"),
            ("a1 a2 b1 b2", "a1 b1 a2 b2"),
            ("a1 a2 a3 b1 c1 c2", "a1 b1 c1 a2 c2 a3"),
        ],
    )
    def test_hosts_take_turns(self, given: str, order: str) -> None:
        queue = HostQueue()
        for number, name in enumerate(given.split(), start=1):
            queue.put(number, f"http://{name[0]}/{name[1]}")
        queue.complete()
        assert taken(queue) == [f"http://{name[0]}/{name[1]}" for name in order.split()]

    def test_a_host_that_comes_back_goes_to_the_end(self) -> None:
        """It was forgotten when its last URL was taken."""
        queue = HostQueue()
        queue.put(1, "http://a/1")
        assert queue.take() == (1, "http://a/1")
        queue.put(2, "http://b/1")
        queue.put(3, "http://a/2")
        queue.complete()
        assert taken(queue) == ["http://b/1", "http://a/2"]


class TestWaiting:
    """The one who reads and the workers wait for each other."""

    def test_no_more_is_read_than_the_queue_holds(self) -> None:
        """A list of millions takes the memory of `capacity` URLs."""
        queue, put = HostQueue(capacity=3), threading.Semaphore(0)

        def read() -> None:
            for number in range(1, 6):
                queue.put(number, f"http://a/{number}")
                put.release()
            queue.complete()

        thread = threading.Thread(target=read)
        thread.start()
        for _ in range(3):
            assert put.acquire(timeout=10)
        assert not put.acquire(timeout=0.05)
        assert len(taken(queue)) == 5
        thread.join(10)
        assert not thread.is_alive()

    def test_every_url_goes_to_one_worker(self) -> None:
        """Eight workers, a thousand URLs, a small queue."""
        queue = HostQueue(capacity=10)
        shares: list[list[str]] = [[] for _ in range(8)]
        threads = [threading.Thread(target=lambda share=share: share.extend(taken(queue))) for share in shares]
        for thread in threads:
            thread.start()
        urls = [f"http://host-{number % 7}/{number}" for number in range(1000)]
        assert all([queue.put(number, url) for number, url in enumerate(urls)])
        queue.complete()
        for thread in threads:
            thread.join(10)
        assert sorted(url for share in shares for url in share) == sorted(urls)

    def test_abandoning_lets_everybody_go(self) -> None:
        """Workers get None, and the reader is told to stop, whether they wait already or come later."""
        empty, full = HostQueue(), HostQueue(capacity=1)
        full.put(1, "http://a/1")
        got: list[object] = []
        threads = [
            threading.Thread(target=lambda: got.append(empty.take())),
            threading.Thread(target=lambda: got.append(full.put(2, "http://a/2"))),
        ]
        for thread in threads:
            thread.start()
        empty.abandon()
        full.abandon()
        for thread in threads:
            thread.join(10)
        assert sorted(got, key=str) == [False, None]
        assert full.take() is None
        assert full.put(3, "http://a/3") is False
