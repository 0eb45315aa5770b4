"""RateLimit header fields, both ways: a server writes how far its quotas are used, a client reads it. Pure.

The fields are a draft still, draft-ietf-httpapi-ratelimit-headers. Written here are revision 11 and
revision 7; `reading.py` reads these and what came before.
"""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from math import ceil

from .members import (
    AVAILABLE,
    EFFECTIVE_WINDOW,
    QUOTA,
    WINDOW,
    QuotaPolicy,
    RateLimitFields,
    ServiceLimit,
)
from .reading import (
    parse_fields,
    parse_limit_draft_7,
    parse_limits,
    parse_policies,
    parse_policies_draft_7,
    parse_retry_after,
    parse_three_fields,
    read_fields,
)
from .structured import MOST, Item, is_string, serialise_dictionary, serialise_list
from .usage import PolicyUsage, whole_seconds

__all__ = [
    "QuotaPolicy",
    "RateLimitFields",
    "ServiceLimit",
    "is_policy_name",
    "parse_fields",
    "parse_limit_draft_7",
    "parse_limits",
    "parse_policies",
    "parse_policies_draft_7",
    "parse_retry_after",
    "parse_three_fields",
    "read_fields",
    "response_fields",
    "serialise_limit_draft_7",
    "serialise_limits",
    "serialise_policies",
    "serialise_policies_draft_7",
    "serialise_retry_after",
]


def response_fields(policies: Iterable[PolicyUsage], revision: str = "draft-11") -> list[tuple[str, str]]:
    """The header fields that tell of `policies`, as pairs to append. revision: "draft-11", "draft-7" or "none".

    >>> response_fields([PolicyUsage("search", limit=30, window=60.0, used=1, reset_after=59.2)])
    [('RateLimit-Policy', '"search";q=30;w=60'), ('RateLimit', '"search";r=29;t=60')]
    """
    usages = tuple(policies)
    if revision == "none" or not usages:
        return []
    if revision == "draft-7":
        return [
            ("RateLimit-Policy", serialise_policies_draft_7(usages)),
            ("RateLimit", serialise_limit_draft_7(usages)),
        ]
    if revision != "draft-11":
        raise ValueError(f"revision={revision!r}: 'draft-11', 'draft-7' or 'none' is wanted")
    return [("RateLimit-Policy", serialise_policies(usages)), ("RateLimit", serialise_limits(usages))]


def serialise_policies(policies: Iterable[PolicyUsage]) -> str:
    """RateLimit-Policy of revision 11. Raises ValueError for a name that `is_policy_name` denies.

    >>> serialise_policies([PolicyUsage('the "fast" lane', limit=5, window=1.5, used=2, reset_after=1.0)])
    '"the \\\\"fast\\\\" lane";q=5;w=2'
    """
    return ", ".join(
        f"{_string(str(policy.name))};{QUOTA}={_whole(policy.limit)};{WINDOW}={_seconds(policy.window)}"
        for policy in policies
    )


def serialise_limits(policies: Iterable[PolicyUsage]) -> str:
    """RateLimit of revision 11. Raises ValueError for a name that `is_policy_name` denies.

    >>> serialise_limits([PolicyUsage("search", limit=30, window=60.0, used=31, reset_after=0.2)])
    '"search";r=0;t=1'
    """
    return ", ".join(
        f"{_string(str(policy.name))};{AVAILABLE}={_whole(policy.remaining)};{EFFECTIVE_WINDOW}={_seconds(policy.reset_after)}"
        for policy in policies
    )


def serialise_policies_draft_7(policies: Iterable[PolicyUsage]) -> str:
    """RateLimit-Policy of revision 7, which has no names.

    >>> serialise_policies_draft_7([PolicyUsage("search", limit=30, window=60.0, used=1, reset_after=59.2)])
    '30;w=60'
    """
    return serialise_list(Item(_whole(policy.limit), {WINDOW: _seconds(policy.window)}) for policy in policies)


def serialise_limit_draft_7(policies: Iterable[PolicyUsage]) -> str:
    """RateLimit of revision 7: of several policies, the one that is closest to its end. There must be one at least.

    >>> serialise_limit_draft_7([PolicyUsage("search", limit=30, window=60.0, used=1, reset_after=59.2)])
    'limit=30, remaining=29, reset=60'
    """
    closest = min(policies, key=lambda policy: (policy.remaining, -policy.reset_after))
    return serialise_dictionary(
        {
            "limit": Item(_whole(closest.limit)),
            "remaining": Item(_whole(closest.remaining)),
            "reset": Item(_seconds(closest.reset_after)),
        }
    )


def serialise_retry_after(seconds: float, *, now: float | None = None) -> str:
    """Retry-After in seconds; as a date if `now` is given, the server's wall clock, Unix seconds.

    Rounded up, and at least 1: who obeys comes no earlier. RFC 9110, section 10.2.3.

    >>> serialise_retry_after(0.3), serialise_retry_after(30.0, now=784111777.2)
    ('1', 'Sun, 06 Nov 1994 08:50:08 GMT')
    """
    return str(whole_seconds(seconds)) if now is None else formatdate(ceil(now + max(1.0, seconds)), usegmt=True)


def is_policy_name(name: str) -> bool:
    """Whether the fields can carry `name`: ASCII from space to tilde, and not empty.

    >>> is_policy_name("search"), is_policy_name("Suche für alle")
    (True, False)
    """
    return bool(name) and is_string(name)


# Written out above, and not through Items: a server does this for every answer, and of all of it
# only a name needs care. There are few names.
@lru_cache(maxsize=256)
def _string(name: str) -> str:
    return serialise_list([Item(name)])


def _whole(units: int) -> int:
    # A quota of more digits than the field can have is as good as none.
    return min(units, MOST)


def _seconds(seconds: float) -> int:
    return min(whole_seconds(seconds), MOST)
