"""Prints what a search for a better prompt has found; everything that a model wrote is plain text."""

from __future__ import annotations

import typer
from rich.text import Text

from kantan_agents.cli.eval.show_evaluation import print_section
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, pairs, wide_terminal
from kantan_agents.cli.terminal.plain import printable, whole
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.diff_lines import diff_lines
from kantan_agents.lab.improve import Candidate, Improvement, ImproveProgress

_STYLES = {"winner": GOOD, "refused": BAD, "not eligible": BAD}


def show_improvement(found: Improvement) -> None:
    """Print the verdict, the diff, the candidates and the files; the last line is the rollout command."""
    console = wide_terminal()
    new = "none" if found.new is None else found.new.version
    cases = ", ".join(f"{count_text(count)} {part}" for part, count in found.cases.items())
    facts: list[tuple[str, object]] = [
        ("prompt", f"{found.old.name} {found.old.version}"),
        ("new version", new),
        ("cases", cases + (f"; {counted(len(found.skipped), 'trace')} left out" if found.skipped else "")),
        ("rounds", f"{found.rounds}{', then the budget was used up' if found.is_out_of_budget else ''}"),
        ("used", _used(found)),
    ]
    if found.opening is not None:
        one = found.opening
        facts.append(
            (
                "sealed test",
                f"opened {counted(one.number, 'time')}, now at alpha {one.alpha:g}; {one.left:g} is left",
            )
        )
    console.print(pairs(facts))
    if found.comparison is not None:
        print_section("Verdict on the sealed cases", found.comparison.lines)
    if found.skipped:
        reasons = [f"{one.trace_id}: {one.reason}" for one in found.skipped[:3]]
        print_section("Left out", reasons)
    console.print()
    rows = [_row(one) for one in found.candidates]
    print_lines(console, row_lines(_COLUMNS, rows, line_width(console)))
    if found.diff:
        console.print()
        print_lines(console, diff_lines(console, found.diff, "", line_width(console)))
    print_section("Files", [str(path) for path in found.files.values()])
    if found.new is not None:
        console.print()
        for line in (*found.rollout_code, found.rollout_command):
            # Not wrapped or cut, as it is pasted.
            typer.echo(whole(printable(line)))


def progress_text(now: ImproveProgress) -> str:
    """Return how far a search is, on one line."""
    parts = {"baseline": "the old version runs", "test": "sealed test"}
    text = parts.get(now.step, f"round {now.round} of {now.rounds}")
    if now.old_score is not None:
        best = now.old_score if now.best_score is None else now.best_score
        text += f", validation {now.old_score:.3g} -> {best:.3g}"
    text += f", {count_text(now.tokens)} tokens"
    return text if not now.cost else f"{text}, cost {now.cost:.4g}"


_COLUMNS = [
    Column("version"),
    Column("from", named=True),
    Column("sample", right=True, named=True),
    Column("validation", right=True, named=True),
    Column("tokens", right=True, named=True, drop=1),
    Column("result"),
    Column("why", own_line=True, rest=True),
]


def _row(one: Candidate) -> list[Text]:
    sample = "" if one.sample is None else f"{one.sample:.3g}"
    if one.parent_sample is not None and sample:
        sample = f"{one.parent_sample:.3g} -> {sample}"
    return [
        cell(one.number, ACCENT),
        cell("" if one.parent is None else one.parent),
        cell(sample),
        cell("" if one.score is None else f"{one.score:.3g}"),
        cell("" if one.tokens is None else count_text(one.tokens)),
        cell(one.status, _STYLES.get(one.status, LABEL)),
        cell(one.reason or one.changes),
    ]


def _used(found: Improvement) -> str:
    text = f"{count_text(found.tokens)} tokens"
    return text if found.cost is None else f"{text}, cost {found.cost:.4g}"
