"""``rollout status``: prints the status of a rollout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from kantan_agents.cli.rollout.list_rollouts import share_text
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, NOTICE, wide_terminal, working
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.rollout import ArmMetrics, RolloutStatus, status
from kantan_agents.lab.rollout.verdict.judge import interval_text

_ARMS: Final = (
    Column("arm", longest=30),
    Column("share", right=True, named=True),
    Column("units", right=True, named=True),
    Column("runs", right=True, named=True, drop=1),
    Column("scored", right=True, named=True),
    Column("score", right=True, named=True),
    Column("failed", right=True, named=True),
    Column("cost", right=True, named=True),
    Column("tokens", right=True, named=True, drop=2),
    Column("p50", right=True, named=True, drop=3),
    Column("p95", right=True, named=True),
)
_GUARDS: Final = (
    Column("guard", longest=20),
    Column("arm", longest=30),
    Column("limit", right=True),
    Column("p", right=True, named=True),
    Column("units", right=True, named=True),
    Column("result"),
)
_STYLES: Final = {"promote": GOOD, "stop": BAD, "continue": NOTICE}


def show_status(path: Path, name: str, form: FormOptions) -> None:
    """Print the status of a rollout."""
    store = open_store(path)
    console = wide_terminal()
    with working(wide_terminal(stderr=True), "reading the runs"):
        found = status(name, store)
    if not form.print(found, found.to_dict):
        print_lines(console, _lines(found, line_width(console)))


def _lines(found: RolloutStatus, width: int | None) -> Iterator[Text]:
    state = found.state
    standing = f"{state.status}, {state.arm}" if state.arm is not None else state.status
    yield Text.assemble(
        cell(state.name, ACCENT), (" of agent ", LABEL), cell(state.plan.agent), ": ", cell(standing)
    )
    ramp = " > ".join(map(share_text, state.plan.ramp))
    yield Text.assemble(
        ("ramp ", LABEL), ramp, (f", now {share_text(state.share)}, step {state.step}", LABEL)
    )
    yield Text()
    yield from row_lines(_ARMS, [_arm(arm) for arm in found.arms], width)
    if found.metric:
        yield Text()
        for one in found.metric:
            yield Text.assemble((f"{one_line(state.plan.metric or '')} ", LABEL), cell(_metric(found, one)))
    if found.guards:
        yield Text()
        rows = [
            [
                cell(guard.guard),
                cell(guard.arm),
                cell(guard.limit if isinstance(guard.limit, str) else f"+{guard.limit:g}"),
                cell(_p(guard.p)),
                cell(count_text(guard.units)),
                cell("exceeded", BAD) if guard.has_fired else cell("within, so far"),
            ]
            for guard in found.guards
        ]
        yield from row_lines(_GUARDS, rows, width)
    yield Text()
    for warning in found.warnings:
        yield Text.assemble(("warning: ", NOTICE), cell(warning))
    yield Text.assemble((found.verdict, _STYLES[found.verdict]), ": ", cell(found.reason, longest=None))


def _metric(found: RolloutStatus, one: Any) -> str:
    control = found.state.plan.control
    if one.difference is None:
        return f"{one.arm} against {control}: no scores"
    interval = f"{one.difference:+.3g} ({interval_text(one)})"
    return f"{one.arm} against {control}: {interval}, p {_p(one.p_better)} better, p {_p(one.p_worse)} worse"


def _arm(arm: ArmMetrics) -> list[Text]:
    return [
        cell(arm.name, ACCENT),
        cell(share_text(arm.share)),
        cell(count_text(arm.units)),
        cell(count_text(arm.runs)),
        cell(count_text(arm.scored) if arm.scored else ""),
        cell("" if arm.mean_score is None else f"{arm.mean_score:.3g}"),
        cell("" if arm.failed is None else f"{arm.failed:.1%}"),
        cell("" if arm.mean_cost is None else f"{arm.mean_cost:.3g}"),
        cell("" if arm.mean_tokens is None else count_text(arm.mean_tokens)),
        cell(duration_text(arm.latency_p50)),
        cell(duration_text(arm.latency_p95)),
    ]


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004
