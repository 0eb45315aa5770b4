"""How the keys of the server are named. Pure.

Everything begins with the namespace. Records whose keys have the same first 32 characters are a
*group*: with the keys that a cache makes (`keys.py`) that is all that is kept for one URI.

    NAMESPACE:cache:g{kGROUP}           hash: the value of each record of the group, see records.py
    NAMESPACE:cache:r{kGROUP}REST       hash: one record, without its body if that is large
    NAMESPACE:cache:b{kGROUP}NAME       hash: the pieces of a large body
    NAMESPACE:cache:{index}:uses        sorted set: when each record was last used
    NAMESPACE:cache:{index}:facts       hash: how large each is, and all together
    NAMESPACE:cache:{index}:secret      string: see `CacheStore.secret`

What is in braces decides which node of a cluster has a key, so those of one group are together.
"""

from __future__ import annotations

from typing import NamedTuple

GROUP = 32  # characters: as long as the digest of a URI

# What has a meaning in a pattern of the server's.
_SPECIAL = {ord(character): f"\\{character}" for character in "*?[]\\"}


class Place(NamedTuple):
    """Where a record is. group, record: keys of the server. field: the record's in the group."""

    group: bytes
    record: bytes
    field: bytes


class Names:
    """The names within one namespace."""

    def __init__(self, namespace: str) -> None:
        start = f"{namespace}:cache:" if namespace else "cache:"
        self._start = raw(start)
        self.uses = raw(f"{start}{{index}}:uses")
        self.facts = raw(f"{start}{{index}}:facts")
        self.secret = raw(f"{start}{{index}}:secret")
        self.pattern = raw(f"{start.translate(_SPECIAL)}[grb]{{k*")  # of all groups, records and bodies

    def place(self, key: str) -> Place:
        """Where the record under `key` is."""
        tag, rest = raw(f"{{k{key[:GROUP]}}}"), raw(key[GROUP:])
        return Place(self._start + b"g" + tag, self._start + b"r" + tag + rest, b":" + rest)

    def record(self, group: bytes, field: bytes) -> bytes:
        """The key of the record that has `field` in `group`."""
        return self._start + b"r" + group[len(self._start) + 1 :] + field[1:]

    def body(self, group: bytes, name: bytes) -> bytes:
        """The key of a body of `group`."""
        return self._start + b"b" + group[len(self._start) + 1 :] + name.hex().encode()

    def kind(self, name: bytes) -> bytes:
        """Of one that fits the pattern: `g`, `r` or `b`."""
        return name[len(self._start) : len(self._start) + 1]


def raw(key: str) -> bytes:
    """A key of the store's as the server has it."""
    return key.encode("utf-8", "surrogatepass")


def text(key: bytes) -> str:
    """The same back."""
    return key.decode("utf-8", "surrogatepass")
