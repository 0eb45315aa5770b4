"""One member of a RateLimit field: its parts, and how it is read. Pure.

The fields are a draft still, draft-ietf-httpapi-ratelimit-headers; "revision" is that of the draft.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from .structured import BareItem, Item, Malformed, Token

# The parameters' names, here and nowhere else: an open proposal would rename `r` and `t`.
QUOTA = "q"
WINDOW = "w"
QUOTA_UNIT = "qu"
PARTITION_KEY = "pk"
AVAILABLE = "r"
EFFECTIVE_WINDOW = "t"

REQUESTS = "requests"  # the default unit
_UNITS = {"request": REQUESTS}  # one table of the draft spells it so
_Made = TypeVar("_Made")


class QuotaPolicy(NamedTuple):
    """How much a server grants, over what time: a member of RateLimit-Policy.

    name: the policy's, "" in revisions that have no names. quota: in `unit`. window: seconds, None
    if unknown. partition_key: whose share of the policy it is, None if it is not shared out.
    """

    name: str
    quota: int
    window: int | None = None
    unit: str = REQUESTS
    partition_key: bytes | None = None


class ServiceLimit(NamedTuple):
    """How much of a quota is left: a member of RateLimit.

    No more than `available` units within the next `effective_window` seconds; None where the server
    does not say. quota, unit: those of its policy, where they are known.
    """

    name: str
    available: int | None
    effective_window: int | None = None
    partition_key: bytes | None = None
    quota: int | None = None
    unit: str = REQUESTS


class RateLimitFields(NamedTuple):
    """What the fields of one answer say. revision: that of the draft: 11, 7, or 6 for the three fields before it."""

    revision: int
    policies: tuple[QuotaPolicy, ...] = ()
    limits: tuple[ServiceLimit, ...] = ()


# --- one member: Malformed if a part is missing or wrong --------------------------------


def quota_policy(member: Item) -> QuotaPolicy:
    """A member of RateLimit-Policy, revision 11."""
    parameters = member.parameters
    window = _optional(parameters, WINDOW, count)
    if window == 0:
        raise Malformed("a window without length")
    unit = _optional(parameters, QUOTA_UNIT, _word) or REQUESTS
    key = _optional(parameters, PARTITION_KEY, _bytes)
    return QuotaPolicy(_word(member.value), count(parameters.get(QUOTA)), window, _UNITS.get(unit, unit), key)


def service_limit(member: Item) -> ServiceLimit:
    """A member of RateLimit, revision 11."""
    parameters = member.parameters
    return ServiceLimit(
        name=_word(member.value),
        available=count(parameters.get(AVAILABLE)),
        effective_window=_optional(parameters, EFFECTIVE_WINDOW, count),
        partition_key=_optional(parameters, PARTITION_KEY, _bytes),
    )


def older_quota_policy(member: Item) -> QuotaPolicy:
    """A member of RateLimit-Policy, up to revision 7."""
    return QuotaPolicy("", count(member.value), count(member.parameters.get(WINDOW)))


# --- one value: Malformed if it is of the wrong kind ------------------------------------


def _optional(parameters: Mapping[str, BareItem], name: str, read: Callable[[BareItem], _Made]) -> _Made | None:
    return read(parameters[name]) if name in parameters else None


def count(value: BareItem | None) -> int:
    """An Integer of 0 or more."""
    if type(value) is not int or value < 0:  # and not a bool or a Date, which are kinds of int
        raise Malformed(f"{value!r} is no number of units or seconds")
    return value


def _word(value: BareItem) -> str:
    if type(value) is not str and not isinstance(value, Token):  # written are Strings; Tokens may come one day
        raise Malformed(f"{value!r} is no name")
    return str(value)


def _bytes(value: BareItem) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed(f"{value!r} is no byte sequence")
    return value
