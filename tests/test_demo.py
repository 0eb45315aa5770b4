"""The demo: its site, what it says, and the command itself."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest
import requests

from kreuz_sync.cli import demo, example_site, job
from kreuz_sync.cli.demo_site import ADDRESSES, CHALLENGE, GOOD, HOSTS, MISSING, PAGES, TOO_OFTEN, Page, Site, mean_gap
from kreuz_sync.cli.outcome import Hop, Outcome
from kreuz_sync.cli.saving import INDEX, Folder

from .test_cli import GUARD_S, command, end, interrupts_reach_children, nothing_is_left_running, start

__all__ = ["interrupts_reach_children", "nothing_is_left_running"]  # fixtures

ONE_ADDRESS = ADDRESSES[1:]
OPTIONS = job.Options(0.02, 8, 2, 30.0, None, {}, ())


class TestPages:
    """The table of pages."""

    def test_the_last_reply_is_repeated(self) -> None:
        page = Page("busy", "/1", (TOO_OFTEN, GOOD))
        assert [page.reply(visit) for visit in range(3)] == [TOO_OFTEN, GOOD, GOOD]

    def test_every_page_is_of_a_host_that_is_there(self) -> None:
        assert {page.host for page in PAGES} == set(HOSTS)

    def test_no_page_is_there_twice(self) -> None:
        assert len({(page.host, page.path) for page in PAGES}) == len(PAGES)

    def test_mean_gap(self) -> None:
        assert mean_gap([1.0, 1.5, 3.0]) == 1.0


class TestSite:
    """The servers."""

    @pytest.mark.parametrize("page", [page for page in PAGES if page.replies[0].cut is None])
    def test_a_page_answers_as_it_should(self, page: Page) -> None:
        with Site(lambda *_: None) as site:
            response = requests.get(site.url(page.host, page.path), timeout=10)
        reply = page.replies[0]
        assert (response.status_code, response.content) == (reply.status, reply.body)
        assert dict(response.headers).items() >= dict(reply.fields).items()

    def test_a_body_breaks_off(self) -> None:
        told: list[tuple[str, ...]] = []
        with (
            Site(lambda *words: told.append(words)) as site,
            pytest.raises((requests.exceptions.ChunkedEncodingError, requests.ConnectionError)),
            requests.get(site.url("busy", "/cut"), timeout=10, stream=True) as response,
        ):
            assert len(response.raw.read(1000, decode_content=False)) < len(GOOD.body)
            raise requests.ConnectionError  # urllib3 1.26 does not mind
        assert told[0][:2] == ("busy", "/cut")

    @pytest.mark.parametrize("addresses", [ONE_ADDRESS, [("192.0.2.1",) * 3, *ONE_ADDRESS]])
    def test_hosts_may_share_an_address(self, addresses: list[tuple[str, ...]]) -> None:
        """192.0.2.1 is nobody's, so it cannot be listened on."""
        with Site(lambda *_: None, addresses) as site:
            assert len({site.url(host, "") for host in HOSTS}) == 3
            assert [site.host_at(site.url(host, "/x")) for host in HOSTS] == list(HOSTS)

    def test_an_unknown_page_is_missing(self) -> None:
        with Site(lambda *_: None) as site:
            assert requests.get(site.url("slow", "/what"), timeout=10).status_code == MISSING.status


def outcome(number: int = 1, tag: str | None = None, status: int | None = 200, **hop: object) -> Outcome:
    took = {"host": "a", "requests": 1, "waited": 0.0, "took": 0.0, **hop}
    return Outcome(number, "http://a.test/", 1.0, (Hop(**took),), tag=tag, status=status)  # type: ignore[arg-type]


class TestSentence:
    """What became of a page, in words."""

    @pytest.mark.parametrize(
        ("became", "text"),
        [
            (outcome(), "200, a whole page"),
            (outcome(waited=0.2), "200, a whole page | waited 0.20 s"),
            (outcome(took=0.4), "200, a whole page | took 0.40 s"),
            (
                outcome(requests=2, waited=1.0, earlier=("rate_limited",)),
                "200, a whole page | retried after rate_limited | waited 1.00 s",
            ),
            (outcome(tag="not_found", status=404), "404, there is no such page. Not asked again: it would not help"),
            (outcome(tag="data_loss", status=None), "failed (data_loss)"),
        ],
    )
    def test_it_says_what_is_notable(self, became: Outcome, text: str) -> None:
        assert demo.sentence(became) == text


class TestSurprises:
    """Whether everything went as it should."""

    PAGES = (Page("a", "/1", (TOO_OFTEN, GOOD)), Page("a", "/2", (CHALLENGE,)))

    def test_nothing_is_one_when_all_is_well(self) -> None:
        came = {1: outcome(1), 2: outcome(2, tag="waf_blocked")}
        assert demo.surprises(self.PAGES, came, retries=1) == []

    def test_without_retries_less_is_expected(self) -> None:
        came = {1: outcome(1, tag="rate_limited"), 2: outcome(2, tag="waf_blocked")}
        assert demo.surprises(self.PAGES, came, retries=0) == []

    def test_what_is_wrong_is_named(self) -> None:
        assert demo.surprises(self.PAGES, {1: outcome(1, tag="dns")}, retries=1) == [
            "a /1 came to dns, not to a whole page",
            "a /2 came to never fetched, not to waf_blocked",
        ]


class TestRun:
    """The whole of it, in this process."""

    @pytest.mark.parametrize("addresses", [ADDRESSES, ONE_ADDRESS])
    @pytest.mark.slow
    def test_it_goes_as_it_should(self, addresses: tuple[tuple[str, ...], ...], tmp_path: Path) -> None:
        told = io.StringIO()
        assert demo.run(OPTIONS, [Folder(tmp_path)], told, addresses) == 0
        text = told.getvalue()
        for word in ("Retry-After: 1", "retried after rate_limited", "retried after data_loss", "challenge", "404"):
            assert word in text
        assert [line.split()[:3] for line in text.splitlines() if re.match(r"(busy|ordinary|slow|all) ", line)] == [
            ["busy", "6", "6"],
            ["ordinary", "6", "5"],
            ["slow", "4", "3"],
            ["all", "16", "14"],
        ]
        assert "sum over all workers" in text
        index = [json.loads(line) for line in (tmp_path / INDEX).read_text().splitlines()]
        assert sorted(line["number"] for line in index) == list(range(1, len(PAGES) + 1))
        assert sum(line["file"] is not None for line in index) == len(PAGES) - 2

    def test_short_gaps_can_be_told_from_none(self) -> None:
        told = io.StringIO()
        demo.run(OPTIONS, [], told)
        gaps = re.findall(r"(?:ordinary|slow) (\d+\.\d\d) s", told.getvalue())
        assert len(gaps) == 2
        assert min(map(float, gaps)) > 0

    def test_a_client_that_cannot_reach_it_is_a_surprise(self) -> None:
        """Here bodies are refused, so that no page is whole."""
        told = io.StringIO()
        assert demo.run(OPTIONS._replace(max_body=1), [], told) == 1
        assert "Not as it should be" in told.getvalue()


class TestCommand:
    """`kreuz-sync demo`."""

    @pytest.mark.slow
    def test_it_needs_nothing(self) -> None:
        ran = command("demo")
        assert ran.code == 0
        assert ran.err == ""
        assert ran.out.splitlines()[-1].startswith("Everything went as it should.")


class TestServe:
    """`kreuz-sync demo --serve`."""

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
    @pytest.mark.usefixtures("interrupts_reach_children")
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_the_site_is_there_until_it_is_ended(self, number: int) -> None:
        process = start("demo", "--serve", "--port", "0")
        assert process.stdout is not None
        found = re.search(rb"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert found is not None
        url = found[0].decode()
        with requests.Session() as session:
            session.trust_env = False
            assert session.get(f"{url}/busy", timeout=GUARD_S).headers["Retry-After"] == "1"
            assert session.post(f"{url}/login", data={"user": "reader"}, timeout=GUARD_S).ok
            assert session.get(f"{url}/me", timeout=GUARD_S).json()["cookie"] == "user=reader"
        os.kill(process.pid, number)
        ran = end(process)
        assert (ran.code, ran.err) == (0, "")

    def test_a_port_in_use_is_one_line(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            ran = command("demo", "--serve", "--port", str(other.getsockname()[1]))
        assert ran.code == 2
        assert "--port" in ran.err
        assert ran.err.count("\n") == 1

    def test_every_page_that_answers_in_its_own_way_is_described(self) -> None:
        assert set(example_site.REPLIES) | {"/me"} == set(example_site.DESCRIPTION)
        assert all(path in example_site.introduction(1) for path in example_site.DESCRIPTION)
