"""How long a response is kept: the settings."""

import contextlib
import pickle
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.cache.policy import Policy


class TestPolicy:
    def test_an_hour_whatever_the_server_says_unless_told_otherwise(self):
        assert (Policy().name, Policy().ttl, Policy().keeps_time) == ("ttl", 3600.0, True)

    def test_only_the_standard_s_own_policy_serves_stale_when_disconnected(self):
        """RFC 9111, section 4.2.4, allows it; a fixed time is a promise."""
        assert Policy("rfc9111").stale_if_disconnected == 86_400.0
        assert Policy().stale_if_disconnected == 0.0
        assert Policy(stale_if_disconnected=5).stale_if_disconnected == 5.0

    @pytest.mark.parametrize(
        ("arguments", "error", "named"),
        [
            ({"name": "hours"}, ValueError, "policy='hours'"),
            ({"ttl": -1}, ValueError, "ttl=-1"),
            ({"ttl": float("inf")}, ValueError, "ttl=inf"),
            ({"ttl": "60"}, TypeError, "ttl='60'"),
            ({"ttl_by_url": [("a", 1)]}, TypeError, "ttl_by_url="),
            ({"ttl_by_url": {"a": "1"}}, TypeError, r"ttl_by_url\['a'\]='1'"),
            ({"ttl_by_url": {5: 1}}, TypeError, "ttl_by_url: 5"),
            ({"ttl_by_url": {"": 1}}, TypeError, "ttl_by_url: ''"),
            ({"ttl_by_url": {re.compile(b"x"): 1}}, TypeError, "ttl_by_url: "),
            ({"keep_no_store": 1}, TypeError, "keep_no_store=1"),
            ({"stale_if_error": -1}, ValueError, "stale_if_error=-1"),
            ({"heuristic_fraction": -0.1}, ValueError, "heuristic_fraction=-0.1"),
            ({"heuristic_cap": None}, TypeError, "heuristic_cap=None"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, arguments, error, named):
        with pytest.raises(error, match=named):
            Policy(**arguments)

    def test_it_is_fixed_compared_and_pickled_by_its_values(self):
        policy = Policy(ttl_by_url={"example.com": 60, re.compile("x"): None})
        assert pickle.loads(pickle.dumps(policy)) == policy
        assert hash(policy) == hash(Policy(ttl_by_url={"example.com": 60, re.compile("x"): None}))
        assert policy != Policy()
        with pytest.raises(AttributeError):
            policy.ttl = 5.0

    def test_a_duration_may_be_a_timedelta(self):
        day = timedelta(days=1)
        policy = Policy(ttl=day, ttl_by_url={"example.com": timedelta(0)}, stale_if_error=day)
        assert policy == Policy(ttl=86_400, ttl_by_url={"example.com": 0}, stale_if_error=86_400)
        with pytest.raises(ValueError, match="ttl=-60"):
            Policy(ttl=timedelta(seconds=-60))


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "url", "matches"),
        [
            ("example.com", "https://example.com/", True),
            ("example.com", "https://example.com/a?b#c", True),
            ("example.com", "http://example.com:8080/a", True),
            ("example.com", "https://www.example.com/", False),
            ("example.com", "https://example.com.evil.test/", False),
            ("Example.COM", "https://example.com/", True),
            ("*.example.com", "https://www.example.com/a", True),
            ("*.example.com", "https://example.com/a", False),
            ("*.example.com", "https://evil.test/www.example.com", False),
            ("*.example.com", "https://evil.test?www.example.com", False),
            ("example.com:8080", "http://example.com:8080/a", True),
            ("example.com:8080", "http://example.com/a", False),
            ("example.com/news/*", "https://example.com/news/1?page=2", True),
            ("example.com/news/*", "https://example.com/NEWS/1", False),
            ("example.com/news/*", "https://example.com/old/news/1", False),
            ("*/news/*", "https://example.com/news/1", True),
            ("*/news/*", "https://example.com/old/news/1", False),
            ("example.com/*.png", "https://example.com/a/b.png", True),
            ("example.com/*.png", "https://example.com/a/b.png?c", False),
            ("example.com/a?b=*", "https://example.com/a?b=1", True),
            ("example.com/a?b=*", "https://example.com/aXb=1", False),
            ("https://example.com/*", "https://example.com/a", True),
            ("https://example.com/*", "http://example.com/a", False),
            ("http*://example.com/*", "https://example.com/a", True),
            ("*", "https://example.com/a", True),
            ("example.com/a", "https://example.com/a?b=1", False),
            ("example.com/a*", "https://example.com/a?b=1", True),
            ("example.com/go?to=https://a.test/*", "https://example.com/go?to=https://a.test/x", True),
            ("https://example.com:443/*", "https://example.com/a", True),
            ("http://example.com:443/*", "http://example.com:443/a", True),
            ("example.com:80*/*", "http://example.com:8080/a", True),
            ("[::1]/*", "http://[::1]:8080/a", True),
            ("[::1]:8080", "http://[::1]:8080/a", True),
            ("[::1]:8080", "http://[::1]/a", False),
            ("example.com/%7Euser/é x", "https://example.com/~user/%C3%A9%20x", True),
            (re.compile(r"\.json(\?|$)"), "https://example.com/a.json?b", True),
            (re.compile(r"^example"), "https://example.com/", False),
        ],
    )
    def test_a_pattern_is_for_a_host_a_path_or_a_whole_url(self, pattern, url, matches):
        assert Policy(ttl=1, ttl_by_url={pattern: 7}).ttl_of(url) == (7.0 if matches else 1.0)

    @pytest.mark.parametrize(
        ("pattern", "told"),
        [
            ("/count*", r"it begins with a host: '\*/count\*' is for all hosts"),
            ("?a=1", r"it begins with a host: '\*/\?a=1' is for all hosts"),
            ("https:///count", "it begins with a host"),
            ("https://", "it begins with a host"),
            (":8080/a", "it begins with a host, as in 'example.com/news/\\*'"),
            ("http:/example.com/a", "it begins with a host, as in"),
            ("example.com:port/a", "and perhaps a port"),
            ("example com/a", "it begins with a host, as in"),
            ("example.com?a=*", r"a path is between the host and the query, as in 'example.com/\?a=\*'"),
            ("example.com/a#top", "what follows # is not sent"),
            ("me:pw@example.com/a", "the user of a URL is left out"),
            ("exämple.com/a", "with 'xn--'"),
        ],
    )
    def test_one_that_matches_no_url_is_refused_and_says_what_would(self, pattern, told):
        with pytest.raises(ValueError, match=f"ttl_by_url: .* is no pattern of any URL: .*{told}"):
            Policy(ttl_by_url={pattern: 1})

    @given(st.text("a*.:/?[]-é%", min_size=1, max_size=12))
    def test_whatever_is_let_pass_is_a_pattern(self, text):
        with contextlib.suppress(ValueError):
            Policy(ttl_by_url={text: 1}).ttl_of("https://example.com/")

    def test_the_first_that_matches_counts(self):
        policy = Policy(ttl_by_url={"example.com/a/*": None, "example.com/*": 0, "*": 5})
        urls = ("https://example.com/a/b", "https://example.com/b", "https://example.org/")
        assert [policy.ttl_of(url) for url in urls] == [None, 0.0, 5.0]
