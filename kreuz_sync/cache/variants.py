"""Several stored responses for one URI: which answers a request, and where a new one goes. Pure.

The record under the primary key is one of the variants, and lists the others with the keys they
are under. So the usual hit, with a single variant, reads one record, and dropping the primary
record drops them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .ask import Ask
from .keys import Keys
from .lines import first
from .selecting import matches, variant_of
from .stored import Stored, is_sound_reference
from .validation import Nominee

# A resource that varies by something unbounded (a User-Agent, a cookie) would make its primary
# record grow without end; the oldest are forgotten, and left to the store to evict.
MOST_OTHERS = 32


class Other(NamedTuple):
    """Another variant: the key it is under, what selects it, its validators verbatim, its time (Unix seconds)."""

    key: str
    vary: tuple[str, ...]
    variant: str
    etag: str | None
    last_modified: str | None
    date: float


class Place(NamedTuple):
    """Where a new response goes: the key and head to write with its body.

    primary: the head to put before what is under the primary key, None where that is this record.
    """

    key: str
    stored: Stored
    primary: Stored | None


def others_of(stored: Stored) -> tuple[Other, ...]:
    """The variants that a primary record lists, newest first; what is damaged is left out."""
    listed = stored.extra.get("others")
    if not listed:
        return ()
    found = [other for item in listed if (other := _read(item)) is not None] if isinstance(listed, list) else []
    return tuple(sorted(found, key=lambda other: other.date, reverse=True))


def _read(item: Any) -> Other | None:
    try:
        other = Other(*item)
        other = other._replace(vary=tuple(other.vary))
    except (TypeError, ValueError):
        return None
    return other if is_sound_reference(*other) else None


def choose(primary: Stored, others: Sequence[Other], key: str, ask: Ask, keys: Keys) -> str | None:
    """The key of the stored response that `ask` selects; None if no variant matches.

    key: what `primary` is under. Of several that match the newest is taken: RFC 9111, section 4.1.
    """
    own = matches(primary, ask, keys.secret)
    if not others:
        return key if own else None
    date = primary.response_time if own else float("-inf")
    for other in others:  # newest first
        if other.date > date and variant_of(other.vary, ask, keys.secret) == other.variant:
            return other.key
    return key if own else None


def nominees(primary: Stored, others: Sequence[Other], key: str) -> list[Nominee]:
    """All variants, newest first, as what a 304 may confirm; `key` is that of `primary`."""
    own = Other(
        key, (), "", first(primary.fields, "etag"), first(primary.fields, "last-modified"), primary.response_time
    )
    every = sorted((own, *others), key=lambda other: other.date, reverse=True)
    return [Nominee(other.key, other.etag, other.last_modified, other.date) for other in every]


def place(fresh: Stored, primary: Stored | None, key: str, keys: Keys) -> Place:
    """Where `fresh` goes, given what is under its primary `key` now.

    A response without Vary answers every request and so replaces all variants; one with Vary
    replaces one without, which would go on answering in its place.
    """
    if primary is None or not primary.vary or not fresh.vary:
        return Place(key, fresh, None)
    own = key if _same(fresh, primary.vary, primary.variant) else keys.secondary(key, fresh.vary, fresh.variant)
    # Other variants were found to be the same as the one that is replaced; of the new one nobody knows.
    others = [other for other in others_of(primary) if other.key != own]
    if own == key:
        return Place(key, _listing(fresh, others), None)
    return Place(own, fresh, _listing(primary, [_listed(own, fresh), *others]))


def answers_also(primary: Stored, key: str, confirmed: Stored, ask: Ask, keys: Keys) -> Stored:
    """`primary` with the note that `confirmed`, which is under `key`, is the answer for requests like `ask`.

    A 304 says so when the validators of several variants were sent: RFC 9111, section 4.1.
    """
    also = confirmed._replace(variant=variant_of(confirmed.vary, ask, keys.secret))
    return _listing(primary, [_listed(key, also), *others_of(primary)])


def _listed(key: str, other: Stored) -> Other:
    tag, changed = first(other.fields, "etag"), first(other.fields, "last-modified")
    return Other(key, other.vary, other.variant, tag, changed, other.response_time)


def without_others(stored: Stored) -> Stored:
    """`stored` as it is kept under a secondary key, or anew: without a list."""
    return stored._replace(extra={name: value for name, value in stored.extra.items() if name != "others"})


def _listing(stored: Stored, others: Sequence[Other]) -> Stored:
    """`stored` with `others` for its list; of several for the same requests the first counts."""
    kept: dict[tuple[tuple[str, ...], str], list[Any]] = {}
    for other in others:
        if not _same(stored, other.vary, other.variant):
            kept.setdefault((other.vary, other.variant), list(other))
    alone = without_others(stored)
    listed = list(kept.values())[:MOST_OTHERS]
    return alone._replace(extra={**alone.extra, "others": listed}) if listed else alone


def _same(stored: Stored, vary: Sequence[str], variant: str) -> bool:
    return tuple(vary) == stored.vary and variant == stored.variant
