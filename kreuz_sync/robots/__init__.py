"""robots.txt, RFC 9309: what may be fetched, and how fast.

A request goes through here as `layer.py` reads: which origin is it for (`places.py`)? What is
known of that one's file (`keeping.py`), and does it still hold (`life.py`)? If not, it is asked for
(`fetch.py`). What it says is read in `files.py`, line by line (`lines.py`); which rule decides about
the path, in the spelling of `paths.py`, is found in `patterns.py`, with `occurrences.py` where a file
would make that slow. The limiter is told of delays in `pace.py`. `handle.py` is `session.robots`.
"""

from .handle import RobotsHandle
from .setting import Robots

__all__ = ["Robots", "RobotsHandle"]
