"""Whose request it is: functions from a `requests.PreparedRequest` to the key that it is counted under.

Any function will do as `RateLimit(key=...)`; these are the usual ones for a session. One for a
server is given a WSGI environ instead: see `addresses.py`. `by_path` takes either. What can read one alone
says so by `end_of_wire`, so that the other end refuses it at once, and not request by request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

import requests

from kreuz_sync import checks
from kreuz_sync.calls import current
from kreuz_sync.settings import Setting
from kreuz_sync.urls import host_of, origin_of

from .digests import Digester, secret_of
from .environ import path_of

Key = Callable[[requests.PreparedRequest], str]
AnyKey = Callable[[Any], str | bytes]

_PLACE = re.compile(r"\{[^{}/]*\}")
_DIGEST = re.compile(r"digest[ \t]", re.IGNORECASE)  # RFC 7616: the scheme, and its parameters
_PARAMETER = re.compile(r"""([a-z*]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|[^\s,"]+)""", re.IGNORECASE)
_OF_THE_USER = frozenset({"username", "username*", "realm"})


def by_host(request: requests.PreparedRequest) -> str:
    """The host of the URL, as a throttle has it: lower case, IDNA, without a port. The key of a session by default."""
    return host_of(request.url or "")


def by_origin(request: requests.PreparedRequest) -> str:
    """Scheme, host and port (RFC 9110, section 4.3.1)."""
    return origin_of(request.url or "")


by_host.end_of_wire = by_origin.end_of_wire = "session"  # type: ignore[attr-defined]


class PathKey(Setting):
    """The key of `by_path`."""

    fields = ("templates", "key")
    templates: tuple[str, ...]
    key: AnyKey | None
    _sent: tuple[tuple[re.Pattern[str], str], ...]  # for paths as they are sent
    _decoded: tuple[tuple[re.Pattern[str], str], ...]  # and as a server has them

    def __init__(self, *templates: str, key: AnyKey | None = None) -> None:
        if not templates:
            raise ValueError("by_path(): a template at least is wanted, such as '/users/{id}'")
        self._fix(
            templates=checks.texts("templates", templates),
            key=None if key is None else checks.function("key", key),
            _sent=tuple((_pattern(template, _as_sent), template) for template in templates),
            _decoded=tuple((_pattern(template, _as_decoded), template) for template in templates),
        )

    @property
    def end_of_wire(self) -> str | None:
        """Where this can be used, by what `key` reads; None for both ends."""
        return getattr(self.key, "end_of_wire", None)

    @property
    def is_of_this_process(self) -> bool:
        """Whether other processes give other keys to the same requests."""
        return getattr(self.key, "is_of_this_process", False)

    def __call__(self, request: Any) -> str:
        if isinstance(request, dict):  # an environ
            patterns, path, default = self._decoded, path_of(request), _peer()
        else:
            patterns, path, default = self._sent, urlsplit(request.url or "").path, by_host
        whose: Any = (self.key or default)(request)
        if not isinstance(whose, str):
            if not isinstance(whose, bytes):
                raise TypeError(f"the key of by_path gave {type(whose).__name__}, and not a string")
            whose = whose.hex()
        found = next((template for pattern, template in patterns if pattern.fullmatch(path or "/")), "")
        return f"{whose} {found}"

    def __getstate__(self) -> dict[str, Any]:
        return {"templates": self.templates, "key": self.key}

    def __setstate__(self, state: dict[str, Any]) -> None:
        PathKey.__init__(self, *state["templates"], key=state["key"])

    def __repr__(self) -> str:
        given = [*map(repr, self.templates), *([] if self.key is None else [f"key={self.key!r}"])]
        return f"by_path({', '.join(given)})"


@cache
def _peer() -> AnyKey:
    from .addresses import PeerAddress  # a session does without

    return PeerAddress()


def by_path(*templates: str, key: AnyKey | None = None) -> Callable[[Any], str]:
    """A key for each template of a path: `by_path("/users/{id}", "/search")`, at each host for a session, and
    for each peer address on a server.

    `{name}` stands for one segment or a part of one, whatever is in it. The first template that fits counts; all
    paths that fit none have one key together, so that they share one counter. What is fixed is compared as
    requests sends it, so `/straße` and `/stra%C3%9Fe` are one. Query and fragment
    make no difference, and stand in no template.

    key: whose request it is besides, in place of host or address: `by_path("/login", key=TrustedProxies(hops=1))`.
    """
    return PathKey(*templates, key=key)


class CredentialKey(Setting):
    """The key of `by_credential`."""

    fields = ("names", "secret")
    secret_fields = frozenset({"secret"})
    names: tuple[str, ...]
    secret: bytes | None
    _digest: Digester
    end_of_wire = "session"

    def __init__(self, *names: str, secret: str | bytes | None = None) -> None:
        given = secret_of(secret)
        self._fix(names=tuple(checks.token("names", name) for name in names), secret=given, _digest=Digester(given))

    @property
    def is_of_this_process(self) -> bool:
        """Whether other processes give other keys to the same credentials."""
        return self.secret is None

    def __call__(self, request: requests.PreparedRequest) -> str:
        call = current.get()
        own = () if call is None else call.credential_fields
        names = sorted({"authorization", *(name.lower() for name in (*self.names, *own))})
        said = [f"{name} {_whose(_text(request.headers[name]))}" for name in names if name in request.headers]
        if not said:
            return f"{host_of(request.url or '')} anonymous"
        data = "\0".join(said).encode("utf-8", "surrogatepass")
        return f"{host_of(request.url or '')} {self._digest(data)}"

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "secret": self.secret}

    def __setstate__(self, state: dict[str, Any]) -> None:
        CredentialKey.__init__(self, *state["names"], secret=state["secret"])

    def __repr__(self) -> str:
        names = [repr(name) for name in self.names]
        return f"by_credential({', '.join(names if self.secret is None else [*names, 'secret=...'])})"


def by_credential(*names: str, secret: str | bytes | None = None) -> Key:
    """A key for each credential at each host: what is in Authorization, in the fields that the session's own
    auth writes, and in those called `names`. Requests without any have one key together. Of Digest
    authentication, whose field is another one for every request, user name and realm are the credential. Where
    another scheme signs each request, a function of your own has to say whose it is.

    The key is a keyed digest, so that no credential can be read off a store, or guessed and checked
    there. secret: what it is keyed with, 16 bytes or more; None for random bytes of this process. Processes
    that share a store must share the secret, or they would count apart.
    """
    return CredentialKey(*names, secret=secret)


def _pattern(template: str, written: Callable[[str], str]) -> re.Pattern[str]:
    if not checks.text("templates", template).startswith("/"):
        raise ValueError(f"templates: {template!r}: a path begins with /")
    if "?" in template or "#" in template:
        raise ValueError(f"templates: {template!r}: a path ends before ? and #")
    if {".", ".."} & set(template.split("/")):
        raise ValueError(f"templates: {template!r}: requests takes . and .. out of a path before it sends it")
    fixed = _PLACE.split(template)
    if any("{" in part or "}" in part for part in fixed):
        raise ValueError(f"templates: {template!r}: each place is written {{name}}, within one segment")
    return re.compile("[^/]+".join(re.escape(written(part)) for part in fixed))


def _as_sent(part: str) -> str:
    """A part of a path as requests encodes it."""
    prepared = requests.PreparedRequest()
    prepared.prepare_url(f"http://host/-{part}-", None)  # between two letters, so that nothing is cut off at its ends
    return urlsplit(prepared.url or "").path[2:-1]


def _as_decoded(part: str) -> str:
    """A part of a path as a server finds it in its environ."""
    return unquote(_as_sent(part))


def _whose(credentials: str) -> str:
    """What stays the same in `credentials` from one request to the next."""
    if not _DIGEST.match(credentials):
        return credentials
    user = {name.lower(): value for name, value in _PARAMETER.findall(credentials) if name.lower() in _OF_THE_USER}
    return f"Digest {sorted(user.items())}" if len(user) > 1 else credentials


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
