"""What `Session(robots=...)` and `Robots(...)` take, and how they are copied."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from kreuz_sync import Robots, Session
from kreuz_sync.robots.setting import as_robots, product_of

from ..fakes import ScriptedAdapter
from .sessions import CLOSED, opened, refused


class TestArguments:
    @pytest.mark.parametrize(
        ("settings", "kind"),
        [
            ({"mode": "strict"}, ValueError),
            ({"mode": None}, ValueError),
            ({"token": ""}, ValueError),
            ({"token": "my bot"}, ValueError),
            ({"token": "MyBot/1.0"}, ValueError),
            ({"token": "*"}, ValueError),
            ({"token": 5}, TypeError),
            ({"hosts": ["a.test"]}, TypeError),
            ({"hosts": {"http://a.test": False}}, ValueError),
            ({"hosts": {"a.test": None}}, ValueError),
            ({"hosts": {"a.test": "off"}}, ValueError),
            ({"on_unreachable": "ask"}, ValueError),
            ({"max_age": 0}, ValueError),
            ({"max_age": 86401}, ValueError),
            ({"max_age": math.nan}, ValueError),
            ({"max_crawl_delay": -1}, ValueError),
            ({"wildcard_delay": 1}, TypeError),
            ({"max_origins": 0}, ValueError),
            ({"clock": None}, TypeError),
        ],
    )
    def test_what_cannot_work_is_named(self, settings: dict, kind: type[Exception]) -> None:
        (name,) = settings
        with pytest.raises(kind, match=name):
            Robots(**settings)

    @pytest.mark.parametrize(("value", "mode"), [(True, "obey"), ("obey", "obey"), ("crawl-delay", "crawl-delay")])
    def test_words(self, value: object, mode: str) -> None:
        made = as_robots(value)
        assert made is not None and made.mode == mode

    @pytest.mark.parametrize("value", [None, False])
    def test_none(self, value: object) -> None:
        assert as_robots(value) is None

    @pytest.mark.parametrize(("value", "kind"), [(1, TypeError), ("yes", ValueError), (["obey"], TypeError)])
    def test_others(self, value: object, kind: type[Exception]) -> None:
        with pytest.raises(kind, match="robots="):
            opened(robots=value)  # type: ignore[arg-type]

    def test_it_is_fixed(self) -> None:
        with pytest.raises(AttributeError):
            Robots().mode = "crawl-delay"


class TestToken:
    @pytest.mark.parametrize(
        ("agent", "product"),
        [
            ("MyBot/1.0 (+https://example.com)", "MyBot"),
            ("MyBot", "MyBot"),
            (b"MyBot/1.0", "MyBot"),
            ("my-bot_2.x/1", "my-bot_2.x"),
            ("Mozilla/5.0 (compatible; MyBot/1.0)", "Mozilla"),
            ("(odd)", "kreuz-sync"),
            ("", "kreuz-sync"),
            (None, "kreuz-sync"),
        ],
    )
    def test_the_product_of_an_agent(self, agent: str | bytes | None, product: str) -> None:
        assert product_of(agent) == product

    def test_it_is_that_of_the_session_or_the_one_that_was_set(self) -> None:
        fields = {"user-agent": "MyBot/1.0"}

        def token(**settings: object) -> str:
            return next(layer for layer in opened(**settings).layers if isinstance(layer, Robots)).declared_token

        assert token(robots=True) == "kreuz-sync"
        assert token(robots=True, headers=fields) == "MyBot"
        assert token(robots=Robots(token="Other"), headers=fields) == "Other"
        assert token(robots=True, headers={"User-Agent": None}) == "kreuz-sync"

    @pytest.mark.parametrize(
        ("robots", "events"), [(Robots(), ["robots_token"]), (Robots(token="badbot"), [])], ids=["read off", "set"]
    )
    def test_the_product_of_every_browser_is_warned_of(
        self, robots: Robots, events: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A group for badbot would not be found: `Mozilla/5.0 (compatible; badbot/1.0)`."""
        opened(robots=robots, headers={"User-Agent": "Mozilla/5.0 (compatible; badbot/1.0)"})
        told = [(record.levelname, record.event) for record in caplog.records]  # type: ignore[attr-defined]
        assert told == [("WARNING", event) for event in events]

    def test_what_a_call_says_does_not_change_it(self) -> None:
        """Otherwise a rotation would choose the group that suits it best."""
        wire = ScriptedAdapter((200, (), b"User-agent: nice\nAllow: /\n\nUser-agent: *\nDisallow: /"))
        session = opened(robots=True, throttle=None, adapter=wire)
        assert refused(session, "http://a.test/", headers={"User-Agent": "nice/1"}).token == "kreuz-sync"
        session.headers["User-Agent"] = "nice/1"
        refused(session, "http://a.test/")


class TestCopies:
    def test_a_copy_is_the_same(self) -> None:
        robots = Robots()
        assert copy.copy(robots) is robots and copy.deepcopy(robots) is robots

    def test_a_pickle_has_the_settings_and_no_files(self) -> None:
        wire = ScriptedAdapter((200, (), CLOSED.encode()))
        session = opened(
            robots=Robots(hosts={"b.test": False}, max_age=60), headers={"User-Agent": "MyBot/1"}, adapter=wire
        )
        refused(session, "http://a.test/")
        robots = session.layers[0]
        twin = pickle.loads(pickle.dumps(robots))
        assert [getattr(twin, name) for name in Robots.fields] == [getattr(robots, name) for name in Robots.fields]
        assert (twin.declared_token, twin.mode_for("b.test"), twin.keeper.known_origins()) == ("MyBot", None, [])

    def test_a_session_pickles_with_it(self) -> None:
        session = pickle.loads(pickle.dumps(Session(robots=True, throttle=None)))
        session.mount("http://", ScriptedAdapter((200, (), CLOSED.encode())))
        refused(session, "http://a.test/")
        assert not session.robots.allowed("http://a.test/")

    def test_two_of_equal_settings_are_two(self) -> None:
        assert Robots() != Robots() and repr(Robots(token="MyBot")).startswith("Robots(mode='obey', token='MyBot'")
