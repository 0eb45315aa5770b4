"""What to do with a request, given what is stored for it, and with the origin's answer. Pure.

The order of a call: `scope` (does the store matter to it at all?), then `decide` with the entry
that its key and `variants.choose` found. If that says `Forward`, the request goes out with its
`conditions`, and `conclude` or `without_answer` says what the outcome means. RFC 9111, section 4;
RFC 5861; the words of RFC 9211 where a request is forwarded.
"""

from __future__ import annotations

from collections.abc import Sequence

from .answering import answerable_range, part, unchanged
from .ask import Ask
from .decisions import AskAgain, Complete, Conclusion, Decision, Forward, Freshen, Hit, PassOn, Refuse
from .entry import Entry
from .lines import first
from .parts import PARTIAL, completes, completion
from .policy import NO_WISHES, Policy, Wishes
from .stored import FieldLines
from .validation import Nominee, conditions, confirmed, own_nominees

# RFC 5861, section 4: the statuses that count as an error for stale-if-error.
ERROR_STATUSES = frozenset({500, 502, 503, 504})
# Conditions that are for the origin alone (RFC 9111, section 4.3.2).
_CONDITIONS_FOR_THE_ORIGIN = ("if-match", "if-unmodified-since", "if-range")
# Validators of other variants sent along with a request that none of them matches.
_MOST_NOMINEES = 8


def scope(ask: Ask, wishes: Wishes = NO_WISHES, *, posts: bool = False) -> Forward | Refuse | None:
    """What is decided without looking into the store; None if it has to be looked into.

    posts: answers to POST are stored under a key of their own. RFC 9111, sections 4 and 5.2.1.
    """
    if ask.plain and ask.method in ("GET", "HEAD") and not wishes.offline:
        return None
    if ask.method not in ("GET", "HEAD") and not (posts and ask.method == "POST"):
        # Also a POST may say what a GET gets from now on, which `storing.refusal` finds out.
        forward = Forward("method", keep=ask.method == "POST" and not ask.directives.no_store)
    elif _for_the_origin(ask) or (ask.directives.no_store and not _store_only(ask, wishes)):
        forward = Forward("request", keep=False)
    else:
        return None
    return Refuse("only-if-cached") if _store_only(ask, wishes) else forward


def _for_the_origin(ask: Ask) -> bool:
    """Whether nothing that is stored could answer `ask`, whatever it is."""
    if ask.has_body and ask.method != "POST":  # its key would not tell one body from another
        return True
    if any(name in ask.fields for name in _CONDITIONS_FOR_THE_ORIGIN):
        return True
    return ask.method == "GET" and "range" in ask.fields and not answerable_range(ask)


def decide(
    ask: Ask,
    entry: Entry | None,
    key: str,
    wishes: Wishes = NO_WISHES,
    *,
    now: float,
    others: Sequence[Nominee] = (),
) -> Decision:
    """What to do with `ask`, given the stored response that it selects. RFC 9111, sections 4 and 4.2.4.

    entry: what is under `key`, None if nothing there answers `ask`. others: the variants that do
    not match, whose validators may be tried. now: Unix seconds.
    """
    if entry is None:
        return _allowed(_nothing_stored(ask, others), ask, wishes)
    if entry.held is not None and part(ask, entry) is None:
        return _allowed(_lacking(ask, entry, key), ask, wishes)
    age = entry.age(now)
    if ask.plain and wishes is NO_WISHES:  # nearly every hit
        if age < entry.lifetime and not entry.validate_first:
            return Hit(entry, age, entry.stored.status)
        stale = _stale_while_revalidate(ask, entry, age)
    else:
        if _fresh_enough(ask, entry, wishes, age, 0.0):
            return _allowed(_hit(ask, entry, age), ask, wishes)
        stale = _stale(ask, entry, wishes, age)
    if stale is None:
        return _allowed(_validate(ask, entry, key, age), ask, wishes)
    refresh = stale == "stale-while-revalidate" and not _store_only(ask, wishes)
    return _allowed(_hit(ask, entry, age, stale, refresh), ask, wishes)


def _allowed(decision: Hit | Forward, ask: Ask, wishes: Wishes) -> Decision:
    """`decision`, unless that is to ask the origin and the caller wants nobody asked."""
    return Refuse("only-if-cached") if isinstance(decision, Forward) and _store_only(ask, wishes) else decision


def _nothing_stored(ask: Ask, others: Sequence[Nominee]) -> Forward:
    if not others:
        return Forward("uri-miss")
    if ask.conditional or ask.directives.no_cache or "range" in ask.fields:
        return Forward("vary-miss")
    nominees = tuple(other for other in others if other.etag)[:_MOST_NOMINEES]
    # With a single nominee a date would do too, but a date says little about another variant.
    tags = conditions([nominee._replace(last_modified=None) for nominee in nominees])
    return Forward("vary-miss", tags, nominees)


def _lacking(ask: Ask, entry: Entry, key: str) -> Forward:
    """A stored part is not what `ask` wants; where that wants the whole, what is missing will do."""
    forward = Forward("partial", entry=entry, key=key)
    wanted = completion(entry) if ask.plain and ask.method == "GET" else {}
    return forward._replace(conditions=wanted, completes=True) if wanted else forward


def validation(key: str, entry: Entry) -> Forward:
    """How to validate `entry`, which is under `key`, for its own sake: in the background, without the caller's fields.

    The request must have no range and no condition of its own.
    """
    nominee = Nominee(key, entry.etag, entry.last_modified, entry.date)
    found = conditions([nominee])
    return Forward("stale", found, (nominee,) if found else (), entry, key)


def validated(ask: Ask, entry: Entry, *, now: float) -> Hit | Forward:
    """The answer from `entry`, which was validated or stored just now: only the caller's condition and range matter."""
    return _hit(ask, entry, entry.age(now))


def _validate(ask: Ask, entry: Entry, key: str, age: float) -> Forward:
    """Section 4.3.1. A caller who brings a condition of its own is the one who gets the answer to it."""
    reason = "stale" if age >= entry.lifetime or entry.validate_first else "request"
    if ask.method == "POST":  # a condition there would be one for carrying out the request
        return Forward(reason, entry=entry, key=key)
    if ask.conditional:
        nominee = Nominee(key, entry.etag, entry.last_modified, entry.date)
        return Forward(reason, {}, tuple(own_nominees(ask, [nominee])), entry, key)
    return validation(key, entry)._replace(reason=reason)


def _fresh_enough(ask: Ask, entry: Entry, wishes: Wishes, age: float, grace: float) -> bool:
    """Whether `entry` is what `ask` wants without asking anybody, be it `grace` seconds past what it wants."""
    said = ask.directives
    if entry.validate_first or said.no_cache:
        return False
    left = entry.lifetime - age
    if left < -grace or (left <= 0 and not grace):
        return False
    if said.min_fresh is not None and said.min_fresh - left > grace:
        return False
    if entry.immutable and left > 0 and not said.max_age:  # a reload is no reason to validate it: RFC 8246
        return True
    if wishes.always_revalidate or (said.max_age == 0 and not grace):
        return False
    return said.max_age is None or age - said.max_age <= grace


def _stale(ask: Ask, entry: Entry, wishes: Wishes, age: float) -> str | None:
    """Why `entry` may be used though it is not fresh enough; None if it may not."""
    if ask.directives.no_cache:
        return None
    if wishes.offline and (entry.fixed_time or not entry.never_stale):
        return "offline"
    if entry.never_stale:
        return None
    allowed = ask.directives.max_stale
    if allowed and not wishes.always_revalidate and _fresh_enough(ask, entry, wishes, age, allowed):
        return "max-stale"
    return None if wishes.always_revalidate else _stale_while_revalidate(ask, entry, age)


def _stale_while_revalidate(ask: Ask, entry: Entry, age: float) -> str | None:
    """RFC 5861, section 3. A caller who says how fresh it must be does not get this."""
    said = ask.directives
    granted = entry.stale_while_revalidate
    if not granted or entry.never_stale or said.no_cache or said.max_age is not None or said.min_fresh is not None:
        return None
    return "stale-while-revalidate" if age - entry.lifetime <= granted else None


def _hit(ask: Ask, entry: Entry, age: float, stale: str | None = None, refresh: bool = False) -> Hit | Forward:
    """The answer from `entry`: all of it, or what the caller's condition and range make of it."""
    if entry.held is not None and part(ask, entry) is None:
        return Forward("partial")
    if ask.conditional and unchanged(ask, entry):
        return Hit(entry, age, 304, None, stale, refresh)
    if "range" in ask.fields and ask.method == "GET" and entry.stored.status in (200, PARTIAL):
        # Of a coded body it would be a part of the code, which nobody could decode: the origin may choose another.
        asked = part(ask, entry) if first(entry.fields, "content-encoding") in (None, "identity") else None
        if asked is None:
            return Forward("partial", keep=False)
        return Hit(entry, age, PARTIAL, asked, stale, refresh)
    return Hit(entry, age, entry.stored.status, None, stale, refresh)


def _store_only(ask: Ask, wishes: Wishes) -> bool:
    return ask.directives.only_if_cached or wishes.offline


def conclude(
    ask: Ask,
    forward: Forward,
    status: int,
    fields: FieldLines,
    policy: Policy,
    wishes: Wishes = NO_WISHES,
    *,
    now: float,
) -> Conclusion:
    """What the origin's answer to a forwarded request means. RFC 9111, section 4.3.3; RFC 5861, section 4."""
    if forward.completes and status in (PARTIAL, 416):
        has_rest = status == PARTIAL and forward.entry is not None and completes(forward.entry, fields)
        return Complete() if has_rest else AskAgain(forward.plainly)
    if status == 304:
        nominee = confirmed(fields, forward.nominees)
        if nominee is not None:
            return Freshen(nominee, pass_on=ask.conditional)
        if forward.conditions:
            return AskAgain(forward.plainly)
        return PassOn(keep=False)
    if status in ERROR_STATUSES and forward.entry is not None:
        # Even an error that may be stored must not take the place of what was there before it.
        return _instead_of_error(ask, forward, policy, wishes, now, 0.0) or PassOn(keep=False)
    supersedes = forward.entry is not None and ask.method == "GET" and status != PARTIAL and 200 <= status < 300
    return PassOn(forward.keep, supersedes)


def without_answer(ask: Ask, forward: Forward, policy: Policy, wishes: Wishes = NO_WISHES, *, now: float) -> Hit | None:
    """The stored response that stands in for an answer that did not come; None if the failure has to be told.

    RFC 9111, section 4.2.4; RFC 5861, section 4.
    """
    return _instead_of_error(ask, forward, policy, wishes, now, policy.stale_if_disconnected)


def _instead_of_error(
    ask: Ask, forward: Forward, policy: Policy, wishes: Wishes, now: float, disconnected: float
) -> Hit | None:
    entry = forward.entry
    if entry is None or entry.never_stale or ask.directives.no_cache:
        return None
    age = entry.age(now)
    wanted = policy.stale_if_error if wishes.stale_if_error is None else wishes.stale_if_error
    granted = max(wanted, entry.stale_if_error, ask.directives.stale_if_error)
    over = age - entry.lifetime
    if granted and over <= granted:
        reason = "stale-if-error"
    elif disconnected and over <= disconnected:
        reason = "disconnected"
    else:
        return None
    hit = _hit(ask, entry, age, reason)
    return hit if isinstance(hit, Hit) else None
