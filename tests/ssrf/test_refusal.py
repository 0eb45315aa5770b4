"""What is raised, and what other layers make of it."""

import pickle

import pytest
import requests
from requests.adapters import HTTPAdapter

import kreuz_sync
from kreuz_sync import AddressBlocked, Retry, Throttle
from kreuz_sync.throttle import HostSettings

from ..fakes import FakeClock
from ..loopback import silent
from .resolving import PRIVATE, Resolver


class TestRefusal:
    """What is raised, and what others make of it."""

    def test_it_says_which_address(self, open_session):
        with pytest.raises(AddressBlocked) as caught:
            open_session(lookup=Resolver(inside_test=["169.254.169.254"])).get("http://inside.test/latest?token=s3cret")
        error = caught.value
        assert (error.host, error.address, error.network, error.kind) == (
            *("inside.test", "169.254.169.254"),
            *("169.254.0.0/16", "link-local"),
        )
        assert str(error) == (
            "GET http://inside.test/latest?token=REDACTED: inside.test is at 169.254.169.254"
            " (link-local, 169.254.0.0/16), and deny_private refuses to connect"
        )
        assert (error.tag, kreuz_sync.classify(error), error.attempts) == ("address_blocked", "address_blocked", 0)
        assert error.__cause__ is None and error.__suppress_context__
        assert isinstance(error, requests.RequestException) and not isinstance(error, requests.ConnectionError)

    def test_it_holds_no_credentials(self, strict):
        with pytest.raises(AddressBlocked) as caught:
            strict.get("http://me:s3cret@127.0.0.1/?api_key=s3cret", headers={"Authorization": "Bearer s3cret"})
        assert "s3cret" not in str(caught.value) + repr(caught.value)
        assert b"s3cret" not in pickle.dumps(caught.value)

    def test_it_pickles(self):
        error = AddressBlocked("no", host="a.test", address="::1", network="::1/128", kind="loopback")
        copied = pickle.loads(pickle.dumps(error))
        assert (copied.host, copied.address, copied.network, copied.kind) == ("a.test", "::1", "::1/128", "loopback")

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_it_is_not_retried(self, open_session, method):
        """Neither by the session nor by urllib3."""
        resolver = Resolver(inside_test=["10.0.0.1"])
        for settings in ({"retry": Retry(3, clock=FakeClock())}, {"adapter": HTTPAdapter(max_retries=3)}):
            resolver.asked.clear()
            with pytest.raises(AddressBlocked):
                open_session(lookup=resolver, **settings).request(method, "http://inside.test/", data=b"x")
            assert resolver.asked == ["inside.test"]

    def test_the_throttle_does_not_take_the_host_for_unreachable(self, open_session):
        throttle = Throttle(0, clock=FakeClock())
        session = open_session(lookup=Resolver(inside_test=["10.0.0.1"]), throttle=throttle)
        for _ in range(10):
            with pytest.raises(AddressBlocked):
                session.get("http://inside.test/")
        assert throttle.delay_for("inside.test") == 0
        assert throttle.snapshot()["inside.test"].backoffs == 0

    def test_a_place_at_the_host_is_given_back(self, open_session):
        throttle = Throttle(0, hosts={"inside.test": HostSettings(concurrency=1)})
        session = open_session(lookup=Resolver(inside_test=["10.0.0.1"]), throttle=throttle)
        for _ in range(3):
            with pytest.raises(AddressBlocked):
                session.get("http://inside.test/", timeout=5)

    def test_the_session_goes_on(self, open_session, server):
        session = open_session(Resolver(inside_test=[PRIVATE]), pool_maxsize=1)
        for _ in range(3):
            with pytest.raises(AddressBlocked):
                session.get(server.url(host="inside.test"))
            assert session.get(server.url()).text == "ok"
        assert server.accepted == 1

    @pytest.mark.parametrize("deadline", [None, 10.0])
    def test_with_and_without_a_deadline(self, open_session, server, deadline):
        session = open_session(Resolver(inside_test=[PRIVATE]), deadline=deadline)
        with pytest.raises(AddressBlocked):
            session.get(server.url(host="inside.test"))
        assert session.get(server.url()).text == "ok"
        with session.get(server.url(), stream=True) as response:
            assert response.content == b"ok"

    def test_a_deadline_ends_an_exchange_as_ever(self, open_session, server):
        server.route("/", silent())
        with pytest.raises(kreuz_sync.DeadlineExceeded):
            open_session(Resolver()).get(server.url(), deadline=0.2)
