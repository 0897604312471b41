"""The options of ``kantan-agents eval judge``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.eval.options import EvaluationArgument, MetricOption
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption


def judge(
    evaluation: EvaluationArgument,
    metric: MetricOption,
    db: DatabaseOption = DATABASE,
    people: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Option(
            "--people", metavar="NAME", help="The metric of the labels, if it is another.", show_default=False
        ),
    ] = None,
    by: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--by",
            metavar="NAME",
            help="Only this person's labels; may be repeated. By default those of all.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="VALUE", min=0, help="From which value a result passes.")
    ] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a judge with people's labels, and correct what it says.

    Shows how often the judge agrees with people, its bias, how well people
    agree, and what people would say about all cases. With two variants that
    is their difference, with any other number the score of each.

    Exit codes: 0 printed, 2 bad arguments or database.
    """
    from kantan_agents.cli.eval.measure_judge import measure_judge

    names = tuple(by or ()) or None
    measure_judge(db, evaluation, metric, people=people, by=names, threshold=threshold, as_json=as_json)
