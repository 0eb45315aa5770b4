"""Which requests a stored response with Vary may answer. Pure.

The values that selected a response are kept as one keyed digest for each field, since they may
be secrets. Before that they are brought to one form where two forms mean the same: RFC 9111,
section 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from .ask import Ask
from .lines import names
from .stored import Stored

# Lists of preferences whose order says nothing (RFC 9110, sections 12.5.2 to 12.5.4).
_PREFERENCES = frozenset({"accept-charset", "accept-encoding", "accept-language"})
_PREFERENCE = re.compile(r"([a-z0-9*_.+!#$%&'^`|~-]+)(?:[ \t]*;[ \t]*q=([01](?:\.[0-9]{0,3})?))?")
_AROUND_COMMA = re.compile(r"[ \t]*,[ \t]*")
_DIGEST_BYTES = 8


def vary_names(lines: Iterable[str]) -> tuple[str, ...] | None:
    """The field names in Vary, sorted, given its lines; None for `*`, which no request matches."""
    found: set[str] = set()
    for line in lines:
        found.update(names(line))
    return None if "*" in found else tuple(sorted(found))


def variant_of(vary: Sequence[str], ask: Ask, secret: bytes) -> str:
    """A keyed digest of the values of `ask` for the fields in `vary`; equal for requests that match."""
    return ".".join(_digest(name, ask.get(name), secret) for name in vary)


def matches(stored: Stored, ask: Ask, secret: bytes) -> bool:
    """Whether `stored` was selected by the same values that `ask` has. RFC 9111, section 4.1.

    Besides, a response in the one language that `ask` wants most is what any negotiation would
    have come to, whatever else either request would have taken.
    """
    if not stored.vary:
        return True
    wanted = variant_of(stored.vary, ask, secret)
    if wanted == stored.variant:
        return True
    if "accept-language" not in stored.vary:
        return False
    pairs = zip(stored.vary, wanted.split("."), stored.variant.split("."), strict=False)
    others_match = all(mine == its for name, mine, its in pairs if name != "accept-language")
    return others_match and _language(stored) == favourite(ask.get("accept-language") or "")


def _language(stored: Stored) -> str:
    """The one language of `stored`, lower case; a word that is none if it has several or says nothing."""
    found = [value.strip(" \t").lower() for name, value in stored.fields if name.lower() == "content-language"]
    return found[0] if len(found) == 1 and found[0] and "," not in found[0] else "?"


def favourite(accept_language: str) -> str | None:
    """The language that is wanted more than every other; None if there is no such one."""
    wanted = _preferences(accept_language)
    if not wanted:
        return None
    best = max(quality for _, quality in wanted)
    chosen = [tag for tag, quality in wanted if quality == best]
    return chosen[0] if len(chosen) == 1 and best > 0 and chosen[0] != "*" else None


def canonical_value(name: str, value: str) -> str:
    """`value` of the field `name` (lower case) in the form in which it is compared."""
    if name in _PREFERENCES:
        wanted = _preferences(value)
        if wanted is not None:
            return ",".join(f"{tag};q={quality:g}" for tag, quality in sorted(set(wanted)))
    if '"' in value:  # space in a quoted string counts
        return value.strip(" \t")
    return _AROUND_COMMA.sub(",", value.strip(" \t"))


def _preferences(value: str) -> list[tuple[str, float]] | None:
    """(what, quality) of each member; None if one is not to be understood."""
    found = []
    for member in value.lower().split(","):
        if not (member := member.strip(" \t")):
            continue
        preference = _PREFERENCE.fullmatch(member)
        if preference is None:
            return None
        found.append((preference[1], float(preference[2]) if preference[2] else 1.0))
    return found


@lru_cache(maxsize=4096)
def _digest(name: str, value: str | None, secret: bytes) -> str:
    # An absent field is another thing than an empty one.
    text = name if value is None else f"{name}:{canonical_value(name, value)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), key=secret, digest_size=_DIGEST_BYTES).hexdigest()
