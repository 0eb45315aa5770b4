"""Any bytes may stand in a robots.txt file: none raise, and none take more than linear time."""

from __future__ import annotations

import contextlib
import itertools
import string
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego

from kreuz_sync import RobotsDisallowed, Throttle
from kreuz_sync.robots.files import rules_for, sitemaps_in
from kreuz_sync.robots.lines import LIMIT
from kreuz_sync.robots.paths import path_of, pieces
from kreuz_sync.robots.patterns import Patterns

from ..fakes import FakeClock, ScriptedAdapter
from .files import SITE, allows, everybody
from .sessions import asking

# Lines that mean something, cut and joined in any way.
LINES = st.lists(
    st.sampled_from(
        [
            *(
                b"User-agent: *",
                b"User-agent: foobot",
                b"user-agent:",
                b"Disallow: /",
                b"Allow: /a",
                b"Disallow: /*a*b$",
            ),
            *(b"Crawl-delay: 1e400", b"Crawl-delay: " + b"9" * 400, b"Request-rate: 1/99999999999d", b"Sitemap: \xff"),
            *(
                b"Disallow: %",
                b"Disallow: /%zz%4",
                b"\x00",
                b"\xef\xbb\xbf",
                b"Disallow: /" + "ツ".encode()[:2],
                b"#",
                b":",
            ),
        ]
    )
    | st.binary(max_size=40)
).flatmap(lambda lines: st.sampled_from([b"\n", b"\r", b"\r\n", b"\x0b"]).map(lambda end: end.join(lines)))


VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20) | st.sampled_from(
    ["max-age=99999999999999999999", "max-age=-1", "no-cache", "0", "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "gzip"]
)
FIELDS = st.dictionaries(
    st.sampled_from(["Cache-Control", "Expires", "Age", "Date", "Retry-After", "Content-Type"]), VALUES
)


class TestAnyBytes:
    @given(LINES, st.text(max_size=30))
    @settings(max_examples=300, deadline=None)
    @example(b"User-agent: *\nRequest-rate: 1/1 \xd9\xa3", "/\ud800")
    def test_none_raise(self, content: bytes, path: str) -> None:
        rules = rules_for("foobot", content, wildcard_delay=True)
        rules.find(path_of(SITE + "/" + path, SITE))
        sitemaps_in(content)
        assert rules.delay is None or rules.delay >= 0

    @given(LINES, st.sampled_from([200, 404]), FIELDS)
    @settings(max_examples=200, deadline=None)
    @pytest.mark.slow
    def test_none_raise_out_of_a_session(self, content: bytes, status: int, fields: dict[str, str]) -> None:
        """A page is fetched or refused, and the limiter is never asked to wait for longer than is allowed."""
        throttle = Throttle(0.0, clock=FakeClock())
        robots = (status, fields, content)
        wire = ScriptedAdapter(lambda request: robots if request.url.endswith("/robots.txt") else 200)
        session = asking(FakeClock(), throttle=throttle, adapter=wire)
        with contextlib.suppress(RobotsDisallowed):
            session.get("http://a.test/a/b")
        session.robots.sitemaps("http://a.test")
        assert 0 <= throttle.delay_for("a.test") <= 300

    @given(st.binary(max_size=60))
    @settings(max_examples=300, deadline=None)
    def test_a_path_is_one_spelling(self, pattern: bytes) -> None:
        """What is spelled once stays as it is."""
        once = [piece.encode("ascii") for piece in pieces(pattern)]
        assert [pieces(piece)[0].encode("ascii") for piece in once] == once


PATTERNS = st.text(alphabet="ab/*", min_size=0, max_size=6).map("/".__add__)
PATHS = st.text(alphabet="ab/", max_size=10).map("/".__add__)


class TestCrossCheck:
    """Protego decides the same wherever both speak the same language."""

    @given(st.lists(st.tuples(st.booleans(), PATTERNS, st.sampled_from(["", "$"])), max_size=6), PATHS)
    @settings(max_examples=500, deadline=None)
    @pytest.mark.slow
    def test_rules(self, rules: list[tuple[bool, str, str]], path: str) -> None:
        lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}{end}" for allow, pattern, end in rules]
        text = everybody(*lines)
        assert allows(text, path) is Protego.parse(text).can_fetch(SITE + path, "foobot")


def grams() -> Iterable[str]:
    """a, b, ..., aa, ab, ...: each once."""
    sizes = (itertools.product(string.ascii_lowercase, repeat=size) for size in itertools.count(1))
    return itertools.chain.from_iterable(map("".join, some) for some in sizes)


def filled(patterns: Iterable[str]) -> list[tuple[bool, bytes]]:
    """As many rules as fit into a file."""
    rules, left = [], LIMIT
    for pattern in patterns:
        left -= len(f"disallow:{pattern}\n")
        if left < 0:
            return rules
        rules.append((False, pattern.encode()))
    return rules


class CountedPath(str):
    """Counts how often something is looked for in it, or cut out of it."""

    looks = 0

    def find(self, *args):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().find(*args)

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().__getitem__(key)


class TestLinear:
    """A file of 500 KiB that is all wildcards."""

    @pytest.mark.parametrize(
        ("patterns", "path", "most"),
        [
            # 33,000 parts that could stand anywhere: each place is looked at, not each part.
            (filled(map("/*{}".format, grams())), "/" + "0" * 2000, 10_000),
            (filled(map("/*{}$".format, grams())), "/" + "0" * 2000, 50),
            # a, a*a, a*a*a, ...: what one has found the next one need not.
            (
                filled("/*" + "*".join("a" * size) + "$" for size in itertools.count(1)),
                "/" + "a" * 2000 + "b",
                2000,
            ),
            # One rule of 250,000 wildcards.
            ([(False, b"/*" + b"a*" * 250_000 + b"b")], "/" + "a" * 2000, 2010),
            ([(False, b"/" + b"*a" * 24 + b"$")], "/" + "a" * 2000 + "b", 50),
        ],
        ids=["parts", "tails", "growing", "one rule", "the classic"],
    )
    @pytest.mark.slow
    def test_it_is_looked_through_once(self, patterns: list[tuple[bool, bytes]], path: str, most: int) -> None:
        counted = CountedPath(path)
        assert Patterns(patterns).find(counted) is None
        assert counted.looks <= most

    def test_agents_that_share_a_group_share_its_rules(self) -> None:
        """Ten thousand agents with ten thousand rules are no hundred million rules."""
        agents = b"".join(b"User-agent: a%d\nUser-agent: foobot\n" % number for number in range(5000))
        rules = b"".join(b"Disallow: /%d\n" % number for number in range(5000))
        assert rules_for("foobot", agents + rules).size < 10_000_000
