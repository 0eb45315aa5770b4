"""What spares ordinary pages the full look never spares them a user's rule."""

import pytest
from requests.structures import CaseInsensitiveDict

from kreuz_sync.waf import DEFAULT_WAF, Waf
from kreuz_sync.waf.plan import BODY_LIMIT, HEAD, TAIL, Plan

from .waf_pages import HTML, padded

RULE = {"id": "wall", "vendor": "example", "proof": "definitive", "kind": "block"}
FIELDS = CaseInsensitiveDict(HTML)


def waf(*signals, **parts):
    return DEFAULT_WAF.adding([{**RULE, "signals": list(signals), **parts}])


class TestUsersRules:
    """On a page with 200, wherever the mark stands."""

    @pytest.mark.parametrize("before", [0, HEAD - 4, HEAD, 20_000, 90_000])
    def test_a_part_is_found_anywhere(self, before):
        page = padded(padded(b"Our Own Wall", before + 12, at_end=True), 95_000)
        assert waf({"body": "our own wall"}).look(200, FIELDS, page).evidence == ("wall",)

    def test_letters_beyond_ascii_are_compared_as_they_are_written(self):
        found = waf({"body": "Zugriff verweigert für Über"})
        assert found.look(200, FIELDS, "<html>ZUGRIFF VERWEIGERT für Über".encode())

    def test_all_signals_must_hold(self):
        two = waf({"body": "first"}, {"body": "second mark"})
        assert two.look(200, FIELDS, b"<html>first, second mark")
        assert two.look(200, FIELDS, b"<html>second mark") is None

    def test_a_part_beside_a_field(self):
        both = waf({"header": "x-queue"}, {"body": "please wait"})
        assert both.look(200, CaseInsensitiveDict({**HTML, "X-Queue": "1"}), b"<html>Please wait")
        assert both.look(200, FIELDS, b"<html>Please wait") is None

    def test_an_id(self):
        assert waf({"element_id": "queue-it"}).look(200, FIELDS, b"<html><p id='queue-it'>")

    def test_a_title_in_the_first_kib(self):
        titled = waf({"title": "the queue"})
        assert titled.look(200, FIELDS, b"<html>" + b" " * 900 + b"<title>" + b" " * 300 + b"The Queue</title>")
        assert titled.look(200, FIELDS, b"<html>" + b" " * HEAD + b"<title>The Queue</title>") is None

    def test_a_field_alone(self):
        assert waf({"header": "x-queue", "value": "wait"}).look(
            200, CaseInsensitiveDict({"X-Queue": "Wait here"}), None
        )

    def test_a_cookie_and_the_size_of_the_page(self):
        small = waf({"cookie": "queue="}, body_under=100)
        fields = CaseInsensitiveDict({**HTML, "Set-Cookie": "a=b, Queue=1; Path=/"})
        assert small.look(200, fields, b"<html>")
        assert small.look(200, fields, b"<html>" * 100) is None
        assert small.look(200, fields, None) is None

    def test_a_reason(self):
        assert waf({"reason": "go away"}).look(403, FIELDS, None, "Go Away Please")

    def test_its_own_statuses(self):
        teapot = waf({"body": "short and stout"}, status=[418, "3xx"])
        for status in (302, 418):
            assert teapot.look(status, FIELDS, b"<html>short and stout")
        assert teapot.look(403, FIELDS, b"<html>short and stout") is None

    def test_edges_are_the_beginning_and_the_end(self):
        edges = waf({"body": "our own wall"}, opens="edges")
        assert edges.look(200, FIELDS, padded(b"our own wall", 9_000))
        assert edges.look(200, FIELDS, padded(b"our own wall", 9_000, at_end=True))
        middle = padded(padded(b"our own wall", HEAD + TAIL, at_end=True), 9_000)
        assert edges.look(200, FIELDS, middle) is None
        assert edges.look(403, FIELDS, middle)

    def test_one_that_never_opens_counts_once_another_has(self):
        base = waf({"body": "shown"}, proof="strong")
        pair = base.adding(
            [{**RULE, "id": "other", "proof": "strong", "opens": "never", "signals": [{"body": "hidden"}]}]
        )
        assert pair.look(200, FIELDS, b"<html>shown and hidden").evidence == ("wall", "other")
        alone = base.without("wall").adding([{**RULE, "opens": "never", "signals": [{"body": "hidden"}]}])
        assert alone.look(200, FIELDS, b"<html>hidden") is None

    def test_one_that_is_part_of_another_finds_both(self):
        plan = Plan(
            Waf([{**RULE, "id": part, "signals": [{"body": part}]} for part in ("wall", "our wall")]).rules, 200
        )
        assert plan.anywhere == ("wall",)


class TestOrdinaryPages:
    def test_none_of_the_packages_rules_wants_the_whole_page(self):
        """What keeps the look at some microseconds, whatever the page's size."""
        for status in (200, 202):
            assert Plan(DEFAULT_WAF.rules, status).anywhere == ()

    def test_most_statuses_are_decided_by_field_names_alone(self):
        for status in (204, 206, 301, 304, 404, 500):
            assert not Plan(DEFAULT_WAF.rules, status).reads_body


class TestHostilePages:
    """Each is looked at in time that grows with its length alone; a slow search would hang here."""

    @pytest.mark.parametrize(
        "page",
        [
            b'<html id="px-captcha' * 5_000,
            b" id = " * 20_000,
            b'<p id="px-captcha' + b" " * 100_000,
            b" id" + b" " * 100_000 + b"=px-captcha",
            b"<title" * 20_000,
            b"<html>" + b"a" * 100_000,
            b"<html>_cf_chl_" * 8_000,
            bytes(range(256)) * 400,
        ],
        ids=range(8),
    )
    @pytest.mark.parametrize("status", [200, 403])
    def test_is_done(self, page, status):
        for _ in range(5):
            DEFAULT_WAF.look(status, FIELDS, page[:BODY_LIMIT])

    def test_a_long_pattern_against_its_own_beginning(self):
        found = waf({"body": "a" * 4000 + "b"})
        assert found.look(200, FIELDS, b"<html>" + b"a" * 100_000) is None
