"""``traces diff``: where two runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, LABEL, NOTICE, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text
from kantan_agents.cli.traces.diff_lines import diff_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import short_id, status, summary_data
from kantan_agents.cli.traces.view import prompt_label

if TYPE_CHECKING:
    from kantan_agents.traces.capture import RunRecord
    from kantan_agents.traces.capture.compare_runs import Parting
    from kantan_agents.traces.store import StoredTrace

_INDENT = "    "
_SHOWN = 10
_LONGEST = 30


@attrs.frozen
class _Side:
    trace: StoredTrace
    run: RunRecord | None

    @property
    def tool_calls(self) -> Mapping[str, int]:
        return Counter(call.tool.name for call in self.run.tool_calls) if self.run is not None else {}


def diff_runs(path: Path, run: str, other: str, *, as_json: bool) -> None:
    """Print where two runs diverge."""
    from kantan_agents.traces.capture.compare_runs import parting

    store = open_store(path)
    one, two = (_side(store.trace(wanted), wanted) for wanted in (run, other))
    known = one.run is not None and two.run is not None
    where = parting(one.run, two.run) if one.run is not None and two.run is not None else None
    if as_json:
        typer.echo(json_text(_data(one, two, where), default=str))
    else:
        console = wide_terminal()
        print_lines(console, _lines(console, one, two, where))
    if where is not None or not known:
        raise typer.Exit(EXIT_FAILED)


def _side(trace: StoredTrace, wanted: str) -> _Side:
    named = [run for run in trace.runs if run.id.startswith(wanted)]
    ids = {run.id for run in trace.runs}
    outermost = [run for run in trace.runs if run.parent_run not in ids]
    return _Side(trace, next(iter((*named, *outermost)), None))


def _lines(console: Console, one: _Side, two: _Side, where: Parting | None) -> Iterator[Text]:
    width = line_width(console)
    for side in (one, two):
        for reason in side.trace.missing:
            yield Text.assemble(("not recorded  ", NOTICE), plain(one_line(reason)))
    if where is not None:
        yield from _parting_lines(console, one, two, where, width)
    elif one.run is not None and two.run is not None:
        yield plain("The requests and answers of both runs are the same.")
    yield Text()
    columns = (Column(""), Column("first"), Column("second"))
    rows = [[cell(label, LABEL), first, second] for label, first, second in _facts(one, two)]
    yield from row_lines(columns, rows, width)


def _parting_lines(
    console: Console, one: _Side, two: _Side, where: Parting, width: int | None
) -> Iterator[Text]:
    number = where.call + 1
    if where.what == "end":
        longer, calls = ("first", one) if _calls(one) > _calls(two) else ("second", two)
        yield plain(
            f"Only the {longer} run has a model call {number} of {_calls(calls)}; all before it are the same."
        )
        return
    which = "requests" if where.what == "request" else "answers"
    yield plain(f"The {which} of model call {number} differ; everything before it is the same.")
    for difference in where.differences[:_SHOWN]:
        yield Text.assemble("  ", cell(difference.part, ACCENT), (f"  {difference.kind}", LABEL))
        yield from diff_lines(console, difference.diff, _INDENT, width)
    if len(where.differences) > _SHOWN:
        yield plain(f"  ... {len(where.differences) - _SHOWN} more parts", LABEL)


def _calls(side: _Side) -> int:
    return 0 if side.run is None else len(side.run.model_calls)


def _facts(one: _Side, two: _Side) -> Iterator[tuple[str, Text, Text]]:
    first, second = one.trace.summary, two.trace.summary
    yield "trace", cell(short_id(first.trace_id), ACCENT), cell(short_id(second.trace_id), ACCENT)
    yield "status", status(first), status(second)
    yield "prompt", cell(prompt_label(first.metadata)), cell(prompt_label(second.metadata))
    yield "took", cell(duration_text(first.duration)), cell(duration_text(second.duration))
    yield "tokens", cell(count_text(first.total_tokens)), cell(count_text(second.total_tokens))
    if one.run is not None and two.run is not None:
        yield "model calls", cell(count_text(_calls(one))), cell(count_text(_calls(two)))
        for name in dict.fromkeys((*one.tool_calls, *two.tool_calls)):
            calls = [cell(count_text(side.tool_calls.get(name, 0))) for side in (one, two)]
            yield f"calls of {one_line(name)}", calls[0], calls[1]
    yield (
        "output",
        cell(first.output or "", longest=_LONGEST),
        cell(second.output or "", longest=_LONGEST),
    )


def _data(one: _Side, two: _Side, where: Parting | None) -> dict[str, Any]:
    return {
        "runs": [
            {
                **summary_data(side.trace.summary),
                "run_id": side.run.id if side.run is not None else None,
                "missing": list(side.trace.missing),
                "model_calls": _calls(side),
                "tool_calls": dict(side.tool_calls),
            }
            for side in (one, two)
        ],
        "parts_at": None if where is None else attrs.asdict(where),
    }
