"""What spans and measurements of one `Tracing` are made with, for one pair of providers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from kreuz_sync import fork

from . import otel
from .attributes import Reader
from .meters import Meters


class Ended:
    """Attempts whose answers were forgotten unread, to be ended by whoever comes by.

    A finalizer may interrupt a thread anywhere, in the middle of an exporter too: it must not end a
    span itself, which takes the exporter's locks. It leaves that here, which takes none.
    """

    __slots__ = ("__weakref__", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        fork.renew_in_child(self)

    def leave(self, end: Callable[[], object]) -> None:
        """Have `end` called soon."""
        self._waiting.append(end)

    def settle(self) -> None:
        """Call all that was left here."""
        while self._waiting:
            try:
                end = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            end()

    def after_fork(self) -> None:
        """In a child: these are the parent's to end."""
        self._waiting.clear()


class Tools:
    """The API, the reader of requests, and the tracer and instruments of one pair of providers.

    records: whether anything is recorded at all. measures: whether measurements are.
    """

    __slots__ = ("api", "ended", "measures", "meters", "providers", "reader", "records", "tracer")

    def __init__(
        self, api: otel.Otel, reader: Reader, ended: Ended, tracers: Any, meters: Any, *, with_hosts: bool
    ) -> None:
        self.api = api
        self.reader = reader
        self.ended = ended
        self.providers = (tracers, meters)
        self.measures = not otel.is_silent(meters)
        self.records = self.measures or not otel.is_silent(tracers)
        self.tracer = otel.tracer_of(tracers)
        self.meters = Meters(otel.meter_of(meters), with_hosts=with_hosts)
