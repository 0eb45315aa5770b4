"""Settings for some hosts: names, patterns, and what is wrong with others."""

import pickle

import pytest

from kreuz_sync.throttle import HostSettings, Throttle
from kreuz_sync.throttle.hosts import RuleTable
from kreuz_sync.throttle.pace import PaceRules


def table(hosts, folded=True):
    return RuleTable(hosts, PaceRules(delay=0.2), folded=folded)


class TestFinding:
    @pytest.mark.parametrize(
        ("host", "delay"),
        [
            ("example.com", 1.0),
            ("www.example.com", 2.0),
            ("a.b.example.com", 2.0),
            ("api.example.com", 3.0),
            ("v1.api.example.com", 4.0),
            ("v1.old.api.example.com", 4.0),
            ("badexample.com", 0.2),
            ("com", 0.2),
            ("example.org", 0.2),
        ],
    )
    def test_a_name_comes_before_a_pattern_and_a_longer_pattern_before_a_shorter(self, host, delay):
        hosts = {"*.example.com": 2.0, "example.com": 1.0, "*.api.example.com": 4.0, "api.example.com": 3.0}
        assert table(hosts).find(host).delay == delay

    @pytest.mark.parametrize("written", ["EXAMPLE.com", "example.com.", "Example.COM."])
    def test_names_are_folded_as_those_of_urls_are(self, written):
        assert table({written: 1.0}).find("example.com").delay == 1.0

    def test_international_names_are_folded_too(self):
        found = table({"*.bücher.example": 1.0}).find("www.xn--bcher-kva.example")
        assert found.delay == 1.0

    @pytest.mark.parametrize("written", ["::1", "[::1]"])
    def test_an_address_is_a_name(self, written):
        assert table({written: 1.0}).find("::1").delay == 1.0

    def test_the_names_of_an_own_key_are_taken_as_they_are(self):
        found = table({"Shard-A": 1.0, "http://x:80/": 2.0}, folded=False)
        assert found.find("Shard-A").delay == 1.0
        assert found.find("shard-a").delay == 0.2
        assert found.find("http://x:80/").delay == 2.0

    def test_settings_replace_only_what_they_name(self):
        rules = table({"slow.example": HostSettings(concurrency=2, max_wait=5)}).find("slow.example")
        assert rules == PaceRules(delay=0.2, concurrency=2, max_wait=5.0)


class TestBadInput:
    @pytest.mark.parametrize(
        ("hosts", "error", "says"),
        [
            ("example.com", TypeError, "a mapping is wanted"),
            ([("example.com", 1)], TypeError, "a mapping is wanted"),
            ({1: 1.0}, TypeError, "a string is wanted"),
            ({"": 1.0}, ValueError, "not empty"),
            ({"*": 1.0}, ValueError, "`delay` is for all others"),
            ({"*.": 1.0}, ValueError, "`delay` is for all others"),
            ({"www.*.com": 1.0}, ValueError, "'*.' and a name"),
            ({"http://example.com/": 1.0}, ValueError, "without scheme, port or path"),
            ({"example.com:8080": 1.0}, ValueError, "without scheme, port or path"),
            ({"exam ple.com": 1.0}, ValueError, "without scheme, port or path"),
            ({"example.com": None}, TypeError, "seconds or HostSettings"),
            ({"example.com": "1"}, TypeError, "seconds or HostSettings"),
            ({"example.com": True}, TypeError, "example.com"),
            ({"example.com": -1}, ValueError, "example.com"),
            ({"example.com": float("nan")}, ValueError, "example.com"),
        ],
    )
    def test_the_error_names_the_entry_and_what_would_be_right(self, hosts, error, says):
        with pytest.raises(error) as caught:
            Throttle(hosts=hosts)
        assert says in str(caught.value)
        assert "hosts" in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("delay", -1, ValueError),
            ("delay", "1", TypeError),
            ("max_delay", 0, ValueError),
            ("max_wait", float("inf"), ValueError),
            ("concurrency", 0, ValueError),
            ("concurrency", 1.5, TypeError),
        ],
    )
    def test_settings_of_a_host_are_checked(self, name, value, error):
        with pytest.raises(error, match=name):
            HostSettings(**{name: value})

    def test_an_unknown_setting_is_an_error(self):
        with pytest.raises(TypeError, match="burst"):
            HostSettings(burst=3)


class TestHostSettings:
    def test_they_are_fixed_and_compare_by_value(self):
        settings = HostSettings(delay=1)
        assert settings == HostSettings(delay=1.0)
        with pytest.raises(AttributeError, match="fixed"):
            settings.delay = 2

    def test_they_pickle(self):
        settings = HostSettings(delay=1, concurrency=3)
        assert pickle.loads(pickle.dumps(settings)) == settings
