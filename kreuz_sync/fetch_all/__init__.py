"""Many URLs at once, host by host: `Session.fetch_all`.

`begin.py` puts a run together. The way of a URL: `source.py` reads it from the list (`items.py` says what may
stand there) and puts it into `schedule.py`. When its host is due, by `pacing.py`, a worker of the `crew.py`
takes it (`threads.py`, `worker.py`) and makes the request (`making.py`). `run.py` gives out the result. With an
executor, `spread.py` takes the place of the threads, and in other processes `remote.py` makes the request.
"""

from .items import Item
from .result import Result
from .run import FetchAll

__all__ = ["FetchAll", "Item", "Result"]
