"""What a request that changes something makes invalid: RFC 9111, section 4.4."""

import pytest

from kreuz_sync.cache.invalidation import invalidates

from .cache_values import URL


class TestInvalidates:
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "M-SEARCH", "UNKNOWN"])
    @pytest.mark.parametrize("status", [200, 201, 204, 299, 301, 303, 399])
    def test_every_method_that_is_not_safe_does_if_it_succeeds(self, method, status):
        assert invalidates(method, URL, status, ()) == [URL]

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE"])
    def test_safe_ones_do_not(self, method):
        assert invalidates(method, URL, 200, (("Location", "/a"),)) == []

    @pytest.mark.parametrize("status", [100, 400, 404, 429, 500, 503])
    def test_nor_does_an_error(self, status):
        assert invalidates("POST", URL, status, ()) == []

    @pytest.mark.parametrize("name", ["Location", "content-location"])
    @pytest.mark.parametrize(
        ("reference", "url"),
        [
            ("/a", "https://example.com/a"),
            ("b", "https://example.com/b"),
            ("?q", "https://example.com/page?q"),
            ("https://EXAMPLE.com:443/a", "https://EXAMPLE.com:443/a"),
        ],
    )
    def test_what_the_answer_names_on_the_same_origin_goes_too(self, name, reference, url):
        assert invalidates("POST", URL, 201, ((name, reference),)) == [URL, url]

    @pytest.mark.parametrize(
        "reference",
        [
            "https://example.org/a",
            "http://example.com/a",
            "https://example.com:8443/a",
            "//evil.test/",
            "http://[",
            "",
            URL,
            "https://example.com:port/",
        ],
    )
    def test_never_what_is_on_another_one(self, reference):
        """Otherwise any site could empty the store for others."""
        assert invalidates("POST", URL, 201, (("Location", reference),)) == [URL]

    def test_a_post_that_is_stored_is_a_way_to_read(self):
        assert invalidates("POST", URL, 200, (), posts=True) == []
        assert invalidates("PUT", URL, 200, (), posts=True) == [URL]
