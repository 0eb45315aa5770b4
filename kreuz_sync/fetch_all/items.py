"""What may stand in the list that is fetched, and how each of it is read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, NamedTuple

import requests

from kreuz_sync import checks
from kreuz_sync.errors import InvalidItem
from kreuz_sync.urls import redact_text

WANTED = "a URL, a requests.Request, a pair (URL, {...}) or an Item is wanted"
SHOWN = 100  # characters of a wrong thing in an error's text

# The parts of a Request that `Session.request` takes under the same names.
_PARTS = ("headers", "files", "data", "json", "params", "auth", "cookies", "hooks")
# Arguments with which two equal GETs are not one: they send something, or what comes can be used once.
_APART = frozenset({"data", "json", "files", "hooks", "stream"})


class Item(NamedTuple):
    """One thing to fetch, with what it does not share with the others.

    url: a URL, or a `requests.Request`. arguments: of `Session.request`, `method` too. priority: a
    larger number is fetched earlier. note: anything of yours; it comes back as `result.input.note`.
    """

    url: str | bytes | requests.Request
    arguments: Mapping[str, Any] | None = None
    priority: float = 0
    note: Any = None


class Ask(NamedTuple):
    """One request as `Session.request` takes it. arguments: all but method and URL."""

    method: str
    url: str | bytes
    arguments: dict[str, Any]
    priority: float = 0

    @property
    def text(self) -> str:
        """The URL as text."""
        return self.url.decode("utf-8", "replace") if isinstance(self.url, bytes) else self.url


def read(source: object, index: int, common: Mapping[str, Any], names: Collection[str] | None = None) -> Ask:
    """What `source`, number `index` of the list, asks for.

    common: arguments for all; the item's own come before them. names: those that there are, None if
    nobody knows. Raises InvalidItem.
    """
    if type(source) is str:  # nearly always
        return Ask(common.get("method", "GET"), source, _without_method(common))
    url, own, priority = _parts_of(source, index)
    if names is not None and not own.keys() <= set(names):
        unknown = sorted(map(str, own.keys() - set(names)))
        raise InvalidItem(f"urls[{index}]: Session.request has no argument {', '.join(unknown)}")
    arguments = {**common, **own}
    if isinstance(url, requests.Request):
        arguments = {**common, **_arguments_of(url), **own}
        url = url.url
    if not isinstance(url, (str, bytes)):
        raise InvalidItem(f"urls[{index}]: {_shown(url)} is no URL: {WANTED}")
    method = arguments.pop("method", "GET")
    if not isinstance(method, (str, bytes)):
        raise InvalidItem(f"urls[{index}]: method={method!r}: a string is wanted")
    return Ask(method.decode("latin-1") if isinstance(method, bytes) else method, url, arguments, priority)


def key_of(ask: Ask) -> Hashable | None:
    """What is equal for two requests of which one is enough; None for one that stands for itself."""
    if ask.method.upper() != "GET":
        return None
    if not ask.arguments:
        return ask.url
    if any(ask.arguments.get(name) for name in _APART):
        return None
    try:
        return ask.url, _frozen(ask.arguments)
    except TypeError:
        return None


def _without_method(common: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in common.items() if name != "method"} if common else {}


def _parts_of(source: object, index: int) -> tuple[Any, dict[str, Any], float]:
    """The URL or Request in `source`, the arguments with it, and the priority."""
    if isinstance(source, Item):
        url, own, priority = source.url, source.arguments or {}, source.priority
    elif isinstance(source, tuple) and len(source) == 2:
        url, own, priority = source[0], source[1] or {}, 0
    elif isinstance(source, (str, bytes, requests.Request)):
        return source, {}, 0
    else:
        raise InvalidItem(f"urls[{index}]: {_shown(source)} cannot be fetched: {WANTED}")
    if not isinstance(own, Mapping):
        raise InvalidItem(
            f"urls[{index}]: {_shown(own)} in place of arguments: a mapping is wanted, as in (URL, {{...}})"
        )
    try:
        checks.number("priority", priority, least=float("-inf"))
    except (TypeError, ValueError):
        raise InvalidItem(f"urls[{index}]: priority={_shown(priority)}: a finite number is wanted") from None
    return url, dict(own), priority


def _arguments_of(request: requests.Request) -> dict[str, Any]:
    parts = {name: part for name in _PARTS if (part := getattr(request, name, None))}
    if not any(parts.get("hooks", {}).values()):  # it has a list for each event, an empty one as a rule
        parts.pop("hooks", None)
    return {"method": request.method or "GET", **parts}


def _frozen(value: Any) -> Hashable:
    """Something hashable that is equal for equal values. Raises TypeError where there is none."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return type(value), value  # 1, 1.0 and True are equal, and not the same argument
    if isinstance(value, Mapping):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    if type(value) in (list, tuple):
        return type(value), *map(_frozen, value)
    raise TypeError


def _shown(value: object) -> str:
    text = repr(value)
    return redact_text(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
