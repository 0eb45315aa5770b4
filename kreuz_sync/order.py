"""The order of the layers, written once, as a request meets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .stack import Layer

if TYPE_CHECKING:
    from .tracing.setting import Tracing


def polite_order(
    *,
    tracing: Tracing | None = None,
    user_agents: Layer | None = None,
    auth: Layer | None = None,
    cache: Layer | None = None,
    robots: Layer | None = None,
    retry: Layer | None = None,
    breaker: Layer | None = None,
    budget: Layer | None = None,
    rate_limits: Sequence[Layer] = (),
    throttle: Layer | None = None,
) -> tuple[Layer, ...]:
    """The session's own order, outermost first. A layer that is None is left out.

    User agent and credentials finish the request, so that all below see it as it will be
    sent, the cache first: what it answers waits for nobody, and what was fetched once needs no
    leave of robots.txt, which is asked before anything waits its turn. The throttle stands inside the
    retry, so that every attempt waits its host's turn, and inside the rate limits, so that what
    they refuse takes none. Breaker and budget stand there too: each attempt of a retry is one
    more, and what they refuse uses up no rate limit. Tracing is two layers: one around all others, and
    one next to the wire, so that what it measures there has no waits in it.
    """
    layers = _present(user_agents, auth, cache, robots, retry, breaker, budget, *rate_limits, throttle)
    return traced(layers, tracing)


def traced(layers: Sequence[Layer], tracing: Tracing | None) -> tuple[Layer, ...]:
    """`layers` between the two of `tracing`; None for layers without tracing."""
    return tuple(layers) if tracing is None else (tracing, *layers, tracing.wire)


def reference_order(
    *,
    throttle: Layer | None = None,
    cache: Layer | None = None,
    user_agents: Layer | None = None,
    auth: Layer | None = None,
    retry: Layer | None = None,
) -> tuple[Layer, ...]:
    """The order of kreuzcrawl's pipeline: throttle outermost, auth and retry next to the wire.

    There only a call waits its turn, also one that the cache answers: a retry follows 0.1 s
    behind a 429 whatever the host's pace. The cache sees requests before user agent and
    credentials are added: it does not tell user agents apart, and what was asked for with an
    origin's credentials it does not store. Offered for comparison, and for programs that count on it; give it to
    `Session(layers=...)`.
    """
    return _present(throttle, cache, user_agents, auth, retry)


def _present(*layers: Layer | None) -> tuple[Layer, ...]:
    return tuple(layer for layer in layers if layer is not None)
