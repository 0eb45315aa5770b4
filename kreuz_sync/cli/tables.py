"""Tables, spans of time and sizes as people read them in a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable


def line(text: str) -> None:
    """Print a line to standard output."""
    sys.stdout.write(text + "\n")


def table(rows: Iterable[tuple[str, ...]], right: Iterable[int] = ()) -> None:
    """Print columns, two spaces apart. right: the numbers of those that are aligned at their right."""
    cleaned = [tuple(plain(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    aligned = frozenset(right)
    for row in cleaned:
        cells = [
            cell.rjust(width) if place in aligned else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line("  ".join(cells).rstrip())


def plain(text: str) -> str:
    """`text` without what would steer a terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)


def span(seconds: float) -> str:
    """Seconds, short.

    >>> span(75), span(7200), span(float("inf"))
    ('75s', '2.0h', 'for ever')
    """
    if seconds == math.inf:
        return "for ever"
    for unit, length, least in (("d", 86_400, 2 * 86_400), ("h", 3600, 7200), ("m", 60, 120)):
        if seconds >= least:
            return f"{seconds / length:.1f}{unit}"
    return f"{seconds:.0f}s"


def size(count: float) -> str:
    """Bytes, short.

    >>> size(512), size(20_480), size(3_400_000)
    ('512', '20.5k', '3.4M')
    """
    for unit, length in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= length:
            return f"{count / length:.1f}{unit}"
    return f"{count:.0f}"
