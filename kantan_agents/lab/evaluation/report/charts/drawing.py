"""What all charts share: the frame with its title and description, labels, and marks."""

from __future__ import annotations

from typing import Final

from kantan_agents.lab.evaluation.report.markup import text

WIDTH: Final = 940
LABEL: Final = 200
"""Space for the labels on the left."""
_LONGEST: Final = 26


def drawing(title: str, description: str, height: float, content: str) -> str:
    """Return a chart: it has a name and a description for those who do not see it."""
    return (
        f'<div class="wide" role="region" aria-label="{text(title)}" tabindex="0">'
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}">'
        f"<title>{text(title)}</title><desc>{text(description)}</desc>{content}</svg></div>"
    )


def label(value: str, y: float, note: str = "") -> str:
    """Return the label of a row; a long one is cut, and its whole text is its title."""
    shown = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    below = f'<tspan class="tick" x="0" dy="14">{text(note)}</tspan>' if note else ""
    base = y - 3 if note else y + 4
    return f'<text class="label" x="0" y="{base:.1f}"><title>{text(value)}</title>{text(shown)}{below}</text>'


def mark(verdict: str, x: float, y: float, size: float = 6) -> str:
    """Return the sign of a verdict: a triangle up or down, or a circle."""
    style = verdict.replace(" ", "-")
    if verdict == "cannot tell":
        return f'<circle class="mark {style}" cx="{x:.1f}" cy="{y:.1f}" r="{size - 1:.1f}"/>'
    turn = -1 if verdict == "better" else 1
    base, tip = y - turn * size, y + turn * size
    points = f"{x - size:.1f},{base:.1f} {x + size:.1f},{base:.1f} {x:.1f},{tip:.1f}"
    return f'<polygon class="mark {style}" points="{points}"/>'
