"""The command `kreuz-sync`.

`command.py` is what it does, `arguments.py` what may be said to it. A job reads `url_list.py`,
fetches with `fetching.py`, makes an `outcome.py` of each URL, keeps bodies with `saving.py`,
and tells of it with `progress.py` and `summary.py`. `demo.py` does a job against `demo_site.py`.
"""

from .command import main

__all__ = ["main"]
