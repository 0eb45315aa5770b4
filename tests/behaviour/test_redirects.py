"""Redirects: which method arrives, with what body, cookies and credentials, and what is remembered."""

from __future__ import annotations

import io

import pytest
import requests

from ..loopback import Answer, answer, chunked, cut, cut_chunked, redirect, sequence, set_cookies


class TestTheMethod:
    @pytest.mark.parametrize(
        ("status", "sent", "arrives"),
        [
            (301, "GET", "GET"),
            (301, "POST", "GET"),
            (301, "PUT", "PUT"),
            (301, "DELETE", "DELETE"),
            (302, "POST", "GET"),
            (302, "PUT", "GET"),
            (302, "HEAD", "HEAD"),
            (303, "POST", "GET"),
            (303, "DELETE", "GET"),
            (303, "HEAD", "HEAD"),
            (307, "POST", "POST"),
            (307, "PATCH", "PATCH"),
            (308, "POST", "POST"),
            (308, "OPTIONS", "OPTIONS"),
        ],
    )
    def test_it_changes_as_browsers_have_it(self, session, server, status, sent, arrives):
        url = server.route("/from", redirect("/to", status))
        server.route("/to", 200)
        response = session.request(sent, url, data="body" if sent == "POST" else None)
        assert response.status_code == 200
        assert [one.method for one in server.requests] == [sent, arrives]
        assert response.request.method == arrives

    def test_head_does_not_follow_unless_asked(self, session, server):
        url = server.route("/from", redirect("/"))
        assert session.head(url).status_code == 302
        assert session.head(url, allow_redirects=True).status_code == 200

    @pytest.mark.parametrize("status", [300, 304, 305, 200, 201])
    def test_other_statuses_stay_where_they_are(self, session, server, status):
        response = session.get(server.route("/from", redirect("/", status)))
        assert (response.status_code, response.history, response.is_redirect) == (status, [], False)

    def test_a_redirect_without_location_is_an_answer(self, session, server):
        response = session.get(server.route("/from", answer(302, body="where?")))
        assert (response.status_code, response.text, response.next) == (302, "where?", None)
        assert not response.is_redirect


class TestTheBody:
    @pytest.mark.parametrize("status", [301, 302, 303])
    def test_it_is_dropped_with_its_fields(self, session, server, status):
        session.post(server.route("/from", redirect("/to", status)), json={"a": 1})
        assert server.last.body == b""
        assert not {"content-type", "content-length", "transfer-encoding"} & {
            name.lower() for name, _ in server.last.fields
        }

    @pytest.mark.parametrize("status", [307, 308])
    @pytest.mark.parametrize("body", ["text", b"bytes", {"form": "1"}])
    def test_it_is_sent_again(self, session, server, status, body):
        session.post(server.route("/from", redirect("/to", status)), data=body)
        first, second = server.requests
        assert first.body == second.body != b""
        assert first.fields.get("Content-Type") == second.fields.get("Content-Type")

    def test_a_file_is_rewound_to_where_it_was(self, session, server):
        file = io.BytesIO(b"0123456789")
        file.seek(3)
        session.post(server.route("/from", redirect("/to", 307)), data=file)
        assert [one.body for one in server.requests] == [b"3456789", b"3456789"]

    def test_a_file_that_cannot_be_rewound_is_an_error(self, session, server):
        class OneWay(io.BytesIO):
            def tell(self):
                raise OSError("one way only")

        url = server.route("/from", redirect("/to", 307))
        with pytest.raises(requests.exceptions.UnrewindableBodyError):
            session.post(url, data=OneWay(b"0123"))
        assert len(server.requests) == 1

    def test_a_generator_is_at_its_end(self, session, server):
        session.post(server.route("/from", redirect("/to", 307)), data=(part for part in [b"a", b"b"]))
        assert [one.body for one in server.requests] == [b"ab", b""]

    def test_a_generator_is_no_obstacle_where_the_body_is_dropped(self, session, server):
        response = session.post(server.route("/from", redirect("/", 303)), data=(part for part in [b"a", b"b"]))
        assert response.text == "ok"


class TestTheLocation:
    @pytest.mark.parametrize(
        ("location", "target"),
        [
            ("/to", "/to"),
            ("to", "/folder/to"),
            ("../to", "/to"),
            ("?a=1", "/folder/from?a=1"),
            ("/to?a=1&b=%20", "/to?a=1&b=%20"),
            ("/with space", "/with%20space"),
            ("/gr\u00fc\u00df".encode().decode("latin-1"), "/gr%C3%BC%C3%9F"),
            ("/a/../to", "/to"),
            ("", "/folder/from"),
        ],
    )
    def test_it_may_be_relative_and_badly_quoted(self, session, server, location, target):
        url = server.route("/folder/from", sequence(redirect(location), 200))
        response = session.get(url)
        if location:
            assert (server.last.target, response.url) == (target, server.url(target))
        else:  # an empty one leads nowhere
            assert response.status_code == 302

    def test_it_may_leave_out_the_scheme(self, session, server):
        url = server.route("/from", redirect(f"//127.0.0.2:{server.port}/to"))
        assert session.get(url).url == server.url("/to", host="127.0.0.2")

    def test_it_may_name_another_server(self, session, server, second_server):
        assert session.get(server.route("/from", redirect(second_server.url("/")))).text == "ok"
        assert second_server.last.host == f"127.0.0.1:{second_server.port}"

    def test_a_fragment_is_carried_along(self, session, server):
        url = server.route("/from", redirect("/"))
        assert session.get(f"{url}#part").url == server.url("/#part")

    def test_a_fragment_of_its_own_counts_more(self, session, server):
        url = server.route("/from", redirect("/#new"))
        assert session.get(f"{url}#old").url == server.url("/#new")

    def test_the_calls_params_are_not_added_again(self, session, server):
        session.params = {"s": "1"}
        session.get(server.route("/from", redirect("/to")), params={"c": "2"})
        assert [one.target for one in server.requests] == ["/from?s=1&c=2", "/to"]

    @pytest.mark.parametrize(
        ("location", "error"),
        [
            ("ftp://example.test/", requests.exceptions.InvalidSchema),
            ("http://[::1/", ValueError),
            ("http://a.test:port/", ValueError),
        ],
    )
    def test_an_impossible_one_is_an_error(self, session, server, location, error):
        with pytest.raises(error):
            session.get(server.route("/from", redirect(location)))


class TestWhatIsRemembered:
    def test_history_is_in_order(self, session, server):
        server.route("/a", redirect("/b", 301))
        server.route("/b", redirect("/c", 302))
        server.route("/c", redirect("/", 307))
        response = session.get(server.url("/a"))
        assert [one.status_code for one in response.history] == [301, 302, 307]
        assert [one.url for one in response.history] == [server.url(path) for path in ("/a", "/b", "/c")]
        assert [one.request.url for one in response.history] == [one.url for one in response.history]

    def test_each_hop_has_the_history_before_it(self, session, server):
        server.route("/a", redirect("/b"))
        server.route("/b", redirect("/"))
        first, second = session.get(server.url("/a")).history
        assert first.history == []
        assert second.history in ([first], [second])  # releases of requests differ

    def test_hops_are_answers_like_any_other(self, session, server):
        server.route("/a", redirect("/", 301, body="moved", content_type="text/plain"))
        (hop,) = session.get(server.url("/a")).history
        assert (hop.text, hop.is_redirect, hop.is_permanent_redirect) == ("moved", True, True)
        assert hop.elapsed.total_seconds() > 0
        assert hop.next is None

    def test_a_call_without_redirects_has_none(self, session, server):
        assert session.get(server.url()).history == []


class TestLimits:
    def test_too_many_end_in_an_error(self, session, server):
        url = server.route("/loop", redirect("/loop"))
        session.max_redirects = 3
        with pytest.raises(requests.TooManyRedirects) as caught:
            session.get(url)
        assert len(server.requests) == 4
        assert len(caught.value.response.history) == 3
        assert caught.value.response.url == url
        assert caught.value.request.url == url
        assert str(caught.value) == "Exceeded 3 redirects."

    def test_as_many_as_are_allowed_are_followed(self, session, server):
        session.max_redirects = 3
        server.route("/n", sequence(redirect("/n"), redirect("/n"), redirect("/n"), 200))
        assert session.get(server.url("/n")).status_code == 200

    def test_none_may_be_allowed(self, session, server):
        session.max_redirects = 0
        with pytest.raises(requests.TooManyRedirects):
            session.get(server.route("/from", redirect("/")))


class TestByHand:
    def test_next_is_the_request_to_send(self, session, server):
        url = server.route("/from", redirect("/to?a=1", 303))
        first = session.post(url, data="x", allow_redirects=False)
        assert (first.status_code, len(server.requests)) == (303, 1)
        assert (first.next.method, first.next.url) == ("GET", server.url("/to?a=1"))
        assert session.send(first.next).url == server.url("/to?a=1")

    def test_the_last_answer_has_no_next(self, session, server):
        assert session.get(server.url(), allow_redirects=False).next is None

    def test_resolve_redirects_gives_the_hops(self, session, server):
        server.route("/a", redirect("/b"))
        server.route("/b", redirect("/"))
        first = session.get(server.url("/a"), allow_redirects=False)
        hops = list(session.resolve_redirects(first, first.request))
        assert [one.url for one in hops] == [server.url("/b"), server.url("/")]

    def test_resolve_redirects_may_give_requests(self, session, server):
        first = session.get(server.route("/a", redirect("/b")), allow_redirects=False)
        hop = next(session.resolve_redirects(first, first.request, yield_requests=True))
        assert isinstance(hop, requests.PreparedRequest)
        assert (hop.url, len(server.requests)) == (server.url("/b"), 1)

    def test_get_redirect_target_is_the_location(self, session, server):
        response = session.get(server.route("/a", redirect("/b")), allow_redirects=False)
        assert session.get_redirect_target(response) == "/b"
        assert session.get_redirect_target(session.get(server.url())) is None


class TestCookiesOnTheWay:
    def test_those_set_by_a_hop_are_sent_to_the_next(self, session, server):
        server.route("/from", redirect("/to", fields={"Set-Cookie": "a=1; Path=/"}))
        session.get(server.url("/from"))
        assert server.last.cookies == {"a": "1"}
        assert session.cookies.get_dict() == {"a": "1"}

    def test_those_that_a_hop_deletes_are_gone(self, session, server):
        session.cookies.set("a", "1")
        session.cookies.set("b", "2")
        server.route("/from", redirect("/to", fields={"Set-Cookie": "b=; Max-Age=0; Path=/"}))
        session.get(server.route("/set", set_cookies("b=3; Path=/")))
        session.get(server.url("/from"))
        assert server.requests[1].cookies["b"] in ("2", "3")
        assert server.last.cookies["a"] == "1"

    def test_a_calls_own_are_sent_to_every_hop_and_not_kept(self, session, server):
        session.get(server.route("/from", redirect("/to")), cookies={"own": "1"})
        assert [one.cookies for one in server.requests] == [{"own": "1"}, {"own": "1"}]
        assert session.cookies.get_dict() == {}

    def test_those_of_one_host_stay_there(self, session, server):
        server.route("/from", redirect(server.url("/", host="127.0.0.2"), fields={"Set-Cookie": "a=1; Path=/"}))
        session.get(server.url("/from"))
        assert server.last.cookies == {}


class TestCredentialsOnTheWay:
    @pytest.mark.parametrize("how", [{"auth": ("me", "pw")}, {"headers": {"Authorization": "Token t"}}])
    def test_they_stay_with_their_origin(self, session, server, how):
        session.get(server.route("/from", redirect("/to")), **how)
        assert "Authorization" in server.last.fields

    @pytest.mark.parametrize("how", [{"auth": ("me", "pw")}, {"headers": {"Authorization": "Token t"}}])
    def test_another_host_does_not_get_them(self, session, server, how):
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))), **how)
        assert "Authorization" in server.requests[0].fields
        assert "Authorization" not in server.last.fields

    def test_another_port_does_not_get_them(self, session, server, second_server):
        session.get(server.route("/from", redirect(second_server.url("/to"))), auth=("me", "pw"))
        assert "Authorization" not in second_server.last.fields

    def test_they_do_not_come_back_on_the_way_home(self, session, server):
        server.route("/from", redirect(server.url("/abroad", host="127.0.0.2")))
        server.route("/abroad", redirect(server.url("/")))
        session.get(server.url("/from"), auth=("me", "pw"))
        assert ["Authorization" in one.fields for one in server.requests] == [True, False, False]

    def test_the_sessions_are_not_sent_to_another_host(self, session, server):
        session.auth = ("me", "pw")
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))))
        assert "Authorization" not in server.last.fields

    def test_other_fields_are_sent_along(self, session, server):
        session.headers["X-Session"] = "1"
        session.get(server.route("/from", redirect(server.url("/to", host="127.0.0.2"))), headers={"X-Call": "2"})
        assert (server.last.fields["X-Session"], server.last.fields["X-Call"]) == ("1", "2")

    def test_a_host_field_of_ones_own_is_kept(self, session, server):
        session.get(server.route("/from", redirect("/to")), headers={"Host": "example.test"})
        assert [one.host for one in server.requests] == ["example.test", "example.test"]

    @pytest.mark.parametrize(
        ("old", "new", "stripped"),
        [
            ("http://a.test/", "http://a.test/b", False),
            ("http://a.test/", "https://a.test/", False),
            ("http://a.test:80/", "https://a.test:443/", False),
            ("https://a.test/", "http://a.test/", True),
            ("http://a.test:8080/", "https://a.test:8080/", True),
            ("http://a.test/", "http://A.test:80/", False),
            ("http://a.test/", "http://b.test/", True),
        ],
    )
    def test_should_strip_auth_decides(self, session, old, new, stripped):
        assert session.should_strip_auth(old, new) is stripped


class TestConnections:
    @pytest.mark.parametrize("stream", [False, True])
    def test_hops_of_one_origin_share_one(self, session, server, stream):
        server.route("/a", redirect("/b", body=b"x" * 1000))
        server.route("/b", redirect("/", chunks=[b"y", b"z"]))
        assert session.get(server.url("/a"), stream=stream).text == "ok"
        assert server.accepted == 1

    @pytest.mark.parametrize(
        "broken",
        [
            redirect("/", body=b"not gzip", content_type="text/html"),
            cut(b"0123456789", 4, status=302),
            cut_chunked(b"0123", status=302),
        ],
        ids=["undecodable", "cut", "cut chunks"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_hop_is_followed_even_if_its_body_is_broken(self, session, server, broken: Answer, stream):
        broken.fields = [("Location", "/")]
        if broken.body == b"not gzip":
            broken.fields.append(("Content-Encoding", "gzip"))
        response = session.get(server.route("/from", broken), stream=stream)
        assert (response.status_code, response.text) == (200, "ok")

    def test_the_last_answer_is_streamed(self, session, server):
        server.route("/to", chunked(b"one", b"two"))
        response = session.get(server.route("/from", redirect("/to")), stream=True)
        assert b"".join(response.iter_content(2)) == b"onetwo"
