"""The arithmetic of the retry: which outcomes, which waits, and what a budget holds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests import exceptions as theirs

from kreuz_sync import errors
from kreuz_sync.retry.backoff import Bucket, Repeat, after_error, delay, refill


class TestDelay:
    """`base` * 2**n, at most `cap`."""

    @pytest.mark.parametrize(("retry", "seconds"), [(0, 0.1), (1, 0.2), (2, 0.4), (3, 0.8), (9, 51.2), (10, 60.0)])
    def test_it_doubles_exactly_up_to_the_cap(self, retry, seconds):
        assert delay(retry, base=0.1, cap=60.0) == seconds

    @pytest.mark.parametrize("retry", [63, 64, 1023, 1024, 10**9])
    def test_any_number_of_retries_ends_at_the_cap(self, retry):
        """2.0 ** 1024 would overflow."""
        assert delay(retry, base=0.1, cap=60.0) == 60.0

    def test_jitter_scales_the_capped_delay(self):
        """Were it added before the cap, every late retry would wait exactly the cap."""
        assert delay(20, base=1.0, cap=60.0, draw=0.25) == 15.0

    def test_no_base_is_no_wait(self):
        assert delay(5, base=0.0, cap=60.0) == 0.0

    @given(
        retry=st.integers(0, 5000),
        base=st.floats(0, 1e6),
        cap=st.floats(0, 1e6),
        draw=st.floats(0, 1),
    )
    def test_it_is_finite_and_never_beyond_the_cap(self, retry, base, cap, draw):
        wait = delay(retry, base=base, cap=cap, draw=draw)
        assert math.isfinite(wait) and 0 <= wait <= cap

    @given(retry=st.integers(0, 2000), base=st.floats(0, 1e6), cap=st.floats(0, 1e6))
    def test_a_later_retry_never_waits_less(self, retry, base, cap):
        assert delay(retry, base=base, cap=cap) <= delay(retry + 1, base=base, cap=cap)


class TestAfterError:
    """Whether a request may be sent again after an error."""

    @pytest.mark.parametrize("kind", [errors.ConnectionRefused, errors.ConnectTimeout, errors.DnsError])
    def test_a_request_of_which_nothing_was_sent_always_may(self, kind):
        assert after_error(kind()) is Repeat.ALWAYS

    @pytest.mark.parametrize(
        "kind",
        [
            errors.ConnectionFailed,
            errors.ProxyError,
            errors.ProtocolViolation,
            errors.ReadTimeout,
            errors.BodyTimeout,
            errors.DataLoss,
        ],
    )
    def test_one_that_may_have_arrived_only_if_twice_is_as_good_as_once(self, kind):
        assert after_error(kind()) is Repeat.IF_IDEMPOTENT

    @pytest.mark.parametrize(
        "kind",
        [
            errors.SslError,
            errors.UndecodableBody,
            errors.BodyTooLarge,
            errors.ThrottleTimeout,
            errors.SessionClosed,
            errors.RetriesExhausted,
            errors.RateLimited,
            errors.KreuzError,
        ],
    )
    def test_what_was_decided_or_would_end_the_same_never_does(self, kind):
        assert after_error(kind()) is Repeat.NEVER

    def test_a_new_policy_error_is_not_repeated_whatever_it_is_to_requests(self):
        """Old code should catch it as a connection error; that does not make it one."""

        class Refused(errors.KreuzError, theirs.ConnectionError):
            pass

        assert after_error(Refused()) is Repeat.NEVER

    @pytest.mark.parametrize(
        ("kind", "repeat"),
        [
            (theirs.ConnectTimeout, Repeat.ALWAYS),
            (theirs.ConnectionError, Repeat.IF_IDEMPOTENT),
            (theirs.ProxyError, Repeat.IF_IDEMPOTENT),
            (theirs.ReadTimeout, Repeat.IF_IDEMPOTENT),
            (theirs.ChunkedEncodingError, Repeat.IF_IDEMPOTENT),
            (theirs.SSLError, Repeat.NEVER),
            (theirs.InvalidURL, Repeat.NEVER),
            (theirs.TooManyRedirects, Repeat.NEVER),
            (theirs.RetryError, Repeat.NEVER),
            (theirs.ContentDecodingError, Repeat.NEVER),
        ],
    )
    def test_errors_of_other_adapters_are_judged_by_their_base_in_requests(self, kind, repeat):
        assert after_error(type("Its", (kind,), {})()) is repeat


class TestRefill:
    """A bucket of retries, at a later moment."""

    def test_time_and_calls_add_to_it(self):
        assert refill(Bucket(2.0, at=10.0), now=13.0, per_second=0.5, most=100.0, earned=0.2) == (3.7, 13.0)

    def test_it_holds_no_more_than_its_size(self):
        assert refill(Bucket(99.0, at=0.0), now=1000.0, per_second=1.0, most=100.0).tokens == 100.0

    def test_a_clock_read_by_another_thread_a_moment_earlier_takes_nothing_away(self):
        assert refill(Bucket(5.0, at=10.0), now=9.0, per_second=1.0, most=100.0).tokens == 5.0
