"""Which of a group's rules a path comes under. Pure; RFC 9309, sections 2.2.2 and 2.2.3.

Rules are a tree: first by what they begin with, then by what follows each `*`. A rule that begins
as another does shares its way, so a file of half a million octets that are all wildcards is looked
through once: nothing is tried twice, as a backtracking regular expression would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NamedTuple

from .occurrences import Occurrences
from .paths import pieces

# Characters compared, at worst, by simple looks at a path before it is sorted; they take about a ns each.
SIMPLE = 2_000_000
SHOWN = 200  # characters of a rule in an error's text: the server chooses them


class Rule(NamedTuple):
    """One line. weight: octets of its pattern.

    Of two that match the larger one decides: the heavier, or else the one that allows.
    """

    weight: int
    allows: bool
    value: bytes

    def __str__(self) -> str:
        text = self.value.decode("utf-8", "replace")[:SHOWN]
        shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
        return f"{'Allow' if self.allows else 'Disallow'}: {shown}"


class _Node:
    """A place in the tree: all that stands before it has been found in the path.

    rule: the weightiest that ends here. tails: those that end with so much more, at the very end
    of the path (`$`). after: what may follow a `*`. Empty for none. The lengths are those of their
    keys, each once; after_beyond is how many characters those of `after` have beyond their first ones.
    """

    __slots__ = ("after", "after_beyond", "after_lengths", "rule", "tail_lengths", "tails")

    def __init__(self) -> None:
        self.rule: Rule | None = None
        self.tails: dict[str, Rule] = _NONE
        self.after: dict[str, _Node] = _NONE
        self.tail_lengths: tuple[int, ...] = ()
        self.after_lengths: tuple[int, ...] = ()
        self.after_beyond = -1  # not known yet


class _Looking:
    """For parts of rules in one path. simple: what is left of `SIMPLE`."""

    __slots__ = ("_longest", "_sorted", "path", "simple")

    def __init__(self, path: str, longest: int) -> None:
        self.path = path
        self.simple = SIMPLE
        self._longest = longest
        self._sorted: Occurrences | None = None

    def sorted(self) -> Occurrences:
        if self._sorted is None:
            self._sorted = Occurrences(self.path, self._longest)
        return self._sorted


_NONE: dict[str, Any] = {}  # never changed; most places have nothing beyond them


class Patterns:
    """The rules of one group, from pairs of (whether it allows, its value).

    places: rules, and places in their tree: what they take memory for.
    """

    def __init__(self, rules: Iterable[tuple[bool, bytes]]) -> None:
        self.places = 0
        self._longest = 0  # part behind a `*`
        self._whole: dict[str, Rule] = {}  # without a `*`, and with `$` at the end
        self._starts: dict[str, _Node] = {}
        for allows, value in rules:
            if value[:1] in (b"/", b"*"):  # others match no path; an empty one is no rule
                self._add(allows, value)
        self._lengths = sorted({len(start) for start in self._starts})

    def find(self, path: str) -> Rule | None:
        """The rule that decides about `path` (see `paths.path_of`); None if none matches it."""
        best = self._whole.get(path)
        looking: _Looking | None = None
        starts, most, found = self._starts, len(path), []
        for length in self._lengths:
            if length > most:
                break
            node = starts.get(path[:length])
            if node is not None:
                found.append((node, length))
        while found:
            node, at = found.pop()
            rule = node.rule
            if rule is not None and (best is None or rule > best):
                best = rule
            if node.tails:
                best = _better(best, _tail(node, path, at))
            if node.after:
                looking = looking or _Looking(path, self._longest)
                _follow(node, looking, at, found)
        return best

    def _add(self, allows: bool, value: bytes) -> None:
        start, *rest = pieces(value.removesuffix(b"$"))
        anchored = value.endswith(b"$") and rest[-1:] != [""]  # `/a*$` says no more than `/a`
        rule = Rule(_weight(value), allows, value)
        if anchored and not rest:
            _put(self._whole, start, rule)
            return
        node = self._starts.setdefault(start, _Node())
        self.places += 2 + len(rest)
        for part in filter(None, rest[:-1] if anchored else rest):
            if not node.after:
                node.after = {}
            self._longest = max(self._longest, len(part))
            node = node.after.setdefault(part, _Node())
        if anchored:
            if not node.tails:
                node.tails = {}
            _put(node.tails, rest[-1], rule)
        else:
            node.rule = _better(node.rule, rule)


def _weight(value: bytes) -> int:
    """Octets of the pattern in the common spelling; `*` and `$` are one each, wherever they stand."""
    parts = pieces(value.replace(b"$", b"*"))
    return len(parts) - 1 + sum(map(len, parts))


def _put(rules: dict[str, Rule], key: str, rule: Rule) -> None:
    rules[key] = max(rules.get(key, rule), rule)


def _better(one: Rule | None, other: Rule | None) -> Rule | None:
    return max(one, other) if one is not None and other is not None else one or other


def _tail(node: _Node, path: str, at: int) -> Rule | None:
    if not node.tail_lengths:
        node.tail_lengths = tuple({len(tail) for tail in node.tails})
    best: Rule | None = None
    for length in node.tail_lengths:
        if length <= len(path) - at:
            best = _better(best, node.tails.get(path[len(path) - length :]))
    return best


def _follow(node: _Node, looking: _Looking, at: int, found: list[tuple[_Node, int]]) -> None:
    """Add to `found` what of `node.after` stands in the path from `at` on, and where the first such place ends.

    The first place is as good as any: what follows then has the most room.
    """
    path, after = looking.path, node.after
    room = len(path) - at
    if node.after_beyond < 0:
        node.after_lengths = tuple({len(part) for part in after})
        node.after_beyond = sum(map(len, after)) - len(after)  # last: other threads look at it
    # In ns, about: to look at each place for each length, or for each part, simply or among the sorted ends.
    by_place = room * (80 * len(node.after_lengths) + sum(node.after_lengths) // 4) if len(after) > 8 else inf
    simple = room * node.after_beyond
    if simple <= looking.simple and (len(after) * (200 + room // 4) < by_place):
        looking.simple -= simple
        first: Callable[[str, int], int] = path.find
    elif by_place < 1500 * len(after):
        found.extend((after[part], end) for part, end in _parts_met(node, path, at).items())
        return
    else:
        first = looking.sorted().first
    for part, child in after.items():
        place = first(part, at)
        if place >= 0:
            found.append((child, place + len(part)))


def _parts_met(node: _Node, path: str, at: int) -> dict[str, int]:
    met: dict[str, int] = {}
    for length in node.after_lengths:
        for place in range(at, len(path) - length + 1):
            part = path[place : place + length]
            if part in node.after and part not in met:
                met[part] = place + length
    return met
