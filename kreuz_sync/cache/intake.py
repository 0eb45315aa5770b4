"""Which answers are stored, and how: at once where the body has been read, else while it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kreuz_sync import body as bodies
from kreuz_sync.response import Response

from .ask import Ask
from .capture import Capture, Collected
from .decisions import Forward
from .entry import entry_of
from .exchange import Exchange, Heard, Times, secrets_of
from .joining import Joiner
from .keeping import with_asked
from .kept import is_fresh
from .parts import PARTIAL
from .store import Body
from .stored import Stored
from .storing import refusal, to_store
from .tap import tap
from .workings import Tools, Workings

if TYPE_CHECKING:
    from .setting import Cache


class Intake:
    """Stores answers for a `Cache`."""

    def __init__(self, cache: Cache, workings: Workings) -> None:
        self.cache = cache
        self.workings = workings

    def hear(self, exchange: Exchange, tools: Tools, forward: Forward, response: Response) -> Heard:
        """What the header section of `response` says about storing it."""
        exchange.heard = heard = Heard(response)
        if not exchange.key or not forward.keep:
            heard.refusal = "request"
            return heard
        heard.refusal = refusal(
            *(exchange.ask, response.status_code, heard.fields, self.cache.policy, tools.keys),
            received=self.cache.clock.wall(),
            posts=self.cache.post,
            parts=self.cache.policy.store_parts and (forward.completes or "range" in exchange.ask.fields),
        )
        if heard.refusal is None and self._is_too_large(bodies.expected_length(response)):
            heard.refusal = "size"
        return heard

    def hear_again(self, exchange: Exchange, tools: Tools, forward: Forward, response: Response) -> Heard:
        """The same once it has come up through the layers below, which may have changed it."""
        before = exchange.heard
        heard = self.hear(exchange, tools, forward, response)
        if before is not None and before.answer is response:
            heard.wire = before.wire
        return heard

    def collect(self, heard: Heard) -> None:
        """Have the bytes of a body collected that is about to be read and decoded."""
        if "Content-Encoding" in heard.answer.headers:
            collected = Collected()
            if tap(heard.answer.raw, collected):
                heard.wire = collected

    def take(self, exchange: Exchange, tools: Tools, heard: Heard, times: Times) -> bool | None:
        """Store an answer; whether it was stored, None if that will show when its body is read."""
        response = heard.answer
        if heard.refusal is not None or response.waf is not None or response._closed_early:
            return False
        if not self._is_whose_it_seems(exchange, tools, response):
            return False
        if response._content is False:
            return self._follow(exchange, tools, heard, times)
        body = _wire_body(heard)
        if body is None or self._is_too_large(len(body)) or not self._is_wanted(exchange, response):
            return False
        return self._keep(exchange, tools, self._head(exchange, tools, heard, times), body, len(body))

    def _follow(self, exchange: Exchange, tools: Tools, heard: Heard, times: Times) -> bool | None:
        """Store a body while its caller reads it."""
        response = heard.answer
        # What the body knows must not know the response: that one would live until the garbage collector comes.
        exchange.heard = None
        keep = partial(self._keep, exchange, tools, self._head(exchange, tools, heard, times))
        capture = Capture(response, self.workings.store, most=self.cache.max_entry_size, keep=keep)
        if not tap(response.raw, capture):
            return False
        response.when_whole(capture.approve)
        if not self._is_wanted(exchange, response):
            capture.abandon()
            return False
        return None

    def _head(self, exchange: Exchange, tools: Tools, heard: Heard, times: Times) -> Stored:
        response = heard.answer
        stored = to_store(
            exchange.ask,
            response.status_code,
            _reason(response),
            getattr(response.raw, "version", 0) or 0,
            heard.fields,
            self.cache.policy,
            tools.keys,
            request_time=times.request,
            response_time=times.response,
            elapsed=times.elapsed,
        )
        return with_asked(stored, exchange.ask) if stored.vary else stored

    def _keep(self, exchange: Exchange, tools: Tools, head: Stored, body: Body, size: int) -> bool:
        stored = head._replace(size=size)
        if stored.status == PARTIAL:
            return self._keep_part(exchange, tools, stored, body)
        if not tools.keeper.keep(exchange, stored, body):
            return False
        self.workings.counters.add("stored")
        flight, flights = exchange.flight, self.workings.flights
        is_awaited = flight is not None and (flight.condition is not None or flight.lead is not None)
        if is_awaited or flights.goes_alone(exchange.key):
            entry = entry_of(stored, self.cache.policy, tools.keys.canonical(exchange.ask.url))
            exchange.of_use = entry is not None and is_fresh(entry, self.cache.clock.wall())
            if exchange.of_use:
                flights.forgive(exchange.key)
        return True

    def _keep_part(self, exchange: Exchange, tools: Tools, stored: Stored, body: Body) -> bool:
        joiner = Joiner(exchange, tools, most=self.cache.max_entry_size, now=self.cache.clock.wall())
        is_kept = joiner.keep(stored, body)
        if is_kept:
            self.workings.counters.add("stored")
        return is_kept

    def _is_too_large(self, size: int | None) -> bool:
        most = self.cache.max_entry_size
        return most is not None and size is not None and size > most

    def _is_wanted(self, exchange: Exchange, response: Response) -> bool:
        """The user's own word, asked last."""
        return self.workings.rule.allows(exchange.request, response)

    def _is_whose_it_seems(self, exchange: Exchange, tools: Tools, response: Response) -> bool:
        """Whether a layer below added credentials, so that the answer is somebody's and its key does not say whose."""
        sent = response.request
        if sent is exchange.request or sent is None or not sent.url or not sent.method:
            return True
        ask = Ask(sent.method, sent.url, sent.headers, exchange.ask.certificate, secrets_of(sent))
        return tools.keys.identity(ask) == tools.keys.identity(exchange.ask)


def _wire_body(heard: Heard) -> bytes | None:
    """The body that was read, as it was on the wire; None if that is not known, or not all of it came."""
    response = heard.answer
    if heard.wire is not None:
        body = b"".join(heard.wire.pieces)
    elif "Content-Encoding" in response.headers and response._content:
        return None  # decoded already
    else:
        body = response._content or b""
    expected = bodies.expected_length(response)
    return body if expected is None or expected == len(body) else None


def _reason(response: Response) -> str:
    reason = response.reason or ""
    return reason.decode("latin-1") if isinstance(reason, bytes) else str(reason)
