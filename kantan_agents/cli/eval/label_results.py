"""``kantan-agents eval label``: opens the queue, asks, and prints what was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.console import Console

from kantan_agents.cli.eval.ask import Asker
from kantan_agents.cli.terminal.console import LABEL, NOTICE, plain, terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.open_store import open_store

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import Evaluation, LabelQueue


@attrs.frozen
class Asked:
    """What the command line asks for.

    Attributes:
        path: The database.
        evaluation: Name of the evaluation, or LAST for the newest.
        metric: What is judged.
        by: Who answers.
        sample: How many runs; None for all.
        seed: Of the draw.
        scale: What may be answered.
        variants: The variants; None for all.
    """

    path: Path
    evaluation: str
    metric: str
    by: str
    sample: int | None
    seed: int
    scale: str
    variants: tuple[str, ...] | None


def label_results(asked: Asked, *, as_json: bool) -> None:
    """Ask a person about results, and print counts and agreement.

    Raises:
        KantanAgentsError: Any error of ``find_evaluation`` and ``LabelQueue``.
        KeyboardInterrupt: It was interrupted; a line on standard error says what is kept.
    """
    store = open_store(asked.path)
    from kantan_agents.cli.eval.find_variants import find_evaluation
    from kantan_agents.lab.evaluation import LabelQueue, LabelScale

    scale = LabelScale.of(asked.scale, option="--scale")
    evaluation = find_evaluation(store, asked.evaluation)
    queue = LabelQueue.of(
        evaluation,
        asked.metric,
        by=asked.by,
        sample=asked.sample,
        seed=asked.seed,
        variants=asked.variants,
        scale=scale,
    )
    console = terminal(stderr=as_json)
    _introduce(console, evaluation, queue)
    try:
        Asker(queue, console).ask_all()
    except KeyboardInterrupt:
        kept = counted(queue.labelled, "label")
        typer.echo(f"\ninterrupted: {kept} kept; the same command goes on with the others", err=True)
        raise
    _conclude(console, evaluation, queue, as_json=as_json)


def _introduce(console: Console, evaluation: Evaluation, queue: LabelQueue) -> None:
    known = evaluation.metrics
    if known and queue.metric not in known:
        text = f"no evaluator has scores of {queue.metric}; there are {', '.join(known)}"
        console.print(plain(text, NOTICE))
    if not len(queue):
        console.print(plain(f"Nothing to label for {queue.by}.", LABEL))


def _conclude(console: Console, evaluation: Evaluation, queue: LabelQueue, *, as_json: bool) -> None:
    from kantan_agents.lab.evaluation import agreement

    found = agreement(evaluation, queue.metric)
    if as_json:
        summary: dict[str, Any] = {
            "evaluation": evaluation.name,
            "metric": queue.metric,
            "by": queue.by,
            "labelled": queue.labelled,
            "skipped": queue.skipped,
            "left": len(queue),
            "probability": queue.probability,
            "agreement": found.to_dict(),
        }
        typer.echo(json_text(summary))
        return
    parts = [counted(queue.labelled, "label"), f"{len(queue):,} left"]
    if queue.skipped:
        parts.insert(1, f"{queue.skipped:,} skipped")
    console.print(plain(", ".join(parts)))
    console.print(plain(found.text))
