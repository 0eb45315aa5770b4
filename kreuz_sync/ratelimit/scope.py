"""Under which key a store counts: one text for (policy, client key) that no other pair has. Pure.

    search:example.com      the two parts, escaped
    search::9f86d081...     a long, non-ASCII or binary client key: its SHA-256
    ::60303ae2...           and so is the whole where the policy's name is such a text itself

An escaped part holds no colon, so the number of colons at hand tells the three forms apart.
"""

from __future__ import annotations

from hashlib import sha256

LONGEST = 256  # characters of a part that is kept as it is: more than a host name (253) has


def escape(part: str) -> str:
    """`part` without colons. `%` first: what was escaped must not be taken for what was there.

    >>> escape("a:b"), escape("a%3Ab")
    ('a%3Ab', 'a%253Ab')
    """
    return part.replace("%", "%25").replace(":", "%3A")


def scoped_key(policy_name: str, key: str | bytes) -> str:
    """The one text for `key` under the policy called `policy_name`.

    >>> scoped_key("search", "example.com"), scoped_key("a:b", "c"), scoped_key("a", "b:c")
    ('search:example.com', 'a%3Ab:c', 'a:b%3Ac')
    """
    return within(prefix(policy_name), key)


def prefix(policy_name: str) -> str:
    """What every scoped key of a policy begins with."""
    return f"{escape(policy_name)}:"


def within(prefix: str, key: str | bytes) -> str:
    """The scoped key of `key` after a policy's `prefix`, of bounded length and in printable ASCII.

    A digest in place of a long or foreign text keeps what a store holds for a key small, and is
    the same in every process. Bytes never equal a text.
    """
    if len(key) <= LONGEST and len(prefix) <= LONGEST and isinstance(key, str):
        scoped = prefix + (escape(key) if ":" in key or "%" in key else key)
        if scoped.isascii() and scoped.isprintable():
            return scoped
    return _digested(prefix, key)


def _digested(prefix: str, key: str | bytes) -> str:
    kind = b"bytes\0" if isinstance(key, bytes) else b"text\0"
    # surrogatepass: a name from the file system may hold half a pair, and is a key like any other.
    data = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    if len(prefix) <= LONGEST and prefix.isascii() and prefix.isprintable():
        return f"{prefix}:{sha256(kind + data).hexdigest()}"
    policy = sha256(prefix.encode("utf-8", "surrogatepass")).digest()
    return f"::{sha256(policy + kind + data).hexdigest()}"
