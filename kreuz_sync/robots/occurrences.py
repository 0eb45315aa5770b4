"""Where many texts first stand in one path, in a time that no choice of them can make long. Pure.

`str.find` takes up to the product of both lengths for texts such as `aaa..b..aaa`, and a file may
have thousands. Here the path's ends are sorted once, and each text is found among them by halves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

MOST_HEADS = 8 * 2**20  # characters of all heads
MOST_KEPT = 2**18  # places that are kept in order for texts that stand in many
FEW = 32
BLOCK = 64  # neighbours, of which the first place is known

_LAST = "\x7f"  # behind all that stands in a path, which is ASCII


class Occurrences:
    """Of texts no longer than `longest`, mostly, in `path`."""

    def __init__(self, path: str, longest: int) -> None:
        self._path = path
        self._size = size = max(16, min(longest, MOST_HEADS // max(1, len(path))))
        pairs = sorted((path[at : at + size], at) for at in range(len(path)))
        self._heads = [head for head, _ in pairs]
        self._places = [at for _, at in pairs]
        self._blocks = [min(self._places[low : low + BLOCK]) for low in range(0, len(path), BLOCK)]
        self._kept: dict[str, list[int]] = {}
        self._count = 0

    def first(self, text: str, at: int) -> int:
        """As `path.find(text, at)`, for a text that is not empty.

        >>> Occurrences("/abcab", 2).first("ab", 2)
        4
        """
        head = text[: self._size]
        low = bisect_left(self._heads, head)
        if low == len(self._heads) or not self._heads[low].startswith(head):
            return -1
        high = bisect_right(self._heads, head + _LAST, low)
        if len(head) < len(text):  # of long paths and texts; for these, `find` takes the sum of both
            return self._path.find(text, at)
        if high - low <= FEW:
            return min((place for place in self._places[low:high] if place >= at), default=-1)
        earliest = -1 if head in self._kept else self._earliest(low, high)
        return earliest if earliest >= at else self._next(head, low, high, at)

    def _earliest(self, low: int, high: int) -> int:
        first, last = -(-low // BLOCK), high // BLOCK
        if first >= last:
            return min(self._places[low:high])
        ends = self._places[low : first * BLOCK] + self._places[last * BLOCK : high]
        return min(self._blocks[first:last] + ends)

    def _next(self, head: str, low: int, high: int, at: int) -> int:
        places = self._kept.get(head)
        if places is None:
            if self._count > MOST_KEPT:
                self._kept.clear()
                self._count = 0
            places = self._kept[head] = sorted(self._places[low:high])
            self._count += len(places)
        index = bisect_left(places, at)
        return places[index] if index < len(places) else -1
