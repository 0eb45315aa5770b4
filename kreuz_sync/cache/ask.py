"""What a cache looks at in a request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .directives import ASKS_NOTHING, RequestDirectives, request_directives

# Fields that make a request more than "give me this": a request with none of them is answered
# without reading any field at all.
_SPEAKING = frozenset(
    {
        "cache-control",
        "pragma",
        "range",
        "if-range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "content-length",
        "transfer-encoding",
    }
)


class Ask:
    """A request as it will be sent: method, URL and fields.

    fields: by lower-case name; a value may be bytes, as requests allows, so read it with `get`.
    directives: what its Cache-Control (or Pragma) asks for. plain: nothing in it concerns a
    cache, a range or a condition, and it has no body. certificate: names the client certificate
    that the connection shows, "" without one. secrets: the fields (lower case) that are known to hold
    credentials, whatever their names. trusting: the server's certificate is not verified.
    """

    __slots__ = ("certificate", "directives", "fields", "method", "plain", "secrets", "trusting", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, Any],
        certificate: str = "",
        secrets: frozenset[str] = frozenset(),
        trusting: bool = False,
    ) -> None:
        self.certificate = certificate
        self.secrets = secrets
        self.trusting = trusting
        self.method = method
        self.url = url
        self.fields: dict[str, Any] = _lowered(headers)
        self.plain = self.fields.keys().isdisjoint(_SPEAKING)
        self.directives: RequestDirectives = (
            ASKS_NOTHING if self.plain else request_directives(self.get("cache-control"), self.get("pragma"))
        )

    def get(self, name: str) -> str | None:
        """The value of the field `name` (lower case), None if the request has none."""
        value = self.fields.get(name)
        if value is None or type(value) is str:
            return value
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)

    @property
    def conditional(self) -> bool:
        """Whether the caller brings a condition that a cache may answer: RFC 9111, section 4.3.2."""
        return not self.plain and ("if-none-match" in self.fields or "if-modified-since" in self.fields)

    @property
    def has_body(self) -> bool:
        """Whether content goes with the request, which no key for GET knows of."""
        return not self.plain and (
            "transfer-encoding" in self.fields or self.get("content-length") not in (None, "0", "")
        )


def _lowered(headers: Mapping[str, Any]) -> dict[str, Any]:
    # requests' own headers keep their names in lower case too, and hand them out four times faster.
    lower_items: Any = getattr(headers, "lower_items", None)
    if lower_items is not None:
        return dict(lower_items())
    items: Iterable[tuple[str, Any]] = headers.items()
    return {name.lower(): value for name, value in items}
