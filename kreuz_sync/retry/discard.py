"""Answers that nobody will read: what is left of their bodies, and their connections."""

from __future__ import annotations

import requests
import urllib3

from kreuz_sync.clock import Clock

DRAIN_BYTES = 64 * 1024  # beyond this a new connection costs less than the rest of the body
DRAIN_S = 1.0


def discard(response: requests.Response, clock: Clock) -> None:
    """Read the little that may be left of the body, so that its connection can serve again, and close.

    Reads 64 KiB at most, and starts no read when a second has passed. What goes wrong
    meanwhile is nobody's concern any more.
    """
    try:
        if isinstance(response.raw, urllib3.HTTPResponse):  # read to its end already: nothing comes
            _drain(response.raw, clock)
    except (urllib3.exceptions.HTTPError, OSError, ValueError):
        pass  # the connection is of no use; closing drops it
    finally:
        response.close()


def _drain(raw: urllib3.HTTPResponse, clock: Clock) -> None:
    # read1 hands over what has come; read waits until the amount is complete. urllib3 1.26
    # has only the latter.
    read = getattr(raw, "read1", raw.read)
    until = clock.monotonic() + DRAIN_S
    left = DRAIN_BYTES
    while left > 0 and clock.monotonic() < until:
        piece = read(min(left, 4096), decode_content=False)
        if not piece:
            return
        left -= len(piece)
