"""The store in memory keeps what every store promises."""

from __future__ import annotations

import pytest

from kreuz_sync.ratelimit import MemoryStore
from tests.fakes import FakeClock

from .contract import ClockedContract, MakeStore


class TestMemoryStore(ClockedContract):
    """All that every store promises."""

    @pytest.fixture
    def make_store(self, clock: FakeClock) -> MakeStore:
        return lambda: MemoryStore(clock=clock)
