"""What the value column of a row holds. Pure: bytes in, bytes out.

    "KZ1\\0" | sum, 4 | length of the head, 4 | sum of the body file, 4 | length of the body, 8 | head | body

Integers are little-endian. The body follows if it is small; else it is a file, and the row has its
name. Sums are CRC-32, which is there against accidents: a disk's, a copy's, a half-written page. The
first sum covers the key and all that follows it, so that a row found under another key, as a damaged
index may give it, is not taken for that key's.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

_MAGIC = b"KZ1\0"
_FRONT = struct.Struct("<4sI")
_LENGTHS = struct.Struct("<IIQ")
_BOTH = struct.Struct("<4sIIIQ")


class Row(NamedTuple):
    """body: None if it is a file. body_length: bytes. body_sum: of the file, 0 if there is none."""

    head: bytes
    body: bytes | None
    body_length: int
    body_sum: int


def pack(key: str, row: Row) -> bytes:
    """The value to keep `row` under `key`."""
    lengths = _LENGTHS.pack(len(row.head), row.body_sum, row.body_length)
    rest = b"".join((lengths, row.head, row.body or b""))
    return _FRONT.pack(_MAGIC, crc32(rest, crc32(key.encode()))) + rest


def unpack(key: str, value: bytes, *, has_file: bool) -> Row | None:
    """What `pack` made `value` from; None if it is damaged, of another format, or another key's."""
    if len(value) < _BOTH.size:
        return None
    magic, total, head_length, body_sum, body_length = _BOTH.unpack_from(value)
    if magic != _MAGIC or total != crc32(memoryview(value)[_FRONT.size :], crc32(key.encode())):
        return None
    body_at = _BOTH.size + head_length
    if len(value) != body_at + (0 if has_file else body_length):
        return None
    return Row(value[_BOTH.size : body_at], None if has_file else value[body_at:], body_length, body_sum)
