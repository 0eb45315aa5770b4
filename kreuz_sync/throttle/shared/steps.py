"""What is sent for a host, and what comes back, in seconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite
from typing import Any, NamedTuple

from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.throttle.pace import PaceRules

_MOST = 2**53  # microseconds; numbers of Lua are exact up to here


class Known(NamedTuple):
    """What this process knows of a host. See `scripts.py` for the fields."""

    joins: bool
    is_fresh: bool
    backoff: float
    floor: float
    raised: int
    paused: float
    cut: bool
    since: float | None


class Claim(NamedTuple):
    """A slot, by the server's clock, and the epoch in which it is one."""

    slot: int
    epoch: int


NO_CLAIM = Claim(0, 0)


class State(NamedTuple):
    """A host as the server has it. as_of, paused_until: microseconds by its clock. paused: seconds that are left."""

    as_of: int
    paused: float
    cut: bool
    backoff: float
    floor: float
    raised: int
    successes: int
    unreached: int
    paused_until: int
    buckets: tuple[tuple[str, float, bool], ...]


class Leave(NamedTuple):
    """What became of a request for leave. code: of `scripts.py`. wait: seconds."""

    code: int
    wait: float
    claim: Claim


class Steps(ABC):
    """Asks the place where the hosts are. Raises StoreTrouble if that cannot be asked, or answers nonsense."""

    @abstractmethod
    def send(self, what: str, name: str, words: tuple[bytes, ...]) -> Any:
        """The answer to a step, "take" or "learn", for the host `name`. words: see `scripts.py`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open. It is opened anew when it is needed."""

    def take(
        self, name: str, rules: PaceRules, known: Known, claim: Claim, *, patience: float | None, least: float
    ) -> tuple[Leave, State]:
        """Leave to send a request, or a slot to ask again at."""
        words = (_whole(claim.slot), _whole(claim.epoch), b"-1" if patience is None else _us(patience), _us(least))
        return self._run("take", name, rules, known, words)

    def answer(self, name: str, rules: PaceRules, known: Known, how: str, raised: float) -> State:
        """Have it learn how a request went."""
        under = _whole(int(raised)) if raised < _MOST else _whole(_MOST)
        return self._run("learn", name, rules, known, (b"answer", how.encode(), under))[1]

    def floor(self, name: str, rules: PaceRules, known: Known, seconds: float) -> State:
        return self._run("learn", name, rules, known, (b"floor", _us(seconds)))[1]

    def pause(self, name: str, rules: PaceRules, known: Known, seconds: float, cut: bool, instead_of: int) -> State:
        """instead_of: the end of the pause that this may shorten; -1 for none."""
        return self._run("learn", name, rules, known, (b"pause", _us(seconds), _whole(int(cut)), _whole(instead_of)))[1]

    def bucket(self, name: str, rules: PaceRules, known: Known, bucket: str, seconds: float, cut: bool) -> State:
        return self._run(
            "learn",
            name,
            rules,
            known,
            (b"bucket", _us(seconds), _whole(int(cut)), bucket.encode("utf-8", "surrogatepass")),
        )[1]

    def _run(
        self, what: str, name: str, rules: PaceRules, known: Known, words: tuple[bytes, ...]
    ) -> tuple[Leave, State]:
        first = (
            *(_us(rules.delay), _us(rules.max_delay), _us(rules.first_backoff)),
            *(_whole(int(known.joins)), _whole(int(known.is_fresh)), _us(known.backoff), _us(known.floor)),
            *(_whole(known.raised), _us(known.paused), _whole(int(known.cut))),
            b"-1" if known.since is None else _us(known.since),
        )
        return _read(self.send(what, name, first + words))


def _us(seconds: float) -> bytes:
    """Never less: a delay is a least."""
    if not isfinite(seconds):
        return b"0" if seconds < 0 else _whole(_MOST)
    return _whole(min(max(0, -int(-seconds * 1e6 // 1)), _MOST))


def _whole(number: int) -> bytes:
    return b"%d" % number


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "surrogatepass")


def _read(answer: Any) -> tuple[Leave, State]:
    try:
        code, wait, slot, epoch, as_of, paused, cut, backoff, floor, raised, successes, unreached, until, flat = answer
        buckets = tuple(
            (_text(flat[place]), flat[place + 1] / 1e6, flat[place + 2] == 1) for place in range(0, len(flat), 3)
        )
        leave = Leave(code, wait / 1e6, Claim(slot, epoch) if slot else NO_CLAIM)
        return leave, State(
            *(as_of, paused / 1e6, cut == 1, backoff / 1e6, floor / 1e6),
            *(raised, successes, unreached, until, buckets),
        )
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise StoreTrouble("it failed: this is no answer about a pace") from error
