"""Puts the generated parts into the reference pages: a line ``<!-- generated: NAME -->`` becomes ``generated.NAME``."""

from __future__ import annotations

import re
from typing import Any

from generated import command_line, errors, events

GENERATED = {
    "command-line": command_line.markdown,
    "errors": errors.markdown,
    "events": events.markdown,
}
_LINE = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each such line of a page."""
    return _LINE.sub(lambda line: GENERATED[line[1]](), markdown)
