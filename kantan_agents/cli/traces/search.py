"""``kantan-agents traces search``: finds runs that contain words, each with the text around a match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import STRONG, plain, wide_terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, line_width, print_lines, row_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import COLUMNS, row_of, summary_data

if TYPE_CHECKING:
    from kantan_agents.tracing.store import TraceStore, TraceSummary

_TEXTS = (Column("input", longest=32, own_line=True), Column("found", own_line=True, rest=True))
_BEFORE = 24
_AFTER = 80


def search_traces(
    path: Path, words: Sequence[str], filters: dict[str, Any], *, limit: int, as_json: bool
) -> None:
    """Print the newest runs whose inputs and outputs contain all words.

    Raises:
        TraceDatabaseError: E60, the database cannot be used.
    """
    store = open_store(path)
    traces = store.traces(keywords=tuple(words), **filters, limit=limit)
    found = [(trace, _snippet(store, trace, words)) for trace in traces]
    if as_json:
        data = [{**summary_data(trace), "snippet": snippet} for trace, snippet in found]
        typer.echo(json_text(data, default=str))
    elif found:
        console = wide_terminal()
        columns = (*COLUMNS[:-1], *_TEXTS)
        rows = [[*row_of(trace), _highlighted(snippet, words)] for trace, snippet in found]
        print_lines(console, row_lines(columns, rows, line_width(console)))
    else:
        typer.echo("No run found.")


def _snippet(store: TraceStore, trace: TraceSummary, words: Sequence[str]) -> str:
    """Return the text around the first match; "" if SQLite found one that Python does not."""
    for text in _texts(store, trace):
        for word in words:
            match = re.search(re.escape(word), text, re.IGNORECASE)
            if match:
                begin, end = max(match.start() - _BEFORE, 0), match.end() + _AFTER
                before = "..." if begin else ""
                after = "..." if end < len(text) else ""
                return f"{before}{one_line(text[begin:end])}{after}"
    return ""


def _texts(store: TraceStore, trace: TraceSummary) -> Iterator[str]:
    yield str(trace.input or "")
    yield str(trace.output or "")
    for span in store.get_spans_by_trace(trace.trace_id):
        yield str(span.input or "")
        yield str(span.output or "")


def _highlighted(snippet: str, words: Sequence[str]) -> Text:
    text = plain(snippet)
    text.highlight_regex(re.compile("|".join(map(re.escape, words)), re.IGNORECASE), STRONG)
    return text
