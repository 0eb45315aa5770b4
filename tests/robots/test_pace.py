"""The pace that robots.txt asks for, and who keeps it."""

from __future__ import annotations

import itertools
import logging

import pytest

from kreuz_sync import RateLimiter, Robots, Throttle
from kreuz_sync.throttle import HostSettings

from ..fakes import FakeClock, ScriptedAdapter
from ..loopback import Server, answer, redirect, sequence
from .sessions import PRIVATE, asked, asking, opened

DAY = 24 * 3600.0


def delay(seconds: float | str) -> str:
    return f"User-agent: *\nCrawl-delay: {seconds}"


def files(texts: dict[str, str | int]) -> ScriptedAdapter:
    """A wire on which these robots.txt files are; other pages are empty."""

    def respond(request):
        text = texts.get(request.url, 404) if request.url.endswith("/robots.txt") else 200
        return text if isinstance(text, int) else (200, (), text.encode())

    return ScriptedAdapter(respond)


class Told(RateLimiter):
    """A limiter of a user's own."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []

    def acquire(self, host: str) -> None: ...

    def record_response(self, host: str, status: int) -> None: ...

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        self.calls.append((host, seconds))


def gaps(server: Server) -> list[float]:
    times = [request.at for request in server.requests]
    return [after - before for before, after in itertools.pairwise(times)]


class TestOnTheWire:
    def test_requests_keep_the_delay(self, server: Server) -> None:
        """From the file itself on."""
        server.route("/robots.txt", answer(body=delay(0.2)))
        session = asking(throttle=0.0)
        responses = [session.get(server.url("/")) for _ in range(3)]
        assert min(gaps(server)) >= 0.2 * 0.9
        assert all(response.waited > 0.1 for response in responses)

    @pytest.mark.parametrize("mode", ["obey", "crawl-delay"])
    def test_of_two_servers_on_one_host_only_that_one_is_paced(
        self, server: Server, second_server: Server, mode: str
    ) -> None:
        server.route("/robots.txt", answer(body=delay(0.3)))
        second_server.route("/robots.txt", answer(body=PRIVATE))
        session = asking(throttle=0.0, mode=mode)
        for _ in range(3):
            session.get(server.url("/"))
            assert session.get(second_server.url("/")).waited == 0
        assert min(gaps(server)) >= 0.3 * 0.9

    def test_each_hop_has_its_own(self, server: Server, second_server: Server) -> None:
        server.route("/away", redirect(second_server.url("/")))
        second_server.route("/robots.txt", answer(body=delay(0.2)))
        session = asking(throttle=0.0)
        response = session.get(server.url("/away"))
        assert response.waited > 0.1 and response.history[0].waited == 0


class TestThrottle:
    """What a `Throttle` is told. No wire, no waiting: the clock stands still."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    def test_the_largest_delay_holds(self, clock: FakeClock) -> None:
        throttle = Throttle(0.5, clock=clock)
        wire = files({"http://slow.test/robots.txt": delay(90), "http://quick.test/robots.txt": delay(0.01)})
        session = asking(clock, throttle=throttle, adapter=wire)
        session.get("http://slow.test/")
        session.get("http://quick.test/")
        assert (throttle.delay_for("slow.test"), throttle.delay_for("quick.test")) == (90.0, 0.5)

    def test_a_file_that_names_none_tells_nothing(self, clock: FakeClock) -> None:
        """A floor that the user has set stays."""
        throttle = Throttle(0.0, clock=clock)
        throttle.set_crawl_delay("a.test", 5)
        session = asking(clock, throttle=throttle, adapter=files({"http://a.test/robots.txt": PRIVATE}))
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 5

    def test_a_delay_that_is_gone_from_the_file_is_gone(self, clock: FakeClock) -> None:
        texts: dict[str, str | int] = {"http://a.test/robots.txt": delay(5)}
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, throttle=throttle, adapter=files(texts))
        session.get("http://a.test/")
        texts["http://a.test/robots.txt"] = 404
        clock.advance(DAY)
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 0

    @pytest.mark.parametrize("mode", ["obey", "crawl-delay"])
    def test_a_failure_keeps_what_was_known(self, clock: FakeClock, mode: str) -> None:
        texts: dict[str, str | int] = {"http://a.test/robots.txt": delay(5)}
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, throttle=throttle, adapter=files(texts), mode=mode)
        session.get("http://a.test/")
        texts["http://a.test/robots.txt"] = 503
        clock.advance(DAY)
        assert session.get("http://a.test/").ok
        assert throttle.delay_for("a.test") == 5

    def test_another_file_does_not_erase_a_backoff(self, clock: FakeClock) -> None:
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, throttle=throttle, adapter=files({"http://a.test/robots.txt": delay(0.5)}))
        throttle.record_response("a.test", 429)
        throttle.record_response("a.test", 429)
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 2.0

    def test_http_and_https_share_a_line_and_the_larger_delay_holds(self, clock: FakeClock) -> None:
        texts: dict[str, str | int] = {"http://a.test/robots.txt": delay(5), "https://a.test/robots.txt": PRIVATE}
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, throttle=throttle, adapter=files(texts))
        session.get("http://a.test/")
        session.get("https://a.test/")
        assert throttle.delay_for("a.test") == 5
        texts["http://a.test/robots.txt"] = PRIVATE
        texts["https://a.test/robots.txt"] = delay(3)
        clock.advance(DAY)
        session.get("https://a.test/")
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 3

    def test_so_do_hosts_that_a_key_puts_together(self, clock: FakeClock) -> None:
        throttle = Throttle(0.0, clock=clock, key=lambda url: "all")
        texts = {"http://a.test/robots.txt": delay(5), "http://b.test:8080/robots.txt": delay(2)}
        session = asking(clock, throttle=throttle, adapter=files(texts))
        session.get("http://a.test/")
        session.get("http://b.test:8080/")
        assert throttle.delay_for("all") == 5 and list(throttle.snapshot()) == ["all"]

    def test_two_throttles_of_one_setting_are_both_told(self, clock: FakeClock) -> None:
        robots, wire = Robots(clock=clock), files({"http://a.test/robots.txt": delay(5)})
        throttles = Throttle(0.0, clock=clock), Throttle(0.0, clock=clock)
        for throttle in throttles:
            opened(robots=robots, throttle=throttle, adapter=wire).get("http://a.test/")
        assert [throttle.delay_for("a.test") for throttle in throttles] == [5, 5]
        assert len(wire.requests) == 3

    def test_a_delay_that_is_too_long_is_cut_and_logged_once(self, clock: FakeClock, caplog) -> None:
        throttle = Throttle(0.0, clock=clock, max_crawl_delay=1000)
        session = asking(
            clock, throttle=throttle, adapter=files({"http://a.test/robots.txt": delay(1e9)}), max_crawl_delay=20
        )
        with caplog.at_level(logging.WARNING, "kreuz_sync.robots"):
            session.get("http://a.test/")
            session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 20 == session.robots.crawl_delay("http://a.test")
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    def test_a_delay_that_is_not_written_out_is_none(self, clock: FakeClock) -> None:
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, throttle=throttle, adapter=files({"http://a.test/robots.txt": delay("1e9")}))
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 0


class TestOtherLimiters:
    def test_one_of_a_users_own_is_told_by_host(self) -> None:
        limiter = Told()
        texts = {"http://a.test:8080/robots.txt": delay(5), "http://a.test/robots.txt": delay(2)}
        session = asking(throttle=limiter, adapter=files(texts))
        for _ in range(2):
            session.get("http://a.test:8080/")
            session.get("http://a.test/")
        assert limiter.calls == [("a.test", 5.0), ("a.test", 5.0)]

    def test_no_limiter_is_no_error(self) -> None:
        session = asking(adapter=files({"http://a.test/robots.txt": delay(5)}))
        assert session.get("http://a.test/").waited == 0


class TestLinesOfPorts:
    """A port whose robots.txt asks for a delay has a line of its own in the throttle."""

    @pytest.fixture
    def throttle(self) -> Throttle:
        return Throttle(0.2, hosts={"a.test": HostSettings(delay=1.0), "*.b.test": 2.0}, clock=FakeClock())

    def test_ports_share_a_line_until_then(self, throttle: Throttle) -> None:
        assert {throttle.host_of(f"http://a.test{port}/") for port in ("", ":80", ":8080", ":8081")} == {"a.test"}

    def test_from_then_on_it_is_that_ports_alone(self, throttle: Throttle) -> None:
        throttle.set_crawl_delay("A.test.:8080", 5)
        urls = ("http://a.test/", "http://a.test:8080/", "https://a.test:8080/", "http://a.test:8081/")
        assert [throttle.host_of(url) for url in urls] == ["a.test", "a.test:8080", "a.test:8080", "a.test"]
        assert (throttle.delay_for("a.test:8080"), throttle.delay_for("a.test")) == (5, 1)

    def test_it_has_the_settings_of_its_host(self, throttle: Throttle) -> None:
        throttle.set_crawl_delay("a.test:8080", 0.1)
        throttle.set_crawl_delay("x.b.test:8080", 0.1)
        assert (throttle.delay_for("a.test:8080"), throttle.delay_for("x.b.test:8080")) == (1, 2)

    def test_it_begins_where_the_hosts_line_is(self, throttle: Throttle) -> None:
        """A backoff, a pause and the latest start hold for it too."""
        throttle.acquire("a.test")
        throttle.record_response("a.test", 429)
        throttle.set_crawl_delay("a.test:8080", 0.5)
        assert (throttle.delay_for("a.test:8080"), throttle.wait_for("a.test:8080")) == (2, 2)

    def test_later_changes_of_the_floor_keep_what_it_has_learnt_itself(self, throttle: Throttle) -> None:
        throttle.set_crawl_delay("a.test:8080", 5)
        throttle.record_response("a.test:8080", 429)
        throttle.set_crawl_delay("a.test:8080", 6)
        assert (throttle.delay_for("a.test:8080"), throttle.delay_for("a.test")) == (10, 1)

    def test_without_a_floor_it_shares_again(self, throttle: Throttle) -> None:
        throttle.set_crawl_delay("a.test:8080", 5)
        throttle.set_crawl_delay("a.test:8080", 0)
        assert throttle.host_of("http://a.test:8080/") == "a.test"

    def test_a_line_that_is_forgotten_is_none(self) -> None:
        clock = FakeClock()
        throttle = Throttle(0.0, clock=clock)
        throttle.set_crawl_delay("a.test:8080", 5)
        clock.advance(2 * DAY)
        for number in range(1500):
            throttle.acquire(f"host{number}.test")
        assert "a.test:8080" not in throttle.snapshot()
        assert throttle.host_of("http://a.test:8080/") == "a.test"

    def test_addresses(self) -> None:
        throttle = Throttle(0.0, clock=FakeClock())
        throttle.set_crawl_delay("[::1]:8080", 5)
        urls = ("http://[::1]:8080/", "http://[::1]/", "http://[::1]:8081/")
        assert [throttle.host_of(url) for url in urls] == ["[::1]:8080", "::1", "::1"]
        throttle.set_crawl_delay("[::1]", 1)
        assert throttle.delay_for("::1") == 1

    def test_names_of_a_key_are_taken_as_they_are(self) -> None:
        throttle = Throttle(0.0, clock=FakeClock(), key=lambda url: "group:1")
        throttle.record_response("group", 429)
        throttle.set_crawl_delay("group:1", 5)
        assert throttle.delay_for("group:1") == 5
        assert throttle.line_of("http://a.test:8080/") == throttle.host_of("http://a.test:8080/") == "group:1"


class TestCrawlDelayMode:
    """robots="crawl-delay": the pace, and nothing else."""

    def test_nothing_is_refused(self, server: Server) -> None:
        server.route("/robots.txt", answer(body="User-agent: *\nDisallow: /"))
        session = opened(robots="crawl-delay", throttle=None)
        assert session.get(server.url("/")).ok and not session.robots.allowed(server.url("/"))

    def test_a_failure_fails_nothing_and_is_forgotten_soon(self) -> None:
        clock = FakeClock()
        texts: dict[str, str | int] = {"http://a.test/robots.txt": 503}
        throttle = Throttle(0.0, clock=clock)
        session = asking(clock, mode="crawl-delay", throttle=throttle, adapter=files(texts))
        assert session.get("http://a.test/").ok and throttle.delay_for("a.test") == 0
        texts["http://a.test/robots.txt"] = delay(2)
        clock.advance(60)
        session.get("http://a.test/")
        assert throttle.delay_for("a.test") == 2

    def test_neither_does_a_turn_that_is_too_far_away(self) -> None:
        """Of the page, its own turn decides."""
        clock = FakeClock()
        throttle = Throttle(0.0, max_wait=1.0, clock=clock)
        wire = files({})
        session = asking(clock, mode="crawl-delay", throttle=throttle, adapter=wire)
        throttle.set_crawl_delay("a.test", 30)
        throttle.acquire("a.test")

        from kreuz_sync import ThrottleTimeout

        with pytest.raises(ThrottleTimeout):
            session.get("http://a.test/")
        clock.advance(30)
        assert session.get("http://b.test/").ok

    def test_a_server_that_is_silent_leaves_half_of_the_deadline(self, server: Server) -> None:
        from ..loopback import silent

        server.route("/robots.txt", sequence(silent()))
        session = asking(mode="crawl-delay")
        assert [session.get(server.url("/"), deadline=2.0).ok for _ in range(3)] == [True] * 3
        assert asked(server) == 1
