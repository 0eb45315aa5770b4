"""What may stand in the list."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from kreuz_sync.errors import InvalidItem, classify
from kreuz_sync.fetch_all import Item
from kreuz_sync.fetch_all.items import Ask, key_of, read

URL = "http://a.test/"
NAMES = ["method", "headers", "params", "stream", "timeout", "deadline"]


def ask(source: object, **common: Any) -> Ask:
    return read(source, 7, common, NAMES)


class TestReading:
    """Each form comes to a method, a URL and arguments."""

    @pytest.mark.parametrize(
        ("source", "wanted"),
        [
            (URL, ("GET", URL, {}, 0)),
            (URL.encode(), ("GET", URL.encode(), {}, 0)),
            ((URL, {}), ("GET", URL, {}, 0)),
            ((URL, None), ("GET", URL, {}, 0)),
            ((URL, {"timeout": 3}), ("GET", URL, {"timeout": 3}, 0)),
            ((URL, {"method": "HEAD"}), ("HEAD", URL, {}, 0)),
            ((URL, {"method": b"HEAD"}), ("HEAD", URL, {}, 0)),
            (Item(URL), ("GET", URL, {}, 0)),
            (Item(URL, {"timeout": 3}, priority=2.5, note="mine"), ("GET", URL, {"timeout": 3}, 2.5)),
            (requests.Request("POST", URL, data="x"), ("POST", URL, {"data": "x"}, 0)),
            (requests.Request(url=URL), ("GET", URL, {}, 0)),
            (Item(requests.Request("PUT", URL, params={"a": 1})), ("PUT", URL, {"params": {"a": 1}}, 0)),
            ((requests.Request("GET", URL), {"timeout": 3}), ("GET", URL, {"timeout": 3}, 0)),
        ],
    )
    def test_every_form_is_understood(self, source: object, wanted: tuple[Any, ...]) -> None:
        assert ask(source) == wanted

    def test_what_all_have_comes_after_what_one_has(self) -> None:
        assert ask((URL, {"timeout": 3}), timeout=5, stream=True).arguments == {"timeout": 3, "stream": True}
        assert ask(requests.Request("GET", URL, headers={"A": "b"}), headers={"C": "d"}).arguments["headers"] == {
            "A": "b"
        }

    def test_a_method_for_all(self) -> None:
        assert ask(URL, method="HEAD") == Ask("HEAD", URL, {})
        assert ask(requests.Request("PUT", URL), method="HEAD").method == "PUT"

    def test_what_was_given_is_left_as_it_is(self) -> None:
        own = {"method": "HEAD", "timeout": 3}
        ask((URL, own))
        assert own == {"method": "HEAD", "timeout": 3}


class TestWrongThings:
    """Each is named, and what would be right."""

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            (42, "42"),
            (None, "None"),
            ([URL], "a.test"),
            ({"url": URL}, "a.test"),
            ((URL,), "a.test"),
            ((URL, {}, 1), "a.test"),
            ((42, {}), "42 is no URL"),
            ((URL, 5), "5 in place of arguments"),
            ((URL, [("timeout", 3)]), "in place of arguments"),
            ((URL, {"timeot": 3}), "no argument timeot"),
            ((URL, {3: 3}), "no argument 3"),
            ((URL, {"method": 3}), "method=3"),
            (Item(URL, priority="high"), "priority='high'"),  # type: ignore[arg-type]
            (Item(URL, priority=float("nan")), "priority=nan"),
            (requests.Request("GET"), "None is no URL"),
            (requests.Request("GET", URL).prepare(), "PreparedRequest"),
        ],
    )
    def test_each_is_an_error_of_its_own(self, source: object, text: str) -> None:
        with pytest.raises(InvalidItem, match=r"urls\[7\]") as caught:
            ask(source)
        assert text in str(caught.value)
        assert classify(caught.value) == "invalid_item"

    def test_names_are_not_asked_for_where_nobody_knows_them(self) -> None:
        assert read((URL, {"mine": 3}), 0, {}, None).arguments == {"mine": 3}

    def test_long_things_are_cut_and_credentials_left_out(self) -> None:
        with pytest.raises(InvalidItem) as caught:
            ask([f"http://me:s3cret@a.test/{'x' * 1000}"])
        assert len(str(caught.value)) < 300
        assert "s3cret" not in str(caught.value)


class TestEquals:
    """One request is enough for two that are equal."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (URL, URL),
            (URL, (URL, {})),
            (URL, requests.Request("GET", URL)),
            ((URL, {"headers": {"a": "1", "b": "2"}}), (URL, {"headers": {"b": "2", "a": "1"}})),
            ((URL, {"timeout": (1, 2)}), Item(URL, {"timeout": (1, 2)}, 5, "note")),
            ((URL, {"params": [("a", 1)]}), (URL, {"params": [("a", 1)]})),
        ],
    )
    def test_equal_ones(self, one: object, other: object) -> None:
        assert key_of(ask(one)) is not None
        assert key_of(ask(one)) == key_of(ask(other))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (URL, URL + "#part"),
            (URL, (URL, {"timeout": 3})),
            ((URL, {"timeout": 1}), (URL, {"timeout": True})),
            ((URL, {"params": [1]}), (URL, {"params": (1,)})),
            ((URL, {"headers": {"a": "1"}}), (URL, {"headers": {"a": "2"}})),
        ],
    )
    def test_different_ones(self, one: object, other: object) -> None:
        assert key_of(ask(one)) != key_of(ask(other))

    @pytest.mark.parametrize(
        "source",
        [
            (URL, {"method": "HEAD"}),
            requests.Request("GET", URL, data="x"),
            requests.Request("GET", URL, json={}, data="x"),
            requests.Request("GET", URL, hooks={"response": print}),
            requests.Request("GET", URL, auth=lambda request: request),
            (URL, {"stream": True}),
            (URL, {"headers": {"a": {1, 2}}}),
        ],
    )
    def test_those_that_stand_for_themselves(self, source: object) -> None:
        assert key_of(ask(source)) is None
