"""Sphinx: `python -m sphinx -W -n docs docs/_build`. Nothing here needs a network."""

from __future__ import annotations

import sys
from pathlib import Path

# The checkout beside this file, where there is one: its docstrings, not those of an older installation.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kreuz_sync.version import __version__

project = "kreuz_sync"
author = "the kreuz_sync authors"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"kreuz_sync {release}"
html_show_sphinx = False
# A prompt is not part of a command.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "separated"

nitpicky = True
nitpick_ignore_regex = [
    # Types of other packages: their indexes are on the network, and a build must not need it.
    (r"py:.*", r"(requests|urllib3|collections|datetime|typing|contextvars|threading|weakref|http)(\..*)?"),
]
