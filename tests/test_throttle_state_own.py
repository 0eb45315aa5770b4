"""Of a throttle's state, a process knows its own word again: it takes it back, and shortens it."""

import json
import os

import pytest

from kreuz_sync import Throttle
from kreuz_sync.throttle.saved import FORMAT, MOST_HOSTS
from kreuz_sync.throttle.verdict import Declared

from .fakes import FakeClock

HOST, OTHER = "a.test", "b.test"


class DriftingClock(FakeClock):
    """Two looks are never at the same moment, as with a real clock."""

    def monotonic(self) -> float:
        self.advance(1e-4)
        return super().monotonic()

    def wall(self) -> float:
        self.advance(1e-4)
        return super().wall()


@pytest.fixture(params=[FakeClock, DriftingClock])
def clock(request):
    return request.param()


@pytest.fixture
def begin(tmp_path, clock):
    """Another throttle on the same file."""
    return lambda: Throttle(0.5, state=tmp_path, clock=clock)


def pause(seconds):
    return Declared(seconds, "", "p", 0.0, seconds, "ratelimit")


class TestItsOwnWord:
    def test_a_backoff_that_came_to_its_end_is_not_brought_back(self, begin):
        throttle = begin()
        throttle.record_response(HOST, 429)
        throttle.save()
        throttle.record_response(OTHER, 429)
        throttle.save()  # HOST is as it was
        for _ in range(5):
            throttle.record_response(HOST, 200)
        throttle.save()
        assert begin().delay_for(HOST) == 0.5

    def test_nor_is_a_crawl_delay_that_was_withdrawn(self, begin):
        throttle = begin()
        throttle.set_crawl_delay(HOST, 5)
        throttle.save()
        throttle.set_crawl_delay(OTHER, 5)
        throttle.save()
        throttle.set_crawl_delay(HOST, 0)
        throttle.save()
        assert begin().delay_for(HOST) == 0.5

    def test_nor_one_that_was_read_from_the_file(self, begin):
        first = begin()
        first.set_crawl_delay(HOST, 5)
        first.save()
        second = begin()
        second.set_crawl_delay(HOST, 0)
        second.save()
        assert begin().delay_for(HOST) == 0.5

    def test_a_pause_that_was_shortened_is_as_short_there(self, begin, clock):
        throttle = begin()
        throttle.turns.heed(HOST, pause(100.0))
        throttle.save()
        clock.advance(1)
        throttle.turns.heed(HOST, pause(10.0))
        throttle.save()
        assert begin().wait_for(HOST) == pytest.approx(10, abs=0.1)

    def test_a_wall_clock_that_was_set_back_does_not_make_it_the_older(self, begin, clock):
        throttle = begin()
        throttle.record_response(HOST, 429)
        throttle.save()
        clock._wall -= 600
        clock.advance(5)
        throttle.set_crawl_delay(HOST, 9)
        throttle.save()
        assert begin().delay_for(HOST) == 9.0

    def test_that_it_is_idle_makes_it_no_older(self, begin, tmp_path, clock):
        throttle = begin()
        throttle.record_response(HOST, 429)
        heard = []
        for _ in range(5):
            throttle.record_response(OTHER, 429)
            throttle.save()
            clock.advance(100)
            heard.append(json.loads((tmp_path / "throttle.json").read_text())["hosts"][HOST]["heard"])
        assert max(heard) - min(heard) < 0.01


class TestTheWordOfAnother:
    def test_its_longer_pause_is_kept_at_every_save(self, begin, clock):
        one, other = begin(), begin()
        other.turns.heed(HOST, pause(100.0))
        other.save()
        clock.advance(1)
        one.record_response(HOST, 429)
        for _ in range(3):
            one.record_response(OTHER, 429)
            one.save()
        third = begin()
        assert third.wait_for(HOST) == pytest.approx(99, abs=0.1)
        assert third.delay_for(HOST) == 1.0

    def test_also_by_one_that_has_nothing_to_say_of_the_host_any_more(self, begin, clock):
        one, other = begin(), begin()
        other.turns.heed(HOST, pause(100.0))
        other.save()
        clock.advance(1)
        one.set_crawl_delay(HOST, 5)
        one.save()
        one.set_crawl_delay(HOST, 0)
        one.save()
        third = begin()
        assert third.wait_for(HOST) == pytest.approx(99, abs=0.1)
        assert third.delay_for(HOST) == 0.5

    def test_that_it_writes_what_it_had_read_brings_nothing_back(self, begin, clock):
        one = begin()
        one.record_response(HOST, 429)
        one.save()
        other = begin()
        clock.advance(1)
        for _ in range(5):
            one.record_response(HOST, 200)
        one.save()
        other.record_response(OTHER, 429)
        other.save()
        one.record_response("c.test", 429)
        one.save()
        assert begin().delay_for(HOST) == 0.5

    def test_one_from_a_clock_that_was_ahead_does_not_count_as_later(self, begin, clock):
        one, other = begin(), begin()
        other.record_response(HOST, 429)
        other.save()
        clock._wall -= 600
        one.set_crawl_delay(HOST, 9)
        one.save()
        assert begin().delay_for(HOST) == 9.0


class TestTheFile:
    @pytest.mark.skipif(os.name != "posix", reason="links need rights")
    def test_a_link_stays_one_and_what_it_leads_to_is_written(self, tmp_path):
        (tmp_path / "there").mkdir()
        file, link = tmp_path / "there" / "pace.json", tmp_path / "pace.json"
        link.symlink_to(file)
        for host in (HOST, OTHER):
            throttle = Throttle(0.5, state=link, clock=FakeClock())
            throttle.record_response(host, 429)
            throttle.save()
        assert link.is_symlink()
        assert set(json.loads(file.read_text())["hosts"]) == {HOST, OTHER}

    def test_no_more_hosts_are_read_than_are_written(self, tmp_path):
        clock = FakeClock()
        hosts = {f"h{n}.test": {"backoff": 1.0, "heard": clock.wall() - n} for n in range(MOST_HOSTS + 50)}
        (tmp_path / "throttle.json").write_text(json.dumps({"format": FORMAT, "hosts": hosts}))
        throttle = Throttle(0.5, state=tmp_path, clock=clock)
        assert set(throttle.snapshot()) == {f"h{n}.test" for n in range(MOST_HOSTS)}
