"""From a job to its results: the request is made here, on a worker's thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import requests
from requests import exceptions as theirs

from kreuz_sync import calls
from kreuz_sync.carrying import carried
from kreuz_sync.response import Response
from kreuz_sync.urls import redact_text

from .items import Ask, read
from .result import Done
from .schedule import Job

if TYPE_CHECKING:
    from kreuz_sync.sessions import Session

    from .worker import Worker

Outcome = Response | Exception


class Maker:
    """Makes requests as one `fetch_all` was asked for them.

    common: arguments for all. names: those that `session.request` has, None if nobody knows. The requests are
    made in the context of whoever makes the Maker.
    """

    def __init__(self, session: Session, common: Mapping[str, Any], names: Collection[str] | None) -> None:
        self.session = session
        self.common = common
        self.names = names
        self._outcome = carried(_outcome)

    def read(self, source: object, index: int) -> Ask:
        """What an input asks for. Raises InvalidItem."""
        return read(source, index, self.common, self.names)

    def outcome(self, worker: Worker, ask: Ask) -> Outcome:
        """The answer to a request, or the exception that came instead."""
        return self._outcome(worker, self.session, ask)

    def make(self, worker: Worker, job: Job) -> Done:
        """Make the request of a job. What goes wrong, whatever it is, is what it came to."""
        ask = self.read(job.source, job.index)
        outcome = self.outcome(worker, ask)
        return done(ask.text, outcome, worker.crew.clock.monotonic() - job.since)


def _outcome(worker: Worker, session: Session, ask: Ask) -> Outcome:
    calls.helper.set(worker)
    try:
        return outcome_of(session, ask)
    finally:
        worker.let_go()


def outcome_of(session: requests.Session, ask: Ask, *, whole: bool = False) -> Outcome:
    """The answer to a request, or the exception that came instead. whole: read the body of a stream too."""
    try:
        response = session.request(ask.method, ask.url, **ask.arguments)
        if whole:
            response.content  # noqa: B018
        return cast(Response, response)
    except theirs.RequestException as error:
        return error
    except ValueError as error:
        return error if _is_url(ask.text) else _invalid(ask.text, error)
    except Exception as error:
        return error


def done(url: str, outcome: Outcome, elapsed: float) -> Done:
    """What a job came to."""
    if isinstance(outcome, Exception):
        return Done(url, None, outcome, elapsed)
    return Done(url, outcome, None, elapsed)


def _is_url(text: str) -> bool:
    try:
        requests.PreparedRequest().prepare_url(text, None)
    except ValueError:
        return False
    return True


def _invalid(text: str, error: ValueError) -> theirs.InvalidURL:
    # The standard library's word for a URL that cannot be read, or encoded, is a bare ValueError.
    invalid = theirs.InvalidURL(redact_text(f"{text!a}: {error}"))
    invalid.__cause__ = error
    return invalid


def discard(done: Done) -> None:
    """Let go of what nobody will take: a stream has a connection."""
    if done.response is not None:
        done.response.close()
