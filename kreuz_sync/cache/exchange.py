"""One request on its way through the cache: what is known of it, and of the answer that came."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
import urllib3

from .ask import Ask
from .policy import Wishes
from .stored import FieldLines

if TYPE_CHECKING:
    from kreuz_sync.response import Response

    from .capture import Collected
    from .collapse import Flight


class Times(NamedTuple):
    """When the attempt that brought an answer was sent and its header section came: Unix seconds; elapsed: seconds."""

    request: float
    response: float
    elapsed: float


class Heard:
    """What the header section of `answer` says.

    fields: its field lines, several of one name apart where the wire's own are at hand. refusal:
    why it is not stored, None if it may be. wire: what collects the body's bytes as they come,
    where those are others than the caller's.
    """

    __slots__ = ("_shown", "answer", "fields", "refusal", "wire")

    def __init__(self, answer: Response) -> None:
        self.answer = answer
        self._shown = _lowered(answer)
        self.fields = _field_lines(answer, self._shown)
        self.refusal: str | None = None
        self.wire: Collected | None = None

    def is_about(self, answer: Response) -> bool:
        """Whether `answer` is still what was heard, and no layer has changed what it says."""
        return self.answer is answer and self._shown == _lowered(answer)


_NO_NAMES: frozenset[str] = frozenset()


def secrets_of(request: requests.PreparedRequest) -> frozenset[str]:
    """The fields of `request` (lower case) that its auth has written credentials into, besides Authorization."""
    names = getattr(request, "credential_fields", ())
    return frozenset(name.lower() for name in names) if names else _NO_NAMES


def _lowered(answer: requests.Response) -> dict[str, Any]:
    lower_items: Any = getattr(answer.headers, "lower_items", None)
    if lower_items is not None:
        return dict(lower_items())  # four times faster than its items()
    return {name.lower(): value for name, value in answer.headers.items()}


def _field_lines(answer: requests.Response, shown: dict[str, Any]) -> FieldLines:
    """A layer below may have changed what the response shows; then that counts, and not what the wire said."""
    raw = answer.raw
    if isinstance(raw, urllib3.HTTPResponse):
        lines = tuple(raw.headers.iteritems())  # tuple() would go through items() twice
        names = {name.lower() for name, _ in lines}
        several = len(names) != len(lines)
        if names == shown.keys() and (several or all(shown[name.lower()] == value for name, value in lines)):
            return lines
    return tuple((_text(name), _text(value)) for name, value in answer.headers.items())


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class Exchange:
    """A request that the cache has something to do with.

    request, options: as they came to the layer. wishes: what the session, or this call, wants.
    key: what an answer to it is under, "" if none can be. text: what the user's key function
    made of it. began: the generation (generations.py) when it was sent. sent: the same moment, of
    `perf_counter`. flight: what others wait for. of_use: whether these may find their answer in the
    store now, None if nobody knows.
    """

    __slots__ = (
        *("ask", "began", "flight", "heard", "key", "of_use", "options", "request", "sent", "text", "wishes"),
        "__weakref__",
    )

    def __init__(self, request: requests.PreparedRequest, options: dict[str, Any], ask: Ask, wishes: Wishes) -> None:
        self.request = request
        self.options = options
        self.ask = ask
        self.wishes = wishes
        self.key = ""
        self.text: str | None = None
        self.began = 0
        self.sent = 0.0
        self.flight: Flight | None = None
        self.heard: Heard | None = None
        self.of_use: bool | None = None

    @property
    def stream(self) -> bool:
        return bool(self.options.get("stream"))


def times_of(response: Response, *, sent: float, now: float) -> Times:
    """When `response` was asked for and came. sent: when it was handed to the layers below; now: Unix seconds.

    Those layers may have waited for the host's turn, and read the body since: where the
    transport says how long ago the header section came, that counts.
    """
    elapsed = response.elapsed.total_seconds()
    if response.arrived is None:
        return Times(sent, now, max(elapsed, now - sent, 0.0))
    came = now - max(0.0, perf_counter() - response.arrived)
    return Times(came - elapsed, came, elapsed)
