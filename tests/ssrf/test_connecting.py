"""What is connected to, and what is not, on a real wire."""

import socket
import threading

import pytest
import requests
import urllib3

import kreuz_sync
from kreuz_sync import AddressBlocked
from kreuz_sync.ssrf import PRIVATE_NETWORKS

from ..loopback import Server, answer, redirect
from .resolving import PRIVATE, PUBLIC, Resolver, no_connection, outcome_of, row


class TestForms:
    """What counts is the address that would be connected to, however it is written."""

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "127.1",  # short
            "127.0.1",
            "0177.0.0.1",  # octal
            "0177.1",
            "00000177.0.0.1",
            "0x7f.0.0.1",  # hexadecimal
            "0x7f000001",
            "0X7F.1",
            "2130706433",  # decimal
            "017700000001",
            "127.0.0.2",
            "127.255.255.254",
            "0",
            "0.0.0.0",
            "%31%32%37.0.0.1",  # percent-encoded
            "127%2E0.0.1",
            "me:pw@127.0.0.1",
            "public.test@127.0.0.1",
            "169.254.169.254",
            "10.0.0.1",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[0000::0001]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:7f00:0001]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::7f00:1]",
            "[2002:7f00:1::]",
            "[2001:0:7f00:1::]",
            "[fe80::1%25lo]",
            "[fe80::1]",
            "[fc00::1]",
            "[ff02::1]",
        ],
    )
    def test_none_gets_through(self, strict, server, host):
        with pytest.raises(requests.RequestException) as caught:
            strict.get(f"http://{host}:{server.port}/")
        # Some systems and versions cannot even read some of these.
        assert isinstance(caught.value, (AddressBlocked, kreuz_sync.DnsError, requests.exceptions.InvalidURL))
        no_connection(server)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "0", "[::1]"])
    def test_those_that_the_system_reads_are_refused_as_what_they_are(self, strict, server, host):
        with pytest.raises(AddressBlocked) as caught:
            strict.get(f"http://{host}:{server.port}/")
        assert caught.value.kind in ("loopback", "this host")

    @pytest.mark.parametrize(
        ("host", "looked_up"),
        [
            ("inside.test", "inside.test"),
            ("INSIDE.test", "inside.test"),
            ("inside.test.", "inside.test."),
            ("inside%2Etest", None),
            ("ｉｎｓｉｄｅ.test", None),  # full width  # noqa: RUF001
            ("①27.0.0.1", None),
            ("１２７.0.0.1", None),  # noqa: RUF001
            ("127。0。0。1", None),
        ],
    )
    def test_names_that_only_look_otherwise(self, strict, resolve, server, host, looked_up):
        resolver = resolve(inside_test=["127.0.0.1"])
        with pytest.raises(requests.RequestException) as caught:
            strict.get(f"http://{host}:{server.port}/")
        if looked_up is not None:
            assert isinstance(caught.value, AddressBlocked)
            assert resolver.asked == [looked_up]
        else:
            assert isinstance(caught.value, (AddressBlocked, requests.exceptions.InvalidURL, kreuz_sync.DnsError))
        no_connection(server)

    @pytest.mark.parametrize("network", PRIVATE_NETWORKS)
    def test_every_network_of_the_list(self, strict, resolve, network):
        address = network.partition("/")[0]
        resolve(inside_test=[address])
        with pytest.raises(AddressBlocked) as caught:
            strict.get("http://inside.test:9/")
        assert caught.value.address == address


class TestNames:
    """A name is looked up once, and every address it has must pass."""

    def test_a_public_one_is_connected_to(self, open_session, server):
        resolver = Resolver(site_test=[PUBLIC])
        session = open_session(resolver)
        assert session.get(server.url(host="site.test")).text == "ok"
        assert session.get(server.url(host="site.test")).text == "ok"
        assert resolver.asked == ["site.test"]  # one connection
        assert server.last.host == f"site.test:{server.port}"
        assert server.last.local == (PUBLIC, server.port)

    @pytest.mark.parametrize("addresses", [[PUBLIC, PRIVATE], [PRIVATE, PUBLIC], [PUBLIC, "::1", "fe80::1%lo"]])
    def test_one_private_address_among_others_is_enough(self, open_session, server, addresses):
        session = open_session(Resolver(site_test=[addresses]), private=[PRIVATE, "::/3", "fe80::/10"])
        with pytest.raises(AddressBlocked):
            session.get(server.url(host="site.test"))
        no_connection(server)

    def test_one_that_changes_its_address_after_the_look_up(self, open_session, server):
        """DNS rebinding: the second answer is never asked for."""
        resolver = Resolver(site_test=[PUBLIC, PRIVATE])
        session = open_session(resolver)
        assert session.get(server.url(host="site.test")).text == "ok"
        assert server.last.local == (PUBLIC, server.port)
        assert resolver.asked == ["site.test"]

    def test_one_that_has_changed_by_the_next_connection(self, open_session, server):
        url = server.route("/", answer(body="ok", close=True), host="site.test")
        session = open_session(Resolver(site_test=[PUBLIC, PRIVATE]))
        session.get(url)
        with pytest.raises(AddressBlocked):
            session.get(url)
        assert len(server.requests) == 1

    def test_the_systems_look_up_is_asked_once(self, open_session, resolve, server):
        resolver = resolve(site_test=[PUBLIC, PRIVATE])
        assert open_session(private=[PRIVATE]).get(server.url(host="site.test")).text == "ok"
        assert resolver.asked == ["site.test"]

    def test_the_connected_peer_is_looked_at_too(self, open_session, server):
        """A socket that ends elsewhere than it was told: nothing is sent on it."""

        class TwoFaced(tuple):
            def __getitem__(self, index):
                return PUBLIC if index == 0 else super().__getitem__(index)

        def lookup(host, port, family, kind):
            return [(*row(PUBLIC)[:4], TwoFaced((PRIVATE, port)))]

        with pytest.raises(AddressBlocked) as caught:
            open_session(lookup).get(server.url(host="site.test"))
        assert caught.value.address == PRIVATE
        server.wait_until_idle()
        assert server.requests == []

    def test_the_next_address_is_tried_when_one_does_not_answer(self, open_session, server, second_server):
        second_server.close()

        def lookup(host, port, family, kind):
            return [row(PUBLIC, second_server.port), row(PUBLIC, server.port)]

        assert open_session(lookup).get(server.url(host="site.test")).text == "ok"

    @pytest.mark.parametrize(
        ("found", "error"),
        [
            (socket.gaierror(socket.EAI_NONAME, "no such name"), kreuz_sync.DnsError),
            (TimeoutError("slow"), kreuz_sync.errors.ConnectTimeout),
            (OSError("broken"), kreuz_sync.ConnectionFailed),
            ([], kreuz_sync.ConnectionFailed),
        ],
    )
    def test_what_fails_fails_as_without_a_guard(self, open_session, found, error):
        with pytest.raises(error) as caught:
            open_session(Resolver(site_test=[found])).get("http://site.test/")
        assert not isinstance(caught.value, AddressBlocked)

    def test_a_refused_connection_fails_as_without_a_guard(self, open_session, server):
        server.close()
        with pytest.raises(kreuz_sync.ConnectionRefused):
            open_session(Resolver()).get(server.url())

    def test_a_name_that_cannot_be_one(self, open_session):
        with pytest.raises(requests.exceptions.InvalidURL):
            open_session(Resolver()).get(f"http://{'a' * 64}.test/")

    @pytest.mark.parametrize("address", ["/run/socket", "", "site.test", None])
    def test_what_is_no_internet_address_is_refused(self, open_session, address):
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80))]
        with pytest.raises(AddressBlocked):
            open_session(lambda *given: rows).get("http://site.test/")

    def test_only_families_that_urllib3_is_told_to_use(self, open_session, server, monkeypatch):
        families = []

        def lookup(host, port, family, kind):
            families.append(family)
            return [row(PUBLIC, port)]

        monkeypatch.setattr(urllib3.util.connection, "allowed_gai_family", lambda: socket.AF_INET)
        open_session(lookup).get(server.url(host="site.test"))
        assert families == [socket.AF_INET]


class TestIPv6:
    @pytest.fixture
    def server6(self):
        try:
            running = Server("::1")
        except OSError:
            pytest.skip("there is no IPv6 loopback")
        with running:
            yield running

    @pytest.mark.parametrize("host", ["[::1]", "[0:0::1]", "name.test"])
    def test_loopback_is_refused(self, open_session, server6, host):
        resolver = Resolver(name_test=["::1"])
        with pytest.raises(AddressBlocked) as caught:
            open_session(lookup=resolver).get(server6.url(host=host))
        assert (caught.value.address.strip("0:"), caught.value.network) == ("1", "::1/128")
        no_connection(server6)

    def test_what_is_public_is_connected_to(self, open_session, server6):
        session = open_session(Resolver(name_test=["::1"]))
        assert session.get(server6.url(host="[::1]")).text == "ok"
        assert session.get(server6.url(host="name.test")).text == "ok"

    def test_a_mapped_address_reaches_ipv4_and_counts_as_it(self, open_session, server):
        session = open_session(Resolver())
        with pytest.raises(AddressBlocked) as caught:
            session.get(server.url(host=f"[::ffff:{PRIVATE}]"))
        assert caught.value.network == f"{PRIVATE}/32"
        no_connection(server)
        assert session.get(server.url(host=f"[::ffff:{PUBLIC}]")).text == "ok"


class TestHttps:
    """The address is the checked one; the name stays the host's."""

    @pytest.fixture
    def names(self, tls_server):
        """The server names of the handshakes."""
        seen = []
        tls_server.tls.sni_callback = lambda sock, name, context: seen.append(name)
        return seen

    def test_server_name_host_field_and_certificate_are_the_hosts(self, open_session, tls_server, authority, names):
        session = open_session(Resolver(www_example_test=[PUBLIC]))
        response = session.get(tls_server.url(host="www.example.test"), verify=authority.bundle)
        assert response.text == "ok"
        assert names == ["www.example.test"]
        assert tls_server.last.host == f"www.example.test:{tls_server.port}"

    def test_a_certificate_for_another_host_is_an_error(self, open_session, tls_server, authority):
        session = open_session(Resolver(www_other_test=[PUBLIC]))
        with pytest.raises(kreuz_sync.SslError):
            session.get(tls_server.url(host="www.other.test"), verify=authority.bundle)

    def test_a_private_address_is_refused_before_the_handshake(self, open_session, tls_server, authority, names):
        session = open_session(Resolver(www_example_test=[PRIVATE]))
        with pytest.raises(AddressBlocked):
            session.get(tls_server.url(host="www.example.test"), verify=authority.bundle)
        assert (tls_server.accepted, names) == (0, [])

    def test_a_redirect_from_http(self, open_session, server, tls_server, authority):
        session = open_session(Resolver(www_example_test=[PRIVATE]))
        server.route("/from", redirect(tls_server.url(host="www.example.test")))
        with pytest.raises(AddressBlocked):
            session.get(server.url("/from"), verify=authority.bundle)
        assert tls_server.accepted == 0


class TestThreads:
    def test_many_threads_and_hosts(self, open_session, server):
        """Exact counts, whatever the order."""
        names = {f"h{number}_test": [PRIVATE if number % 3 == 0 else PUBLIC] for number in range(12)}
        session, outcomes = open_session(Resolver(**names)), []

        def work(host):
            for _ in range(3):
                outcomes.append(outcome_of(session, server.url(host=host)))

        threads = [threading.Thread(target=work, args=(name.replace("_", "."),)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (outcomes.count("ok"), outcomes.count("blocked")) == (24, 12)
        assert len(server.requests) == 24
