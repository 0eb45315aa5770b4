"""What runs in another process, or on another machine: one request of a session that came as a pickle.

Each process keeps the sessions that it has made, so that their connections, paces and caches last.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from typing import Any

import requests

from kreuz_sync import fork
from kreuz_sync.errors import KreuzError, portable
from kreuz_sync.urls import redact_text

from .items import Ask
from .making import Outcome, outcome_of

KEPT = 8  # sessions


class Sessions:
    """The sessions of this process, by the digest of their pickles. `_lock` guards them; one is made inside it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[bytes, requests.Session] = OrderedDict()
        fork.renew_in_child(self)

    def find(self, settings: bytes) -> requests.Session:
        """The session of this pickle: the one that was made of it before, if there is one."""
        digest = hashlib.blake2b(settings, digest_size=16).digest()
        with self._lock:
            session = self._made.get(digest)
            if session is None:
                session = self._made[digest] = pickle.loads(settings)
            self._made.move_to_end(digest)
            # One that is in use goes on; without its pools it is only slower.
            old = self._made.popitem(last=False)[1] if len(self._made) > KEPT else None
        if old is not None:
            old.close()
        return session

    def after_fork(self) -> None:
        """In the child: a thread that is not there may hold the lock."""
        self._lock = threading.Lock()


SESSIONS = Sessions()


def fetch(settings: bytes, ask: Ask) -> Outcome:
    """What comes of a request, whole, in a form that can be pickled."""
    outcome = outcome_of(SESSIONS.find(settings), ask, whole=True)
    return portable_error(outcome) if isinstance(outcome, Exception) else outcome


def portable_error(error: Exception) -> Exception:
    """`error`, or what can be said of it where it does not survive a pickle: that would break a process pool."""
    # What it came from may quote URLs with credentials. A pickle leaves it out, unless something has taught it not to.
    error.__cause__ = error.__context__ = None
    error = error.with_traceback(None)
    if isinstance(error, requests.RequestException):
        error.request = portable(error.request)
    try:
        copy: Any = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if type(copy) is type(error):
        return error
    return KreuzError(f"{type(error).__name__}: {redact_text(str(error))}")
