"""What is known of hosts as text that the next run can read, and back. Pure.

Names of hosts, words of servers (fields, buckets, policies) and numbers; moments are Unix seconds,
since no other clock goes on between two runs. Of paths there are checksums only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from .buckets import Bucket, Buckets
from .gate import Gate
from .line import Host
from .pace import FORGET_S
from .routes import ENOUGH, Folder, Routes

FORMAT = "kreuz_sync throttle 1"
MOST_HOSTS = 1000  # the last heard of
LONGEST_NAME = 300  # characters
_CHECKSUM = re.compile(r"[0-9]{1,10}")

CLOCKS_APART_S = 1.0  # a word that comes from further ahead than this is by a clock that was set back since
_PAUSE = ("until", "source", "policy", "by_quota")

Saved = dict[str, Any]  # one host, or one gate of it; as JSON has it


class Mark(NamedTuple):
    """By what a process knows its own word again: when the host had been heard of, and the end of its pause."""

    heard: float
    until: float | None


class NotOurs(ValueError):
    """A text that is something else, or of another release."""


# --- the text ---------------------------------------------------------------------------


def written(hosts: Mapping[str, Saved]) -> str:
    """The text for `hosts`, by name."""
    return json.dumps({"format": FORMAT, "hosts": _latest(hosts)}, separators=(",", ":"))


def read(text: str, *, wall: float) -> dict[str, Saved]:
    """The hosts of such a text that were heard of within a day, MOST_HOSTS of them. What makes no sense is left out.

    Raises NotOurs, and another ValueError for a text that is damaged.
    """
    try:
        whole = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise NotOurs("it is something else, or of another release")
    hosts = whole.get("hosts")
    if not isinstance(hosts, dict):
        raise ValueError("it has no hosts")
    return _latest({name: host for name, host in hosts.items() if _is_name(name) and _is_recent(host, wall)})


def merged(
    ours: Mapping[str, Saved], theirs: Mapping[str, Saved], marks: Mapping[str, Mark], *, wall: float
) -> dict[str, Saved]:
    """What one process knows, joined with what is written already, maybe by another.

    marks: of what this process wrote or read before. What still stands there as it was is its own: its new
    word takes that place, and where it has nothing to say any more, nothing does. Of what another wrote the later
    word counts, and of pauses the later end.
    """
    joined = dict(theirs)
    for name in {**marks, **ours}:
        joined.pop(name, None)
        one = _joined(ours.get(name), theirs.get(name), marks.get(name), wall)
        if one is not None and is_worth_writing(one):
            joined[name] = one
    return joined


def _joined(mine: Saved | None, other: Saved | None, before: Mark | None, wall: float) -> Saved | None:
    if other is None or mark(other) == before:
        return mine
    if mine is None:  # the throttle has forgotten the host
        mine = {"heard": 0.0 if before is None else before.heard}
    is_ours = before is not None and other["heard"] == before.heard  # but its pause is not
    if is_ours or mine["heard"] >= other["heard"] or other["heard"] > wall + CLOCKS_APART_S:
        newer, older = mine, other
    else:
        newer, older = other, mine
    until = _number(older, "until") or 0.0
    if until <= max(wall, _number(newer, "until") or 0.0):
        return newer
    return {**newer, **{name: older[name] for name in _PAUSE if name in older}}


def mark(saved: Saved) -> Mark:
    """By what this is known again."""
    return Mark(saved["heard"], saved.get("until"))


def is_worth_writing(saved: Saved) -> bool:
    """Whether it says more than that the host was asked."""
    return not saved.keys() <= {"heard", "last"}


# --- one host ---------------------------------------------------------------------------


def noted(host: Host, *, now: float, wall: float, floor_at: float | None) -> Saved:
    """What is known of a host, whether it is worth writing or not.

    floor_at: when its floor was told, Unix seconds; None for one not to be written.
    """
    shift = wall - now  # from the monotonic clock to the other
    saved = _gate(host, now, shift)
    if host.backoff:
        saved["backoff"] = host.backoff
    if host.floor and floor_at is not None and wall - floor_at <= FORGET_S:
        saved |= {"floor": host.floor, "floor_at": floor_at}
    if host.buckets is not None:
        saved |= _buckets(host.buckets, now, shift)
    if isfinite(host.last):
        saved["last"] = host.last + shift
    saved["heard"] = max(host.last, host.seen) + shift
    return saved


def restore(host: Host, now: float, *, saved: Saved, wall: float) -> bool:
    """Have the host go on where `saved` ended. A clock that was set makes no pause longer than the ceiling.

    False: that is no change that would have to be saved.
    """
    last = _number(saved, "last")
    if last is not None:
        host.last = max(host.last, min(now, now + last - wall))
    floor = floor_of(saved, wall=wall)
    if floor is not None:
        host.set_floor(floor[0], now=now)
    host.resume(_number(saved, "backoff") or 0.0, now=now)
    _restore_gate(host, host, saved, now, wall)
    for name, gate in _entries(saved, "buckets"):
        bucket = host.named(name, now) if isinstance(gate, dict) else None
        if bucket is not None:
            _restore_gate(bucket, host, gate, now, wall)
    if host.buckets is not None:
        _restore_routes(host.buckets.routes, saved)
    host.seen = min(now, now + saved["heard"] - wall)  # to read of a host is not to hear of it
    return False


def floor_of(saved: Saved, *, wall: float) -> tuple[float, float] | None:
    """The floor, and when it was told; None if there is none, or it is a day old."""
    floor, told = _number(saved, "floor"), _number(saved, "floor_at")
    return (floor, told) if floor is not None and told is not None and abs(wall - told) <= FORGET_S else None


# --- one gate ---------------------------------------------------------------------------


def _gate(gate: Gate, now: float, shift: float) -> Saved:
    saved: Saved = {}
    told = gate.told
    if gate.paused_until > now:
        saved["until"] = gate.paused_until + shift
        if told is not None:
            saved |= {"source": told.source, "policy": told.policy, "by_quota": told.by_quota}
    if told is not None and told.remaining is not None and told.reset_at is not None and told.reset_at > now:
        saved |= {"left": told.remaining, "reset": told.reset_at + shift, "field": told.field}
    return saved


def _restore_gate(gate: Gate, host: Host, saved: Saved, now: float, wall: float) -> None:
    ceiling = host.rules.max_retry_after
    left, reset, until = (_number(saved, name) for name in ("left", "reset", "until"))
    if left is not None and reset is not None and reset > wall:
        field = _word(saved, "field")
        gate.keep_left(left, reset - wall, field, now=now, ceiling=ceiling, smooth=host.rules.smooth)
    if until is not None and until > wall:
        by_quota = saved.get("by_quota") is True
        source, policy = _word(saved, "source"), _word(saved, "policy")
        gate.pause_for(until - wall, now=now, ceiling=ceiling, source=source, policy=policy, by_quota=by_quota)


# --- buckets ----------------------------------------------------------------------------


def _buckets(buckets: Buckets, now: float, shift: float) -> Saved:
    gates = {name: _gate(bucket, now, shift) for name, bucket in buckets.by_name.items()}
    saved: Saved = {"buckets": {name: gate for name, gate in gates.items() if gate}}
    if not saved["buckets"]:
        return {}
    if any(_is_closed(bucket, now) for bucket in buckets.by_name.values()):  # else the next run learns them in time
        routes = buckets.routes
        saved["routes"] = {str(route): bucket for route, bucket in routes.routes.items()}
        saved["folders"] = {str(folder): list(known) for folder, known in routes.folders.items()}
    return saved


def _is_closed(bucket: Bucket, now: float) -> bool:
    return not bucket.is_idle(now)


def _restore_routes(routes: Routes, saved: Saved) -> None:
    for key, bucket in _entries(saved, "routes"):
        if _CHECKSUM.fullmatch(key) and _is_name(bucket):
            routes.keep(int(key), bucket)
    for key, known in _entries(saved, "folders"):
        if _CHECKSUM.fullmatch(key) and isinstance(known, list) and len(known) == 2:
            bucket, members = known
            if (bucket is None or _is_name(bucket)) and isinstance(members, list):
                routes.keep_folder(int(key), Folder(bucket, tuple(filter(_is_checksum, members[:ENOUGH]))))


# --- what may stand in a file that anybody can write ------------------------------------


def _latest(hosts: Mapping[str, Saved]) -> dict[str, Saved]:
    """As many as may be kept, the last heard of."""
    if len(hosts) <= MOST_HOSTS:
        return dict(hosts)
    return dict(sorted(hosts.items(), key=lambda item: item[1]["heard"], reverse=True)[:MOST_HOSTS])


def _is_recent(host: Any, wall: float) -> bool:
    heard = _number(host, "heard") if isinstance(host, dict) else None
    return heard is not None and abs(wall - heard) <= FORGET_S


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _is_checksum(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _word(saved: Saved, name: str) -> str:
    value = saved.get(name)
    return value if isinstance(value, str) and _is_name(value) else ""


def _number(saved: Saved, name: str) -> float | None:
    """A number of 0 or more, below 10**12."""
    value = saved.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e12 else None


def _entries(saved: Saved, name: str) -> Iterable[tuple[str, Any]]:
    value = saved.get(name)
    return [(key, one) for key, one in value.items() if _is_name(key)] if isinstance(value, dict) else []
