"""What becomes of one input."""

from __future__ import annotations

from typing import Any, NamedTuple

from kreuz_sync.errors import classify
from kreuz_sync.response import Response
from kreuz_sync.urls import redact


class Done(NamedTuple):
    """What a job came to: as of `Result`, which each of its inputs has."""

    url: str
    response: Response | None = None
    error: Exception | None = None
    elapsed: float = 0.0


class Result:
    """What became of one input of `fetch_all`.

    input: the object that was given. index: its place in the list, from 0. url: what it asked for,
    "" where that cannot be told. response, error: one of the two, the other is None; an answer of 400
    or more is a response, unless the session raises for it. elapsed: seconds from when its turn came
    up to the end of its body (with `stream=True`, of its header section), all waits included.
    """

    __slots__ = ("elapsed", "error", "index", "input", "response", "url")

    def __init__(
        self,
        input: Any,
        index: int,
        url: str,
        response: Response | None = None,
        error: Exception | None = None,
        elapsed: float = 0.0,
    ) -> None:
        self.input = input
        self.index = index
        self.url = url
        self.response = response
        self.error = error
        self.elapsed = elapsed

    @property
    def tag(self) -> str | None:
        """The word for what is wrong, as in `kreuz_sync.classify`; None if nothing is."""
        outcome = self.error if self.response is None else self.response
        return None if outcome is None else classify(outcome)

    def __repr__(self) -> str:
        return f"<Result {self.index} {redact(self.url)} {self.response if self.error is None else self.error!r}>"
