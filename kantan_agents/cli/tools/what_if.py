"""``tools what-if``: calls that other rules would decide differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, NOTICE, wide_terminal, working
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import counted, iso_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import short_id

if TYPE_CHECKING:
    from kantan_agents.lab.rule_changes import Flip, FlipCounts, WhatIf
    from kantan_agents.traces.capture import RecordedDecision

MAX_SHOWN = 20

_FLIPS = (
    Column("trace"),
    Column("tool", longest=24, narrow=16, aligned=32),
    Column("agent", longest=20, narrow=12, aligned=32),
    Column("rule", longest=40, narrow=24, aligned=48),
    Column("layer", longest=20, narrow=12, aligned=32),
    Column("arguments", own_line=True, rest=True, narrowest=12),
)
_COUNTS = (
    Column("name", longest=40),
    Column("newly denied", right=True, named=True),
    Column("newly allowed", right=True, named=True),
)
_EXACT = "* follows another flip of its run, so it might not have happened"


def show_what_if(
    path: Path, rules: Mapping[str, Any], filters: dict[str, Any], *, layer: str, as_json: bool
) -> None:
    """Print the decisions about recorded calls; exit with 1 if one flips."""
    store = open_store(path)
    from kantan_agents.lab.rule_changes import what_if
    from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY

    # The runs of experiments repeat others, with a change.
    filters = {**filters, "metadata": {EXPERIMENT_KEY: None, **(filters.get("metadata") or {})}}
    console = wide_terminal()
    with working(console, "Deciding recorded calls again ..."):
        answer = what_if(rules, store.recorded_calls(**filters), layer=layer)
    if as_json:
        typer.echo(json_text(as_data(answer)))
    else:
        print_lines(console, _lines(answer, line_width(console)))
    if answer.flips:
        raise typer.Exit(EXIT_FAILED)


def as_data(answer: WhatIf) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {
        "judged": answer.judged,
        "runs": answer.runs,
        "after_flip": answer.after_flip,
        "invalid": answer.invalid,
        "newly_denied": [_flip_data(flip) for flip in answer.newly_denied],
        "newly_allowed": [_flip_data(flip) for flip in answer.newly_allowed],
        "by_tool": {name: attrs.asdict(counts) for name, counts in answer.by_tool.items()},
        "by_agent": {name: attrs.asdict(counts) for name, counts in answer.by_agent.items()},
        "unjudged": [attrs.asdict(call) for call in answer.unjudged],
        "incomplete": [
            {"trace_id": trace.trace_id, "missing": list(trace.missing)} for trace in answer.incomplete
        ],
    }


def _flip_data(flip: Flip) -> dict[str, Any]:
    return {
        "trace_id": flip.trace_id,
        "run_id": flip.run_id,
        "call_id": flip.call_id,
        "agent": flip.agent,
        "tool": flip.tool,
        "arguments": flip.arguments,
        "started_at": iso_time(flip.started_at),
        "before": _decision_data(flip.before),
        "after": _decision_data(flip.after),
        "is_first": flip.is_first,
    }


def _decision_data(decision: RecordedDecision) -> dict[str, Any]:
    return {
        "allowed": decision.is_allowed,
        "rule": decision.rule,
        "layers": list(decision.layers),
        "code": decision.code,
    }


def _lines(answer: WhatIf, width: int | None) -> Iterator[Text]:
    runs = counted(answer.runs, "run")
    yield cell(f"{counted(answer.judged, 'call')} of {runs} judged, {_number_of_flips(answer)}")
    for title, flips, style in (
        ("Newly denied", answer.newly_denied, BAD),
        ("Newly allowed", answer.newly_allowed, GOOD),
    ):
        yield from _group(title, flips, style, width)
    if answer.flips:
        yield from _counts("By tool", answer.by_tool, width)
        yield from _counts("By agent", answer.by_agent, width)
    yield from _notes(answer)


def _number_of_flips(answer: WhatIf) -> str:
    if not answer.flips:
        return "no decision flips"
    flips = counted(len(answer.flips), "decision")
    verb = "flips" if len(answer.flips) == 1 else "flip"
    return (
        f"{flips} {verb}: {len(answer.newly_denied)} newly denied, {len(answer.newly_allowed)} newly allowed"
    )


def _group(title: str, flips: Sequence[Flip], style: str, width: int | None) -> Iterator[Text]:
    if not flips:
        return
    shown = flips if width is None else flips[:MAX_SHOWN]
    yield Text()
    yield Text(title, style=style)
    yield from row_lines(_FLIPS, [_cells(flip, width) for flip in shown], width)
    if len(shown) < len(flips):
        yield cell(f"... and {len(flips) - len(shown)} more; --json prints all", LABEL)


def _cells(flip: Flip, width: int | None) -> list[Text]:
    # The denying rule: the new one, or the one in force.
    decision = flip.before if flip.is_allowed else flip.after
    trace_id = flip.trace_id if width is None else short_id(flip.trace_id)
    return [
        cell(trace_id if flip.is_first else f"{trace_id}*", ACCENT),
        cell(flip.tool),
        cell(flip.agent),
        cell(decision.rule or "-"),
        cell(", ".join(decision.layers) or "-"),
        cell(flip.arguments or "-"),
    ]


def _counts(title: str, counts: Mapping[str, FlipCounts], width: int | None) -> Iterator[Text]:
    yield Text()
    yield Text(title, style=LABEL)
    rows = [
        [cell(name), cell(count.newly_denied), cell(count.newly_allowed)] for name, count in counts.items()
    ]
    yield from row_lines(_COUNTS, rows, width)


def _notes(answer: WhatIf) -> Iterator[Text]:
    notes = []
    if any(not flip.is_first for flip in answer.flips):
        notes.append(_EXACT)
    if answer.after_flip:
        notes.append(f"{counted(answer.after_flip, 'call')} after the first flip of a run")
    if answer.invalid:
        notes.append(f"{counted(answer.invalid, 'invalid call')}, which fail whatever the rules say")
    if notes:
        yield Text()
        yield from (cell(note, LABEL) for note in notes)
    if answer.unjudged:
        yield Text()
        yield Text(f"{counted(len(answer.unjudged), 'call')} not judged", style=NOTICE)
        reasons = Counter((call.tool, call.reason) for call in answer.unjudged)
        for (tool, reason), count in reasons.most_common(MAX_SHOWN):
            yield cell(f"  {count} of {tool}: {reason}")
    if answer.incomplete:
        yield Text()
        yield Text(f"{counted(len(answer.incomplete), 'trace')} recorded incompletely", style=NOTICE)
        for trace in answer.incomplete[:MAX_SHOWN]:
            yield cell(f"  {trace.trace_id}: {trace.missing[0]}")
