"""Leave to send one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .line import Host


class Turn:
    """Leave to send one request now. What comes of it is reported with it.

    name: the host's. sent: when it was taken. waited: seconds the request waited for it. raised: how often the
    host's backoff had grown by then. is_probe: others wait for its answer, so whatever comes of it is to
    be told with `heed`.

    It holds a place among the host's requests under way until that is given back, or the turn is
    forgotten: an interrupt may strike between any two steps of whoever has it.
    """

    __slots__ = ("__weakref__", "_host", "_place", "is_probe", "name", "raised", "sent", "waited")

    def __init__(self, host: Host, sent: float, waited: float, is_probe: bool) -> None:
        self.name = host.name
        self.raised = host.raised
        self.sent = sent
        self.waited = waited
        self.is_probe = is_probe or host.cut
        self._host = host
        self._place = None if host.taken is None else host.take_place(self)

    def give_back(self) -> None:
        """The request is over: another may take its place. Does nothing the second time.

        It needs no lock, and may be called in a finalizer.
        """
        if self._place is not None:
            self._host.give_back(self._place)
            self._place = None  # last: what an interrupt cuts short is done again
