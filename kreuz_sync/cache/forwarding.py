"""A request that the store did not answer: sent on, and what comes back weighed, stored, or used to freshen."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import errors
from kreuz_sync.calls import current
from kreuz_sync.response import Response, adopt
from kreuz_sync.retry.discard import discard
from kreuz_sync.stack import copy_request

from . import status
from .cookies import hand_over, set_by
from .decisions import AskAgain, Complete, Forward, Freshen, Hit, PassOn
from .entry import Entry
from .exchange import Exchange, Heard, Times, times_of
from .finding import close
from .giving import Giver
from .intake import Intake
from .invalidation import SAFE_METHODS, invalidates
from .kept import Kept, is_fresh, same_validators
from .reuse import conclude, validated, without_answer
from .store import Record
from .stored import FieldLines
from .workings import Tools, Workings

if TYPE_CHECKING:
    from .setting import Cache

# Of these the next answer may be another one, so they do not say whether waiting for it is worth while.
_PASSING = frozenset({429, 500, 502, 503, 504})
# Failures of the wire, for which a stored response may stand in ...
_OF_THE_WIRE = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.RetryError,
)
# ... but not for these: one is a warning, the other this session's own doing.
_ALWAYS_TOLD = (requests.exceptions.SSLError, errors.ThrottleTimeout)


class Forwarder:
    """Asks the layers below, `inner`, and learns from what they bring."""

    def __init__(self, cache: Cache, workings: Workings, inner: BaseAdapter) -> None:
        self.cache = cache
        self.workings = workings
        self.inner = inner
        self.giver = Giver(workings.store, inner)
        self.intake = Intake(cache, workings)

    def forward(self, exchange: Exchange, tools: Tools, forward: Forward) -> Response:
        """The answer to `exchange`, for which the origin is asked.

        Raises what the layers below raise, unless something stored may stand in for an answer.
        """
        if forward.completes and not self._may_complete(exchange, forward):
            forward = forward.plainly
        cookies: list[str] = []  # that came with answers which the caller does not get
        while True:
            answer = self._answer(exchange, tools, forward, cookies)
            if isinstance(answer, Response):
                if cookies:
                    hand_over(cookies, answer)
                return answer
            forward = answer

    def _answer(self, exchange: Exchange, tools: Tools, forward: Forward, cookies: list[str]) -> Response | Forward:
        """The answer to one request; or what to ask instead."""
        self._begin(exchange)
        sent = self.cache.clock.wall()
        try:
            response = self._sent(exchange, tools, forward)
        except _OF_THE_WIRE as error:
            stand_in = None if isinstance(error, _ALWAYS_TOLD) else self._instead(exchange, tools, forward)
            if stand_in is None:
                raise
            return stand_in
        answer = self._weighed(exchange, tools, forward, response, sent)
        if answer is not response:
            cookies.extend(set_by(response))
        if isinstance(answer, Forward):
            discard(response, self.cache.clock)
        return answer

    # --- the way down -----------------------------------------------------------------------

    def _begin(self, exchange: Exchange) -> None:
        """What is made invalid from now on, `exchange` may be from before."""
        exchange.began = self.workings.generations.now()
        exchange.sent = perf_counter()

    def _sent(self, exchange: Exchange, tools: Tools, forward: Forward) -> Response:
        request = exchange.request
        if forward.conditions:
            request = copy_request(request)
            request.headers.update(forward.conditions)
        exchange.heard = None
        call = current.get()
        if exchange.stream or call is None:
            return adopt(self.inner.send(request, **exchange.options))
        outer = call.heard
        # The body of a call that does not stream is read below, within the attempt that it belongs to.
        call.heard = partial(self._listen, exchange, tools, forward)
        try:
            return adopt(self.inner.send(request, **exchange.options))
        finally:
            call.heard = outer

    def _listen(self, exchange: Exchange, tools: Tools, forward: Forward, response: Response) -> None:
        """The header section has come, and the body is about to be read."""
        heard = self.intake.hear(exchange, tools, forward, response)
        if heard.refusal is None:
            self.intake.collect(heard)
        elif exchange.flight is not None and response.status_code not in (304, *_PASSING):
            # Those who wait have nothing to wait for, and the body may be long.
            self.workings.flights.land(exchange.flight, of_use=False)

    # --- the way up -------------------------------------------------------------------------

    def _weighed(
        self, exchange: Exchange, tools: Tools, forward: Forward, response: Response, sent: float
    ) -> Response | Forward:
        """The answer that the caller gets; or what to ask instead."""
        if response.from_rate_limit:
            # A layer of ours made it, and not the origin: nothing is stored, confirmed or made invalid by it.
            return self._handed_on(forward, response, stored=False)
        heard = exchange.heard
        if heard is None or not heard.is_about(response):
            heard = self.intake.hear_again(exchange, tools, forward, response)
        now = self.cache.clock.wall()
        if exchange.ask.method not in SAFE_METHODS:
            self._invalidate(exchange, tools, response, heard.fields)
        conclusion = conclude(
            *(exchange.ask, forward, response.status_code, heard.fields, self.cache.policy, exchange.wishes),
            now=now,
        )
        if isinstance(conclusion, AskAgain):
            return conclusion.forward
        times = times_of(response, sent=sent, now=now)
        if isinstance(conclusion, Freshen):
            return self._freshened(exchange, tools, forward, conclusion, heard, times)
        if isinstance(conclusion, Complete):
            return self._completed(exchange, tools, forward, heard, times)
        if isinstance(conclusion, Hit):
            stand_in = self._stand_in(exchange, tools, forward, conclusion, response.status_code)
            if stand_in is not None:
                discard(response, self.cache.clock)
                return stand_in
            conclusion = PassOn(keep=False)
        return self._passed_on(exchange, tools, forward, conclusion, heard, times)

    def _passed_on(
        self, exchange: Exchange, tools: Tools, forward: Forward, conclusion: PassOn, heard: Heard, times: Times
    ) -> Response:
        response = heard.answer
        if exchange.ask.method == "HEAD" and exchange.key and response.waf is None:
            key = forward.key or exchange.key
            tools.keeper.after_head(exchange, key, response.status_code, heard.fields, times)
        stored = self.intake.take(exchange, tools, heard, times) if conclusion.keep else False
        if stored is False:
            if exchange.of_use is None and response.status_code not in _PASSING:
                exchange.of_use = False
            if conclusion.supersedes and response.waf is None:  # a challenge page is no news of the resource
                self.workings.store.delete(forward.key)
        return self._handed_on(forward, response, stored=bool(stored))

    def _handed_on(self, forward: Forward, response: Response, *, stored: bool) -> Response:
        self.workings.counters.add("misses")
        told = status.forwarded(forward.reason, stored=stored, detail=forward.detail)
        response.cache_status = status.appended(response.headers.get("Cache-Status"), told)
        return response

    def _invalidate(self, exchange: Exchange, tools: Tools, response: Response, fields: FieldLines) -> None:
        """A change was made: forget what was stored before it. What comes with the answer is newer."""
        ask = exchange.ask
        changed = invalidates(ask.method, ask.url, response.status_code, fields, posts=self.cache.post)
        if changed:
            uris = [uri for url in changed if (uri := self._target(exchange, tools, url)) is not None]
            tools.keeper.invalidate(uris)
            self.workings.counters.add("invalidated", len(uris))
            self._begin(exchange)

    def _target(self, exchange: Exchange, tools: Tools, url: str) -> str | None:
        """What the keys begin with of all that is kept for `url`; None if that is not stored."""
        if self.cache.key is None:
            return tools.keys.target(exchange.ask, url=url)
        reading = copy_request(exchange.request)
        reading.method, reading.url, reading.body = "GET", url, None
        text = self.cache.text_for(reading)
        return None if text is None else tools.keys.target(exchange.ask, text)

    # --- what the origin has confirmed ------------------------------------------------------

    def _freshened(
        self, exchange: Exchange, tools: Tools, forward: Forward, conclusion: Freshen, heard: Heard, times: Times
    ) -> Response | Forward:
        nominee, response = conclusion.nominee, heard.answer
        found = tools.finder.kept(nominee.key, tools.keys.canonical(exchange.ask.url))
        if found is not None and same_validators(found[1].stored, nominee.etag, nominee.last_modified):
            record, kept = found
            fresh = tools.keeper.freshen(exchange, nominee, record, kept, heard.fields, times)
            if not conclusion.pass_on:
                return self._confirmed(exchange, forward, fresh, record, response)
            close(record)
        else:  # replaced or evicted meanwhile
            close(None if found is None else found[0])
            if not conclusion.pass_on:
                return _unconditional(forward)
        self.workings.counters.add("misses")
        told = f"{status.forwarded(forward.reason)}; fwd-status=304"
        response.cache_status = status.appended(response.headers.get("Cache-Status"), told)
        return response

    def _confirmed(
        self, exchange: Exchange, forward: Forward, fresh: Kept, record: Record, response: Response
    ) -> Response | Forward:
        now = self.cache.clock.wall()
        entry = fresh.entry or Entry(fresh.stored, self.cache.policy, fresh.url)
        hit = validated(exchange.ask, entry, now=now)
        if isinstance(hit, Forward):  # a range that what is stored does not have
            close(record)
            return hit
        told = status.validated(forward.reason, response.status_code, hit)
        answer = self.giver.give(exchange, hit, fresh, record.body, told)
        if answer is None:
            return _unconditional(forward)
        discard(response, self.cache.clock)
        exchange.of_use = is_fresh(entry, now)
        self.workings.counters.add("validated")
        return answer

    # --- what the origin has completed ------------------------------------------------------

    def _may_complete(self, exchange: Exchange, forward: Forward) -> bool:
        """Whether what is missing of a stored part may be asked for, and not the whole.

        A stream is to begin at once, and not when the rest has come.
        """
        if exchange.stream or not forward.key.startswith(exchange.key):  # or it is stored for somebody else
            return False
        held, most = forward.entry.held if forward.entry is not None else None, self.cache.max_entry_size
        return most is None or held is None or held.total is None or held.total <= most

    def _completed(
        self, exchange: Exchange, tools: Tools, forward: Forward, heard: Heard, times: Times
    ) -> Response | Forward:
        """The whole, put together in the store; or what to ask where that could not be done."""
        found = None
        if self.intake.take(exchange, tools, heard, times):
            found = tools.finder.kept(forward.key, tools.keys.canonical(exchange.ask.url))
        if found is None:
            return forward.plainly
        record, kept = found
        return self._confirmed(exchange, forward, kept, record, heard.answer)

    # --- instead of an error ----------------------------------------------------------------

    def _instead(self, exchange: Exchange, tools: Tools, forward: Forward) -> Response | None:
        """A stored response in place of an answer that did not come; None if the failure has to be told."""
        cache = self.cache
        hit = without_answer(exchange.ask, forward, cache.policy, exchange.wishes, now=cache.clock.wall())
        return None if hit is None else self._stand_in(exchange, tools, forward, hit, None)

    def _stand_in(
        self, exchange: Exchange, tools: Tools, forward: Forward, hit: Hit, status_code: int | None
    ) -> Response | None:
        found = tools.finder.kept(forward.key, tools.keys.canonical(exchange.ask.url))
        if found is None:
            return None
        record, kept = found
        if kept.stored != hit.entry.stored:  # replaced meanwhile
            close(record)
            return None
        told = status.instead_of_error(forward.reason, status_code, hit)
        answer = self.giver.give(exchange, hit, kept, record.body, told)
        if answer is not None:
            self.workings.counters.add("rescued")
        return answer


def _unconditional(forward: Forward) -> Forward:
    """Ask once more, for all of it."""
    return forward.plainly._replace(entry=None)
