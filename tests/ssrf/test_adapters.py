"""Which adapters may be mounted; copies of a session; test doubles."""

import copy
import pickle
import socket

import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from kreuz_sync import AddressBlocked, AddressGuard, LayerAdapter, Session, Stack
from kreuz_sync.transport import Transport
from kreuz_sync.wire import WireAdapter

from ..fakes import ScriptedAdapter
from .resolving import PRIVATE, Resolver, no_connection


class WithContext(HTTPAdapter):
    """As code does that wants TLS settings of its own."""

    def init_poolmanager(self, *args, **options):
        super().init_poolmanager(*args, **options, retries=False)


class WithTimeout(WireAdapter):
    """What is derived from our adapter is trusted to send through it."""

    def send(self, request, **options):
        return super().send(request, **{**options, "timeout": 5})


class Sending(HTTPAdapter):
    def send(self, request, **options):
        raise NotImplementedError


class Connecting(HTTPAdapter):
    def get_connection(self, url, proxies=None):
        raise NotImplementedError


class OfFiles(BaseAdapter):
    def send(self, request, **options):
        raise NotImplementedError

    def close(self):
        pass


class TestAdapters:
    """What cannot be guarded is not mounted."""

    @pytest.mark.parametrize(
        "adapter",
        [
            HTTPAdapter(max_retries=2),
            WireAdapter(),
            WithContext(),
            WithTimeout(),
        ],
        ids=lambda one: type(one).__name__,
    )
    def test_those_that_use_the_guarded_connections_are(self, strict, server, adapter):
        strict.mount("http://", adapter)
        assert strict.get_adapter("http://a.test").adapter is adapter
        with pytest.raises(AddressBlocked):
            strict.get(server.url())

    @pytest.mark.parametrize(
        "adapter",
        [
            ScriptedAdapter(200),
            Sending(),
            Connecting(),
            OfFiles(),
        ],
        ids=lambda one: type(one).__name__,
    )
    @pytest.mark.parametrize("prefix", ["http://", "https://a.test/", "file://"])
    def test_others_are_refused(self, strict, adapter, prefix):
        before = dict(strict.adapters)
        for mount in (strict.mount, strict.mount_raw):
            with pytest.raises(TypeError, match="deny_private") as caught:
                mount(prefix, adapter)
            assert type(adapter).__name__ in str(caught.value)
        assert strict.adapters == before

    def test_at_construction_too(self):
        with pytest.raises(TypeError, match="deny_private"):
            Session(adapter=ScriptedAdapter(200), deny_private=True)

    def test_a_layer_that_hides_what_is_below_it_is_in_the_way(self):
        class Hiding(BaseAdapter):
            def __init__(self, inner):
                self.hidden = inner

            def send(self, request, **options):
                return self.hidden.send(request, **options)

            def close(self):
                self.hidden.close()

        with pytest.raises(TypeError, match="Hiding"):
            Session(layers=[AddressGuard(), Hiding])
        Session(layers=[Hiding, AddressGuard()])

    def test_raw_mounts_have_to_have_a_guard(self, strict, server):
        with pytest.raises(TypeError, match="deny_private"):
            strict.mount_raw("http://", HTTPAdapter())
        with pytest.raises(TypeError, match="deny_private"):
            strict.mount("http://", Stack([], Transport(WireAdapter())))
        strict.mount("http://", Stack([AddressGuard(allow=["127.0.0.1"])], Transport(WireAdapter())))
        assert strict.get(server.url()).text == "ok"

    def test_one_adapter_does_not_serve_two_guards(self):
        adapter = WireAdapter()
        Session(adapter=adapter, deny_private=True)
        Session(adapter=adapter, deny_private=AddressGuard())
        with pytest.raises(ValueError, match="deny_private"):
            Session(adapter=adapter, deny_private=AddressGuard(allow=["127.0.0.1"]))

    def test_connections_from_before_the_guard_are_dropped(self, server):
        adapter = HTTPAdapter()
        with requests.Session() as before:
            before.mount("http://", adapter)
            before.get(server.url())
            with Session(throttle=None, adapter=adapter, deny_private=True) as session, pytest.raises(AddressBlocked):
                session.get(server.url())

    def test_pools_that_are_made_anew_are_guarded_too(self, strict, server):
        strict.get_adapter("http://a.test").adapter.init_poolmanager(1, 1)
        with pytest.raises(AddressBlocked):
            strict.get(server.url())

    def test_pools_of_another_kind_are_refused(self):
        adapter = HTTPAdapter()
        adapter.poolmanager.pool_classes_by_scheme = {"http": object, "https": object}
        with pytest.raises(TypeError, match="deny_private"):
            Session(adapter=adapter, deny_private=True)

    def test_a_layer_adapter_between_is_seen_through(self, server):
        with Session(layers=[AddressGuard(), LayerAdapter]) as session, pytest.raises(AddressBlocked):
            session.get(server.url())

    def test_source_addresses_and_socket_options_are_used(self, open_session, server):
        class FromThere(HTTPAdapter):
            def init_poolmanager(self, *args, **options):
                super().init_poolmanager(
                    *args,
                    **options,
                    source_address=("127.0.0.3", 0),
                    socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],
                )

        session = open_session(Resolver(), adapter=FromThere())
        response = session.get(server.url(), stream=True)
        sock = socket.fromfd(response.raw.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with response, sock:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert server.last.peer[0] == "127.0.0.3"


class TestCopies:
    """The guard goes with every copy of the session."""

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_a_copy_is_guarded(self, server, duplicate):
        with Session(throttle=None, deny_private=AddressGuard(allow=[PRIVATE])) as session:
            copied = duplicate(session)
        with copied:
            assert copied.layers == session.layers
            assert copied.get(server.url(host=PRIVATE)).text == "ok"
            with pytest.raises(AddressBlocked):
                copied.get(server.url())

    def test_the_child_of_a_fork_is(self, strict, server):
        with pytest.raises(AddressBlocked):
            strict.get(server.url())
        strict.get_adapter(server.url()).transport.after_fork()
        with pytest.raises(AddressBlocked):
            strict.get(server.url())


class TestDoubles:
    """Test doubles answer as ever."""

    URL = "http://127.0.0.1/items"

    def test_responses(self, strict):
        responses = pytest.importorskip("responses")
        with responses.RequestsMock() as mock:
            mock.get(self.URL, body="here")
            assert strict.get(self.URL).text == "here"
            assert Session(throttle=None, deny_private=True).get(self.URL).text == "here"

    def test_responses_lets_through_what_the_guard_does(self, strict, server):
        responses = pytest.importorskip("responses")
        with responses.RequestsMock() as mock:
            mock.add_passthru(server.url())
            with pytest.raises(AddressBlocked):
                strict.get(server.url())

    def test_requests_mock(self, strict, server):
        requests_mock = pytest.importorskip("requests_mock")
        with requests_mock.Mocker(real_http=True) as mock:
            mock.get(self.URL, text="here")
            assert strict.get(self.URL).text == "here"
            with pytest.raises(AddressBlocked):
                strict.get(server.url())

    def test_vcr(self, open_session, server, tmp_path):
        vcr = pytest.importorskip("vcr")
        tape, names = str(tmp_path / "it.yaml"), Resolver(inside_test=[PRIVATE])
        session = open_session(names)
        with vcr.use_cassette(tape):
            assert session.get(server.url()).text == "ok"
            with pytest.raises(AddressBlocked):
                session.get(server.url(host="inside.test"))
        assert len(server.requests) == 1
        with vcr.use_cassette(tape, record_mode="none"):
            assert open_session(names).get(server.url()).text == "ok"
        assert len(server.requests) == 1

    def test_connections_of_another_kind_are_refused(self, strict, server, monkeypatch):
        class Other(urllib3.connection.HTTPConnection):
            pass

        monkeypatch.setattr(urllib3.connectionpool.HTTPConnectionPool, "ConnectionCls", Other)
        with pytest.raises(AddressBlocked, match="Other"):
            strict.get(server.url())
        no_connection(server)
