"""``traces prompts``: compares prompt versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, LABEL, wide_terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import (
    count_text,
    duration_text,
    iso_time,
    local_time,
    rate_text,
)
from kantan_agents.cli.traces.open_store import open_store

if TYPE_CHECKING:
    from kantan_agents.traces.store import PromptStats

_NAME = 40
_VERSION = 24
_GAP = 2


@attrs.frozen
class _Fact:
    """A property: its label, its column in a row (if any), its text."""

    label: str
    column: str | None
    text: Callable[[PromptStats], str]


def _score(stats: PromptStats) -> str:
    return "" if stats.mean_score is None else f"{stats.mean_score:.2f}"


def _tokens_per_run(stats: PromptStats) -> str:
    return count_text(stats.total_tokens / stats.runs) if stats.runs else ""


_FACTS = (
    _Fact("runs", "runs", lambda stats: count_text(stats.runs)),
    _Fact("failures", "failed", lambda stats: count_text(stats.failures)),
    _Fact("unfinished", "unfinished", lambda stats: count_text(stats.unfinished)),
    _Fact("failure rate", "rate", lambda stats: rate_text(stats.failures, stats.runs - stats.unfinished)),
    _Fact("mean score", "score", _score),
    _Fact("verdicts", None, lambda stats: count_text(stats.scores)),
    _Fact("tokens a run", "tokens/run", _tokens_per_run),
    _Fact("latency p50", "p50", lambda stats: duration_text(stats.latency_p50)),
    _Fact("latency p95", "p95", lambda stats: duration_text(stats.latency_p95)),
    _Fact("texts", None, lambda stats: count_text(stats.texts) if stats.texts else ""),
    _Fact("first run", None, lambda stats: local_time(stats.first_run)),
    _Fact("last run", "last run", lambda stats: local_time(stats.last_run)),
)
_IN_A_ROW = [fact for fact in _FACTS if fact.column]
COLUMNS = (
    Column("prompt"),
    Column("version"),
    *(
        Column(str(fact.column), right=True, named=True, drop=int(fact.column == "unfinished"))
        for fact in _IN_A_ROW
    ),
)


def compare_prompts(path: Path, prompt: str | None, *, as_json: bool) -> None:
    """Print prompt versions in rows or side by side."""
    stats = open_store(path).prompts(prompt)
    if as_json:
        typer.echo(json_text([stats_data(version) for version in stats]))
        return
    if not stats:
        none_at_all = "The database holds no runs of any prompt."
        typer.echo(none_at_all if prompt is None else f"No run of prompt {one_line(prompt)} found.")
        return
    console = wide_terminal()
    width = line_width(console)
    if prompt is None:
        print_lines(console, row_lines(COLUMNS, [_row(version) for version in stats], width))
    else:
        print_lines(console, _side_by_side(stats, width))


def stats_data(stats: PromptStats) -> dict[str, Any]:
    """Return a prompt version as a flat object."""
    return {
        **attrs.asdict(stats),
        "text": stats.text,
        "prompt_id": stats.prompt_id,
        "failure_rate": stats.failure_rate,
        "tokens_per_run": stats.total_tokens / stats.runs if stats.runs else None,
        "first_run": iso_time(stats.first_run),
        "last_run": iso_time(stats.last_run),
    }


def _row(stats: PromptStats) -> list[Text]:
    return [
        cell(stats.prompt_name, ACCENT, longest=_NAME),
        cell(_version(stats), longest=_VERSION),
        *(cell(fact.text(stats)) for fact in _IN_A_ROW),
    ]


def _side_by_side(stats: Sequence[PromptStats], width: int | None) -> Iterator[Text]:
    labels = [cell(fact.label, LABEL) for fact in _FACTS]
    columns = [[cell(fact.text(version) or "-") for fact in _FACTS] for version in stats]
    heads = [cell(_version(version) or "no version", longest=_VERSION).plain for version in stats]
    name = cell(stats[0].prompt_name, longest=_NAME).plain
    first = max(Text(name).cell_len, *(label.cell_len for label in labels))
    widths = [
        max(Text(head).cell_len, *(text.cell_len for text in cells)) + _GAP
        for head, cells in zip(heads, columns, strict=True)
    ]
    for number, part in enumerate(_fitting_slices(widths, None if width is None else width - first)):
        if number:
            yield Text()
        table = (Column(name), *(Column(head, right=True) for head in heads[part]))
        rows = [list(row) for row in zip(labels, *columns[part], strict=True)]
        yield from row_lines(table, rows, None)


def _fitting_slices(widths: Sequence[int], available: int | None) -> Iterator[slice]:
    begin = 0
    while begin < len(widths):
        end = begin + 1
        while end < len(widths) and (available is None or sum(widths[begin : end + 1]) <= available):
            end += 1
        yield slice(begin, end)
        begin = end


def _version(stats: PromptStats) -> str:
    return "" if stats.prompt_version is None else str(stats.prompt_version)
