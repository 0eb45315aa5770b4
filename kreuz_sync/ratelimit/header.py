"""Whose request it is, by a header field: an API key, a session's token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kreuz_sync import checks
from kreuz_sync.settings import Setting

from .digests import Digester, secret_of
from .environ import Environ, field
from .failures import KeyUnavailable


class HeaderKey(Setting):
    """The key of `by_header`."""

    fields = ("name", "secret", "otherwise")
    end_of_wire = "server"
    secret_fields = frozenset({"secret"})
    name: str
    secret: bytes | None
    otherwise: Callable[[Environ], str | bytes] | None
    _digest: Digester

    def __init__(
        self,
        name: str,
        *,
        secret: str | bytes | None = None,
        otherwise: Callable[[Environ], str | bytes] | None = None,
    ) -> None:
        given = secret_of(secret)
        self._fix(
            name=checks.token("name", name),
            secret=given,
            otherwise=None if otherwise is None else checks.function("otherwise", otherwise),
            _digest=Digester(given),
        )

    @property
    def is_of_this_process(self) -> bool:
        """Whether other processes give other keys to the same values."""
        return self.secret is None or getattr(self.otherwise, "is_of_this_process", False)

    def __call__(self, environ: Environ) -> str | bytes:
        value = field(environ, self.name)
        if value:
            return f"{self.name.lower()} {self._digest(value.encode('utf-8', 'surrogatepass'))}"
        if self.otherwise is None:
            raise KeyUnavailable("header_unavailable", f"the request has no field {self.name}")
        return self.otherwise(environ)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HeaderKey.__init__(self, **state)


def by_header(
    name: str,
    *,
    secret: str | bytes | None = None,
    otherwise: Callable[[Environ], str | bytes] | None = None,
) -> HeaderKey:
    """A key for each value of the header field `name`, such as X-Api-Key.

    Whoever makes up a value has a quota of its own with each: it must have been checked by then, or a
    second limit, by address, must stand in front. otherwise: the key of requests without the field,
    such as `PeerAddress()`; None for a failure (KeyUnavailable, `header_unavailable`).

    The key is a keyed digest, so that no value can be read off a store, or guessed and checked there.
    secret: what it is keyed with, 16 bytes or more; None for random bytes of this process. Processes that
    share a store must share the secret, or they would count apart.
    """
    return HeaderKey(name, secret=secret, otherwise=otherwise)
