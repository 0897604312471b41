"""Draws the text of a terminal as SVG, without a font from a server."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

# Rich's own frame would load a font from a server.
_FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def svg_of(text: Text, *, title: str, columns: int) -> str:
    """Return a picture of a terminal that shows a text."""
    screen = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    screen.print(text, soft_wrap=True)
    svg = screen.export_svg(title=title, code_format=_FRAME, unique_id="terminal")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"
