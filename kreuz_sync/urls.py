"""What is read off a URL: the host that has a pace, the origin that has credentials, the text that may be shown.

Pure text work; nothing here opens a connection.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

# Query names whose values are credentials. The first seven are OpenTelemetry's list for
# `url.full` (semantic conventions 1.44.0); the others are the usual names of tokens.
SECRET_QUERY_NAMES = frozenset(
    "AWSAccessKeyId Signature sig X-Goog-Signature X-Amz-Signature X-Amz-Credential X-Amz-Security-Token "
    "access_token api_key apikey auth client_secret code key password passwd pwd refresh_token secret session "
    "sessionid sid signature token".split()
)
_FOLDED_SECRET_NAMES = frozenset(name.lower() for name in SECRET_QUERY_NAMES)

_USER_INFO = re.compile(r"(?<=//)[^/?#]*@")
_LIKE_USER_INFO = re.compile(r"[^\s/'\"@]+:[^\s/'\"@]*@")
_QUERY_PAIR = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")


@lru_cache(maxsize=4096)
def host_of(url: str) -> str:
    """The host of `url` as one name: lower case, IDNA, no trailing dot, no port, no brackets.

    Every sub-domain is a host of its own, and every port and scheme of a host is the same
    host: a pace belongs to the machine behind the name. A URL without a host gives "".
    """
    return canonical_host(urlsplit(url).hostname or "")


def canonical_host(name: str) -> str:
    """`name` in lower case, IDNA form, without the root's trailing dot."""
    name = name.strip("[]").lower().rstrip(".")
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:  # not a name that can be looked up; it is still one key
        return name


@lru_cache(maxsize=4096)
def origin_of(url: str) -> str:
    """`scheme://host:port` of `url`, the port always written (RFC 9110, section 4.3.1).

    Credentials belong to an origin: another scheme, host or port is another one.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = parts.port if parts.port is not None else DEFAULT_PORTS.get(scheme, 0)
    return f"{scheme}://{canonical_host(parts.hostname or '')}:{port}"


def redact(url: str) -> str:
    """`url` as it may be shown: no user information, no values of query names that carry credentials.

    >>> redact("https://me:pw@example.com/a?sig=abc&q=1")
    'https://REDACTED@example.com/a?sig=REDACTED&q=1'
    """
    if "@" in url:
        url = _USER_INFO.sub("REDACTED@", url)
    if "=" in url:
        url = _QUERY_PAIR.sub(_redact_pair, url)
    return url


def redact_text(text: str) -> str:
    """`text`, which may quote something like a URL, without credentials.

    >>> redact_text("No connection adapters were found for 'me:pw@example.com'")
    "No connection adapters were found for 'REDACTED@example.com'"
    """
    return _LIKE_USER_INFO.sub("REDACTED@", redact(text)) if "@" in text else redact(text)


def _redact_pair(pair: re.Match[str]) -> str:
    name = pair.group(1)
    return f"{name}=REDACTED" if name.lower() in _FOLDED_SECRET_NAMES else pair.group(0)
