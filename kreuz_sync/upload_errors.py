"""Whether an exchange failed because the body that was to be sent could not be read.

urllib3 and http.client read it in the same `try` as they write to the socket, and make one error of
either. What tells them apart is the place it came from.
"""

from __future__ import annotations

from types import TracebackType

# Functions that do nothing but read a file that is a body.
_READERS = {("http.client", "_read_readable"), ("urllib3.util.request", "chunk_readable")}

# Functions that take the next piece of an iterable, and call each other, or the socket's, to send it.
_ITERATE = {
    ("http.client", "_send_output"),
    ("requests.adapters", "send"),  # before requests 2.29
    ("urllib3.connection", "request"),
    ("urllib3.connection", "request_chunked"),
}
_WIRE = frozenset({"http", "kreuz_sync", "requests", "socket", "ssl", "urllib3"})  # packages


def is_of_the_body(error: BaseException) -> bool:
    """Whether `error` was raised by the body that was being sent, and not by the connection."""
    link = error.__traceback__
    while link is not None:
        place, below = _place(link), link.tb_next
        if place in _READERS:
            return True
        if place in _ITERATE and below is not None and _place(below)[0].partition(".")[0] not in _WIRE:
            return True
        link = below
    return False


def _place(link: TracebackType) -> tuple[str, str]:
    """Module and function."""
    frame = link.tb_frame
    return str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
