"""How servers say what is left of a quota, and when it is granted anew: one row for each way. Pure.

To teach a new dialect, add a row, and its names to `declared.TELLING`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kreuz_sync.fields import text

from .resets import DELTA, EPOCH, EPOCH_MS, GUESS, number, seconds_until

LONGEST_NAME = 100  # characters: names are kept for each host, and servers choose them


class Quota(NamedTuple):
    """What one answer says about one quota.

    remaining: units left; reset: seconds until more are granted; each None if not told. source: the
    field that says so. bucket: the part of the host that the quota is for, "" for all of it. policy:
    the name of the quota itself. counts_requests: whether one request takes one unit.
    """

    remaining: float | None
    reset: float | None
    source: str
    bucket: str = ""
    policy: str = ""
    counts_requests: bool = True


class Dialect(NamedTuple):
    """The fields of one quota, in lower case.

    Of several `resets` and `buckets`, the first that can be read counts. borrowed: the reset of
    another row, which is this one's too where `remaining` is there. policy: the field that has the quota's name.
    """

    remaining: str
    resets: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    policy: str = ""
    counts_requests: bool = True


def _not_requests(remaining: str, reset: str) -> Dialect:
    return Dialect(remaining, (reset,), counts_requests=False)


DIALECTS = (
    # GitHub, Reddit, Discord, Flask-Limiter, Envoy, Atlassian, Vimeo, Rachio. Discord's delta comes
    # first, being finer than its date.
    Dialect(
        "x-ratelimit-remaining",
        ("x-ratelimit-reset-after", "x-ratelimit-reset"),
        buckets=("x-ratelimit-resource", "x-ratelimit-bucket"),
    ),
    # The draft up to revision 6, GitLab, Kong, Zendesk, Docker Hub (which has no reset).
    Dialect("ratelimit-remaining", ("ratelimit-reset", "ratelimit-resettime"), policy="ratelimit-name"),
    # Twitter, Zendesk.
    Dialect("x-rate-limit-remaining", ("x-rate-limit-reset",), borrowed=("ratelimit-reset",)),
    Dialect("x-user-limit-24hour-remaining", ("x-user-limit-24hour-reset",)),
    Dialect("x-app-limit-24hour-remaining", ("x-app-limit-24hour-reset",)),
    # Kong: a name for each window, and one reset for the window that is closest to its end.
    *(
        Dialect(f"x-ratelimit-remaining-{window}", borrowed=("ratelimit-reset",))
        for window in ("second", "minute", "hour", "day", "month", "year")
    ),
    # OpenAI.
    Dialect("x-ratelimit-remaining-requests", ("x-ratelimit-reset-requests",)),
    _not_requests("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    # Anthropic.
    Dialect("anthropic-ratelimit-requests-remaining", ("anthropic-ratelimit-requests-reset",)),
    *(
        _not_requests(f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset")
        for kind in ("tokens", "input-tokens", "output-tokens")
    ),
    # Linear.
    Dialect("x-ratelimit-requests-remaining", ("x-ratelimit-requests-reset",)),
    _not_requests("x-ratelimit-complexity-remaining", "x-ratelimit-complexity-reset"),
)

DIALECT_OF = {name: dialect for dialect in DIALECTS for name in (dialect.remaining, *dialect.resets)}

# How hosts write a plain number, and all under them, where the guess need not be trusted.
HOSTS = {
    "api.github.com": EPOCH,
    "discord.com": EPOCH,
    "gitlab.com": EPOCH,
    "linear.app": EPOCH_MS,
    "reddit.com": DELTA,
}
_ALWAYS_DELTA = "x-ratelimit-reset-after"

SHOPIFY = "x-shopify-shop-api-call-limit"  # `32/40`: used and limit of a leaky bucket
SHOPIFY_LEAKS = 2.0  # requests a second
AZURE = "x-ms-ratelimit-remaining-"  # and what it is that remains, which Azure has dozens of words for


def quotas(fields: Mapping[str, Any], *, server_now: float, host: str = "") -> list[Quota]:
    """What `fields`, whose names are in lower case, say in any dialect."""
    kind = _kind_for(host)
    spoken = dict.fromkeys(DIALECT_OF[name] for name in fields if name in DIALECT_OF)
    found = [_quota(dialect, fields, server_now=server_now, kind=kind) for dialect in spoken]
    return [*_standard(fields), *filter(None, found), *_shopify(fields), *_azure(fields)]


def _quota(dialect: Dialect, fields: Mapping[str, Any], *, server_now: float, kind: str) -> Quota | None:
    remaining = number(text(fields, dialect.remaining)) if dialect.remaining in fields else None
    source, reset = dialect.remaining, None
    resets = dialect.resets if remaining is None else (*dialect.resets, *dialect.borrowed)
    for name in filter(fields.__contains__, resets):
        own = DELTA if name == _ALWAYS_DELTA else kind
        reset = seconds_until(text(fields, name).strip(" \t"), server_now=server_now, kind=own)
        if reset is not None:
            source = name
            break
    if remaining is None and reset is None:
        return None
    policy = _name(fields, dialect.policy)
    return Quota(remaining, reset, source, _bucket(dialect, fields), policy, dialect.counts_requests)


def _standard(fields: Mapping[str, Any]) -> Iterator[Quota]:
    """RateLimit, of revision 11 or 7 of the draft."""
    if "ratelimit" not in fields:
        return
    from kreuz_sync.ratelimit.members import REQUESTS  # few hosts with a dialect have this one
    from kreuz_sync.ratelimit.reading import parse_fields

    read = parse_fields(text(fields, "ratelimit"), text(fields, "ratelimit-policy"))
    for limit in () if read is None else read.limits:
        bucket = "" if limit.partition_key is None else b64encode(limit.partition_key).decode("ascii")
        yield Quota(
            limit.available,
            limit.effective_window,
            source="ratelimit",
            bucket=_usable(bucket),
            policy=_usable(limit.name),
            counts_requests=limit.unit == REQUESTS,
        )


def _shopify(fields: Mapping[str, Any]) -> Iterator[Quota]:
    if SHOPIFY not in fields:
        return
    used, _, limit = (number(part) for part in text(fields, SHOPIFY).partition("/"))
    if used is not None and limit is not None:
        left = max(0.0, limit - used)
        yield Quota(left, None if left else 1 / SHOPIFY_LEAKS, SHOPIFY)


def _azure(fields: Mapping[str, Any]) -> Iterator[Quota]:
    for name in fields:
        if name.startswith(AZURE) and (left := number(text(fields, name))) is not None:
            yield Quota(left, None, AZURE)


def _bucket(dialect: Dialect, fields: Mapping[str, Any]) -> str:
    # Discord says here that the limit is for everything, whatever else it names.
    if text(fields, "x-ratelimit-global").lower() == "true" or text(fields, "x-ratelimit-scope").lower() == "global":
        return ""
    return next(filter(None, (_name(fields, name) for name in dialect.buckets)), "")


def _name(fields: Mapping[str, Any], field: str) -> str:
    return _usable(text(fields, field).strip(" \t")) if field in fields else ""


def _usable(name: str) -> str:
    """`name`, or "" for one that is too long to keep or not fit to be shown."""
    return name if len(name) <= LONGEST_NAME and name.isprintable() else ""


def _kind_for(host: str) -> str:
    while host:
        if host in HOSTS:
            return HOSTS[host]
        host = host.partition(".")[2]
    return GUESS
