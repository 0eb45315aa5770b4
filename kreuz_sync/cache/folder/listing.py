"""The rows in the order of their last use."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from .uses import Uses


def in_order(rows: Iterable[tuple[int, float]], uses: Uses) -> array[int]:
    """The numbers of `rows`, least recently used first. rows: with the use that the database knows of."""
    numbers, last = array("q"), array("d")
    for row, known in rows:
        numbers.append(row)
        last.append(max(known, uses.last(row)))
    return array("q", (numbers[place] for place in sorted(range(len(numbers)), key=last.__getitem__)))
