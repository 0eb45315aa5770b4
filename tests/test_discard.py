"""Answers that nobody will read."""

import io

import pytest

from kreuz_sync.retry.discard import DRAIN_BYTES, discard

from .fakes import FakeClock, prepared, respond


class Slow(io.BytesIO):
    """A body that takes `pause` seconds for each read."""

    def __init__(self, content, clock, pause):
        super().__init__(content)
        self.clock, self.pause, self.reads = clock, pause, 0

    def read(self, *size):
        self.reads += 1
        self.clock.advance(self.pause)
        return super().read(*size)

    read1 = read


def answer(size, clock, pause=0.0):
    response = respond(prepared(), 503, {"Content-Length": str(size)})
    response.raw._fp = Slow(b"x" * size, clock, pause)
    return response, response.raw._fp


class TestDiscard:
    def test_a_small_body_is_read_to_its_end(self):
        clock = FakeClock()
        response, body = answer(10_000, clock)
        position = []
        body.close = lambda: position.append(body.tell())
        discard(response, clock)
        assert set(position) == {10_000}

    def test_of_a_large_one_no_more_than_the_limit(self):
        clock = FakeClock()
        response, body = answer(10 * DRAIN_BYTES, clock)
        body.close = lambda: None
        discard(response, clock)
        assert body.tell() == DRAIN_BYTES

    def test_of_a_slow_one_no_more_than_a_second(self):
        clock = FakeClock()
        response, body = answer(50_000, clock, pause=0.4)
        discard(response, clock)
        assert body.reads == 3

    @pytest.mark.parametrize("error", [OSError, ValueError])
    def test_what_goes_wrong_is_nobodys_concern(self, error):
        clock = FakeClock()
        response, body = answer(100, clock)
        closed = []
        body.close = lambda: closed.append(True)

        def fail(*_):
            raise error

        body.read = body.read1 = fail
        discard(response, clock)
        assert closed

    def test_an_answer_without_a_wire_is_closed(self):
        response = respond(prepared(), 503)
        response.raw = io.BytesIO(b"body")
        discard(response, FakeClock())
        assert response.raw.closed
