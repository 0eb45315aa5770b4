"""Fields that proxies write: read strictly, or not at all."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.ratelimit.failures import KeyUnavailable
from kreuz_sync.ratelimit.forwarded import addresses_in, is_list, plain_address

SINGLES = ["X-Real-IP", "CF-Connecting-IP", "Fly-Client-IP", "True-Client-IP", "X-Envoy-External-Address"]
FIELDS = ["Forwarded", "X-Forwarded-For", "CloudFront-Viewer-Address", *SINGLES]


def texts(field: str, value: str) -> list[str]:
    return [str(address) for address in addresses_in(field, value)]


def failure(field: str, value: str) -> KeyUnavailable:
    with pytest.raises(KeyUnavailable) as caught:
        addresses_in(field, value)
    return caught.value


class TestForwarded:
    """RFC 7239."""

    @pytest.mark.parametrize(
        ("value", "clients"),
        [
            ("for=192.0.2.60", ["192.0.2.60"]),
            ("For=192.0.2.60", ["192.0.2.60"]),
            ('for="192.0.2.60"', ["192.0.2.60"]),
            ('for="192.0.2.60:4711"', ["192.0.2.60"]),
            ('for="192.0.2.60:_hidden.port-1"', ["192.0.2.60"]),
            ('for="[2001:db8:cafe::17]"', ["2001:db8:cafe::17"]),
            ('for="[2001:DB8:cafe::17]:4711"', ["2001:db8:cafe::17"]),
            ('for="\\[2001:db8::1\\]"', ["2001:db8::1"]),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", ["192.0.2.60"]),
            ("proto=http ; for=192.0.2.60", ["192.0.2.60"]),
            (";;for=192.0.2.60;", ["192.0.2.60"]),
            ('by="a,b;for=192.0.2.9";for=192.0.2.60', ["192.0.2.60"]),
            ("for=192.0.2.43, for=198.51.100.17", ["192.0.2.43", "198.51.100.17"]),
            ('for=192.0.2.43,for="[2001:db8::1]" , for=198.51.100.17', ["192.0.2.43", "2001:db8::1", "198.51.100.17"]),
        ],
    )
    def test_addresses_are_read(self, value: str, clients: list[str]) -> None:
        assert texts("Forwarded", value) == clients

    @pytest.mark.parametrize(
        "value",
        [
            "",
            " ",
            ",",
            "for=192.0.2.1,",
            "for=192.0.2.1,,for=192.0.2.2",
            "proto=http",
            "for=192.0.2.1, proto=http",
            "for=192.0.2.1;for=192.0.2.2",
            "for=192.0.2.1;FOR=192.0.2.1",
            "for=unknown",
            "for=_gazonk",
            'for="unknown:80"',
            "for=example.com",
            "for=",
            'for=""',
            "for",
            "for =192.0.2.1",
            "for= 192.0.2.1",
            "for=192.0.2.1:80",
            "for=2001:db8::1",
            "for=[2001:db8::1]",
            'for="2001:db8::1"',
            'for="[192.0.2.1]"',
            'for="[2001:db8::1%eth0]"',
            'for="[2001:db8::1]:"',
            'for="192.0.2.1:123456"',
            'for="192.0.2.1:_"',
            'for="192.0.2.1:_a b"',
            'for="192.0.2.1',
            'for="192.0.2.1"x',
            "for=192.0.2.1 x",
            "for=192.0.2.1;proto=a b",
            "for=192.0.2",
            "for=192.0.2.256",
            "for=192.0.02.1",
            "192.0.2.1",
            'for="192.0.2.1\x00"',
        ],
    )
    def test_all_else_names_nobody(self, value: str) -> None:
        assert failure("Forwarded", value).code == "invalid_client_ip"


class TestXForwardedFor:
    """A list of addresses, with or without ports."""

    @pytest.mark.parametrize(
        ("value", "clients"),
        [
            ("203.0.113.7", ["203.0.113.7"]),
            ("203.0.113.7:80", ["203.0.113.7"]),
            ("2001:db8::1", ["2001:db8::1"]),
            ("[2001:db8::1]", ["2001:db8::1"]),
            ("[2001:db8::1]:80", ["2001:db8::1"]),
            (" 9.9.9.9 ,\t5.5.5.5 ", ["9.9.9.9", "5.5.5.5"]),
            ("9.9.9.9,2001:db8::1,5.5.5.5:1", ["9.9.9.9", "2001:db8::1", "5.5.5.5"]),
        ],
    )
    def test_addresses_are_read(self, value: str, clients: list[str]) -> None:
        assert texts("X-Forwarded-For", value) == clients

    @pytest.mark.parametrize(
        "value",
        [
            *("", ",", "9.9.9.9,", ",9.9.9.9", "9.9.9.9,,5.5.5.5", "unknown", "9.9.9.9, unknown", "example.com"),
            *(
                "9.9.9.9:",
                "9.9.9.9:http",
                "9.9.9.9:123456",
                "9.9.9.9:_x",
                "[9.9.9.9]",
                "[2001:db8::1",
                "2001:db8::1]:80",
            ),
            *(
                "2001:db8::1%eth0",
                "[2001:db8::1]80",
                '"9.9.9.9"',
                "9.9.9.9 5.5.5.5",
                "9.9.9.9/32",
                "٩.9.9.9",
                "09.9.9.9",
            ),
        ],
    )
    def test_all_else_names_nobody(self, value: str) -> None:
        assert failure("X-Forwarded-For", value).code == "invalid_client_ip"


class TestSingles:
    """Fields with one address in them."""

    @pytest.mark.parametrize("field", SINGLES)
    @pytest.mark.parametrize("value", ["203.0.113.7", " 203.0.113.7\t"])
    def test_the_address_is_read(self, field: str, value: str) -> None:
        assert texts(field, value) == ["203.0.113.7"]

    @pytest.mark.parametrize("field", SINGLES)
    @pytest.mark.parametrize("value", ["", " ", "1.1.1.1, 2.2.2.2", "1.1.1.1,", "1.1.1.1:80", "[2001:db8::1]", "me"])
    def test_all_else_names_nobody(self, field: str, value: str) -> None:
        """A comma means that there were two lines: a server has joined them."""
        assert failure(field, value).code == "invalid_client_ip"

    @pytest.mark.parametrize(
        ("value", "client"),
        [
            ("198.51.100.10:46532", "198.51.100.10"),
            ("2001:db8:0:0:0:0:0:1:46532", "2001:db8::1"),
            ("[2001:db8::1]:46532", "2001:db8::1"),
        ],
    )
    def test_cloudfront_puts_a_port_behind_it(self, value: str, client: str) -> None:
        assert texts("CloudFront-Viewer-Address", value) == [client]

    @pytest.mark.parametrize(
        "value", ["198.51.100.10", "198.51.100.10:", ":80", "a:80", "[198.51.100.10]:80", "1.1.1.1:2, 3"]
    )
    def test_cloudfront_without_a_port_names_nobody(self, value: str) -> None:
        assert failure("CloudFront-Viewer-Address", value).code == "invalid_client_ip"


class TestSpellings:
    """One address is one address."""

    @pytest.mark.parametrize("spelling", ["::ffff:1.2.3.4", "::FFFF:102:304", "0:0:0:0:0:ffff:1.2.3.4", "1.2.3.4"])
    def test_ipv4_in_ipv6_form_is_ipv4(self, spelling: str) -> None:
        assert plain_address(spelling) == ip_address("1.2.3.4")

    def test_names_of_fields_are_in_either_case(self) -> None:
        assert texts("x-forwarded-for", "1.1.1.1, 2.2.2.2") == ["1.1.1.1", "2.2.2.2"]
        assert is_list("FORWARDED") and not is_list("x-real-ip")


class TestHostileValues:
    """Whatever a client writes."""

    @given(field=st.sampled_from(FIELDS), value=st.text(max_size=60) | st.text('for="[]:;,. \\1a_', max_size=60))
    def test_either_addresses_or_the_failure(self, field: str, value: str) -> None:
        try:
            assert addresses_in(field, value)
        except KeyUnavailable as error:
            assert error.code == "invalid_client_ip"

    @pytest.mark.parametrize("field", FIELDS)
    def test_a_failure_does_not_repeat_the_value(self, field: str) -> None:
        error = failure(field, "for=secret.example")
        assert "secret" not in repr(error) + str(error)
        assert error.__cause__ is None and error.__suppress_context__

    @pytest.mark.parametrize(
        "value", [" " * 60_000 + "x", "a" * 60_000, "a=b;" * 15_000 + "!", 'for="' + "\\a" * 30_000]
    )
    def test_a_long_field_is_read_in_linear_time(self, value: str) -> None:
        """If it were not, these would take minutes."""
        assert failure("Forwarded", value).code == "invalid_client_ip"
