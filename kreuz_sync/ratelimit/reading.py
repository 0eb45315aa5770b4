"""What the RateLimit fields of an answer say. Pure; the names are those of `fields.py`.

A field that is malformed in one place is as one that is not there, and nothing here raises over what
a server sent. All durations are whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kreuz_sync import fields as common

from .members import (
    WINDOW,
    QuotaPolicy,
    RateLimitFields,
    ServiceLimit,
    count,
    older_quota_policy,
    quota_policy,
    service_limit,
)
from .structured import Item, Malformed, parse_dictionary, parse_list

_Made = TypeVar("_Made")


def read_fields(headers: Mapping[str, Any]) -> RateLimitFields | None:
    """What an answer's RateLimit fields say, in the latest revision that they can be read as; None if nothing.

    headers: names must be found in any case, as in `response.headers`.

    >>> read_fields({"RateLimit": '"search";r=0;t=12'}).limits
    (ServiceLimit(name='search', available=0, effective_window=12, partition_key=None, quota=None, unit='requests'),)
    """
    limits, policies = common.text(headers, "RateLimit"), common.text(headers, "RateLimit-Policy")
    limit, remaining, reset = (common.text(headers, f"RateLimit-{name}") for name in ("Limit", "Remaining", "Reset"))
    read = parse_fields(limits, policies)
    if read is None or not read.limits:
        return parse_three_fields(limit, remaining, reset, policies) or read
    return read


def parse_fields(limits: str | bytes, policies: str | bytes = "") -> RateLimitFields | None:
    """The values of RateLimit and RateLimit-Policy of revision 11, else 7; None if both are neither.

    A limit without a window has that of its policy, if the server tells it, and its quota and unit
    too. A malformed RateLimit-Policy is as none, and a malformed RateLimit leaves the policies as they are.

    >>> parse_fields('"search";r=7', '"search";q=30;w=60').limits[0].effective_window
    60
    """
    current = parse_limits(limits)
    if current:
        granted = parse_policies(policies) or ()
        return RateLimitFields(11, granted, _joined(current, granted))
    older = parse_limit_draft_7(limits)
    if older is not None:
        return RateLimitFields(7, parse_policies_draft_7(policies) or (), (older,))
    if alone := parse_policies(policies):
        return RateLimitFields(11, alone)
    if alone := parse_policies_draft_7(policies):
        return RateLimitFields(7, alone)
    return None


def parse_policies(value: str | bytes) -> tuple[QuotaPolicy, ...] | None:
    """The value of RateLimit-Policy, revision 11; None if it is empty or malformed.

    >>> parse_policies('"search";q=30;w=60, daily;q=1000;qu="content-bytes"')[1].unit
    'content-bytes'
    """
    return _each(value, quota_policy)


def parse_limits(value: str | bytes) -> tuple[ServiceLimit, ...] | None:
    """The value of RateLimit, revision 11; None if it is empty or malformed.

    >>> parse_limits('"search";r=0;t=12;pk=:YWJj:')[0].partition_key
    b'abc'
    """
    return _each(value, service_limit)


def parse_policies_draft_7(value: str | bytes) -> tuple[QuotaPolicy, ...] | None:
    """The value of RateLimit-Policy, revision 7; None if it is empty or malformed.

    >>> [(policy.quota, policy.window) for policy in parse_policies_draft_7("100;w=60, 1000;w=3600")]
    [(100, 60), (1000, 3600)]
    """
    return _each(value, older_quota_policy)


def parse_limit_draft_7(value: str | bytes) -> ServiceLimit | None:
    """The value of RateLimit, revision 7; None if it is malformed.

    >>> parse_limit_draft_7("limit=100, remaining=50, reset=30").available
    50
    """
    try:
        members = {key: item.value for key, item in parse_dictionary(_text(value)).items()}
        return ServiceLimit(
            name="",
            available=count(members["remaining"]) if "remaining" in members else None,
            effective_window=count(members.get("reset")),
            quota=count(members.get("limit")),
        )
    except Malformed:
        return None


def parse_three_fields(
    limit: str | bytes, remaining: str | bytes = "", reset: str | bytes = "", policies: str | bytes = ""
) -> RateLimitFields | None:
    """The values of RateLimit-Limit, -Remaining and -Reset, as revisions 0 to 6 had them; None if they say nothing.

    Up to revision 3 the policies stood behind the limit. These revisions count RateLimit-Reset in
    seconds from now; there are servers that put a date of Unix seconds there, which this does not judge.

    >>> found = parse_three_fields("10, 10;w=1, 50;w=60", "9", "1")
    >>> found.limits[0].available, [policy.window for policy in found.policies]
    (9, [1, 60])
    """
    try:
        members = parse_list(_text(limit))
        quota = count(members[0].value) if members else None
        within = tuple(older_quota_policy(member) for member in members if WINDOW in member.parameters)
    except Malformed:
        quota, within = None, ()
    available = _one_count(remaining)
    if quota is None and available is None:
        return None
    found = parse_policies_draft_7(policies) or within
    return RateLimitFields(6, found, (ServiceLimit("", available, _one_count(reset), quota=quota),))


def parse_retry_after(value: str, *, now: float, date: str = "") -> float | None:
    """Seconds until the moment in Retry-After, both forms; None if it is malformed.

    now: the wall clock at receipt, Unix seconds. date: the answer's Date field, which stands in for
    it where the value is a date, since a server's date is by the server's clock.

    >>> parse_retry_after("120", now=0.0)
    120.0
    """
    return common.retry_after({"Retry-After": value, "Date": date}, now=now)


def _joined(limits: tuple[ServiceLimit, ...], policies: tuple[QuotaPolicy, ...]) -> tuple[ServiceLimit, ...]:
    """`limits` with what their policies say: those of the same name, and if possible the same partition."""
    named = {policy.name: policy for policy in reversed(policies)}  # the first of a name
    exact = {(policy.name, policy.partition_key): policy for policy in reversed(policies)}
    return tuple(
        _join(limit, exact.get((limit.name, limit.partition_key)) or named.get(limit.name)) for limit in limits
    )


def _join(limit: ServiceLimit, policy: QuotaPolicy | None) -> ServiceLimit:
    if policy is None:
        return limit
    window = policy.window if limit.effective_window is None else limit.effective_window
    return limit._replace(effective_window=window, quota=policy.quota, unit=policy.unit)


def _each(value: str | bytes, make: Callable[[Item], _Made]) -> tuple[_Made, ...] | None:
    try:
        return tuple(make(member) for member in parse_list(_text(value))) or None
    except Malformed:
        return None


def _one_count(value: str | bytes) -> int | None:
    counts = _each(value, lambda member: count(member.value))
    return counts[0] if counts and len(counts) == 1 else None


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
