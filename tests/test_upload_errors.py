"""An upload whose body cannot be read is not the host's failure."""

import io

import pytest
import requests

from kreuz_sync import Breaker, Retry, Session, Throttle, UploadFailed
from kreuz_sync.breaker.circuit import Sign, after_error
from kreuz_sync.errors import ConnectionFailed, ConnectionRefused

from .loopback import hang_up
from .test_wire_errors import unused_port


def pieces():
    yield b"one"
    raise OSError("the disk is gone")


class Pieces:
    def __iter__(self):
        return pieces()


class Broken(io.RawIOBase):
    """A file whose medium fails."""

    def readable(self):
        return True

    def readinto(self, buffer):
        raise OSError("the disk is gone")


class Sized(Broken):
    def __len__(self):
        return 100


def through_c():
    return map(bytes, pieces())


BODIES = [pieces, Pieces, Broken, Sized, through_c, lambda: io.BufferedReader(Broken())]


@pytest.fixture
def url(server):
    return server.route("/", 200)


@pytest.mark.parametrize("body", BODIES)
class TestABodyThatCannotBeRead:
    def test_is_told_as_that(self, url, body):
        with Session(throttle=None) as session, pytest.raises(requests.ConnectionError) as caught:
            session.put(url, data=body())
        assert type(caught.value) is UploadFailed
        assert str(caught.value) == f"PUT {url}: the body that was to be sent could not be read (the disk is gone)"

    def test_does_not_open_a_circuit_nor_slow_the_host_down(self, url, body):
        throttle, breaker = Throttle(0), Breaker(1)
        with Session(throttle=throttle, breaker=breaker) as session:
            for _ in range(6):
                with pytest.raises(UploadFailed):
                    session.put(url, data=body())
            assert session.get(url).status_code == 200
        assert (throttle.snapshot()["127.0.0.1"].delay, breaker.snapshot()) == (0.0, {})

    def test_is_not_sent_again(self, url, server, body):
        with Session(throttle=None, retry=Retry(3, base=0)) as session, pytest.raises(UploadFailed) as caught:
            session.put(url, data=body())
        assert caught.value.attempts == 1


class TestTheWire:
    """Its own failures are what they were, whatever the body is."""

    @pytest.mark.parametrize("body", [lambda: iter([b"one", b"two"]), lambda: io.BytesIO(b"one"), lambda: b"one"])
    def test_a_refused_connection(self, body):
        with Session(throttle=None) as session, pytest.raises(ConnectionRefused):
            session.put(f"http://127.0.0.1:{unused_port()}/", data=body())

    @pytest.mark.parametrize("body", [lambda: iter([b"x" * 2**20] * 20), lambda: io.BytesIO(b"x" * 2**24)])
    def test_a_server_that_hangs_up(self, server, body):
        with Session(throttle=None) as session, pytest.raises(ConnectionFailed) as caught:
            session.put(server.route("/", hang_up()), data=body())
        assert not isinstance(caught.value, UploadFailed)
        assert after_error(caught.value) is Sign.FAILED

    def test_an_upload_that_failed_says_nothing_of_the_host(self):
        assert after_error(UploadFailed()) is Sign.NONE
