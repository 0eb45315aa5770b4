"""Where texts first stand in a path: as `str.find` says, however long that would take it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.robots import occurrences
from kreuz_sync.robots.files import rules_for
from kreuz_sync.robots.lines import LIMIT
from kreuz_sync.robots.occurrences import Occurrences
from kreuz_sync.robots.patterns import Patterns

TEXTS = st.text("ab", min_size=1, max_size=40) | st.integers(1, 90).map("a".__mul__)
PATHS = st.text("ab/", max_size=60) | TEXTS.map(lambda text: text * 5)


class TestOccurrences:
    @given(PATHS, st.lists(st.tuples(TEXTS, st.integers(0, 50))))
    def test_they_are_those_that_find_finds(self, path: str, asked: list[tuple[str, int]]) -> None:
        known = Occurrences(path, 8)
        for text, at in asked:
            assert known.first(text, at) == path.find(text, at)

    def test_what_is_kept_has_a_bound(self, monkeypatch) -> None:
        """It is only kept to be quick: the answers stay the same."""
        monkeypatch.setattr(occurrences, "MOST_KEPT", 100)
        path = "/" + "ab" * 300
        known = Occurrences(path, 50)
        for length in range(1, 50):
            for at in (0, 300, 590):
                assert known.first(path[1 : 1 + length], at) == path.find(path[1 : 1 + length], at)

    def test_a_long_path_takes_no_more_memory_than_it_may(self, monkeypatch) -> None:
        monkeypatch.setattr(occurrences, "MOST_HEADS", 1000)
        path = "/" + "a" * 500 + "b" + "a" * 100
        assert Occurrences(path, 400).first("a" * 300 + "b", 10) == path.find("a" * 300 + "b", 10)


class TestNearlyEqualParts:
    """`/*aaa..b..aaa`, thousands of times: what `str.find` is slowest at."""

    def test_the_sorted_ends_say_what_simple_looks_say(self, monkeypatch) -> None:
        rules = [(k % 2 == 0, b"/*" + b"a" * j + b"b" + b"a" * k) for j in range(20, 40) for k in range(2, 12)]
        rules += [(True, b"/" + b"a" * i + b"*" + b"a" * j + b"b*a$") for i in range(9) for j in range(30)]
        paths = ["/" + "a" * i + "b" + "a" * j + "b" * k for i in (0, 19, 25, 60) for j in (0, 5, 40) for k in (0, 1)]
        simple = [Patterns(rules).find(path) for path in paths]
        monkeypatch.setattr("kreuz_sync.robots.patterns.SIMPLE", 0)
        assert [Patterns(rules).find(path) for path in paths] == simple
        assert any(simple)

    def test_a_whole_file_of_them_is_looked_through(self) -> None:
        lines = [b"Allow:/*" + b"a" * j + b"b" + b"a" * k for j in range(200, 260) for k in range(2, 40)]
        rules = rules_for("bot", b"\n".join([b"User-agent: *", *lines])[: LIMIT - 20].rpartition(b"\n")[0])
        assert rules.find("/" + "a" * 2000) is None
        longest = rules.find("/" + "a" * 1900 + "b" + "a" * 39)
        assert longest is not None
        assert longest.weight > 280
