"""The order of the layers, written once, as a request meets them."""

from __future__ import annotations

from .stack import Layer


def polite_order(
    *,
    user_agents: Layer | None = None,
    auth: Layer | None = None,
    cache: Layer | None = None,
    retry: Layer | None = None,
    throttle: Layer | None = None,
) -> tuple[Layer, ...]:
    """The session's own order, outermost first. A layer that is None is left out.

    User agent and credentials finish the request, so that all below see it as it will be
    sent, the cache first: what it answers waits for nobody. The throttle stands inside the
    retry, so that every attempt waits its host's turn.
    """
    return _present(user_agents, auth, cache, retry, throttle)


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
