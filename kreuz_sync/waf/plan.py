"""Which answers deserve a full look: what makes an ordinary page cost microseconds.

The rules decide what a finding is (`match.py`); this file only spares them the answers
that they cannot say anything about. What it tests is derived from the rules, once for each
status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .match import BODY_LIMIT, TITLE_WITHIN, Answer, WafMatch, characters, holds, judge, title_of
from .rules import Rule

HEAD, TAIL = TITLE_WITHIN, 512  # bytes: a page's edges

_HEADERS_ONLY = frozenset({204, 206, 304})  # no body, or a part of one
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("html", "json", "xml", "javascript")  # in types that do not begin with text/


class Plan:
    """What to look for first in an answer with one status. rules: those that count there."""

    __slots__ = ("anywhere", "edges", "names", "reads_body", "reasons", "rules", "titles")

    def __init__(self, rules: Iterable[Rule], status: int) -> None:
        self.rules = tuple(rule for rule in rules if rule.counts_at(status))
        telling = [rule for rule in self.rules if rule.proof != "presence"]
        by_fields = [rule for rule in telling if not rule.parts("body", "title", "element_id")]
        self.names = frozenset(
            "set-cookie" if signal.where == "cookie" else signal.what
            for rule in by_fields
            for signal in rule.signals
            if signal.where in ("header", "cookie")
        )
        self.reasons = tuple(signal.what for rule in by_fields for signal in rule.signals if signal.where == "reason")
        self.reads_body = status not in _HEADERS_ONLY and any(rule.reads_body for rule in telling)
        opening = [rule for rule in self.rules if rule.opens != "never"]
        # All signals of a rule must hold, so one of them is enough to look for: the title, which
        # costs least, or else the longest part, since a search skips by the length of what it seeks.
        titled = [rule for rule in opening if rule.opens == "title" or rule.parts("title")]
        others = [rule for rule in opening if rule not in titled]
        self.titles = tuple({part for rule in titled for part in rule.parts("title")[:1] or _longest(rule)})
        self.edges = _anchors(rule for rule in others if rule.opens == "edges")
        self.anywhere = _anchors(rule for rule in others if rule.opens == "anywhere")

    def opens(self, content: bytes) -> bool:
        """True if a 2xx page has something that is worth a full look."""
        short = len(content) <= HEAD + TAIL
        edges = characters(content if short else content[:HEAD] + b"\0" + content[-TAIL:])
        for part in self.edges:
            if part in edges:
                return True
        title = title_of(edges, content)
        if title:
            for part in self.titles:
                if part in title:
                    return True
        if not self.anywhere:
            return False
        whole = edges if short else characters(content)
        return any(part in whole for part in self.anywhere)


def _longest(rule: Rule) -> list[str]:
    return sorted(rule.parts("body", "element_id"), key=len)[-1:]


def _anchors(rules: Iterable[Rule]) -> tuple[str, ...]:
    parts = {part for rule in rules for part in _longest(rule)}
    # What holds another one is found where that one is found.
    return tuple(sorted(part for part in parts if not any(other != part and other in part for other in parts)))


class Detector:
    """A set of rules made ready. Threads share it: a plan that two make at once is the same twice."""

    __slots__ = ("_marks", "_plans", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self._plans: dict[int, Plan] = {}
        self._marks = tuple(rule for rule in rules if rule.proof == "presence" and not rule.reads_body)

    def plan(self, status: int) -> Plan:
        plan = self._plans.get(status)
        if plan is None:
            plan = self._plans.setdefault(status, Plan(self.rules, status))
        return plan

    def look(self, status: int, headers: Mapping[str, str], content: bytes | None, reason: str) -> WafMatch | None:
        plan = self.plan(status)
        told = not plan.names.isdisjoint(_names(headers)) or (
            bool(plan.reasons) and any(part in reason.lower() for part in plan.reasons)
        )
        page = b""
        if content and plan.reads_body and _is_page(status, headers, content):
            page = content[:BODY_LIMIT]
        if not told and (not page or (status < 400 and not plan.opens(page))):
            return None
        size = None if content is None else len(content)
        return judge(plan.rules, Answer(status, headers, page, size=size, reason=reason))

    def reads(self, status: int, headers: Mapping[str, str]) -> bool:
        if not self.plan(status).reads_body:
            return False
        length = headers.get("Content-Length", "")
        if length.isdecimal() and not 0 < int(length[:19]) <= BODY_LIMIT:
            return False
        kind = headers.get("Content-Type", "").lower()
        return not kind or _is_html(kind) or (status >= 400 and _is_text(kind))

    def presence(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        answer = Answer(0, headers)
        return tuple(dict.fromkeys(rule.vendor for rule in self._marks if holds(rule, answer)))


def _names(headers: Mapping[str, str]) -> Iterable[str]:
    # requests' mapping already keeps its fields by lower-case name; asking for them in public costs 2 µs more.
    stored: Iterable[str] | None = getattr(headers, "_store", None)
    return map(str.lower, headers) if stored is None else stored


def _is_page(status: int, headers: Mapping[str, str], content: bytes) -> bool:
    kind = headers.get("Content-Type", "").lower()
    if status >= 400:
        return _is_text(kind)
    if len(content) > BODY_LIMIT:
        return False
    return _is_html(kind) if kind else content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"


def _is_html(kind: str) -> bool:
    return kind.startswith(_HTML)


def _is_text(kind: str) -> bool:
    return not kind or kind.startswith("text/") or any(word in kind for word in _TEXT)
