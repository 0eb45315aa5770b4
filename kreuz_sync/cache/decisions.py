"""What is decided about a request: the values that `reuse` gives and the layer acts on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .answering import Part, part_fields, unchanged_fields, whole_fields
from .entry import Entry
from .stored import FieldLines
from .validation import Nominee


class Hit(NamedTuple):
    """The stored response is the answer.

    age: its current age, seconds. status: of the answer: 304 for the caller's own condition, 206
    for a `part`, else what is stored. stale: why it is used although it is not fresh enough for
    the request, None where it is: "max-stale", "stale-while-revalidate", "stale-if-error",
    "disconnected", "offline". refresh: validate it in the background now.
    """

    entry: Entry
    age: float
    status: int
    part: Part | None = None
    stale: str | None = None
    refresh: bool = False

    @property
    def ttl(self) -> float:
        """Seconds for which it stays fresh, negative when it is stale (RFC 9211, section 2.3)."""
        return self.entry.lifetime - self.age

    @property
    def fields(self) -> FieldLines:
        """The fields of the answer."""
        if self.status == 304:
            return unchanged_fields(self.entry, self.age)
        if self.part is not None:
            return part_fields(self.entry, self.age, self.part)
        return whole_fields(self.entry, self.age)


class Forward(NamedTuple):
    """The request goes to the origin.

    reason: the word of RFC 9211, section 2.2, for it. conditions: fields to add. nominees: what a
    304 may confirm. entry: the stored response, under `key`, that the request selects but may not
    have as it is; it may stand in for an error. keep: whether the answer may be stored. completes:
    the `conditions` ask for what `entry` has not got of the whole. detail: more to say than `reason`.
    """

    reason: str
    conditions: Mapping[str, str] = {}
    nominees: tuple[Nominee, ...] = ()
    entry: Entry | None = None
    key: str = ""
    keep: bool = True
    completes: bool = False
    detail: str | None = None

    @property
    def plainly(self) -> Forward:
        """The same without what was added to the caller's own fields."""
        return self._replace(conditions={}, nominees=(), completes=False)


class Refuse(NamedTuple):
    """Answer 504 without asking anybody: the caller wants only what is stored (RFC 9111, section 5.2.1.7)."""

    reason: str


class Freshen(NamedTuple):
    """The origin confirmed what is stored under `nominee.key`: freshen it.

    Then it is the answer, unless the caller's own condition made the origin say so: `pass_on` the 304.
    """

    nominee: Nominee
    pass_on: bool


class Complete(NamedTuple):
    """The origin sent what was missing of a stored part: store the whole, which is the answer."""


class AskAgain(NamedTuple):
    """A 304 that confirms nothing that is stored, or a 206 that completes nothing.

    Send the request once more, as `forward` says.
    """

    forward: Forward


class PassOn(NamedTuple):
    """The origin's answer is the answer.

    keep: offer it to `storing.refusal`. supersedes: what is under `Forward.key` is out of date
    now, so drop it if the answer is not stored in its place.
    """

    keep: bool
    supersedes: bool = False


Decision = Hit | Forward | Refuse
Conclusion = Hit | Freshen | Complete | AskAgain | PassOn
