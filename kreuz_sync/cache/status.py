"""What a cache says of its part in an answer, in the words of RFC 9211. Pure text."""

from __future__ import annotations

from .decisions import Hit

NAME = "kreuz"
BYPASSED = f"{NAME}; fwd=bypass"
REFUSED = f"{NAME}; detail=only-if-cached"
_ENDLESS = 2**53  # seconds: no lifetime that anybody meant


def hit(found: Hit) -> str:
    """Of an answer from the store. ttl: seconds it stays fresh, negative where it is stale."""
    detail = f"; detail={found.stale}" if found.stale else ""
    return f"{NAME}; hit{_ttl(found)}{detail}"


def validated(reason: str, status: int, found: Hit) -> str:
    """Of a stored answer that the origin has just confirmed (`status` 304) or completed (206)."""
    return f"{NAME}; fwd={reason}; fwd-status={status}{_ttl(found)}"


def instead_of_error(reason: str, status: int | None, found: Hit) -> str:
    """Of a stored answer in place of an error. status: of the error, None if no answer came."""
    told = "" if status is None else f"; fwd-status={status}"
    return f"{NAME}; fwd={reason}{told}{_ttl(found)}; detail={found.stale}"


def collapsed(reason: str, found: Hit) -> str:
    """Of an answer that another request for the same, under way already, brought."""
    return f"{NAME}; fwd={reason}{_ttl(found)}; collapsed"


def forwarded(reason: str, *, stored: bool = False, detail: str | None = None) -> str:
    """Of the origin's own answer."""
    told = f"{NAME}; fwd={reason}; detail={detail}" if detail else f"{NAME}; fwd={reason}"
    return f"{told}; stored" if stored else told


def appended(others: str | None, ours: str) -> str:
    """`ours` behind what caches on the way said, as the section 2 of RFC 9211 wants it."""
    return f"{others}, {ours}" if others else ours


def _ttl(found: Hit) -> str:
    ttl = found.ttl
    return f"; ttl={int(ttl)}" if ttl < _ENDLESS else ""
