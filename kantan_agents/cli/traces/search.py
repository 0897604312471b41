"""``traces search``: finds runs by words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import LABEL, STRONG, plain, wide_terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import COLUMNS, EMPTY, rows_of, summary_data
from kantan_agents.traces.input_items import question_in
from kantan_agents.traces.span_answers import read_answer

if TYPE_CHECKING:
    from kantan_agents.traces.store import TraceStore, TraceSummary

_INPUT = "input"
_COLUMNS_IN_A_PIPE = (*COLUMNS[:-1], Column("found", longest=140, own_line=True), COLUMNS[-1])
_BEFORE = 24
_AFTER = 80


@attrs.frozen
class _Match:
    """The text around a match, and its source: ``input``, ``output`` or a span's name."""

    place: str
    snippet: str


def search_traces(
    path: Path, words: Sequence[str], filters: dict[str, Any], *, limit: int | None, as_json: bool
) -> None:
    """Print the latest runs that contain all words."""
    store = open_store(path)
    traces = store.traces(keywords=tuple(words), **filters, limit=limit)
    matches = [_match(store, trace, words) for trace in traces]
    if as_json:
        found = zip(traces, matches, strict=True)
        data = [{**summary_data(trace), "snippet": match.snippet} for trace, match in found]
        typer.echo(json_text(data, default=str))
    elif traces:
        _print(traces, matches, words)
    else:
        typer.echo("No run found.")


def _print(traces: Sequence[TraceSummary], matches: Sequence[_Match], words: Sequence[str]) -> None:
    """Print the runs; the input line already shows a match in the input."""
    console = wide_terminal()
    width = line_width(console)
    rows = rows_of(traces, width)
    if width is None:
        for row, match in zip(rows, matches, strict=True):
            elsewhere = f"{match.place}: {match.snippet}" if match.snippet else EMPTY
            row.insert(-1, plain(_INPUT if match.place == _INPUT else elsewhere))
        print_lines(console, row_lines(_COLUMNS_IN_A_PIPE, rows, width))
        return
    below = [[*_below(row.pop(), match, words)] for row, match in zip(rows, matches, strict=True)]
    print_lines(console, row_lines(COLUMNS[:-1], rows, width, below))


def _below(question: Text, match: _Match, words: Sequence[str]) -> Iterator[Text]:
    if match.place != _INPUT:
        yield _labelled(_INPUT, question)
    if match.snippet:
        highlighted = plain(match.snippet)
        highlighted.highlight_regex(re.compile("|".join(map(re.escape, words)), re.IGNORECASE), STRONG)
        yield _labelled(match.place, highlighted)


def _labelled(label: str, text: Text) -> Text:
    return Text.assemble(cell(f"{label}: ", LABEL), " ", text)


def _match(store: TraceStore, trace: TraceSummary, words: Sequence[str]) -> _Match:
    """Return the text around the first match; "" if only SQLite finds one."""
    for place, text in _texts(store, trace):
        for word in words:
            match = re.search(re.escape(word), text, re.IGNORECASE)
            if match:
                begin, end = max(match.start() - _BEFORE, 0), match.end() + _AFTER
                before = "..." if begin else ""
                after = "..." if end < len(text) else ""
                return _Match(place, f"{before}{one_line(text[begin:end])}{after}")
    return _Match("", "")


def _texts(store: TraceStore, trace: TraceSummary) -> Iterator[tuple[str, str]]:
    recorded = str(trace.input or "")
    yield _INPUT, question_in(recorded)
    yield _INPUT, recorded
    yield "output", str(trace.output or "")
    for span in store.get_spans_by_trace(trace.trace_id):
        name = one_line(str(span.name or span.span_type or "span"))
        yield name, str(span.input or "")
        yield name, str(read_answer(span) or "")
        yield name, str(span.output or "")
