"""What an answer says about its host's pace, in whatever words: the look that every answer gets.

Nearly all answers say nothing, and that is found out in well under a microsecond. What reads the
others is imported when the first of them comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from requests.structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from .verdict import Declared

# An answer without any of these says nothing of pace: every field that `dialects.py` reads a delay,
# what is left, or a reset from. Written out, since that file is not imported until one has come.
TELLING = frozenset(
    "retry-after retry-after-ms x-ms-retry-after-ms ratelimit "
    "ratelimit-remaining ratelimit-reset ratelimit-resettime "
    "x-ratelimit-remaining x-ratelimit-reset x-ratelimit-reset-after "
    "x-rate-limit-remaining x-rate-limit-reset "
    "x-user-limit-24hour-remaining x-user-limit-24hour-reset "
    "x-app-limit-24hour-remaining x-app-limit-24hour-reset "
    "x-ratelimit-remaining-second x-ratelimit-remaining-minute x-ratelimit-remaining-hour "
    "x-ratelimit-remaining-day x-ratelimit-remaining-month x-ratelimit-remaining-year "
    "x-ratelimit-remaining-requests x-ratelimit-reset-requests "
    "x-ratelimit-remaining-tokens x-ratelimit-reset-tokens "
    "anthropic-ratelimit-requests-remaining anthropic-ratelimit-requests-reset "
    "anthropic-ratelimit-tokens-remaining anthropic-ratelimit-tokens-reset "
    "anthropic-ratelimit-input-tokens-remaining anthropic-ratelimit-input-tokens-reset "
    "anthropic-ratelimit-output-tokens-remaining anthropic-ratelimit-output-tokens-reset "
    "x-ratelimit-requests-remaining x-ratelimit-requests-reset "
    "x-ratelimit-complexity-remaining x-ratelimit-complexity-reset "
    "x-shopify-shop-api-call-limit".split()
)


def is_silent(headers: Mapping[str, Any]) -> bool:
    """Whether `declared` would say None, for all that is quickly seen."""
    # requests keeps the names in lower case in there. To ask by the methods would take ten times as long.
    return isinstance(headers, CaseInsensitiveDict) and TELLING.isdisjoint(headers._store)


def declared(headers: Mapping[str, Any], status: int, *, now: float, host: str = "") -> Declared | None:
    """What an answer from the wire says about pace; None for nearly all, which say nothing.

    headers: names in any case. now: the wall clock at receipt, Unix seconds. host: the name the answer
    came from, where it is known: some hosts have a way of their own to write a date. Nothing is
    raised over what a server sent, and no number in the result is infinite or negative. An answer
    that a cache or a layer of this session made says nothing of the host: do not ask about it.
    """
    if is_silent(headers):
        return None
    fields = _lower(headers)
    if TELLING.isdisjoint(fields):
        return None
    from .verdict import verdict

    return verdict(fields, status, now=now, host=host)


def _lower(headers: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(headers, CaseInsensitiveDict):
        return {name: pair[1] for name, pair in headers._store.items() if isinstance(name, str)}
    return {name.lower(): value for name, value in headers.items() if isinstance(name, str)}
