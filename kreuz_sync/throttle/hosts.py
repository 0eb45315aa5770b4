"""What is configured for which host: exact names, and patterns for all names under one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kreuz_sync import checks
from kreuz_sync.settings import Setting
from kreuz_sync.urls import canonical_host

from .pace import PaceRules


class HostSettings(Setting):
    """What differs for one host, or one pattern of hosts. None: as for every other host.

    delay: least seconds between two requests. max_delay: seconds that 429s may raise it to.
    max_wait: seconds a request may wait for its turn. concurrency: requests under way at once.
    """

    fields = ("delay", "max_delay", "max_wait", "concurrency")

    delay: float | None
    max_delay: float | None
    max_wait: float | None
    concurrency: int | None

    def __init__(
        self,
        *,
        delay: float | None = None,
        max_delay: float | None = None,
        max_wait: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        self._fix(
            delay=None if delay is None else checks.seconds("delay", delay),
            max_delay=None if max_delay is None else checks.seconds("max_delay", max_delay, above=0),
            max_wait=None if max_wait is None else checks.seconds("max_wait", max_wait),
            concurrency=None if concurrency is None else checks.count("concurrency", concurrency, least=1),
        )

    def over(self, rules: PaceRules) -> PaceRules:
        """`rules` with what is set here in place of their own."""
        own = {name: getattr(self, name) for name in self.fields}
        return rules._replace(**{name: value for name, value in own.items() if value is not None})


class RuleTable:
    """Finds the rules for a host.

    An exact name comes before a pattern, and a longer pattern before a shorter one.
    `*.example.com` is every name under example.com, at any depth, but not example.com
    itself. `folded`: names are host names, compared in their canonical form.
    """

    def __init__(self, hosts: Mapping[str, float | HostSettings] | None, default: PaceRules, *, folded: bool) -> None:
        self.default = default
        self._exact: dict[str, PaceRules] = {}
        self._under: dict[str, PaceRules] = {}
        if hosts is not None and not isinstance(hosts, Mapping):
            raise TypeError(f"hosts={hosts!r}: a mapping is wanted, such as {{'*.example.com': 1.0}}")
        for pattern, value in (hosts or {}).items():
            name = _checked_name(pattern, folded)
            rules = _settings(pattern, value).over(default)
            if name.startswith("*."):
                self._under[name[2:]] = rules
            else:
                self._exact[name] = rules

    def find(self, name: str) -> PaceRules:
        """The rules for the host `name`."""
        found = self._exact.get(name)
        if found is not None or not self._under:
            return found or self.default
        _, _, parent = name.partition(".")
        while parent:
            if parent in self._under:
                return self._under[parent]
            _, _, parent = parent.partition(".")
        return self.default


def _checked_name(pattern: Any, folded: bool) -> str:
    checks.text("hosts: a name", pattern)
    is_pattern = pattern.startswith("*.")
    name = pattern[2:] if is_pattern else pattern
    if not name or "*" in name:
        raise ValueError(f"hosts[{pattern!r}]: a host's name is wanted, or '*.' and a name; `delay` is for all others")
    if folded:
        # One colon is a port, two or more are an IPv6 address.
        if "/" in name or name.count(":") == 1 or name.split() != [name]:
            raise ValueError(f"hosts[{pattern!r}]: a host's name alone is wanted, without scheme, port or path")
        name = canonical_host(name)
    return f"*.{name}" if is_pattern else name


def _settings(pattern: str, value: Any) -> HostSettings:
    if isinstance(value, HostSettings):
        return value
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError(f"hosts[{pattern!r}]={value!r}: seconds or HostSettings(...) are wanted")
    return HostSettings(delay=checks.seconds(f"hosts[{pattern!r}]", value))
