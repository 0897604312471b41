"""Runs one whole comparison: environments, processes, rounds, results."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import environment
from benchmarks.peers.catalog import Workload
from benchmarks.peers.compared import CONTROL, FRAMEWORKS, PLAIN
from benchmarks.peers.environments import NotInstalledError, prepared
from benchmarks.peers.fleet import Fleet, model_server, worker_files
from benchmarks.peers.measuring import Bench, UsageMetrics
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.rounds import Spread, others, ratios
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.trace_databases import TraceDatabases

Say = Callable[[str], None]


def compare(
    workloads: Sequence[Workload], peers: Sequence[str], sizes: Sizes, environments: Path, say: Say
) -> Results:
    """Measure ``workloads`` on the plain SDK, on kantan_agents and on ``peers``.

    Args:
        workloads: The workloads to measure.
        peers: The names of the other frameworks; those that cannot be installed are left out.
        sizes: How much to measure.
        environments: The folder of the environments.
        say: Receives progress messages.

    Raises:
        NotInstalledError: A required environment cannot be created.
        WorkerError: The processes do not start.
    """
    pythons, left_out = _pythons(peers, environments, say)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kantan-agents-traces-"))
        fleet = Fleet(pythons, stack.enter_context(worker_files()), stack.enter_context(model_server()))
        bench = Bench(fleet, sizes, tuple(pythons), TraceDatabases(Path(folder)))
        bench.measure(workloads, say)
        return Results(
            measured_on=dt.datetime.now(dt.timezone.utc).date().isoformat(),
            machine=f"{environment('openai-agents', 'openai', 'pydantic')}, {os.cpu_count()} cores",
            repeats=sizes.generations * sizes.pairs,
            generations=sizes.generations,
            versions=bench.versions,
            left_out=left_out,
            failed=bench.failed,
            rows=tuple(_row(bench, workload) for workload in workloads if workload.id not in bench.failed),
            is_quick=sizes.is_quick,
        )


def _pythons(peers: Sequence[str], folder: Path, say: Say) -> tuple[dict[str, Path], dict[str, str]]:
    pythons: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for framework in FRAMEWORKS:
        if not framework.required and framework.name not in peers:
            left_out[framework.name] = "not asked for"
            continue
        try:
            pythons[framework.name] = prepared(framework, folder, say)
        except NotInstalledError as error:
            if framework.required:
                raise
            left_out[framework.name] = "it cannot be installed"
            say(f"LEFT OUT: {framework.title} cannot be installed:\n{error}")
    return pythons, left_out


def _row(bench: Bench, workload: Workload) -> Row:
    figures = bench.figures[workload.id]
    cells = {name: _cell(figures[name]) for name in bench.names if name in figures and name != PLAIN}
    if workload.kind == "traced":
        plain, again = _cell(figures[PLAIN]), None
    else:
        bases = [pair.base for figure in figures.values() for pair in figure.pairs]
        late = _late(figures[PLAIN]) if PLAIN in figures else None
        plain = Cell(value=Spread.of(bases), late=late)
        again = _cell(figures[CONTROL]) if CONTROL in figures else None
    control, control_late = (again.ratio, again.late) if again is not None else (None, None)
    return Row(workload.id, {PLAIN: plain, **cells}, control, control_late)


def _cell(figures: UsageMetrics) -> Cell:
    if figures.absent is not None:
        return Cell(absent=figures.absent)
    return Cell(value=others(figures.pairs), ratio=ratios(figures.pairs), late=_late(figures))


def _late(figures: UsageMetrics) -> tuple[float, float] | None:
    if not figures.late:
        return None
    medians, highs = zip(*figures.late, strict=True)
    return Spread.of(medians).median, Spread.of(highs).median
