"""Under which key a response is kept: the URI in its normal form, and who asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests import Request, Session
from requests.structures import CaseInsensitiveDict

from kreuz_sync.cache.ask import Ask
from kreuz_sync.cache.keys import Keys
from kreuz_sync.cache.uris import canonical, listed

from .cache_values import KEYS, URL, ask

_PATHS = st.text(alphabet="ab/.%7E~é?&=#@: ", max_size=30)


def sent(url=URL, **parts):
    """A request as requests prepares it, seen by the cache."""
    request = Session().prepare_request(Request("GET", url, **parts))
    return Ask(request.method, request.url, request.headers)


class TestCanonical:
    """RFC 3986, sections 6.2.2 and 6.2.3, and nothing beyond."""

    @pytest.mark.parametrize(
        ("url", "form"),
        [
            ("HTTP://Example.COM/A", "http://example.com/A"),
            ("http://example.com", "http://example.com/"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:0443/", "https://example.com/"),
            ("http://example.com:443/", "http://example.com:443/"),
            ("http://example.com:/", "http://example.com/"),
            ("http://[::1]:80/a", "http://[::1]/a"),
            ("http://[::1]:8080/a", "http://[::1]:8080/a"),
            ("http://example.com/%7euser", "http://example.com/~user"),
            ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
            ("http://example.com/?q=%7e%2f", "http://example.com/?q=~%2F"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/a/..", "http://example.com/"),
            ("http://example.com/../a", "http://example.com/a"),
            ("http://example.com/.well-known/x", "http://example.com/.well-known/x"),
            ("http://example.com/a#part", "http://example.com/a"),
            ("http://me:pw@example.com/", "http://example.com/"),
            ("http://example.com/?b=2&a=1&b=2", "http://example.com/?b=2&a=1&b=2"),
            ("http://example.com/?", "http://example.com/?"),
            ("http://example.com//a", "http://example.com//a"),
            ("http://example.com:port/a", "http://example.com:port/a"),
            ("mailto:me", "mailto:me"),
            ("", ""),
        ],
    )
    def test_form(self, url, form):
        assert canonical(url) == form

    @pytest.mark.parametrize(
        ("url", "form"),
        [
            ("http://h/?utm_source=x&a=1&token=s", "http://h/?a=1"),
            ("http://h/?utm_source=x", "http://h/"),
            ("http://h/?xutm_source=x&Token=s", "http://h/?xutm_source=x&Token=s"),
            ("http://h/?to%6ben=s&a", "http://h/?a"),
            ("http://h/?token", "http://h/"),
        ],
    )
    def test_ignored_query_parameters_make_no_difference(self, url, form):
        assert canonical(url, ("utm_*", "token")) == form

    @given(st.sampled_from(["http://h", "HTTPS://H:443", "http://u@h:1", ""]), _PATHS)
    def test_the_form_of_the_form_is_the_form(self, start, rest):
        """And nothing raises."""
        form = canonical(start + rest)
        assert canonical(form) == form

    @given(st.text(alphabet="abcXYZ019-._~", min_size=1, max_size=10))
    def test_escaping_what_needs_none_makes_no_difference(self, name):
        escaped = "".join(f"%{ord(character):02x}" for character in name)
        assert canonical(f"http://h/x{name}?{name}") == canonical(f"http://h/x{escaped}?{escaped}")

    @given(st.text(max_size=60))
    def test_no_text_raises(self, text):
        canonical(text)
        canonical(f"http://{text}", ("a*",))
        listed(f"http://{text}", ("a*",))


class TestListed:
    def test_no_user_and_no_secret_is_shown(self):
        url = "https://me:pw@example.com/a?access_token=s3cret&utm_id=7&q=1"
        assert listed(url, ("utm_*",)) == "https://example.com/a?access_token=REDACTED&utm_id=REDACTED&q=1"


class TestUri:
    def test_what_is_one_uri_has_one_key_and_what_is_not_has_another(self):
        same = ["https://example.com/page", "HTTPS://EXAMPLE.com:443/./page#x", "https://example.com/p%61ge"]
        assert len({KEYS.primary(ask(url=url)) for url in same}) == 1
        assert KEYS.primary(ask(url=URL)) != KEYS.primary(ask(url=URL + "/"))

    def test_head_has_the_key_of_get(self):
        assert KEYS.primary(ask("HEAD")) == KEYS.primary(ask())

    def test_a_key_shows_nothing_and_cannot_be_checked_without_the_secret(self):
        key = KEYS.primary(ask(url="https://example.com/?sig=s3cret", authorization="Bearer s3cret"))
        other = Keys(b"another secret of another store").primary(ask(url="https://example.com/?sig=s3cret"))
        assert "s3cret" not in key
        assert not key.startswith(other)

    def test_all_that_is_kept_for_a_uri_begins_with_its_key(self):
        uri = KEYS.uri(KEYS.canonical(URL))
        mine = KEYS.primary(ask(authorization="Bearer a"))
        every = [KEYS.primary(ask()), mine, KEYS.secondary(mine, ("accept",), "x"), KEYS.posted(ask("POST"), b"q")]
        assert all(key.startswith(uri) for key in every)
        assert len(set(every)) == 4

    def test_the_user_s_own_key_takes_the_place_of_the_uri_but_not_of_who_asks(self):
        one, other = (KEYS.primary(ask(url=url, cookie="a=b"), text="page") for url in (URL, URL + "?x"))
        assert one == other != KEYS.primary(ask(), text="page")

    def test_a_secret_that_is_none_is_refused(self):
        with pytest.raises(ValueError, match="16 to 64 bytes"):
            Keys(b"short")


class TestIdentity:
    def test_two_tokens_and_none_are_three(self):
        keys = {
            KEYS.primary(sent(headers=fields)) for fields in ({}, *({"Authorization": f"Bearer {t}"} for t in "AB"))
        }
        assert len(keys) == 3

    @pytest.mark.parametrize(
        "parts",
        [
            {"headers": {"Authorization": "Bearer x"}},
            {"headers": {"X-API-Key": "x"}},
            {"headers": {"Private-Token": "x"}},
            {"headers": {"X-Auth": "x"}},
            {"headers": {"Ocp-Apim-Subscription-Key": "x"}},
            {"headers": {"X-Session-Id": "x"}},
            {"headers": {"x-api-key": b"x"}},
            {"cookies": {"sid": "x"}},
            {"auth": ("me", "x")},
        ],
    )
    def test_whatever_carries_credentials_counts(self, parts):
        assert KEYS.primary(sent(**parts)) != KEYS.primary(sent())

    def test_a_user_in_the_url_counts(self):
        assert KEYS.primary(ask(url="https://me@example.com/page")) != KEYS.primary(ask())

    def test_a_client_certificate_counts(self):
        assert KEYS.primary(Ask("GET", URL, {}, "me.pem")) != KEYS.primary(Ask("GET", URL, {}))

    @pytest.mark.parametrize(
        "fields",
        [
            {"Accept": "text/plain"},
            {"User-Agent": "x"},
            {"Sec-WebSocket-Key": "x"},
            {"Proxy-Authorization": "Basic x"},
            {"Keyboard": "x"},
            {"Content-Type": "x"},
        ],
    )
    def test_other_fields_do_not(self, fields):
        assert KEYS.identity(sent(headers=fields)) == ""

    def test_a_field_that_the_user_names_does(self):
        keys = Keys(bytes(16), identity_fields=["X-Customer"])
        assert keys.identity(ask(x_customer="7")) != keys.identity(ask(x_customer="8")) != ""

    @pytest.mark.parametrize("scheme", ["Digest", "AWS4-HMAC-SHA256", "OAuth", "negotiate"])
    def test_credentials_for_one_request_have_no_key(self, scheme):
        """With a nonce in it nothing tells the next request of the same user from anybody's."""
        assert KEYS.primary(ask(authorization=f"{scheme} nonce=1")) is None
        assert KEYS.posted(ask("POST", authorization=f"{scheme} nonce=1"), b"") is None

    def test_the_order_of_cookies_means_nothing_but_their_values_do(self):
        assert KEYS.identity(ask(cookie="a=1; b=2")) == KEYS.identity(ask(cookie="b=2;a=1"))
        assert KEYS.identity(ask(cookie="a=1; b=2")) != KEYS.identity(ask(cookie="a=2; b=1"))

    def test_cookies_of_counters_and_load_balancers_tell_nothing(self):
        """They are often new in each answer: no page of such a site would ever be found again."""
        assert KEYS.identity(ask(cookie="_ga=GA1.2; AWSALBCORS=x")) == ""
        assert KEYS.identity(ask(cookie="_ga=1; sid=7")) == KEYS.identity(ask(cookie="sid=7; _ga=2"))
        assert Keys(bytes(16), ignored_cookies=()).identity(ask(cookie="_ga=1")) != ""

    def test_only_who_shows_nothing_but_cookies_may_have_what_is_for_anybody(self):
        assert KEYS.anonymous(ask(cookie="a=1")) == KEYS.primary(ask())
        assert KEYS.anonymous(ask(cookie="a=1", authorization="Bearer x")) is None
        assert KEYS.anonymous(ask(url="https://me@example.com/", cookie="a=1")) is None
        assert KEYS.anonymous(Ask("GET", URL, {"Cookie": "a=1"}, "me.pem")) is None
        assert KEYS.anonymous(ask()) is None


class TestPosted:
    def test_the_body_and_its_type_are_part_of_the_key(self):
        form = ask("POST", content_type="application/x-www-form-urlencoded")
        json = ask("POST", content_type="application/json")
        keys = [KEYS.posted(form, "a"), KEYS.posted(form, "b"), KEYS.posted(json, "a"), KEYS.posted(form, None)]
        assert len(set(keys)) == 4
        assert KEYS.posted(form, "a") == KEYS.posted(form, b"a")

    def test_a_stream_has_no_key_and_is_not_read(self):
        stream = iter([b"a"])
        assert KEYS.posted(ask("POST"), stream) is None
        assert next(stream) == b"a"


class TestAsk:
    def test_what_requests_sends_by_default_is_plain(self):
        assert sent().plain

    @pytest.mark.parametrize("name", ["Cache-Control", "pragma", "RANGE", "If-None-Match", "If-Match"])
    def test_what_speaks_to_a_cache_is_not(self, name):
        assert not Ask("GET", URL, CaseInsensitiveDict({name: "x"})).plain

    @pytest.mark.parametrize(
        ("fields", "has_body"),
        [
            ({}, False),
            ({"Content-Length": "0"}, False),
            ({"Content-Length": "5"}, True),
            ({"Transfer-Encoding": "c"}, True),
        ],
    )
    def test_a_body_shows_in_the_fields(self, fields, has_body):
        assert Ask("GET", URL, fields).has_body == has_body

    def test_a_value_of_bytes_is_read_as_text(self):
        assert Ask("GET", URL, {"Cache-Control": b"no-cache"}).directives.no_cache
        assert Ask("GET", URL, {"X": "a"}).get("x") == "a"
