"""Servers that ask for credentials: Basic (RFC 7617) and Digest (RFC 7616)."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
from collections.abc import Callable

from .answers import Answer, Handler, Raw, echo
from .received import Received

_PARAMETER = re.compile(r'([a-z]+)=(?:"([^"]*)"|([^",\s]+))', re.IGNORECASE)
_HASHES: dict[str, Callable[..., hashlib._Hash]] = {
    "MD5": hashlib.md5,
    "SHA": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-512": hashlib.sha512,
}


class BasicAuth:
    """Answers with `then` whoever names `user` and `password`, others with 401."""

    def __init__(self, user: str, password: str, then: Handler = echo) -> None:
        self.wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.then = then

    def __call__(self, request: Received) -> Answer | Raw | int:
        if request.fields.get("Authorization") == self.wanted:
            return self.then(request)
        return Answer(401, fields={"WWW-Authenticate": 'Basic realm="test"'})


class DigestAuth:
    """The same with a challenge. A nonce is good for as long as its count grows.

    counts: the nc of every accepted request, per nonce, in order. uses: a nonce is stale after
    so many (None: never).
    """

    def __init__(
        self,
        user: str,
        password: str,
        then: Handler = echo,
        *,
        algorithm: str = "MD5",
        realm: str = "test",
        uses: int | None = None,
    ) -> None:
        self.user = user
        self.password = password
        self.then = then
        self.algorithm = algorithm
        self.realm = realm
        self.uses = uses
        self.counts: dict[str, list[int]] = {}
        self._lock = threading.Lock()  # guards counts

    def __call__(self, request: Received) -> Answer | Raw | int:
        value = request.fields.get("Authorization") or ""
        said = {name: quoted or plain for name, quoted, plain in _PARAMETER.findall(value)}
        if not value.startswith("Digest ") or said.get("response") != self._expected(request, said):
            return self._challenge(stale=False)
        if not self._counts(said["nonce"], int(said["nc"], 16)):
            return self._challenge(stale=True)
        return self.then(request)

    def _challenge(self, *, stale: bool) -> Answer:
        nonce = secrets.token_hex(8)
        with self._lock:
            self.counts[nonce] = []
        parameters = f'realm="{self.realm}", nonce="{nonce}", qop="auth", algorithm={self.algorithm}, opaque="o"'
        return Answer(401, fields={"WWW-Authenticate": f"Digest {parameters}{', stale=true' if stale else ''}"})

    def _counts(self, nonce: str, count: int) -> bool:
        with self._lock:
            seen = self.counts.get(nonce)
            if seen is None or (seen and count <= seen[-1]) or (self.uses is not None and len(seen) >= self.uses):
                return False
            seen.append(count)
            return True

    def _expected(self, request: Received, said: dict[str, str]) -> str:
        user = self._hash(f"{self.user}:{self.realm}:{self.password}")
        what = self._hash(f"{request.method}:{said.get('uri')}")
        if said.get("uri") != request.target:
            return ""
        middle = ":".join(said.get(name, "") for name in ("nonce", "nc", "cnonce", "qop"))
        return self._hash(f"{user}:{middle}:{what}")

    def _hash(self, text: str) -> str:
        return _HASHES[self.algorithm](text.encode()).hexdigest()
