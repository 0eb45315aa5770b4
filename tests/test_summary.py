"""What a run came to, host by host."""

from __future__ import annotations

import pytest

from kreuz_sync.outcome import Hop, Outcome
from kreuz_sync.summary import HEADINGS, Tally, summary, table


def outcome(url: str = "http://a.test/", *hops: Hop, tag: str | None = None) -> Outcome:
    return Outcome(1, url, 1.0, hops or (Hop("a.test", 1, 0.0, 0.1),), tag)


def tally_of(*outcomes: Outcome) -> Tally:
    tally = Tally()
    for one in outcomes:
        tally.add(one)
    return tally


class TestTally:
    """The counts."""

    def test_urls_requests_and_times_add_up(self) -> None:
        tally = tally_of(
            outcome("http://a.test/1", Hop("a.test", 2, 0.5, 0.3)),
            outcome("http://a.test/2", Hop("a.test", 1, 0.25, 0.1)),
        )
        host = tally.hosts["a.test"]
        assert (host.urls, host.ok, host.requests, host.waited, host.slowest) == (2, 2, 3, 0.75, 0.3)

    def test_errors_are_counted_by_tag(self) -> None:
        tally = tally_of(outcome(tag="not_found"), outcome(tag="not_found"), outcome(tag="dns"), outcome())
        assert tally.hosts["a.test"].errors == {"not_found": 2, "dns": 1}
        assert (tally.done, tally.failed) == (4, 3)

    def test_a_redirect_counts_for_the_host_it_went_to(self) -> None:
        """The URL counts for the one it names."""
        hops = (Hop("a.test", 1, 0.0, 0.1), Hop("b.test", 1, 0.0, 0.1))
        tally = tally_of(outcome("http://a.test/", *hops, tag="rate_limited"))
        numbers = {name: (host.urls, host.requests, host.limited) for name, host in tally.hosts.items()}
        assert numbers == {"a.test": (1, 1, 0), "b.test": (0, 1, 1)}

    @pytest.mark.parametrize(
        ("earlier", "tag", "limited"),
        [
            ((), None, 0),
            (("rate_limited", "data_loss"), None, 1),
            (("rate_limited",), "rate_limited", 2),
            ((), "waf_blocked", 1),
        ],
    )
    def test_answers_that_ask_for_less_haste_are_counted(
        self, earlier: tuple[str, ...], tag: str | None, limited: int
    ) -> None:
        tally = tally_of(outcome("http://a.test/", Hop("a.test", 1, 0.0, 0.1, earlier), tag=tag))
        assert tally.hosts["a.test"].limited == limited


class TestTable:
    """Columns in line."""

    def test_numbers_stand_to_the_right(self) -> None:
        lines = table(("host", "n", "errors"), [("a.test", "7", "-"), ("b", "1200", "dns 3")]).splitlines()
        assert lines == ["host       n  errors", "a.test     7  -", "b       1200  dns 3"]


class TestSummary:
    """The table of a run."""

    def test_nothing_done_is_no_table(self) -> None:
        assert summary(Tally(), {}) == ""

    def test_one_host_needs_no_total(self) -> None:
        lines = summary(tally_of(outcome(tag="dns")), {"a.test": 3}).splitlines()
        assert lines[1].split() == ["a.test", "1", "0", "1", "0.0", "3", "0.10", "dns", "1"]
        assert len(lines) == 2

    def test_the_busiest_host_is_first_and_all_are_last(self) -> None:
        hosts = tally_of(*(outcome(f"http://{name}/", Hop(name, 1, 1.0, 0.1)) for name in "abb"))
        rows = [line.split()[:5] for line in summary(hosts, {}).splitlines()[1:]]
        assert rows == [["b", "2", "2", "2", "2.0"], ["a", "1", "1", "1", "1.0"], ["all", "3", "3", "3", "3.0"]]

    def test_a_forgotten_host_shows_how_often_it_asked(self) -> None:
        assert summary(tally_of(outcome(tag="rate_limited")), {}).splitlines()[1].split()[5] == "1"

    def test_many_hosts_are_put_together(self) -> None:
        tally = tally_of(*(outcome(f"http://h{number}/", Hop(f"h{number}", 1, 0.0, 0.1)) for number in range(1000)))
        lines = summary(tally, {}).splitlines()
        assert len(lines) == 28
        assert lines[-2].split()[:3] == ["(975", "more)", "975"]
        assert lines[-1].split()[:2] == ["all", "1000"]

    @pytest.mark.parametrize(
        ("host", "shown"), [("", "(no host)"), ("a\x1b[31m", "a?[31m"), ("x" * 300, "x" * 37 + "...")]
    )
    def test_a_host_cannot_write_on_the_terminal(self, host: str, shown: str) -> None:
        tally = Tally()
        tally.add(outcome("nonsense", Hop(host, 1, 0.0, 0.1)))
        assert any(line.startswith(shown) for line in summary(tally, {}).splitlines())

    def test_every_column_has_a_heading(self) -> None:
        assert summary(tally_of(outcome()), {}).splitlines()[0] == "  ".join(HEADINGS).replace("host", "host  ")
