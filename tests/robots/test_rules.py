"""What a robots.txt file says: RFC 9309, section 2.2, and Google's published examples."""

from __future__ import annotations

import pytest

from kreuz_sync.robots.files import sitemaps_in
from kreuz_sync.robots.lines import LIMIT, within_limit

from .files import allows, deciding, everybody, read

# From Google's documentation of its parser.
GOOGLE = {
    "/fish": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    "/fish*": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    "/fish/": (
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    "/*.php": (
        [
            *("/index.php", "/filename.php", "/folder/filename.php", "/folder/filename.php?parameters"),
            *("/folder/any.php.file.html", "/filename.php/"),
        ],
        ["/", "/windows.PHP"],
    ),
    "/*.php$": (
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    "/fish*.php": (["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP"]),
}


class TestMatching:
    """Section 2.2.2 and 2.2.3."""

    @pytest.mark.parametrize(("rule", "target"), [(rule, one) for rule, (yes, _) in GOOGLE.items() for one in yes])
    def test_what_googles_table_says_a_rule_matches(self, rule: str, target: str) -> None:
        assert not allows(everybody(f"Disallow: {rule}"), target)

    @pytest.mark.parametrize(("rule", "target"), [(rule, one) for rule, (_, no) in GOOGLE.items() for one in no])
    def test_what_googles_table_says_a_rule_does_not_match(self, rule: str, target: str) -> None:
        assert allows(everybody(f"Disallow: {rule}"), target)

    @pytest.mark.parametrize(
        ("allow", "disallow", "target", "allowed"),
        [
            ("/p", "/", "/page", True),
            ("/folder", "/folder", "/folder/page", True),
            ("/page", "/*.htm", "/page.htm", False),
            ("/page", "/*.ph", "/page.php5", True),
            ("/$", "/", "/", True),
            ("/$", "/", "/page.htm", False),
        ],
    )
    def test_of_two_rules_the_longer_counts_and_of_equal_ones_allow(
        self, allow: str, disallow: str, target: str, allowed: bool
    ) -> None:
        for lines in ((f"Allow: {allow}", f"Disallow: {disallow}"), (f"Disallow: {disallow}", f"Allow: {allow}")):
            assert allows(everybody(*lines), target) is allowed

    @pytest.mark.parametrize(
        ("rule", "target", "allowed"),
        [
            ("/a/ツ", "/a/%E3%83%84", False),
            ("/a/%e3%83%84", "/a/ツ", False),
            ("/%62", "/b", False),
            ("/b", "/%62", False),
            ("/a%2Fb", "/a/b", True),
            ("/a%2Fb", "/a%2fb", False),
            ("/a?b=%62", "/a?b=b", False),
            ("/a%3Fb", "/a?b", True),
            ("/a b", "/a%20b", False),
            ("/{x}", "/%7Bx%7D", False),
            ("/100%", "/100%25", False),
            ("/a$", "/a", False),
            ("/a$", "/a$", True),
            ("/a$", "/ab", True),
            ("/a%24", "/a$", False),
            ("/a$b", "/a$b", False),
            ("/a%2A", "/a*", False),
            ("/a%2A", "/ab", True),
            ("/a*$", "/abc", False),
            ("/a**b", "/axb", False),
            ("/x*a*b$", "/xaabb", False),
            ("/x*a*b$", "/xab1", True),
            ("/x*ab*b$", "/xab", True),
            ("*/z", "/y/z", False),
            ("*", "/anything", False),
            ("a", "/a", True),
            ("", "/a", True),
        ],
    )
    def test_specials_and_percent_encoding(self, rule: str, target: str, allowed: bool) -> None:
        assert allows(everybody(f"Disallow: {rule}"), target) is allowed

    def test_a_path_in_another_encoding_than_utf_8_matches_its_escapes(self) -> None:
        assert not allows(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9")

    def test_a_wildcard_and_a_dollar_count_one_octet_each(self) -> None:
        """`/*?` has three octets, and so is less than `/abcd`, whatever `?` looks like when escaped."""
        assert allows(everybody("Disallow: /*?", "Allow: /abcd"), "/abcd?x=1")
        assert not allows(everybody("Allow: /ab", "Disallow: /ab$"), "/ab")

    def test_equal_patterns_in_two_spellings_have_one_length(self) -> None:
        assert allows(everybody("Disallow: /a/%E3%83%84", "Allow: /a/ツ"), "/a/ツ")

    def test_the_empty_path_is_the_root(self) -> None:
        assert not allows(everybody("Disallow: /$"), "")
        assert not allows(everybody("Disallow: /?x"), "?x=1")

    def test_a_fragment_is_no_part_of_the_path(self) -> None:
        assert not allows(everybody("Disallow: /a$"), "/a#b")

    def test_the_file_itself_is_always_allowed(self) -> None:
        assert allows(everybody("Disallow: /"), "/robots.txt")
        assert not allows(everybody("Disallow: /"), "/robots.txt.bak")

    def test_an_index_page_is_only_what_it_says(self) -> None:
        assert not allows(everybody("Disallow: /x/", "Allow: /x/index.html"), "/x/")

    def test_the_rule_that_decides_is_named(self) -> None:
        assert str(deciding(everybody("Disallow: /", "Disallow: /private/"), "/private/x")) == "Disallow: /private/"

    def test_what_a_rule_shows_cannot_steer_a_terminal(self) -> None:
        assert str(deciding(b"User-agent: *\nDisallow: /\x1b[2J", "/%1B[2Jx")) == "Disallow: /\ufffd[2J"


class TestGroups:
    """Section 2.2.1."""

    @pytest.mark.parametrize(
        ("written", "token", "meant"),
        [
            ("foobot", "foobot", True),
            ("FooBot", "foobot", True),
            ("foobot", "FOOBOT", True),
            ("foo", "foobot", False),
            ("foobotx", "foobot", False),
            ("FooBot/2.1", "foobot", True),
            ("FooBot Images", "foobot", True),
            ("MJ12bot", "mj12bot", True),
            ("MJ12bot", "mj", True),  # as Google's parser cuts it
            ("", "foobot", False),
            ("*", "foobot", True),
            ("* (everybody)", "foobot", True),
            ("*bot", "foobot", False),
        ],
    )
    def test_a_token_is_compared_whole_and_without_case(self, written: str, token: str, meant: bool) -> None:
        assert allows(f"User-agent: {written}\nDisallow: /", "/x", token) is not meant

    def test_all_groups_of_a_token_are_one(self) -> None:
        text = "User-agent: foobot\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n\nUser-agent: FooBot\nDisallow: /c"
        assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, True, False]

    def test_all_groups_for_everybody_are_one(self) -> None:
        text = "User-agent: *\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\nUser-agent: *\nDisallow: /c"
        assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, True, False]

    def test_an_own_group_without_rules_comes_before_that_for_everybody(self) -> None:
        text = "User-agent: *\nDisallow: /\n\nUser-agent: foobot\nDisallow:"
        assert allows(text, "/x") and not allows(text, "/x", "other")

    @pytest.mark.parametrize(
        "between", ["", "# a comment", "Sitemap: http://x/s", "Crawl-delay: 1", "Host: x", "what?"]
    )
    def test_only_a_rule_ends_a_run_of_agents(self, between: str) -> None:
        text = f"User-agent: foobot\n{between}\nUser-agent: other\nDisallow: /"
        assert not allows(text, "/x") and not allows(text, "/x", "other")

    def test_other_lines_do_not_end_a_group(self) -> None:
        text = "User-agent: foobot\nDisallow: /a\nSitemap: http://x/s\n\nnonsense\nDisallow: /b"
        assert not allows(text, "/b")

    def test_rules_before_any_agent_are_for_nobody(self) -> None:
        assert allows("Disallow: /\nUser-agent: *\nDisallow: /a", "/x")

    def test_a_file_without_a_group_for_us_allows_everything(self) -> None:
        assert allows("User-agent: other\nDisallow: /", "/x")
        assert allows("", "/x")
        assert allows("<!DOCTYPE html><title>Not found</title>", "/x")


class TestLines:
    """Section 2.2, and what files in the wild look like."""

    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_line_ends(self, end: str) -> None:
        assert not allows(f"User-agent: *{end}Disallow: /a{end}", "/a")

    @pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\x0b", "\x0c", "\x1c"])
    def test_what_only_python_takes_for_a_line_end_is_none(self, odd: str) -> None:
        text = f"User-agent: *\nDisallow: /a{odd}Allow: /b\nDisallow: /b"
        assert not allows(text, "/b")

    def test_a_byte_order_mark_is_skipped(self) -> None:
        assert read(b"\xef\xbb\xbfUser-agent: *\nCrawl-delay: 3\n").delay == 3.0

    def test_bytes_that_are_no_utf_8_spoil_only_their_line(self) -> None:
        assert not allows(b"User-agent: *\nDisallow: /\xff\xfe\x80\nDisallow: /a", "/a")

    @pytest.mark.parametrize(
        "line",
        [
            *("DISALLOW: /a", "  disallow :  /a  # why", "\tDisallow:\t/a\t", "Disallow /a", "disalow: /a"),
            *("Dissallow:/a", "Disallow: /a#b"),
        ],
    )
    def test_keys_are_read_generously(self, line: str) -> None:
        assert not allows(everybody(line), "/a")

    def test_of_a_file_that_is_too_long_the_cut_line_is_dropped(self) -> None:
        """Half a path would be another path."""
        start = b"User-agent: *\nDisallow: /a\nDisallow: /"
        content = start + b"b" * LIMIT
        assert within_limit(content) == b"User-agent: *\nDisallow: /a"
        assert not allows(content, "/a") and allows(content, "/bbb")

    def test_a_line_that_ends_at_the_limit_counts(self) -> None:
        start = b"User-agent: *\nDisallow: /"
        whole = start + b"b" * (LIMIT - len(start))
        assert within_limit(whole) == within_limit(whole + b"\nDisallow: /c") == whole

    def test_one_line_that_is_too_long_is_no_line(self) -> None:
        assert within_limit(b"x" * (LIMIT + 1)) == b""


class TestDelays:
    """Crawl-delay and Request-rate, which RFC 9309 does not know."""

    @pytest.mark.parametrize(
        ("value", "delay"),
        [
            ("3", 3.0),
            ("0.5", 0.5),
            (".5", 0.5),
            ("2.", 2.0),
            ("0", 0.0),
            ("10 # seconds", 10.0),
            ("-5", None),
            ("nan", None),
            ("inf", None),
            ("1e3", None),
            ("1_0", None),
            ("٣", None),
            ("five", None),
            ("", None),
            ("1,5", None),
        ],
    )
    def test_a_delay_is_a_plain_number(self, value: str, delay: float | None) -> None:
        assert read(everybody(f"Crawl-delay: {value}")).delay == delay

    def test_of_several_the_largest_counts(self) -> None:
        assert read(everybody("Crawl-delay: 2", "Crawl-delay: 7", "Crawl-delay: 1")).delay == 7.0

    def test_several_groups_of_one_agent_have_one_delay(self) -> None:
        assert read("User-agent: foobot\nCrawl-delay: 2\nDisallow: /a\n\nUser-agent: foobot\nCrawl-delay: 4").delay == 4

    @pytest.mark.parametrize(
        ("rate", "delay"),
        [
            ("1/5", 5.0),
            ("1/5m", 300.0),
            ("2/1", 0.5),
            ("1/10s 0600-0845", 10.0),
            ("0/5", None),
            ("x", None),
            ("1/0", None),
        ],
    )
    def test_a_rate_is_a_delay(self, rate: str, delay: float | None) -> None:
        assert read(everybody(f"Request-rate: {rate}")).delay == delay

    def test_an_own_group_without_a_delay_has_none(self) -> None:
        """Groups are not combined (section 2.2.1)."""
        text = "User-agent: *\nCrawl-delay: 7\n\nUser-agent: foobot\nDisallow: /x"
        assert (read(text).delay, read(text, "other").delay) == (None, 7.0)

    def test_a_delay_between_agents_is_for_those_above_it(self) -> None:
        text = "User-agent: other\nCrawl-delay: 7\nUser-agent: foobot\nDisallow: /x"
        assert (read(text).delay, read(text, "other").delay) == (None, 7.0)
        assert not allows(text, "/x", "other")

    def test_unless_it_is_asked_for(self) -> None:
        text = "User-agent: *\nCrawl-delay: 7\n\nUser-agent: foobot\nDisallow: /x"
        assert read(text, wildcard_delay=True).delay == 7.0
        assert read(text + "\nCrawl-delay: 1", wildcard_delay=True).delay == 1.0


class TestSitemaps:
    def test_they_belong_to_no_group(self) -> None:
        text = b"Sitemap: http://x/1\nUser-agent: a\nsitemap: http://x/2\nDisallow: /\nSITE-MAP: http://x/1"
        assert sitemaps_in(text) == ("http://x/1", "http://x/2")

    def test_what_is_no_absolute_url_is_left_out(self) -> None:
        assert sitemaps_in(b"Sitemap: /s.xml\nSitemap:\nSitemap: https://x/s.xml") == ("https://x/s.xml",)

    def test_odd_characters_do_not_make_two_of_one(self) -> None:
        assert sitemaps_in("Sitemap: http://x/a\u2028Sitemap: http://y/".encode()) == ("http://x/aSitemap: http://y/",)
