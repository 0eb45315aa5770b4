"""Answers of firewalls, cut down to what gives them away, and answers that only look like them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HTML = {"Content-Type": "text/html; charset=utf-8"}
JSON = {"Content-Type": "application/json"}
TEXT = {"Content-Type": "text/plain; charset=UTF-8"}
BEHIND_CLOUDFLARE = {
    **HTML,
    "Server": "cloudflare",
    "CF-RAY": "7d0a1b2c3d4e5f60-FRA",
    "Set-Cookie": "__cf_bm=x; path=/",
}


class Wall(NamedTuple):
    """An answer that is a wall's. vendor and kind are what it has to be taken for."""

    name: str
    vendor: str
    kind: str
    status: int
    fields: Mapping[str, str]
    content: bytes | None = None
    reason: str | None = None


class Page(NamedTuple):
    """An answer that is no wall's."""

    name: str
    status: int
    fields: Mapping[str, str]
    content: bytes | None = None
    reason: str | None = None


def padded(page: bytes, size: int, *, at_end: bool = False) -> bytes:
    """`page` among ordinary text, `size` bytes together; at its beginning or its end."""
    text = (b"<p>Some words of an ordinary page.</p>\n" * (size // 30))[: size - len(page)]
    return text + page if at_end else page + text


def html(body: str, title: str | None = None) -> bytes:
    head = "" if title is None else f"<title>{title}</title>"
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>{body}</body></html>".encode()


_CLOUDFLARE_SCRIPT = (
    "<script>(function(){window._cf_chl_opt={cvId:'3',cType:'managed'};"
    "history.replaceState(null,null,'/?__cf_chl_rt_tk=x');"
    "a.src='/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1';})();</script>"
)
_DATADOME = "<script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script>"
_PERIMETERX_JSON = b'{"appId":"PXabc","jsClientSrc":"/abc/init.js","blockScript":"/abc/captcha.js"}'
_F5 = (
    "The requested URL was rejected. Please consult with your administrator.<br><br>"
    "Your support ID is: 123456789<br><br><a href='javascript:history.back();'>[Go Back]</a>"
)
_AKAMAI = "<H1>Access Denied</H1>You don't have permission to access this.<P>Reference&#32;&#35;18&#46;2f1a</P>"
_ANUBIS = (
    '<link rel="stylesheet" href="/.within.website/x/xess/xess.min.css">'
    '<script id="anubis_version" type="application/json">"v1.21.0"</script>'
    '<script id="anubis_challenge" type="application/json">{"rules":{"difficulty":4}}</script>'
    '<img src="/.within.website/x/cmd/anubis/static/img/pensive.webp">'
)
_AWS = (
    '<script>window.awsWafCookieDomainList=[];window.gokuProps={"key":"x"};</script>'
    '<script src="https://a1b2.eu-west-1.token.awswaf.com/a1b2/challenge.js"></script>'
)

WALLS = [
    Wall(
        "cloudflare, the field",
        "cloudflare",
        "challenge",
        403,
        {**BEHIND_CLOUDFLARE, "cf-mitigated": "challenge"},
        b"x",
    ),
    Wall("cloudflare, the field with 429", "cloudflare", "challenge", 429, {"cf-mitigated": "challenge"}),
    Wall(
        "cloudflare, a managed challenge without the field",
        "cloudflare",
        "challenge",
        503,
        HTML,
        html(_CLOUDFLARE_SCRIPT, "Just a moment..."),
    ),
    Wall(
        "cloudflare, the same passed on with 200",
        "cloudflare",
        "challenge",
        200,
        HTML,
        html(_CLOUDFLARE_SCRIPT, "Just a moment..."),
    ),
    Wall(
        "cloudflare, in another language", "cloudflare", "challenge", 200, HTML, html(_CLOUDFLARE_SCRIPT, "Un momento…")
    ),
    Wall(
        "cloudflare, a form",
        "cloudflare",
        "challenge",
        403,
        BEHIND_CLOUDFLARE,
        html('<form class="x" id="challenge-form" action="/"></form>'),
    ),
    Wall(
        "cloudflare, blocked",
        "cloudflare",
        "block",
        403,
        BEHIND_CLOUDFLARE,
        html("Sorry, you have been blocked", "Attention Required! | Cloudflare"),
    ),
    Wall("cloudflare, 1020", "cloudflare", "block", 403, {**BEHIND_CLOUDFLARE, **TEXT}, b"error code: 1020"),
    Wall("cloudflare, 1015", "cloudflare", "block", 429, {**BEHIND_CLOUDFLARE, **TEXT}, b"error code: 1015"),
    Wall("aws-waf, 202 without a body", "aws-waf", "challenge", 202, {"x-amzn-waf-action": "challenge"}, b""),
    Wall(
        "aws-waf, 405", "aws-waf", "captcha", 405, {**HTML, "x-amzn-waf-action": "captcha"}, html("Human verification")
    ),
    Wall("aws-waf, 202 without the field", "aws-waf", "challenge", 202, HTML, html(_AWS)),
    Wall("aws-waf, 405 without the field", "aws-waf", "challenge", 405, HTML, html(_AWS)),
    Wall(
        "aws-waf, its owner's answer",
        "aws-waf",
        "block",
        403,
        {"X-Blocked-By-WAF": "Blocked_by_custom_response_for_AWSManagedRules"},
    ),
    Wall(
        "cloudfront",
        "cloudfront",
        "block",
        403,
        {**HTML, "X-Amz-Cf-Id": "x", "Via": "1.1 x.cloudfront.net (CloudFront)"},
        html("Request blocked. We can't connect to the server. <hr>Generated by cloudfront (CloudFront)", "ERROR"),
    ),
    Wall("datadome, a page", "datadome", "captcha", 403, {**HTML, "X-DataDome": "protected"}, html(_DATADOME)),
    Wall("datadome, JSON", "datadome", "captcha", 401, JSON, b'{"url":"https://geo.captcha-delivery.com/captcha/"}'),
    Wall("datadome, a page with 405", "datadome", "captcha", 405, HTML, html(_DATADOME)),
    Wall("datadome, the field", "datadome", "block", 404, {"X-DD-B": "1"}),
    Wall("perimeterx, a page", "perimeterx", "captcha", 403, HTML, html('<div id="px-captcha"></div>')),
    Wall("perimeterx, JSON", "perimeterx", "captcha", 403, JSON, _PERIMETERX_JSON),
    Wall(
        "perimeterx, passed on with 200",
        "perimeterx",
        "block",
        200,
        HTML,
        html(
            "we believe you are using automation tools <a href='https://www.perimeterx.com/whywasiblocked'>?</a>",
            "Access to this page has been denied.",
        ),
    ),
    Wall("perimeterx, the field", "perimeterx", "block", 403, {"X-PX-Block": "1"}),
    Wall(
        "imperva, a frame with 200",
        "imperva",
        "block",
        200,
        HTML,
        html('<iframe src="/_Incapsula_Resource?CWUDNSAI=9">Request unsuccessful. Incapsula incident ID: 1-2</iframe>'),
    ),
    Wall(
        "imperva, a frame with 200 and no words",
        "imperva",
        "challenge",
        200,
        {**HTML, "X-Iinfo": "1-2-0"},
        html('<iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9"></iframe>'),
    ),
    Wall(
        "imperva, nothing but its script with 200",
        "imperva",
        "challenge",
        200,
        HTML,
        b'<html><head><script src="/_Incapsula_Resource?SWJIYLWA=5074"></script></head><body></body></html>',
    ),
    Wall(
        "imperva, formerly Distil",
        "imperva",
        "challenge",
        200,
        HTML,
        html(
            "<h1>Pardon Our Interruption</h1>something about your browser made us think you were a bot",
            "Pardon Our Interruption",
        ),
    ),
    Wall("sucuri, the field", "sucuri", "block", 403, {**HTML, "X-Sucuri-Block": "BOT01"}, html("no")),
    Wall(
        "sucuri, a page",
        "sucuri",
        "block",
        403,
        {**HTML, "Server": "Sucuri/Cloudproxy"},
        html("cloudproxy@sucuri.net", "Sucuri WebSite Firewall - Access Denied"),
    ),
    Wall("akamai", "akamai", "block", 403, {**HTML, "Server": "AkamaiGHost"}, html(_AKAMAI, "Access Denied")),
    Wall(
        "akamai, with 200",
        "akamai",
        "block",
        200,
        HTML,
        html(f"{_AKAMAI}<P>https://errors.edgesuite.net/18.2f1a</P>", "Access Denied"),
    ),
    Wall("f5, with 200", "f5", "block", 200, HTML, html(_F5, "Request Rejected")),
    Wall("f5, in its owner's words", "f5", "block", 403, HTML, html("The requested URL was rejected. Support ID: 1")),
    Wall("kasada, 429", "kasada", "challenge", 429, {**HTML, "x-kpsdk-ct": "x"}, b""),
    Wall("kasada, its script", "kasada", "challenge", 428, HTML, html('<script src="/149e/2d20/ips.js?x=1"></script>')),
    Wall("anubis", "anubis", "challenge", 200, HTML, html(_ANUBIS, "Making sure you&#39;re not a bot!")),
    Wall("vercel", "vercel", "challenge", 429, {**HTML, "X-Vercel-Id": "x"}, html("", "Vercel Security Checkpoint")),
    Wall(
        "vercel, its script", "vercel", "challenge", 403, HTML, html('<script src="/.well-known/vercel/security/s.js">')
    ),
    Wall("vercel, the field", "vercel", "challenge", 403, {"X-Vercel-Mitigated": "challenge"}),
    Wall("azure gateway", "azure", "block", 403, HTML, html("403 <hr>Microsoft-Azure-Application-Gateway/v2")),
    Wall("azure front door", "azure", "block", 403, {**HTML, "X-Azure-Ref": "x"}, html("The request is blocked.")),
    Wall(
        "google", "gcp-armor", "captcha", 429, HTML, html("Our systems have detected unusual traffic from your network")
    ),
    Wall(
        "ddos-guard",
        "ddos-guard",
        "challenge",
        403,
        {**HTML, "Server": "ddos-guard", "Set-Cookie": "__ddg1_=x; Path=/"},
        html("<script src='/check.js'></script>", "DDOS-GUARD"),
    ),
    Wall(
        "imunify360, a challenge", "imunify360", "challenge", 200, HTML, html("<script>imunify360.preloader()</script>")
    ),
    Wall("imunify360, blocked", "imunify360", "block", 415, HTML, html("Protected by Imunify360")),
    Wall("wordfence", "wordfence", "block", 503, HTML, html("Generated by Wordfence at Wed, 21 Oct 2026")),
    Wall(
        "wordfence, a rule",
        "wordfence",
        "block",
        403,
        HTML,
        html("You broke one of the Wordfence advanced blocking rules"),
    ),
    Wall("modsecurity", "modsecurity", "block", 406, HTML, html("This error was generated by Mod_Security.")),
    Wall("modsecurity, the reason", "modsecurity", "block", 403, HTML, b"", "ModSecurity Action"),
    Wall("barracuda", "barracuda", "block", 403, HTML, html("Barracuda Networks, Inc. All rights reserved")),
    Wall(
        "fortiweb, with 200",
        "fortiweb",
        "block",
        200,
        HTML,
        html("<style>.fgd_icon{}</style>Web Page Blocked! Attack ID: 20000051", "Web Page Blocked!"),
    ),
    Wall(
        "netscaler, with 200",
        "netscaler",
        "block",
        200,
        HTML,
        html("NS Transaction ID: 1 AppFW Session ID: 2", "Blocked"),
    ),
    Wall(
        "radware",
        "radware",
        "block",
        403,
        HTML,
        html("<img src='https://CloudWebSec.radware.com/x.png'>", "Unauthorized"),
    ),
    Wall(
        "stackpath",
        "stackpath",
        "block",
        403,
        HTML,
        html("This website is using a security service for protection against online attacks."),
    ),
    Wall("bitninja", "bitninja", "captcha", 403, HTML, html("", "Security check by BitNinja.IO")),
    Wall("sitelock", "sitelock", "block", 403, HTML, html("SiteLock Incident ID: 1")),
    Wall("tencent", "tencent", "block", 405, HTML, html("<img src='https://waf.tencent-cloud.com/501.png'>")),
    Wall("alibaba", "alibaba", "block", 405, HTML, html("<img src='https://errors.aliyun.com/x.png'>")),
]

ARTICLE = html(
    "<p>Walls say 'just a moment', 'checking your browser' or 'please verify you are human'; DataDome, PerimeterX, "
    "Incapsula, Sucuri, Imperva, awselb and BIGipServer are products and marks of theirs, as is challenge.js.</p>",
    "How walls work",
)
# Every mark there is, as a long article about walls would quote them.
ALL_MARKS = b"<html><title>Just a moment</title>" + b" ".join(wall.content or b"" for wall in WALLS)

NOT_WALLS = [
    Page("403 with JSON behind cloudflare", 403, {**BEHIND_CLOUDFLARE, **JSON}, b'{"error":"forbidden"}'),
    Page("403 with a page of the site's own behind cloudflare", 403, BEHIND_CLOUDFLARE, html("Members only")),
    Page(
        "a small page that says blocked behind cloudflare",
        200,
        BEHIND_CLOUDFLARE,
        html("Your card was blocked", "Help"),
    ),
    Page(
        "a page with cloudflare's detection script",
        200,
        BEHIND_CLOUDFLARE,
        html("<script>a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>", "Shop"),
    ),
    Page(
        "a login form with Turnstile",
        200,
        BEHIND_CLOUDFLARE,
        html('<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script><form>', "Log in"),
    ),
    Page("202 of an API", 202, {**JSON, "x-amzn-requestid": "x"}, b'{"id":7}'),
    Page("202 of an API, no body", 202, {"x-amzn-requestid": "x", "Server": "awselb/2.0"}, b""),
    Page("405 of an API", 405, {**JSON, "Allow": "GET", "x-amzn-requestid": "x"}, b'{"message":"Method Not Allowed"}'),
    Page("a shop's queue page with 503", 503, HTML, html("You are in a queue. Please wait.", "Queue")),
    Page("a page DataDome let through", 200, {**HTML, "X-DataDome": "protected", "Set-Cookie": "datadome=x"}, ARTICLE),
    Page("403 of a site that DataDome protects", 403, {**JSON, "X-DataDome": "protected"}, b'{"error":"login"}'),
    Page(
        "a page with DataDome's tag",
        200,
        HTML,
        html(
            "<script>window.ddjskey='x'</script><script src='https://js.datadome.co/tags.js'></script> dd.js datadome"
        ),
    ),
    Page(
        "a page with PerimeterX's tag",
        200,
        HTML,
        html("<script>window._pxAppId='PX'</script>client.perimeterx.net/PX/"),
    ),
    Page("JSON with the same keys in a download", 200, JSON, _PERIMETERX_JSON),
    Page(
        "a big page with Imperva's script",
        200,
        {**HTML, "X-Iinfo": "1-2-0", "X-CDN": "Imperva"},
        padded(b'<html><script src="/_Incapsula_Resource?SWJIYLWA=7"></script>', 9_000),
    ),
    Page(
        "a small page with Imperva's script",
        200,
        {**HTML, "X-Iinfo": "1-2-0"},
        html('Welcome to our shop<script src="/_Incapsula_Resource?SWJIYLWA=7"></script>', "Shop"),
    ),
    Page("an API's own 'request unsuccessful'", 403, JSON, b'{"message":"Request unsuccessful"}'),
    Page("a page from Sucuri's cache", 200, {**HTML, "X-Sucuri-Cache": "HIT", "X-Sucuri-ID": "1"}, ARTICLE),
    Page("403 of a site behind Sucuri", 403, {**HTML, "X-Sucuri-ID": "1", "Server": "Sucuri/Cloudproxy"}, html("No")),
    Page("Akamai's redirect", 301, {"Server": "AkamaiGHost", "Location": "https://example.test/"}, b""),
    Page("a page from Akamai", 200, {**HTML, "Server": "AkamaiGHost", "Set-Cookie": "_abck=x; Path=/"}, ARTICLE),
    Page("another server's access denied", 403, HTML, html("<h1>Access Denied</h1>", "Access Denied")),
    Page("BIG-IP's redirect", 302, {"Server": "BigIP", "Location": "/"}, b""),
    Page(
        "a page through BIG-IP", 200, {**HTML, "Server": "BIG-IP", "Set-Cookie": "BIGipServerpool=1; TS012f=x"}, ARTICLE
    ),
    Page("a long article that quotes F5", 200, HTML, padded(html(_F5), 120_000)),
    Page(
        "an article that quotes F5 in part",
        200,
        HTML,
        html("'The requested URL was rejected', with a support ID, is F5's."),
    ),
    Page("a page Kasada let through", 200, {**HTML, "x-kpsdk-ct": "x", "x-kpsdk-r": "1"}, ARTICLE),
    Page("a shop's own 429", 429, HTML, html('<script src="/js/tooltips.js?v=2"></script>Too many requests')),
    Page(
        "a page Anubis let through",
        200,
        {**HTML, "Set-Cookie": "techaro.lol-anubis-auth=x; Path=/"},
        html("Forum", "Git"),
    ),
    Page("a page from Vercel", 200, {**HTML, "X-Vercel-Id": "x"}, ARTICLE),
    Page("403 of a site behind Azure", 403, {**HTML, "X-Azure-Ref": "x"}, html("Forbidden")),
    Page("403 of a site behind Google", 403, {**HTML, "Via": "1.1 google"}, html("Forbidden")),
    Page("a page from DDoS-Guard", 200, {**HTML, "Server": "ddos-guard"}, html("<script></script>", "DDoS-Guard shop")),
    Page("a page from Imunify360", 200, {**HTML, "Server": "imunify360-webshield/1.18"}, ARTICLE),
    Page("a blog with Wordfence", 200, HTML, html("<link href='/wp-content/plugins/wordfence/x.css'>", "Blog")),
    Page("an article about walls", 200, HTML, ARTICLE),
    Page("an article about walls behind Sucuri", 200, {**HTML, "x-sucuri-id": "1"}, ARTICLE),
    Page("150 KiB that quote every mark", 200, HTML, padded(ALL_MARKS, 150 * 1024)),
    Page("a notebook that quotes every mark", 200, JSON, ALL_MARKS),
    Page("a picture with every mark", 403, {"Content-Type": "image/png"}, ALL_MARKS),
    Page("a page that was moved", 404, HTML, ALL_MARKS),
]
