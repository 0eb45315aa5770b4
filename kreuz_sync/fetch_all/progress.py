"""One bar for a run: tqdm's, in the form that suits a notebook or a terminal; none where nobody would see it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sized
from importlib import import_module
from typing import Any, Protocol


class Progress(Protocol):
    """Told of every result that is given; closed at the end, whatever that is."""

    def step(self, *, failed: bool) -> None: ...

    def close(self) -> None: ...


class Silent:
    """No bar."""

    def step(self, *, failed: bool) -> None:
        pass

    def close(self) -> None:
        pass


class Bar:
    """tqdm's."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._failed = 0

    def step(self, *, failed: bool) -> None:
        if failed:
            self._failed += 1
            self._bar.set_postfix_str(f"{self._failed} failed", refresh=False)
        self._bar.update(1)

    def close(self) -> None:
        self._bar.close()


def progress_for(urls: object) -> Progress:
    """The bar for a list; without a total where its length is not known."""
    if not (_in_notebook() or _on_terminal()):
        return Silent()
    try:
        with warnings.catch_warnings():
            # It is called experimental, and says which packages a prettier bar would need.
            warnings.simplefilter("ignore")
            tqdm = import_module("tqdm.auto").tqdm
            bar = tqdm(total=len(urls) if isinstance(urls, Sized) else None, unit="url")
    except ImportError:
        return Silent()
    return Bar(bar)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    """Whether a kernel runs this, whose output is no terminal and yet seen."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config
