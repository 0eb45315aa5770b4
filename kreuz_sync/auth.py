"""Layer 3: credentials, and the origins that they belong to.

`OriginAuth` adds credentials on a copy of the request, only for the origin that they are
mapped to, so that no redirect can carry them to another. The credentials themselves are in
`credentials.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth, HTTPProxyAuth
from requests.hooks import default_hooks

from .calls import current_call
from .credentials import Basic, Bearer, HeaderAuth, credential_fields
from .errors import SECRET_FIELDS
from .settings import Setting
from .stack import LayerAdapter, copy_request
from .urls import origin_of

# requests' own are here too: `import kreuz_sync as requests` makes this `requests.auth`.
__all__ = [
    "AuthBase",
    "Basic",
    "Bearer",
    "HTTPBasicAuth",
    "HTTPDigestAuth",
    "HTTPProxyAuth",
    "HeaderAuth",
    "OriginAuth",
    "OriginAuthAdapter",
    "credential_fields",
]

Hook = Callable[..., Any]


class OriginAuth(Setting):
    """Credentials by origin. Called with an adapter, it makes the layer that adds them.

    mapping: origins (`"https://api.example.com"`, with a port if it is not the scheme's own)
    to an auth: `Basic`, `Bearer`, `HeaderAuth`, a (user, password) pair, or any callable that
    requests takes as one. A request that carries credentials already keeps its own.

    Raises TypeError or ValueError for a key that is no origin and a value that is no auth.
    """

    fields = ("origins",)
    origins: tuple[str, ...]
    _known: dict[str, Any]

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        if not isinstance(mapping, Mapping):
            raise TypeError(f"auth: a mapping of origins to credentials is wanted, not {type(mapping).__name__}")
        known: dict[str, Any] = {}
        for key, auth in mapping.items():
            origin = _origin(key)
            if origin in known:
                raise ValueError(f"auth: {key!r} is there twice, {origin} in full")
            known[origin] = _auth(key, auth)
        self._fix(origins=tuple(sorted(known)), _known=known)

    def __call__(self, inner: BaseAdapter) -> OriginAuthAdapter:
        if not isinstance(inner, BaseAdapter):
            raise TypeError("OriginAuth is a layer, not an auth: give its mapping to Session(auth=...)")
        return OriginAuthAdapter(self, inner)

    def covers(self, url: str) -> bool:
        """Whether there are credentials for the origin of `url`."""
        return self.auth_for(url) is not None

    def auth_for(self, url: str) -> Any:
        """What was mapped to the origin of `url`; None if nothing was."""
        try:
            return self._known.get(origin_of(url))
        except ValueError:  # no URL at all: not ours to refuse
            return None

    def __eq__(self, other: object) -> bool:
        return self._known == other._known if type(other) is type(self) else NotImplemented

    __hash__ = Setting.__hash__


class OriginAuthAdapter(LayerAdapter):
    """Add the credentials of the request's origin, on a copy."""

    def __init__(self, origins: OriginAuth, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.origins = origins

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        auth = self.origins.auth_for(request.url or "")
        if auth is None or current_call().anonymous:
            return self.inner.send(request, **options)
        copy = copy_request(request)
        hooks = [] if _has_credentials(request, auth) else _sign(copy, auth)
        copy.credential_fields = _secrets(copy, request, auth)  # type: ignore[attr-defined]
        response = self.inner.send(copy, **options)
        # Digest answers a challenge from a hook, with a request of its own. It goes through
        # the layers below this one: it waits its host's turn as any other.
        for hook in hooks:
            response.connection = self.inner  # type: ignore[assignment]
            response = hook(response, **options) or response
        return response


def _sign(copy: requests.PreparedRequest, auth: Any) -> list[Hook]:
    """Let `auth` do its work on `copy`. Gives the hooks that it left there.

    The session runs the hooks of the request that it knows, so those of a copy would never
    run; and the dictionary of hooks is the one that the copy shares with that request.
    """
    hooks = copy.hooks
    copy.hooks = default_hooks()
    copy.prepare_auth(auth)
    left: list[Hook] = copy.hooks["response"]
    copy.hooks = hooks
    return left


def _has_credentials(request: requests.PreparedRequest, auth: Any) -> bool:
    """Whether the call came with its own: explicit ones go before those of a mapping."""
    if getattr(request, "credential_fields", ()):
        return True
    return any(name in request.headers for name in credential_fields(auth) or ("Authorization",))


def _secrets(copy: requests.PreparedRequest, request: requests.PreparedRequest, auth: Any) -> tuple[str, ...]:
    """The fields of `copy` that hold credentials: those named, and all that signing wrote."""
    written = (name for name, value in copy.headers.items() if request.headers.get(name) != value)
    names = (*getattr(request, "credential_fields", ()), *credential_fields(auth), *written)
    return tuple(dict.fromkeys(name for name in names if name.lower() not in _NEVER_NAMED))


_NEVER_NAMED = SECRET_FIELDS | {"content-length"}  # the first are secret anyway


# --- reading the arguments ------------------------------------------------------------------


def _origin(key: Any) -> str:
    wanted = "an origin is wanted, such as 'https://api.example.com' or 'http://127.0.0.1:8001'"
    if not isinstance(key, str):
        raise TypeError(f"auth: {key!r}: {wanted}")
    try:
        parts = urlsplit(key)
        origin = origin_of(key)
    except ValueError as error:
        raise ValueError(f"auth: {wanted}; what was given cannot be read ({error})") from None
    if "@" in key:
        raise ValueError(f"auth: {wanted}, without a user: the credentials are the mapping's value")
    if not parts.scheme or not parts.hostname:
        raise ValueError(f"auth: {key!r}: {wanted}, with its scheme")
    if parts.path not in ("", "/") or parts.query or parts.fragment or key.endswith(("?", "#")):
        raise ValueError(f"auth: {parts.scheme}://{parts.netloc}/...: {wanted}, without path or query")
    if any(character <= " " or character in "*\\" for character in key):
        raise ValueError(f"auth: {key!r}: {wanted}; one host, without wildcards or spaces")
    return origin


def _auth(key: str, value: Any) -> Any:
    if isinstance(value, tuple):
        if len(value) == 2 and all(isinstance(part, (str, bytes)) for part in value) and value[0]:
            return value
    elif callable(value) and not isinstance(value, type):
        return value
    raise TypeError(
        f"auth: {key!r}: Basic, Bearer, HeaderAuth, a (user, password) pair or a callable auth of requests "
        f"is wanted, not {type(value).__name__}"
    )
