"""Credentials in their three forms. They go wherever requests takes an auth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth

from . import checks
from .settings import Setting


class Basic(Setting, AuthBase):
    """User and password, in the Basic scheme (RFC 7617).

    Texts are encoded in Latin-1, as requests does; give bytes for another encoding. Raises
    ValueError for what the scheme cannot carry.
    """

    fields = ("user", "password")
    secret_fields = frozenset(fields)
    user: str | bytes
    password: str | bytes

    def __init__(self, user: str | bytes, password: str | bytes) -> None:
        self._fix(user=_basic_part("user", user), password=_basic_part("password", password))

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        user: Any = self.user  # requests takes bytes too, and does not say so
        password: Any = self.password
        HTTPBasicAuth(user, password)(request)
        return request


class Bearer(Setting, AuthBase):
    """A token, in the Bearer scheme (RFC 6750). `token`: the token alone, without the word."""

    fields = ("token",)
    secret_fields = frozenset(fields)
    token: str

    def __init__(self, token: str) -> None:
        checks.text("token", token, secret=True)
        if not all("!" <= character <= "~" for character in token):
            raise ValueError(
                "token=...: visible ASCII characters are wanted, without spaces or line ends (strip what was "
                "read from a file) and without the word Bearer"
            )
        self._fix(token=token)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token}"
        return request


# RFC 9112, section 6, and RFC 9110, section 7.2: with these in other hands, requests go astray.
_FRAMING_FIELDS = frozenset({"content-length", "transfer-encoding", "host", "connection"})


class HeaderAuth(Setting, AuthBase):
    """Credentials in a header field of the service's own, such as X-Api-Key.

    The field is treated as a secret everywhere: it is left out of errors, logs and pickles,
    and does not follow a redirect to another origin.
    """

    fields = ("name", "value")
    secret_fields = frozenset({"value"})
    name: str
    value: str

    def __init__(self, name: str, value: str) -> None:
        if checks.token("name", name).lower() in _FRAMING_FIELDS:
            raise ValueError(f"name={name!r}: this field says how the message is sent, it cannot hold credentials")
        self._fix(name=name, value=checks.field_value("value", value, secret=True))

    @property
    def credential_fields(self) -> tuple[str, ...]:
        """The field that holds the secret."""
        return (self.name,)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers[self.name] = self.value
        noted: tuple[str, ...] = getattr(request, "credential_fields", ())
        request.credential_fields = (*noted, self.name)  # type: ignore[attr-defined]
        return request


def credential_fields(auth: Any) -> tuple[str, ...]:
    """The fields besides Authorization that `auth` puts secrets in.

    An auth says so itself, by a tuple called `credential_fields`: a class of a user's own may
    have one too.

    >>> credential_fields(HeaderAuth("X-Api-Key", "k"))
    ('X-Api-Key',)
    """
    names = getattr(auth, "credential_fields", ())
    return names if isinstance(names, tuple) else ()


def _basic_part(name: str, value: str | bytes) -> str | bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name}=...: a string or bytes are wanted, not {type(value).__name__}")
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not text:
        raise ValueError(f"{name}='': it must not be empty; requests' own pair (user, password) may have an empty part")
    if any(character < " " or character == "\x7f" for character in text):
        raise ValueError(f"{name}=...: control characters (a line end?) are not allowed (RFC 7617, section 2)")
    if name == "user" and ":" in text:
        raise ValueError("user=...: a colon would end it (RFC 7617, section 2)")
    if any(character > "\xff" for character in text):
        raise ValueError(f"{name}=...: not in Latin-1; give bytes, such as {name}.encode('utf-8')")
    return value


def noting(auth: Callable[[requests.PreparedRequest], requests.PreparedRequest]) -> Any:
    """`auth`, which notes on the request what it put there, so that no redirect carries it to another origin.

    `credential_fields`: the fields besides Authorization that it wrote. `credential_hooks`: the
    response hooks that it registered; those of Digest answer any server that asks.
    """

    def apply(request: requests.PreparedRequest) -> requests.PreparedRequest:
        fields, hooks = dict(request.headers.items()), list(request.hooks.get("response", ()))
        request = auth(request)
        written = (name for name, value in request.headers.items() if fields.get(name) != value)
        own = (name for name in written if name.lower() not in _NOT_NOTED)
        request.credential_fields = tuple({*credential_fields(auth), *own})  # type: ignore[attr-defined]
        request.credential_hooks = tuple(  # type: ignore[attr-defined]
            hook for hook in request.hooks.get("response", ()) if hook not in hooks
        )
        return request

    return apply


# requests itself sees to the first; the others follow from the body, which an auth may change.
_NOT_NOTED = frozenset({"authorization", "content-length", "content-type"})
