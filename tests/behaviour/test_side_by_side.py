"""The same call made with requests' session and with ours: the same bytes on the wire, the same answer."""

from __future__ import annotations

import inspect
import io
import os
from unittest import mock

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kreuz_sync

from ..loopback import chunked, echo, gzipped, redirect, set_cookies

SAME_AGENT = {"User-Agent": "the same"}


@pytest.fixture
def both():
    """requests' session, and ours without pace."""
    with requests.Session() as theirs, kreuz_sync.Session(throttle=None) as ours:
        for session in (theirs, ours):
            session.headers.update(SAME_AGENT)
        yield theirs, ours


CALLS = {
    "get": ("GET", "/it", {}),
    "params": ("GET", "/it?x=1#f", {"params": {"a": [1, 2], "b": None, "c": "\u00fc &"}}),
    "fields": ("GET", "/it", {"headers": {"B": "1", "a": b"2", "Accept": None, "connection": "close"}}),
    "cookies": ("GET", "/it", {"cookies": {"b": "1", "a": "2"}}),
    "auth": ("GET", "/it", {"auth": ("me", "p\u00fc")}),
    "head": ("HEAD", "/it", {}),
    "delete": ("DELETE", "/it", {}),
    "options": ("OPTIONS", "/it", {"headers": {"Origin": "http://a.test"}}),
    "own method": ("purge", "/it", {}),
    "empty post": ("POST", "/it", {}),
    "form": ("POST", "/it", {"data": {"a": ["1", "2"], "b": "\u00fc"}}),
    "text": ("POST", "/it", {"data": "t\u00fc"}),
    "bytes": ("PUT", "/it", {"data": b"\x00\x01"}),
    "json": ("PATCH", "/it", {"json": {"a": [1, None], "b": "\u00fc"}}),
    "file": ("POST", "/it", {"data": lambda: io.BytesIO(b"0123")}),
    "generator": ("POST", "/it", {"data": lambda: iter([b"ab", b"c"])}),
    "empty generator": ("POST", "/it", {"data": lambda: iter([])}),
    "redirect": ("POST", "/from/302", {"data": {"a": "1"}}),
    "redirect with body": ("POST", "/from/307", {"data": b"x", "headers": {"X": "1"}, "auth": ("a", "b")}),
    "no redirect": ("GET", "/from/301", {"allow_redirects": False}),
    "compressed": ("GET", "/gzip", {}),
    "chunked": ("GET", "/chunks", {"stream": True}),
    "cookies set": ("GET", "/cookies", {}),
    "missing": ("GET", "/missing", {}),
}


class TestOnTheWire:
    @pytest.mark.parametrize("name", list(CALLS))
    def test_a_call_is_the_same(self, both, server, name):
        method, target, how = CALLS[name]
        server.route("/it", echo)
        server.route("/from/*", lambda request: redirect("/it", int(request.path[-3:]), {"Set-Cookie": "h=1; Path=/"}))
        server.route("/gzip", gzipped("text", content_type="text/plain; charset=utf-8"))
        server.route("/chunks", chunked(b"a", b"bc", content_type="text/plain"))
        server.route("/cookies", set_cookies("a=1; Path=/", "b=2"))
        seen, said = [], []
        for session in both:
            before = len(server.requests)
            made = {key: value() if callable(value) else value for key, value in how.items()}
            response = session.request(method, server.url(target), **made)
            seen.append(
                [(one.method, one.target, one.fields.pairs, one.body, one.chunked) for one in server.requests[before:]]
            )
            said.append(_said(response))
        assert seen[0] == seen[1]
        assert said[0] == said[1]

    def test_multipart_is_the_same_but_for_its_boundary(self, both, server):
        bodies = []
        for session in both:
            session.post(server.url(), data={"a": "1"}, files={"f": ("n", b"x", "text/plain")})
            boundary = server.last.fields["Content-Type"].partition("boundary=")[2].encode()
            bodies.append(server.last.body.replace(boundary, b"-"))
        assert bodies[0] == bodies[1]


def _said(response: requests.Response) -> list[object]:
    answers = [*response.history, response]
    return [
        (
            one.status_code,
            one.reason,
            one.url,
            one.encoding,
            one.ok,
            {name: value for name, value in one.headers.items() if name != "Content-Length"},
            one.cookies.get_dict(),
            _without_connection(one.content),
            one.request.method,
            one.request.url,
            list(one.request.headers.items()),
            one.is_redirect,
            one.next and one.next.url,
            len(one.history),
            repr(one),
        )
        for one in answers
    ]


def _without_connection(content: bytes) -> bytes:
    """`echo` tells the connection's number, which grows."""
    return content.partition(b'"connection"')[0]


# --- what is prepared ---------------------------------------------------------------------

words = st.text("abcXYZ-_09", min_size=1, max_size=5)
texts = st.text(max_size=6)
field_values = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=6)
fields = st.dictionaries(words, st.one_of(st.none(), field_values, field_values.map(str.encode)), max_size=4)
values = st.one_of(st.none(), texts, st.integers(), st.lists(texts, max_size=3), st.binary(max_size=3))
pairs = st.one_of(
    st.none(), st.dictionaries(texts, values, max_size=3), st.lists(st.tuples(texts, texts), max_size=3), texts
)
cookies = st.one_of(st.none(), st.dictionaries(words, words, max_size=3))
credentials = st.one_of(st.none(), st.tuples(words, words))
urls = st.one_of(
    st.sampled_from(
        [
            *(
                "http://a.test",
                "http://a.test/?q=1",
                "http://A.TEST:80/b#c",
                "https://b.test/\u00fc",
                "http://u:p@a.test/",
            ),
            *("http://\u00fc.test/", "http://", "a.test", "", "mailto:x", "x://y/z", "http://a.test/%zz"),
        ]
    ),
    texts.map(lambda text: "http://a.test/" + text),
    texts.map(lambda text: "http://" + text),
    texts,
)


class TestPrepared:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        session_has=st.fixed_dictionaries(
            {"headers": fields, "params": pairs, "auth": credentials, "cookies": cookies}
        ),
        request_has=st.fixed_dictionaries(
            {
                "method": st.sampled_from(["GET", "post", "Put", "x"]),
                "url": urls,
                "headers": st.one_of(st.none(), fields),
                "params": pairs,
                "auth": credentials,
                "cookies": cookies,
                "data": pairs,
                "json": st.one_of(st.none(), st.dictionaries(texts, st.integers(), max_size=2), st.just([])),
            }
        ),
    )
    def test_a_request_is_prepared_alike(self, both, session_has, request_has):
        outcomes = [_prepared(session, session_has, request_has) for session in both]
        assert outcomes[0] == outcomes[1]


def _prepared(session: requests.Session, session_has: dict, request_has: dict) -> object:
    session.headers = requests.structures.CaseInsensitiveDict({**SAME_AGENT, **session_has["headers"]})
    session.params = {} if session_has["params"] is None else session_has["params"]
    session.auth = session_has["auth"]
    session.cookies = requests.cookies.cookiejar_from_dict(session_has["cookies"])
    try:
        made = session.prepare_request(requests.Request(**request_has))
    except Exception as error:
        return type(error)
    return made.method, made.url, list(made.headers.items()), made.body, made.hooks, made._cookies.get_dict()


# --- what the environment says ------------------------------------------------------------

proxy_tables = st.dictionaries(
    st.sampled_from(["http", "https", "all", "no_proxy", "http://a.test", "no"]),
    st.one_of(st.none(), st.sampled_from(["http://p:1", "http://q:2", "a.test", ""])),
    max_size=3,
)
variables = st.dictionaries(
    st.sampled_from(
        [
            "http_proxy",
            "HTTP_PROXY",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "NO_PROXY",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
        ]
    ),
    st.sampled_from(["http://e:1", "http://f:2", "a.test", "*", "127.0.0.0/8", "b.test,c.test:8080", ""]),
    max_size=4,
)
flags = st.sampled_from([None, True, False])


class TestTheEnvironment:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        url=st.sampled_from(
            ["http://a.test/", "https://b.test/x", "http://127.0.0.1:1/", "http://c.test:8080", "x://y"]
        ),
        environment=variables,
        proxies=proxy_tables,
        session_proxies=proxy_tables,
        stream=flags,
        verify=st.sampled_from([None, True, False, "bundle"]),
        session_verify=st.sampled_from([True, False, "other"]),
        cert=st.sampled_from([None, "c", ("c", "k")]),
        trust=st.booleans(),
    )
    def test_settings_are_merged_alike(
        self, both, url, environment, proxies, session_proxies, stream, verify, session_verify, cert, trust
    ):
        with mock.patch.dict(os.environ, environment):
            merged = []
            for session in both:
                session.proxies, session.verify, session.trust_env = dict(session_proxies), session_verify, trust
                settings_ = session.merge_environment_settings(url, dict(proxies), stream, verify, cert)
                merged.append({**settings_, "proxies": dict(settings_["proxies"] or {})})
            assert merged[0] == merged[1]


# --- what can be called -------------------------------------------------------------------


class TestThePublicSurface:
    def test_every_public_name_of_the_session_is_there(self, both):
        theirs, ours = both
        assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))

    def test_every_public_name_of_the_response_is_there(self, both, server):
        theirs, ours = (session.get(server.url()) for session in both)
        assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))

    def test_every_public_name_of_the_adapter_is_there(self, both):
        theirs, ours = (session.get_adapter("http://a.test/") for session in both)
        for name in dir(theirs):
            if not name.startswith("_"):
                assert hasattr(ours, name), name

    @pytest.mark.parametrize("name", ["get", "options", "head", "post", "put", "patch", "delete", "request"])
    def test_functions_of_the_front_page_take_the_same_arguments(self, name):
        theirs, ours = (inspect.signature(getattr(module, name)) for module in (requests, kreuz_sync))
        positional = [one.name for one in theirs.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert [one for one in ours.parameters if one in positional] == positional

    def test_the_front_page_has_the_same_names(self):
        wanted = "get options head post put patch delete request session Session Request PreparedRequest Response codes"
        wanted += " exceptions utils adapters cookies structures RequestException HTTPError ConnectionError Timeout"
        wanted += " ConnectTimeout ReadTimeout TooManyRedirects URLRequired JSONDecodeError"
        for name in wanted.split():
            assert hasattr(requests, name)
            assert hasattr(kreuz_sync, name), name
