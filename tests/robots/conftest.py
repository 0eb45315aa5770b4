"""What is opened in a test is closed at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .sessions import OPEN


@pytest.fixture(autouse=True)
def closed_sessions() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()
