"""What is configured for which host: exact names, and patterns for all names under one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from kreuz_sync import checks
from kreuz_sync.settings import Setting
from kreuz_sync.urls import canonical_host, without_port

from .pace import PaceRules

Rules = TypeVar("Rules")

_OTHER_PARTS = frozenset("/?#@\\")  # characters that a URL has around its host only


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


class HostTable(Generic[Rules]):
    """Finds the rules for a host.

    An exact name comes before a pattern, and a longer pattern before a shorter one.
    `*.example.com` is every name under example.com, at any depth, but not example.com
    itself. read: makes rules of what is written for a name; it is given the argument's name with
    that of the host, for its errors, and the value. `folded`: names are host names, compared in
    their canonical form. argument: the name of what `hosts` was given as. others: what to write
    for all other hosts.
    """

    def __init__(
        self,
        hosts: Mapping[str, Any] | None,
        default: Rules,
        read: Callable[[str, Any], Rules],
        *,
        folded: bool,
        argument: str = "hosts",
        others: str = "`delay`",
    ) -> None:
        self.default = default
        self._exact: dict[str, Rules] = {}
        self._under: dict[str, Rules] = {}
        if hosts is not None and not isinstance(hosts, Mapping):
            raise TypeError(f"{argument}={hosts!r}: a mapping is wanted, such as {{'*.example.com': 1.0}}")
        written: dict[str, str] = {}
        for pattern, value in (hosts or {}).items():
            name = _checked_name(pattern, folded, argument, others)
            if name in written:
                raise ValueError(f"{argument}[{pattern!r}]: the same as {written[name]!r}, which has a value already")
            written[name] = pattern
            rules = read(f"{argument}[{pattern!r}]", value)
            if name.startswith("*."):
                self._under[name[2:]] = rules
            else:
                self._exact[name] = rules

    def written(self) -> list[Rules]:
        """The rules of all names and patterns."""
        return [*self._exact.values(), *self._under.values()]

    def find(self, name: str) -> Rules:
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


class RuleTable(HostTable[PaceRules]):
    """The pace of each host."""

    def __init__(self, hosts: Mapping[str, float | HostSettings] | None, default: PaceRules, *, folded: bool) -> None:
        super().__init__(hosts, default, lambda name, value: _settings(name, value).over(default), folded=folded)
        self._folded = folded

    def host_in(self, name: str) -> str | None:
        """The host's name in one with a port, which has the rules of its host; None for other names."""
        return without_port(name) if self._folded else None

    def find(self, name: str) -> PaceRules:
        """The rules for `name`."""
        return super().find(self.host_in(name) or name)


def _checked_name(pattern: Any, folded: bool, argument: str, others: str) -> str:
    checks.text(f"{argument}: a name", pattern)
    is_pattern = pattern.startswith("*.")
    name = pattern[2:] if is_pattern else pattern
    if not name or "*" in name:
        text = f"{argument}[{pattern!r}]: a host's name is wanted, or '*.' and a name; {others} is for all others"
        raise ValueError(text)
    if folded:
        if not _OTHER_PARTS.isdisjoint(name) or name.count(":") == 1 or name.split() != [name]:
            raise ValueError(f"{argument}[{pattern!r}]: a host's name alone is wanted, without scheme, port or path")
        if not _is_possible(name):
            raise ValueError(
                f"{argument}[{pattern!r}]: no host has such a name; for all names under one: '*.example.com'"
            )
        name = canonical_host(name)
    return f"*.{name}" if is_pattern else name


def _is_possible(name: str) -> bool:
    """True if a URL could have the host `name`; its labels are no further looked at than that."""
    if ":" in name or "[" in name or "]" in name:
        from ipaddress import IPv6Address

        bare = name[1:-1] if name[0] == "[" and name[-1] == "]" else name
        try:
            IPv6Address(bare.partition("%")[0])  # what follows is a zone
        except ValueError:
            return False
        return True
    return all(label.strip("-") for label in name.removesuffix(".").split("."))


def _settings(name: str, value: Any) -> HostSettings:
    if isinstance(value, HostSettings):
        return value
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError(f"{name}={value!r}: seconds or HostSettings(...) are wanted")
    return HostSettings(delay=checks.seconds(name, value))
