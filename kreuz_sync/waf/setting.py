"""Noticing that an answer is a firewall's challenge or block page, not the page that was asked for.

Only noticing: so that such an answer is named, kept out of the cache, and backed off from.
Nothing here gets around a wall. The rules are data (`rules.py` tells their shape);
`match.py` holds them against an answer, `plan.py` keeps that cheap.

What stands in front of a site (a vendor's fields, cookies, words) is no finding: those come
with every page of a protected site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kreuz_sync import checks
from kreuz_sync.settings import Setting
from .match import BODY_LIMIT, WafMatch

if TYPE_CHECKING:
    from .plan import Detector
    from .rules import Rule

__all__ = ["DEFAULT_WAF", "Waf", "WafMatch"]

_PACKAGED = Path(__file__).with_name("rules.json")


class Waf(Setting):
    """The rules that tell challenge pages.

    rules: mappings as in a rule file, or `Rule`s; None for those that come with the package,
    which are read at the first look. Two are equal if their rules are.

    Raises TypeError or ValueError, naming the rule and what would be right.

    >>> waf = Waf([{"id": "wall", "vendor": "example", "proof": "definitive", "kind": "block",
    ...             "signals": [{"header": "x-wall", "value": "closed"}]}])
    >>> waf.look(403, {"X-Wall": "closed for today"}, None)
    WafMatch(vendor='example', kind='block', evidence=('wall',), confidence='high')
    """

    fields = ("rules",)
    body_limit: int = BODY_LIMIT  # bytes: of no body are more looked at

    # The ready rules; None until the first look. Assigned in one step, and never changed in
    # place: a look works on one complete set. Two threads that look first both read the file,
    # and no lock is left held in a child that is forked meanwhile.
    _detector: Detector | None = None
    _path: Path | None = None
    _own = False  # the package's rules, or others

    def __init__(self, rules: Iterable[Mapping[str, Any] | Rule] | None = None) -> None:
        if rules is not None:
            self._fix(_own=True, _detector=_made(rules))

    @classmethod
    def from_file(cls, path: str | Path) -> Waf:
        """The rules of a JSON file, and only those. Raises OSError, ValueError or TypeError, naming the file."""
        waf = cls(())
        waf._fix(_path=Path(path))
        waf.reload()
        return waf

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._ready().rules

    def adding(self, rules: Iterable[Mapping[str, Any] | Rule]) -> Waf:
        """Another `Waf` with these rules too. An id that is there already is a ValueError."""
        return type(self)((*self.rules, *_made(rules).rules))

    def without(self, *ids: str) -> Waf:
        """Another `Waf` without the rules of these ids. An id that is not there is a ValueError."""
        unknown = set(checks.texts("ids", ids)) - {rule.id for rule in self.rules}
        if unknown:
            raise ValueError(f"no rule has the id {', '.join(map(repr, sorted(unknown)))}")
        return type(self)(rule for rule in self.rules if rule.id not in ids)

    def reload(self) -> None:
        """Read the file again, for whoever uses this `Waf`. A file that is not right changes nothing.

        Raises what `from_file` raises; ValueError if the rules are not from a file.
        """
        if self._path is None:
            raise ValueError("these rules are not from a file: only Waf.from_file(...) can be reloaded")
        self._fix(_detector=_read(self._path))

    def look(
        self, status: int, headers: Mapping[str, str], content: bytes | None, reason: str | None = None
    ) -> WafMatch | None:
        """What the answer is, if it is a challenge or block page; None if it is not.

        content: the body, decoded; None to judge by the header section alone (a stream, HEAD).
        reason: the reason phrase. On a 2xx only HTML of at most `body_limit` bytes is looked at.
        """
        return self._ready().look(status, headers, content, reason if isinstance(reason, str) else "")

    def reads(self, status: int, headers: Mapping[str, str]) -> bool:
        """True if a body of at most `body_limit` bytes could change what `look` says without it."""
        return self._ready().reads(status, headers)

    def presence(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        """Vendors whose products stand in front of the site, by its header fields. They prove nothing."""
        return self._ready().presence(headers)

    def _ready(self) -> Detector:
        detector = self._detector
        if detector is None:
            detector = _read(_PACKAGED)
            self._fix(_detector=detector)
        return detector

    # A reload changes the rules, so they can't be in the hash; equal ones have the same.
    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        if self._path is not None:
            return f"Waf.from_file({str(self._path)!r})"
        return f"Waf(<{len(self.rules)} rules>)" if self._own else "Waf()"

    def __getstate__(self) -> dict[str, Any]:
        """The rules, and not what was made ready of them; the package's stay in the package."""
        return {"rules": self.rules if self._own else None, "path": self._path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["rules"])  # type: ignore[misc]
        if state["path"] is not None:
            self._fix(_path=state["path"])


# Imported at the first look: a program that only imports the package doesn't pay for them.


def _made(rules: Iterable[Mapping[str, Any] | Rule]) -> Detector:
    from .plan import Detector
    from .rules import checked

    return Detector(checked(rules, "rules"))


def _read(path: Path) -> Detector:
    from .plan import Detector
    from .rules import load

    return Detector(load(path))


# Cheap to make: its rules are read at the first look.
DEFAULT_WAF = Waf()
