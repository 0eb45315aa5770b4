"""What is kept of a record on the server. Pure: bytes in, bytes out.

Each record has a *value*, which no other has and none before it had: 12 random bytes, and for one
with a large body 12 more, which name that body. It stands in the record's group and in the record
itself, and the record counts only if the two are the same. So one step makes a record count, or
not any more, whatever else of it is there, or has been evicted.

The record holds, besides: the head; a sum of the key and the head; the facts of the body, and the
body itself if it is small. Sums are CRC-32, which is there against accidents.
"""

from __future__ import annotations

import os
from typing import NamedTuple
from zlib import crc32

ID = 12  # bytes; of 10**9 records two have the same one with a probability of 10**-11
_FORMAT = b"1"


class Facts(NamedTuple):
    """Of a body. length: bytes. total: its sum. piece: the length of each piece but the last, 0 if it is in one."""

    length: int
    total: int
    piece: int

    @property
    def pieces(self) -> int:
        """How many there are."""
        return -(-self.length // self.piece) if self.piece else 0


class Row(NamedTuple):
    """A record as it lies on the server, checked. body: None if it is in pieces, which are under `name`."""

    head: bytes
    facts: Facts
    body: bytes | None
    name: bytes


def new_value() -> bytes:
    """The value of a record with a small body."""
    return os.urandom(ID)


def body_name(value: bytes) -> bytes:
    """Which large body a record with `value` has; empty for one that has none."""
    return value[ID:]


def head_sum(key: bytes, head: bytes) -> bytes:
    """The sum of a head; with the key, so that a record which somebody copied is not taken for another's."""
    return b"%d" % crc32(head, crc32(key))


def pack(facts: Facts) -> bytes:
    """The facts as they are kept."""
    return b"%b %d %d %d" % (_FORMAT, *facts)


def unpack(kept: bytes) -> Facts | None:
    """What `pack` made `kept` from; None if it is damaged, or of another format."""
    words = kept.split(b" ")
    if len(words) != 4 or words[0] != _FORMAT or not all(word.isdigit() for word in words):
        return None
    return Facts(*map(int, words[1:]))


def is_sound(key: bytes, value: bytes, its_value: bytes, total: bytes, head: bytes) -> bool:
    """Whether a record that was found under its key is the one that has `value`, with the head that was put there."""
    return its_value == value and total == head_sum(key, head)


def read_row(key: bytes, value: bytes, found: tuple[bytes, ...]) -> Row | None:
    """The record that has `value`, out of what was found under its key; None if that is not a sound one.

    found: value, sum, head, facts and body, empty where there is nothing.
    """
    its_value, total, head, kept, body = found
    facts = unpack(kept)
    if facts is None or not is_sound(key, value, its_value, total, head):
        return None
    name = body_name(value)
    if bool(name) is not bool(facts.piece):
        return None
    if name:
        return Row(head, facts, None, name)
    is_whole = len(body) == facts.length and crc32(body) == facts.total
    return Row(head, facts, body, b"") if is_whole else None
