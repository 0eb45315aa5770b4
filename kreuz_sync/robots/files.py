"""A robots.txt file: its groups, and what it says to one product token. Pure; RFC 9309, section 2.2.1.

Allow and Disallow are matched in `patterns.py`. What the RFC leaves out is read by Protego
(Request-rate with its units, the spelling of sitemaps), from lines that were checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .lines import Kind, lines_of
from .patterns import Patterns, Rule

ROBOTS_PATH = "/robots.txt"
EVERYBODY = "*"
RATES_READ = 16  # of a token; a file has one, if any
PLACE_BYTES = 256  # with the rule or the dictionary that belongs to it; the most that was measured

# ASCII digits only: float() takes `1_0`, `nan`, and the digits of every script.
_NUMBER = re.compile(rb"[0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
_RATE = re.compile(rb"[0-9]{1,9}[ \t]*/[ \t]*[0-9]{1,9}[smhdSMHD]?(?=[ \t]|\Z)")
# Section 2.2.1 knows letters, `_` and `-`, and Google's parser cuts a file's token at anything else;
# but there are agents with digits in their names.
_CUT = re.compile(rb"[A-Za-z_-]+")
_NAME = re.compile(rb"[A-Za-z0-9_.-]+")


class _Said:
    """What is said to one token, in all groups that name it.

    groups: the rules of each, which others that it names share. delays, rates: the values of lines.
    """

    __slots__ = ("delays", "groups", "rates")

    def __init__(self) -> None:
        self.groups: list[list[tuple[bool, bytes]]] = []
        self.delays: list[bytes] = []
        self.rates: list[bytes] = []

    @property
    def delay(self) -> float | None:
        """The largest that is asked for. A rate for some hours of the day counts at all: slower is never wrong."""
        delays = [float(value) for value in self.delays]
        for value in self.rates[:RATES_READ]:
            rate = _protego(Kind.RATE, [value]).request_rate(EVERYBODY)
            if rate is not None:
                delays.append(rate.seconds / rate.requests)
        return max(delays, default=None)


class Rules:
    """What a file says to one product token.

    delay: seconds between two requests, the largest of those named; None where none is. size:
    bytes of memory, roughly.
    """

    __slots__ = ("_patterns", "delay", "size")

    def __init__(self, rules: Iterable[tuple[bool, bytes]], delay: float | None) -> None:
        self.delay = delay
        self._patterns = Patterns(rules)
        self.size = PLACE_BYTES * self._patterns.places

    def find(self, path: str) -> Rule | None:
        """The rule that decides about `path` (see `paths.path_of`); None if none does, and it is allowed."""
        return self._patterns.find(path)


def rules_for(token: str, content: bytes, *, wildcard_delay: bool = False) -> Rules:
    """What the robots.txt file `content` says to `token`.

    All groups that name the token count as one, wherever they stand; if there are none, those for
    `*`. wildcard_delay: a delay for `*` also holds for a token whose own groups name none.

    >>> rules = rules_for("mybot", b"user-agent: *\\ndisallow: /\\n\\nuser-agent: MyBot/2.1\\ndisallow: /x")
    >>> rules.find("/y"), str(rules.find("/x/y"))
    (None, 'Disallow: /x')
    """
    said = _read(content, frozenset({token.lower(), EVERYBODY}))
    own = said[token.lower()]
    if not own.groups:
        own = said[EVERYBODY]
    delay = own.delay
    if delay is None and wildcard_delay:
        delay = said[EVERYBODY].delay
    return Rules((rule for group in own.groups for rule in group), delay)


def is_robots_file(path: str) -> bool:
    """Whether `path` is that of the file itself, which is always allowed (section 2.2.2)."""
    return path == ROBOTS_PATH or path.startswith(ROBOTS_PATH + "?")


def sitemaps_in(content: bytes) -> tuple[str, ...]:
    """The URLs of the Sitemap lines, in the order of the file, each once. They belong to no group."""
    values = [value for kind, value in lines_of(content) if kind is Kind.SITEMAP]
    found = (_protego(Kind.SITEMAP, values).sitemaps) if values else ()
    return tuple(dict.fromkeys(url for url in found if "://" in url))


def _read(content: bytes, tokens: frozenset[str]) -> dict[str, _Said]:
    """What is said to each of `tokens`.

    Only a rule ends a run of User-agent lines: Crawl-delay, Sitemap and what is unknown do not
    (section 2.2.4). A delay in the middle of one is for the agents above it.
    """
    said = {token: _Said() for token in tokens}
    run: set[str] = set()  # those of the tokens that the present group names
    group: list[tuple[bool, bytes]] = []
    in_rules = True
    for kind, value in lines_of(content):
        if kind is Kind.AGENT:
            if in_rules:
                run, group, in_rules = set(), [], False
            for token in (_tokens(value) & tokens) - run:
                run.add(token)
                said[token].groups.append(group)
        elif kind is Kind.ALLOW or kind is Kind.DISALLOW:
            in_rules = True
            if run:
                group.append((kind is Kind.ALLOW, value))
        elif kind is Kind.DELAY and _NUMBER.fullmatch(value):
            for token in run:
                said[token].delays.append(value)
        elif kind is Kind.RATE and _RATE.match(value):
            for token in run:
                said[token].rates.append(value)
    return said


def _tokens(value: bytes) -> set[str]:
    """The product tokens that a User-agent line may mean, in lower case."""
    if value[:1] == b"*" and value[1:2] in (b"", b" ", b"\t"):
        return {EVERYBODY}
    found = (_CUT.match(value), _NAME.match(value))
    return {match.group().decode("ascii").lower() for match in found if match}


def _protego(kind: Kind, values: Iterable[bytes]) -> Any:
    from protego import Protego  # not every file needs it

    lines = (f"{kind.value}: {_one_line(value)}" for value in values)
    return Protego.parse("\n".join((f"User-agent: {EVERYBODY}", *lines)))


def _one_line(value: bytes) -> str:
    """`value` as text that Python takes for one line: Protego cuts lines where Python does."""
    return "".join(value.decode("utf-8", "replace").splitlines())
