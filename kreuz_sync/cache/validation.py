"""Asking the origin whether a stored response still holds, and what its answer changes. Pure.

RFC 9111, sections 3.2, 4.3 and 4.3.5; entity tags: RFC 9110, section 8.8.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .ask import Ask
from .keys import Keys
from .lines import first, lines, without
from .policy import Policy
from .selecting import variant_of, vary_names
from .stored import FieldLines, Stored
from .storing import refusal_of_stored, storable_fields

_ENTITY_TAG = re.compile(r'(?:W/)?"[^"]*"|[^\s,]+')
# They describe the bytes that are stored, which a 304 does not touch. Content-Encoding as well: a
# different one there would make the body unreadable.
_OF_THE_BODY = frozenset({"content-encoding", "content-length", "content-range"})
# When the stored response was made is for the validating exchange to say, or for nobody.
_OF_THE_EXCHANGE = frozenset({"age", "date"})


class Nominee(NamedTuple):
    """A stored response that a conditional request is about: its key and validators, verbatim; date: Unix seconds."""

    key: str
    etag: str | None
    last_modified: str | None
    date: float


def conditions(nominees: Sequence[Nominee]) -> dict[str, str]:
    """The fields that make a request conditional on `nominees`, empty if they have no validators.

    Values are copied as they came. RFC 9111, section 4.3.1.
    """
    found: dict[str, str] = {}
    tags = dict.fromkeys(nominee.etag for nominee in nominees if nominee.etag)
    if tags:
        found["If-None-Match"] = ", ".join(tags)
    if len(nominees) == 1 and nominees[0].last_modified:
        found["If-Modified-Since"] = nominees[0].last_modified
    return found


def entity_tags(text: str) -> list[str]:
    """The entity tags in If-None-Match, as they stand; also malformed ones, which match themselves."""
    return _ENTITY_TAG.findall(text)


def weakly_equal(one: str, other: str) -> bool:
    """Whether two entity tags name the same thing, weak or not: RFC 9110, section 8.8.3.2."""
    return one.removeprefix("W/") == other.removeprefix("W/")


def confirmed(fields: FieldLines, nominees: Sequence[Nominee]) -> Nominee | None:
    """Which of `nominees` a 304 with these `fields` is about; None if that is none of them, or unclear.

    RFC 9111, section 4.3.4, but for one thing: an entity tag that differs from a single nominee's
    only in being weak or strong confirms it. Servers that compress on the fly send `W/"x"` with a
    body and `"x"` with a 304; by the letter such a response could never be validated.
    """
    newest = sorted(nominees, key=lambda nominee: nominee.date, reverse=True)
    tag = first(fields, "etag")
    if tag is not None:
        same = [nominee for nominee in newest if nominee.etag == tag]
        alike = [nominee for nominee in newest if nominee.etag is not None and weakly_equal(nominee.etag, tag)]
        return next(iter(same or alike), None)
    changed = first(fields, "last-modified")
    if changed is not None:
        newest = [nominee for nominee in newest if nominee.last_modified in (None, changed)]
    return newest[0] if len(newest) == 1 else None


def own_nominees(ask: Ask, nominees: Sequence[Nominee]) -> list[Nominee]:
    """Those of `nominees` that the caller's own condition names, so that a 304 to it is about them too."""
    tags = ask.get("if-none-match")
    if tags is not None:
        wanted = entity_tags(tags)
        return [
            nominee
            for nominee in nominees
            if nominee.etag is not None and any(weakly_equal(nominee.etag, tag) for tag in wanted)
        ]
    since = ask.get("if-modified-since")
    return [nominee for nominee in nominees if since is not None and nominee.last_modified == since.strip(" \t")]


def freshen(
    stored: Stored,
    fields: FieldLines,
    ask: Ask,
    policy: Policy,
    keys: Keys,
    *,
    request_time: float,
    response_time: float,
) -> Stored:
    """`stored` after a 304 with `fields`, or a HEAD that confirms it. RFC 9111, sections 3.2 and 4.3.4.

    A field in the answer replaces all lines of its name; the others stay. The times are those of
    the exchange that validated it (Unix seconds). With another Vary it is for requests like `ask`.
    """
    answered = storable_fields(fields, received=response_time)
    kept_from_it = without(answered, _OF_THE_BODY)
    replaced = {name.lower() for name, _ in kept_from_it} | _OF_THE_EXCHANGE
    merged = without(stored.fields, replaced) + kept_from_it
    vary = vary_names(lines(merged, "vary")) or ()
    return stored._replace(
        fields=merged,
        vary=vary,
        variant=stored.variant if vary == stored.vary else variant_of(vary, ask, keys.secret),
        request_time=request_time,
        response_time=response_time,
        kept_for=_kept_for(stored, ask, policy, keys),
        extra={name: value for name, value in stored.extra.items() if name != "outdated"},
    )


def keepable(stored: Stored, policy: Policy, url: str) -> bool:
    """Whether a freshened response may still be stored; it may be used this once if not. url: canonical."""
    return refusal_of_stored(stored, policy, url) is None


def _kept_for(stored: Stored, ask: Ask, policy: Policy, keys: Keys) -> float | None:
    if not policy.keeps_time:
        return None
    return stored.kept_for if "pinned" in stored.extra else policy.ttl_of(keys.canonical(ask.url))


def after_head(
    stored: Stored,
    status: int,
    fields: FieldLines,
    ask: Ask,
    policy: Policy,
    keys: Keys,
    *,
    request_time: float,
    response_time: float,
) -> Stored | None:
    """`stored` after an answer to HEAD; None if that says nothing about it. RFC 9111, section 4.3.5.

    Where its validators or its length differ from what is stored, that is `outdated`.
    """
    if status != 200:
        return None
    if stored.status != 200:
        return outdated(stored)
    for name in ("etag", "last-modified"):
        told = first(fields, name)
        if told is not None and told != first(stored.fields, name):
            return outdated(stored)
    length = first(fields, "content-length")
    if length is not None and length != str(stored.size) and length != first(stored.fields, "content-length"):
        return outdated(stored)
    return freshen(stored, fields, ask, policy, keys, request_time=request_time, response_time=response_time)


def outdated(stored: Stored) -> Stored:
    """`stored`, never again to be taken for fresh before it has been validated."""
    return stored._replace(extra={**stored.extra, "outdated": True})
