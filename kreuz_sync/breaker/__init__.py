"""A circuit per host: who fails too often in a row is left alone for a while, and then tried by one request.

`layer.py` asks before each attempt and learns from what comes of it; `circuits.py` keeps the
hosts and their lock; what opens and closes a circuit, and when, is worked out in `circuit.py`.
"""

from .circuits import CircuitReport
from .layer import BreakerAdapter
from .setting import Breaker

__all__ = ["Breaker", "BreakerAdapter", "CircuitReport"]
