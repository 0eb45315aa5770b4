"""Under which key a response is kept. Pure: the secret and what is ignored are arguments.

A key is made of keyed digests, so that neither a URL with a token in it nor a credential can be
read off a store, or guessed and checked without its secret:

    <URI>                      GET of a URI, without credentials
    <URI>.<identity>           the same, asked for with credentials
    <URI>...~<variant>         further variants of one of these, by Vary
    <URI>...+<content>         POST, where its caching is on

All that is kept for a URI begins with its digest, whoever asked for it: that is what an unsafe
request invalidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from kreuz_sync import checks

from . import uris
from .ask import Ask
from .uris import one_of, user_of

# Names of fields that carry credentials, besides Authorization and Cookie: X-API-Key, Private-Token, ...
# A name too many costs a stored response; one too few gives somebody's page to somebody else.
_CREDENTIALS = re.compile(
    r"auth|token|secret|key\b|api-?key|passw|session|credential|signature|jwt|assertion|macaroon|ticket|wsse"
)
# What a proxy wants to know says nothing about who asks the origin. Sec-... are the browser's own.
_NO_CREDENTIALS = re.compile(r"proxy-|sec-|accept|if-|content-")

# Authorization that is another one for every request, by a nonce or a time in it: no later
# request could be told to be the same user's.
_ONE_TIME_SCHEMES = frozenset({"aws4-hmac-sha256", "digest", "hawk", "oauth", "negotiate", "ntlm", "signature"})

# Cookies that say nothing about who asks: load balancers' and visitor counters', often new in each answer.
IGNORED_COOKIES = ("AWSALB*", "__cf_bm", "__utm*", "_cfuvid", "_fbp", "_ga", "_ga_*", "_gat*", "_gcl_au", "_gid")


class Keys:
    """The keys of one store.

    secret: 16 to 64 bytes that the store alone has. ignored_query: names of query parameters
    that make no difference. identity_fields: names of request fields that carry credentials,
    besides those whose names say so. ignored_cookies: names of cookies that say nothing about
    who asks. In both lists of names `*` stands for anything.
    """

    __slots__ = ("_ignored_cookies", "_own_fields", "ignored_query", "secret")

    def __init__(
        self,
        secret: bytes,
        *,
        ignored_query: Iterable[str] = (),
        identity_fields: Iterable[str] = (),
        ignored_cookies: Iterable[str] = IGNORED_COOKIES,
    ) -> None:
        if not 16 <= len(secret) <= 64:
            raise ValueError("secret=...: 16 to 64 bytes are wanted")
        self.secret = secret
        self.ignored_query = checks.texts("ignored_query", ignored_query)
        self._own_fields = frozenset(name.lower() for name in checks.texts("identity_fields", identity_fields))
        self._ignored_cookies = checks.texts("ignored_cookies", ignored_cookies)

    def canonical(self, url: str) -> str:
        """`url` as this store takes it: see `uris.canonical`."""
        return uris.canonical(url, self.ignored_query)

    def listed(self, url: str) -> str:
        """`url` as a listing of this store shows it: see `uris.listed`."""
        return uris.listed(url, self.ignored_query)

    def uri(self, text: str) -> str:
        """What the keys of all that is kept for a URI begin with.

        text: the URI as `canonical` gives it, or what the user's own key function gave instead.
        """
        return _digest(self.secret, "uri", text)

    def target(self, ask: Ask, text: str | None = None, url: str | None = None) -> str:
        """What the keys begin with of all that is kept for what `ask` is about, or for another `url` of its server.

        text: what the user's own key function gave instead of the URI. A Host field that the caller
        wrote names the site that he asks, whatever address the URL has.
        """
        if text is None:
            host, text = ask.get("host"), self.canonical(url or ask.url)
            if host is not None:
                text = f"{text}\0{host.lower()}"
        return self.uri(text)

    def primary(self, ask: Ask, text: str | None = None) -> str | None:
        """The key of what a GET (or HEAD) finds; None if its credentials are for this one request.

        text: what the user's own key function gave instead of the URI.
        """
        uri = self.target(ask, text)
        who = self.identity(ask)
        if not who:
            return None if who is None else uri
        return f"{uri}.{who}"

    def anonymous(self, ask: Ask, text: str | None = None) -> str | None:
        """The key of what was stored for nobody in particular, None unless cookies alone tell `ask` from nobody.

        What is there may answer `ask` only if the entry is `open_to_all`.
        """
        if "cookie" not in ask.fields or len(self._names(ask)) > 1 or ask.certificate or user_of(ask.url):
            return None
        return self.target(ask, text)

    def posted(self, ask: Ask, body: object, text: str | None = None) -> str | None:
        """The key of the answer to a POST with `body`; None if the body is a stream, which cannot be compared."""
        primary = self.primary(ask, text)
        if primary is None or not (body is None or isinstance(body, (bytes, str))):
            return None
        content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body or b""
        kind = f"{ask.get('content-type') or ''}\0{ask.get('content-encoding') or ''}\0"
        return f"{primary}+{blake2b(kind.encode() + content, key=self.secret, digest_size=16).hexdigest()}"

    def secondary(self, primary: str, vary: Sequence[str], variant: str) -> str:
        """The key of another variant of what is under `primary`."""
        return f"{primary}~{_digest(self.secret, 'variant', ','.join(vary) + ' ' + variant)}"

    def identity(self, ask: Ask) -> str | None:
        """A digest of who asks: "" for nobody in particular, None if that cannot be told from one request to the next.

        Credentials are Authorization, cookies, fields whose names say so, a user in the URL, and a
        client certificate.
        """
        names, user = self._names(ask), user_of(ask.url)
        if not names and not user and not ask.certificate:
            return ""
        said = [f"user {user}", f"certificate {ask.certificate}"]
        for name in names:
            value = ask.get(name) or ""
            if name == "authorization" and value.split(" ", 1)[0].lower() in _ONE_TIME_SCHEMES:
                return None
            said.append(f"{name} {_telling_cookies(value, self._ignored_cookies) if name == 'cookie' else value}")
        if said == ["user ", "certificate ", "cookie "]:  # only cookies that say nothing
            return ""
        return _digest(self.secret, "identity", "\0".join(said))

    def _names(self, ask: Ask) -> tuple[str, ...]:
        return _credential_names(tuple(ask.fields), self._own_fields | ask.secrets)


@lru_cache(maxsize=256)
def _telling_cookies(value: str, ignored: tuple[str, ...]) -> str:
    """The cookies that say who asks, sorted: their order in the field means nothing."""
    pairs = sorted(pair for piece in value.split(";") if (pair := piece.strip()))
    if not ignored:
        return "; ".join(pairs)
    expression = one_of(ignored)
    return "; ".join(pair for pair in pairs if not expression.fullmatch(pair.partition("=")[0]))


@lru_cache(maxsize=8192)
def _digest(secret: bytes, purpose: str, text: str) -> str:
    """16 bytes of keyed digest, as text. The purpose keeps a digest for one use from serving another."""
    data = f"{purpose}\0{text}".encode("utf-8", "surrogatepass")
    return blake2b(data, key=secret, digest_size=16).hexdigest()


@lru_cache(maxsize=256)
def _credential_names(names: tuple[str, ...], own: frozenset[str]) -> tuple[str, ...]:
    """Those among `names` (lower case) that carry credentials, sorted."""
    return tuple(
        sorted(
            name
            for name in names
            if name == "cookie"
            or name in own
            or (_CREDENTIALS.search(name) is not None and not _NO_CREDENTIALS.match(name))
        )
    )
