"""The command `kreuz-sync`.

`command.py` is what it does, `arguments.py` what may be said to it. A job reads what `inputs.py`
opens by `url_list.py`, fetches with `fetching.py`, makes an `outcome.py` of each URL,
keeps bodies with `saving.py`, and tells of it with `progress.py` and `summary.py`. `demo.py` does
a job against `demo_site.py`; the documentation's examples ask `example_site.py`. Both sites are
served by `serving.py`. `cache.py` looks into a folder of cached answers: `cache_arguments.py` is what may
be said to it, and it prints with `tables.py`.
"""

from .command import main

__all__ = ["main"]
