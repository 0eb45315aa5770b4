"""The body of an answer on its way to whoever reads it, and into the store when it has come whole.

Nothing is stored of a body that is cut, abandoned, too large, or turns out to be a challenge
page. What is read passes through here once, and beyond a small size into a file of the store's,
so that memory stays flat however large the body is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from kreuz_sync import body

from .store import Body
from .trouble import WRITING, GuardedStore

if TYPE_CHECKING:
    from kreuz_sync.response import Response

IN_MEMORY = 2**18  # bytes


class Collected:
    """The bytes of a body that is read at once, as they were on the wire."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def take(self, data: bytes) -> None:
        self.pieces.append(data)

    def end(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class Capture:
    """What has come of a body that its caller reads in pieces (`stream=True`).

    most: bytes, more is not stored. keep: called once with the whole body and its size, and never if
    the body does not come whole; says whether it was stored. The reader's thread does all of it,
    so there is no lock. In a finalizer, where none may be taken, there is only `abandon`.
    """

    def __init__(
        self,
        response: Response,
        store: GuardedStore,
        *,
        most: int | None,
        keep: Callable[[Body, int], bool],
    ) -> None:
        # The body of a response may outlive it (`session.get(url, stream=True).raw`), and knows this capture:
        # if that knew the response, both would live until the garbage collector comes.
        self._response = weakref.ref(response)
        self._expected = body.expected_length(response)
        self._coded = "Content-Encoding" in response.headers
        # Without length and chunks nothing but a coding says where the body ends.
        self._framed = self._expected is not None or "Transfer-Encoding" in response.headers
        self._watched = response.limits.watched if response.limits.watch is not None else -1
        self._store = store
        self._most = most
        self._keep = keep
        self._size = 0
        self._pieces: list[bytes] | None = []  # None: given up, or stored
        self._file: BinaryIO | None = None
        self._ended = False

    def take(self, data: bytes) -> None:
        """The next bytes of the body."""
        pieces = self._pieces
        if pieces is None or self._ended:
            return
        self._size += len(data)
        if self._most is not None and self._size > self._most:
            self.abandon()
        elif self._file is not None:
            self._write(data)
        else:
            pieces.append(data)
            if self._size > IN_MEMORY:
                self._spool(pieces)
        if self._size == self._expected:
            self.end()

    def end(self) -> None:
        """No more bytes will come. If `iter_content` reads them it has the last word, else they are judged here."""
        if self._pieces is None or self._ended:
            return
        self._ended = True
        response = self._response()
        if self._expected is not None and self._size != self._expected:
            self.abandon()
        elif response is None or not response.reads_itself:
            if self._is_sound(response):
                self._commit(response)
            else:
                self.abandon()

    def approve(self, response: Response) -> None:
        """The body has been read through `iter_content`, and is whole and of the right coding."""
        if self._ended and response.waf is None:
            self._commit(response)
        else:
            self.abandon()

    def abandon(self) -> None:
        """Nothing is to be stored, or nothing more."""
        self._pieces = None
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _is_sound(self, response: Response | None) -> bool:
        """Whether a body that was read from `raw`, which nobody else looks at, is what it should be."""
        if self._coded and not self._framed:
            return False
        if self._size <= self._watched:  # it could be a challenge page
            if self._coded or response is None or response.limits.watch is None:
                return False
            response.limits.watch(response, b"".join(self._pieces or ()))
        return response is None or response.waf is None

    def _commit(self, response: Response | None) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is None:
            return
        try:
            content: Body = b"".join(pieces) if self._file is None else self._file
            if self._file is not None and not self._rewound():
                return
            if self._keep(content, self._size) and response is not None:
                response.cache_status = f"{response.cache_status}; stored"
        finally:
            self.abandon()

    def _spool(self, pieces: list[bytes]) -> None:
        self._file = self._store.spool()
        if self._file is None:
            self.abandon()
            return
        self._write(b"".join(pieces))
        pieces.clear()

    def _write(self, data: bytes) -> None:
        self._tried(lambda file: file.write(data))

    def _rewound(self) -> bool:
        return self._tried(lambda file: file.seek(0))

    def _tried(self, action: Callable[[BinaryIO], Any]) -> bool:
        """Do something with the file; what goes wrong there is the store's trouble."""
        assert self._file is not None
        try:
            action(self._file)
        except Exception as error:
            self._store.failed(WRITING, error)
            self.abandon()
            return False
        return True
