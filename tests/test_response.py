"""The response as a class: what users' own subclasses say, what is assigned, what a pickle leaves."""

import pickle

import pytest
import requests

from kreuz_sync import NotFound
from kreuz_sync.response import Response, adopt

from .fakes import prepared, respond


class Own(requests.Response):
    """A response of a user's adapter, with names that we have too."""

    tag = "theirs"
    error = "theirs"

    @property
    def retry_after(self):
        return "theirs"

    def raise_for_status(self):
        return "theirs"


class Later(Own):
    tag = "later"


def adopted(kind, status=404):
    response = respond(prepared(), status)
    response.__class__ = kind
    return adopt(response)


class TestOwnClasses:
    """What a class says itself comes before what we add."""

    def test_its_names_win(self):
        response = adopted(Own)
        assert isinstance(response, (Own, Response))
        assert [response.tag, response.error, response.retry_after, response.raise_for_status()] == ["theirs"] * 4

    def test_the_names_of_its_bases_too(self):
        response = adopted(Later)
        assert (response.tag, response.error) == ("later", "theirs")

    def test_what_it_does_not_name_is_ours(self):
        response = adopted(type("Plain", (requests.Response,), {}))
        assert response.tag == "not_found"
        with pytest.raises(NotFound):
            response.raise_for_status()


class TestAssigned:
    """As on any requests response."""

    @pytest.mark.parametrize("name", ["error", "tag", "retry_after", "raise_for_status", "anything"])
    def test_a_value_stays(self, name):
        response = adopted(requests.Response)
        setattr(response, name, "mine")
        assert getattr(response, name) == "mine" == response.__dict__[name]

    def test_a_value_from_before_stays(self):
        response = respond(prepared(), 404)
        response.tag = "mine"
        assert adopt(response).tag == "mine"

    def test_an_error_of_ones_own_does_not_hide_the_status(self):
        response = adopted(requests.Response)
        response.error = None
        with pytest.raises(NotFound):
            response.raise_for_status()

    def test_the_class_keeps_their_descriptions(self):
        assert "stable word" in Response.tag.__doc__


class TestPickles:
    def test_a_consumed_stream_stays_as_it_was(self):
        response = adopt(respond(prepared(), 200, {}, b"abc"))
        assert b"".join(response.iter_content(2)) == b"abc"
        before = dict(response.__dict__)
        assert pickle.loads(pickle.dumps(response)).content is None
        assert response.__dict__ == before
        with pytest.raises(RuntimeError, match="already consumed"):
            response.content  # noqa: B018  # reads it
