"""What a run came to, host by host: the counts, and the table that shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kreuz_sync.errors import AddressBlocked, RateLimited, WafBlocked

from .outcome import INVALID_URL, Hop, Outcome
from .url_list import host_key

HOSTS_SHOWN = 25
NAME_SHOWN = 40  # characters of a host's name
FAILURES_SHOWN = 5
URL_SHOWN = 100  # characters of a failed one

# The answers that make a throttle slow a host down.
LIMITED = frozenset({RateLimited.tag, WafBlocked.tag})

HINTS = {AddressBlocked.tag: "a page redirects to a private address: --allow-private follows it"}

HEADINGS = ("host", "urls", "ok", "requests", "waited s", "backoffs", "slowest s", "errors")


class HostCount:
    """One host's counts. waited, slowest: seconds. limited: answers that asked for less haste."""

    __slots__ = ("errors", "limited", "ok", "requests", "slowest", "urls", "waited")

    def __init__(self) -> None:
        self.urls = 0
        self.ok = 0
        self.requests = 0
        self.waited = 0.0
        self.limited = 0
        self.slowest = 0.0
        self.errors: dict[str, int] = {}

    def add_hop(self, hop: Hop) -> None:
        self.requests += hop.requests
        self.waited += hop.waited
        self.limited += sum(tag in LIMITED for tag in hop.earlier)
        self.slowest = max(self.slowest, hop.took)

    def add_end(self, tag: str | None) -> None:
        self.urls += 1
        if tag is None:
            self.ok += 1
        else:
            self.errors[tag] = self.errors.get(tag, 0) + 1

    def add(self, other: HostCount) -> None:
        self.urls += other.urls
        self.ok += other.ok
        self.requests += other.requests
        self.waited += other.waited
        self.limited += other.limited
        self.slowest = max(self.slowest, other.slowest)
        for tag, count in other.errors.items():
            self.errors[tag] = self.errors.get(tag, 0) + count


class Failure(NamedTuple):
    """A URL that was not fetched, as it may be shown. hint: what to do about it, "" where the tag says enough."""

    tag: str
    url: str
    hint: str


class Tally:
    """The counts of a run, and the first URLs that failed.

    A URL counts for the host it names, each redirect's request for its own.
    """

    def __init__(self) -> None:
        self.hosts: dict[str, HostCount] = {}
        self.done = 0
        self.failed = 0
        self.failures: list[Failure] = []

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        if outcome.tag is not None:
            self._add_failure(outcome, outcome.tag)
        self._host(host_key(outcome.url)).add_end(outcome.tag)
        for hop in outcome.hops:
            self._host(hop.host).add_hop(hop)
        # A redirect may have led to another host before the error came.
        self._host(outcome.hops[-1].host).limited += outcome.tag in LIMITED

    def _add_failure(self, outcome: Outcome, tag: str) -> None:
        self.failed += 1
        if len(self.failures) < FAILURES_SHOWN:
            hint = outcome.error if tag == INVALID_URL else HINTS.get(tag)
            self.failures.append(Failure(tag, outcome.public_url, hint or ""))

    def _host(self, name: str) -> HostCount:
        return self.hosts.setdefault(name, HostCount())


def summary(tally: Tally, backoffs: Mapping[str, int]) -> str:
    """The table by host, the busiest first, and all hosts together; "" if nothing was done.

    backoffs: how often each host's delay was raised. Of a host that the throttle has forgotten
    by now it is only known how often it asked for that.
    """
    if not tally.hosts:
        return ""
    names = sorted(tally.hosts, key=lambda name: (-tally.hosts[name].urls, name))
    raised = {name: backoffs.get(name, tally.hosts[name].limited) for name in names}
    groups = [(_shown(name), [name]) for name in names[:HOSTS_SHOWN]]
    if len(names) > HOSTS_SHOWN:
        groups.append((f"({len(names) - HOSTS_SHOWN} more)", names[HOSTS_SHOWN:]))
    if len(names) > 1:
        groups.append(("all", names))
    return table(
        HEADINGS, [_row(title, _sum(tally, group), sum(raised[name] for name in group)) for title, group in groups]
    )


def ending(tally: Tally, out: str | None, *, index: str) -> str:
    """The last words of a run: how much was fetched into the folder `out`, what was not, and where it says why.

    index: the file in `out` that says it. "" where there is nothing to say.
    """
    if not tally.done or not (out or tally.failed):
        return ""
    first = f"{tally.done - tally.failed} of {tally.done} fetched" + (f" into {out}" if out else "")
    if not tally.failed:
        return first
    where = index if out else "the lines of JSON"
    width = max(len(failure.tag) for failure in tally.failures)
    lines = [f'{first}; the others: see "error" in {where}']
    for tag, url, hint in tally.failures:
        lines.append(
            "  ".join(("", tag.ljust(width), _printable(url, URL_SHOWN), _printable(hint, URL_SHOWN))).rstrip()
        )
    if tally.failed > len(tally.failures):
        lines.append(f"  and {tally.failed - len(tally.failures)} more")
    return "\n".join(lines)


def _sum(tally: Tally, names: Iterable[str]) -> HostCount:
    total = HostCount()
    for name in names:
        total.add(tally.hosts[name])
    return total


def _row(title: str, count: HostCount, backoffs: int) -> tuple[str, ...]:
    by_tag = sorted(count.errors.items(), key=lambda pair: (-pair[1], pair[0]))
    return (
        title,
        str(count.urls),
        str(count.ok),
        str(count.requests),
        f"{count.waited:.1f}",
        str(backoffs),
        f"{count.slowest:.2f}",
        ", ".join(f"{tag} {number}" for tag, number in by_tag) or "-",
    )


def _shown(name: str) -> str:
    """A host's name for a terminal: whoever wrote the list chose it, control characters and all."""
    if not name:
        return "(no host)"
    return _printable(name, NAME_SHOWN)


def _printable(text: str, most: int) -> str:
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns in line: the first and the last to the left, the numbers between them to the right."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = (
        cell.rjust(width) if 0 < column < len(cells) - 1 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *numbers, last)).rstrip()
