"""One host of a pace that is kept together: who may go when, and what answers change. Pure arithmetic.

This is what the scripts of `scripts.py` do on a server, step by step, for places that have no scripts. Moments are
whole microseconds of the clock that all share, and durations are too; see there for the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kreuz_sync.throttle.gate import PROBE_S
from kreuz_sync.throttle.pace import FORGET_S, NEGLIGIBLE_S, SUCCESSES, UNREACHABLE

GO, WAIT, TOO_LATE = 1, 0, 2

# A host that needs no state any more is remembered so long all the same: who knew it a moment ago, and finds it
# gone, can tell that it was lost.
LINGER_S = 60.0

_LINGER, _FORGET, _PROBE, _NEGLIGIBLE = (round(s * 1e6) for s in (LINGER_S, FORGET_S, PROBE_S, NEGLIGIBLE_S))

Answer = list[Any]


class Plan:
    """A host's state at the moment `now`, and one step on it.

    kept: the state as it was left, None for a new host. told: what the asker says, the words that come first in
    every step.
    """

    fields = (
        *("epoch", "at", "started", "next", "paused", "cut", "backoff", "floor"),
        *("raised", "successes", "unreached"),
    )

    def __init__(self, kept: Mapping[str, Any] | None, now: int, told: Sequence[int]) -> None:
        self.now = now
        self.least, self.max_delay, self.first_backoff, joins, is_fresh, *known = told
        for name in self.fields:
            setattr(self, name, int(kept[name]) if kept else 0)
        self.buckets: dict[str, list[int]] = dict(kept["buckets"]) if kept else {}
        if kept is None:
            self.epoch = now
        if self.at > now:
            self._turn_back(self.at - now)
        if kept is None or joins:
            self._join(known, is_new=kept is None, is_fresh=bool(is_fresh))

    epoch: int
    at: int
    started: int
    next: int
    paused: int
    cut: int
    backoff: int
    floor: int
    raised: int
    successes: int
    unreached: int

    def delay(self) -> int:
        return max(self.least, self.backoff, self.floor)

    # --- the two steps ------------------------------------------------------------------

    def take(self, claim: int, epoch: int, patience: int, least: int) -> Answer:
        """Leave to go, or a slot."""
        now, gap = self.now, max(self.delay(), least)
        due = max(self.started + gap, self.paused)
        is_mine = claim > 0 and epoch == self.epoch
        if is_mine and now < claim:
            slot = max(claim, due)
        elif is_mine and due - now <= gap / 2 and (now - claim <= gap / 2 or self.next <= claim + gap):
            slot = due  # a little late, maybe since the one before was
        else:
            is_mine, slot = False, max(due, self.next)
        if slot <= now:
            self.started = now
            self.next = max(self.next, now + gap)
            if self.cut:  # the others wait for its answer
                self.paused = now + _PROBE
                self._plan_anew()
            return self._answer(GO, 0, 0)
        if not is_mine:
            if 0 <= patience < slot - now:
                return self._answer(TOO_LATE, slot - now, 0)
            claim = slot
        self.next = max(self.next, slot + gap)
        return self._answer(WAIT, slot - now, claim)

    def learn(self, what: str, words: Sequence[Any]) -> Answer:
        """What one process has learnt."""
        before = self.delay()
        if what == "answer":
            self._learn_answer(words[0], int(words[1]))
        elif what == "floor":
            self.floor = int(words[0])
            if self.delay() > before:
                self._plan_anew()
        elif what == "pause":
            ends, instead_of = self.now + int(words[0]), int(words[2])
            if ends > self.paused or instead_of == self.paused:
                self.paused, self.cut = ends, int(words[1])
                self._plan_anew()
        elif what == "bucket":
            self.buckets[words[2]] = [self.now + int(words[0]), int(words[1])]
        return self._answer(0, 0, 0)

    # --- what is left -------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """The state to keep."""
        return {**{name: getattr(self, name) for name in self.fields}, "at": self.now, "buckets": self.buckets}

    def until(self) -> int:
        """The moment until which it is to be kept."""
        ends = (ends for ends, _ in self.buckets.values())
        until = max(self.started + self.delay(), self.next, self.paused, self.now, *ends) + _LINGER
        return until + _FORGET if self.backoff or self.floor else until

    # --- parts --------------------------------------------------------------------------

    def _turn_back(self, by: int) -> None:
        """The clock was put back: what was so far away is so far away still."""
        self.started, self.next, self.paused = self.started - by, self.next - by, self.paused - by
        self.buckets = {}
        self.epoch += 1

    def _join(self, known: Sequence[int], *, is_new: bool, is_fresh: bool) -> None:
        """New here, or lost, or the asker went on alone for a while."""
        backoff, floor, raised, pause, cut, since = known
        before = self.delay()
        self.backoff, self.floor = max(self.backoff, backoff), max(self.floor, floor)
        self.raised = max(self.raised, raised)
        if since >= 0:
            self.started = max(self.started, self.now - since)
        if is_new and is_fresh:
            self.started = self.now  # others may have sent something just now
        is_paused = pause > 0 and self.now + pause > self.paused
        if is_paused:
            self.paused, self.cut = self.now + pause, cut
        if is_new or is_paused or self.delay() > before:
            self._plan_anew()

    def _plan_anew(self) -> None:
        self.epoch += 1
        self.next = max(self.started + self.delay(), self.paused)

    def _learn_answer(self, how: str, under: int) -> None:
        if how not in ("failed", "unreachable"):
            self.unreached = 0
        if how == "good":
            self._succeed(under)
            return
        if how == "neutral":
            return
        self.successes = 0
        if how == "unreachable":
            self.unreached += 1
        is_pressed = how == "many" or (how == "unreachable" and self.unreached >= UNREACHABLE)
        if is_pressed and under >= self.raised:  # else it was sent before the last increase
            if how == "unreachable":
                self.unreached = 0
            self._raise()

    def _succeed(self, under: int) -> None:
        if not self.backoff or under < self.raised:
            return
        self.successes += 1
        if self.successes >= SUCCESSES:
            self.successes = 0
            halved = self.backoff // 2
            self.backoff = halved if halved > max(self.least, self.floor, _NEGLIGIBLE) else 0

    def _raise(self) -> None:
        doubled = min(2 * self.delay() or self.first_backoff, max(self.max_delay, self.floor))
        if doubled > self.delay():
            self.backoff, self.raised = doubled, self.raised + 1
            self._plan_anew()

    def _answer(self, code: int, wait: int, claim: int) -> Answer:
        self.buckets = {name: one for name, one in self.buckets.items() if one[0] > self.now}
        flat: list[Any] = []
        for name, (ends, cut) in self.buckets.items():
            flat += [name, ends - self.now, cut]
        return [
            *(code, wait, claim, self.epoch, self.now, max(0, self.paused - self.now), self.cut),
            *(self.backoff, self.floor, self.raised, self.successes, self.unreached, self.paused, flat),
        ]
