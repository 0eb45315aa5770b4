"""How long a response is kept: the settings."""

import pickle
import re

import pytest

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
            (re.compile(r"\.json(\?|$)"), "https://example.com/a.json?b", True),
            (re.compile(r"^example"), "https://example.com/", False),
        ],
    )
    def test_a_pattern_is_for_a_host_a_path_or_a_whole_url(self, pattern, url, matches):
        assert Policy(ttl=1, ttl_by_url={pattern: 7}).ttl_of(url) == (7.0 if matches else 1.0)

    def test_the_first_that_matches_counts(self):
        policy = Policy(ttl_by_url={"example.com/a/*": None, "example.com/*": 0, "*": 5})
        urls = ("https://example.com/a/b", "https://example.com/b", "https://example.org/")
        assert [policy.ttl_of(url) for url in urls] == [None, 0.0, 5.0]
