"""How long a file is believed, and a failure is remembered: RFC 9309, section 2.4."""

from __future__ import annotations

import pytest

from kreuz_sync.robots.life import OLD_COPY_S, Answer, Known, age_and_freshness, learn

from ..fakes import FakeClock
from ..loopback import Server, answer, sequence
from .sessions import CLOSED, PRIVATE, asked, asking, refused

DAY = 24 * 3600.0
FILE = Answer(b"file")
DOWN = Answer(None, "it answered 503")


def learnt(*answers: Answer, max_age: float = DAY, step: float = 0.0) -> Known:
    """What is known after these, `step` seconds apart."""
    known, now = None, 0.0
    for one in answers:
        known = learn(known, one, now=now, max_age=max_age)
        now += step
    assert known is not None
    return known


class TestFile:
    @pytest.mark.parametrize(
        ("fresh", "age", "max_age", "until"),
        [
            (None, 0.0, DAY, DAY),
            (3600.0, 0.0, DAY, 3600.0),
            (3600.0, 600.0, DAY, 3000.0),
            (10 * DAY, 0.0, DAY, DAY),
            (10 * DAY, 1000.0, DAY, DAY - 1000.0),
            (0.0, 0.0, DAY, 300.0),
            (600.0, 599.0, DAY, 300.0),
            (None, 0.0, 60.0, 60.0),
            (0.0, 0.0, 60.0, 60.0),
        ],
    )
    def test_it_is_believed_as_long_as_it_is_fresh(
        self, fresh: float | None, age: float, max_age: float, until: float
    ) -> None:
        """But five minutes at least, a day at most, and never longer than `max_age`."""
        assert learnt(Answer(b"", "", age, fresh), max_age=max_age).until == until

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, (0.0, None)),
            ({"Cache-Control": "max-age=60"}, (0.0, 60.0)),
            ({"Cache-Control": "max-age=60", "Age": "50"}, (50.0, 60.0)),
            ({"Cache-Control": "no-store"}, (0.0, 0.0)),
            ({"Cache-Control": "no-cache, max-age=60"}, (0.0, 0.0)),
            ({"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Expires": "Sun, 06 Nov 1994 08:50:37 GMT"}, (0.0, 60.0)),
            ({"Expires": "never"}, (0.0, 0.0)),
            ({"Cache-Control": "max-age=x", "Age": "-1"}, (0.0, 0.0)),
        ],
    )
    def test_its_fields_are_those_of_http(self, fields: dict[str, str], expected: tuple[float, float | None]) -> None:
        assert age_and_freshness(fields.items(), now=1_000_000_000.0) == expected


class TestFailures:
    def test_they_are_remembered_for_minutes(self) -> None:
        """A hiccup must not close a host for a day, and a dead one is not asked for each URL."""
        assert [learnt(*[DOWN] * count).until for count in (1, 2, 3, 4, 50)] == [60.0, 120.0, 240.0, 300.0, 300.0]

    def test_a_server_may_ask_for_more_of_these_minutes(self) -> None:
        assert [learnt(DOWN._replace(pause=pause)).until for pause in (1.0, 200.0, 1e9)] == [60.0, 200.0, 300.0]

    def test_an_old_copy_serves_for_thirty_days(self) -> None:
        assert learnt(FILE, DOWN, step=OLD_COPY_S).content == b"file"
        assert learnt(FILE, DOWN, step=OLD_COPY_S + 1).content is None

    def test_success_ends_the_row(self) -> None:
        assert learnt(DOWN, DOWN, FILE, DOWN).until == 60.0


class TestSession:
    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    def test_a_file_is_asked_for_once_a_day(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", sequence(answer(body=PRIVATE), answer(body=CLOSED)))
        session = asking(clock)
        for _ in range(3):
            assert session.get(server.url("/")).ok
        clock.advance(DAY - 1)
        assert session.get(server.url("/")).ok and asked(server) == 1
        clock.advance(1)
        refused(session, server.url("/"))
        assert asked(server) == 2

    def test_one_that_is_not_there_as_well(self, server: Server, clock: FakeClock) -> None:
        session = asking(clock)
        session.get(server.url("/"))
        clock.advance(DAY - 1)
        session.get(server.url("/"))
        assert asked(server) == 1

    def test_after_a_failure_it_is_asked_again_soon(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", sequence(503, answer(body=PRIVATE)))
        session = asking(clock)
        for _ in range(3):
            refused(session, server.url("/"))
        assert asked(server) == 1
        clock.advance(60)
        assert session.get(server.url("/")).ok and asked(server) == 2

    def test_an_old_copy_goes_before_a_failure(self, server: Server, clock: FakeClock) -> None:
        server.route("/robots.txt", sequence(answer(body=PRIVATE), 503))
        session = asking(clock)
        session.get(server.url("/"))
        clock.advance(2 * DAY)
        assert session.get(server.url("/")).ok and not refused(session, server.url("/private/x")).unreachable
        assert asked(server) == 2
        clock.advance(29 * DAY)
        assert refused(session, server.url("/")).unreachable
