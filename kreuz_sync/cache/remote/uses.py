"""Which records were used, and when, until the server is told: reading must not write there."""

from __future__ import annotations

from .names import raw

MOST = 500  # records whose uses are collected; the server takes half a millisecond for as many
EVERY_S = 5.0  # and how long: until then other machines do not know of them


class Uses:
    """The uses that this process has not told of. Takes no lock: each step on a dict is atomic."""

    def __init__(self) -> None:
        self._noted: dict[str, float] = {}
        self._due_at = 0.0

    def note(self, key: str, now: float) -> bool:
        """The record under `key` was used `now`; whether it is time to tell. Seconds of the monotonic clock."""
        noted = self._noted
        if not noted:
            self._due_at = now + EVERY_S
        noted[key] = now
        return len(noted) >= MOST or now >= self._due_at

    def take(self, now: float) -> list[bytes]:
        """What was noted, once: keys, each followed by how long ago it was used, in whole microseconds."""
        noted, self._noted = self._noted, {}
        words: list[bytes] = []
        for key, used_at in list(noted.items()):
            words += (raw(key), b"%d" % max(0, (now - used_at) * 1_000_000))
        return words
