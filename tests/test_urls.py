"""What is read off a URL."""

import pytest

from kreuz_sync.urls import SECRET_QUERY_NAMES, host_of, origin_of, redact, redact_text, site_of


class TestHost:
    """The key of a pace: one name for one host."""

    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("http://example.test/a", "example.test"),
            ("http://EXAMPLE.test./a", "example.test"),
            ("https://example.test:8443/", "example.test"),
            ("http://me:pw@example.test/", "example.test"),
            ("http://api.example.test/", "api.example.test"),
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://BÜCHER.example/", "xn--bcher-kva.example"),
            ("http://[2001:DB8::1]:80/", "2001:db8::1"),
            ("http://straße.de/", "xn--strae-oqa.de"),  # as requests sends it; IDNA 2003 says strasse.de
            ("http://example.test?a=/b", "example.test"),
            ("http://example.test#/b", "example.test"),
            ("HTTP://example.test", "example.test"),
            ("mailto:nobody", ""),
        ],
    )
    def test_spellings_of_a_host_are_one_key(self, url, host):
        """Case, trailing dot, port, user information and IDN form do not make another host."""
        assert host_of(url) == host

    def test_a_name_that_idna_refuses_is_still_a_key(self):
        """A label too long for DNS can't be looked up, but it must not raise here."""
        assert host_of("http://" + "ü" * 70 + ".example/") == "ü" * 70 + ".example"


class TestOrigin:
    """RFC 9110, section 4.3.1: scheme, host and port."""

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("http://a.test/", "http://A.test:80/x", True),
            ("https://a.test/", "https://a.test.:443/", True),
            ("http://a.test/", "https://a.test/", False),
            ("http://a.test/", "http://a.test:8080/", False),
            ("http://a.test/", "http://b.test/", False),
        ],
    )
    def test_default_ports_are_filled_in(self, one, other, same):
        """An origin with its default port written is the same origin."""
        assert (origin_of(one) == origin_of(other)) is same


class TestSite:
    def test_long_urls_are_not_remembered(self):
        """What is remembered of a URL is its host, however long the rest."""
        for number in range(50):
            host_of(f"http://h.test/{number}" + "x" * 100_000)
            origin_of(f"http://h.test/{number}" + "x" * 100_000)
        assert site_of("http://h.test/" + "x" * 100_000) == "http://h.test"


class TestRedact:
    """What may be shown of a URL."""

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("http://h/a?q=1", "http://h/a?q=1"),
            ("http://u:p@h/?sig=abc&q=1", "http://REDACTED@h/?sig=REDACTED&q=1"),
            ("http://u:p@ss@h/", "http://REDACTED@h/"),
            ("http://h/?TOKEN=t&x=1#f", "http://h/?TOKEN=REDACTED&x=1#f"),
            ("http://h/?next=http://u:p@other/", "http://h/?next=http://REDACTED@other/"),
            ("//u:p@h/", "//REDACTED@h/"),
            ("http://h/#access_token=t&state=1", "http://h/#access_token=REDACTED&state=1"),
            ("http://h/a;jsessionid=s3?q=1", "http://h/a;jsessionid=REDACTED"),
            ("http://h/a@b", "http://h/a@b"),
            ("http://h/?q=tokens&monkey=1", "http://h/?q=tokens&monkey=1"),
        ],
    )
    def test_credentials_go_and_the_rest_stays(self, url, shown):
        """User information and the values of secret query names are replaced, names kept."""
        assert redact(url) == shown

    @pytest.mark.parametrize("name", sorted(SECRET_QUERY_NAMES))
    def test_every_listed_name_is_redacted(self, name):
        """In any case: servers do not agree on it."""
        assert "s3cret" not in redact(f"http://h/?a=1&{name.upper()}=s3cret&{name}=s3cret")


class TestRedactText:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("Failed to parse: http://user:pa/ss3cret@host.test/", "Failed to parse: http://REDACTED@host.test/"),
            ("found for 'me:s3cret@h.test'", "found for 'REDACTED@h.test'"),
            ("nothing here", "nothing here"),
        ],
    )
    def test_what_looks_like_a_password_goes(self, text, shown):
        assert redact_text(text) == shown
