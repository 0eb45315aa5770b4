"""The arithmetic of a circuit: what counts as a failure, when it opens, how long it stays open."""

from math import inf

import pytest
import requests
from requests import exceptions as theirs

from kreuz_sync import errors
from kreuz_sync.breaker.circuit import SILENCE_S, Circuit, Rules, Sign, after_error, failed

RULES = Rules(failures=3, recovery=10.0, max_recovery=35.0)
NOW = 1000.0
CLOSED = Circuit()


def failing(times, circuit=CLOSED, *, now=NOW, probe=False):
    for _ in range(times):
        circuit = failed(circuit, "connection", RULES, now=now, probe=probe)
    return circuit


class TestAfterError:
    """Who answered is alive, who did not has failed, the rest says nothing."""

    @pytest.mark.parametrize(
        "error",
        [
            errors.ConnectionFailed(),
            errors.ConnectionRefused(),
            errors.DnsError(),
            errors.SslError(),
            errors.ProxyError(),
            errors.ConnectTimeout(),
            errors.ProtocolViolation(),
            errors.ReadTimeout(),
            errors.BodyTimeout(),
            theirs.ConnectionError(),
            theirs.ConnectTimeout(),
            theirs.ReadTimeout(),
        ],
        ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
    )
    def test_what_brought_no_answer_is_a_failure(self, error):
        assert after_error(error) is Sign.FAILED

    @pytest.mark.parametrize(
        "error",
        [
            errors.DataLoss(),
            errors.BrokenFraming(),
            errors.UndecodableBody(),
            errors.BodyTooLarge(),
            errors.RetriesExhausted(),
            errors.NotFound(),
            errors.ServerError(),
            theirs.HTTPError(),
            theirs.ChunkedEncodingError(),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_whatever_became_of_its_answer_who_answered_is_alive(self, error):
        assert after_error(error) is Sign.ALIVE

    @pytest.mark.parametrize(
        "error",
        [
            errors.ThrottleTimeout(),
            errors.RateLimitExceeded(),
            errors.RateLimitUnavailable(),
            errors.AddressBlocked(),
            errors.BudgetExceeded(),
            errors.CircuitOpen(),
            errors.DeadlineExceeded(),
            errors.SessionClosed(),
            theirs.InvalidURL(),
            theirs.InvalidSchema(),
            KeyboardInterrupt(),
            ValueError(),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_what_never_reached_the_host_says_nothing_of_it(self, error):
        assert after_error(error) is Sign.NONE

    @pytest.mark.parametrize(("seconds", "sign"), [(0.0, Sign.NONE), (0.9, Sign.NONE), (SILENCE_S, Sign.FAILED)])
    def test_a_deadline_is_the_hosts_failure_if_it_had_its_time(self, seconds, sign):
        """What a wait has left of a deadline may be too little for any host."""
        assert after_error(errors.DeadlineExceeded(unanswered=seconds)) is sign

    def test_a_class_of_a_users_own_is_what_its_base_is(self):
        class Lost(requests.ConnectionError):
            pass

        assert after_error(Lost()) is Sign.FAILED


class TestCircuit:
    def test_it_is_closed_at_first(self):
        assert not Circuit().is_open

    def test_it_stays_closed_until_the_last_of_the_failures(self):
        assert failing(2) == Circuit(failures=2, last="connection", recovery=0.0, ready=-inf)

    def test_then_it_is_open_for_the_recovery(self):
        assert failing(3) == Circuit(failures=3, last="connection", recovery=10.0, ready=NOW + 10)

    def test_requests_that_were_under_way_when_it_opened_change_nothing(self):
        opened = failing(3)
        assert failing(20, opened, now=NOW + 5) == opened

    def test_a_probe_that_fails_doubles_the_recovery(self):
        again = failing(1, failing(3), now=NOW + 10, probe=True)
        assert (again.failures, again.recovery, again.ready) == (4, 20.0, NOW + 30)

    def test_the_recovery_grows_to_its_maximum(self):
        circuit, seen = failing(3), []
        for _ in range(4):
            circuit = failing(1, circuit, probe=True)
            seen.append(circuit.recovery)
        assert seen == [20.0, 35.0, 35.0, 35.0]

    def test_one_failure_may_be_enough(self):
        assert failed(Circuit(), "dns", RULES._replace(failures=1), now=NOW).is_open

    def test_it_names_the_latest_failure(self):
        circuit = failed(failed(Circuit(), "dns", RULES, now=NOW), "connect_timeout", RULES, now=NOW)
        assert circuit.last == "connect_timeout"
