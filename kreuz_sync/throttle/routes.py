"""Which of a host's buckets a request belongs to, learnt from what answers were for. Pure.

Servers say afterwards which bucket a request was counted in. Most go by method and path: so what
is known of a route is taken for it the next time, and what all known routes under one folder
have in common, for the others there; the root is no such folder, since an API's parts stand side by side in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar
from zlib import crc32

# Of each folder on the way to a route, from the method alone to all of the path, a checksum. That
# takes little room, and can be written to a file: a path may have secrets in it.
Route = tuple[int, ...]

DEPTH = 8  # segments of a path that are told apart
ENOUGH = 3  # members of a folder, all in one bucket, that speak for the others
MOST_ROUTES = 256  # of one host; the oldest go first
MOST_FOLDERS = 256

# Segments that name one of many alike: numbers, UUIDs and hashes, and what is too long for a word.
_ONE_OF_MANY = re.compile(r"[0-9]+|(?=[^0-9]*[0-9])[0-9A-Fa-f-]{8,}|.{41,}")

Value = TypeVar("Value")


def route(method: str, url: str) -> Route:
    """The route of a request; of paths that differ only in numbers and hashes there is one.

    >>> route("GET", "http://a.test/users/17/posts") == route("GET", "http://b.test/users/18/posts?page=2")
    True
    >>> route("GET", "http://a.test/users/17") == route("PUT", "http://a.test/users/17")
    False
    """
    step = crc32(method.encode())
    steps = [step]
    for segment in _segments(url):
        name = "*" if _ONE_OF_MANY.fullmatch(segment) else segment
        step = crc32(f"/{name}".encode(errors="replace"), step)
        steps.append(step)
    return tuple(steps)


class Folder(NamedTuple):
    """What is known of a folder: the one bucket of its members, None if they differ; and ENOUGH of these members."""

    bucket: str | None
    members: tuple[int, ...]


class Routes:
    """The buckets of the routes of one host."""

    __slots__ = ("folders", "routes")

    def __init__(self) -> None:
        self.routes: dict[int, str] = {}
        self.folders: dict[int, Folder] = {}

    def learn(self, path: Route, bucket: str) -> None:
        """Note that a request by this route was counted in `bucket`."""
        before = self.routes.get(path[-1])
        if before == bucket:
            return
        _put(self.routes, path[-1], bucket, MOST_ROUTES)
        for folder, member in pairwise(path[1:]):  # of the root nothing
            _put(self.folders, folder, _with_member(self.folders.get(folder), member, bucket, before), MOST_FOLDERS)

    def keep(self, path: int, bucket: str) -> None:
        """Note what another `Routes` knew of a route, by its last checksum."""
        _put(self.routes, path, bucket, MOST_ROUTES)

    def keep_folder(self, path: int, folder: Folder) -> None:
        """The same of a folder."""
        _put(self.folders, path, folder, MOST_FOLDERS)

    def bucket_of(self, path: Route) -> str | None:
        """The bucket that a request by this route will be counted in; None if nobody can tell."""
        known = self.routes.get(path[-1])
        if known is not None:
            return known
        for folder in self._folders_over(path):
            if folder.bucket is None:
                return None
            if len(folder.members) >= ENOUGH:
                return folder.bucket
        return None

    def _folders_over(self, path: Route) -> Iterator[Folder]:
        """Those that are known, the innermost first."""
        return filter(None, map(self.folders.get, reversed(path[1:-1])))


def _with_member(known: Folder | None, member: int, bucket: str, before: str | None) -> Folder:
    """`known` with a member that is in `bucket`, and was in `before`."""
    if known is None or (known.bucket != bucket and known.bucket is not None and known.bucket == before):
        return Folder(bucket, (member,))  # the first, or a bucket that has another name now
    if known.bucket != bucket:
        return Folder(None, ())
    if member in known.members or len(known.members) >= ENOUGH:
        return known
    return Folder(bucket, (*known.members, member))


def _segments(url: str) -> list[str]:
    """The first of the path's."""
    for mark in "?#":
        url = url.partition(mark)[0]
    start = url.find("/", url.find("//") + 2)
    return url[start + 1 :].split("/", DEPTH)[:DEPTH] if start >= 0 else []


def _put(known: dict[int, Value], key: int, value: Value, most: int) -> None:
    if key not in known and len(known) >= most:
        del known[next(iter(known))]
    known[key] = value
