"""Sphinx: `python -m sphinx -W -n docs docs/_build`. Nothing here needs a network."""

from __future__ import annotations

import re
import sys
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

# The checkout beside this file, where there is one: its docstrings, not those of an older installation.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import kreuz_sync
from kreuz_sync import fetch_all, order, robots, sessions
from kreuz_sync.version import __version__

# Annotations name these, which a session loads only when it uses them.
for _name in ("AddressGuard", "Breaker", "Budget", "Cache", "CacheStore", "RateLimit", "Robots", "Tracing"):
    setattr(sessions, _name, getattr(kreuz_sync, _name))
sessions.RobotsHandle = robots.RobotsHandle
order.Tracing = kreuz_sync.Tracing
sessions.Executor, sessions.FetchAll = Executor, fetch_all.FetchAll

project = "kreuz_sync"
author = project_copyright = "the kreuz_sync authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_heading_anchors = 2  # the level down to which errors.md#deadlines is a link

html_theme = "furo"
html_title = f"kreuz_sync {release}"
html_show_sphinx = False
# A prompt is not part of a command.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # requests' are in its own markup, and link to its own pages
default_role = "code"

nitpick_ignore_regex = [
    (r"py:.*", r"kreuz_sync\.carrying\.Given"),  # a type variable
    # Other packages' names: the indexes to link them by are on the network, which a build must not need.
    (r"py:.*", r"(requests|urllib3)\..*"),
    (r"py:.*", r"(abc|collections|concurrent|contextlib|datetime|http|ipaddress|os|pathlib|re|threading|typing)\..*"),
]

_CODE = re.compile(r"(`[^`]*`)")
_CODE_BEFORE_LETTER = re.compile(r"(`[^`]*`)(?=\w)")
_MARKUP = re.compile(r"(\*(?=\*)|(?<=\*)\*|(?<=\s)\*(?=\s)|[|\\]|(?<=\w)_(?!\w)|(?<=^\d\d\d)\.)")


def as_restructured_text(lines: list[str]) -> list[str]:
    """Our docstrings, which are plain text with `code` and indented examples, as Sphinx reads them."""
    made: list[str] = []
    after_blank, in_example = True, False
    for line in lines:
        indented = line.startswith("    ")
        if line.strip():
            if indented and after_blank and not in_example:
                made += ["::", ""]
            # Lists have lines that are indented too, by less or without a blank line before them.
            in_example = indented and (after_blank or in_example)
        is_text = not in_example and not line.lstrip().startswith((">>>", "..."))
        made.append(_escaped(line) if is_text else line)
        after_blank = not line.strip()
    return made


def _escaped(line: str) -> str:
    """`line` with nothing but `code` that Sphinx could take for markup."""
    pieces = _CODE.split(line)
    escaped = "".join(piece if piece.startswith("`") else _MARKUP.sub(r"\\\1", piece) for piece in pieces)
    return _CODE_BEFORE_LETTER.sub(r"\1\ ", escaped)


def _process_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured_text(lines)


def _process_signature(app: Any, what: str, *others: Any) -> tuple[str, None] | None:
    # Errors are caught, not made. One that takes its constructor from Exception has no signature to leave out.
    return ("", None) if what == "exception" and others[-2] is not None else None


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect("autodoc-process-docstring", _process_docstring)
    app.connect("autodoc-process-signature", _process_signature)
