"""Joins the modules of the run view to one script, as a file that is opened from a disk cannot load them."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

MODULES: Final = (
    "lib/dom.js",
    "lib/format.js",
    "lib/keys.js",
    "run/text.js",
    "run/timeline.js",
    "run/details.js",
    "run/overview.js",
    "run/raw.js",
    "run/board.js",
    "report/main.js",
)
"""In the order in which they need each other. Their names at the top level differ."""
STYLES: Final = ("page.css", "run.css")

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "[^"]*";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(async )?function|const|class)", re.MULTILINE)


def joined_script() -> str:
    """Return the script of a report."""
    modules = (_EXPORT.sub("", _IMPORT.sub("", read_static(name))) for name in MODULES)
    return '"use strict";\n' + "\n".join(modules)


def joined_style() -> str:
    """Return the style of a report."""
    return "\n".join(map(read_static, STYLES))


def read_static(name: str) -> str:
    """Return one of the page's own files."""
    return (files("kantan_agents.page") / "static" / name).read_text(encoding="utf-8")
