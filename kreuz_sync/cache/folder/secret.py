"""The secret that keys are made with, in a file beside the records."""

from __future__ import annotations

import os
from contextlib import suppress

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
    with suppress(FileNotFoundError), open(path, "rb") as file:
        secret = file.read(_LENGTH + 1)
        return secret if len(secret) == _LENGTH else None
    return None
