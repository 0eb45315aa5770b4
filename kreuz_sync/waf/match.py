"""What the rules say of one answer. Pure: an answer and rules go in, a finding or None comes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .rules import Rule, Signal

# A page that is longer is no challenge page; of an error's page no more is looked at.
BODY_LIMIT = 100 * 1024
TITLE_WITHIN = 1024  # bytes: where a page's <title> begins, if it counts
TITLE_LENGTH = 512  # bytes of it that are looked at


class WafMatch(NamedTuple):
    """A challenge or block page, and what gave it away.

    vendor: whose, as in the rules. kind: challenge, block or captcha. evidence: ids of the
    rules that held. confidence: high (a definitive one), medium (strong ones), low (words of
    many walls, behind this vendor's).
    """

    vendor: str
    kind: str
    evidence: tuple[str, ...]
    confidence: str


class Answer:
    """What rules are held against, in lower case.

    content: the part of the body that is looked at, as `characters`. size: bytes of the whole
    body, None when it is not known.
    """

    __slots__ = ("content", "cookies", "fields", "reason", "size", "status", "title")

    def __init__(
        self,
        status: int,
        fields: Mapping[str, str],
        content: bytes = b"",
        *,
        size: int | None = None,
        reason: str = "",
    ) -> None:
        self.status = status
        self.fields = {name.lower(): str(value).lower() for name, value in fields.items()}
        # urllib3 joins several Set-Cookie fields with a comma.
        self.cookies = ", " + self.fields.get("set-cookie", "")
        self.content = characters(content)
        self.title = title_of(self.content, content)
        self.size = size
        self.reason = reason.lower()


def characters(content: bytes) -> str:
    """`content` in lower case (ASCII letters alone), a character for each byte.

    Whatever its charset: patterns are kept in the same form. `in` is three times as fast on
    short strings as on short bytes, which it first takes for a number.
    """
    return content.lower().decode("latin-1")


def title_of(page: str, content: bytes) -> str:
    """The text of the <title> in the first KiB of `content`, as `characters`; empty if there is none.

    page: the characters of that KiB, or more.
    """
    at = page.find("<title", 0, TITLE_WITHIN)
    if at < 0:
        return ""
    end = at + TITLE_LENGTH
    text = page[at:end] if end <= TITLE_WITHIN else characters(content[at:end])
    return text[text.find(">") + 1 :].partition("</title")[0]


# --- one signal, one rule -------------------------------------------------------------------


def _header(signal: Signal, answer: Answer) -> bool:
    value = answer.fields.get(signal.what)
    return value is not None and signal.value in value


def _cookie(signal: Signal, answer: Answer) -> bool:
    return f", {signal.what}" in answer.cookies


def _body(signal: Signal, answer: Answer) -> bool:
    return signal.what in answer.content


def _title(signal: Signal, answer: Answer) -> bool:
    return signal.what in answer.title


def _element_id(signal: Signal, answer: Answer) -> bool:
    return _body(signal, answer) and _id_attribute(signal.what).search(answer.content) is not None


def _reason(signal: Signal, answer: Answer) -> bool:
    return signal.what in answer.reason


@lru_cache(maxsize=1024)
def _id_attribute(value: str) -> re.Pattern[str]:
    # Also inside a script's string, where quotes have a backslash. The repeats are bounded, so
    # that no page makes the search slower than its length.
    return re.compile(r"[\s\"'<]id\s{0,4}=\s{0,4}\\?[\"']?" + re.escape(value) + r"(?=[\s\"'\\/>])", re.ASCII)


_HOLDS: dict[str, Callable[[Signal, Answer], bool]] = {
    "header": _header,
    "cookie": _cookie,
    "body": _body,
    "title": _title,
    "element_id": _element_id,
    "reason": _reason,
}


def holds(rule: Rule, answer: Answer) -> bool:
    """True if every signal of `rule` is there. Its statuses are not asked for."""
    if rule.body_under is not None and (answer.size is None or answer.size >= rule.body_under):
        return False
    return all(_HOLDS[signal.where](signal, answer) for signal in rule.signals)


# --- all rules ------------------------------------------------------------------------------


def judge(rules: Iterable[Rule], answer: Answer) -> WafMatch | None:
    """What `rules`, all of which count at the answer's status, find together.

    A definitive header field decides first, then a definitive page, then the vendor with the
    most strong rules: two of them, or one with a status of 400 or more.
    """
    rules = list(rules)
    told = [rule for rule in rules if rule.proof != "presence" and holds(rule, answer)]
    if not told:
        return None
    present = [rule for rule in rules if rule.proof == "presence" and holds(rule, answer)]
    leader, confidence = _definitive(told), "high"
    if leader is None:
        leader, confidence = _strong(told, least=1 if answer.status >= 400 else 2), "medium"
    if leader is None:
        return _generic(told, present) if answer.status >= 400 else None
    evidence = tuple(rule.id for rule in told + present if rule.vendor == leader.vendor)
    return WafMatch(leader.vendor, leader.kind, evidence, confidence)


def _definitive(told: list[Rule]) -> Rule | None:
    candidates = [rule for rule in told if rule.proof == "definitive"]
    return min(candidates, key=lambda rule: rule.reads_body, default=None)


def _strong(told: list[Rule], *, least: int) -> Rule | None:
    candidates = [rule for rule in told if rule.proof == "strong"]
    vendors = [rule.vendor for rule in candidates]
    leader = max(candidates, key=lambda rule: vendors.count(rule.vendor), default=None)
    return leader if leader is not None and vendors.count(leader.vendor) >= least else None


def _generic(told: list[Rule], present: list[Rule]) -> WafMatch | None:
    for word in told:
        for mark in present:
            if word.vendor in ("", mark.vendor):
                evidence = (word.id, *(rule.id for rule in present if rule.vendor == mark.vendor))
                return WafMatch(mark.vendor, word.kind, evidence, "low")
    return None
