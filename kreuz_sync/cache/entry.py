"""A stored response with what a decision needs of it worked out once. Pure.

A decision about an `Entry` is a subtraction and a few comparisons. It may be kept beside the
stored response for as long as that one, its policy and its URL stay the same.
"""

from __future__ import annotations

from .directives import directives, window
from .freshness import age_value, current_age, date_value, explicit_lifetime, initial_age, lifetime
from .parts import PARTIAL, held_in
from .policy import Policy
from .spans import Span
from .stored import FieldLines, Stored
from .storing import refusal_of_stored, unvalidated_fields
from .variants import Other, others_of

FOREVER = float("inf")
_READ = frozenset(
    {"age", "cache-control", "content-length", "date", "etag", "expires", "last-modified", "set-cookie", "vary"}
)


class Entry:
    """A stored response, compiled.

    All times are Unix seconds, all durations seconds. fields: its field lines without Age. held:
    which bytes of the representation it has, None for all of them. received: when it came.
    initial_age: how old it was then. lifetime: fresh while its age is less than this. date: when
    the origin made it. etag, last_modified: its validators, verbatim. validate_first: never to be
    used without asking the origin (`no-cache`). never_stale: not to be used stale whatever happens
    (`must-revalidate`, `no-cache`). stale_while_revalidate, stale_if_error: what the origin grants
    after its end. immutable: pointless to validate while it is fresh. fixed_time: its lifetime is
    the user's, not the origin's. open_to_all: the origin says that anybody may have it, if it was
    stored for nobody in particular. gave: the cookies (`name=value`) that came with it, if whoever
    has no others may have it, since it was made for that visitor.
    """

    __slots__ = (
        "date",
        "etag",
        "fields",
        "fixed_time",
        "gave",
        "held",
        "immutable",
        "initial_age",
        "last_modified",
        "lifetime",
        "never_stale",
        "open_to_all",
        "others",
        "received",
        "stale_if_error",
        "stale_while_revalidate",
        "stored",
        "validate_first",
    )

    def __init__(self, stored: Stored, policy: Policy, url: str) -> None:
        """`url`: where it was asked for now, in canonical form; that of `stored` lacks what is secret."""
        read: dict[str, list[str]] = {}
        fields: list[tuple[str, str]] = []
        for line in stored.fields:
            name = line[0].lower()
            if name in _READ:
                read.setdefault(name, []).append(line[1])
                if name == "age":
                    continue
            fields.append(line)
        said = directives(read.get("cache-control", ()))
        self.stored = stored
        self.held: Span | None = held_in(stored)
        self.fields: FieldLines = tuple(fields)
        self.received = stored.response_time
        self.date = date_value(read.get("date", ()), received=self.received)
        self.etag = read["etag"][0].strip(" \t") if "etag" in read else None
        self.last_modified = read["last-modified"][0].strip(" \t") if "last-modified" in read else None
        self.initial_age = initial_age(
            age=age_value(read.get("age", ())),
            date=self.date,
            request_time=stored.request_time,
            response_time=stored.response_time,
        )
        self.others: tuple[Other, ...] = others_of(stored)
        self.never_stale = "must-revalidate" in said
        self.fixed_time = policy.keeps_time
        self.gave: frozenset[str] = frozenset()
        if policy.keeps_time:
            self.lifetime = self.initial_age + _kept_for(stored, policy, url)
            self.validate_first = self.open_to_all = self.immutable = False
            self.stale_while_revalidate = self.stale_if_error = 0.0
        else:
            self.lifetime = lifetime(
                stored.status,
                said,
                read,
                self.date,
                fraction=policy.heuristic_fraction,
                cap=policy.heuristic_cap,
            )
            self.validate_first = "no-cache" in said and not unvalidated_fields(said)
            self.never_stale = self.never_stale or self.validate_first
            self.stale_while_revalidate = window(said, "stale-while-revalidate")
            self.stale_if_error = window(said, "stale-if-error")
            # RFC 8246, section 2: only what came authenticated, and whole beyond doubt.
            framed = "content-length" in read or "chunked" in stored.extra
            self.immutable = "immutable" in said and framed and url.startswith("https:")
            is_explicit = explicit_lifetime(said, read.get("expires", ()), self.date) is not None
            self.open_to_all = is_explicit and "public" in said and "private" not in said and "set-cookie" not in read
            if is_explicit and "set-cookie" in read:
                self.gave = frozenset(cookie.partition(";")[0].strip(" \t") for cookie in read["set-cookie"])
        if self.held is not None:
            self.stale_while_revalidate = 0.0  # in the background the whole would be fetched
        if "outdated" in stored.extra:
            self.lifetime = self.stale_while_revalidate = 0.0
            self.immutable = False

    def age(self, now: float) -> float:
        """Its current age in seconds: RFC 9111, section 4.2.3."""
        return current_age(self.initial_age, received=self.received, now=now)


def _kept_for(stored: Stored, policy: Policy, url: str) -> float:
    """Seconds from its receipt for which `stored` is kept under the "ttl" policy.

    The shorter of what it was stored for and what this reader wants: a store may outlive the
    settings that filled it. A time that was given to the entry by hand is final.
    """
    own = FOREVER if stored.kept_for == 0 else stored.kept_for
    if own is not None and "pinned" in stored.extra:
        return own
    wanted = policy.ttl_of(url)
    if wanted is None:
        return 0.0
    wanted = wanted or FOREVER
    return wanted if own is None else min(own, wanted)


def entry_of(stored: Stored, policy: Policy, url: str) -> Entry | None:
    """`stored` compiled; None if `policy` would not have stored it, as another session under another policy may have.

    url: where it was asked for now, in canonical form.
    """
    if stored.status == PARTIAL and (not policy.store_parts or held_in(stored) is None):
        return None
    own = (stored.kept_for is not None) == policy.keeps_time
    if not own and refusal_of_stored(stored, policy, url) is not None:
        return None
    return Entry(stored, policy, url)
