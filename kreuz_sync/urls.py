"""What is read off a URL: the host that has a pace, the origin that has credentials, the text that may be shown.

Pure text work; nothing here opens a connection.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

# Query names whose values are credentials. The first seven are OpenTelemetry's list for
# `url.full` (semantic conventions 1.44.0); the others are the usual names of tokens.
SECRET_QUERY_NAMES = frozenset(
    "AWSAccessKeyId Signature sig X-Goog-Signature X-Amz-Signature X-Amz-Credential X-Amz-Security-Token "
    "access_token api_key apikey auth client_secret code key password passwd pwd refresh_token secret session "
    "auth_token jwt private_token sessionid jsessionid phpsessid sid id_token signature token".split()
)
_FOLDED_SECRET_NAMES = frozenset(name.lower() for name in SECRET_QUERY_NAMES)

_USER_INFO = re.compile(r"(?<=//)[^/?#]*@")
_LIKE_USER_INFO = re.compile(r"(?<=//)[^\s'\"?#]*@|[^\s/'\"@]+:[^\s/'\"@]*@")
_QUERY_PAIR = re.compile(r"(?<=[?&;#])([^=&;#]+)=([^&;#]*)")


def site_of(url: str) -> str:
    """`url` up to its path: what hosts and origins are read from, short enough to be remembered by."""
    end = url.find("/", url.find("//") + 2)
    site = url if end < 0 else url[:end]
    for mark in "?#":  # either may follow the host at once
        site = site.partition(mark)[0]
    return site


def host_of(url: str) -> str:
    """The host of `url` as one name: lower case, IDNA, no trailing dot, no port, no brackets.

    Every sub-domain is a host of its own, and every port and scheme of a host is the same
    host: a pace belongs to the machine behind the name. A URL without a host gives "".
    """
    return _host_of_site(site_of(url))


@lru_cache(maxsize=4096)
def _host_of_site(site: str) -> str:
    return canonical_host(urlsplit(site).hostname or "")


def lines_of(url: str) -> tuple[str, str | None]:
    """The host of `url` as `host_of` has it, and that with its port; None in place of this for the scheme's own port.

    >>> lines_of("http://[::1]:8080/")
    ('::1', '[::1]:8080')
    """
    return _lines_of_site(site_of(url))


@lru_cache(maxsize=4096)
def _lines_of_site(site: str) -> tuple[str, str | None]:
    parts = urlsplit(site)
    host = canonical_host(parts.hostname or "")
    try:
        port = parts.port
    except ValueError:  # no port, and no URL that can be sent
        port = None
    if not host or port is None or port == DEFAULT_PORTS.get(parts.scheme):
        return host, None
    return host, with_port(host, port)


def with_port(host: str, port: int | str) -> str:
    """The host's canonical name and its port as one name."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def without_port(name: str) -> str | None:
    """The host's name in one of `with_port`; None if there is no port in `name`.

    >>> without_port("[::1]:8080"), without_port("::1")
    ('::1', None)
    """
    host, colon, port = name.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and host[-1:] != "]"):
        return None
    return host.strip("[]")


def canonical_host(name: str) -> str:
    """`name` in lower case, IDNA form, without the root's trailing dot."""
    name = name.strip("[]").lower().rstrip(".")
    if name.isascii():
        return name
    import idna  # requests has it, and prepares URLs with it in just this way

    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except UnicodeError:  # not a name that can be looked up; it is still one key
        return name


def origin_of(url: str) -> str:
    """`scheme://host:port` of `url`, the port always written (RFC 9110, section 4.3.1).

    Credentials belong to an origin: another scheme, host or port is another one.
    """
    return _origin_of_site(site_of(url))


@lru_cache(maxsize=4096)
def _origin_of_site(site: str) -> str:
    parts = urlsplit(site)
    scheme = parts.scheme.lower()
    port = parts.port if parts.port is not None else DEFAULT_PORTS.get(scheme, 0)
    return f"{scheme}://{canonical_host(parts.hostname or '')}:{port}"


def redact(url: str, names: frozenset[str] = frozenset()) -> str:
    """`url` as it may be shown: no user information, no values of query names that carry credentials.

    names: others besides SECRET_QUERY_NAMES, in lower case.

    >>> redact("https://me:pw@example.com/a?sig=abc&q=1")
    'https://REDACTED@example.com/a?sig=REDACTED&q=1'
    """
    if "@" in url:
        url = _USER_INFO.sub("REDACTED@", url)
    if "=" in url:
        url = _QUERY_PAIR.sub(partial(_redact_pair, names) if names else _redact_usual_pair, url)
    return url


def without_user_info(url: str) -> str:
    """`url` without the user and password that may stand in it."""
    return _USER_INFO.sub("", url) if "@" in url else url


def redact_text(text: str, names: frozenset[str] = frozenset()) -> str:
    """`text`, which may quote something like a URL, without credentials. names: as of `redact`.

    >>> redact_text("No connection adapters were found for 'me:pw@example.com'")
    "No connection adapters were found for 'REDACTED@example.com'"
    """
    text = redact(text, names)
    return _LIKE_USER_INFO.sub("REDACTED@", text) if "@" in text else text


def _redact_pair(names: frozenset[str], pair: re.Match[str]) -> str:
    name = pair.group(1).lower()
    return f"{pair.group(1)}=REDACTED" if name in _FOLDED_SECRET_NAMES or name in names else pair.group(0)


_redact_usual_pair = partial(_redact_pair, frozenset())
