"""OpenTelemetry's own SDK, with everything kept in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .recorder import Recorder


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    pytest.importorskip("opentelemetry.sdk.trace")
    made = Recorder()
    yield made
    made.close()
