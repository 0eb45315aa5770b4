"""The family of errors: what each is to requests, and what it carries."""

import pickle
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import requests
from requests import exceptions as theirs

from kreuz_sync import Session, Throttle, errors
from kreuz_sync.errors import KreuzError, classify
from kreuz_sync.response import adopt

from .fakes import FakeClock, ScriptedAdapter, prepared, respond

EVERY_ERROR = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KreuzError)),
    key=lambda kind: kind.__name__,
)

SECRET_REQUEST = {"url": "http://me:s3cret@example.test/", "headers": {"Authorization": "s3cret", "Cookie": "s=s3cret"}}


def answer(status, fields=(), content=b"why"):
    return adopt(respond(prepared(), status, fields, content))


class TestFamily:
    @pytest.mark.parametrize(
        ("kind", "bases"),
        [
            (errors.StatusError, (requests.HTTPError,)),
            (errors.ConnectionRefused, (requests.ConnectionError,)),
            (errors.DnsError, (requests.ConnectionError,)),
            (errors.UploadFailed, (requests.ConnectionError,)),
            (errors.SslError, (theirs.SSLError, requests.ConnectionError)),
            (errors.ProxyError, (theirs.ProxyError, requests.ConnectionError)),
            (errors.ConnectTimeout, (requests.ConnectTimeout, requests.ConnectionError, requests.Timeout)),
            (errors.ReadTimeout, (requests.ReadTimeout, requests.Timeout)),
            (errors.BodyTimeout, (requests.ReadTimeout, requests.ConnectionError)),
            (errors.DataLoss, (theirs.ChunkedEncodingError,)),
            (errors.UndecodableBody, (theirs.ContentDecodingError, theirs.ChunkedEncodingError)),
            (errors.ProtocolViolation, (requests.ConnectionError, theirs.InvalidHeader, ValueError)),
            (errors.RetriesExhausted, (theirs.RetryError,)),
            (errors.ThrottleTimeout, (requests.Timeout,)),
            (errors.DeadlineExceeded, (requests.Timeout,)),
            (errors.CircuitOpen, (requests.ConnectionError,)),
        ],
    )
    def test_what_requests_raises_for_the_same_event_is_a_base(self, kind, bases):
        """`except requests.X` in old code goes on working."""
        assert all(issubclass(kind, base) for base in bases)

    @pytest.mark.parametrize("kind", EVERY_ERROR)
    def test_every_error_is_an_exception_of_requests_and_has_a_tag(self, kind):
        assert issubclass(kind, requests.RequestException)
        assert kind.tag == kind.tag.lower() and " " not in kind.tag

    def test_tags_are_the_documented_words(self):
        """Programs compare with these; they do not change."""
        assert {kind.tag for kind in EVERY_ERROR} == set(
            "other status client_error unauthorized forbidden waf_blocked not_found timeout gone rate_limited "
            "server_error bad_gateway connection connection_refused dns ssl proxy connect_timeout upload protocol "
            "read_timeout too_many_redirects data_loss body_too_large "
            "retries_exhausted throttle_timeout deadline session_closed rate_limit_exceeded rate_limit_unavailable "
            "address_blocked circuit_open budget_exceeded robots_disallowed "
            "invalid_item worker_lost".split()
        )


class TestPickling:
    @pytest.mark.parametrize("kind", EVERY_ERROR)
    def test_every_error_pickles_with_what_it_carries(self, kind):
        request = prepared(**SECRET_REQUEST)
        request.register_hook("response", lambda response, **_: response)  # can't be pickled
        error = kind("it failed", request=request, response=answer(503), attempts=3)
        error.extra = "kept"
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is kind
        assert (str(copy), copy.attempts, copy.extra) == ("it failed", 3, "kept")
        assert copy.request.url == "http://REDACTED@example.test/"
        assert (copy.response.status_code, copy.response.content) == (503, b"why")

    @pytest.mark.parametrize("kind", EVERY_ERROR)
    def test_no_credentials_leave_the_process(self, kind):
        error = kind("it failed", request=prepared(**SECRET_REQUEST))
        assert b"s3cret" not in pickle.dumps(error)

    def test_a_response_leaves_user_information_behind(self):
        response = adopt(respond(prepared(**SECRET_REQUEST), 200))
        pickled = pickle.dumps(response)
        assert b"s3cret" not in pickled
        assert pickle.loads(pickled).url == "http://example.test/"

    def test_configured_credential_fields_stay_behind_too(self):
        request = prepared(headers={"X-Api-Key": "s3cret"})
        request.credential_fields = ("X-Api-Key",)
        assert b"s3cret" not in pickle.dumps(KreuzError("it failed", request=request))

    @pytest.mark.slow
    def test_an_error_survives_a_process_pool(self):
        """A spawned worker raises it; the parent sees the same type and data."""
        with (
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
            pytest.raises(errors.RateLimited) as caught,
        ):
            pool.submit(_raise_in_worker).result(60)
        assert (caught.value.status, caught.value.retry_after, caught.value.attempts) == (429, 7.0, 2)

    def test_a_body_that_cannot_be_read_any_more_does_not_stop_the_pickle(self):
        response = answer(200, content=b"abc")
        for _ in response.iter_content(1):
            pass
        assert pickle.loads(pickle.dumps(KreuzError("x", response=response))).response.status_code == 200


def _raise_in_worker():
    raise errors.RateLimited("slow down", status=429, retry_after=7.0, attempts=2, response=answer(429))


class TestRaiseForStatus:
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, errors.ClientError),
            (401, errors.Unauthorized),
            (403, errors.Forbidden),
            (404, errors.NotFound),
            (408, errors.RequestTimeout),
            (410, errors.Gone),
            (418, errors.ClientError),
            (429, errors.RateLimited),
            (500, errors.ServerError),
            (502, errors.BadGateway),
            (503, errors.ServerError),
            (504, errors.ServerError),
            (599, errors.ServerError),
        ],
    )
    def test_each_status_has_its_class(self, status, kind):
        response = answer(status)
        with pytest.raises(requests.HTTPError) as caught:
            response.raise_for_status()
        assert type(caught.value) is kind
        assert caught.value.response is response
        assert caught.value.request is response.request
        assert caught.value.status == status
        assert response.tag == caught.value.tag == classify(response)

    @pytest.mark.parametrize("status", [100, 200, 204, 301, 304, 399])
    def test_below_400_nothing_is_raised(self, status):
        response = answer(status)
        response.raise_for_status()
        assert response.error is None and response.tag is None

    def test_the_text_is_requests_own_without_credentials(self):
        response = adopt(respond(prepared("http://me:pw@h.test/?token=abc"), 404))
        assert str(response.error) == "404 Client Error: Reason for url: http://REDACTED@h.test/?token=REDACTED"

    def test_retry_after_comes_uncapped(self):
        assert answer(429, {"Retry-After": "9999999999"}).error.retry_after == 9999999999.0

    def test_a_reason_phrase_in_bytes_or_without_end_is_shown_in_part(self):
        response = answer(500)
        response.reason = b"caf\xc3\xa9" + b"x" * 10_000
        assert "café" in str(response.error) and len(str(response.error)) < 500


class TestReadyAt:
    """When another try is worth while, as a moment beside the seconds."""

    WAITING = (
        *(errors.ThrottleTimeout, errors.DeadlineExceeded, errors.RateLimited, errors.RateLimitExceeded),
        *(errors.CircuitOpen, errors.ServerError),
    )

    @pytest.mark.parametrize("kind", WAITING)
    def test_it_is_the_moment_of_the_error_and_the_seconds_after_it(self, kind):
        error = kind("wait", retry_after=7.0, as_of=1_800_000_000.0)
        assert (error.retry_after, error.ready_at) == (7.0, 1_800_000_007.0)

    @pytest.mark.parametrize("kind", WAITING)
    def test_an_error_is_of_the_moment_when_it_is_made(self, kind):
        before = time.time()
        error = kind("wait", retry_after=7.0)
        assert before + 7.0 <= error.ready_at <= time.time() + 7.0

    @pytest.mark.parametrize("kind", [kind for kind in EVERY_ERROR if kind().retry_after is None])
    def test_where_nobody_knows_it_is_none(self, kind):
        assert kind("it failed").ready_at is None

    def test_an_error_on_its_way_to_another_process_keeps_its_moment(self):
        error = errors.CircuitOpen("wait", retry_after=7.0, as_of=1_800_000_000.0)
        assert pickle.loads(pickle.dumps(error)).ready_at == 1_800_000_007.0

    def test_retry_after_counts_from_when_the_answer_came(self):
        """Not from when somebody looked at it."""
        response = answer(429, {"Retry-After": "60"})
        response.arrived = time.perf_counter() - 50
        assert response.error.retry_after == 60.0
        assert response.error.ready_at == pytest.approx(time.time() + 10, abs=5)

    def test_a_date_is_that_date_whatever_the_moment(self):
        response = answer(503, {"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"})
        response.arrived = time.perf_counter() - 50
        assert response.error.ready_at == pytest.approx(4_102_444_800, abs=0.01)

    def test_the_throttle_reads_its_own_clock(self):
        clock = FakeClock()
        throttle = Throttle(60.0, max_wait=5.0, clock=clock)
        throttle.acquire("a.test")
        with pytest.raises(errors.ThrottleTimeout) as caught:
            throttle.acquire("a.test")
        assert caught.value.ready_at == clock.wall() + 60.0

    def test_a_deadline_that_a_turn_lies_beyond_says_when_that_is(self):
        with Session(throttle=60.0, adapter=ScriptedAdapter(200)) as session:
            session.get("http://a.test/")
            with pytest.raises(errors.DeadlineExceeded) as caught:
                session.get("http://a.test/", deadline=5.0)
        assert caught.value.ready_at == pytest.approx(time.time() + 60.0, abs=10)


class TestClassify:
    @pytest.mark.parametrize(
        ("error", "tag"),
        [
            (theirs.ConnectTimeout(), "connect_timeout"),
            (theirs.ReadTimeout(), "read_timeout"),
            (theirs.SSLError(), "ssl"),
            (theirs.ProxyError(), "proxy"),
            (theirs.ConnectionError(), "connection"),
            (theirs.ChunkedEncodingError(), "data_loss"),
            (theirs.TooManyRedirects(), "too_many_redirects"),
            (theirs.InvalidURL(), "invalid_url"),
            (requests.HTTPError(response=respond(prepared(), 404)), "not_found"),
            (OSError(), "other"),
        ],
    )
    def test_exceptions_that_did_not_pass_through_a_stack_have_a_tag_too(self, error, tag):
        assert classify(error) == tag
