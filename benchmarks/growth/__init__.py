"""Growth curves: the cost of a run, a search or a load as one size grows.

    python -m benchmarks --only NAME ...

At each size, both sides take turns in one process. The growth is the ratio of the cost at the largest size to
that at the smallest. The batches of these two take turns too, so that a drift of the machine affects neither.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.growth.agents_on_disk import FILE_CURVES
from benchmarks.growth.curve import Curve
from benchmarks.growth.measuring import QUICK, WHOLE, measure_curve
from benchmarks.growth.results import Growth, to_json, to_markdown, to_table
from benchmarks.growth.runs import RUN_CURVES
from benchmarks.growth.trace_databases import DATABASE_CURVES
from benchmarks.measure import environment
from kantan_agents import set_trace_processors

__all__ = ["CURVES", "Curve", "Growth", "measure"]

CURVES: tuple[Curve, ...] = (*RUN_CURVES, *DATABASE_CURVES, *FILE_CURVES)

_PACKAGES = ("openai-agents", "openai", "kantan-llm", "PyYAML", "python-frontmatter")


async def measure(names: Collection[str], *, quick: bool, output: Path | None) -> None:
    """Measure curves and print a table for each as it is measured.

    All trace processors are removed.

    Args:
        names: The names of the curves to measure.
        quick: Whether to measure only small sizes.
        output: The directory for ``growth.json``, ``growth.md`` and ``growth.png``, created if missing. None
            to write nothing.

    Raises:
        ValueError: A name is not that of a curve.
        RuntimeError: The measured code did not do its work.
    """
    unknown = set(names) - {curve.name for curve in CURVES}
    if unknown:
        raise ValueError(f"no such curves: {', '.join(sorted(unknown))}")
    console = Console(width=110)
    machine = f"{environment(*_PACKAGES)}, {os.cpu_count()} cores"
    growths: list[Growth] = []
    gc.collect()
    gc.freeze()  # so that collections between the batches are fast
    try:
        with tempfile.TemporaryDirectory(prefix="kantan-agents-") as folder:
            for curve in CURVES:
                if curve.name in names:
                    set_trace_processors([])
                    sizes, effort = (curve.quick_sizes, QUICK) if quick else (curve.sizes, WHOLE)
                    growths.append(await measure_curve(curve, sizes, Path(folder), effort))
                    text = f"{curve.title}\n{to_table(growths[-1])}\n"
                    console.print(text, highlight=False, markup=False, soft_wrap=True)
    finally:
        gc.unfreeze()
        set_trace_processors([])
    if output is not None:
        _write(growths, output, machine)


def _write(growths: Sequence[Growth], output: Path, machine: str) -> None:
    from benchmarks.growth.chart import draw  # matplotlib is needed for this alone

    output.mkdir(parents=True, exist_ok=True)
    (output / "growth.json").write_text(to_json(growths, machine))
    (output / "growth.md").write_text(to_markdown(growths, machine))
    draw(growths, output / "growth.png", machine)
