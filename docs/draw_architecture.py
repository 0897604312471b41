"""Draws docs/assets/architecture.svg from the layers that import-linter checks.

Run it after changing the contract in pyproject.toml or the docstring of a package:

    python docs/draw_architecture.py

The contract is the only source, so CI checks every dependency in the picture. The same input gives the same bytes on
every platform.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

if sys.version_info >= (3, 11):
    import tomllib
else:  # Python 3.10 has no tomllib; pytest and mypy bring this copy of it.
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "assets" / "architecture.svg"
CONTRACT = "Dependencies point inward"

WIDTH = 760
MARGIN = 16
GUTTER = 34
"""Left of the layers: the arrow."""
GAP = 8
PADDING = 10
LINE = 17
NAME_COLUMN = 128
"""Width of the name of a package that is alone in its layer."""
PER_ROW = 3
"""Maximum number of packages in a row; more packages of a layer begin another row."""
CHARACTER = 7.1
"""Width of a character at 12.5 px in the widest of the usual sans-serif fonts, DejaVu Sans."""

STYLE = """\
    .panel { fill: #fbfbfc; stroke: #d5d8de; }
    .layer { fill: #f1f4f9; stroke: #c3cad7; }
    .package { fill: #e3ecfb; stroke: #3f6fb5; }
    .line { stroke: #5b6579; stroke-width: 1.5; fill: none; }
    .head { fill: #5b6579; }
    text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif; font-size: 12.5px; fill: #1f2733; }
    .name { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px; font-weight: 600; }
    .quiet { fill: #5b6579; }
    @media (prefers-color-scheme: dark) {
      .panel { fill: #1c2029; stroke: #3a4150; }
      .layer { fill: #232936; stroke: #3f4860; }
      .package { fill: #24385a; stroke: #7ba4e0; }
      .line { stroke: #a5afc2; }
      .head { fill: #a5afc2; }
      text { fill: #e8ebf1; }
      .quiet { fill: #a5afc2; }
    }"""


class Package(NamedTuple):
    """A package in the picture."""

    name: str
    description: str


def layers(root: Path = ROOT) -> list[list[Package]]:
    """Return the layers of the contract, the outermost first, each with its packages in order.

    Raises:
        ValueError: The contract is missing, or one of its packages does not exist.
    """
    configured = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in configured["tool"]["importlinter"]["contracts"]:
        if contract["name"] == CONTRACT:
            return [
                [
                    _package(root, dotted.strip(" ()"))
                    for dotted in re.split("[|:]", layer)
                ]
                for layer in contract["layers"]
            ]
    raise ValueError(f"pyproject.toml has no import-linter contract named {CONTRACT!r}")


def drawing(root: Path = ROOT) -> str:
    """Return the picture as SVG."""
    bands = layers(root)
    body: list[str] = []
    top = 46
    for packages in bands:
        height = _band_height(packages)
        body.extend(_band(packages, top, height))
        top += height + GAP
    bottom = top - GAP
    names = "; ".join(
        ", ".join(package.name for package in packages) for packages in bands
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + MARGIN}" '
            f'width="{WIDTH}" height="{bottom + MARGIN}" role="img" aria-labelledby="title desc">',
            "  <!-- Drawn by docs/draw_architecture.py; do not edit. -->",
            '  <title id="title">The packages of kantan_agents in layers</title>',
            f'  <desc id="desc">From the outermost layer to the innermost: {escape(names)}. '
            "A package imports only from the layers below its own.</desc>",
            f"  <style>\n{STYLE}\n  </style>",
            "  <defs>",
            '    <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
            '      <path class="head" d="M0 0 L8 4 L0 8 z"/>',
            "    </marker>",
            "  </defs>",
            f'  <rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + MARGIN - 1}" rx="10"/>',
            f'  <text class="quiet" x="{MARGIN}" y="29">A package imports only from the layers below its own. '
            "Packages in one layer do not import each other.</text>",
            f'  <path class="line" d="M{MARGIN + 10} 50 V {bottom - 4}" marker-end="url(#arrow)"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _package(root: Path, dotted: str) -> Package:
    path = root.joinpath(*dotted.split("."))
    module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not module.is_file():
        raise ValueError(
            f"the contract {CONTRACT!r} has {dotted}, which does not exist"
        )
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    summary = (docstring or "").partition("\n")[0].replace("`", "")
    summary = re.sub(r" \(spec [^)]*\)", "", summary).rstrip(".")
    name = dotted.partition(".")[2]
    return Package(f"{name}/" if path.is_dir() else f"{name}.py", summary)


def _rows(packages: list[Package]) -> list[list[Package]]:
    """Split a layer into rows whose lengths differ by at most one."""
    count = -(-len(packages) // PER_ROW)
    ends = [len(packages) * number // count for number in range(count + 1)]
    return [packages[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def _box_width(row: list[Package]) -> int:
    inside = WIDTH - 2 * MARGIN - GUTTER - (2 * GAP if len(row) > 1 else 0)
    return (inside - (len(row) - 1) * GAP) // len(row)


def _texts(row: list[Package]) -> list[list[str]]:
    """Return the wrapped lines of each description in a row."""
    width = _box_width(row) - 2 * PADDING - (NAME_COLUMN if len(row) == 1 else 0)
    return [_wrapped(package.description, int(width / CHARACTER)) for package in row]


def _row_height(row: list[Package]) -> int:
    lines = max(len(lines) for lines in _texts(row)) + (len(row) > 1)
    return lines * LINE + 2 * PADDING - 2


def _band_height(packages: list[Package]) -> int:
    rows = _rows(packages)
    between = (len(rows) + 1) * GAP if len(packages) > 1 else 0
    return sum(map(_row_height, rows)) + between


def _band(packages: list[Package], top: int, height: int) -> Iterator[str]:
    left, width = MARGIN + GUTTER, WIDTH - 2 * MARGIN - GUTTER
    if len(packages) == 1:
        yield from _boxes(packages, left, top)
        return
    yield f'  <rect class="layer" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>'
    top += GAP
    for row in _rows(packages):
        yield from _boxes(row, left + GAP, top)
        top += _row_height(row) + GAP


def _boxes(row: list[Package], left: int, top: int) -> Iterator[str]:
    width, height = _box_width(row), _row_height(row)
    for index, (package, lines) in enumerate(zip(row, _texts(row), strict=True)):
        x, y = left + index * (width + GAP), top + PADDING + 11
        yield f'  <rect class="package" x="{x}" y="{top}" width="{width}" height="{height}" rx="6"/>'
        yield f'  <text class="name" x="{x + PADDING}" y="{y}">{escape(package.name)}</text>'
        # The description is beside the name if the package is alone in its layer, otherwise below.
        at, first = (
            (x + PADDING + NAME_COLUMN, 0) if len(row) == 1 else (x + PADDING, 1)
        )
        for number, line in enumerate(lines, first):
            yield f'  <text x="{at}" y="{y + number * LINE}">{escape(line)}</text>'


def _wrapped(text: str, columns: int) -> list[str]:
    """Break a text into lines, but unlike textwrap never inside a word."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8", newline="\n")
    print(PICTURE.relative_to(ROOT))
