"""Waits that can be cut short."""

import threading

import pytest

from kreuz_sync.clock import Clock, Pause
from kreuz_sync.errors import SessionClosed

from .fakes import FakeClock


class TestPause:
    def test_it_waits_its_time_on_the_clock_it_was_given(self):
        clock = FakeClock()
        Pause(clock).sleep(12.5)
        assert clock.waits == [12.5]

    def test_nothing_to_wait_for_does_not_wait(self):
        clock = FakeClock()
        Pause(clock).sleep(0)
        assert clock.waits == []

    def test_waking_ends_every_sleep_with_a_typed_error(self):
        """Four threads sleep for an hour; one call ends all four."""
        pause, ready, ended = Pause(), threading.Barrier(5), []

        def sleep():
            ready.wait(10)
            try:
                pause.sleep(3600)
            except SessionClosed as error:
                ended.append(error.tag)

        threads = [threading.Thread(target=sleep) for _ in range(4)]
        for thread in threads:
            thread.start()
        ready.wait(10)
        while any(thread.is_alive() for thread in threads):
            pause.wake()
            threads[0].join(0.01)
        assert ended == ["session_closed"] * 4

    def test_a_later_sleep_is_not_affected(self):
        clock = FakeClock()
        pause = Pause(clock)
        pause.wake()
        pause.sleep(1)
        assert clock.waits == [1]

    def test_a_spurious_wake_up_goes_on_waiting(self):
        class Restless(FakeClock):
            def wait(self, condition, seconds):
                super().wait(condition, seconds / 2 if seconds > 1 else seconds)

        clock = Restless()
        Pause(clock).sleep(4)
        assert clock.waits == [2, 1, 1]


def test_the_system_clock_runs_forward():
    clock = Clock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall() == pytest.approx(clock.wall(), abs=10)
