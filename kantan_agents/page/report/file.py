"""Recorded runs as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kantan_agents.errors import FileArgumentError
from kantan_agents.page.data.cut_texts import MOST
from kantan_agents.support.arguments import checked_path
from kantan_agents.support.replace_file import replace_file

if TYPE_CHECKING:
    from kantan_agents.middleware import Redact

MODULES: Final = (
    "lib/invisible.js",
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
"""In the order of their dependencies. Their top-level names differ."""
_STYLES: Final = ("page.css", "run.css")

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "[^"]*";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(async )?function|const|class)", re.MULTILINE)

# The end of a truncated string may be the start of a value to mask.
_UNSURE: Final = 256

# Digits in them could look like phone numbers.
_STRUCTURE: Final = frozenset(
    {"id", "parent", "parent_run", "started_at", "kind", "status", "outcome", "role"}
)


def write_run_report(
    runs: Sequence[dict[str, Any]], path: str | os.PathLike[str], *, redact: Redact | None = None
) -> None:
    """Write or replace an HTML file with runs from ``read_run``; E79 if that is impossible.

    It sends no requests, and only its owner may read a new file. Secrets are masked as in the recording;
    ``redact`` masks more.
    """
    place = Path(checked_path("path", path))
    page = report_page([run if redact is None else _masked(run, redact) for run in runs])
    try:
        replace_file(place, page.encode())
    except OSError as error:
        raise FileArgumentError(path=str(path), reason=error.strerror or str(error)) from error


def report_page(runs: Sequence[dict[str, Any]]) -> str:
    """Return the whole file."""
    script, style = joined_script(), _joined_style()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Recorded runs</title>
<style>{style}</style>
</head>
<body>
<header class="top"><nav aria-label="Runs" id="runs"></nav></header>
<main id="view" tabindex="-1"></main>
<div id="status" role="status" aria-live="polite"></div>
<script type="application/json" id="data">{_data(runs)}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _data(runs: Sequence[dict[str, Any]]) -> str:
    """The JSON cannot close its element, whatever the data contains."""
    text = json.dumps(runs, ensure_ascii=True, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _masked(data: Any, redact: Redact, name: str = "") -> Any:
    """Mask strings, except the fields that the view depends on."""
    if isinstance(data, dict):
        if data.keys() == {"text", "length"}:
            known = data["text"] if data["length"] <= MOST else data["text"][:-_UNSURE]
            return {**data, "text": _masked(known, redact, name)}
        return {
            key: value if key in _STRUCTURE else _masked(value, redact, key) for key, value in data.items()
        }
    if isinstance(data, list):
        return [_masked(one, redact, name) for one in data]
    # With its name, which identifies a password.
    return redact.masked({name: data})[name] if isinstance(data, str) else data


def joined_script() -> str:
    """Join the modules: a file opened from a disk cannot load modules."""
    modules = (_EXPORT.sub("", _IMPORT.sub("", read_static(name))) for name in MODULES)
    return '"use strict";\n' + "\n".join(modules)


def _joined_style() -> str:
    return "\n".join(map(read_static, _STYLES))


def read_static(name: str) -> str:
    """Read one of the page's files."""
    return (files("kantan_agents.page") / "static" / name).read_text(encoding="utf-8")
