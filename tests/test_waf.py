"""Challenge and block pages are noticed, and pages that only look like one are not."""

import gzip
import zlib

import pytest
from requests.structures import CaseInsensitiveDict

from kreuz_sync.errors import WafBlocked
from kreuz_sync.transport import Transport
from kreuz_sync.waf import DEFAULT_WAF, Waf, WafMatch
from kreuz_sync.waf.plan import BODY_LIMIT

from .fakes import ScriptedAdapter, prepared
from .waf_pages import BEHIND_CLOUDFLARE, HTML, JSON, NOT_WALLS, WALLS, padded


def look(status, fields=(), content=None, reason=None, waf=DEFAULT_WAF):
    return waf.look(status, CaseInsensitiveDict(fields), content, reason)


IMPERVA = b"<html><body>Request unsuccessful. Incapsula incident ID: 12-34</body></html>"
F5 = b"<html><body>The requested URL was rejected. Please consult with your administrator.</body></html>"
CHALLENGE = {"cf-mitigated": "challenge", **HTML}


class TestWalls:
    """Each product's own answers."""

    @pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
    def test_is_named_with_its_evidence(self, wall):
        match = look(wall.status, wall.fields, wall.content, wall.reason)
        assert match is not None, "not noticed"
        assert (match.vendor, match.kind) == (wall.vendor, wall.kind)
        assert match.evidence and all(mark.startswith(f"{wall.vendor}-") for mark in match.evidence)

    @pytest.mark.parametrize("page", NOT_WALLS, ids=lambda page: page.name)
    def test_a_near_miss_is_none(self, page):
        assert look(page.status, page.fields, page.content, page.reason) is None


def rules(*proofs):
    return [rule for rule in DEFAULT_WAF.rules if rule.proof in proofs]


class TestEveryRule:
    """What the package's file holds, rule by rule, on an answer made of just its signals."""

    @pytest.mark.parametrize("rule", rules("definitive", "strong"), ids=lambda rule: rule.id)
    def test_finds_its_vendor(self, rule):
        match = look(*answer_with(rule))
        assert match.vendor == rule.vendor and rule.id in match.evidence

    @pytest.mark.parametrize("rule", rules("presence", "generic"), ids=lambda rule: rule.id)
    @pytest.mark.parametrize("status", [200, 403, 503])
    def test_presence_and_common_words_alone_find_nothing(self, rule, status):
        _, *answer = answer_with(rule)
        assert look(status, *answer) is None

    @pytest.mark.parametrize(
        "rule",
        [
            rule
            for rule in rules("definitive")
            if rule.reads_body and rule.counts_at(200) and rule.id != "perimeterx-json"
        ],
        ids=lambda rule: rule.id,
    )
    def test_a_definitive_page_counts_with_200_too(self, rule):
        _, *answer = answer_with(rule)
        assert look(200, *answer).confidence == "high"

    def test_pages_of_all_sizes_are_found_by_what_their_edges_show(self):
        for size in (2_000, 20_000, BODY_LIMIT):
            assert look(200, HTML, padded(F5, size)).vendor == "f5"
            assert look(200, HTML, padded(F5, size, at_end=True)).vendor == "f5"


def answer_with(rule):
    """A status, fields, content and reason that hold each signal of `rule`, and little else."""
    fields, cookies, content, reason = dict(HTML), [], "<html><head>", None
    for signal in rule.signals:
        if signal.where == "header":
            fields[signal.what] = signal.value or "1"
        elif signal.where == "cookie":
            cookies.append(f"{signal.what}x=1; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT")
        elif signal.where == "reason":
            reason = signal.what.title()
        else:
            content += {"title": "<title>{}</title>", "element_id": '<p id="{}">', "body": " {} "}[signal.where].format(
                signal.what.upper()
            )
    if cookies:
        fields["Set-Cookie"] = ", ".join(["first=1", *cookies])
    status = next(status for status in (403, 405, 429, 503) if rule.counts_at(status))
    return status, fields, content.encode(), reason


class TestOrder:
    """Which mark decides, and what it is worth."""

    def test_the_challenge_field_decides_on_any_status_without_a_body(self):
        for status in (200, 202, 302, 403, 404, 429, 500, 503):
            match = look(status, {"CF-Mitigated": "Challenge"})
            assert match == WafMatch("cloudflare", "challenge", ("cloudflare-mitigated",), "high")

    def test_a_definitive_field_goes_before_another_vendors_definitive_page(self):
        assert look(403, {**HTML, "cf-mitigated": "challenge"}, IMPERVA).vendor == "cloudflare"

    def test_a_definitive_page_goes_before_strong_marks(self):
        fields = {**HTML, "x-px-block": "1", "x-blocked-by-waf": "Blocked_by_custom_response_1"}
        assert look(403, fields, IMPERVA).vendor == "imperva"

    def test_the_vendor_with_more_strong_marks_is_named(self):
        page = b"<html>errors.aliyun.com <title>Just a moment...</title> window._cf_chl_opt"
        assert look(405, HTML, page).vendor == "cloudflare"

    def test_one_strong_mark_needs_a_status_of_400_or_more(self):
        page = b"<html><title>Just a moment...</title>"
        assert look(200, HTML, page) is None
        assert look(503, HTML, page).confidence == "medium"

    def test_two_strong_marks_of_one_vendor_do_without(self):
        page = b"<html><title>Just a moment...</title><script>window._cf_chl_opt={}</script>"
        match = look(200, HTML, page)
        assert (match.vendor, match.confidence) == ("cloudflare", "medium")

    def test_two_strong_marks_of_two_vendors_do_not(self):
        assert look(200, HTML, b"<html><title>Just a moment...</title> errors.edgesuite.net") is None

    def test_common_words_count_beside_a_vendors_mark_and_an_error(self):
        page = b"<html>Checking your browser before you go on"
        assert look(503, BEHIND_CLOUDFLARE, page).confidence == "low"
        assert look(503, HTML, page) is None
        assert look(200, BEHIND_CLOUDFLARE, page) is None

    def test_presence_is_named_beside_a_finding(self):
        match = look(403, {**BEHIND_CLOUDFLARE, "cf-mitigated": "challenge"})
        assert match.evidence[:3] == ("cloudflare-mitigated", "cloudflare-server", "cloudflare-ray")


class TestWhatIsLookedAt:
    """By status, type, size and coding."""

    @pytest.mark.parametrize("status", [201, 204, 206, 301, 304, 400, 404, 410, 500, 502])
    def test_on_other_statuses_no_page_counts(self, status):
        assert look(status, HTML, IMPERVA) is None

    def test_no_page_longer_than_100_kib_counts_with_200(self):
        assert look(200, HTML, padded(F5, BODY_LIMIT)) is not None
        assert look(200, HTML, padded(F5, BODY_LIMIT + 1)) is None

    def test_of_an_errors_page_the_first_100_kib_count(self):
        assert look(403, HTML, padded(IMPERVA, 3 * BODY_LIMIT)) is not None
        assert look(403, HTML, padded(IMPERVA, 3 * BODY_LIMIT, at_end=True)) is None

    @pytest.mark.parametrize("kind", ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml", None])
    def test_html_is_looked_at_with_200(self, kind):
        assert look(200, {"Content-Type": kind} if kind else {}, b"\n" + IMPERVA) is not None

    @pytest.mark.parametrize("kind", ["text/plain", "application/json", "image/png", "application/octet-stream"])
    def test_nothing_else_is(self, kind):
        assert look(200, {"Content-Type": kind}, IMPERVA) is None

    def test_without_a_type_it_has_to_begin_as_html(self):
        assert look(200, {}, b"Notes: " + IMPERVA) is None

    @pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/problem+json", None])
    def test_text_is_looked_at_with_403(self, kind):
        assert look(403, {"Content-Type": kind} if kind else {}, IMPERVA) is not None

    @pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "video/mp4", "font/woff2"])
    def test_binary_types_never_are(self, kind):
        assert look(403, {"Content-Type": kind}, IMPERVA) is None

    def test_title_parts_count_in_the_title_alone(self):
        page = b"<html><title>News</title><p>just a moment</p> &lt;title&gt;just a moment _cf_chl_opt</html>"
        assert look(200, HTML, page) is None

    def test_ids_count_as_attributes_alone(self):
        assert look(403, HTML, b"<html>What px-captcha is, and how <code>#px-captcha</code> looks") is None
        for written in (
            b'id="px-captcha"',
            b"id='px-captcha'",
            b"id=px-captcha",
            b'id = "px-captcha"',
            rb"id=\"px-captcha\"",
        ):
            assert look(403, HTML, b"<html><div class=x " + written + b"></div>") is not None

    def test_a_cookie_counts_by_the_beginning_of_its_name(self):
        waf = Waf([{**RULE, "signals": [{"cookie": "wall_"}]}])
        assert look(403, {"Set-Cookie": "a=b; Expires=Wed, 21 Oct 2026 07:28:00 GMT, Wall_1=x"}, waf=waf)
        assert look(403, {"Set-Cookie": "a=wall_; Path=/wall_"}, waf=waf) is None


RULE = {"id": "wall", "vendor": "example", "proof": "definitive", "kind": "block"}


class TestReads:
    """Whether a body could still change the verdict."""

    @pytest.mark.parametrize(
        ("status", "fields"),
        [
            (200, HTML),
            (200, {}),
            (200, {**HTML, "Content-Length": str(BODY_LIMIT)}),
            (202, HTML),
            (403, JSON),
            (503, {**HTML, "Content-Length": "nonsense"}),
        ],
    )
    def test_yes(self, status, fields):
        assert DEFAULT_WAF.reads(status, CaseInsensitiveDict(fields))

    @pytest.mark.parametrize(
        ("status", "fields"),
        [
            (200, {**HTML, "Content-Length": str(BODY_LIMIT + 1)}),
            (200, {**HTML, "Content-Length": "9" * 5000}),
            (200, {**HTML, "Content-Length": "0"}),
            (200, JSON),
            (200, {"Content-Type": "video/mp4"}),
            (206, HTML),
            (304, HTML),
            (404, HTML),
            (403, {"Content-Type": "image/png"}),
        ],
    )
    def test_no(self, status, fields):
        assert not DEFAULT_WAF.reads(status, CaseInsensitiveDict(fields))


class TestPresence:
    def test_names_the_vendors_in_front_of_a_site(self):
        fields = CaseInsensitiveDict({**BEHIND_CLOUDFLARE, "X-Sucuri-ID": "1", "Set-Cookie": "visid_incap_1=x"})
        assert DEFAULT_WAF.presence(fields) == ("cloudflare", "imperva", "sucuri")

    def test_is_empty_where_there_is_none(self):
        assert DEFAULT_WAF.presence(CaseInsensitiveDict(HTML)) == ()


class TestOnTheWire:
    """Inside the transport, under requests' own decoding."""

    def send(self, *answer, stream=False, method="GET", waf=DEFAULT_WAF):
        return Transport(ScriptedAdapter(answer), waf=waf).send(prepared(method=method), stream=stream)

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_a_compressed_page_is_noticed(self, coding):
        content = gzip.compress(IMPERVA) if coding == "gzip" else zlib.compress(IMPERVA)
        response = self.send(403, {**HTML, "Content-Encoding": coding}, content)
        assert response.waf.vendor == "imperva" and response.content == IMPERVA

    def test_it_is_a_typed_error_that_does_not_quote_the_page(self):
        response = self.send(200, HTML, IMPERVA)
        with pytest.raises(WafBlocked) as caught:
            response.raise_for_status()
        assert caught.value.vendor == "imperva" and "ncident" not in str(caught.value)

    def test_the_reason_phrase_counts(self):
        def answering(request):
            response = ScriptedAdapter((403, HTML, b"<html>no")).send(request)
            response.reason = "ModSecurity Action"
            return response

        class Answering(ScriptedAdapter):
            def send(self, request, **options):
                return answering(request)

        assert Transport(Answering(), waf=DEFAULT_WAF).send(prepared()).waf.vendor == "modsecurity"

    def test_a_stream_is_judged_by_its_fields_and_not_eaten(self):
        response = self.send(403, CHALLENGE, IMPERVA, stream=True)
        assert response.waf.vendor == "cloudflare" and response.raw.tell() == 0
        assert response.content == IMPERVA

    def test_a_small_page_in_a_stream_is_looked_at_when_it_has_been_read(self):
        response = self.send(200, HTML, IMPERVA, stream=True)
        assert response.waf is None and response.raw.tell() == 0
        assert b"".join(response.iter_content(7)) == IMPERVA
        assert response.waf.vendor == "imperva"

    @pytest.mark.parametrize("fields", [{"Content-Type": "video/mp4"}, HTML])
    def test_of_a_big_download_no_byte_is_touched(self, fields):
        response = self.send(200, {**fields, "Content-Length": str(10**9)}, b"", stream=True)
        assert response.waf is None and response.raw.tell() == 0 and response.limits.watch is None

    def test_head_is_judged_by_its_fields(self):
        assert self.send(403, CHALLENGE, method="HEAD").waf.vendor == "cloudflare"
        assert self.send(403, BEHIND_CLOUDFLARE, method="HEAD").waf is None

    def test_after_the_challenge_the_page_itself_is_no_challenge(self):
        transport = Transport(ScriptedAdapter((200, HTML, IMPERVA), (200, HTML, b"<html>Welcome")), waf=DEFAULT_WAF)
        assert [transport.send(prepared()).waf is None for _ in range(2)] == [False, True]
