"""Renders the lineage of candidates as SVG: a row for each version, with a line to its parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kantan_agents.lab.evaluation.report.markup import text
from kantan_agents.lab.improve.candidate import Candidate, CandidateStatus

_ROW: Final = 44
_STEP: Final = 26
_LEFT: Final = 24
_TOP: Final = 56
_TEXT: Final = 900
_RADIUS: Final = 8
_LONGEST: Final = 110
_MOST_STEPS: Final = 12

_COLORS: Final[dict[CandidateStatus, str]] = {
    "old": "#57606a",
    "refused": "#cf222e",
    "rejected": "#8c959f",
    "not eligible": "#cf222e",
    "behind": "#0969da",
    "tested": "#9a6700",
    "winner": "#1a7f37",
}
_WORDS: Final[dict[CandidateStatus, str]] = {
    "old": "old version",
    "refused": "refused",
    "rejected": "rejected",
    "not eligible": "not eligible",
    "behind": "validated",
    "tested": "not shown to be better",
    "winner": "winner",
}


def draw_lineage(title: str, candidates: Sequence[Candidate]) -> str:
    """Return the picture, in which strings from models are only text."""
    depths = _depths(candidates)
    left = _LEFT + _STEP * (max(depths.values(), default=0) + 1)
    height = _TOP + _ROW * len(candidates)
    lines = [_edge(one, depths) for one in candidates if one.parent is not None]
    rows = [_row(one, depths[one.number], left) for one in candidates]
    said = "; ".join(_said(one) for one in candidates)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {left + _TEXT} {height}" '
        f'width="{left + _TEXT}" height="{height}" font-family="system-ui, sans-serif" font-size="14">'
        f"<title>{text(title)}</title><desc>{text(said)}</desc>"
        '<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="{_LEFT - 8}" y="28" font-size="17" font-weight="600" fill="#1f2328">'
        f"{text(_cut(title))}</text>"
        f"{''.join(lines)}{''.join(rows)}</svg>\n"
    )


def _depths(candidates: Sequence[Candidate]) -> dict[int, int]:
    depths: dict[int, int] = {}
    for one in candidates:
        depth = 0 if one.parent is None else depths[one.parent] + 1
        depths[one.number] = min(depth, _MOST_STEPS)
    return depths


def _place(number: int, depths: dict[int, int]) -> tuple[int, int]:
    return _LEFT + _STEP * depths[number], _TOP + _ROW * number + _ROW // 2 - 6


def _edge(one: Candidate, depths: dict[int, int]) -> str:
    (x, y), (to_x, to_y) = _place(one.parent or 0, depths), _place(one.number, depths)
    return f'<path d="M{x} {y} V{to_y} H{to_x}" fill="none" stroke="#d0d7de" stroke-width="2"/>'


def _row(one: Candidate, depth: int, left: int) -> str:
    x, y = _place(one.number, {one.number: depth})
    color = _COLORS[one.status]
    fill = color if one.status in ("winner", "old") else "#ffffff"
    weight = ' font-weight="600"' if one.status == "winner" else ""
    return (
        f'<circle cx="{x}" cy="{y}" r="{_RADIUS}" fill="{fill}" stroke="{color}" stroke-width="2.5"/>'
        f'<text x="{left}" y="{y + 1}" fill="#1f2328"{weight}>{text(_said(one))}</text>'
        f'<text x="{left}" y="{y + 18}" font-size="12" fill="#57606a">{text(_cut(one.remark))}</text>'
    )


def _said(one: Candidate) -> str:
    parts = [f"{one.number}  {_WORDS[one.status]}"]
    if one.score is not None:
        parts.append(f"validation {one.score:.3g}")
    if one.sample is not None and one.parent_sample is not None:
        parts.append(f"sample {one.parent_sample:.3g} to {one.sample:.3g}")
    if one.tokens is not None:
        parts.append(f"{one.tokens:,.0f} tokens a run")
    return ", ".join(parts)


def _cut(given: str) -> str:
    line = " ".join(given.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
