"""What tests ask of a robots.txt file, in one line."""

from __future__ import annotations

from kreuz_sync.robots.files import Rules, is_robots_file, rules_for
from kreuz_sync.robots.paths import path_of
from kreuz_sync.robots.patterns import Rule

SITE = "http://example.test"


def read(content: bytes | str, token: str = "foobot", **how: bool) -> Rules:
    return rules_for(token, content.encode() if isinstance(content, str) else content, **how)


def deciding(content: bytes | str, target: str, token: str = "foobot") -> Rule | None:
    """The rule that decides about a path with its query."""
    return read(content, token).find(path_of(SITE + target, SITE))


def allows(content: bytes | str, target: str, token: str = "foobot") -> bool:
    path = path_of(SITE + target, SITE)
    rule = deciding(content, target, token)
    return is_robots_file(path) or rule is None or rule.allows


def everybody(*lines: str) -> str:
    """A file with one group, for all."""
    return "\n".join(("User-agent: *", *lines))
