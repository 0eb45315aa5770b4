"""The secret that keys are made with, in a file beside the records."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from .outgoing import UNFOLLOWED

_LENGTH = 32


def read_secret(path: str) -> bytes:
    """The secret in the file at `path`, which is made if there is none, or a damaged one."""
    found = _read(path)
    if found is not None:
        return found
    made = f"{path}-{os.urandom(8).hex()}"
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, os.urandom(_LENGTH))
        os.close(file)
        # Of several processes at once the first one's stays. A rename would put the last one's there.
        with suppress(FileExistsError):
            os.link(made, path)
        if _read(path) is None:
            os.replace(made, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)
    found = _read(path)
    if found is None:
        raise OSError(f"{path} could not be written")
    return found


def _read(path: str) -> bytes | None:
    try:
        file = os.open(path, UNFOLLOWED)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # not there; a link; a socket
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        secret = os.read(file, _LENGTH + 1)
    finally:
        os.close(file)
    return secret if len(secret) == _LENGTH else None
