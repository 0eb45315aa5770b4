"""Which responses are stored, and what of them. Pure. RFC 9111, section 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from .ask import Ask
from .dates import imf_fixdate
from .directives import directives, listed_fields, window
from .freshness import HEURISTICALLY_CACHEABLE, date_value, explicit_lifetime, lifetime
from .keys import Keys
from .lines import Grouped, grouped, names, without
from .parts import PARTIAL, is_tellable
from .policy import Policy
from .selecting import variant_of, vary_names
from .stored import FieldLines, Stored
from .uris import canonical

# RFC 9110, section 7.6.1, and RFC 9111, section 3.1: for one connection, or for one proxy.
NEVER_STORED = frozenset(
    "connection keep-alive proxy-authenticate proxy-authentication-info proxy-authorization proxy-connection "
    "te transfer-encoding upgrade".split()
)
# Whatever lists them, without these a stored response would be read, or reused, wrongly. Connection
# must not list them anyway (RFC 9110, section 7.6.1).
_INDISPENSABLE = frozenset(
    "age cache-control content-encoding content-length content-type date etag expires last-modified vary".split()
)
# Answers that are no representation of the resource (RFC 6585; RFC 9110, section 15.4.5).
_NEVER = frozenset({304, 428, 429, 431, 511})
# Statuses whose meaning for a cache is known here (RFC 9111, section 5.2.2.3): those of RFC 9110.
_UNDERSTOOD = frozenset(
    {200, 201, 202, 203, 204, 205, *range(300, 306), 307, 308, *range(400, 418), 421, 422, 426, *range(500, 506)}
)
# What the "ttl" policy keeps besides 2xx: the permanent redirects.
_KEPT_REDIRECTS = frozenset({301, 308})

Directives = Mapping[str, str | None]


def refusal(
    ask: Ask,
    status: int,
    fields: FieldLines,
    policy: Policy,
    keys: Keys,
    *,
    received: float,
    posts: bool = False,
    parts: bool = False,
    challenge: bool = False,
) -> str | None:
    """Why a response to `ask` is not stored, in a word; None if it may be.

    received: when its header section came, Unix seconds. posts: answers to POST are wanted too,
    under their own key. parts: the answer to a range request is wanted. challenge: it is a
    challenge page. What depends on the body (its end, its size) is for who reads it.
    """
    if ask.directives.no_store:
        return "no-store"
    if "range" in ask.fields and not (parts and status in (200, PARTIAL)):
        return "range"
    if challenge:
        return "challenge"
    if status < 200 or status in _NEVER or (status == PARTIAL and not parts):
        return "status"
    read = grouped(fields)
    if status == PARTIAL and (ask.method != "GET" or not is_tellable(read)):
        return "range"
    if ask.method != "GET" and not (ask.method == "POST" and (posts or _answers_get(ask, status, read, policy, keys))):
        return "method"
    if vary_names(read.get("vary", ())) is None:
        return "vary"
    if keys.ignored_query and _leads_to_ignored(ask, read, keys):
        return "ignored parameter"
    return _refusal_of_response(status, read, policy, keys.canonical(ask.url), received)


def _leads_to_ignored(ask: Ask, read: Grouped, keys: Keys) -> bool:
    """Whether a link in its fields has a parameter that makes no difference: the next caller's may be another."""
    for name in ("location", "content-location"):
        for line in read.get(name, ()):
            try:
                url = urljoin(ask.url, line.strip(" \t"))
            except ValueError:
                continue
            if keys.canonical(url) != canonical(url):
                return True
    return False


def refusal_of_stored(stored: Stored, policy: Policy, url: str) -> str | None:
    """Why `policy` would not store what is stored already; None if it would. url: canonical.

    Another policy may have stored it, or a 304 changed what its origin says.
    """
    read = grouped(stored.fields)
    if vary_names(read.get("vary", ())) is None:
        return "vary"
    return _refusal_of_response(stored.status, read, policy, url, stored.response_time)


def _refusal_of_response(status: int, read: Grouped, policy: Policy, url: str, received: float) -> str | None:
    said = directives(read.get("cache-control", ()))
    if policy.keeps_time:
        if not 200 <= status < 300 and status not in _KEPT_REDIRECTS:
            return "status"
        if policy.ttl_of(url) is None:
            return "pattern"
        return "no-store" if "no-store" in said and not policy.keep_no_store else None
    if "must-understand" in said:
        if status not in _UNDERSTOOD:
            return "status"
    elif "no-store" in said:
        return "no-store"
    return None if _permitted(status, said, read) and _of_use(status, said, read, policy, received) else "freshness"


def _permitted(status: int, said: Directives, read: Grouped) -> bool:
    """Whether something allows to store it: RFC 9111, section 3, last item."""
    if status in HEURISTICALLY_CACHEABLE or "expires" in read:
        return True
    return "max-age" in said or "public" in said or "private" in said


def _of_use(status: int, said: Directives, read: Grouped, policy: Policy, received: float) -> bool:
    """Whether it could ever be reused: validated, or fresh for a while, or stale with its origin's consent.

    Most pages of the web say nothing at all. Stored, they would only push out others.
    """
    if "etag" in read or "last-modified" in read:
        return True
    if window(said, "stale-if-error") or window(said, "stale-while-revalidate"):
        return True
    date = date_value(read.get("date", ()), received=received)
    return lifetime(status, said, read, date, fraction=policy.heuristic_fraction, cap=policy.heuristic_cap) > 0


def _answers_get(ask: Ask, status: int, read: Grouped, policy: Policy, keys: Keys) -> bool:
    """Whether the answer to a POST is what a GET would get from now on: RFC 9110, section 9.3.3."""
    if policy.keeps_time or "content-location" not in read or not 200 <= status < 300:
        return False
    said = directives(read.get("cache-control", ()))
    if explicit_lifetime(said, read.get("expires", ()), 0.0) is None:
        return False
    try:
        location = urljoin(ask.url, read["content-location"][0].strip(" \t"))
    except ValueError:
        return False
    return keys.canonical(location) == keys.canonical(ask.url)


def to_store(
    ask: Ask,
    status: int,
    reason: str,
    version: int,
    fields: FieldLines,
    policy: Policy,
    keys: Keys,
    *,
    request_time: float,
    response_time: float,
    elapsed: float,
) -> Stored:
    """The head to store for a response that `refusal` let pass; its size is -1 until the body has ended.

    Times are Unix seconds; see `Stored`.
    """
    read = grouped(fields)
    vary = vary_names(read.get("vary", ())) or ()
    chunked = "transfer-encoding" in read and names(read["transfer-encoding"][-1])[-1:] == ["chunked"]
    return Stored(
        method=ask.method,
        url=keys.listed(ask.url),
        status=status,
        reason=reason,
        version=version,
        fields=_storable(fields, read, response_time),
        vary=vary,
        variant=variant_of(vary, ask, keys.secret),
        request_time=request_time,
        response_time=response_time,
        elapsed=elapsed,
        kept_for=policy.ttl_of(keys.canonical(ask.url)) if policy.keeps_time else None,
        size=-1,
        extra=_noted(chunked=chunked, unverified=ask.trusting),
    )


def _noted(*, chunked: bool, unverified: bool) -> dict[str, Any]:
    """What is worth knowing later. The field that says how a body was framed is for the connection, and not stored."""
    return {name: True for name, is_so in (("chunked", chunked), ("unverified", unverified)) if is_so}


def storable_fields(fields: FieldLines, *, received: float) -> FieldLines:
    """`fields` without those that are for one connection or proxy, or that `no-cache="..."` lists.

    One without a Date gets that of its receipt, as RFC 9110, section 6.6.1, demands.
    """
    return _storable(fields, grouped(fields), received)


def _storable(fields: FieldLines, read: Grouped, received: float) -> FieldLines:
    listed = {name for line in read.get("connection", ()) for name in names(line)}
    unvalidated = unvalidated_fields(directives(read.get("cache-control", ())))
    kept = without(fields, NEVER_STORED.union(listed - _INDISPENSABLE, unvalidated))
    return kept if "date" in read else (*kept, ("Date", imf_fixdate(received)))


def unvalidated_fields(said: Directives) -> frozenset[str]:
    """The fields that `no-cache="..."` lists, which are not stored, so that the rest may be reused.

    Empty for a `no-cache` that is about the whole response: also one that lists what the rest is
    nothing without. RFC 9111, section 5.2.2.4.
    """
    listed = frozenset(listed_fields(said, "no-cache")) if said.get("no-cache") else frozenset()
    return listed if listed.isdisjoint(_INDISPENSABLE) else frozenset()
