"""Reads the plain values that other caches keep on disk: pickles of nothing but data, and MessagePack. Pure.

Neither runs what it reads: a value is a mapping, a list, text, bytes, a number, a truth value or None, or else
`NotPlain` is raised.
"""

from __future__ import annotations

import struct
from typing import Any

_DEEPEST = 50  # values in values
_MOST_REPEATED = 2**24  # bytes of texts that stand in several places; they are names of fields


class NotPlain(ValueError):
    """The bytes are damaged, or hold more than plain values."""


# --- pickles: https://docs.python.org/3/library/pickletools.html ----------------------------

# Opcodes whose argument is the value.
_VALUES = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 "
    "SHORT_BINBYTES BINBYTES BINBYTES8".split()
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NOTHING = frozenset({"PROTO", "FRAME"})
_MARK = object()


def plain_pickle(data: bytes) -> Any:
    """The value in a pickle of plain values, without unpickling: no opcode that names or calls anything is obeyed."""
    import pickletools

    reader = _Pickled()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                (value,) = reader.stack
                return value
            reader.step(opcode.name, argument)
    except NotPlain:
        raise
    except Exception as error:  # what a damaged pickle makes of its reader is anything
        raise NotPlain(f"a damaged pickle: {error}") from error
    raise NotPlain("a pickle without an end")


class _Pickled:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._repeated = 0

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._since_mark()
            self._top(dict).update(zip(items[::2], items[1::2], strict=True))
        elif name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._since_mark()
            self._top(list).extend(items)
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._again(self._memo[argument]))
        elif name not in _NOTHING:
            raise NotPlain(f"a pickle with more than plain values in it ({name})")

    def _again(self, value: Any) -> Any:
        """A value that was there before. A few bytes could else stand for more than the memory holds."""
        if isinstance(value, (list, dict)) or value is _MARK:
            raise NotPlain("a pickle with one collection in several places")
        self._repeated += len(value) if isinstance(value, (str, bytes)) else 8
        if self._repeated > _MOST_REPEATED:
            raise NotPlain("a pickle that repeats itself too much")
        return value

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise NotPlain(f"a damaged pickle: no {kind.__name__} to add to")
        return self.stack[-1]

    def _last(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]


# --- MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md --------------------

_NUMBERS = dict(zip(range(0xCA, 0xD4), ">f >d >B >H >I >Q >b >h >i >q".split(), strict=True))
_LENGTHS = {
    0xC4: ("bytes", ">B"),
    0xC5: ("bytes", ">H"),
    0xC6: ("bytes", ">I"),
    0xD9: ("text", ">B"),
    0xDA: ("text", ">H"),
    0xDB: ("text", ">I"),
    0xDC: ("list", ">H"),
    0xDD: ("list", ">I"),
    0xDE: ("map", ">H"),
    0xDF: ("map", ">I"),
}
_SINGLE = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(data: bytes) -> Any:
    """The one value in `data`, in MessagePack without extension types."""
    reader = _Packed(data)
    try:
        value = reader.value(0)
    except (struct.error, UnicodeDecodeError, TypeError) as error:
        raise NotPlain(f"damaged MessagePack: {error}") from error
    if reader.at != len(data):
        raise NotPlain("damaged MessagePack: more than one value")
    return value


class _Packed:
    """Bytes, and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise NotPlain("MessagePack: too many values in values")
        kind = self._taken(1)[0]
        if kind < 0x80 or kind >= 0xE0:
            return kind if kind < 0x80 else kind - 0x100
        if kind < 0x90:
            return self._many("map", kind & 0x0F, depth)
        if kind < 0xA0:
            return self._many("list", kind & 0x0F, depth)
        if kind < 0xC0:
            return self._many("text", kind & 0x1F, depth)
        if kind in _SINGLE:
            return _SINGLE[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind in _LENGTHS:
            what, form = _LENGTHS[kind]
            return self._many(what, int(self._number(form)), depth)
        raise NotPlain(f"MessagePack with more than plain values in it (0x{kind:02x})")

    def _many(self, what: str, count: int, depth: int) -> Any:
        if what == "bytes":
            return self._taken(count)
        if what == "text":
            return self._taken(count).decode("utf-8")
        if what == "list":
            return [self.value(depth + 1) for _ in range(count)]
        return {self.value(depth + 1): self.value(depth + 1) for _ in range(count)}

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._taken(struct.calcsize(form)))[0]

    def _taken(self, count: int) -> bytes:
        piece = self._data[self.at : self.at + count]
        if len(piece) != count:
            raise NotPlain("damaged MessagePack: it ends too soon")
        self.at += count
        return piece
