"""Layer 4: answers from the store what it may, and stores what it may on the way back.

A request goes through here as `CacheAdapter.send` reads: has the cache anything to do with it
(`reuse.scope`)? What is stored for it, and may that be used (`finding.py`)? If so it is the answer
(`giving.py`, `replay.py`). If not, the request waits for an equal one that is under way
(`collapse.py`), or goes on (`forwarding.py`), and its answer is stored (`intake.py`,
`keeping.py`). The rules are in `reuse.py` and below it, and pure.

No lock is held while the layers below or the store are at work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter

from kreuz_sync import fork
from kreuz_sync.calls import Call, current, current_call
from kreuz_sync.response import Response, adopt
from kreuz_sync.stack import LayerAdapter, copy_request

from . import status
from .ask import Ask
from .background import Background
from .collapse import Flight
from .cookies import remember
from .decisions import Forward, Hit, Refuse
from .exchange import Exchange, secrets_of
from .finding import Found, close
from .forwarding import Forwarder
from .policy import Wishes
from .processes import leads_here
from .replay import refuse
from .reuse import scope, validation
from .workings import Tools

if TYPE_CHECKING:
    from .setting import Cache

PROCESSES = "processes"  # the value of `Cache.collapse` for equal requests of several processes
COLLAPSE_WAIT_S = 60.0  # the longest that a call without a time-out waits for an equal one
# Why a request is forwarded although an equal one that is under way might bring its answer.
_MAY_WAIT = frozenset({"uri-miss", "vary-miss", "stale"})
# What a validation in the background must not have: RFC 9111, section 4.3.1.
_OF_THE_CALLER = ("If-None-Match", "If-Modified-Since", "Range", "Cache-Control", "Pragma")


class CacheAdapter(LayerAdapter):
    """Answer from the store, or ask the layers below and store what they bring.

    woken: how often `close` told those who wait for an equal request to give up.
    """

    def __init__(self, cache: Cache, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.cache = cache
        self.workings = cache.workings
        self.woken = 0
        self._in_use = False
        self._forwarder = Forwarder(cache, cache.workings, inner)
        self._background = Background(cache.clock)
        fork.renew_in_child(self)

    def send(self, request: requests.PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        cache = self.cache
        wishes = cache.wishes_here()
        if wishes is None or not request.url or not request.method:
            return self._past(request, options)
        exchange = Exchange(request, options, _ask(request, options), wishes)
        decision = scope(exchange.ask, wishes, posts=cache.post)
        if isinstance(decision, Refuse):
            return self._refused(request)
        tools = self._tools()
        if tools is None or not self._find_key(exchange, tools):
            return self._without_key(exchange, tools, decision)
        if decision is not None:  # a method or a field that nothing stored can answer
            return self._forwarder.forward(exchange, tools, decision)
        landings = self.workings.flights.landings
        found = self._find(exchange, tools)
        if type(found.decision) is Hit:
            answer = self._hit(exchange, tools, found)
            if answer is not None:
                return answer
            found = Found(_or_refuse(exchange, Forward("uri-miss")), exchange.key)
        if isinstance(found.decision, Forward):
            return self._miss(exchange, tools, found.decision, landings)
        return self._refused(request)

    def close(self) -> None:
        """Wake those who wait, end the work in the background, close the layers below.

        The last one who uses the store closes it. Whatever is closed opens again when it is used.
        """
        self._background.cancel()
        self.workings.flights.wake(self)
        super().close()
        self._background.join()
        self._in_use = False
        self.workings.detach(self)

    def after_fork(self) -> None:
        """In a child, where the threads of the background are not."""
        self._background.after_fork()

    # --- what is needed first ---------------------------------------------------------------

    def _tools(self) -> Tools | None:
        if not self._in_use:
            self._in_use = True
            self.workings.attach(self)
        return self.workings.tools()

    def _find_key(self, exchange: Exchange, tools: Tools) -> bool:
        """What an answer to `exchange` is under; False if it cannot be stored, or told from others."""
        ask, cache = exchange.ask, self.cache
        if cache.key is not None:
            exchange.text = cache.text_for(exchange.request)
            if exchange.text is None:
                return False
        if ask.method == "POST" and cache.post:
            key = tools.keys.posted(ask, exchange.request.body, exchange.text)
        else:
            key = tools.keys.primary(ask, exchange.text)
        exchange.key = key or ""
        return key is not None

    def _without_key(self, exchange: Exchange, tools: Tools | None, decision: Forward | Refuse | None) -> Response:
        if exchange.ask.directives.only_if_cached or exchange.wishes.offline:
            return self._refused(exchange.request)
        if tools is None or not isinstance(decision, Forward):
            return self._past(exchange.request, exchange.options)
        return self._forwarder.forward(exchange, tools, decision)  # it may still make something invalid

    def _find(self, exchange: Exchange, tools: Tools) -> Found:
        keeper = tools.keeper
        if keeper.has_pending and not keeper.settle(keeper.uri(exchange)):
            # What is there was made invalid, and the store could not drop it.
            return Found(_or_refuse(exchange, Forward("uri-miss", keep=False)), exchange.key)
        return tools.finder.find(exchange.ask, exchange.key, exchange.text, exchange.wishes, self.cache.clock.wall())

    # --- the four outcomes ------------------------------------------------------------------

    def _past(self, request: requests.PreparedRequest, options: dict[str, Any]) -> Response:
        """As if there were no cache."""
        response = adopt(self.inner.send(request, **options))
        response.cache_status = status.appended(response.headers.get("Cache-Status"), status.BYPASSED)
        self.workings.counters.add("bypassed")
        return response

    def _refused(self, request: requests.PreparedRequest) -> Response:
        response = refuse(request)
        response.cache_status = status.REFUSED
        self.workings.counters.add("refused")
        return response

    def _hit(self, exchange: Exchange, tools: Tools, found: Found, told: str | None = None) -> Response | None:
        """The stored answer; None if it cannot be read. told: its `cache_status`, if that is not simply a hit."""
        hit, record, kept = found.decision, found.record, found.kept
        assert isinstance(hit, Hit)
        assert record is not None
        assert kept is not None
        answer = self._forwarder.giver.give(exchange, hit, kept, record.body, told or status.hit(hit))
        if answer is None:
            self.workings.store.delete(found.key)
            return None
        self.workings.counters.add("hits" if told is None else "collapsed")
        if hit.stale:
            self.workings.counters.add("stale_hits")
        if hit.refresh:
            self._refresh(exchange, tools, found.key, hit)
        return answer

    def _miss(self, exchange: Exchange, tools: Tools, forward: Forward, landings: int) -> Response:
        """Ask the origin, unless an equal request does so already. landings: before the store was looked into."""
        flights, among_processes = self.workings.flights, self.cache.collapse == PROCESSES
        may_wait = self._may_wait(exchange, forward) and not (among_processes and leads_here())
        joined = flights.join(exchange.key, exchange) if may_wait else None
        if joined is None:
            return self._forwarder.forward(exchange, tools, forward)
        flight, leads = joined
        if not leads:
            return self._follow(exchange, tools, forward, flight)
        exchange.flight = flight
        try:
            answer = None
            if flights.landings != landings:
                answer, forward = self._look_again(exchange, tools, forward)
            if answer is None and among_processes:
                answer, forward = self._lead(exchange, tools, forward, flight)
            return self._forwarder.forward(exchange, tools, forward) if answer is None else answer
        finally:
            flights.land(flight, of_use=exchange.of_use)

    def _follow(self, exchange: Exchange, tools: Tools, forward: Forward, flight: Flight) -> Response:
        """Wait for what an equal request brings; if that is no answer to this one, ask."""
        answer = None
        if self.workings.flights.wait(flight, _patience(exchange.options), self):
            answer, forward = self._look_again(exchange, tools, forward)
        return self._forwarder.forward(exchange, tools, forward) if answer is None else answer

    def _lead(
        self, exchange: Exchange, tools: Tools, forward: Forward, flight: Flight
    ) -> tuple[Response | None, Forward]:
        """Lead all processes; or wait for what another one brings, and what to ask if that is no answer."""
        has_waited = self.workings.processes.wait(flight, _patience(exchange.options), self)
        lead = flight.lead
        if lead is None and not has_waited:
            return None, forward
        answer, forward = self._look_again(exchange, tools, forward)
        if answer is None and has_waited and lead is not None and not lead.is_taken_over:
            lead.end()  # what was waited for has come, and all who can use none of it ask at once
        return answer, forward

    def _look_again(self, exchange: Exchange, tools: Tools, forward: Forward) -> tuple[Response | None, Forward]:
        """What an equal request may have brought meanwhile; and what to ask if that is no answer."""
        found = self._find(exchange, tools)
        if isinstance(found.decision, Hit):
            told = status.collapsed(forward.reason, found.decision)
            return self._hit(exchange, tools, found, told), forward
        return None, found.decision if isinstance(found.decision, Forward) else forward

    def _may_wait(self, exchange: Exchange, forward: Forward) -> bool:
        """Whether what an equal request brings could be the answer. A stream is stored too late for that."""
        cache = self.cache
        if not cache.collapse or exchange.stream or exchange.ask.method != "GET":
            return False
        if cache.policy.store_parts and "range" in exchange.ask.fields:  # an equal one may want another part
            return False
        if not forward.completes and forward.reason not in _MAY_WAIT:
            return False
        said = exchange.ask.directives
        return forward.keep and not said.no_cache and said.max_age != 0

    # --- in the background ------------------------------------------------------------------

    def _refresh(self, exchange: Exchange, tools: Tools, key: str, hit: Hit) -> None:
        """Validate what was given out stale, soon, and once however many ask for it. RFC 5861, section 3."""
        request = copy_request(exchange.request)
        request.method, request.hooks = "GET", requests.hooks.default_hooks()
        for name in _OF_THE_CALLER:
            request.headers.pop(name, None)
        options = {**exchange.options, "stream": False}
        again = Exchange(request, options, _ask(request, options), Wishes())
        again.key, again.text = exchange.key, exchange.text
        trace, call = current_call().trace, current_call().apart()
        work = partial(self._renew, again, tools, validation(key, hit.entry), call)
        self._background.start(key, work if trace is None else trace.behind(work, call, request))

    def _renew(self, exchange: Exchange, tools: Tools, forward: Forward, call: Call) -> None:
        joined = self.workings.flights.join(exchange.key, exchange)
        if joined is not None and not joined[1]:
            return  # somebody else is at it
        current.set(call)  # in a context of its own
        exchange.flight = joined[0] if joined is not None else None
        try:
            if exchange.flight is None or self._is_mine_to_renew(exchange, tools, exchange.flight):
                answer = self._forwarder.forward(exchange, tools, forward)
                remember(call.session, exchange.request, answer)
                answer.close()
                self.workings.counters.add("refreshed")
        finally:
            if exchange.flight is not None:
                self.workings.flights.land(exchange.flight, of_use=exchange.of_use)

    def _is_mine_to_renew(self, exchange: Exchange, tools: Tools, flight: Flight) -> bool:
        """Whether no other process is at it, or has done it just now."""
        if self.cache.collapse != PROCESSES:
            return True
        if self.workings.processes.take(flight) is not None:
            return False
        found = self._find(exchange, tools)
        close(found.record)
        return not isinstance(found.decision, Hit) or bool(found.decision.stale)


def _ask(request: requests.PreparedRequest, options: dict[str, Any]) -> Ask:
    certificate, url = options.get("cert"), request.url or ""
    return Ask(
        *(request.method or "", url, request.headers, repr(certificate) if certificate else ""),
        secrets_of(request),
        trusting=options.get("verify") is False and url.startswith("https:"),
    )


def _or_refuse(exchange: Exchange, forward: Forward) -> Forward | Refuse:
    """`forward`, unless the caller wants nobody asked."""
    wants_store = exchange.ask.directives.only_if_cached or exchange.wishes.offline
    return Refuse("only-if-cached") if wants_store else forward


def _patience(options: dict[str, Any]) -> float:
    """Seconds to wait for an equal request: as long as an answer of one's own might take."""
    timeout, left = options.get("timeout"), current_call().left()
    read = timeout[1] if isinstance(timeout, tuple) and len(timeout) == 2 else timeout
    longest = COLLAPSE_WAIT_S if left is None else max(0.0, min(left, COLLAPSE_WAIT_S))
    if isinstance(read, bool) or not isinstance(read, (int, float)):
        return longest
    return min(float(read), longest)
