"""`kreuz-sync demo`: the job of `kreuz-sync fetch`, against a small site on this machine, told line by line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import IO
from urllib.parse import urlsplit

from . import job
from .clock import SYSTEM_CLOCK, Clock
from .demo_site import ADDRESSES, HOSTS, PAGES, Page, Site
from .fetching import Results, Sink
from .outcome import Outcome
from .throttle import Throttle

NAME_WIDTH = max(map(len, HOSTS))
NOTABLE_WAIT_S = 0.01  # a shorter one is not worth a word
NOTABLE_ANSWER_S = 0.1


def run(
    options: job.Options,
    sinks: Sequence[Sink],
    stream: IO[str],
    addresses: Iterable[Sequence[str]] = ADDRESSES,
) -> int:
    """Serve the site, fetch every page of it, say on `stream` what happens; the exit code.

    addresses: as `Site` takes them.
    """
    tale = Tale(stream)
    with Site(tale.remark, addresses) as site:
        tale.introduce(site, options)
        tale.name_of = site.host_at
        session = job.open_session(options, throttle_for(site, options.delay))
        session.trust_env = False  # a proxy for the world outside does not know this machine's loopback
        urls = [site.url(page.host, page.path) for page in PAGES]
        code = job.carry_out(session, urls, Results([tale, *sinks]), workers=options.workers, stream=stream)
        if code == job.INTERRUPTED:
            return code
        return tale.conclude(site, options)


def throttle_for(site: Site, delay: float) -> Throttle:
    """The pace of the site's hosts: one for each address, or for each port where they share one."""
    if site.one_address:
        return Throttle(delay, key=lambda url: urlsplit(url).netloc)
    return Throttle(delay)


class Tale:
    """Says what happens, when it happens. A sink of outcomes, and the ear of the site.

    `_lock` guards the stream and the outcomes: the site and the workers talk at the same time.
    """

    def __init__(self, stream: IO[str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream
        self.clock = clock
        self.name_of: Callable[[str], str] = lambda url: ""
        self.outcomes: dict[int, Outcome] = {}
        self._lock = threading.Lock()
        self._started = clock.monotonic()

    def introduce(self, site: Site, options: job.Options) -> None:
        """Who is there, and what will be asked of them."""
        self._say(f"A small site on this machine: {len(HOSTS)} hosts, {len(PAGES)} pages. Nothing leaves it.\n")
        for name, character in HOSTS.items():
            self._say(f"  {name.ljust(NAME_WIDTH)}  {site.url(name, '')}  {character}")
        self._say(
            f"\n{options.workers} workers fetch all pages. Between two requests to one host: {options.delay:g} s "
            f"or more. Retries: {options.retries}.\n"
        )
        self._started = self.clock.monotonic()

    def remark(self, host: str, path: str, text: str) -> None:
        """What the site has to say."""
        self._event(host, path, text)

    def write(self, outcome: Outcome) -> None:
        """What became of a page."""
        self.outcomes[outcome.number] = outcome
        self._event(self.name_of(outcome.url), urlsplit(outcome.url).path, sentence(outcome))

    def close(self) -> None:
        """The summary comes next, after an empty line."""
        self._say("")

    def conclude(self, site: Site, options: job.Options) -> int:
        """Whether everything went as it should; the exit code."""
        gaps = ", ".join(f"{name} {gap:.1f} s" for name, gap in site.mean_gaps().items())
        self._say(f"\nTime between two requests on average, as the hosts saw it: {gaps}.")
        wrong = surprises(PAGES, self.outcomes, options.retries)
        for text in wrong:
            self._say(f"Not as it should be: {text}")
        if not wrong:
            mended = " What a retry can mend was mended, the rest left alone." if options.retries else ""
            self._say(f"Everything went as it should.{mended}")
        return job.SOME_FAILED if wrong else job.OK

    def _event(self, host: str, path: str, text: str) -> None:
        at = self.clock.monotonic() - self._started
        self._say(f"{at:5.2f} s  {host.ljust(NAME_WIDTH)}  {path.ljust(8)}  {text}")

    def _say(self, text: str) -> None:
        with self._lock:
            job.say(self.stream, text)


_MEANING = {
    "not_found": "there is no such page. Not asked again: it would not help",
    "waf_blocked": "blocked by a firewall's challenge. Not asked again; backed off: half as often",
    "rate_limited": "asked too often, and no retry is left",
}


def sentence(outcome: Outcome) -> str:
    """What became of a page, in words for somebody who sees it for the first time."""
    if outcome.tag is None:
        what = f"{outcome.status}, a whole page"
    elif outcome.tag in _MEANING:
        what = f"{outcome.status}, {_MEANING[outcome.tag]}"
    else:
        what = f"failed ({outcome.tag})"
    parts = [what]
    if outcome.earlier:
        parts.append(f"retried after {', '.join(outcome.earlier)}")
    if outcome.waited >= NOTABLE_WAIT_S:
        parts.append(f"waited {outcome.waited:.2f} s")
    if outcome.hops[-1].took >= NOTABLE_ANSWER_S:
        parts.append(f"took {outcome.hops[-1].took:.2f} s")
    return " | ".join(parts)


def surprises(pages: Sequence[Page], outcomes: dict[int, Outcome], retries: int) -> list[str]:
    """What differs from what the pages should come to; outcomes are numbered from 1, as the pages are."""
    found = []
    for number, page in enumerate(pages, start=1):
        expected = _expected(page, retries)
        came = outcomes[number].tag if number in outcomes else "never fetched"
        if came != expected:
            found.append(
                f"{page.host} {page.path} came to {came or 'a whole page'}, not to {expected or 'a whole page'}"
            )
    return found


def _expected(page: Page, retries: int) -> str | None:
    """The tag of the last reply that is asked for: mendable ones are asked again, as often as `retries` allows."""
    return page.reply(min(retries, len(page.replies) - 1)).tag
