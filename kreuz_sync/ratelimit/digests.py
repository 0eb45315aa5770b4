"""Keyed digests: what a store is given in place of what nobody may read off there, or guess and check."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from kreuz_sync.settings import Setting

SHORTEST_SECRET = 16  # bytes


class Digester:
    """Makes digests of data, under `secret`; None for random bytes of this process."""

    __slots__ = ("_key",)

    def __init__(self, secret: bytes | None) -> None:
        self._key = os.urandom(32) if secret is None else blake2b(secret, digest_size=32).digest()

    def __call__(self, data: bytes) -> str:
        return blake2b(data, key=self._key, digest_size=16).hexdigest()


def secret_of(secret: str | bytes | None) -> bytes | None:
    """A user's `secret` as bytes. Raises ValueError, which does not show it."""
    given = secret.encode() if isinstance(secret, str) else secret
    if given is not None and not (isinstance(given, bytes) and len(given) >= SHORTEST_SECRET):
        raise ValueError(f"secret=...: {SHORTEST_SECRET} bytes or more are wanted, a string or bytes, or None")
    return given


class DigestEncoder(Setting):
    """The encoder of `digest`."""

    fields = ("secret",)
    secret_fields = frozenset({"secret"})
    secret: bytes
    _digest: Digester

    def __init__(self, secret: str | bytes) -> None:
        given = secret_of(secret)
        if given is None:
            raise ValueError("secret=None: a secret is wanted, which all that share the store have")
        self._fix(secret=given, _digest=Digester(given))

    def __call__(self, scoped: str) -> str:
        policy = scoped.partition(":")[0]
        return f"{policy}:{self._digest(scoped.encode('utf-8', 'surrogatepass'))}"

    def __getstate__(self) -> dict[str, Any]:
        return {"secret": self.secret}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DigestEncoder.__init__(self, **state)

    def __repr__(self) -> str:
        return "digest(...)"


def digest(secret: str | bytes) -> Callable[[str], str]:
    """An encoder, `RateLimit(key_encoder=digest(secret))`: the store is given a keyed digest of each key.

    Without it a short key in ASCII, such as an address or a user's name, stands in clear in Redis, where
    `KEYS` or a backup shows it. The policy's name stays readable before the digest: `search:3b5d...`.

    secret: 16 bytes or more; all processes that share the store must have the same.

    >>> encode = digest("never in a program's text")
    >>> encode("search:198.51.100.7").startswith("search:"), "198" in encode("search:198.51.100.7")
    (True, False)
    """
    return DigestEncoder(secret)
