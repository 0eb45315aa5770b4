"""The rules that tell a challenge page, as data: their shape, and how they are read and checked.

A rule is a JSON object (`rules.json` has the ones that come with the package):

    {"id": "example-wall", "vendor": "example", "proof": "definitive", "kind": "block",
     "signals": [{"header": "server", "value": "example"}, {"body": "you shall not pass"}]}

proof      definitive   enough alone
           strong       needs a second strong one of its vendor, or a status of 400 or more
           generic      words of many walls: with a status of 400 or more, beside a presence rule that
                        holds (of the rule's own vendor, if it names one)
           presence     the product stands there; never a finding, only named beside one
kind       challenge, block or captcha (presence: none)
signals    all must hold. Each is one of header (with an optional part of its value), cookie (how the
           name of one that is set begins), body (a part), title (a part of <title>), element_id (an
           id attribute), reason (a part of the reason phrase). Compared in ASCII lower case.
status     where the rule counts: codes, or classes such as "4xx". Without it: everywhere for presence
           rules and definitive ones on header fields, `LOOKED_AT` for the others.
body_under the page is shorter than so many bytes
opens      where on a 2xx the body parts make the page worth a full look: anywhere (without it; costs
           some 40 µs for a page of 50 KiB, and 20 more for each further rule), edges (its first
           1 KiB and last 0.5 KiB, where challenge pages show themselves; nearly free), title (in
           its title), or never (another rule opens such pages; presence rules, without it). A title
           signal opens a page by itself, unless this says never
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kreuz_sync import checks

MAX_RULES = 1000
MAX_SIGNALS = 16
MAX_PATTERN = 4096  # bytes

# Statuses that walls answer with. On all others only definitive header fields count.
LOOKED_AT = frozenset({200, 202, 401, 403, 405, 406, 415, 428, 429, 503})

PROOFS = ("definitive", "strong", "generic", "presence")
KINDS = ("challenge", "block", "captcha")
OPENS = ("anywhere", "edges", "title", "never")

_IN_BODY = frozenset({"body", "title", "element_id"})
_SIGNALS = ("header", "cookie", "body", "title", "element_id", "reason")
_REQUIRED = ("id", "proof", "signals")
_KEYS = frozenset({*_REQUIRED, "vendor", "kind", "status", "body_under", "opens"})


class Signal(NamedTuple):
    """One thing to look for.

    where: the key it has in a file. what: in lower case, a character for each byte of its UTF-8.
    value: a part of a header's, or empty.
    """

    where: str
    what: str
    value: str = ""


class Rule(NamedTuple):
    """One rule, checked. statuses, body_under: None for no such condition."""

    id: str
    vendor: str
    proof: str
    kind: str
    signals: tuple[Signal, ...]
    statuses: frozenset[int] | None
    body_under: int | None
    opens: str

    @property
    def reads_body(self) -> bool:
        """True if the header section alone cannot say whether the rule holds."""
        return self.body_under is not None or any(signal.where in _IN_BODY for signal in self.signals)

    def counts_at(self, status: int) -> bool:
        if self.statuses is not None:
            return status in self.statuses
        if self.proof == "presence" or (self.proof == "definitive" and not self.reads_body):
            return True
        return status in LOOKED_AT

    def parts(self, *where: str) -> list[str]:
        """What its signals of these kinds look for."""
        return [signal.what for signal in self.signals if signal.where in where]


def load(path: Path) -> tuple[Rule, ...]:
    """The rules of a JSON file: `{"rules": [...]}`, or the list alone. An "about" beside them is for readers.

    Raises OSError, or ValueError or TypeError that names the file, the rule and what would be right.
    """
    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not readable as JSON: {error or type(error).__name__}") from error
    if isinstance(content, dict):
        _no_others(str(path), content, {"rules", "about"})
        content = content.get("rules")
    if not isinstance(content, list):
        raise ValueError(f'{path}: {{"rules": [...]}} is wanted, or the list alone')
    return checked(content, str(path))


def checked(entries: Iterable[Mapping[str, Any] | Rule], source: str) -> tuple[Rule, ...]:
    """`entries` as rules, each checked; `source` is named in errors (ValueError, TypeError)."""
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise TypeError(f"{source}={entries!r}: a list of rules is wanted")
    rules = tuple(
        entry if isinstance(entry, Rule) else _rule(entry, source, number) for number, entry in enumerate(entries, 1)
    )
    if len(rules) > MAX_RULES:
        raise ValueError(f"{source}: {len(rules)} rules, and at most {MAX_RULES} are taken")
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise ValueError(f"{source}: rule {rule.id!r} is there twice; ids have to differ")
        seen.add(rule.id)
    return rules


def _rule(entry: Any, source: str, number: int) -> Rule:
    if not isinstance(entry, Mapping):
        raise TypeError(f"{source}: rule {number}: an object is wanted, not {type(entry).__name__}")
    where = f"{source}: rule {entry['id']!r}" if "id" in entry else f"{source}: rule {number}"
    missing = [key for key in _REQUIRED if key not in entry]
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} missing")
    _no_others(where, entry, _KEYS)
    proof = checks.one_of(f"{where}: proof", entry["proof"], PROOFS)
    is_presence = proof == "presence"
    return Rule(
        id=checks.text(f"{where}: id", entry["id"]),
        # Words of many walls have no vendor of their own.
        vendor=""
        if proof == "generic" and "vendor" not in entry
        else checks.text(f"{where}: vendor", entry.get("vendor")),
        proof=proof,
        kind="" if is_presence and "kind" not in entry else checks.one_of(f"{where}: kind", entry.get("kind"), KINDS),
        signals=_signals(where, entry["signals"]),
        statuses=None if "status" not in entry else _statuses(f"{where}: status", entry["status"]),
        body_under=None
        if "body_under" not in entry
        else checks.count(f"{where}: body_under", entry["body_under"], least=1),
        opens=checks.one_of(f"{where}: opens", entry.get("opens", "never" if is_presence else "anywhere"), OPENS),
    )


def _signals(where: str, entries: Any) -> tuple[Signal, ...]:
    if not isinstance(entries, (list, tuple)) or not 1 <= len(entries) <= MAX_SIGNALS:
        raise ValueError(f"{where}: signals={entries!r}: a list of 1 to {MAX_SIGNALS} is wanted")
    return tuple(_signal(f"{where}: signal {number}", entry) for number, entry in enumerate(entries, 1))


def _signal(where: str, entry: Any) -> Signal:
    kinds = [kind for kind in _SIGNALS if isinstance(entry, Mapping) and kind in entry]
    if len(kinds) != 1:
        raise ValueError(f"{where}: {entry!r}: an object with one of {', '.join(_SIGNALS)} is wanted")
    kind = kinds[0]
    _no_others(where, entry, {"header", "value"} if kind == "header" else {kind})
    value = _pattern(f"{where}: value", entry["value"]) if "value" in entry else ""
    return Signal(kind, _pattern(f"{where}: {kind}", entry[kind]), value)


def _pattern(where: str, value: Any) -> str:
    pattern = checks.text(where, value).encode("utf-8", "surrogatepass")
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"{where}: {len(pattern)} bytes, and at most {MAX_PATTERN} are taken")
    # As the answer will be: bytes lower their ASCII letters alone, and fields come as Latin-1.
    return pattern.lower().decode("latin-1")


def _statuses(where: str, value: Any) -> frozenset[int]:
    if not isinstance(value, (list, tuple, set, frozenset)) or not value:
        raise ValueError(f'{where}={value!r}: a list of codes is wanted, such as [403, "5xx"]')
    found: set[int] = set()
    for item in value:
        if isinstance(item, str) and len(item) == 3 and item[0] in "12345" and item[1:].lower() == "xx":
            found.update(range(int(item[0]) * 100, int(item[0]) * 100 + 100))
        else:
            found.add(checks.count(where, item, least=100, most=599))
    return frozenset(found)


def _no_others(where: str, entry: Mapping[str, Any], known: Iterable[str]) -> None:
    others = sorted(str(key) for key in entry if key not in known)
    if others:
        raise ValueError(f"{where}: {', '.join(others)} is not known; known are {', '.join(sorted(known))}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Of a key that is there twice json would keep the last, and a signal would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = sorted({key for key, _ in pairs if [other for other, _ in pairs].count(key) > 1})
        raise ValueError(f"{', '.join(twice)} is there twice in {json.dumps(found)[:100]}")
    return found
