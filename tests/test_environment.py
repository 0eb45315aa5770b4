"""What is remembered of the environment, and that every change is seen at the next call."""

import os
import time

import pytest
from requests.utils import get_environ_proxies

from kreuz_sync import environment
from kreuz_sync.environment import Environment

from .fakes import FakeClock

URL = "http://example.test/a"


@pytest.fixture
def netrc_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    def write(text, age_s=100):
        path = tmp_path / "netrc"
        path.write_text(text)
        os.utime(path, (path.stat().st_mtime - age_s,) * 2)
        return path

    return write


@pytest.fixture
def counted(monkeypatch):
    """How often requests' own look-ups run."""
    counts = {"get_environ_proxies": 0, "get_netrc_auth": 0}
    for name in counts:
        original = getattr(environment, name)

        def count(*args, _name=name, _original=original, **options):
            counts[_name] += 1
            return _original(*args, **options)

        monkeypatch.setattr(environment, name, count)
    return counts


@pytest.mark.skipif(environment._PROXIES_ELSEWHERE, reason="proxies are looked up for every call here")
class TestProxies:
    def test_they_are_looked_up_once_a_host(self, counted):
        known = Environment()
        for path in ("a", "b", "a?x=1"):
            known.proxies(f"http://example.test/{path}", None)
        known.proxies("http://other.test/", None)
        assert counted["get_environ_proxies"] == 2

    @pytest.mark.parametrize(
        "name", ["http_proxy", "HTTP_PROXY", "all_proxy", "Http_Proxy", "no_proxy", "NO_PROXY", "REQUEST_METHOD"]
    )
    def test_a_variable_that_is_set_changed_or_unset_is_seen(self, name, monkeypatch):
        """Whatever the variable, the next answer is what requests would say."""
        monkeypatch.setenv("https_proxy", "http://p.test:1")
        known = Environment()
        assert known.proxies(URL, None) == get_environ_proxies(URL)
        for value in ("http://q.test:2", "http://r.test:3", "example.test", "*"):
            monkeypatch.setenv(name, value)
            assert known.proxies(URL, None) == get_environ_proxies(URL)
        monkeypatch.delenv(name)
        assert known.proxies(URL, None) == get_environ_proxies(URL)

    def test_two_variables_that_swap_values_are_seen(self, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://p.test:1")
        monkeypatch.setenv("SOMETHING", "http://q.test:2")
        known = Environment()
        known.proxies(URL, None)
        monkeypatch.setenv("http_proxy", "http://q.test:2")
        monkeypatch.setenv("SOMETHING", "http://p.test:1")
        assert known.proxies(URL, None)["http"] == "http://q.test:2"

    def test_an_environment_put_in_its_place_is_seen(self, monkeypatch):
        known = Environment()
        known.proxies(URL, None)
        monkeypatch.setattr(os, "environ", {"http_proxy": "http://p.test:1"})
        assert known.proxies(URL, None)["http"] == "http://p.test:1"

    def test_the_calls_own_no_proxy_is_part_of_the_question(self, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://p.test:1")
        known = Environment()
        assert known.proxies(URL, None) != {}
        assert known.proxies(URL, "example.test") == {}

    def test_the_port_is_part_of_the_question(self, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://p.test:1")
        monkeypatch.setenv("no_proxy", "example.test:8080")
        known = Environment()
        assert known.proxies("http://example.test:8080/", None) == {}
        assert known.proxies("http://example.test:8081/", None) != {}

    def test_what_a_caller_does_with_the_dict_is_not_remembered(self, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://p.test:1")
        known = Environment()
        known.proxies(URL, None)["http"] = "changed"
        assert known.proxies(URL, None)["http"] == "http://p.test:1"

    def test_the_memory_is_bounded(self, monkeypatch):
        monkeypatch.setattr(environment, "HOSTS_KEPT", 10)
        known = Environment()
        for number in range(100):
            known.proxies(f"http://h{number}.test/", None)
        assert len(known._seen.proxies) <= 10


class TestCaBundle:
    def test_requests_variable_wins_over_curls(self, monkeypatch):
        known = Environment()
        assert known.ca_bundle() is None
        monkeypatch.setenv("CURL_CA_BUNDLE", "/curl.pem")
        assert known.ca_bundle() == "/curl.pem"
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/requests.pem")
        assert known.ca_bundle() == "/requests.pem"


class TestNetrc:
    def test_it_is_read_once_a_host(self, netrc_file, counted):
        netrc_file("machine example.test login me password pw\n")
        known = Environment(FakeClock(wall=time.time() + 100))
        assert [known.netrc_auth(URL) for _ in range(3)] == [("me", "pw")] * 3
        assert known.netrc_auth("http://other.test/") is None
        assert counted["get_netrc_auth"] == 2

    def test_without_a_file_nothing_is_read(self, netrc_file, counted):
        assert Environment().netrc_auth(URL) is None
        assert counted["get_netrc_auth"] == 0

    def test_a_file_that_appears_changes_or_goes_is_seen(self, netrc_file):
        known = Environment()
        assert known.netrc_auth(URL) is None
        path = netrc_file("machine example.test login me password one\n")
        assert known.netrc_auth(URL) == ("me", "one")
        netrc_file("machine example.test login me password two\n", age_s=50)
        assert known.netrc_auth(URL) == ("me", "two")
        path.unlink()
        assert known.netrc_auth(URL) is None

    def test_two_writes_in_one_tick_of_the_file_system_are_both_seen(self, netrc_file):
        """The same length, the same time: a file written a moment ago is not trusted to stay."""
        known = Environment()
        for password in ("one", "two", "six"):
            netrc_file(f"machine example.test login me password {password}\n", age_s=0)
            assert known.netrc_auth(URL) == ("me", password)

    def test_a_file_written_in_place_whose_time_was_put_back_is_seen(self, netrc_file):
        """As `rsync --inplace -t` does: the same length, the same modification time."""
        path = netrc_file("machine example.test login me password one\n")
        known = Environment(FakeClock(wall=time.time() + 100))
        assert known.netrc_auth(URL) == ("me", "one")
        before = path.stat()
        path.write_text("machine example.test login me password two\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert known.netrc_auth(URL) == ("me", "two")

    def test_another_file_named_by_the_environment_is_seen(self, netrc_file, tmp_path, monkeypatch):
        netrc_file("machine example.test login me password pw\n")
        known = Environment()
        known.netrc_auth(URL)
        (tmp_path / "other").write_text("machine example.test login you password pw\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "other"))
        assert known.netrc_auth(URL) == ("you", "pw")

    def test_another_home_is_seen(self, tmp_path, monkeypatch):
        monkeypatch.delenv("NETRC", raising=False)
        known = Environment()
        monkeypatch.setenv("HOME", str(tmp_path))
        assert known.netrc_auth(URL) is None
        (tmp_path / ".netrc").write_text("machine example.test login me password pw\n")
        assert known.netrc_auth(URL) == ("me", "pw")
